/* redis_share_model.c - several writers of a shared queue, by the real scripts on a real server,
 * against a model that is obviously right; the time is turned by hand.
 *
 * Each script (model.h) puts, cancels and moves jobs, pauses and limits topics and lets time pass;
 * the writers come when they are rung, when their alarm says so, and when their work is done, which
 * they end in any way, or extend.  Half of the queues are in the order of priority; in one of five
 * the clock is set back now and then.  Checked are, after each step:
 *
 *   Claims   each gets just the jobs that the model says, in its order, and of a group one at a
 *            time; an end is stale if the model says that somebody else has had the job since; a
 *            number sent twice is answered twice the same.
 *   Waking   without a fault nobody waits while something is due.  After one writer was killed, or
 *            stopped for a while, nothing is overdue by more than the grace while another waits.
 *
 *   Stamps   each answer has a higher one than all before.
 *
 * With --self the faults of redis_share_faults.h are planted in the scripts, one after the other,
 * and each has to be seen.
 *
 *     redis_share_model [--ops N] [--seed S] [--self]
 */
#include <inttypes.h>
#include <stdbool.h>

#include "lab/model.h"
#include "lab/redis/redis_server.h"
#include "lab/redis/share_lab.h"
#include "redis/redis_share_faults.h"
#include "redis/redis_share_reference.h"

#define T0           INT64_C(1800000000000000)
#define MS           INT64_C(1000)
#define GRACE        (20 * MS)
#define WRITERS      5
#define JOBS         512
#define STEPS        60
#define FAULT_ROUNDS 1500
#define MOVED        "01234567890123456789attempts" /* an entry: what stands there is compared */

struct writer {
    struct share s;
    bool alive, stopped;
    bool waits;           /* its last claim came back short */
    bool picky;           /* it takes the second topic only */
    int64_t alarm;        /* 0: until it is rung */
    int64_t stamp;        /* of its last claim: what it was told before that does not count */
    int64_t until, guard; /* its work is done; it asks whether somebody came; 0: none */
    int held[JOBS];
    int64_t lease[JOBS]; /* of those */
    int n_held;
};

static struct redis_server server;
static struct writer writer[WRITERS];
static int n_writers;
static bool fault;
static bool sets_back;       /* the clock, now and then */
static bool is_again, beats; /* a number sent twice; a call that has none */
static int64_t last_stamp;
static char why[600];

#define WRONG(...) (snprintf(why, sizeof why, __VA_ARGS__), false)

/* ---- The model ------------------------------------------------------------------------------- */

static bool takes(const struct writer *w, const struct job *j)
{
    return !w->picky || j->topic == 2;
}

/* The claim of the writer's last answer is what it should be; the model does the same. */
static bool claimed(struct writer *w, int need)
{
    const struct share_answer *a = &w->s.answer;
    int got = 0;

    for (int topic = w->picky ? 2 : 1; topic <= 2; topic++) {
        /* What was claimed is not next again: its lease ends later. */
        for (int i; got < need && (i = next_of(topic)) >= 0; got++) {
            struct job *j = &job[i];
            if (got >= a->count || strcmp(a->job[got].id, j->id) != 0)
                return WRONG("claim %d is %s instead of %s", got,
                             got < a->count ? a->job[got].id : "none", j->id);
            if (a->job[got].over != (j->state == OUT ? j->score : 0))
                return WRONG("%s was let pass at %" PRId64, j->id, a->job[got].over);
            j->state = OUT;
            j->passed = j->group != 0;
            j->score = j->since = a->lease;
            w->held[w->n_held] = i;
            w->lease[w->n_held++] = a->lease;
        }
    }
    return got == a->count || WRONG("%d claimed instead of %d", a->count, got);
}

/* ---- The writers ----------------------------------------------------------------------------- */

