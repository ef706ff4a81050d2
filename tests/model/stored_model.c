/* stored_model.c - random scripts on a queue with a store that fails by dice, closes, crashes and
 * opens again: nothing that was confirmed is lost, nothing that was refused or removed comes back.
 *
 * With --plain, the last argument, the same on queues without a store: there everything is known,
 * also which of several equal jobs comes first.  The queue's own threads run besides, so the same
 * seed may take another way.
 */
#include "lab/model.h"

#include "model/stored_world.h"

static const char *const names[VERBS] = {
    [ENQUEUE] = "enqueue",     [BATCH] = "batch",
    [DEQUEUE] = "dequeue",     [DEQUEUE_BATCH] = "take-batch",
    [RESERVE] = "reserve",     [ACK] = "ack",
    [NACK] = "nack",           [BURY] = "bury",
    [EXTEND] = "extend",       [DONE] = "done",
    [CANCEL] = "cancel",       [CANCEL_LENT] = "lend",
    [RESCHEDULE] = "move",     [PROMOTE] = "promote",
    [CLEAR] = "clear",         [KICK] = "kick",
    [KICK_ALL] = "kick-all",   [CLEAR_DEAD] = "clear-dead",
    [ENQUEUE_KEY] = "put-key", [ENQUEUE_REPEATING] = "put-again",
    [FIND_KEY] = "find-key",   [CANCEL_KEY] = "cancel-key",
    [UPDATE] = "update",       [FLUSH] = "flush",
    [ADVANCE] = "advance",     [REOPEN] = "reopen",
    [CRASH] = "crash",         [SET_LIMIT] = "limit",
    [PAUSE] = "pause",         [RESUME] = "resume",
    [SET_POLICY] = "policy",   [RESOLVE] = "resolve",
    [LOSE] = "lose",
};

static const unsigned char weights[VERBS] = {
    [ENQUEUE] = 60,    [BATCH] = 12,     [DEQUEUE] = 40,     [DEQUEUE_BATCH] = 8,
    [RESERVE] = 40,    [ACK] = 16,       [NACK] = 14,        [BURY] = 6,
    [EXTEND] = 6,      [DONE] = 4,       [CANCEL] = 20,      [CANCEL_LENT] = 8,
    [RESCHEDULE] = 16, [PROMOTE] = 6,    [CLEAR] = 1,        [KICK] = 10,
    [KICK_ALL] = 1,    [CLEAR_DEAD] = 1, [ENQUEUE_KEY] = 40, [ENQUEUE_REPEATING] = 12,
    [FIND_KEY] = 5,    [CANCEL_KEY] = 4, [UPDATE] = 16,      [FLUSH] = 6,
    [ADVANCE] = 30,    [REOPEN] = 2,     [CRASH] = 3,        [SET_LIMIT] = 8,
    [PAUSE] = 4,       [RESUME] = 8,     [SET_POLICY] = 6,   [RESOLVE] = 4,
    [LOSE] = 3,
};

static size_t run(const struct model_step *step, size_t count, unsigned pattern)
{
    struct stored_world *w = calloc(1, sizeof *w);
    struct memory_disk_options o = { .batch_changes = 0 };
    size_t at = 0;

    if (w == NULL)
        abort();
    if (pattern & STORED_SMALL) {
        o.batch_changes = 3;
        o.batch_bytes = 100;
    }
    o.lease_ns = pattern & STORED_LOSES ? DUE_MS(30) : 0; /* renewing tells of a loss */
    o.put_again = (pattern & STORED_AGAIN) != 0;
    w->pattern = pattern;
    w->seed = count;
    if (!(pattern & STORED_NONE))
        w->disk = memory_disk_new(&o);
    w->clock = due_clock_manual(0);
    pthread_mutex_init(&w->lock, NULL);
    if (w->clock == NULL || !stored_open(w))
        abort();
    while (at < count && stored_apply(w, step[at].verb, step[at].n, step[at].value))
        at++;
    if (at < count)
        return at; /* what is left is not to be cleaned up */
    bool right = stored_resolve(w, true) && stored_close(w, false, DUE_S(5));
    if (right && !(pattern & STORED_NONE))
        right = stored_open(w) && stored_resolve(w, true) && stored_close(w, false, DUE_S(5));
    if (!right)
        return count - 1;
    memory_disk_free(w->disk);
    right = due_clock_free(w->clock) == 0;
    pthread_mutex_destroy(&w->lock);
    free(w);
    return right ? count : count - 1;
}

static uint32_t choose_verb(uint64_t *seed)
{
    unsigned sum = 0;

    for (unsigned v = 0; v < VERBS; v++)
        sum += weights[v];
    unsigned at = (unsigned)model_below(seed, sum);
    for (unsigned v = 0; v < VERBS; v++) {
        if (at < weights[v])
            return v;
        at -= weights[v];
    }
    return ENQUEUE;
}

static unsigned choose_pattern(uint64_t *seed, bool storeless)
{
    static const struct {
        unsigned bit;
        unsigned one_in;
    } bits[] = { { STORED_ASYNC, 2 },  { STORED_ALWAYS, 4 }, { STORED_BOUNDED, 3 },
                 { STORED_SMALL, 3 },  { STORED_AWAY, 3 },   { STORED_DOUBT, 2 },
                 { STORED_FULL, 4 },   { STORED_LOSES, 4 },  { STORED_TAKES, 2 },
                 { STORED_KEEPS, 2 },  { STORED_NEVER, 3 },  { STORED_GATES, 3 },
                 { STORED_AGAIN, 3 },  { STORED_URGENT, 3 }, { STORED_TOPICAL, 3 },
                 { STORED_MORTAL, 3 }, { STORED_ROTS, 4 },   { STORED_CROWDS, 4 } };
    unsigned pattern = 0;

    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (model_below(seed, bits[i].one_in) == 0)
            pattern |= bits[i].bit;
    if (storeless)
        return STORED_NONE |
               (pattern & (STORED_ALWAYS | STORED_BOUNDED | STORED_TAKES | STORED_KEEPS |
                           STORED_NEVER | STORED_GATES | STORED_URGENT | STORED_TOPICAL |
                           STORED_MORTAL | STORED_ROTS | STORED_CROWDS));
    return pattern & ~STORED_NEVER;
}

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 20000);
    bool storeless = argc > 1 && strcmp(argv[argc - 1], "--plain") == 0;
    uint64_t share = storeless ? 4 : 25; /* it waits for the store, now and then */
    uint64_t ops = o.ops > 100000 ? o.ops / share : o.ops;
    struct model_step *step = malloc(1000 * sizeof *step);
    uint64_t seed = o.seed;
    uint64_t done = 0;
    uint64_t scripts = 0;

    if (step == NULL)
        return 1;
    for (; done < ops; scripts++) {
        uint64_t script_seed = seed;
        unsigned pattern = choose_pattern(&seed, storeless);
        size_t count = 1 + (size_t)model_below(&seed, 1000);

        for (size_t i = 0; i < count; i++)
            step[i] = (struct model_step){ .verb = choose_verb(&seed),
                                           .n = (uint32_t)model_random(&seed) >> 8,
                                           .value = model_random(&seed) };
        if (!model_try(step, count, pattern, script_seed, names, run)) {
            free(step);
            return 1;
        }
        done += count;
    }
    printf("stored_model: %llu operations in %llu scripts, seed %llu: as told\n",
           (unsigned long long)done, (unsigned long long)scripts, (unsigned long long)o.seed);
    free(step);
    return 0;
}
