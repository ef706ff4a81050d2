/* timeline_model.c - the timeline against a sorted array.
 *
 * Random scripts in twelve patterns.  After every step of a short script, and every 64 of a long
 * one, the slow check of the room runs and the chunks are counted: none may be lost.  Long
 * scripts are large enough for splits, spills and sweeps.
 *
 *   timeline_model [--ops N] [--seed S]     exit 0 or 1
 */
#include "lab/model.h"
#include "timeline/timeline.h"

enum { JOBS = 1 << 15, LIVE_MAX = 9000 };

enum pattern {
    UNIFORM,
    EQUAL,
    EXPONENTIAL, /* nanoseconds to decades */
    EARLIER,     /* always a new head */
    SAWTOOTH,
    RESCHEDULE, /* everything, again and again */
    CANCEL,     /* nine in ten */
    OUTLIER,
    CLUSTERED,
    RISING,
    FALLING_INTO, /* before the head and far behind it by turns */
    DENSE,        /* few deadlines, few priorities */
    PATTERNS
};

enum verb { INSERT, POP, KILL, MOVE, SWEEP, PASS, WORK, RENUMBER, TRIM, VERBS };

static const char *const verbs[VERBS] = { "insert", "pop",  "kill",     "move", "sweep",
                                          "pass",   "work", "renumber", "trim" };

/* What the timeline should hold: the live slots in order. */
struct lab {
    struct due__alloc alloc;
    struct due__pool pool;
    struct due__timeline tl;
    struct due__slot sorted[LIVE_MAX + 1];
    size_t live;
    size_t slots; /* live and dead ones in the timeline */
    uint32_t free_job[JOBS];
    size_t free_jobs;
    uint32_t stamp[JOBS]; /* arrival of the job's live slot; UINT32_MAX: none */
    uint32_t arrival;
    int64_t now;
    int64_t high;
    unsigned pattern;
    size_t chunks; /* to supply */
    size_t died;   /* since the pass began that is under way, or was the last */
    bool spilled;  /* since then a full heap has put slots back, perhaps behind the pass */
};

static struct lab lab;

static bool is_alive(const uint32_t *stamp, struct due__slot s)
{
    return stamp[due__slot_job(s)] == due__slot_arrival(s);
}

static size_t keep_alive(const void *ctx, struct due__slot *slot, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        slot[kept] = slot[i];
        kept += is_alive(ctx, slot[i]);
    }
    return kept;
}

/* A user's allocator: counts what is out, fails when told to, gives memory with rubbish in it. */
struct hooks {
    size_t out;
    size_t fail_at; /* 0: never */
};

static struct hooks hooks;

static void *hook_alloc(void *ctx, size_t size)
{
    struct hooks *h = ctx;
    void *memory = h->fail_at > 0 && --h->fail_at == 0 ? NULL : malloc(size);

    if (memory != NULL) {
        memset(memory, 0x5a, size < 100000 ? size : 100000);
        h->out += size;
    }
    return memory;
}

static void hook_free(void *ctx, void *memory, size_t size)
{
    struct hooks *h = ctx;

    h->out -= size;
    free(memory);
}

static const due_allocator user_allocator = { hook_alloc, hook_free, &hooks };

static bool lab_open(size_t chunks, unsigned pattern)
{
    struct due__region *r;

    lab.live = lab.slots = lab.free_jobs = 0;
    lab.arrival = 0;
    lab.now = 1000;
    lab.high = 0;
    lab.pattern = pattern;
    for (uint32_t job = JOBS; job-- > 0;) {
        lab.stamp[job] = UINT32_MAX;
        lab.free_job[lab.free_jobs++] = job;
    }
    due__alloc_init(&lab.alloc, pattern % 4 == 1 ? &user_allocator : NULL);
    due__pool_init(&lab.pool, &lab.alloc);
    r = due__region_new(&lab.alloc, chunks);
    if (r == NULL)
        return false;
    due__pool_adopt(&lab.pool, r);
    return due__timeline_init(&lab.tl, &lab.alloc, &lab.pool, keep_alive, lab.stamp) == 0;
}

/* False: some memory is still out. */
static bool lab_close(void)
{
    due__timeline_destroy(&lab.tl);
    due__pool_destroy(&lab.pool);
    return hooks.out == 0;
}

