/* thread_update.c - jobs are changed while others take, cancel, move and look at them: what is seen
 * is always one version, whole, and everybody is told the truth.
 *
 * A version is its number: from it follow the bytes, how many there are, the headers, the
 * priority and the deadline.  Odd jobs are moved besides.  Each fourth job is in a topic of its own
 * and never reserved, so that what due_find() says of it is its own deadline.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

#define JOBS     64
#define VERSIONS 4096
#define BYTES    120
#define STEP_NS  2000 /* between the deadlines of two versions */

struct world {
    due_queue *q;
    int calm; /* the topic of those that are not reserved */
    due_id id[JOBS];
    atomic_uint version[JOBS]; /* the last one that was given out */
    atomic_uint gone[JOBS];    /* taken for good, acked or cancelled */
    int64_t base_ns;
    int64_t end_ns;
    uint64_t seed;
    atomic_uint salt;
};

struct content {
    unsigned char data[BYTES];
    unsigned char headers[4];
    due_spec spec;
    due_extra more;
};

static size_t len_of(uint32_t version)
{
    return 8 + version * 37 % (BYTES - 8);
}

static int64_t deadline_of(const struct world *w, uint32_t version)
{
    return w->base_ns + (int64_t)version * STEP_NS;
}

static void make(const struct world *w, uint32_t n, uint32_t version, struct content *c)
{
    memset(c->data, (int)(version % 251), sizeof c->data);
    memcpy(c->data, &n, 4);
    memcpy(c->data + 4, &version, 4);
    memcpy(c->headers, &version, 4);
    c->more = (due_extra){ DUE_EXTRA_INIT, .headers = c->headers,
                           .headers_len = version % 3 ? sizeof c->headers : 0 };
    c->spec = (due_spec){ DUE_SPEC_INIT,    .at_ns = deadline_of(w, version),
                          .data = c->data,  .len = len_of(version),
                          .more = &c->more, .priority = (int)(version % 7) };
}

/* All of a job that was handed out is of one version. */
static uint32_t check(struct world *w, const due_job *job)
{
    struct content c;
    uint32_t n;
    uint32_t version;

    CREW_CHECK(job->len >= 8, ": %zu bytes", job->len);
    memcpy(&n, job->data, 4);
    memcpy(&version, (const char *)job->data + 4, 4);
    CREW_CHECK(n < JOBS && version < VERSIONS, ": job %u, version %u", n, version);
    make(w, n, version, &c);
    CREW_CHECK(due_id_equal(job->id, w->id[n]), ": another job's content");
    CREW_CHECK(job->len == c.spec.len, ": %zu bytes of version %u", job->len, version);
    CREW_CHECK(memcmp(job->data, c.data, job->len) == 0, ": torn, version %u", version);
    CREW_CHECK(job->headers_len == c.more.headers_len, ": headers of version %u", version);
    CREW_CHECK(job->headers_len == 0 || memcmp(job->headers, c.headers, 4) == 0,
               ": headers of another version than %u", version);
    CREW_CHECK(job->priority == c.spec.priority, ": priority of another version");
    bool moves = n % 2;
    CREW_CHECK(moves || job->deadline_ns == c.spec.at_ns, ": version %u, its deadline is %lld",
               version, (long long)(job->deadline_ns - w->base_ns));
    return n;
}

static bool going(const struct world *w, uint64_t *seed, uint32_t *n)
{
    *n = (uint32_t)crew_below(seed, JOBS);
    return crew_now_ns() < w->end_ns;
}

static uint64_t own_seed(struct world *w)
{
    return w->seed * 1000003 + atomic_fetch_add(&w->salt, 1);
}

static int change(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    uint32_t n;

    while (going(w, &seed, &n)) {
        uint32_t version = atomic_fetch_add(&w->version[n], 1) + 1;
        struct content c;

        if (version >= VERSIONS)
            continue;
        make(w, n, version, &c);
        int rc = due_amend(w->q, w->id[n], &c.spec,
                           DUE_SET_DATA | DUE_SET_HEADERS | DUE_SET_TIME | DUE_SET_PRIORITY);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
    }
    return 0;
}

