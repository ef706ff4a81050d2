/* A worker that is refused memory to wait with: how long it pauses until it asks again. */
#include <pthread.h>

#include "queue/waiter.h"
#include "lab/workers_lab.h"
#include "workers/pool.h"

static struct {
    pthread_t here;     /* the test's own thread is refused nothing */
    atomic_bool refuse; /* all others are: to wait */
    atomic_uint tries;  /* how often one was */
} poor;

static void refuse_others(void *memory, size_t size)
{
    struct flaky *m = memory;

    if (size != sizeof(struct due__waiter) || pthread_equal(pthread_self(), poor.here) ||
        !atomic_load(&poor.refuse))
        return;
    m->fail_at = atomic_load(&m->calls) - 1; /* this one */
    atomic_fetch_add(&poor.tries, 1);
}

/* A pool of one worker, which finds no memory to wait with. */
static struct desk poor_open(struct lab *lab)
{
    poor.here = pthread_self();
    atomic_store(&poor.tries, 0);
    atomic_store(&poor.refuse, true);
    lab->state->memory.on_alloc_ctx = &lab->state->memory;
    lab->state->memory.on_alloc = refuse_others;
    return desk_open(lab, 1);
}

/* How often it has tried, when nobody does anything any more. */
static unsigned tries(void)
{
    crew_until_others_asleep();
    return atomic_load(&poor.tries);
}

/* Each as long as it says, not a moment longer or shorter. */
static void expect_pauses(struct lab *lab, const struct desk *desk, const int *ms, unsigned n)
{
    unsigned before = tries();

    for (unsigned i = 0; i < n; i++) {
        lab_advance(lab, DUE_MS(ms[i]) - 1);
        cr_expect_eq(tries(), before + i, "%u: sooner than after %d ms", i, ms[i]);
        lab_advance(lab, 1);
        cr_expect_eq(tries(), before + i + 1, "%u: not after %d ms", i, ms[i]);
        cr_expect_eq(desk->pool->worker[0].fetched, 0u, "a pause is no time that jobs took");
    }
}

/* From the beginning, and from the shortest again when it has had a job. */
LAB_TEST(workers_pause, of_who_finds_no_memory_is_twice_as_long_each_time)
{
    static const int ms[] = { 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000 };
    struct lab lab = lab_open();
    struct desk desk = poor_open(&lab);

    expect_pauses(&lab, &desk, ms, sizeof ms / sizeof ms[0]);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    lab_advance(&lab, DUE_S(1));
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    expect_pauses(&lab, &desk, ms, 3);
    atomic_store(&poor.refuse, false);
    lab_advance(&lab, DUE_MS(80));
    WAIT_UNTIL(desk_stats(&desk).idle == 1);
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers_pause, is_broken_off_when_the_pool_is_to_stop)
{
    struct lab lab = lab_open();
    struct desk desk = poor_open(&lab);

    cr_expect_eq(tries(), 1u);
    desk_close(&desk);
    cr_expect_eq(tries(), 1u);
    lab_close(&lab);
}