static bool lab_check(void)
{
    size_t chunks;

    return due__timeline_check(&lab.tl, &chunks) &&
           chunks + lab.pool.free_count == lab.pool.total &&
           due__timeline_count(&lab.tl) == lab.slots && lab.live <= lab.slots;
}

static size_t position(struct due__slot s)
{
    size_t low = 0, high = lab.live;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (due__slot_before(lab.sorted[middle], s))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t deadline(uint64_t r)
{
    int64_t span = (int64_t)(r % 1000000);

    switch ((enum pattern)lab.pattern) {
    case EQUAL:
        return 5000;
    case EXPONENTIAL:
        return lab.now / 2 + (int64_t)((r >> 6 | UINT64_C(1) << 57) >> (r % 58));
    case EARLIER:
        return lab.live > 0 && due__slot_deadline(lab.sorted[0]) > 0
                   ? due__slot_deadline(lab.sorted[0]) - (int64_t)(r % 2)
                   : INT64_C(1) << 40;
    case SAWTOOTH:
        return lab.now + 10 * (int64_t)(lab.arrival % 3000) + (int64_t)(r % 7);
    case OUTLIER:
        return r % 500 == 0 ? INT64_MAX - (int64_t)(r % 3) : lab.now + span;
    case CLUSTERED:
        return lab.now + (int64_t)(r >> 32) % 20 * INT64_C(1000000000000) + (int64_t)(r % 50);
    case RISING:
        return lab.high += (int64_t)(r % 3);
    case FALLING_INTO:
        return r % 2 == 0 ? lab.now + (int64_t)(r >> 8) % 100 : INT64_C(1) << (30 + r % 32);
    case DENSE:
        return lab.now + (int64_t)(r % 4);
    default:
        return lab.now + span;
    }
}

static bool put(uint32_t job, uint64_t value)
{
    unsigned priority = lab.pattern == DENSE ? (unsigned)(value % 3) : 0;
    struct due__slot s = due__slot_make(deadline(value), priority, lab.arrival, job);
    size_t at = position(s);
    due__key edge = lab.tl.edge;

    if (!due__timeline_insert(&lab.tl, s))
        return false;
    lab.spilled |= due__key_before(lab.tl.edge, edge);
    if (due__timeline_count(&lab.tl) > lab.slots + 1)
        return false;
    lab.slots = due__timeline_count(&lab.tl); /* dead ones may have gone */
    lab.stamp[job] = lab.arrival++;
    memmove(lab.sorted + at + 1, lab.sorted + at, (lab.live - at) * sizeof s);
    lab.sorted[at] = s;
    lab.live++;
    return true;
}

static uint32_t kill_at(size_t at)
{
    uint32_t job = due__slot_job(lab.sorted[at]);

    lab.stamp[job] = UINT32_MAX;
    lab.live--;
    lab.died++;
    memmove(lab.sorted + at, lab.sorted + at + 1, (lab.live - at) * sizeof *lab.sorted);
    return job;
}

static bool make_ready(void)
{
    for (size_t rounds = 0; rounds < 1000; rounds++) {
        int64_t bound = due__timeline_bound(&lab.tl);

        if (lab.live > 0 && bound > due__slot_deadline(lab.sorted[0]))
            return false;
        if (due__timeline_ready(&lab.tl))
            return true;
    }
    return false;
}

/* Pops up to the next live slot and compares. */
static bool pop(void)
{
    for (;;) {
        struct due__slot s, head, second;

        if (!make_ready())
            return false;
        if (!due__timeline_head(&lab.tl, &head))
            return lab.live == 0 && lab.slots == 0 && due__timeline_bound(&lab.tl) == INT64_MAX;
        bool told = due__timeline_second(&lab.tl, &second);
        s = due__timeline_pop(&lab.tl);
        lab.slots--;
        if (!due__slot_same(s, head))
            return false;
        if (told && (!due__timeline_head(&lab.tl, &head) || !due__slot_same(second, head)))
            return false;
        if (!is_alive(lab.stamp, s))
            continue;
        if (lab.live == 0 || !due__slot_same(s, lab.sorted[0]))
            return false;
        if (due__slot_deadline(s) > lab.now)
            lab.now = due__slot_deadline(s) < INT64_C(1) << 50 ? due__slot_deadline(s) : lab.now;
        lab.free_job[lab.free_jobs++] = kill_at(0);
        lab.died--; /* its slot is gone */
        return true;
    }
}

static void renumbered(void *ctx, struct due__slot old, struct due__slot now)
{
    (void)ctx;
    lab.stamp[due__slot_job(old)] = due__slot_arrival(now);
}

/* Numbers the array itself, then compares with what the timeline told. */
static bool renumber(void)
{
    size_t dropped = 0;
    uint32_t next = due__timeline_renumber(&lab.tl, 7, renumbered, NULL, &dropped);

    lab.slots -= dropped;
    if (lab.slots != lab.live || next != 7 + lab.live)
        return false;
    for (size_t i = 0; i < lab.live; i++) {
        struct due__slot *s = &lab.sorted[i];

        *s = due__slot_make(due__slot_deadline(*s), 255u - (unsigned)(s->lo >> 56), 7 + (uint32_t)i,
                            due__slot_job(*s));
        if (lab.stamp[due__slot_job(*s)] != 7 + (uint32_t)i)
            return false;
    }
    lab.arrival = next;
    return true;
}

/* After a pass nothing is left of what was dead when it began. */
static bool sweep(size_t budget, bool whole)
{
    bool done;

    do {
        size_t dropped = 0;

        if (!lab.tl.sweep.on)
            lab.died = lab.spilled = 0;
        done = due__timeline_sweep(&lab.tl, budget, &dropped);
        lab.slots -= dropped;
    } while (whole && !done);
    return !done || lab.spilled || lab.slots <= lab.live + lab.died;
}

static bool step(const struct model_step *s)
{
    uint64_t state = s->value;
    bool ok = true;

    for (uint32_t i = 0; ok && i < s->n; i++) {
        uint64_t r = model_random(&state);

        if (s->verb == INSERT && lab.live < LIVE_MAX && lab.free_jobs > 0) {
            ok = put(lab.free_job[lab.free_jobs - 1], r);
            lab.free_jobs -= ok;
        } else if (s->verb == POP) {
            ok = pop();
        } else if (s->verb == KILL && lab.live > 0) {
            lab.free_job[lab.free_jobs++] = kill_at((size_t)(r % lab.live));
        } else if (s->verb == MOVE && lab.live > 0) {
            ok = put(kill_at((size_t)(r % lab.live)), r);
        } else if (s->verb == TRIM) {
            due__pool_trim(&lab.pool, 16);
        }
    }
    if (s->verb == SWEEP || s->verb == PASS)
        ok = sweep(s->n, s->verb == PASS);
    else if (s->verb == RENUMBER)
        ok = renumber();
    else if (s->verb == WORK)
        due__timeline_work(&lab.tl, s->n);
    return ok;
}

static size_t run(const struct model_step *steps, size_t count, unsigned pattern)
{
    size_t i;
    uint32_t largest = 0;

    if (!lab_open(DUE__CHUNKS_AT_OPEN + 6 * DUE__CHUNKS_PER_SPAN, pattern))
        return 0;
    for (i = 0; i < count; i++)
        largest = steps[i].n > largest ? steps[i].n : largest;
    for (i = 0; i < count; i++) {
        if (!step(&steps[i]))
            break;
        if ((largest <= 16 || i % 64 == 0 || i + 1 == count) && !lab_check())
            break;
        if (lab.slots > 2 * lab.live + 3000 && !sweep(4096, true)) /* as the queue would */
            break;
    }
    while (i == count && lab.slots > 0)
        if (!pop() || (lab.slots == 0 && !lab_check()))
            i = 0;
    return lab_close() ? i : 0;
}

static uint64_t make_script(struct model_step *s, size_t count, unsigned pattern, uint64_t *state)
{
    /* of 32: how often each verb comes */
    static const uint8_t usual[VERBS] = { 12, 12, 3, 1, 1, 0, 1, 0, 1 };
    static const uint8_t moves[VERBS] = { 6, 5, 1, 16, 1, 0, 1, 0, 1 };
    static const uint8_t kills[VERBS] = { 13, 2, 13, 0, 1, 0, 1, 0, 1 };
    const uint8_t *share = pattern == RESCHEDULE ? moves : pattern == CANCEL ? kills : usual;
    uint32_t bulk = model_below(state, 3) == 0 ? 1 : 1u << model_below(state, 12);
    uint64_t ops = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t pick = model_below(state, 32);
        uint32_t verb = 0;

        while (verb + 1 < VERBS && pick >= share[verb])
            pick -= share[verb++];
        if (verb + 1 == VERBS && model_below(state, 8) == 0)
            verb = model_below(state, 2) == 0 ? PASS : RENUMBER;
        s[i] = (struct model_step){ .verb = verb, .value = model_random(state) };
        s[i].n = 1 + (uint32_t)model_below(state, verb == PASS || verb == SWEEP ? 500 : bulk);
        if (verb == RENUMBER || verb == TRIM)
            s[i].n = 1;
        ops += s[i].n;
    }
    return ops;
}

