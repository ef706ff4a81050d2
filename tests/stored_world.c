/* stored_world.c - opening, closing and resolving what stored_world.h describes. */
#include "stored_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "crew.h"
#include "memory_disk.h"
#include "stored_known.h"

/* What landed of a job. */
static void print_log(struct stored_world *w, const struct stored_job *j)
{
    static const char *const kinds[] = { "?", "put", "move", "bury", "drop", "keep", "forget" };
    struct memory_entry e;

    for (size_t i = 0; memory_disk_entry(w->disk, i, &e); i++) {
        if (due_id_equal(e.id, j->id))
            fprintf(stderr, "  writer %llu batch %llu %s %lld\n", (unsigned long long)e.writer,
                    (unsigned long long)e.number, kinds[e.kind], (long long)e.until_ns);
    }
}

bool stored_wrong(struct stored_world *w, const char *what, const struct stored_job *j)
{
    if (w->wrong == NULL) {
        fprintf(stderr, "stored_model: %s (job %d, time %lld, pattern %u)\n", what,
                j != NULL ? j->number : -1, (long long)w->now, w->pattern);
        if (j != NULL)
            print_log(w, j);
    }
    w->wrong = what;
    return false;
}

/* Some are longer than what fits into a place. */
void stored_payload(int content, unsigned char *bytes, size_t *len)
{
    *len = 1 + (size_t)content * 7 % 90;
    for (size_t i = 0; i < *len; i++)
        bytes[i] = (unsigned char)((size_t)content * 31 + i);
}

/* Of what it may contain, what is as long as that. */
static bool length_known(struct stored_job *j, size_t len)
{
    unsigned char bytes[128];
    int left = 0;

    for (int i = 0; i < j->contents; i++) {
        size_t has;

        stored_payload(j->content[i], bytes, &has);
        j->content[left] = j->content[i];
        left += has == len;
    }
    j->contents = left;
    return left > 0;
}

struct stored_job *stored_find(struct stored_world *w, due_id id)
{
    for (int i = w->made; i-- > 0;) {
        if (due_id_equal(w->job[i].id, id))
            return &w->job[i];
    }
    return NULL;
}

void stored_note_refused(struct stored_world *w)
{
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < w->refused_count; i++) {
        struct stored_job *j = stored_find(w, w->refused[i]);

        if (j != NULL)
            j->unsure = true;
    }
    w->refused_count = 0;
    pthread_mutex_unlock(&w->lock);
}

static void on_settled(void *ctx, due_id id, int rc)
{
    struct stored_world *w = ctx;

    if (rc == 0)
        return;
    pthread_mutex_lock(&w->lock);
    if (w->refused_count < STORED_ROOM)
        w->refused[w->refused_count++] = id;
    pthread_mutex_unlock(&w->lock);
}

static void throw_dice(struct stored_world *w, bool on)
{
    struct memory_dice dice = { .seed = w->seed++ };

    if (on) {
        dice.per_mille[MEMORY_AWAY] = w->pattern & STORED_AWAY ? 80 : 0;
        dice.per_mille[MEMORY_DOUBT_NOT] = w->pattern & STORED_DOUBT ? 60 : 0;
        dice.per_mille[MEMORY_DOUBT_LANDED] = w->pattern & STORED_DOUBT ? 60 : 0;
        dice.per_mille[MEMORY_FULL] = w->pattern & STORED_FULL ? 100 : 0;
        dice.per_mille[MEMORY_LOSE] = w->pattern & STORED_LOSES ? 15 : 0;
    }
    memory_store_dice(w->store, &dice);
}

static struct due_stats stats(struct stored_world *w)
{
    struct due_stats s = { 0 };

    if (due_stats(w->q, &s) != 0)
        stored_wrong(w, "no stats", NULL);
    return s;
}

static bool loaded(struct stored_world *w)
{
    for (int i = 0; i < 20000; i++) {
        if (!stats(w).loading)
            return true;
        crew_sleep(DUE_US(500));
    }
    return stored_wrong(w, "it is never loaded", NULL);
}

