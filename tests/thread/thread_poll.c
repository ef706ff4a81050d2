/* thread_poll.c - a queue without threads of its own is polled by several at once, while jobs are
 * put in and taken: none is lost, and after a poll with nobody beside it all that is due is shown.
 */
#include <stdio.h>

#include "lab/crew.h"

enum { POLLERS = 2, SLACK = 500 };

struct world {
    due_queue *q;
    atomic_bool over;
    atomic_ullong put;
    atomic_ullong taken;
};

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = 7;

    while (!atomic_load(&w->over)) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, DUE_US(20)) };
        int rc = due_enqueue(w->q, &spec, DUE_MS(1), NULL);

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->put, rc == 0);
    }
    return 0;
}

static int take(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->over)) {
        due_job job;
        int rc = due_dequeue(w->q, &job, 0);

        CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
        if (rc == 0)
            due_job_done(&job);
        atomic_fetch_add(&w->taken, rc == 0);
    }
    return 0;
}

static int poll_often(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->over)) {
        int64_t next_ns;
        int ready = due_poll(w->q, &next_ns);

        CREW_CHECK(ready >= 0 && ready <= SLACK, ": %d", ready);
        CREW_CHECK(due_next_deadline(w->q) >= 0, "");
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.4);
    due_options options = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER, .capacity = SLACK };
    struct world w = { .q = crew_open(&options) };
    struct crew_thread threads[POLLERS + 2];
    int64_t end = crew_now_ns() + o.ns;
    struct due_stats s;
    size_t n = 0;

    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], take, &w);
    for (int i = 0; i < POLLERS; i++)
        crew_go(&threads[n++], poll_often, &w);
    crew_sleep(end - crew_now_ns());
    atomic_store(&w.over, true);
    for (size_t i = 0; i < n; i++)
        crew_join(&threads[i]);
    crew_sleep(DUE_US(30)); /* until the last one is due */
    uint64_t left = atomic_load(&w.put) - atomic_load(&w.taken);
    int ready = due_poll(w.q, NULL);
    CREW_CHECK((uint64_t)ready == left, ": %d of %llu", ready, (unsigned long long)left);
    CREW_CHECK(due_stats_read(w.q, &s) == 0 && s.waiting == left, "");
    crew_close(w.q, DUE_CLOSE_DISCARD);
    printf("thread_poll: %llu jobs came, and none was lost\n",
           (unsigned long long)atomic_load(&w.put));
    return 0;
}