static bool said(struct writer *w)
{
    if (w->s.answer.code != 'D')
        return WRONG("answer %c %s", w->s.answer.code, w->s.answer.error);
    if (!is_again && !beats && w->s.answer.stamp <= last_stamp)
        return WRONG("a stamp that is not higher than all before");
    if (!is_again && !beats)
        last_stamp = w->s.answer.stamp;
    if (w->s.answer.rang > 0)
        w->guard = now + GRACE;
    return true;
}

/* What becomes of all that it holds. */
static int outcomes(struct writer *w, struct share_outcome *done, char *expected)
{
    for (int i = 0; i < w->n_held; i++) {
        const struct job *j = &job[w->held[i]];
        static const char kinds[] = "aaaanrobe";

        done[i] = (struct share_outcome){ .kind = kinds[below(9)],
                                          .topic = w->picky ? 1 : j->topic,
                                          .id = j->id,
                                          .lease = w->lease[i],
                                          .entry = MOVED };
        done[i].score = done[i].kind == 'r' ? now : now + (int64_t)below(60) * MS;
        if (done[i].kind == 'e')
            done[i].score = (int64_t)(1 + below(90)) * MS;
        expected[i] = j->state == OUT && j->score == w->lease[i] ? 'd' : 's';
    }
    expected[w->n_held] = '\0';
    return w->n_held;
}

static void ended(struct writer *w, const struct share_outcome *done, const char *expected)
{
    int n = w->n_held;

    w->n_held = 0;
    for (int i = 0; i < n; i++) {
        struct job *j = &job[w->held[i]];

        if (expected[i] == 's')
            continue;
        if (done[i].kind == 'e') {
            j->score = j->since = now + done[i].score;
            w->held[w->n_held] = w->held[i];
            w->lease[w->n_held++] = j->score;
            continue;
        }
        j->state = strchr("ab", done[i].kind) != NULL ? GONE : WAITS;
        j->score = done[i].score;
        j->since = done[i].score;
        j->entry = j->entry || done[i].kind == 'n' || done[i].kind == 'o';
        if (strchr("aob", done[i].kind) != NULL)
            pass_back(j);
        reopen(j->topic); /* there may be room */
    }
}

/* An exchange of lane w: what it holds is ended if its work is done, then it claims. */
static bool work(struct writer *w, bool is_done)
{
    static struct share_outcome done[JOBS];
    static char expected[JOBS + 1];
    static char ids[JOBS][SHARE_ID + 1];
    struct share_claim claim = { .need = 1 + (int)below(3),
                                 .lease_us = (int64_t)(20 + below(80)) * MS,
                                 .wait = w->picky ? "t" : "a" };
    int n = is_done ? outcomes(w, done, expected) : 0;
    bool plain = n == 0 || strchr(expected, 's') == NULL;

    share_topics(&w->s, w->picky ? "b" : "a", w->picky ? NULL : "b", NULL);
    share_work(&w->s, done, n, claim);
    if (!said(w))
        return false;
    if (strcmp(w->s.answer.status, plain ? "" : expected) != 0)
        return WRONG("statuses %.200s instead of %.200s", w->s.answer.status, expected);
    if (is_done)
        ended(w, done, expected);
    if (w->s.answer.more != 0 && w->s.answer.count < claim.need)
        return WRONG("more is due in a topic that was named");
    if (!claimed(w, claim.need))
        return false;
    if (below(8) == 0) {
        struct share_answer first = w->s.answer;
        for (int i = 0; i < first.count; i++)
            memcpy(ids[i], first.job[i].id, sizeof ids[i]);
        share_again(&w->s, 1);
        share_work(&w->s, done, n, claim);
        is_again = true;
        bool fine = said(w);
        is_again = false;
        if (!fine || w->s.answer.stamp != first.stamp || w->s.answer.count != first.count ||
            strcmp(w->s.answer.status, first.status) != 0)
            return WRONG("a number sent twice is answered differently");
        for (int i = 0; i < first.count; i++) {
            if (strcmp(ids[i], w->s.answer.job[i].id) != 0)
                return WRONG("a number sent twice claims other jobs");
        }
    }
    w->waits = w->s.answer.count < claim.need;
    w->alarm = w->s.answer.alarm;
    w->stamp = w->s.answer.stamp;
    if (w->waits != (w->alarm >= 0))
        return WRONG("alarm %" PRId64 " after %d of %d", w->alarm, w->s.answer.count, claim.need);
    w->until = w->n_held > 0 ? now + (int64_t)below(150) * MS : 0;
    return true;
}

