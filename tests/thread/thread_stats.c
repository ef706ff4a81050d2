/* thread_stats.c - figures that are read while everybody works are of one moment.
 *
 * Jobs come and go through a small queue, dequeued or reserved.  Whoever looks at the figures
 * meanwhile never sees more jobs than there is room for, nor more lent than there are takers, and
 * what has come is what has gone and what is there.  They are shown in a file too, where there is a
 * proxy to write it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "due/figures.h"
#include "lab/crew.h"
#include "lab/take.h"

#define ROOM   8u
#define TAKERS 3u
#define ROUNDS 15 /* in each the file is begun once, beside the others */

struct world {
    due_queue *q;
    atomic_bool over;
};

static int produce(void *arg)
{
    struct world *w = arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "job", .len = 3 };
    due_spec late = { DUE_SPEC_INIT, .delay_ns = DUE_US(20) };

    for (unsigned i = 0; !atomic_load(&w->over); i++) {
        int rc = due_enqueue(w->q, i % 8 == 0 ? &late : &spec, DUE_MS(1), NULL);

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    }
    return 0;
}

static int take(void *arg)
{
    struct world *w = arg;
    due_job job;

    while (!atomic_load(&w->over)) {
        int rc = due_dequeue(w->q, &job, DUE_MS(1));

        if (rc == 0)
            due_job_done(&job);
        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    }
    return 0;
}

static int reserve(void *arg)
{
    struct world *w = arg;
    due_job job;

    for (unsigned i = 0; !atomic_load(&w->over); i++) {
        int rc = take_leased(w->q, &job, DUE_S(1000), DUE_MS(1));

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        if (rc == 0)
            rc = i % 4 == 0 ? due_nack(&job, 0) : due_ack(&job);
    }
    return 0;
}

static void look(due_queue *q)
{
    struct due_stats s;
    int rc = due_stats_read(q, &s);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(s.waiting + s.leased <= ROOM, ": %llu wait, %llu are reserved",
               (unsigned long long)s.waiting, (unsigned long long)s.leased);
    CREW_CHECK(s.ready <= s.waiting + TAKERS, ": %llu of %llu", (unsigned long long)s.ready,
               (unsigned long long)s.waiting);
    CREW_CHECK(s.lent <= TAKERS, ": %llu lent", (unsigned long long)s.lent);
    CREW_CHECK(s.leased <= TAKERS, ": %llu reserved", (unsigned long long)s.leased);
    CREW_CHECK(s.enqueued == s.dequeued + s.acked + s.waiting + s.leased,
               ": %llu have come, %llu + %llu have gone, %llu + %llu are there",
               (unsigned long long)s.enqueued, (unsigned long long)s.dequeued,
               (unsigned long long)s.acked, (unsigned long long)s.waiting,
               (unsigned long long)s.leased);
}

static void show(due_queue *q, enum due_proxies proxies)
{
    char path[] = "/tmp/due_stats_XXXXXX";
    int fd = mkstemp(path);

    CREW_CHECK(fd >= 0, ": %s", path);
    close(fd);
    int rc = due_figures_open(q, path);
    CREW_CHECK(rc == (proxies == DUE_PROXIES_NEVER ? DUE_ENOTSUP : 0), ": %s", due_error_name(rc));
    if (rc != 0)
        unlink(path);
}

static void round_of(enum due_proxies proxies, int64_t ns)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = ROOM };
    struct world w = { .q = crew_open(&options) };
    struct crew_thread threads[TAKERS + 2];
    int64_t end = crew_now_ns() + ns;
    size_t n = 0;

    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], take, &w);
    crew_go(&threads[n++], take, &w);
    crew_go(&threads[n++], reserve, &w);
    show(w.q, proxies);
    while (crew_now_ns() < end)
        look(w.q);
    atomic_store(&w.over, true);
    for (size_t i = 0; i < n; i++)
        crew_join(&threads[i]);
    look(w.q);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1.5);

    for (int i = 0; i < ROUNDS; i++) {
        crew_doing(crew_mode_names[i % 3]);
        round_of((enum due_proxies)(i % 3), o.ns / ROUNDS);
    }
    printf("thread_stats: every figure was of one moment\n");
    return 0;
}
