/* lease_model.c - random scripts on jobs that are answered for, and on a reference: one thread, a
 * clock turned by hand, no proxies.
 *
 * The reference keeps every job in a plain array and does everything by looking at all of them.
 * After each step each job must be where the reference has it: waiting, reserved, dead or gone,
 * with the same counts, and handed out in the same order.
 */
#include "lab/model.h"

#include "lab/extra.h"
#include "model/lease_reference.h"
#include "lab/take.h"
#include "lab/sound.h"
#include "lab/watch.h"

enum verb {
    ENQUEUE,
    RESERVE,
    DEQUEUE,
    ACK,
    NACK,
    BY_POLICY,
    BURY,
    EXTEND,
    DONE,
    CANCEL,
    KICK,
    KICK_ALL,
    CLEAR_DEAD,
    RESCHEDULE,
    ADVANCE,
    LOOK,
    VERBS
};

static const char *const names[VERBS] = {
    "enqueue", "reserve", "dequeue", "ack",      "nack",       "by-policy",  "bury",    "extend",
    "done",    "cancel",  "kick",    "kick-all", "clear-dead", "reschedule", "advance", "look",
};

static const unsigned char weights[VERBS] = {
    [ENQUEUE] = 30,   [RESERVE] = 30,   [DEQUEUE] = 3,  [ACK] = 8,    [NACK] = 10, [BY_POLICY] = 6,
    [BURY] = 4,       [EXTEND] = 6,     [DONE] = 2,     [CANCEL] = 6, [KICK] = 5,  [KICK_ALL] = 1,
    [CLEAR_DEAD] = 1, [RESCHEDULE] = 5, [ADVANCE] = 25, [LOOK] = 4,
};

static void on_discard(void *ctx, const due_job *job)
{
    struct world *w = ctx;

    (void)job;
    w->discarded++;
}

/* ---- Both ---- */

static bool enqueue(struct world *w, uint32_t n, uint64_t value)
{
    struct job *j = &w->job[n % JOBS];
    int64_t delay = (int64_t)(value & 0x3f);
    bool limited = (value >> 8 & 7) == 0;

    if (j->where != GONE)
        return true;
    for (int i = 0; i < w->held_count; i++) {
        if (w->held[i].job == (int)(n % JOBS))
            return true; /* somebody has an older copy still */
    }
    *j = (struct job){ .where = WAITS,
                       .topic = (int)(value >> 12 & 1),
                       .priority = (int)(value >> 13 & 3),
                       .deadline = w->now + delay,
                       .until = w->now + delay,
                       .expires = limited ? w->now + delay + 20 : DUE_FOREVER,
                       .ttl = (value >> 16 & 7) == 0 ? 10 : 0,
                       .arrival = ++w->arrivals };
    if (j->ttl > 0)
        j->expires = DUE_FOREVER;
    due_spec spec = { DUE_SPEC_INIT,
                      .at_ns = w->now + delay,
                      .data = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
                      .len = value >> 20 & 0x1f,
                      .topic = j->topic,
                      .priority = j->priority,
                      .more = EXTRA(.ttl_ns = j->ttl,
                                    .expires_ns = j->expires == DUE_FOREVER ? 0 : j->expires) };
    if (due_enqueue(w->q, &spec, 0, &j->id) != 0)
        return wrong(w, "an enqueue failed");
    return true;
}

static bool same(struct world *w, const struct job *j, const due_job *got)
{
    if (!due_id_equal(got->id, j->id))
        return wrong(w, "another job was handed out");
    if (got->deadline_ns != j->deadline || got->priority != j->priority || got->topic != j->topic)
        return wrong(w, "a job was handed out with other facts");
    return true;
}

static bool reserve(struct world *w, uint32_t n, uint64_t value)
{
    int topic = (int)(n % TOPICS);
    int64_t lease = 1 + (int64_t)(value & 0x1f);

    if (w->held_count == HELD)
        return true;
    struct job *j = next_of(w, topic);
    struct held *h = &w->held[w->held_count];
    int rc = take_leased_from(w->q, &topic, 1, &h->copy, lease, 0);
    if (j == NULL)
        return rc == DUE_EAGAIN || wrong(w, "something was reserved, and nothing is due");
    if (rc != 0)
        return wrong(w, "nothing was reserved, and something is due");
    j->where = LEASED;
    j->until = w->now + lease;
    j->arrival = ++w->arrivals;
    j->attempts++;
    j->lease = ++w->leases;
    *h = (struct held){ .copy = h->copy, .job = (int)(j - w->job), .lease = j->lease };
    w->held_count++;
    if (h->copy.attempts != j->attempts || h->copy.failures != j->failures)
        return wrong(w, "attempts or failures are others");
    return same(w, j, &h->copy);
}

