/* queue_model.c - random scripts on the whole queue and on its reference, in one thread on a manual
 * clock: every verb, without waiting.
 *
 * Which topic has its turn is the queue's choice; that its job is the topic's first, and that none
 * is handed out early, held back or forgotten, is checked at every step.
 */
#include "lab/model.h"
#include "lab/watch.h"

#include "model/queue_verbs.h"

static const char *const names[VERBS] = {
    "enqueue", "batch", "dequeue", "from",    "take-batch", "done", "cancel",
    "busy",    "stale", "move",    "promote", "advance",    "peek", "find",
    "list",    "clear", "pause",   "resume",  "poll",       "trim", "stats",
};

/* How often each verb comes, by pattern; ENQUEUE 40 and DEQUEUE 25 where nothing else is said. */
static const unsigned char weights[VERBS] = {
    [ENQUEUE] = 40, [BATCH] = 2,    [DEQUEUE] = 25,    [DEQUEUE_FROM] = 8, [DEQUEUE_BATCH] = 3,
    [DONE] = 20,    [CANCEL] = 10,  [CANCEL_LENT] = 2, [CANCEL_GONE] = 2,  [RESCHEDULE] = 8,
    [PROMOTE] = 3,  [ADVANCE] = 12, [PEEK] = 4,        [FIND] = 4,         [LIST] = 1,
    [CLEAR] = 0,    [PAUSE] = 1,    [RESUME] = 2,      [POLL] = 3,         [TRIM] = 1,
    [STATS] = 2,
};

/* ---- A script ---- */

/* Bits of a script's pattern, above the number of its enum pattern. */
#define BY_PRIORITY 0x100u
#define BOUNDED     0x200u
#define ADAPTIVE    0x400u
#define ALWAYS      0x800u
#define COUNTED     0x1000u
#define DRAINED     0x2000u

static void on_discard(void *ctx, const due_job *job)
{
    struct world *w = ctx;
    struct job *j = reference_job(w, job->ptr);

    w->shown++;
    if (j == NULL || !j->live || !due_id_equal(j->id, job->id) || j->deadline != job->deadline_ns)
        w->wrong_discard = true;
    else
        reference_remove(w, j);
}

static bool world_open(struct world *w, unsigned pattern)
{
    due_options options = { DUE_OPTIONS_INIT, .on_discard = on_discard, .ctx = w };

    w->pattern = pattern & 0xff;
    w->by_priority = (pattern & BY_PRIORITY) != 0;
    w->capacity = pattern & BOUNDED ? 40 : 0;
    w->clock = due_clock_manual(0);
    options.manual = w->clock;
    options.capacity = w->capacity;
    options.order = w->by_priority ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE;
    options.proxies = pattern & ALWAYS     ? DUE_PROXIES_ALWAYS
                      : pattern & ADAPTIVE ? DUE_PROXIES_ADAPTIVE
                                           : DUE_PROXIES_NEVER;
    if (pattern & COUNTED) {
        w->memory = malloc(sizeof *w->memory);
        if (w->memory == NULL)
            return false;
        flaky_init(w->memory, FLAKY_NEVER);
        options.allocator = &w->memory->hooks;
    }
    if (w->clock == NULL || due_open(&w->q, &options, NULL) != 0)
        return false;
    watch_begin(w->q);
    return due_topic(w->q, "a") == 1 && due_topic(w->q, "b") == 2 && due_topic(w->q, "c") == 3;
}

/* What is left comes at its time, as long as time lasts. */
static bool drain(struct world *w)
{
    bool right = due_close(w->q, DUE_CLOSE_DRAIN, 0) == (w->live_count > 0 ? DUE_ETIMEDOUT : 0);

    for (int t = 0; t < TOPICS; t++)
        right = queue_pause(w, (uint32_t)t, false) && right;
    w->now = DUE_FOREVER - 1;
    right = due_clock_turn_to(w->clock, w->now) == 0 && right;
    while (right && w->live_count > 0) {
        while (w->held_count > 0)
            queue_done(w, 0);
        right = queue_dequeue(w);
    }
    return right;
}

