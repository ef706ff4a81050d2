/* thread_bias.c - a lock that is biased, and whose bias is taken away again and again. (L2 of
 * lock.c)
 *
 * One thread holds it most of the time, so that it has the bias; others come between, wait for it
 * or try.  Whoever is inside is alone, and sees what the last one wrote; and what somebody puts who
 * tries in vain is seen by whoever was inside (E1 of tenure.c).
 */
#include <sched.h>
#include <stdio.h>

#include "lab/crew.h"
#include "os/lock.h"

#define OTHERS 3

struct world {
    struct due__lock lock;
    uint64_t tenures[2]; /* plain: written by who is inside, one before the other */
    uint64_t taken;      /* plain: likewise */
    uint64_t put;        /* A  as jobs in an inbox */
    uint32_t knock;      /* A  as its knock */
    uint32_t stop;       /* A */
    uint32_t after;      /* tenures in a row, after which the bias is granted */
    atomic_uint number;
    uint64_t seed;
};

static void inside(struct world *w)
{
    CREW_CHECK(w->tenures[0] == w->tenures[1], ": another is inside");
    w->tenures[0]++;
    w->tenures[1]++;
}

/* As a tenure ends: what was put is taken, also what somebody put meanwhile who tried in vain. */
static void leave(struct world *w)
{
    do {
        due__xchg_seq(&w->knock, 0);
        w->taken = due__load_seq(&w->put);
        inside(w);
        due__lock_release(&w->lock);
    } while (due__load_seq(&w->knock) != 0 && due__lock_try(&w->lock));
}

/* Within the lock: it is granted again after a few tenures, however often it was taken away. */
static void soon_again(struct world *w)
{
#ifndef DUE_BELL_COND
    if (w->lock.after > 0)
        w->lock.after = w->after, w->lock.row = 0;
#else
    (void)w;
#endif
}

static void put(struct world *w)
{
    due__add_seq(&w->put, 1);
    due__xchg_seq(&w->knock, 1);
    if (due__lock_try(&w->lock))
        leave(w);
}

static void enter(struct world *w)
{
    due__lock_acquire(&w->lock);
    soon_again(w);
    leave(w);
}

static int own(void *arg)
{
    struct world *w = arg;

    while (!due__load_seq(&w->stop)) {
        for (int i = 0; i < 50; i++) {
            enter(w);
            put(w);
        }
    }
    return 0;
}

static int come(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!due__load_seq(&w->stop)) {
        for (uint64_t n = crew_below(&seed, 300); n > 0; n--)
            due__relax();
        if (crew_below(&seed, 16) == 0)
            sched_yield();
        if (crew_below(&seed, 2) == 0)
            enter(w);
        else
            put(w);
    }
    return 0;
}

/* Everybody rests at times, and then nothing may be left. */
int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t tenures = 0;
    unsigned rounds = 0;
    unsigned biased = 0;

    for (; crew_now_ns() < end || rounds == 0; rounds++) {
        struct world w = { .seed = o.seed + rounds * OTHERS, .after = 1 + rounds % 8 };
        struct crew_thread threads[OTHERS + 1];

        crew_doing("bias");
        due__lock_init_biased(&w.lock);
        for (unsigned i = 0; i <= OTHERS; i++)
            crew_go(&threads[i], i == 0 ? own : come, &w);
        crew_sleep(DUE_MS(20));
        due__xchg_seq(&w.stop, 1);
        for (unsigned i = 0; i <= OTHERS; i++)
            CREW_CHECK(crew_join(&threads[i]) == 0, "");
        CREW_CHECK(w.tenures[0] == w.tenures[1], ": a tenure is lost");
        CREW_CHECK(w.taken == w.put, ": %llu were put, and %llu seen", (unsigned long long)w.put,
                   (unsigned long long)w.taken);
        CREW_CHECK(!due__lock_held(&w.lock), ": it is held");
#ifndef DUE_BELL_COND
        biased += w.lock.owner != 0;
#endif
        tenures += w.tenures[0];
        due__lock_destroy(&w.lock);
    }
    printf("bias: %u rounds, in %u of them somebody had it, %llu tenures\n", rounds, biased,
           (unsigned long long)tenures);
    return 0;
}