/* With few chunks an insert is refused, changes nothing, and all that was taken comes out. */
static bool exhausted(unsigned pattern)
{
    bool refused = false;
    bool ok = lab_open(4 * DUE__BLOCK_CHUNKS, pattern);

    for (uint64_t i = 0; ok && !refused && i < LIVE_MAX; i++) {
        uint64_t state = i;

        refused = !put(lab.free_job[lab.free_jobs - 1], model_random(&state));
        lab.free_jobs -= !refused;
    }
    ok = ok && refused && lab_check();
    while (ok && lab.slots > 0)
        ok = pop();
    ok = ok && lab_check();
    return lab_close() && ok;
}

/* Nine of ten cancelled: after a pass the chunks held follow what lives. */
static bool sweep_gives_back(void)
{
    size_t chunks, dropped = 0;
    bool ok = lab_open(DUE__CHUNKS_AT_OPEN + 6 * DUE__CHUNKS_PER_SPAN, UNIFORM);

    for (uint64_t i = 0; ok && i < 8000; i++) {
        uint64_t state = i;

        ok = put(lab.free_job[--lab.free_jobs], model_random(&state));
    }
    while (ok && lab.live > 800)
        kill_at(lab.live / 2);
    while (ok && !due__timeline_sweep(&lab.tl, 500, &dropped))
        ;
    lab.slots -= dropped;
    ok = ok && lab.slots == 800 && lab_check() && due__timeline_check(&lab.tl, &chunks);
    ok = ok && chunks < 800 / DUE__CHUNK_SLOTS + 200;
    while (ok && lab.slots > 0)
        ok = pop();
    return lab_close() && ok;
}