bool stored_open(struct stored_world *w)
{
    due_options o = { DUE_OPTIONS_INIT, .on_settled = on_settled, .ctx = w };

    flaky_init(&w->memory, FLAKY_NEVER);
    o.allocator = &w->memory.hooks;
    o.manual = w->clock;
    o.store = w->store = memory_store_new(w->disk);
    o.confirm = w->pattern & STORED_ASYNC ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC;
    o.proxies = w->pattern & STORED_ALWAYS ? DUE_PROXIES_ALWAYS : DUE_PROXIES_ADAPTIVE;
    o.capacity = w->pattern & STORED_BOUNDED ? 60 : 0;
    o.store_timeout_ns = DUE_MS(3);
    o.unsettled_max = 50;
    if (due_open(&w->q, &o, NULL) != 0)
        return stored_wrong(w, "it does not open", NULL);
    w->fresh = w->made > 0;
    w->topic[1] = due_topic(w->q, "a");
    w->topic[2] = due_topic(w->q, "b");
    if (w->topic[1] <= 0 || w->topic[2] <= 0)
        return stored_wrong(w, "no topics", NULL);
    return loaded(w);
}

/* ---- Resolving ---- */

/* Is this one of the times that it may have?  Then it has it. */
static void print_times(const struct stored_job *j)
{
    for (int i = 0; i < j->times; i++)
        fprintf(stderr, "  may be %lld, deadline %lld\n", (long long)j->time[i].until,
                (long long)j->time[i].deadline);
}

static bool time_known(struct stored_job *j, int64_t until, int64_t deadline, bool dead)
{
    for (int i = 0; i < j->times; i++) {
        if ((dead || j->time[i].until == until) && (j->loose || j->time[i].deadline == deadline)) {
            j->time[0] = (struct stored_time){ until, deadline };
            j->times = 1;
            return true;
        }
    }
    return false;
}

static bool same_counts(struct stored_world *w, struct stored_job *j, const due_record *r)
{
    if (r->failures > j->failures || r->failures < j->nacks)
        return fprintf(stderr, "failures %u, %u to %u\n", r->failures, j->nacks, j->failures),
               stored_wrong(w, "other failures", j);
    if (r->attempts > j->attempts || r->attempts < j->attempts_stored)
        return fprintf(stderr, "attempts %u, %u to %u\n", r->attempts, j->attempts_stored,
                       j->attempts),
               stored_wrong(w, "other attempts", j);
    if (!w->fresh)
        return true;
    j->attempts = j->attempts_least = j->attempts_stored = r->attempts;
    j->failures = j->nacks = r->failures;
    return true;
}

/* The disk has it; the queue has it as dead, or not. */
static bool same_life(struct stored_world *w, struct stored_job *j, const due_record *r)
{
    bool dead = r->cause != 0;

    if (dead != j->laid)
        return stored_wrong(w, "dead in the queue, or on the disk, alone", j);
    if (dead != j->dead && !j->mortal)
        return stored_wrong(w, dead ? "it is dead" : "it is not dead", j);
    if (!dead && j->doomed)
        return stored_wrong(w, "it should have died", j);
    if (dead && !j->mortal && j->cause != 0 && (r->cause != j->cause || r->died_ns != j->died))
        return stored_wrong(w, "it died otherwise", j);
    j->dead = dead;
    j->cause = r->cause;
    j->died = r->died_ns;
    j->doomed = false;
    j->mortal = !dead && spent(j) && j->leased_until == INT64_MIN;
    return true;
}

