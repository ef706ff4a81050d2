/* thread_pool.c - pools come and go while their figures are read: nothing that was handled is lost
 * from the sum of a name, nor counted twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/metrics.h"
#include "due/workers.h"
#include "lab/crew.h"

enum { STARTERS = 2, TEXT = 1 << 16 };

struct world {
    due_queue *q;
    int64_t end_ns;
    atomic_uint number; /* of the next thread */
    atomic_ullong handled;
    atomic_bool over;
};

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    (void)job;
    *answer = due_answer_ack();
}

/* Pools of a name of its own, and of one that all use. */
static int start_and_stop(void *arg)
{
    struct world *w = arg;
    char own[16];
    uint64_t handled = 0;

    snprintf(own, sizeof own, "own%u", atomic_fetch_add(&w->number, 1));
    for (unsigned i = 0; crew_now_ns() < w->end_ns; i++) {
        due_workers_options options = { DUE_WORKERS_INIT, .name = i % 2 == 0 ? own : "all" };
        struct due_workers_stats s;
        due_workers *pool;

        CREW_CHECK(due_workers_start(&pool, w->q, NULL, 0, 1, handle, NULL, &options) == 0, "");
        int rc = due_enqueue(w->q, &(due_spec){ DUE_SPEC_INIT }, 0, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(due_workers_stop(pool, DUE_FOREVER) == 0, "");
        CREW_CHECK(due_workers_stats_read(pool, &s) == 0, "");
        handled += s.handled;
        CREW_CHECK(due_workers_free(pool) == 0, "");
    }
    atomic_fetch_add(&w->handled, handled);
    return 0;
}

/* What all pools together have handled, as the text says. */
static uint64_t handled_in(due_queue *q, char *text)
{
    static const char name[] = "\ndue_workers_handled_total{";
    uint64_t sum = 0;
    int len = due_metrics_write(q, text, TEXT);

    CREW_CHECK(len > 0 && len < TEXT, ": %d", len);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name))
        sum += strtoull(strchr(at + 1, '}') + 2, NULL, 10);
    return sum;
}

static int look(void *arg)
{
    struct world *w = arg;
    char *text = malloc(TEXT);
    uint64_t last = 0;

    CREW_CHECK(text != NULL, "");
    while (!atomic_load(&w->over)) {
        uint64_t now = handled_in(w->q, text);

        CREW_CHECK(now >= last, ": %llu after %llu", (unsigned long long)now,
                   (unsigned long long)last);
        last = now;
    }
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.5);
    struct world w = { .end_ns = crew_now_ns() + o.ns };
    struct crew_thread starters[STARTERS];
    struct crew_thread looker;
    due_options options = { DUE_OPTIONS_INIT };
    static char text[TEXT];

    w.q = crew_open(&options);
    crew_go(&looker, look, &w);
    for (int i = 0; i < STARTERS; i++)
        crew_go(&starters[i], start_and_stop, &w);
    for (int i = 0; i < STARTERS; i++)
        crew_join(&starters[i]);
    atomic_store(&w.over, true);
    crew_join(&looker);
    uint64_t told = handled_in(w.q, text);
    CREW_CHECK(told == atomic_load(&w.handled), ": %llu of %llu", (unsigned long long)told,
               (unsigned long long)atomic_load(&w.handled));
    crew_close(w.q, DUE_CLOSE_DISCARD);
    printf("thread_pool: %llu jobs, each in one sum\n", (unsigned long long)told);
    return 0;
}