/* Odd jobs only: their deadline is not the version's. */
static int move(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    uint32_t n;

    while (going(w, &seed, &n)) {
        int64_t at = w->base_ns + (int64_t)crew_below(&seed, 1000000);
        int rc = due_reschedule(w->q, w->id[n | 1], at);

        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
    }
    return 0;
}

static int look(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    due_info info;
    uint32_t n;

    while (going(w, &seed, &n)) {
        n &= ~3u;
        if (due_find(w->q, w->id[n], &info) != 0)
            continue;
        uint32_t version = (uint32_t)((info.deadline_ns - w->base_ns) / STEP_NS);
        struct content c;

        CREW_CHECK(version < VERSIONS, "");
        make(w, n, version, &c);
        CREW_CHECK(info.len == c.spec.len && info.priority == c.spec.priority,
                   ": half of version %u", version);
    }
    return 0;
}

static int take(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    due_job job;
    uint32_t n;

    while (going(w, &seed, &n)) {
        bool good = crew_below(&seed, 40) == 0;
        int rc = good ? due_dequeue(w->q, &job, 0)
                      : take_leased_from(w->q, &(int){ 0 }, 1, &job,
                                         (int64_t)crew_below(&seed, 200000) + 1, 1000);

        if (rc != 0)
            continue;
        n = check(w, &job);
        if (good) {
            CREW_CHECK(atomic_fetch_add(&w->gone[n], 1) == 0, ": job %u is had twice", n);
            due_job_done(&job);
            continue;
        }
        check(w, &job);
        rc = due_nack(&job, (int64_t)crew_below(&seed, 3) * 1000);
        CREW_CHECK(rc == 0 || rc == DUE_ESTALE, ": %s", due_error_name(rc));
    }
    return 0;
}

static int cancel(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    due_job job;
    uint32_t n;

    while (going(w, &seed, &n)) {
        if (due_cancel(w->q, w->id[n], &job) == 0) {
            CREW_CHECK(check(w, &job) == n, "");
            CREW_CHECK(atomic_fetch_add(&w->gone[n], 1) == 0, ": job %u is had twice", n);
            due_job_done(&job);
        }
        crew_sleep(DUE_US(200));
    }
    return 0;
}

/* Whatever is left is due by now, has a version too, and can be had. */
static void finish(struct world *w)
{
    struct due_stats stats;
    due_job job;

    CREW_CHECK(due_stats_read(w->q, &stats) == 0, "");
    while (stats.waiting > 0) {
        int rc = due_dequeue(w->q, &job, DUE_S(20));

        CREW_CHECK(rc == 0, ": %llu are due, and cannot be had", (unsigned long long)stats.waiting);
        uint32_t n = check(w, &job);
        CREW_CHECK(atomic_fetch_add(&w->gone[n], 1) == 0, ": job %u is had twice", n);
        due_job_done(&job);
        CREW_CHECK(due_stats_read(w->q, &stats) == 0, "");
    }
}

static void round_of(int mode, int64_t ns, uint64_t seed)
{
    static int (*const work[])(void *) = { change, change, move, look, take, take, cancel };
    enum { THREADS = sizeof work / sizeof work[0] };
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)mode };
    struct world w = { .q = crew_open(&options), .seed = seed };
    struct crew_thread threads[THREADS] = { 0 };
    struct content c;

    w.calm = due_topic(w.q, "calm");
    CREW_CHECK(w.calm > 0, "");
    w.base_ns = due_now(w.q);
    w.end_ns = crew_now_ns() + ns;
    for (uint32_t n = 0; n < JOBS; n++) {
        make(&w, n, 0, &c);
        if (n / 4 * 4 == n)
            c.spec.topic = w.calm;
        CREW_CHECK(due_enqueue(w.q, &c.spec, 0, &w.id[n]) == 0, "");
    }
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], work[i], &w);
    for (int i = 0; i < THREADS; i++)
        CREW_CHECK(crew_join(&threads[i]) == 0, "");
    finish(&w);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 3);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;

    do {
        int mode = (int)(rounds % 3);

        crew_doing(crew_mode_names[mode]);
        round_of(mode, DUE_MS(30), o.seed + rounds++);
    } while (crew_now_ns() < end);
    printf("%llu rounds\n", (unsigned long long)rounds);
    return 0;
}
