/* stored_resolve.c - is everything as stored_world.h was told, in the queue and on the disk? */
#include "model/stored_world.h"

#include <stdio.h>
#include <string.h>

#include "queue/queue.h"
#include "lab/crew.h"
#include "lab/memory_disk.h"
#include "lab/sound.h"
#include "model/stored_known.h"
#include "store/sender.h"

/* ---- One job ---- */

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

/* Of its time limits, the one that the disk has. */
static bool limit_known(struct stored_job *j, const due_record *r)
{
    for (int i = 0; i < j->limits; i++) {
        if (j->limit[i].ttl == r->ttl_ns && j->limit[i].expires == r->expires_ns) {
            add_limit(j, j->limit[i], true);
            return true;
        }
    }
    return false;
}

static void print_times(const struct stored_job *j)
{
    for (int i = 0; i < j->times; i++)
        fprintf(stderr, "  may be %lld, deadline %lld\n", (long long)j->time[i].until,
                (long long)j->time[i].deadline);
}

/* Is this one of the times that it may have?  Then it has it. */
static bool time_known(const struct stored_world *w, struct stored_job *j, int64_t until,
                       int64_t deadline, bool dead)
{
    bool another = (dead || until == deadline) && stored_round_may_be(w, j, deadline);

    /* One that a full store did not let die is tried again a second later, and to debounce it then
     * is to choose the later of that and the new one. */
    another |= (w->pattern & STORED_FULL) && j->key != 0 && until >= DUE_S(1) && until == deadline;
    /* A round that a full store did not take back is put again as due at its own deadline. */
    for (int i = 0; i < j->times && j->every != 0 && stored_fails(w); i++)
        another |= until == deadline && j->time[i].deadline == deadline;
    if (another)
        add_time(j, until, deadline, false);
    for (int i = 0; i < j->times; i++) {
        if ((dead || j->time[i].until == until) && (j->loose || j->time[i].deadline == deadline)) {
            j->time[0] = (struct stored_time){ until, deadline };
            j->times = 1;
            j->rounding = false;
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
    if (dead)
        run_over(j, true);
    j->cause = r->cause;
    j->died = r->died_ns;
    j->doomed = false;
    bool held = j->leased_until != INT64_MIN && !j->lapsing; /* else who had it may have answered */
    j->mortal = !dead && spent(w, j) && !held;
    j->ailing = 0;
    return true;
}

/* What the disk has of a job.  Without one it is what the queue says, and of what it does not say
 * nothing else than should be. */
static bool find_record(struct stored_world *w, const struct stored_job *j, const due_info *info,
                        due_record *r)
{
    if (!storeless(w))
        return memory_disk_find(w->disk, j->id, r);
    const struct stored_time *t = &j->time[j->times - 1];
    size_t len;
    unsigned char bytes[128];
    for (int i = 0; info != NULL && i < j->times; i++)
        t = j->time[i].until == info->deadline_ns ? &j->time[i] : t;
    stored_payload(j->content[j->contents - 1], bytes, &len);
    *r = (due_record){ .until_ns = info != NULL ? info->deadline_ns : t->until,
                       .deadline_ns = j->laid ? j->grave.deadline_ns : t->deadline,
                       .len = info != NULL ? info->len
                              : j->laid    ? j->grave.len
                                           : len,
                       .priority = info != NULL ? info->priority
                                   : j->laid    ? j->grave.priority
                                                : j->priority,
                       .attempts = j->laid ? j->grave.attempts : j->attempts,
                       .failures = j->laid ? j->grave.failures : j->failures,
                       .cause = j->laid ? j->grave.cause : (enum due_cause)0,
                       .died_ns = j->grave.died_ns };
    return true;
}

/* The job is in the queue: is it on the disk too, as it was told? */
static bool present(struct stored_world *w, struct stored_job *j, const due_info *info)
{
    bool plain = j->plain && !j->loose && !j->mortal;
    due_record r = { .until_ns = 0 };

    if (!j->in && !j->unsure && !j->dirty)
        return stored_wrong(w, "it is back though it was gone", j);
    if (!find_record(w, j, info, &r))
        return stored_wrong(w, "the queue has it, and the disk has not", j);
    if (!time_known(w, j, r.until_ns, r.deadline_ns, r.cause != 0))
        return fprintf(stderr, "until %lld deadline %lld\n", (long long)r.until_ns,
                       (long long)r.deadline_ns),
               print_times(j), stored_wrong(w, "the disk has another time", j);
    if (plain && info != NULL && info->deadline_ns != r.until_ns)
        return stored_wrong(w, "the queue has another time than the disk", j);
    if (info != NULL &&
        info->deadline_ns != r.until_ns) { /* a lease has ended, or it did not die */
        add_time(j, info->deadline_ns, r.deadline_ns, false);
        j->plain = false;
    }
    if (r.priority != j->priority || (info != NULL && info->topic != w->topic[j->topic]))
        return stored_wrong(w, "another priority or topic", j);
    if (!length_known(j, r.len) || (info != NULL && info->len != r.len))
        return stored_wrong(w, "another length", j);
    if (!storeless(w) && (r.every_ns != j->every || r.repeat != j->repeat))
        return stored_wrong(w, "it comes again otherwise", j);
    if (!storeless(w) && !limit_known(j, &r))
        return stored_wrong(w, "its time is over otherwise", j);
    if (!same_counts(w, j, &r) || !same_life(w, j, &r))
        return false;
    if (w->fresh && !j->dead && j->group != 0 && r.failures > 0 && r.until_ns != r.deadline_ns)
        j->pass_group = true; /* it is to be tried again */
    j->in = true;
    j->revoked &= leased(w, j);
    return true;
}

static bool absent(struct stored_world *w, struct stored_job *j)
{
    if (j->in && !j->unsure && !j->dirty)
        return stored_wrong(w, "it is lost", j);
    if (!storeless(w) && memory_disk_find(w->disk, j->id, NULL))
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
    j->unsure = j->dirty = j->shaky = j->asked = false;
    j->begun = w->fresh ? 0 : j->begun;
    return right;
}

/* Has the store lost something, and not said so yet?  It does when it is next renewed. */
static bool lost(struct stored_world *w)
{
    if (storeless(w))
        return false;
    due__lock_acquire(&w->q->commits->key); /* who was told has seen to it */
    bool yes = memory_store_lock(w->store)->lost;

    pthread_mutex_unlock(&w->disk->lock);
    due__lock_release(&w->q->commits->key);
    return yes;
}

/* A job whose last lease has ended, or that goes, is with whoever was the last to leave the lock
 * until it is dead, or gone: if that is a thread of the queue's own, no call waits for it. */
bool stored_at_rest(struct stored_world *w)
{
    due_info info;

    for (int i = 0; storeless(w) && !(w->pattern & STORED_NEVER) && i < w->made; i++) {
        const struct stored_job *j = &w->job[i];
        int tries = 0;

        while (j->leased_until == INT64_MIN && due_find(w->q, j->id, &info) == DUE_EBUSY) {
            if (tries++ == 20000)
                return stored_wrong(w, "somebody keeps it who has not got it", j);
            crew_sleep(DUE_US(200));
        }
    }
    return true;
}

/* Nothing is on its way, and what the store had lost is mended. */
static bool settled(struct stored_world *w)
{
    due_poll(w->q, NULL); /* leases that have ended */
    for (int i = 0; i < 20000; i++) {
        int rc = due_flush(w->q, DUE_S(20));

        if (rc != 0)
            return stored_wrong(w, "it cannot be flushed", NULL);
        if (!storeless(w) && due__takings_return(w->q)) /* what nobody has come back for */
            continue;
        if (!lost(w) && stored_stats(w).unsettled == 0 &&
            (storeless(w) || due__commit_mended(w->q, due__monotonic_now() + DUE_S(20)) == 0) &&
            stored_stats(w).unsettled == 0)
            return stored_at_rest(w);
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

/* Who buries gives its room back after the job is dead. */
static bool room_is(struct stored_world *w, uint64_t used)
{
    int tries = storeless(w) && !(w->pattern & STORED_NEVER) ? 20000 : 0;

    while (due__load_seq(&w->q->used) != used && tries-- > 0)
        crew_sleep(DUE_US(200));
    return due__load_seq(&w->q->used) == used;
}

static bool counts(struct stored_world *w)
{
    struct due_stats s = stored_stats(w);
    const char *text = sound_settled_wrong(w->q);
    uint64_t in = 0;
    uint64_t dead = 0;
    uint64_t out = 0;
    bool known = true;

    for (int i = 0; i < w->made; i++) {
        const struct stored_job *j = &w->job[i];

        in += j->in;
        dead += j->in && j->dead;
        out += j->in && leased(w, j);
        known = known && !(j->in && restless(j));
    }
    if (s.unsettled_bytes != 0)
        return stored_wrong(w, "bytes are on no way", NULL);
    if (text != NULL)
        return stored_wrong(w, text, NULL);
    if (known && s.leased != out)
        return stored_wrong(w, "the stats count other leases", NULL);
    if (s.waiting + s.leased + s.dead != in || s.dead != dead)
        return stored_wrong(w, "the stats count others", NULL);
    if (!storeless(w) && memory_disk_jobs(w->disk) != in)
        return stored_wrong(w, "the disk has another number", NULL);
    if ((w->pattern & STORED_BOUNDED) && !room_is(w, in - dead))
        return stored_wrong(w, "room is lost or found", NULL);
    if (!storeless(w))
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
static bool list_dead(struct stored_world *w, uint64_t *count)
{
    due_dead dead[32];
    uint64_t cursor = 0;
    int n;

    *count = 0;

    for (int i = 0; i < w->made; i++)
        w->job[i].laid = false;
    while ((n = due_list_dead(w->q, &cursor, dead, 32)) > 0) {
        for (int i = 0; i < n; i++) {
            struct stored_job *j = stored_find(w, dead[i].id);

            if (j == NULL || j->laid)
                return stored_wrong(w, "listed as dead, and should not be", j);
            j->laid = true;
            ++*count;
            if (j->buried == 0)
                j->buried = w->now + 1;
            j->grave = dead[i];
            if (dead[i].attempts > j->attempts || dead[i].attempts < j->attempts_least ||
                dead[i].failures > j->failures || dead[i].failures < j->nacks)
                return stored_wrong(w, "dead with other counts", j);
            if (strcmp(dead[i].reason, dead[i].cause == DUE_CAUSE_BURIED ? "why" : "") != 0)
                return stored_wrong(w, "dead for another reason", j);
        }
    }
    return n == 0 || stored_wrong(w, "the dead are not listed", NULL);
}

/* Until the dead that are to be discarded are; a thread of the queue's own may be about to. */
static bool buried(struct stored_world *w)
{
    uint64_t count;

    for (int i = 0; i < 20000; i++) {
        if (!list_dead(w, &count))
            return false;
        bool over = stored_stats(w).dead == count &&
                    (stored_fails(w) || !(w->pattern & STORED_CROWDS) || count <= STORED_DEAD_MAX);
        for (int k = 0; over && k < w->made && !stored_fails(w); k++) {
            const struct stored_job *j = &w->job[k];

            over = !(w->pattern & STORED_ROTS) || !j->laid || j->buried > w->now ||
                   w->now < j->grave.died_ns + STORED_DEAD_KEEP_NS;
        }
        if (over || !(w->pattern & (STORED_ROTS | STORED_CROWDS)))
            return true;
        crew_sleep(DUE_US(200));
        if (due_poll(w->q, NULL) < 0)
            break;
    }
    return stored_wrong(w, "dead jobs stay that are too old, or too many", NULL);
}

bool stored_resolve(struct stored_world *w, bool dice)
{
    stored_dice(w, false);
    stored_age(w);
    if (!settled(w) || !buried(w))
        return false;
    stored_note_refused(w);
    stored_keys_begin(w);
    for (int i = 0; i < w->made; i++) {
        if (!resolve_one(w, &w->job[i]))
            return false;
    }
    w->fresh = false;
    bool right = counts(w) && listed(w) && stored_keys_resolve(w);
    stored_dice(w, dice);
    return right;
}