/* The job is in the queue: is it on the disk too, as it was told? */
static bool present(struct stored_world *w, struct stored_job *j, const due_info *info)
{
    bool plain = j->plain && !j->loose && !j->mortal;
    due_record r;

    if (!j->in && !j->unsure && !j->dirty)
        return stored_wrong(w, "it is back though it was gone", j);
    if (!memory_disk_find(w->disk, j->id, &r))
        return stored_wrong(w, "the queue has it, and the disk has not", j);
    if (!time_known(j, r.until_ns, r.deadline_ns, r.cause != 0))
        return fprintf(stderr, "until %lld deadline %lld\n", (long long)r.until_ns,
                       (long long)r.deadline_ns),
               print_times(j), stored_wrong(w, "the disk has another time", j);
    if (plain && info != NULL && info->deadline_ns != r.until_ns)
        return stored_wrong(w, "the queue has another time than the disk", j);
    if (info != NULL && info->deadline_ns != r.until_ns) /* since a lease has ended */
        add_time(j, info->deadline_ns, r.deadline_ns, false);
    if (r.priority != j->priority || (info != NULL && info->topic != w->topic[j->topic]))
        return stored_wrong(w, "another priority or topic", j);
    if (!length_known(j, r.len) || (info != NULL && info->len != r.len))
        return stored_wrong(w, "another length", j);
    if (!same_counts(w, j, &r) || !same_life(w, j, &r))
        return false;
    j->in = true;
    return true;
}

static bool absent(struct stored_world *w, struct stored_job *j)
{
    if (j->in && !j->unsure && !j->dirty)
        return stored_wrong(w, "it is lost", j);
    if (memory_disk_find(w->disk, j->id, NULL))
        return stored_wrong(w, "the disk has it, and the queue has not", j);
    j->in = j->dead = j->mortal = j->doomed = false;
    return true;
}

static bool resolve_one(struct stored_world *w, struct stored_job *j)
{
    due_info info;
    int rc = due_find(w->q, j->id, &info);
    bool right;

    if (rc == DUE_EBUSY && j->leased_until == INT64_MIN && !j->lapsing && (j->in || j->unsure))
        return stored_wrong(w, "somebody has it who has not", j);
    if (rc == DUE_ENOENT && j->laid)
        right = present(w, j, NULL);
    else if (rc == 0 || (rc == DUE_EBUSY && (j->in || j->unsure)))
        right = present(w, j, rc == 0 ? &info : NULL);
    else if (rc == DUE_ENOENT || rc == DUE_EBUSY)
        right = absent(w, j);
    else
        return stored_wrong(w, "it cannot be asked for", j);
    j->unsure = j->dirty = j->shaky = false;
    return right;
}

/* Has the store lost something, and not said so yet?  It does when it is next renewed. */
static bool lost(struct stored_world *w)
{
    due__lock_acquire(&w->q->commits->key); /* who was told has seen to it */
    bool yes = memory_store_lock(w->store)->lost;

    pthread_mutex_unlock(&w->disk->lock);
    due__lock_release(&w->q->commits->key);
    return yes;
}

/* Nothing is on its way, and what the store had lost is mended. */
static bool settled(struct stored_world *w)
{
    due_poll(w->q, NULL); /* leases that have ended */
    for (int i = 0; i < 20000; i++) {
        int rc = due_flush(w->q, DUE_S(20));

        if (rc != 0)
            return stored_wrong(w, "it cannot be flushed", NULL);
        if (!lost(w) && stats(w).unsettled == 0 &&
            due__commit_mended(w->q, due__monotonic_now() + DUE_S(20)) == 0 &&
            stats(w).unsettled == 0)
            return true;
        crew_sleep(DUE_US(200));
    }
    return stored_wrong(w, "it never settles", NULL);
}

static int show(void *ctx, const due_record *r)
{
    struct stored_world *w = ctx;

    if (stored_find(w, r->id) == NULL)
        stored_wrong(w, "a job on the disk that nobody put there", NULL);
    return 0;
}

static bool counts(struct stored_world *w)
{
    struct due_stats s = stats(w);
    uint64_t in = 0;
    uint64_t dead = 0;

    for (int i = 0; i < w->made; i++) {
        in += w->job[i].in;
        dead += w->job[i].in && w->job[i].dead;
    }
    if (s.waiting + s.leased + s.dead != in || s.dead != dead)
        return stored_wrong(w, "the stats count others", NULL);
    if (memory_disk_jobs(w->disk) != in)
        return stored_wrong(w, "the disk has another number", NULL);
    if ((w->pattern & STORED_BOUNDED) && due__load_seq(&w->q->used) != in - dead)
        return stored_wrong(w, "room is lost or found", NULL);
    memory_disk_each(w->disk, show, w);
    return w->wrong == NULL;
}