static bool beat(struct writer *w)
{
    w->guard = 0;
    share_beat(&w->s);
    beats = true;
    bool fine = said(w);
    beats = false;
    w->guard = 0;
    return fine;
}

/* It is rung; and if it is told to come, it will. */
static bool listens(struct writer *w)
{
    bool rung = share_rung(&w->s) > 0;
    const struct share_told *told = &w->s.told;

    if (told->times > 0 && told->stamp >= w->stamp && w->waits &&
        (w->alarm == 0 || told->alarm_us < w->alarm))
        w->alarm = told->alarm_us;
    return rung;
}

/* Everybody who has something to do at this moment does it, until nobody has. */
static bool settle(void)
{
    int rounds = 0;

    for (bool moved = true; moved; rounds++) {
        if (rounds > JOBS)
            return WRONG("the writers ring each other for ever");
        moved = false;
        for (int i = 0; i < n_writers; i++) {
            struct writer *w = &writer[i];
            if (!w->alive || w->stopped)
                continue;
            bool rung = listens(w);
            if (w->until != 0 && w->until <= now)
                moved = true;
            else if (w->waits && (rung || (w->alarm > 0 && w->alarm <= now)))
                moved = true;
            else if (w->guard != 0 && w->guard <= now) {
                if (!beat(w))
                    return false;
                continue;
            } else
                continue;
            if (!work(w, w->until != 0 && w->until <= now))
                return false;
        }
    }
    return true;
}

