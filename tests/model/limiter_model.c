/* limiter_model.c - random scripts of everything that begins, ends or moves jobs of groups and of
 * limited topics, on the queue and on a plain reference: who is let through when, who is handed out
 * next, and that every pass comes back.
 *
 * The reference lets jobs through by the same rules with arrays that are searched.  After each step
 * everything that is due is moved, so that both know the same.
 */
#include "lab/model.h"
#include "lab/take.h"
#include "lab/sound.h"

#define TOPICS   3
#define GROUPS   4 /* of each topic */
#define LIVE_MAX 50
#define ATTEMPTS 3
#define RETRY_NS 7

/* Every verb, its name, and how often it comes. */
#define VERB_LIST(X)          \
    X(ENQUEUE, "enqueue", 30) \
    X(RESERVE, "reserve", 20) \
    X(DEQUEUE, "dequeue", 8)  \
    X(ANSWER_ACK, "ack", 10)  \
    X(ANSWER_NACK, "nack", 8) \
    X(ANSWER_BURY, "bury", 2) \
    X(LET_GO, "let-go", 4)    \
    X(CANCEL, "cancel", 5)    \
    X(CANCEL_LENT, "lend", 2) \
    X(MOVE, "move", 6)        \
    X(KICK, "kick", 3)        \
    X(LIMIT, "limit", 3)      \
    X(PAUSE, "pause", 1)      \
    X(RESUME, "resume", 2)    \
    X(ADVANCE, "advance", 12) \
    X(CLEAR, "clear", 0)      \
    X(TRIM, "trim", 1)

#define VERB_ENUM(verb, name, weight)   verb,
#define VERB_NAME(verb, name, weight)   name,
#define VERB_WEIGHT(verb, name, weight) weight,
enum verb { VERB_LIST(VERB_ENUM) VERBS };
static const char *const names[VERBS] = { VERB_LIST(VERB_NAME) };
static const unsigned char weights[VERBS] = { VERB_LIST(VERB_WEIGHT) };

enum state { DELAYED, READY, LEASED, OUT, DEAD, GONE };

struct limiter {
    bool there;
    bool reopened;
    size_t limit;
    size_t running;
    struct limiter *next; /* reopened */
};

struct job {
    due_id id;
    int64_t deadline;
    int64_t until;
    int64_t ttl;
    uint64_t arrival;
    struct limiter *group;
    struct limiter *waits; /* READY: where; NULL: in the line */
    enum state state;
    int topic;
    int priority;
    unsigned attempts;
    unsigned leases;
    bool cancelled;
    bool pass[2]; /* its group's, its topic's */
};

/* A copy of a job that somebody has. */
struct held {
    due_job job;
    struct job *j;
    unsigned lease; /* 0: taken for good */
};

struct world {
    due_queue *q;
    due_clock *clock;
    int64_t now;
    uint64_t arrivals;
    size_t job_count;
    size_t held_count;
    bool by_priority;
    bool paused[TOPICS];
    struct limiter topic[TOPICS];
    struct limiter group[TOPICS][GROUPS];
    struct limiter *reopened;
    struct job *job;
    struct held *held;
};

/* ---- The reference ---- */