static bool dequeue(struct world *w, uint32_t n)
{
    int topic = (int)(n % TOPICS);
    struct job *j = next_of(w, topic);
    due_job copy;
    int rc = take_from(w->q, &topic, 1, &copy, 0);

    if (j == NULL)
        return rc == DUE_EAGAIN || wrong(w, "something was taken, and nothing is due");
    if (rc != 0)
        return wrong(w, "nothing was taken, and something is due");
    j->where = GONE;
    bool right = same(w, j, &copy);
    due_job_done(&copy);
    return right;
}

/* A copy that is out, no more; NULL: none is.  *@valid: it is that of the running lease. */
static struct job *let_go(struct world *w, uint32_t n, due_job *copy, bool *valid)
{
    if (w->held_count == 0)
        return NULL;
    struct held *h = &w->held[n % (uint32_t)w->held_count];
    struct job *j = &w->job[h->job];
    *copy = h->copy;
    *valid = j->where == LEASED && j->lease == h->lease;
    *h = w->held[--w->held_count];
    return j;
}

static bool ack(struct world *w, uint32_t n)
{
    due_job copy;
    bool valid;
    struct job *j = let_go(w, n, &copy, &valid);

    if (j == NULL)
        return true;
    if (due_ack(&copy) != (valid ? 0 : DUE_ESTALE))
        return wrong(w, "an ack is answered otherwise");
    if (valid)
        j->where = GONE;
    return true;
}

static bool nack(struct world *w, uint32_t n, uint64_t value, bool by_policy)
{
    int64_t delay = by_policy ? DUE_DELAY_POLICY : (int64_t)(value & 0xf);
    due_job copy;
    bool valid;
    struct job *j = let_go(w, n, &copy, &valid);

    if (j == NULL)
        return true;
    if (due_nack(&copy, delay) != (valid ? 0 : DUE_ESTALE))
        return wrong(w, "a nack is answered otherwise");
    if (!valid)
        return true;
    j->failures++;
    if (j->revoked)
        j->where = GONE;
    else if (w->limit > 0 && j->attempts >= w->limit)
        die(w, j, DUE_CAUSE_ATTEMPTS);
    else
        wait_until(w, j, w->now + (by_policy ? w->delay : delay));
    return true;
}

static bool bury(struct world *w, uint32_t n)
{
    due_job copy;
    bool valid;
    struct job *j = let_go(w, n, &copy, &valid);

    if (j == NULL)
        return true;
    if (due_bury(&copy, "why") != (valid ? 0 : DUE_ESTALE))
        return wrong(w, "a bury is answered otherwise");
    if (valid && j->revoked)
        j->where = GONE;
    else if (valid)
        die(w, j, DUE_CAUSE_BURIED);
    return true;
}

static bool extend(struct world *w, uint32_t n, uint64_t value)
{
    int64_t lease = 1 + (int64_t)(value & 0x3f);

    if (w->held_count == 0)
        return true;
    struct held *h = &w->held[n % (uint32_t)w->held_count];
    struct job *j = &w->job[h->job];
    bool valid = j->where == LEASED && j->lease == h->lease;
    if (due_extend(&h->copy, lease) != (valid ? 0 : DUE_ESTALE))
        return wrong(w, "an extend is answered otherwise");
    if (valid) {
        j->until = w->now + lease;
        j->arrival = ++w->arrivals;
    }
    return true;
}

static bool done(struct world *w, uint32_t n)
{
    due_job copy;
    bool valid;

    if (let_go(w, n, &copy, &valid) != NULL)
        due_job_done(&copy);
    return true;
}

static bool cancel(struct world *w, uint32_t n, uint64_t value)
{
    struct job *j = &w->job[n % JOBS];
    int expected = j->where == GONE ? DUE_ENOENT : j->where == LEASED ? DUE_EBUSY : 0;
    due_job copy = { .queue = NULL };

    if (due_cancel(w->q, j->id, value & 1 ? &copy : NULL) != expected)
        return wrong(w, "a cancel is answered otherwise");
    if (j->where == LEASED)
        j->revoked = true;
    else
        j->where = GONE;
    due_job_done(&copy);
    return true;
}

static void revive(struct world *w, struct job *j)
{
    j->attempts = j->failures = 0;
    j->ttl = 0;
    j->expires = DUE_FOREVER;
    wait_until(w, j, w->now);
}

