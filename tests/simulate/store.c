/* store.c - calls of the store that take time. */
#include "store.h"

#include <string.h>

#include "machine.h"
#include "lab/memory_disk.h"
#include "world.h"

#define LOSSES_MOST 10 /* of a run: after each everything is written again */

struct slow {
    due_store head;
    due_store *inner;
    struct slow *next;
    unsigned process;
    unsigned queue;
    const char *name; /* the queue's */
    bool inside;
    bool interrupted;
    bool read_jobs; /* all of them */
    bool read_keys;
    bool reading;     /* a load has begun, and goes on with the next call */
    uint64_t skipped; /* batches that were confirmed and did not land: PLANT_LOST_CONFIRMATION */
};

static const struct plan *plan;
static struct memory_disk *disk;
static struct memory_disk *disks[PLAN_QUEUES]; /* of all */
static struct slow *first;                     /* of those of programs that live */
static struct slow *owner;                     /* of these; or NULL */
static unsigned owner_process;
static uint64_t taken;
static void (*tell_taken)(void);
static bool mended;
static unsigned losses;
static bool lost; /* since it was taken */

static struct slow *slow_of(due_store *s)
{
    return (struct slow *)(void *)s;
}

/* On its way to the server, and back.  Always a moment, so that who calls again and again lets time
 * pass; not longer than the call may take, nor than until it is interrupted. */
static void travel(struct slow *s, int64_t until_ns)
{
    int64_t ns = 1 + (int64_t)machine_below(mended ? 1 : (uint64_t)plan->latency_ns + 1);

    if (machine.now_ns + ns < until_ns)
        until_ns = machine.now_ns + ns;
    while (machine.now_ns < until_ns && !s->interrupted) {
        memory_empty();
        machine_park(s, until_ns, -1);
    }
}

/* Whoever wants the jobs may have them before it has answered. */
static void linger(struct slow *s, int64_t until_ns)
{
    bool may = plan_has(plan, KIND_LATENCY) && plan_has(plan, KIND_STANDBY) && !mended;

    if (!may || machine_below(4) != 0)
        return;
    int64_t end_ns = machine.now_ns + (int64_t)machine_below(3 * (uint64_t)plan->owner_lease_ns);
    while (machine.now_ns < end_ns && machine.now_ns < until_ns && !s->interrupted) {
        memory_empty();
        machine_park(s, end_ns < until_ns ? end_ns : until_ns, -1);
    }
}

/* What is lost while it is still read nobody else has: so not then. */
static void lose(const struct slow *s)
{
    unsigned per_mille = plan->store_faults[MEMORY_LOSE];

    if (s != owner || !s->read_jobs || !s->read_keys || mended || losses == LOSSES_MOST ||
        machine_below(1000) >= per_mille)
        return;
    losses++;
    lost = true;
    memory_disk_lose(disk, 1 + machine_below(4));
}

static struct slow *begin(due_store *store, int64_t until_ns)
{
    struct slow *s = slow_of(store);

    if (s->inside)
        machine_fail("the store: two calls at once");
    s->inside = true;
    if (s->queue != world_now())
        machine_fail("the store: called for another queue");
    travel(s, until_ns);
    lose(s);
    return s;
}

static int end(struct slow *s, int rc, int64_t until_ns)
{
    s->reading &= rc != DUE_ELOST;
    travel(s, until_ns);
    s->inside = s->interrupted = false;
    return rc;
}

/* Is it kept, or shown with a job? */
static bool is_shown(const struct memory_key *key)
{
    const struct memory_job *job = memory_jobs_find(&disk->jobs, key->id);

    if (key->until_ns != 0 || job == NULL)
        return key->until_ns != 0;
    due_record r = memory_job_record(&disk->jobs, job);
    return r.key_len == key->len && memcmp(r.key, key->bytes, r.key_len) == 0;
}

/* A program that opens the queue will not hear of these.  After a loss the one before it knew which
 * keys its jobs had given up, and had to free what came back of them; if it ended before it had,
 * they stay (docs/redis-layout.md), until a job has the key again. */
static void note_strays(void)
{
    for (size_t i = 0; i < disk->keys.slots; i++)
        for (struct memory_key *key = disk->keys.table[i]; key != NULL; key = key->next)
            key->stray = !is_shown(key);
}

