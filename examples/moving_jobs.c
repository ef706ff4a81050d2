/* moving_jobs.c - what job queues are asked for elsewhere, with libdue: a delay, a reservation,
 * tries, dead ones, a unique key, a delay that is changed.
 */
#include <due/due.h>
#include <due/workers.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int put(due_queue *q, int tube, const char *text)
{
    due_spec spec = { DUE_SPEC_INIT,         .topic = tube, .priority = 200,
                      .delay_ns = DUE_S(60), .data = text,  .len = strlen(text) };

    return due_enqueue(q, &spec, 0, NULL);
}

static int reserve_of(due_queue *q, int tube, due_job *job)
{
    due_take_options how = { DUE_TAKE_INIT, .topics = &tube, .topic_count = 1,
                             .lease_ns = DUE_S(120) };

    return due_take(q, &how, job, 1, 0) == 1 ? 0 : -1;
}

/* release, touch, bury, delete */
static int answer(due_job *job)
{
    if (job->attempts == 1)
        return due_nack(job, DUE_S(10));
    if (due_extend(job, DUE_S(300)) != 0)
        return -1;
    return job->attempts == 2 ? due_bury(job, "no such address") : due_ack(job);
}

static int tube(due_queue *q, due_clock *clock)
{
    int mail = due_topic(q, "mail");
    uint64_t kicked = 0;
    due_job job;

    if (mail < 0 || put(q, mail, "a letter") != 0 || due_clock_advance(clock, DUE_S(60)) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        if (reserve_of(q, mail, &job) != 0 || answer(&job) != 0 ||
            due_clock_advance(clock, DUE_S(10)) != 0)
            return 1;
    if (due_kick_all(q, mail, &kicked) != 0 || reserve_of(q, mail, &job) != 0)
        return 1;
    printf("%d kicked: %.*s, attempt %u\n", (int)kicked, (int)job.len, (const char *)job.data,
           job.attempts);
    return due_ack(&job);
}

/* Five tries, at first a second apart, then twice as far each; once within the hour. */
static int enqueue_task(due_queue *q, const char *text, const char *key, due_id *id)
{
    const due_retry five = {
        .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = DUE_S(1), .cap_ns = DUE_S(600), .attempts_max = 5
    };
    due_extra more = { DUE_EXTRA_INIT, .retry = &five, .key = key, .key_len = strlen(key),
                       .keep_key_ns = DUE_S(3600) };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(600), .data = text, .len = strlen(text),
                      .more = &more };

    return due_enqueue(q, &spec, 0, id);
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    int *handled = ctx;

    (*handled)++;
    *answer = job->failures > 0 ? due_answer_ack() : due_answer_nack(DUE_DELAY_POLICY);
}

/* Turn the clock, and wait until so many jobs were tried again or acked. */
static int turn(due_clock *clock, int64_t by_ns, due_workers *pool, uint64_t answered)
{
    struct due_workers_stats stats;
    int rc = due_clock_advance(clock, by_ns);

    do {
        sched_yield();
        if (rc == 0)
            rc = due_workers_stats_read(pool, &stats);
    } while (rc == 0 && stats.retried + stats.acked < answered);
    return rc;
}

static int tasks(due_queue *q, due_clock *clock)
{
    int handled = 0;
    due_workers *pool;
    due_id id, other;

    if (enqueue_task(q, "welcome", "user 42", &id) != 0 ||
        enqueue_task(q, "welcome, again", "user 42", &other) != DUE_EEXIST)
        return 1;
    printf("twice: %s\n", due_id_equal(id, other) ? "it is there already" : "two");
    if (due_reschedule(q, id, due_now(q) + DUE_S(5)) != 0 ||
        due_workers_start(&pool, q, NULL, 0, 1, handle, &handled, NULL) != 0)
        return 1;
    if (turn(clock, DUE_S(5), pool, 1) != 0 || turn(clock, DUE_S(1), pool, 2) != 0)
        return 1;
    if (due_workers_stop(pool, DUE_S(10)) != 0 || due_workers_free(pool) != 0)
        return 1;
    printf("handled %d times\n", handled);
    printf("within the hour: %s\n", due_error_name(enqueue_task(q, "hello", "user 42", NULL)));
    return 0;
}

/* A job that is taken for good: a crash now loses it, as elsewhere. */
static int offer_and_take(due_queue *q, due_clock *clock)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(10), .data = "order 7", .len = 7 };
    due_job job;

    if (due_enqueue(q, &spec, 0, NULL) != 0 || due_clock_advance(clock, DUE_S(10)) != 0 ||
        due_dequeue(q, &job, DUE_S(30)) != 0)
        return 1;
    printf("%.*s\n", (int)job.len, (const char *)job.data);
    due_job_done(&job);
    return 0;
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    if (tube(q, clock) || tasks(q, clock) || offer_and_take(q, clock))
        return 1;
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(q) || due_clock_free(clock);
}
