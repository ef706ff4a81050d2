/* thread_redis_session.c - the figures of a store of Redis are counted in one thread and shown in
 * others: none is lost, and all three of a batch are seen together.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "redis/session/session.h"

enum { THREADS = 3 };

struct world {
    struct due__redis s;
    int64_t end_ns;
    atomic_ullong counted;
};

static int count(void *arg)
{
    struct world *w = arg;
    uint64_t n = 0;

    for (; crew_now_ns() < w->end_ns; n++)
        due__redis_count(&w->s, 1, 2, 3);
    atomic_fetch_add(&w->counted, n);
    return 0;
}

static int count_once(void *arg)
{
    struct world *w = arg;

    due__redis_count(&w->s, 1, 2, 3);
    return 0;
}

/* Who counts waits for who looks. */
static void count_while_somebody_looks(struct world *w)
{
    struct crew_thread thread;

    pthread_mutex_lock(&w->s.lock);
    crew_go(&thread, count_once, w);
    crew_until_asleep(&thread);
    CREW_CHECK(!atomic_load(&thread.back), ": it did not wait");
    CREW_CHECK(w->s.shown.batches == 0, "");
    pthread_mutex_unlock(&w->s.lock);
    crew_join(&thread);
    atomic_fetch_add(&w->counted, 1);
}

static uint64_t look(struct world *w)
{
    pthread_mutex_lock(&w->s.lock);
    struct due_store_stats s = w->s.shown;
    pthread_mutex_unlock(&w->s.lock);
    CREW_CHECK(s.resent == 2 * s.batches && s.quarantined == 3 * s.batches,
               ": %llu batches, %llu sent again, %llu aside", (unsigned long long)s.batches,
               (unsigned long long)s.resent, (unsigned long long)s.quarantined);
    return s.batches;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.2);
    static struct world w;
    struct crew_thread threads[THREADS];

    w.end_ns = crew_now_ns() + o.ns;
    CREW_CHECK(pthread_mutex_init(&w.s.lock, NULL) == 0, "");
    count_while_somebody_looks(&w);
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], count, &w);
    while (crew_now_ns() < w.end_ns)
        look(&w);
    for (int i = 0; i < THREADS; i++)
        crew_join(&threads[i]);
    CREW_CHECK(look(&w) == atomic_load(&w.counted), ": %llu of %llu", (unsigned long long)look(&w),
               (unsigned long long)atomic_load(&w.counted));
    pthread_mutex_destroy(&w.s.lock);
    printf("thread_redis_session: %llu batches\n", (unsigned long long)atomic_load(&w.counted));
    return 0;
}