static bool kick(struct world *w, uint32_t n)
{
    struct job *j = &w->job[n % JOBS];

    if (due_kick(w->q, j->id) != (j->where == DEAD ? 0 : DUE_ENOENT))
        return wrong(w, "a kick is answered otherwise");
    if (j->where == DEAD)
        revive(w, j);
    return true;
}

/* In the order of their places, which the reference does not know: so one topic at a time. */
static bool kick_all(struct world *w)
{
    uint64_t n;

    if (count(w, DEAD) > 1)
        return true;
    if (due_kick_all(w->q, DUE_ALL_TOPICS, &n) != 0 || n != count(w, DEAD))
        return wrong(w, "kick_all is answered otherwise");
    for (int i = 0; i < JOBS; i++) {
        if (w->job[i].where == DEAD)
            revive(w, &w->job[i]);
    }
    return true;
}

static bool clear_dead(struct world *w, uint32_t n)
{
    int topic = (int)(n % (TOPICS + 1)) - 1;
    uint64_t cleared;
    uint64_t expected = 0;

    for (int i = 0; i < JOBS; i++) {
        if (w->job[i].where == DEAD && (topic == DUE_ALL_TOPICS || w->job[i].topic == topic)) {
            discard(w, &w->job[i]);
            expected++;
        }
    }
    if (due_clear_dead(w->q, topic, &cleared) != 0 || cleared != expected)
        return wrong(w, "clear_dead is answered otherwise");
    return true;
}

static bool reschedule(struct world *w, uint32_t n, uint64_t value)
{
    struct job *j = &w->job[n % JOBS];
    int64_t at = w->now + (int64_t)(value & 0x1f);
    int expected = j->where == WAITS ? 0 : j->where == LEASED ? DUE_EBUSY : DUE_ENOENT;

    if (due_reschedule(w->q, j->id, at) != expected)
        return wrong(w, "a reschedule is answered otherwise");
    if (expected == 0) {
        j->deadline = at;
        wait_until(w, j, at);
    }
    return true;
}

static bool advance(struct world *w, uint32_t n)
{
    w->now += 1 + (int64_t)(n % 12);
    if (due_clock_turn_to(w->clock, w->now) != 0)
        return wrong(w, "the clock does not turn");
    due_poll(w->q, NULL);
    lapse(w);
    return true;
}

/* ---- Looking ---- */

static struct job *find(struct world *w, due_id id)
{
    for (int i = 0; i < JOBS; i++) {
        if (w->job[i].where != GONE && due_id_equal(w->job[i].id, id))
            return &w->job[i];
    }
    return NULL;
}

static bool look_at_dead(struct world *w)
{
    due_dead dead[JOBS];
    uint64_t cursor = 0;
    int n = due_list_dead(w->q, &cursor, dead, JOBS);

    if (n < 0 || (uint64_t)n != count(w, DEAD))
        return wrong(w, "other jobs are dead");
    for (int i = 0; i < n; i++) {
        struct job *j = find(w, dead[i].id);

        if (j == NULL || j->where != DEAD || j->cause != dead[i].cause ||
            j->died != dead[i].died_ns || j->attempts != dead[i].attempts ||
            j->failures != dead[i].failures || j->deadline != dead[i].deadline_ns)
            return wrong(w, "a dead job has other facts");
    }
    return true;
}

static bool look(struct world *w)
{
    struct due_stats s;

    if (due_stats_read(w->q, &s) != 0)
        return wrong(w, "no stats");
    if (s.waiting != count(w, WAITS) || s.leased != count(w, LEASED) || s.dead != count(w, DEAD))
        return wrong(w, "the stats count others");
    if (w->discarded != 0)
        return wrong(w, "discarded, and should not be, or the other way round");
    if (s.enqueued !=
        s.waiting + s.leased + s.dead + s.acked + s.cancelled + s.discarded + s.dequeued)
        return wrong(w, "the stats do not add up");
    const char *text = sound_wrong(w->q);
    if (text != NULL)
        return wrong(w, text);
    return look_at_dead(w);
}

/* ---- A script ---- */

/* Bits of a script's pattern. */
#define LIMITED     0x1u
#define KEPT_SHORT  0x2u
#define FEW_DEAD    0x4u
#define BY_PRIORITY 0x8u

