/* thread_counter.c - the processor's counter beside the kernel's clock, looked at by several
 * threads, which lose the processor wherever it happens: never later, and at most so much earlier.
 *
 * An hour of it: thread_counter --seconds 3600
 */
#include <pthread.h>
#include <stdio.h>

#include "lab/crew.h"
#include "os/clock.h"

#define THREADS 4

struct world {
    pthread_mutex_t lock; /* as the timeline's guards a queue's counter */
    struct due__counter counter;
    atomic_bool stop;
    atomic_ullong by_counter;
    atomic_ullong by_clock;
    atomic_llong lag_ns; /* the largest */
};

static void anchor(struct world *w)
{
    uint64_t before = due__counter_read_after();
    int64_t now_ns = due__monotonic_now();

    due__counter_anchor(&w->counter, before, now_ns, due__counter_read_after());
    atomic_fetch_add(&w->by_clock, 1);
}

static void compare(struct world *w, int64_t told_ns, int64_t before_ns, int64_t after_ns)
{
    long long lag = before_ns - told_ns;

    CREW_CHECK(told_ns <= after_ns, ": %lld ns later than the clock",
               (long long)(told_ns - after_ns));
    CREW_CHECK(lag <= DUE__COUNTER_LAG_NS, ": %lld ns earlier than the clock", lag);
    if (lag > atomic_load(&w->lag_ns))
        atomic_store(&w->lag_ns, lag);
    atomic_fetch_add(&w->by_counter, 1);
}

static int look(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->stop)) {
        pthread_mutex_lock(&w->lock);
        for (int i = 0; i < 100; i++) {
            int64_t before_ns = due__monotonic_now();
            int64_t told_ns;

            if (due__counter_ns(&w->counter, due__counter_read(), &told_ns))
                compare(w, told_ns, before_ns, due__monotonic_now());
            else
                anchor(w);
        }
        pthread_mutex_unlock(&w->lock);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    struct world w = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct crew_thread threads[THREADS];

    if (!due__counter_trusted()) {
        printf("thread_counter: the kernel does not tell the time by the counter here\n");
        return 0;
    }
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], look, &w);
    crew_sleep(o.ns);
    atomic_store(&w.stop, true);
    for (int i = 0; i < THREADS; i++)
        crew_join(&threads[i]);
    CREW_CHECK(atomic_load(&w.by_counter) > 0, ": never used");
    printf("thread_counter: %llu looks by the counter, %llu at the clock, at most %lld ns apart\n",
           (unsigned long long)atomic_load(&w.by_counter),
           (unsigned long long)atomic_load(&w.by_clock), (long long)atomic_load(&w.lag_ns));
    return 0;
}