/* As leases that are answered, or timeouts that do not happen: of what comes late and is dead soon,
 * little is kept, without a sweep. */
static bool dead_go_with_their_chunk(void)
{
    size_t most = 0;
    bool ok = lab_open(DUE__CHUNKS_AT_OPEN + 6 * DUE__CHUNKS_PER_SPAN, RISING);

    for (uint64_t i = 0; ok && i < 100000; i++) {
        uint64_t state = i;

        ok = put(lab.free_job[--lab.free_jobs], model_random(&state));
        if (ok && lab.live > 40)
            lab.free_job[lab.free_jobs++] = kill_at(i % 64 == 0 ? 40 : lab.live / 3);
        most = lab.slots > most ? lab.slots : most;
    }
    ok = ok && most < 6 * DUE__CHUNK_SLOTS && lab_check();
    while (ok && lab.slots > 0)
        ok = pop();
    return lab_close() && ok;
}

/* Whichever allocation fails, opening says so and nothing stays out. */
static bool opens_or_fails_whole(void)
{
    for (size_t fail_at = 1;; fail_at++) {
        bool opened;

        hooks.fail_at = fail_at;
        opened = lab_open(DUE__BLOCK_CHUNKS, 1);
        if (opened)
            due__timeline_destroy(&lab.tl);
        due__pool_destroy(&lab.pool);
        if (hooks.out != 0)
            return false;
        if (opened) {
            hooks.fail_at = 0;
            return fail_at == 4; /* a region and its header, the timeline */
        }
    }
}

