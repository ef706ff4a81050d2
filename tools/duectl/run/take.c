/* take.c - due jobs are passed on and printed. */
#include "run/run.h"

#include <stdlib.h>

/* Pass a job whose date has come to the queue that everything leaves through. */
static void pass(struct ctl_run *run, due_job *due)
{
    struct ctl_job *job = due->ptr;
    int rc;

    job->late_ns = due->lateness_ns;
    job->wall_ns = due->deadline_ns;
    rc = ctl_job_put(run, CTL_MONOTONIC, 0, job);
    if (rc == 0)
        return;
    if (rc == DUE_ECLOSED) {
        ctl_tally_left(&run->tally, CTL_WALL, due->deadline_ns, job);
    } else {
        ctl_tally_add(&run->tally, &run->tally.counts.faults, 1);
        ctl_say(&run->screen, "%s:%llu:1: %s\n", run->in.name, (unsigned long long)job->line,
                due_error_text(rc));
    }
    ctl_job_free(run, job);
}

void ctl_pass(struct ctl_run *run, int number)
{
    due_job due;

    (void)number;
    while (due_dequeue(run->wall, &due, DUE_FOREVER) == 0) {
        if (due_now(run->wall) < due.deadline_ns)
            ctl_tally_add(&run->tally, &run->tally.counts.early, 1);
        pass(run, &due);
        due_job_done(&due);
    }
    ctl_run_drain(run, run->queue);
}

void ctl_job_taken(struct ctl_run *run, const due_job *due)
{
    const struct ctl_job *job = due->ptr;
    bool early = due_now(run->queue) < due->deadline_ns;

    ctl_tally_lateness(&run->tally, due->lateness_ns + job->late_ns, early);
}

/* Print what is due: 0 or -errno. */
static int print(struct ctl_run *run, due_job *due, int n)
{
    struct iovec pieces[CTL_BATCH];
    int printed = 0;
    int rc;

    for (int i = 0; i < n; i++) {
        struct ctl_job *job = due[i].ptr;

        if (ctl_job_is_over(run, &due[i]))
            continue;
        ctl_job_taken(run, &due[i]);
        pieces[printed++] = (struct iovec){ .iov_base = job->text, .iov_len = job->len + 1 };
    }
    rc = printed == 0 ? 0 : ctl_screen_write(&run->screen, pieces, printed);
    for (int i = 0; i < n; i++) {
        struct ctl_job *job = due[i].ptr;

        due_job_done(&due[i]);
        if (rc == 0) {
            ctl_job_end(run, job, due[i].deadline_ns);
            continue;
        }
        ctl_tally_left(&run->tally, CTL_MONOTONIC, due[i].deadline_ns, job);
        ctl_job_free(run, job);
    }
    if (rc == 0)
        ctl_tally_add(&run->tally, &run->tally.counts.delivered, (uint64_t)printed);
    return rc;
}

void ctl_print(struct ctl_run *run, int number)
{
    due_job due[CTL_BATCH];
    int rc = 0;

    (void)number;
    while (rc == 0) {
        int n = due_take(run->queue, NULL, due, CTL_BATCH, DUE_FOREVER);

        if (n <= 0)
            return;
        rc = print(run, due, n);
    }
    ctl_run_broken(run, -rc);
}
