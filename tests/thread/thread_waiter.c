/* thread_waiter.c - waiters are made once and used again: as many are made as are in use at a time.
 *
 * Each thread takes two and gives both back, over and over, so that one goes to the list of the
 * free ones, which all share.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "queue/queue.h"

enum { THREADS = 4 };

struct world {
    due_queue *q;
    int64_t end_ns;
    atomic_ullong uses;
};

static int use(void *arg)
{
    struct world *w = arg;
    uint64_t uses = 0;

    for (; crew_now_ns() < w->end_ns; uses += 2) {
        struct due__waiter *one = due__waiter_get(w->q);
        struct due__waiter *other = due__waiter_get(w->q);

        CREW_CHECK(one != NULL && other != NULL && one != other, "");
        CREW_CHECK(!one->linked && !other->linked, "");
        one->topic_count = other->topic_count = 0; /* they are the thread's own */
        due__waiter_put(w->q, one);
        due__waiter_put(w->q, other);
    }
    atomic_fetch_add(&w->uses, uses);
    return 0;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.4);
    struct world w = { .end_ns = crew_now_ns() + o.ns };
    due_options options = { DUE_OPTIONS_INIT };
    struct crew_thread threads[THREADS];
    size_t made = 0;

    w.q = crew_open(&options);
    for (struct due__waiter *it = w.q->made; it != NULL; it = it->made_next)
        made++;
    size_t most = made + 2 * THREADS;
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], use, &w);
    for (int i = 0; i < THREADS; i++)
        crew_join(&threads[i]);
    made = 0;
    for (struct due__waiter *it = w.q->made; it != NULL; it = it->made_next)
        made++;
    CREW_CHECK(made <= most, ": %zu were made, %zu were in use at most", made, most);
    crew_close(w.q, DUE_CLOSE_DISCARD);
    printf("thread_waiter: %llu uses of %zu waiters\n", (unsigned long long)atomic_load(&w.uses),
           made);
    return 0;
}