/* Without a free rung a bucket that is too large is served by selection. */
static bool without_rungs(unsigned pattern)
{
    bool ok = lab_open(DUE__CHUNKS_AT_OPEN, pattern);
    uint32_t spares = lab.tl.spares;

    for (uint64_t i = 0; ok && i < 5000; i++) {
        uint64_t state = i;

        lab.tl.spares = 0;
        ok = put(lab.free_job[--lab.free_jobs], model_random(&state));
        if (ok && i % 3 == 0)
            ok = pop();
        if (ok && i % 7 == 1)
            lab.free_job[lab.free_jobs++] = kill_at(lab.live / 3);
        if (i == 3000)
            sweep(700, true);
    }
    while (ok && lab.slots > 0)
        ok = pop();
    lab.tl.spares = spares;
    ok = ok && lab_check();
    return lab_close() && ok;
}

/* No call looks at more than a piece: n slots, 60 % dead, sweeps as the queue would. */
struct crowd {
    uint32_t *stamp;
    size_t most; /* slots looked at in one call */
    size_t since;
    size_t dead;
};

static void note(struct crowd *c)
{
    size_t looked = lab.tl.looked - c->since;

    c->most = looked > c->most ? looked : c->most;
    c->since = lab.tl.looked;
}

static bool leave(struct crowd *c, due__key *last, size_t *left)
{
    bool ready = due__timeline_ready(&lab.tl);
    bool sorted_so_far = true;

    note(c);
    if (ready && due__timeline_count(&lab.tl) > 0) {
        struct due__slot s = due__timeline_pop(&lab.tl);

        note(c);
        sorted_so_far = due__key_before(*last, due__slot_key(s));
        *last = due__slot_key(s);
        --*left;
        c->dead -= !is_alive(c->stamp, s);
    }
    if (c->dead > due__timeline_count(&lab.tl) / 2 || lab.tl.sweep.on) {
        size_t dropped = 0;

        due__timeline_sweep(&lab.tl, 1000, &dropped);
        note(c);
        *left -= dropped;
        c->dead -= dropped;
    }
    return sorted_so_far;
}

static bool looks_at_little(uint32_t n)
{
    struct crowd c = { .stamp = malloc(n * sizeof *c.stamp) };
    size_t left = n;
    uint64_t state = 1;
    due__key last = due__key_of(0, 0);
    bool ok = c.stamp != NULL && lab_open(DUE__CHUNKS_AT_OPEN, UNIFORM);

    for (uint32_t i = 0; ok && i < n / 4096 + 1; i++) {
        struct due__region *r = due__region_new(&lab.alloc, DUE__CHUNKS_PER_SPAN);

        if (r == NULL)
            return false;
        due__pool_adopt(&lab.pool, r);
    }
    lab.tl.ctx = c.stamp;
    for (uint32_t i = 0; ok && i < n; i++) {
        int64_t at = (int64_t)model_below(&state, i % 4 == 0 ? 1000000000000 : 1000000);

        c.stamp[i] = i;
        ok = due__timeline_insert(&lab.tl, due__slot_make(at, 0, i, i));
        note(&c);
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        if (model_below(&state, 10) < 6) {
            c.stamp[i] = UINT32_MAX;
            c.dead++;
        }
    }
    while (ok && left > 0)
        ok = leave(&c, &last, &left);
    ok = lab_close() && ok;
    free(c.stamp);
    return ok && c.dead == 0 && c.most <= DUE__TIMELINE_PIECE + 1000;
}

static bool held(bool ok, const char *what)
{
    if (!ok)
        printf("failed: %s\n", what);
    return ok;
}

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 1000000);
    static struct model_step script[2000];
    uint64_t done = 0;

    for (uint64_t seed = o.seed; done < o.ops; seed++) {
        uint64_t state = seed;
        unsigned pattern = (unsigned)model_below(&state, PATTERNS);
        size_t count = 1 + (size_t)model_below(&state, 400);

        done += make_script(script, count, pattern, &state);
        if (!model_try(script, count, pattern, seed, verbs, run))
            return 1;
    }
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++)
        if (!held(exhausted(pattern), "exhaustion") || !held(without_rungs(pattern), "no rungs"))
            return 1;
    return !held(opens_or_fails_whole(), "opening without memory") ||
           !held(looks_at_little(o.ops < 100000000 ? 300000 : 10000000),
                 "a call looks at little") ||
           !held(sweep_gives_back(), "a sweep gives back") ||
           !held(dead_go_with_their_chunk(), "the dead go with their chunk");
}