static bool open_world(struct world *w, unsigned pattern)
{
    memset(w, 0, sizeof *w);
    w->limit = pattern & LIMITED ? 3 : 0;
    w->delay = 7;
    w->dead_keep = pattern & KEPT_SHORT ? 40 : 0;
    w->dead_max = pattern & FEW_DEAD ? 2 : 0;
    w->by_priority = (pattern & BY_PRIORITY) != 0;
    flaky_init(&w->memory, FLAKY_NEVER);
    w->clock = due_clock_manual(0);
    due_options o = {
        DUE_OPTIONS_INIT,
        .manual = w->clock,
        .order = w->by_priority ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE,
        .proxies = DUE_PROXIES_NEVER, /* or a job may be dying while we look */
        .allocator = &w->memory.hooks,
        .on_discard = on_discard,
        .ctx = w,
        .retry = { .kind = DUE_RETRY_FIXED, .attempts_max = w->limit, .delay_ns = w->delay },
        .dead_keep_ns = w->dead_keep,
        .dead_max = (size_t)w->dead_max
    };
    if (w->clock == NULL || due_open(&w->q, &o, NULL) != 0)
        return false;
    watch_begin(w->q);
    return due_topic(w->q, "a") == 1;
}

static bool close_world(struct world *w)
{
    uint64_t left = count(w, WAITS) + count(w, DEAD);

    while (w->held_count > 0)
        done(w, 0);
    bool right = due_close(w->q, DUE_CLOSE_DISCARD, 0) == 0 || wrong(w, "it does not close");
    if (w->discarded != left)
        right = wrong(w, "others were discarded at close");
    watch_end(w->q);
    right = (due_free(w->q) == 0 && due_clock_free(w->clock) == 0 && right) ||
            wrong(w, "it is not freed");
    if (w->discarded != left + count(w, LEASED)) /* nobody had answered for them */
        right = wrong(w, "others were discarded at the end");
    if (atomic_load(&w->memory.live) != 0 || atomic_load(&w->memory.bad) != 0)
        right = wrong(w, "memory is out");
    return right;
}

static bool step(struct world *w, const struct model_step *s)
{
    switch ((enum verb)s->verb) {
    case ENQUEUE:
        return enqueue(w, s->n, s->value);
    case RESERVE:
        return reserve(w, s->n, s->value);
    case DEQUEUE:
        return dequeue(w, s->n);
    case ACK:
        return ack(w, s->n);
    case NACK:
        return nack(w, s->n, s->value, false);
    case BY_POLICY:
        return nack(w, s->n, s->value, true);
    case BURY:
        return bury(w, s->n);
    case EXTEND:
        return extend(w, s->n, s->value);
    case DONE:
        return done(w, s->n);
    case CANCEL:
        return cancel(w, s->n, s->value);
    case KICK:
        return kick(w, s->n);
    case KICK_ALL:
        return kick_all(w);
    case CLEAR_DEAD:
        return clear_dead(w, s->n);
    case RESCHEDULE:
        return reschedule(w, s->n, s->value);
    case ADVANCE:
        return advance(w, s->n);
    case LOOK:
        return look(w);
    default:
        return false;
    }
}

static size_t run(const struct model_step *steps, size_t count_, unsigned pattern)
{
    static struct world w;
    size_t at = 0;

    if (!open_world(&w, pattern))
        return 0;
    while (at < count_ && step(&w, &steps[at]))
        at++;
    bool right = look(&w) && at == count_;
    right = close_world(&w) && right;
    if (!right)
        printf("lease_model: %s\n", w.wrong);
    return right ? count_ : at < count_ ? at : count_ - 1;
}

static uint32_t some_verb(uint64_t *random)
{
    unsigned total = 0;

    for (int i = 0; i < VERBS; i++)
        total += weights[i];
    uint64_t at = model_below(random, total);
    for (uint32_t i = 0;; i++) {
        if (at < weights[i])
            return i;
        at -= weights[i];
    }
}

#define SCRIPT 600

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 300000);
    struct model_step steps[SCRIPT];
    uint64_t random = o.seed;
    unsigned scripts = 0;

    for (uint64_t ops = 0; ops < o.ops; ops += SCRIPT) {
        unsigned pattern = scripts++ % 16;

        for (int i = 0; i < SCRIPT; i++)
            steps[i] = (struct model_step){ .verb = some_verb(&random),
                                            .n = (uint32_t)model_random(&random) & 0xffffff,
                                            .value = model_random(&random) };
        if (!model_try(steps, SCRIPT, pattern, o.seed, names, run))
            return 1;
    }
    printf("lease_model: %llu operations in %u scripts, seed %llu: as told\n",
           (unsigned long long)o.ops, scripts, (unsigned long long)o.seed);
    return 0;
}
