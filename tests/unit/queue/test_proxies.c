/* The queue's own threads: they sleep while there is nothing to do, and tidy up by themselves. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "lab/lab.h"
#include "queue/queue.h"

/* How many threads of the process, besides this one, do not sleep. */
static unsigned awake(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned n = 0;

    cr_assert_not_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300];
        char state = 'S';

        if (task->d_name[0] == '.' || atoi(task->d_name) == (int)getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue;
        cr_assert_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
        fclose(f);
        n += state != 'S';
    }
    closedir(tasks);
    return n;
}

/* Until nobody else was awake, so many times in a row. */
static bool all_sleep(void)
{
    enum { LOOKS = 20 };
    int asleep = 0;

    for (int i = 0; i < 5000 && asleep < LOOKS; i++) {
        asleep = awake() == 0 ? asleep + 1 : 0;
        usleep(200);
    }
    return asleep == LOOKS;
}

static void check_sleep(bool kernel)
{
    struct lab lab = lab_open(.kernel = kernel);
    struct crew_call call;

    cr_expect(all_sleep(), "nothing was asked of them yet");
    lab_enqueue(&lab, "later", .delay_ns = DUE_S(1000));
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect(all_sleep(), "nothing is due");
    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    due_job_done(&call.job);
    cr_expect(all_sleep(), "what was due has gone");
    lab_close(&lab);
}

LAB_TEST(dequeue_proxy, sleeps_as_the_others_do_while_there_is_nothing_to_do)
{
    check_sleep(false);
    check_sleep(true);
}

/* What lay in the inbox when it begins to hand out may stand before what is sorted in by then: more
 * than is sorted in in one tenure, and the last one put is the first due. */
Test(dequeue_proxy, hands_out_the_first_of_all_that_was_there, .timeout = 60)
{
    enum { JOBS = 8 * DUE__PROXY_BATCH, ROUNDS = 4 };
    struct lab lab = lab_open(.start_ns = JOBS, .with.proxies = DUE_PROXIES_ALWAYS);

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, "tea", .delay_ns = DUE_S(1)); /* its memory is there by then */
    cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct crew_call call;
        struct due__tenure t;

        crew_call_dequeue(&call, lab.q, DUE_FOREVER);
        crew_call_asleep(&call);
        due__enter(lab.q, &t);
        for (int i = 0; i < JOBS; i++)
            lab_enqueue(&lab, "tea", .at_ns = JOBS - i);
        due__tenure_end(lab.q, &t);
        cr_assert_eq(crew_call_answer(&call), 0);
        cr_expect_eq(call.job.deadline_ns, 1, "%jd", (intmax_t)call.job.deadline_ns);
        due_job_done(&call.job);
        cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    }
    lab_close(&lab);
}