static bool world_close(struct world *w, bool right, bool drained)
{
    if (right && drained)
        right = drain(w);
    while (w->held_count > 0)
        queue_done(w, 0);
    uint64_t left = w->live_count;
    right = due_close(w->q, DUE_CLOSE_DISCARD, DUE_FOREVER) == 0 && right;
    w->discarded += left;
    right = right && w->live_count == 0 && !w->wrong_discard && w->shown == w->discarded &&
            queue_stats(w);
    watch_end(w->q);
    right = due_free(w->q) == 0 && right;
    right = due_clock_free(w->clock) == 0 && right;
    if (w->memory != NULL)
        right = right && atomic_load(&w->memory->live) == 0 && atomic_load(&w->memory->bad) == 0;
    free(w->memory);
    return right;
}

static size_t run(const struct model_step *step, size_t count, unsigned pattern)
{
    struct world *w = calloc(1, sizeof *w);
    size_t at = 0;

    if (w == NULL)
        abort();
    reference_init(w);
    if (!world_open(w, pattern))
        abort();
    while (at < count && queue_apply(w, step[at].verb, step[at].n, step[at].value))
        at++;
    if (!world_close(w, at == count, (pattern & DRAINED) != 0) && at == count)
        at = count - 1;
    reference_free(w);
    free(w);
    return at;
}

/* ---- Choosing scripts ---- */

static unsigned weight_of(unsigned pattern, unsigned verb)
{
    unsigned weight = weights[verb];

    switch (pattern) {
    case MOVED:
        return verb == RESCHEDULE ? 80 : weight;
    case CANCELLED:
        return verb == CANCEL ? 36 : verb == DEQUEUE ? 2 : weight;
    default:
        return weight;
    }
}

static uint32_t choose_verb(uint64_t *seed, unsigned pattern, bool growing)
{
    unsigned sum = 0;

    for (unsigned v = 0; v < VERBS; v++)
        sum += weight_of(pattern, v);
    if (growing && model_below(seed, 2) == 0)
        return ENQUEUE;
    if (model_below(seed, 3000) == 0)
        return CLEAR;
    unsigned at = (unsigned)model_below(seed, sum);
    for (unsigned v = 0; v < VERBS; v++) {
        unsigned weight = weight_of(pattern, v);

        if (at < weight)
            return v;
        at -= weight;
    }
    return ENQUEUE;
}

static unsigned choose_pattern(uint64_t *seed)
{
    unsigned pattern = (unsigned)model_below(seed, PATTERNS);
    static const struct {
        unsigned bit;
        unsigned one_in;
    } bits[] = { { BY_PRIORITY, 3 }, { BOUNDED, 8 }, { ADAPTIVE, 4 },
                 { ALWAYS, 40 },     { COUNTED, 8 }, { DRAINED, 2 } };

    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (model_below(seed, bits[i].one_in) == 0)
            pattern |= bits[i].bit;
    return pattern;
}

/* Mostly short scripts; now and then one that fills the buckets behind the heap. */
static size_t choose_length(uint64_t *seed, bool *growing)
{
    *growing = model_below(seed, 30) == 0;
    return *growing ? 30000 : 1 + (size_t)model_below(seed, 3000);
}

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 1000000);
    struct model_step *step = malloc(30000 * sizeof *step);
    uint64_t seed = o.seed;
    uint64_t done = 0;
    uint64_t scripts = 0;

    if (step == NULL)
        return 1;
    for (; done < o.ops; scripts++) {
        uint64_t script_seed = seed;
        unsigned pattern = choose_pattern(&seed);
        bool growing;
        size_t count = choose_length(&seed, &growing);

        for (size_t i = 0; i < count; i++)
            step[i] = (struct model_step){ .verb = choose_verb(&seed, pattern & 0xff,
                                                               growing && i < count / 2),
                                           .n = (uint32_t)model_random(&seed) >> 8,
                                           .value = model_random(&seed) };
        if (!model_try(step, count, pattern, script_seed, names, run)) {
            free(step);
            return 1;
        }
        done += count;
    }
    printf("queue_model: %llu operations in %llu scripts, seed %llu: as the sorted arrays\n",
           (unsigned long long)done, (unsigned long long)scripts, (unsigned long long)o.seed);
    free(step);
    return 0;
}