static int slow_open(due_store *store, const struct due_store_open *how,
                     struct due_store_info *info, due_error *error)
{
    struct slow *s = begin(store, how->until_ns);

    if (strcmp(how->name, s->name) != 0)
        machine_fail("the store of %s is opened for %s", s->name, how->name);
    if (plan->machine.plant == PLANT_EARLY_TAKEOVER)
        memory_disk_end_lease(disk);
    int rc = s->inner->verbs->open(s->inner, how, info, error);
    if (rc == 0) {
        owner = s;
        owner_process = s->process;
        taken++;
        tell_taken();
        note_strays();
        lost = false;
    }
    return end(s, rc, how->until_ns);
}

static int slow_ready(due_store *store, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    return end(s, s->inner->verbs->ready(s->inner, until_ns), until_ns);
}

static int slow_commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    if (plan->machine.plant == PLANT_NO_FENCE)
        memory_store_of(s->inner)->fenced = false;
    if (plan->machine.plant == PLANT_LOST_CONFIRMATION && machine_below(20) == 0) {
        s->skipped++;
        return end(s, 0, until_ns);
    }
    int rc = s->inner->verbs->commit(s->inner, changes, n, number - s->skipped, until_ns);
    return end(s, rc, until_ns);
}

static int slow_prepare(due_store *store, const due_change *changes, size_t n, uint64_t number)
{
    struct slow *s = slow_of(store);

    if (s->inside)
        machine_fail("the store: two calls at once");
    if (plan->machine.plant == PLANT_LOST_CONFIRMATION)
        return DUE_EAGAIN;
    return s->inner->verbs->prepare(s->inner, changes, n, number);
}

static int slow_send(due_store *store, uint64_t number, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);
    int rc = s->inner->verbs->send(s->inner, number, until_ns);

    s->inside = s->interrupted = false; /* it does not wait for the answer */
    return rc;
}

/* So many are shown, where about @max were asked for. */
static size_t page(size_t max)
{
    return max < plan->page_max ? max : plan->page_max;
}

/* What is to be shown, and to whom. */
struct showing {
    due_store_visit *visit;
    void *ctx;
};

/* It may be shown more than once in one page, too. */
static int show(void *ctx, const due_record *r)
{
    const struct showing *it = ctx;
    bool twice = plan_has(plan, KIND_REPEATS) && !mended && machine_below(8) == 0;
    int rc = it->visit(it->ctx, r);

    return rc == 0 && twice ? it->visit(it->ctx, r) : rc;
}

static int slow_load(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    if (rewind && s->reading)
        machine_fail("the store: a load that goes on is begun anew");
    struct showing it = { .visit = visit, .ctx = ctx };
    int rc = s->inner->verbs->load(s->inner, rewind, page(max), show, &it, until_ns);
    s->reading = rc == 1 || rc == DUE_EAGAIN;
    s->read_jobs |= rc == 0;
    return end(s, rc, until_ns);
}

static int slow_find(due_store *store, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    return end(s, s->inner->verbs->find(s->inner, id, visit, ctx, until_ns), until_ns);
}

static int slow_keys(due_store *store, int rewind, size_t max, due_store_visit_key *visit,
                     void *ctx, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    int rc = s->inner->verbs->keys(s->inner, rewind, page(max), visit, ctx, until_ns);
    s->read_keys |= rc == 0;
    return end(s, rc, until_ns);
}

static int slow_topics(due_store *store, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    if (plan->machine.plant == PLANT_NO_SETTINGS)
        return end(s, 0, until_ns);
    return end(s, s->inner->verbs->topics(s->inner, visit, ctx, until_ns), until_ns);
}

static int slow_renew(due_store *store, int64_t *held_ns, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    linger(s, until_ns);
    return end(s, s->inner->verbs->renew(s->inner, held_ns, until_ns), until_ns);
}

static int slow_close(due_store *store, int64_t until_ns)
{
    struct slow *s = begin(store, until_ns);

    return end(s, s->inner->verbs->close(s->inner, until_ns), until_ns);
}

/* Of a call that is on its way; else it is for the store, and good for its next call. */
static void slow_interrupt(due_store *store)
{
    struct slow *s = slow_of(store);

    s->interrupted = s->inside;
    machine_unpark_all(s);
    s->inner->verbs->interrupt(s->inner);
}

static void slow_stats(due_store *store, struct due_store_stats *stats)
{
    slow_of(store)->inner->verbs->stats(slow_of(store)->inner, stats);
}