/* Each waiting job is listed once. */
static bool listed(struct stored_world *w)
{
    due_info info[32];
    uint64_t cursor = 0;
    int n;

    for (int i = 0; i < w->made; i++)
        w->job[i].seen = false;
    while ((n = due_list(w->q, &cursor, info, 32)) > 0) {
        for (int i = 0; i < n; i++) {
            struct stored_job *j = stored_find(w, info[i].id);

            if (j == NULL || j->seen || !j->in || j->dead)
                return stored_wrong(w, "it is listed, and should not be", j);
            j->seen = true;
        }
    }
    return true;
}

/* The dead are listed once each, as they died. */
static bool list_dead(struct stored_world *w)
{
    due_dead dead[32];
    uint64_t cursor = 0;
    int n;

    for (int i = 0; i < w->made; i++)
        w->job[i].laid = false;
    while ((n = due_list_dead(w->q, &cursor, dead, 32)) > 0) {
        for (int i = 0; i < n; i++) {
            struct stored_job *j = stored_find(w, dead[i].id);

            if (j == NULL || j->laid)
                return stored_wrong(w, "listed as dead, and should not be", j);
            j->laid = true;
            if (dead[i].attempts > j->attempts || dead[i].attempts < j->attempts_least ||
                dead[i].failures > j->failures || dead[i].failures < j->nacks)
                return stored_wrong(w, "dead with other counts", j);
            if (strcmp(dead[i].reason, dead[i].cause == DUE_CAUSE_BURIED ? "why" : "") != 0)
                return stored_wrong(w, "dead for another reason", j);
        }
    }
    return n == 0 || stored_wrong(w, "the dead are not listed", NULL);
}

bool stored_resolve(struct stored_world *w, bool dice)
{
    throw_dice(w, false);
    if (!settled(w) || !list_dead(w))
        return false;
    stored_note_refused(w);
    stored_keys_begin(w);
    for (int i = 0; i < w->made; i++) {
        if (!resolve_one(w, &w->job[i]))
            return false;
    }
    w->fresh = false;
    bool right = counts(w) && listed(w) && stored_keys_resolve(w);
    throw_dice(w, dice);
    return right;
}

/* ---- Closing ---- */

static bool closed_stats(struct stored_world *w)
{
    struct due_stats s = stats(w);

    if (s.enqueued != s.dequeued + s.cancelled + s.discarded + s.acked + s.kept + s.leased + s.dead)
        return stored_wrong(w, "the stats do not add up", NULL);
    if (s.waiting != 0 || s.lent != 0 || s.mended != 0)
        return stored_wrong(w, "something is left after close", NULL);
    return true;
}

/* What was not flushed may be lost, or done. */
static void forget(struct stored_world *w)
{
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        j->unsure |= j->dirty || (j->shaky && j->in);
        j->dirty = j->shaky = j->lapsing = j->revoked = false;
        j->leased_until = INT64_MIN;
        j->plain = true;
        j->doomed = false;
        j->mortal |= spent(j) && !j->dead;
        j->attempts_least = j->attempts_stored;
    }
}

bool stored_close(struct stored_world *w, bool crash, int64_t timeout_ns)
{
    if (w->pattern & STORED_LOSES) { /* what it has lost must be mended before that */
        if (!stored_resolve(w, false))
            return false;
    }
    if (crash)
        memory_store_crash(w->store);
    while (w->held_count > 0)
        due_job_done(&w->held[--w->held_count]);
    if (due_close(w->q, DUE_CLOSE_DISCARD, timeout_ns) != 0)
        if (due_close(w->q, DUE_CLOSE_DISCARD, DUE_S(20)) != 0)
            return stored_wrong(w, "it does not close", NULL);
    bool right = closed_stats(w);
    if (due_free(w->q) != 0)
        return stored_wrong(w, "it is not freed", NULL);
    if (atomic_load(&w->memory.live) != 0 || atomic_load(&w->memory.bad) != 0)
        return stored_wrong(w, "memory is left", NULL);
    stored_note_refused(w);
    forget(w);
    if (memory_disk_wrong(w->disk) != NULL)
        return stored_wrong(w, memory_disk_wrong(w->disk), NULL);
    return right;
}
