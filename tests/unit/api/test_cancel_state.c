/* A thread that has called is as cancellable as before, whatever the call needed meanwhile. */
#include <pthread.h>

#include "due/workers.h"
#include "lab/lab.h"
#include "lab/shop.h"

static void nothing(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    (void)job;
    *answer = due_answer_ack();
}

/* The calling thread can be cancelled, or not, as it was. */
static void expect_state(int state, const char *what)
{
    int now;

    cr_assert_eq(pthread_setcancelstate(state, &now), 0);
    cr_expect_eq(now, state, "%s", what);
}

/* The life of a queue, with all that its opener, its closer and its pool may call. */
static void live(due_store *store, int state)
{
    due_queue *q = NULL;
    due_workers *pool = NULL;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .data = "tea", .len = 3 };
    due_job job;
    due_id id;

    expect_state(state, "before");
    cr_assert_eq(due_open(&q, &(due_options){ DUE_OPTIONS_INIT, .store = store }, NULL), 0);
    expect_state(state, "open");
    cr_expect_geq(due_fd(q), 0);
    expect_state(state, "fd");
    cr_expect_eq(due_enqueue(q, &spec, 0, &id), 0);
    expect_state(state, "enqueue");
    cr_expect_eq(due_dequeue(q, &job, DUE_S(30)), 0);
    expect_state(state, "dequeue");
    due_job_done(&job);
    expect_state(state, "done");
    cr_expect_eq(due_enqueue(q, &spec, 0, &id), 0);
    cr_expect_eq(due_clear(q, DUE_ALL_TOPICS, NULL), 0);
    expect_state(state, "clear");
    cr_assert_eq(due_workers_start(&pool, q, NULL, 0, 2, nothing, NULL, NULL), 0);
    expect_state(state, "start");
    cr_expect_eq(due_workers_stop(pool, DUE_S(30)), 0);
    expect_state(state, "stop");
    cr_expect_eq(due_workers_free(pool), 0);
    expect_state(state, "free of a pool");
    cr_expect_eq(due_flush(q, DUE_S(30)), 0);
    expect_state(state, "flush");
    cr_expect_eq(due_enqueue(q, &spec, 0, &id), 0);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    expect_state(state, "close");
    cr_expect_eq(due_free(q), 0);
    expect_state(state, "free");
}

Test(cancel_state, is_as_it_was_after_each_call, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);

    for (int stored = 0; stored < 2; stored++) {
        live(stored ? memory_store_new(disk) : NULL, PTHREAD_CANCEL_ENABLE);
        cr_assert_eq(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
        live(stored ? memory_store_new(disk) : NULL, PTHREAD_CANCEL_DISABLE);
        cr_assert_eq(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL), 0);
    }
    memory_disk_free(disk);
}