static bool check(void)
{
    int64_t late = fault ? GRACE : -1;

    for (int k = 0; k < n_writers; k++) {
        const struct writer *w = &writer[k];
        for (int i = 0; i < n_jobs && w->alive && !w->stopped && w->waits; i++) {
            const struct job *j = &job[i];
            if (takes(w, j) && may_be_claimed(j) && now - j->since > late)
                return WRONG("writer %d waits while %.14s is overdue by %" PRId64 " us", k, j->id,
                             now - j->since);
        }
    }
    return true;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct writer *somebody(uint32_t n)
{
    for (int i = 0; i < n_writers; i++) {
        struct writer *w = &writer[(n + (uint32_t)i) % (uint32_t)n_writers];
        if (w->alive && !w->stopped)
            return w;
    }
    return &writer[0];
}

static bool put(struct writer *w)
{
    static const int64_t offset[] = { -3, 0, 1, 20, 50, 51, 90, 400 };
    struct share_job put[3] = { { .score = 0 } };
    int topic = 1 + (int)below(2);
    int n = 1 + (int)below(3);

    if (n_jobs + n > JOBS)
        return true;
    for (int i = 0; i < n; i++) {
        struct job *j = &job[n_jobs++];
        snprintf(j->id, sizeof j->id, "%014" PRIu64, below(1000000) * 1000 + (uint64_t)n_jobs);
        j->state = WAITS;
        j->topic = topic;
        j->score = now + offset[below(8)] * MS;
        j->since = j->score > now ? j->score : now;
        j->entry = false;
        j->passed = false;
        j->group = (int)below(4); /* none, or one of three */
        put[i].group = (const char *const[]){ NULL, "g", "h", "gg" }[j->group];
        memcpy(put[i].id, j->id, sizeof put[i].id);
        put[i].score = j->score;
    }
    share_topics(&w->s, topic == 1 ? "a" : "b", NULL);
    share_put(&w->s, put, n);
    return said(w);
}

static bool edit(struct writer *w)
{
    if (n_jobs == 0)
        return true;
    struct job *j = &job[below((uint64_t)n_jobs)];
    bool move = below(2) == 0;
    struct share_change c = { .kind = move ? 'm' : 'c',
                              .id = j->id,
                              .believed = move ? j->score : -1,
                              .was = j->entry ? "attempts" : "",
                              .score = now + (int64_t)below(100) * MS,
                              .entry = move ? MOVED : "" };
    const char *expected = j->state == WAITS ? "" : j->state == OUT ? "o" : "u";

    share_topics(&w->s, "a", "b", NULL);
    share_edit(&w->s, &c, 1);
    if (!said(w))
        return false;
    if (strcmp(w->s.answer.status, expected) != 0)
        return WRONG("edit of %.14s answers '%s' instead of '%s'", j->id, w->s.answer.status,
                     expected);
    if (j->state == WAITS) {
        j->state = move ? WAITS : GONE;
        j->score = j->since = c.score;
        j->entry = true;
        pass_back(j);
    }
    return true;
}

/* A topic is paused or not, and limited or not. */
static bool set_topic(struct writer *w)
{
    int topic = 1 + (int)below(2);
    char limit[4];
    struct share_change c = { .kind = 's', .topic = topic, .id = "00000000000000", .believed = -1 };

    topics[topic].paused = below(4) == 0;
    topics[topic].limit = below(3) == 0 ? 0 : 1 + (int)below(3);
    c.score = topics[topic].paused;
    snprintf(limit, sizeof limit, "%d", topics[topic].limit);
    c.entry = limit;
    share_topics(&w->s, "a", "b", NULL);
    share_edit(&w->s, &c, 1);
    reopen(topic);
    return said(w) && (w->s.answer.status[0] == '\0' || WRONG("%s", w->s.answer.status));
}

static int64_t sooner(int64_t a, int64_t b)
{
    return b > now && b < a ? b : a;
}

/* To the next moment at which something may have to happen; or the clock is set back. */
static void pass_time(void)
{
    int64_t to = now + 100 * MS;

    if (sets_back && below(12) == 0) {
        now -= (int64_t)below(300) * MS;
        share_turn(&writer[0].s, "clock", now);
        return;
    }
    for (int i = 0; i < n_writers; i++) {
        const struct writer *w = &writer[i];
        if (w->alive && !w->stopped) {
            to = sooner(to, w->alarm);
            to = sooner(to, w->until);
            to = sooner(to, w->guard);
        }
    }
    for (int i = 0; i < n_jobs; i++) {
        if (job[i].state != GONE) {
            to = sooner(to, job[i].score);
            to = sooner(to, job[i].since + GRACE + 1);
        }
    }
    now = to;
    share_turn(&writer[0].s, "clock", now);
}

/* Its connections are closed, or it just does not come any more. */
static void fail(struct writer *w, bool kill)
{
    fault = true;
    w->stopped = true;
    if (!kill)
        return;
    w->alive = false;
    redisFree(w->s.bell);
    w->s.bell = NULL;
    for (long long left = 1; left > 0;) {
        redisReply *r = share_ask(&writer[0].s, "PUBSUB NUMSUB %s%s", w->s.prefix, w->s.writer);
        left = r->element[1]->integer;
        freeReplyObject(r);
    }
}

static bool take_step(const struct model_step *step, unsigned pattern)
{
    struct writer *w = somebody(step->n);

    random_state = step->value;
    switch (step->verb % 12) {
    case 0:
    case 1:
    case 2:
        return put(w);
    case 3:
        return edit(w);
    case 4:
        if (pattern % 3 != 0 && !fault && n_writers > 1)
            fail(w, pattern % 3 == 1);
        return true;
    case 5:
        for (int i = 0; i < n_writers; i++)
            writer[i].stopped = writer[i].stopped && !writer[i].alive;
        return true;
    case 6:
        return set_topic(w);
    default:
        pass_time();
        return true;
    }
}

static void begin(unsigned pattern)
{
    redisContext *c = redisConnectUnix(server.socket);

    freeReplyObject(redisCommand(c, "FLUSHALL"));
    redisFree(c);
    n_jobs = 0;
    memset(topics, 0, sizeof topics);
    ranks = pattern / 12 % 2 == 1;
    sets_back = pattern % 5 == 4;
    last_stamp = 0;
    fault = false;
    now = T0;
    n_writers = 2 + (int)(pattern / 3 % (WRITERS - 1));
    if (n_writers > WRITERS)
        n_writers = WRITERS;
    for (int i = 0; i < n_writers; i++) {
        struct writer *w = &writer[i];
        memset(w, 0, sizeof *w);
        share_begin(&w->s, server.socket, "q", "clock");
        if (i == 0)
            share_turn(&w->s, "clock", now);
        w->s.by_rank = ranks;
        share_join(&w->s);
        share_listen(&w->s);
        w->alive = true;
        w->picky = i == 3;
    }
}

/* Runs a script from an empty server; answers the step that failed. */
static size_t run(const struct model_step *step, size_t count, unsigned pattern)
{
    size_t at = 0;
    bool fine = true;

    begin(pattern);
    random_state = pattern;
    for (int i = 0; i < n_writers && fine; i++)
        fine = work(&writer[i], false);
    for (; at < count && fine; at += fine)
        fine = take_step(&step[at], pattern) && settle() && check();
    for (int i = 0; i < n_writers; i++)
        share_end(&writer[i].s);
    return at;
}

static void draw(struct model_step step[STEPS], uint64_t *seed)
{
    for (size_t i = 0; i < STEPS; i++) {
        step[i].verb = (uint32_t)model_below(seed, 1 << 30);
        step[i].n = (uint32_t)model_below(seed, 1 << 30);
        step[i].value = model_random(seed);
    }
}

static void tell(struct model_step step[STEPS], uint64_t seed, uint64_t round)
{
    size_t left = model_shrink(step, STEPS, (unsigned)round, run);
    size_t at = run(step, left, (unsigned)round);

    printf("seed %" PRIu64 ", round %" PRIu64 ": step %zu of %zu: %s\n", seed, round, at, left,
           why);
    for (size_t i = 0; i < left; i++)
        printf("  %u by %u, %016" PRIx64 "\n", step[i].verb % 12, step[i].n, step[i].value);
}

/* Each fault has to be seen within so many rounds.  How many were not. */
static int plant_all(uint64_t first_seed)
{
    struct model_step step[STEPS];
    int missed = 0;

    for (size_t i = 0; i < sizeof share_faults / sizeof share_faults[0]; i++) {
        uint64_t seed = first_seed;
        uint64_t round = 0;
        bool seen = false;

        share_fault = &share_faults[i];
        share_faults_placed = 0;
        for (; round < FAULT_ROUNDS && !seen; round++) {
            draw(step, &seed);
            seen = run(step, STEPS, (unsigned)round) < STEPS;
        }
        missed += !seen || share_faults_placed == 0;
        printf("%-52s %s\n", share_faults[i].name,
               share_faults_placed == 0 ? "THERE IS NO SUCH TEXT"
               : seen                   ? why
                                        : "SURVIVED");
    }
    share_fault = NULL;
    return missed;
}

int main(int argc, char **argv)
{
    bool self = argc > 1 && strcmp(argv[argc - 1], "--self") == 0;
    struct model_options o = model_options(argc - self, argv, 200000);
    struct model_step step[STEPS];
    uint64_t seed = o.seed;
    int rc = redis_server_start(&server, NULL);

    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    if (self)
        rc = plant_all(seed) == 0 ? 0 : 1;
    for (uint64_t round = 0; !self && round * STEPS < o.ops / 100 && rc == 0; round++) {
        draw(step, &seed);
        if (run(step, STEPS, (unsigned)round) == STEPS)
            continue;
        tell(step, o.seed, round);
        rc = 1;
    }
    redis_server_stop(&server);
    return rc;
}