static bool sooner(const struct job *a, const struct job *b)
{
    if (a->until != b->until)
        return a->until < b->until;
    return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

static bool before(const struct world *w, const struct job *a, const struct job *b)
{
    if (w->by_priority && a->priority != b->priority)
        return a->priority > b->priority;
    return sooner(a, b);
}

/* The first that waits at @g, or with NULL in the line of @topic. */
static struct job *first_at(struct world *w, const struct limiter *g, int topic)
{
    struct job *first = NULL;

    for (size_t i = 0; i < w->job_count; i++) {
        struct job *j = &w->job[i];

        if (j->state == READY && j->waits == g && (g != NULL || j->topic == topic) &&
            (first == NULL || before(w, j, first)))
            first = j;
    }
    return first;
}

static bool is_open(const struct limiter *g)
{
    return g->limit == 0 || g->running < g->limit;
}

static void look_at(struct world *w, struct limiter *g)
{
    if (g->reopened || !is_open(g) || first_at(w, g, 0) == NULL)
        return;
    g->reopened = true;
    g->next = w->reopened;
    w->reopened = g;
}

static void arrive(struct world *w, struct job *j, const struct limiter *from)
{
    struct limiter *limiters[2] = { j->group, &w->topic[j->topic] };

    j->state = READY;
    j->waits = NULL;
    for (int i = 0; i < 2; i++) {
        struct limiter *g = limiters[i];

        if (g == NULL || !g->there || j->pass[i])
            continue;
        j->state = DELAYED; /* not one of those who wait there, for the moment */
        bool open = is_open(g) && (g == from || first_at(w, g, 0) == NULL);
        j->state = READY;
        if (!open) {
            j->waits = g;
            look_at(w, g);
            return;
        }
        g->running++;
        j->pass[i] = true;
    }
}

static void admit(struct world *w)
{
    while (w->reopened != NULL) {
        struct limiter *g = w->reopened;
        struct job *j = is_open(g) ? first_at(w, g, 0) : NULL;

        if (j != NULL) {
            arrive(w, j, g);
            continue;
        }
        g->reopened = false;
        w->reopened = g->next;
    }
}

static void give_passes(struct world *w, struct job *j)
{
    struct limiter *limiters[2] = { j->group, &w->topic[j->topic] };

    for (int i = 0; i < 2; i++) {
        if (!j->pass[i])
            continue;
        j->pass[i] = false;
        limiters[i]->running--;
        look_at(w, limiters[i]);
    }
}

static void end(struct world *w, struct job *j, enum state state)
{
    j->state = state;
    give_passes(w, j);
    admit(w);
}

/* It waits from here on, until @until. */
static void wait_until(struct world *w, struct job *j, int64_t until)
{
    j->until = until;
    j->arrival = w->arrivals++;
    j->state = DELAYED;
    if (until <= w->now)
        arrive(w, j, NULL);
    admit(w);
}

/* What is due moves; leases that were the last end. */
static void turn(struct world *w)
{
    struct job *doomed[2 * LIVE_MAX];
    size_t n = 0;

    for (;;) {
        struct job *next = NULL;

        for (size_t i = 0; i < w->job_count; i++) {
            struct job *j = &w->job[i];

            if ((j->state == DELAYED || j->state == LEASED) && j->until <= w->now &&
                (next == NULL || sooner(j, next)))
                next = j;
        }
        if (next == NULL)
            break;
        if (next->state == DELAYED || (!next->cancelled && next->attempts < ATTEMPTS)) {
            arrive(w, next, NULL);
        } else {
            next->state = OUT;
            doomed[n++] = next;
        }
    }
    admit(w);
    for (size_t i = 0; i < n; i++)
        end(w, doomed[i], doomed[i]->cancelled ? GONE : DEAD);
}

static struct job *next_of(struct world *w, int topic)
{
    struct job *j = w->paused[topic] ? NULL : first_at(w, NULL, topic);

    while (j != NULL && j->ttl != 0 && j->deadline + j->ttl <= w->now) {
        end(w, j, DEAD);
        j = first_at(w, NULL, topic);
    }
    return j;
}

/* ---- The verbs: false: the queue answered otherwise ---- */

static struct job *any_in(struct world *w, uint32_t n, unsigned states)
{
    for (size_t i = 0; i < w->job_count; i++) {
        struct job *j = &w->job[(i + n) % w->job_count];

        if (states >> j->state & 1u)
            return j;
    }
    return NULL;
}

static size_t count(const struct world *w, unsigned states)
{
    size_t n = 0;

    for (size_t i = 0; i < w->job_count; i++)
        n += states >> w->job[i].state & 1u;
    return n;
}

#define IN(state) (1u << (state))
#define WAITING   (IN(DELAYED) | IN(READY))
#define NOT_ENDED (WAITING | IN(LEASED) | IN(OUT) | IN(DEAD))

static bool do_enqueue(struct world *w, uint32_t n, uint64_t value)
{
    if (count(w, NOT_ENDED) >= LIVE_MAX)
        return true;
    uint32_t number = (uint32_t)w->job_count;
    struct job *j = &w->job[w->job_count++];
    int group = (int)(value >> 8 & 7);
    unsigned char name = (unsigned char)group;

    *j = (struct job){ .topic = (int)(n % TOPICS),
                       .priority = (int)(value & 3),
                       .deadline = w->now + 1 + (int64_t)(value >> 16 & 31) - 8,
                       .ttl = (value >> 32 & 7) == 0 ? 20 : 0 };
    if (j->deadline < 1)
        j->deadline = 1;
    due_extra more = { DUE_EXTRA_INIT, .ttl_ns = j->ttl };
    due_spec spec = { DUE_SPEC_INIT,       .at_ns = j->deadline,    .topic = j->topic,
                      .more = &more,       .priority = j->priority, .data = &number,
                      .len = sizeof number };
    if (group < GROUPS) {
        j->group = &w->group[j->topic][group];
        more.group = &name, more.group_len = 1;
    }
    if (due_enqueue(w->q, &spec, 0, &j->id) != 0)
        return false;
    wait_until(w, j, j->deadline);
    return true;
}

static bool do_take(struct world *w, uint32_t n, uint64_t value, bool reserve)
{
    int topic = (int)(n % TOPICS);
    struct held *h = &w->held[w->held_count];
    int64_t lease = 1 + (int64_t)(value % 40);
    int rc = take_leased_from(w->q, &topic, 1, &h->job, reserve ? lease : 0, 0);
    struct job *j = next_of(w, topic);
    uint32_t number;

    if (rc != 0 || j == NULL)
        return rc == DUE_EAGAIN && j == NULL;
    memcpy(&number, h->job.data, sizeof number);
    w->held_count++;
    h->j = j;
    j->attempts += reserve;
    j->leases += reserve;
    h->lease = reserve ? j->leases : 0;
    j->state = reserve ? LEASED : OUT;
    j->waits = NULL;
    j->until = w->now + lease;
    j->arrival = w->arrivals++;
    return &w->job[number] == j && h->job.attempts == j->attempts;
}

/* A copy is answered for, if it is one of a lease; or let go of. */
static bool do_answer(struct world *w, uint32_t n, uint64_t value, enum verb verb)
{
    if (w->held_count == 0)
        return true;
    struct held *h = &w->held[n % w->held_count];
    struct held it = *h;
    struct job *j = it.j;
    bool good = j->state == LEASED && it.lease == j->leases;
    int64_t delay = (int64_t)(value % 3) - 1; /* -1: DUE_DELAY_POLICY */
    int rc = 0;

    *h = w->held[--w->held_count];
    if (it.lease == 0 || verb == LET_GO) {
        due_job_done(&it.job);
        if (it.lease == 0)
            end(w, j, GONE);
        return true;
    }
    rc = verb == ANSWER_ACK    ? due_ack(&it.job)
         : verb == ANSWER_NACK ? due_nack(&it.job, delay)
                               : due_bury(&it.job, NULL);
    if (!good)
        return rc == DUE_ESTALE;
    if (verb == ANSWER_ACK || j->cancelled)
        end(w, j, GONE);
    else if (verb == ANSWER_BURY || j->attempts >= ATTEMPTS)
        end(w, j, DEAD);
    else
        wait_until(w, j, w->now + (delay < 0 ? RETRY_NS : delay));
    return rc == 0;
}

static bool do_cancel(struct world *w, uint32_t n, bool lend)
{
    struct job *j = any_in(w, n, NOT_ENDED);
    due_job job = { 0 };

    if (j == NULL)
        return true;
    int rc = due_cancel(w->q, j->id, lend ? &job : NULL);
    if (j->state == LEASED || j->state == OUT) {
        j->cancelled |= j->state == LEASED;
        return rc == DUE_EBUSY;
    }
    end(w, j, GONE);
    if (rc == 0)
        due_job_done(&job);
    return rc == 0;
}

static bool do_move(struct world *w, uint32_t n, uint64_t value)
{
    struct job *j = any_in(w, n, WAITING | IN(LEASED));
    int64_t at = w->now + (int64_t)(value % 30) - 10;

    if (j == NULL)
        return true;
    int rc = due_reschedule(w->q, j->id, at < 0 ? 0 : at);
    if (j->state == LEASED)
        return rc == DUE_EBUSY;
    j->state = DELAYED;
    j->deadline = at < 0 ? 0 : at;
    give_passes(w, j);
    wait_until(w, j, j->deadline);
    return rc == 0;
}

static bool do_kick(struct world *w, uint32_t n)
{
    struct job *j = any_in(w, n, IN(DEAD));

    if (j == NULL)
        return true;
    int rc = due_kick(w->q, j->id);
    j->attempts = 0;
    j->ttl = 0;
    wait_until(w, j, w->now);
    return rc == 0;
}

static bool do_limit(struct world *w, uint32_t n, uint64_t value)
{
    int topic = (int)(n % TOPICS);
    struct limiter *g = &w->topic[topic];
    size_t limit = (size_t)(value % 5);

    if (!g->there && limit > 0) {
        g->there = true;
        for (size_t i = 0; i < w->job_count; i++) {
            struct job *j = &w->job[i];

            if (j->state == READY && j->topic == topic && j->waits == NULL)
                j->waits = g;
        }
    }
    g->limit = limit;
    look_at(w, g);
    admit(w);
    return due_topic_limit(w->q, topic, limit) == 0;
}

static bool do_clear(struct world *w, uint32_t n)
{
    int topic = (int)(n % TOPICS);

    for (size_t i = 0; i < w->job_count; i++) {
        struct job *j = &w->job[i];

        if (j->topic == topic && (WAITING >> j->state & 1u))
            end(w, j, GONE);
    }
    return due_clear(w->q, topic, NULL) == 0;
}

static bool apply(struct world *w, const struct model_step *s)
{
    int topic = (int)(s->n % TOPICS);

    switch ((enum verb)s->verb) {
    case ENQUEUE:
        return do_enqueue(w, s->n, s->value);
    case RESERVE:
    case DEQUEUE:
        return do_take(w, s->n, s->value, s->verb == RESERVE);
    case ANSWER_ACK:
    case ANSWER_NACK:
    case ANSWER_BURY:
    case LET_GO:
        return do_answer(w, s->n, s->value, (enum verb)s->verb);
    case CANCEL:
    case CANCEL_LENT:
        return do_cancel(w, s->n, s->verb == CANCEL_LENT);
    case MOVE:
        return do_move(w, s->n, s->value);
    case KICK:
        return do_kick(w, s->n);
    case LIMIT:
        return do_limit(w, s->n, s->value);
    case PAUSE:
    case RESUME:
        w->paused[topic] = s->verb == PAUSE;
        return (s->verb == PAUSE ? due_pause(w->q, topic) : due_resume(w->q, topic)) == 0;
    case ADVANCE:
        w->now += (int64_t)(s->value % 12);
        return due_clock_turn_to(w->clock, w->now) == 0;
    case CLEAR:
        return do_clear(w, s->n);
    default:
        return due_trim(w->q) == 0;
    }
}

/* ---- A script ---- */

/* Do the figures of both agree? */
static bool agree(struct world *w, bool slowly)
{
    struct due_stats s;
    size_t passed = 0;

    for (size_t i = 0; i < w->job_count; i++)
        passed += w->job[i].pass[0] || w->job[i].pass[1];
    return due_poll(w->q, NULL) >= 0 && due_stats_read(w->q, &s) == 0 && s.passed == passed &&
           s.waiting == count(w, WAITING) && s.ready == count(w, IN(READY)) &&
           s.leased == count(w, IN(LEASED)) && s.dead == count(w, IN(DEAD)) &&
           (!slowly || sound_wrong(w->q) == NULL);
}

static bool world_open(struct world *w, size_t steps, unsigned pattern)
{
    due_options options = { DUE_OPTIONS_INIT, .retry = { .kind = DUE_RETRY_FIXED,
                                                         .attempts_max = ATTEMPTS,
                                                         .delay_ns = RETRY_NS } };

    w->now = 100;
    w->by_priority = (pattern & 1) != 0;
    w->clock = due_clock_manual(w->now);
    w->job = calloc(steps + 1, sizeof *w->job);
    w->held = calloc(steps + 1, sizeof *w->held);
    if (w->job == NULL || w->held == NULL)
        return false;
    for (int t = 0; t < TOPICS; t++) {
        for (int g = 0; g < GROUPS; g++)
            w->group[t][g] = (struct limiter){ .there = true, .limit = 1 };
    }
    options.manual = w->clock;
    options.order = w->by_priority ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE;
    options.proxies = DUE_PROXIES_NEVER; /* or the figures were in motion */
    return due_open(&w->q, &options, NULL) == 0 && due_topic(w->q, "a") == 1 &&
           due_topic(w->q, "b") == 2;
}

static bool world_close(struct world *w)
{
    struct due_stats s;

    while (w->held_count > 0)
        due_job_done(&w->held[--w->held_count].job);
    bool right = due_close(w->q, DUE_CLOSE_DISCARD, DUE_FOREVER) == 0;
    right = due_stats_read(w->q, &s) == 0 && (s.leased > 0 || s.passed == 0) && right;
    right = sound_wrong(w->q) == NULL && right;
    right = due_free(w->q) == 0 && right;
    right = due_clock_free(w->clock) == 0 && right;
    free(w->job);
    free(w->held);
    return right;
}

static size_t run(const struct model_step *step, size_t count_all, unsigned pattern)
{
    struct world w = { .q = NULL };
    size_t at = 0;

    if (!world_open(&w, count_all, pattern))
        abort();
    while (at < count_all && apply(&w, &step[at])) {
        turn(&w);
        if (!agree(&w, at % 64 == 0))
            break;
        at++;
    }
    if (!world_close(&w) && at == count_all)
        at = count_all - 1;
    return at;
}

static uint32_t choose_verb(uint64_t *seed)
{
    unsigned sum = 0;

    for (unsigned v = 0; v < VERBS; v++)
        sum += weights[v];
    if (model_below(seed, 500) == 0)
        return CLEAR;
    unsigned at = (unsigned)model_below(seed, sum);
    for (unsigned v = 0; v < VERBS; v++) {
        if (at < weights[v])
            return v;
        at -= weights[v];
    }
    return ENQUEUE;
}

#define STEPS_MAX 1000u

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 1000000);
    static struct model_step step[STEPS_MAX];
    uint64_t seed = o.seed;
    uint64_t done = 0;
    uint64_t scripts = 0;

    for (; done < o.ops; scripts++) {
        uint64_t script_seed = seed;
        unsigned pattern = (unsigned)model_below(&seed, 2);
        size_t length = 1 + (size_t)model_below(&seed, STEPS_MAX);

        for (size_t i = 0; i < length; i++)
            step[i] = (struct model_step){ .verb = choose_verb(&seed),
                                           .n = (uint32_t)model_random(&seed) >> 8,
                                           .value = model_random(&seed) };
        if (!model_try(step, length, pattern, script_seed, names, run))
            return 1;
        done += length;
    }
    printf("limiter_model: %llu operations in %llu scripts, seed %llu: as the arrays\n",
           (unsigned long long)done, (unsigned long long)scripts, (unsigned long long)o.seed);
    return 0;
}
