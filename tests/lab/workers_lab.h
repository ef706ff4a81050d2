/* workers_lab.h - a pool whose handlers stop where the test wants them to: for the Criterion tests.
 *
 *     struct desk desk = desk_open_with(&lab, 2, .lease_ns = 100);
 *     lab_enqueue(&lab, "tea", .delay_ns = 0);
 *     desk_until_begun(&desk);
 *     desk_let_go(&desk, due_answer_ack());
 *     desk_close(&desk);
 */
#ifndef WORKERS_LAB_H
#define WORKERS_LAB_H

#include <sched.h>
#include <semaphore.h>

#include "due/workers.h"
#include "lab/lab.h"

/* Until something is so that another thread does; the test's timeout ends it if it never is. */
#define WAIT_UNTIL(so)     \
    do {                   \
        while (!(so))      \
            sched_yield(); \
    } while (0)

struct desk {
    due_workers *pool;
    struct desk_state *state;
};

struct desk_state {
    sem_t begun;       /* a handler has begun */
    sem_t go;          /* one may return */
    due_answer answer; /* what it is to answer */
    due_job job;       /* what the last one was given */
    const due_job *at; /* where it lies */
    char text[LAB_TEXT];
    atomic_uint begun_count;
};

static inline void desk_handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct desk_state *s = ctx;
    size_t n = job->len < LAB_TEXT - 1 ? job->len : LAB_TEXT - 1;

    s->job = *job;
    s->at = job;
    memcpy(s->text, job->len > 0 ? job->data : "", n);
    s->text[n] = '\0';
    atomic_fetch_add(&s->begun_count, 1);
    sem_post(&s->begun);
    while (sem_wait(&s->go) != 0)
        continue;
    *answer = s->answer;
}

#define desk_open(lab, threads) desk_open_with((lab), (threads), .lease_ns = 0)
#define desk_open_with(lab, threads, ...) \
    desk_open_on((lab), (threads), NULL, 0, &(due_workers_options){ DUE_WORKERS_INIT, __VA_ARGS__ })

static inline struct desk desk_open_on(struct lab *lab, size_t threads, const int *topics, size_t n,
                                       const due_workers_options *options)
{
    struct desk desk = { .state = calloc(1, sizeof *desk.state) };

    cr_assert_not_null(desk.state);
    sem_init(&desk.state->begun, 0, 0);
    sem_init(&desk.state->go, 0, 0);
    int rc =
        due_workers_start(&desk.pool, lab->q, topics, n, threads, desk_handle, desk.state, options);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return desk;
}

static inline void desk_until_begun(struct desk *desk)
{
    while (sem_wait(&desk->state->begun) != 0)
        continue;
}

/* One handler returns. */
static inline void desk_let_go(struct desk *desk, due_answer answer)
{
    desk->state->answer = answer;
    sem_post(&desk->state->go);
}

static inline struct due_workers_stats desk_stats(struct desk *desk)
{
    struct due_workers_stats s;
    int rc = due_workers_stats_read(desk->pool, &s);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return s;
}

/* Stopped, and freed. */
static inline void desk_close(struct desk *desk)
{
    int rc = due_workers_stop(desk->pool, DUE_FOREVER);

    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    struct due_workers_stats s = desk_stats(desk);
    cr_expect_eq(s.threads + s.running + s.ahead + s.idle, 0u);
    cr_expect_eq(s.handled, s.acked + s.retried + s.buried + s.lost + s.unanswered);
    cr_expect_eq(due_workers_free(desk->pool), 0);
    sem_destroy(&desk->state->begun);
    sem_destroy(&desk->state->go);
    free(desk->state);
}

#endif
