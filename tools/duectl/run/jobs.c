/* jobs.c - the jobs of a run without a store: what their lines say besides time and text.
 *
 * Topic, priority and group count in the queue that everything leaves through.  A key is held from
 * the reading of its line until its job is done with, whichever queue that is in meanwhile.  A line
 * that comes again is one job, which is put in anew each time: a date into the queue on the wall
 * clock, and each so often into that on the monotonic one.
 */
#include "run/run.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- Keys ------------------------------------------------------------------------------------ */

static int compare(const void *left, const void *right)
{
    const due_extra *a = &((const struct ctl_job *)left)->more->extra;
    const due_extra *b = &((const struct ctl_job *)right)->more->extra;

    if (a->key_len != b->key_len)
        return a->key_len < b->key_len ? -1 : 1;
    return memcmp(a->key, b->key, a->key_len);
}

bool ctl_key_take(struct ctl_run *run, struct ctl_job *job)
{
    const struct ctl_more *m = job->more;
    struct ctl_job **holder;

    /* One that was made of the line itself is for stores: there a line may be read twice. */
    if (m == NULL || !m->named || m->extra.key == NULL)
        return true;
    pthread_mutex_lock(&run->keys_lock);
    holder = tsearch(job, &run->keys, compare);
    job->has_key = holder != NULL && *holder == job;
    pthread_mutex_unlock(&run->keys_lock);
    return job->has_key;
}

void ctl_job_free(struct ctl_run *run, struct ctl_job *job)
{
    if (job == NULL)
        return;
    if (job->has_key) {
        pthread_mutex_lock(&run->keys_lock);
        (void)tdelete(job, &run->keys, compare);
        pthread_mutex_unlock(&run->keys_lock);
    }
    free(job->more);
    free(job);
}

/* ---- Put ------------------------------------------------------------------------------------- */

int ctl_job_put(struct ctl_run *run, enum ctl_clock clock, int64_t at_ns, struct ctl_job *job)
{
    const struct ctl_more *m = job->more;
    due_queue *q = clock == CTL_WALL ? run->wall : run->queue;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = at_ns, .ptr = job };
    due_extra more = { DUE_EXTRA_INIT };
    int topic = 0;

    if (m == NULL)
        return due_enqueue(q, &spec, DUE_FOREVER, NULL);
    spec.priority = m->priority;
    if (clock == CTL_MONOTONIC && m->topic != NULL)
        topic = due_topic(q, m->topic);
    if (topic < 0)
        return topic;
    spec.topic = topic;
    if (clock == CTL_MONOTONIC && m->extra.group != NULL) {
        more.group = m->extra.group;
        more.group_len = m->extra.group_len;
        spec.more = &more;
    }
    return due_enqueue(q, &spec, DUE_FOREVER, NULL);
}

/* ---- Ended ----------------------------------------------------------------------------------- */

bool ctl_job_is_over(struct ctl_run *run, const due_job *due)
{
    const struct ctl_job *job = due->ptr;
    int64_t late_ns = due->lateness_ns + job->late_ns;

    if (job->more == NULL || job->more->ttl_ns == 0 || late_ns <= job->more->ttl_ns)
        return false;
    ctl_tally_add(&run->tally, &run->tally.counts.failed, 1);
    ctl_say(&run->screen, "duectl: %s:%llu: its time limit had passed\n", run->in.name,
            (unsigned long long)job->line);
    return true;
}

/* Put it in for its next time: 0 or an error. */
static int again(struct ctl_run *run, struct ctl_job *job, int64_t deadline_ns)
{
    const due_extra *extra = &job->more->extra;
    enum ctl_clock clock;
    struct ctl_entry e;
    int64_t next_ns;
    int rc;

    if (!ctl_round_read(&e, extra->headers, extra->headers_len))
        return DUE_EINVAL;
    clock = e.kind == CTL_CRON ? CTL_WALL : CTL_MONOTONIC;
    rc = ctl_round_next(&e, clock == CTL_WALL ? job->wall_ns : deadline_ns,
                        due_now(clock == CTL_WALL ? run->wall : run->queue), &next_ns);
    if (rc != 0)
        return rc;
    job->late_ns = 0;
    job->wall_ns = 0;
    rc = ctl_job_put(run, clock, next_ns, job);
    if (rc == DUE_ECLOSED)
        ctl_tally_left(&run->tally, clock, next_ns, job);
    return rc;
}

void ctl_job_end(struct ctl_run *run, struct ctl_job *job, int64_t deadline_ns)
{
    int rc = DUE_ECLOSED;

    if (job->more != NULL && job->more->again)
        rc = again(run, job, deadline_ns);
    if (rc == 0)
        return;
    if (rc != DUE_ECLOSED)
        ctl_say(&run->screen, "duectl: %s:%llu: it does not come again: %s\n", run->in.name,
                (unsigned long long)job->line, due_error_text(rc));
    ctl_job_free(run, job);
}
