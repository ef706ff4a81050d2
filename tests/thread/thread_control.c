/* thread_control.c - others ask at a program's control socket for all that can be asked for, while
 * its own threads put jobs in and take them out; and the socket is closed, and the queue freed,
 * while requests are under way.
 *
 * Each job is told once what became of it: what was put in is what was taken, cancelled, or left.
 */
#include <stdio.h>

#include "due/control.h"
#include "lab/crew.h"
#include "lab/socket.h"

enum { CLIENTS = 4 };

struct world {
    due_queue *q;
    char path[64];
    atomic_bool over;
    atomic_ullong put, taken, cancelled;
    atomic_ullong marked; /* cancelled while somebody had it: it is gone if he buries it */
    atomic_uint number;
    uint64_t seed;
};

static unsigned count_of(const char *answer, const char *text)
{
    unsigned n = 0;

    for (const char *at = answer; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

/* Ends the answer; "" and a cut one are of a socket that is closed. */
static bool is_whole(const char *answer)
{
    const char *end = strstr(answer, "{\"end\":\"DUE_");

    return end != NULL && strchr(end, '\n') != NULL;
}

/* A line, with what is said in the last answer. */
static void make_line(char *line, size_t room, uint64_t *seed, const char *answer)
{
    static const char *const lines[] = { "{\"verb\":\"list\",\"data\":60}",
                                         "{\"verb\":\"dead\"}",
                                         "{\"verb\":\"stats\"}",
                                         "{\"verb\":\"metrics\"}",
                                         "{\"verb\":\"pause\",\"topic\":\"\"}",
                                         "{\"verb\":\"resume\"}",
                                         "{\"verb\":\"kick_all\"}",
                                         "bad",
                                         "{\"verb\":\"queues\"}" };
    static const char *const named[] = { "cancel", "promote", "kick", "show" };
    const char *id = strstr(answer, "{\"id\":\"");

    if (id != NULL && crew_below(seed, 2) == 0)
        snprintf(line, room, "{\"verb\":\"%s\",\"ids\":[\"%.32s\"]}", named[crew_below(seed, 4)],
                 id + 7);
    else
        snprintf(line, room, "%s", lines[crew_below(seed, sizeof lines / sizeof lines[0])]);
}

static int ask_again_and_again(void *arg)
{
    static const char put[] =
        "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":0,\"len\":3},{\"delay_ns\":90000,\"len\":0}]}";
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);
    char *last = calloc(1, 1);
    char line[256];

    while (!atomic_load(&w->over)) {
        bool puts = crew_below(&seed, 3) == 0;

        make_line(line, sizeof line, &seed, last);
        char *answer = socket_ask(w->path, puts ? put : line, "tea", puts ? 3 : 0);
        unsigned done = count_of(answer, "\"result\":\"DUE_OK\"");
        unsigned busy = count_of(answer, "\"result\":\"DUE_EBUSY\"");
        CREW_CHECK(is_whole(answer) || atomic_load(&w->over), ": %s: %s", line, answer);
        if (!puts && strstr(line, "\"list\"") != NULL && !atomic_load(&w->over)) /* whoever goes */
            CREW_CHECK(strstr(answer, "{\"end\":\"DUE_OK\"}") != NULL, ": %s", answer);
        if (puts)
            atomic_fetch_add(&w->put, done);
        else if (strstr(line, "\"cancel\"") != NULL) {
            atomic_fetch_add(&w->cancelled, done);
            atomic_fetch_add(&w->marked, busy);
        }
        if (!is_whole(answer)) { /* what was on its way is not known */
            free(answer);
            break;
        }
        free(last);
        last = answer;
    }
    free(last);
    return 0;
}

/* One in eight dies. */
static int take_all(void *arg)
{
    struct world *w = arg;
    unsigned n = 0;
    due_job job;
    int rc;

    while ((rc = due_reserve(w->q, &job, DUE_MS(5))) == 0 || rc == DUE_ETIMEDOUT) {
        if (rc != 0)
            continue;
        if (n++ % 8 == 7) {
            rc = due_bury(&job, "hot");
        } else {
            rc = due_ack(&job);
            atomic_fetch_add(&w->taken, rc == 0);
        }
        CREW_CHECK(rc == 0 || rc == DUE_ESTALE || rc == DUE_ENOMEM, ": %s", due_error_name(rc));
    }
    CREW_CHECK(rc == DUE_ECLOSED, ": %s", due_error_name(rc));
    return 0;
}

/* Jobs that go while they are being listed. */
static int come_and_go(void *arg)
{
    struct world *w = arg;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600), .data = "tea", .len = 3 };
    due_id ids[64];

    while (!atomic_load(&w->over)) {
        for (int i = 0; i < 64; i++) {
            int rc = due_enqueue(w->q, &spec, 0, &ids[i]);

            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
            atomic_fetch_add(&w->put, 1);
        }
        for (int i = 0; i < 64; i++)
            atomic_fetch_add(&w->cancelled, due_cancel(w->q, ids[i], NULL) == 0);
    }
    return 0;
}

static due_control *serve(struct world *w)
{
    due_control_queue queue = { .queue = w->q, .name = "kitchen" };
    due_control_options o = { DUE_CONTROL_OPTIONS_INIT, .path = w->path, .queues = &queue,
                              .queue_count = 1 };
    due_error error = { "", "" };
    due_control *c;
    int rc = due_control_open(&c, &o, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    return c;
}

/* @queue_first: the queue is closed before the socket. */
static void run(enum due_proxies proxies, uint64_t seed, int64_t ns, bool queue_first)
{
    struct world w = { .seed = seed };
    struct crew_thread clients[CLIENTS], taker, other;
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .metrics = 1 };
    struct due_stats s;

    snprintf(w.path, sizeof w.path, "/tmp/due-thread-control-%d", (int)getpid());
    w.q = crew_open(&options);
    due_control *c = serve(&w);
    crew_go(&taker, take_all, &w);
    crew_go(&other, come_and_go, &w);
    for (int i = 0; i < CLIENTS; i++)
        crew_go(&clients[i], ask_again_and_again, &w);
    crew_sleep(ns);
    atomic_store(&w.over, true);
    (void)crew_join(&other);
    if (!queue_first) {
        for (int i = 0; i < CLIENTS; i++)
            (void)crew_join(&clients[i]);
        int rc = due_stats_read(w.q, &s);
        uint64_t more = s.cancelled - atomic_load(&w.cancelled);
        CREW_CHECK(rc == 0 && more <= atomic_load(&w.marked), ": %llu, of %llu %llu",
                   (unsigned long long)s.cancelled, (unsigned long long)more,
                   (unsigned long long)atomic_load(&w.marked));
        CREW_CHECK(s.enqueued == atomic_load(&w.put), ": %llu", (unsigned long long)s.enqueued);
    }
    if (!queue_first)
        CREW_CHECK(due_control_close(c) == 0, "");
    int rc = due_close(w.q, DUE_CLOSE_DISCARD, DUE_S(60));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    if (queue_first)
        CREW_CHECK(due_control_close(c) == 0, "");
    (void)crew_join(&taker);
    for (int i = 0; i < CLIENTS && queue_first; i++)
        (void)crew_join(&clients[i]);
    rc = due_free(w.q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(access(w.path, F_OK) != 0, "");
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);

    for (unsigned i = 0; i < 6; i++) {
        crew_doing(crew_mode_names[i % 3]);
        run((enum due_proxies)(i % 3), o.seed + i * 100, o.ns / 6, i >= 3);
    }
    return 0;
}