static void forget(struct slow *s)
{
    struct slow **at = &first;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (owner == s)
        owner = NULL;
}

static void slow_free(due_store *store)
{
    struct slow *s = slow_of(store);

    s->inner->verbs->free(s->inner);
    forget(s);
    memory_free(s);
}

/* With topics(), or without. */
#define VERBS(its)                                                                            \
    {                                                                                         \
        .size = sizeof(struct due_store_verbs), .open = slow_open, .ready = slow_ready,       \
        .commit = slow_commit, .prepare = slow_prepare, .send = slow_send, .load = slow_load, \
        .find = slow_find, .keys = slow_keys, .renew = slow_renew, .close = slow_close,       \
        .interrupt = slow_interrupt, .stats = slow_stats, .free = slow_free, .topics = (its), \
    }

static const struct due_store_verbs verbs = VERBS(slow_topics);
static const struct due_store_verbs bare_verbs = VERBS(NULL);

/* ---- For the run ---- */

static void keep(void)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(disk);
    WORLD_KEEP(first);
    WORLD_KEEP(owner);
    WORLD_KEEP(owner_process);
    WORLD_KEEP(taken);
    WORLD_KEEP(tell_taken);
    WORLD_KEEP(mended);
    WORLD_KEEP(losses);
    WORLD_KEEP(lost);
}

/* The one that has the queue's jobs. */
static struct memory_disk *own_disk(void)
{
    bool other = plan->machine.plant == PLANT_OTHER_NAME && disks[0] != NULL;

    return other ? disks[0] : disk;
}

void store_begin(const struct plan *p, void (*taken_over)(void))
{
    keep();
    plan = p;
    first = owner = NULL;
    disk = disks[world_now()] = NULL;
    owner_process = 0;
    taken = 0;
    tell_taken = taken_over;
    mended = lost = false;
    losses = 0;
    if (!plan_has(p, KIND_STORED))
        return;
    disk = memory_disk_new(&(struct memory_disk_options){ .lease_ns = p->owner_lease_ns,
                                                          .batch_changes = p->batch_changes,
                                                          .put_again = p->put_again,
                                                          .durability = DUE_DURABLE_ALWAYS });
    disks[world_now()] = disk;
}

due_store *store_new(const char *name)
{
    struct memory_dice dice = { .seed = machine_below(UINT64_MAX) };
    struct slow *s = memory_new(sizeof *s);

    s->head.verbs = plan->settings ? &verbs : &bare_verbs;
    s->inner = memory_store_new(own_disk());
    s->process = machine.me->process;
    s->name = name;
    s->queue = world_now();
    s->next = first;
    first = s;
    for (int kind = 0; kind < MEMORY_FAULTS; kind++)
        dice.per_mille[kind] = kind != MEMORY_LOSE ? plan->store_faults[kind] : 0;
    memory_store_dice(s->inner, &dice);
    return &s->head;
}

void store_crash(unsigned process, bool seen)
{
    struct slow *next;

    for (struct slow *s = first; s != NULL; s = next) {
        next = s->next;
        if (s->process != process)
            continue;
        if (seen)
            memory_store_crash(s->inner);
        forget(s);
    }
}

void store_mend(void)
{
    mended = true;
    for (struct slow *s = first; s != NULL; s = s->next)
        memory_store_dice(s->inner, &(struct memory_dice){ .seed = 0 });
}

bool store_has_lost(void)
{
    return lost;
}

uint64_t store_losses(void)
{
    return losses;
}

uint64_t store_taken(void)
{
    return taken;
}

bool store_mine(void)
{
    return !plan_has(plan, KIND_STANDBY) || machine.me->process == owner_process;
}

void store_judge(void)
{
    const char *wrong = memory_disk_wrong(disk);

    if (wrong != NULL)
        machine_fail("the store: %s", wrong);
}

size_t store_jobs(void)
{
    return memory_disk_jobs(disk);
}

bool store_paused(const char *topic, int64_t *limit)
{
    return memory_disk_setting(disk, topic, limit);
}

size_t store_keys(void)
{
    size_t strays = 0;

    for (size_t i = 0; losses > 0 && i < disk->keys.slots; i++)
        for (const struct memory_key *key = disk->keys.table[i]; key != NULL; key = key->next)
            strays += key->stray;
    return memory_disk_keys(disk) - strays;
}
