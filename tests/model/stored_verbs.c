/* stored_verbs.c - the steps of stored_model.c, on the queue and on what is known of its jobs. */
#include <string.h>

#include "lab/crew.h"
#include "model/stored_known.h"

/* ---- Putting in ---- */

struct stored_job *stored_new_job(struct stored_world *w, uint64_t value, struct stored_draft *d)
{
    due_spec *spec = &d->spec;
    due_extra *more = &d->more;
    struct stored_job *j = &w->job[w->made];
    int64_t delay = (int64_t)(value >> 8 & 0xff);

    *j = (struct stored_job){ .number = w->made, .leased_until = INT64_MIN, .plain = true };
    j->topic = (int)(value % STORED_TOPICS);
    j->priority = (int)(value >> 4 & 3);
    *spec = (due_spec){ DUE_SPEC_INIT, .topic = w->topic[j->topic], .priority = j->priority,
                        .more = more };
    *more = (due_extra){ DUE_EXTRA_INIT };
    if (value >> 16 & 1)
        spec->at_ns = 1 + w->now / 2 + delay;
    else
        spec->delay_ns = delay;
    if ((value >> 17 & 3) == 0) {
        j->retry = (due_retry){ .kind = DUE_RETRY_FIXED,
                                .attempts_max = 1 + (uint32_t)(value >> 19 & 1),
                                .delay_ns = 7 };
        more->retry = &j->retry;
    }
    if ((w->pattern & STORED_GATES) && (value >> 22 & 7) < 3) {
        j->group = 1 + (int)(value >> 22 & 7);
        d->bytes[112] = (unsigned char)j->group;
        more->group = d->bytes + 112;
        more->group_len = 1;
    }
    stored_limit_life(w, j, more, value >> 32);
    add_content(j, j->number, true);
    add_head(j, (value >> 26 & 3) == 0 ? j->number % 256 : 0, true);
    stored_headers(j->head[0], d->bytes + 128, &more->headers_len);
    more->headers = more->headers_len > 0 ? d->bytes + 128 : NULL;
    stored_payload(j->number, d->bytes, &spec->len);
    spec->data = d->bytes;
    j->loose = spec->at_ns == 0 && delay == 0 && !storeless(w);
    int64_t at = spec->at_ns != 0 ? spec->at_ns : w->now + delay;
    add_time(j, at, at, true);
    return j;
}

/* What became of the next job that was put in. */
void stored_keep_job(struct stored_world *w, due_id id, bool in, bool unsure)
{
    struct stored_job *j = &w->job[w->made++];

    j->id = id;
    j->arrival = w->arrivals++;
    j->in = in;
    j->unsure = unsure;
    j->dirty = in && asynchronous(w);
}

/* A job without delay that somebody else is to sort in gets its deadline when that is done: where
 * everything is to be known, see to it that it is done now. */
static bool settle(struct stored_world *w)
{
    return !storeless(w) || due_poll(w->q, NULL) >= 0 || stored_wrong(w, "no poll", NULL);
}

bool stored_put(struct stored_world *w, const due_spec *spec)
{
    due_id id = { { 0 } };
    int rc = due_enqueue(w->q, spec, 0, &id);

    if (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED))
        return true;
    if (rc != 0 && rc != DUE_EINDOUBT && !refused(rc))
        return stored_wrong(w, "an enqueue answers otherwise", NULL);
    stored_keep_job(w, id, rc == 0 || rc == DUE_EINDOUBT, rc == DUE_EINDOUBT);
    return settle(w);
}

static bool enqueue(struct stored_world *w, uint64_t value)
{
    struct stored_draft d;

    if (w->made == STORED_ROOM)
        return true;
    stored_new_job(w, value, &d);
    return stored_put(w, &d.spec);
}

static bool batch(struct stored_world *w, uint32_t n, uint64_t value)
{
    static const due_id none;
    struct stored_draft draft[20];
    due_spec spec[20];
    due_id id[20];
    int count = 2 + (int)(n % 19);

    if (w->made + count > STORED_ROOM)
        return true;
    memset(id, 0, sizeof id);
    int first = w->made;
    for (int i = 0; i < count; i++, w->made++) {
        stored_new_job(w, value * (uint64_t)(i + 3), &draft[i]);
        spec[i] = draft[i].spec;
    }
    w->made = first;
    int rc = due_enqueue_batch(w->q, spec, (size_t)count, 0, id);
    if (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED))
        return true;
    if (rc == 0 || (rc < 0 && rc != DUE_EINDOUBT && !refused(rc)))
        return stored_wrong(w, "a batch answers otherwise", NULL);
    for (int i = 0; i < count; i++) { /* who has an id behind those that are in is in doubt */
        bool doubt = i >= rc && !due_id_equal(id[i], none);

        if ((doubt && refused(rc)) || (i < rc && due_id_equal(id[i], none)))
            return stored_wrong(w, "the ids of a batch are others", NULL);
        stored_keep_job(w, id[i], i < rc || doubt, doubt);
    }
    return settle(w);
}

/* ---- By name ---- */

/* An answer other than 0 and DUE_EINDOUBT: may it be? */
static bool no(struct stored_world *w, const struct stored_job *j, int rc, bool moved)
{
    if (rc == DUE_ENOENT && j->in && !(moved && j->dead) && !restless(j))
        return stored_wrong(w, "not found though it is there", j);
    if (rc == DUE_EBUSY && !leased(w, j) && !restless(j))
        return stored_wrong(w, "busy though nobody has it", j);
    return rc == DUE_ENOENT || rc == DUE_EBUSY || refused(rc) ||
           stored_wrong(w, "a named job answers otherwise", j);
}

bool stored_cancelled(struct stored_world *w, struct stored_job *j, int rc, bool lent)
{
    stored_note_refused(w);
    if (rc == DUE_EBUSY) {
        j->unsure |= restless(j) || !leased(w, j); /* it may be marked, or not */
        j->revoked |= leased(w, j);
    }
    if (rc != 0 && rc != DUE_EINDOUBT)
        return no(w, j, rc, false);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "cancelled though it was gone", j);
    if (leased(w, j) && !restless(j))
        return stored_wrong(w, "cancelled though it is reserved", j);
    gone(w, j, !lent, false);
    j->unsure = rc == DUE_EINDOUBT;
    if (j->unsure)
        stored_key_ended(w, j, false, false);
    return true;
}

static bool cancel(struct stored_world *w, uint32_t n, bool lent)
{
    struct stored_job *j = some_job(w, n);
    due_job job = { .queue = NULL };

    if (j == NULL)
        return true;
    int rc = due_cancel(w->q, j->id, lent ? &job : NULL);
    due_job_done(&job);
    return stored_cancelled(w, j, rc, lent);
}

static bool reschedule(struct stored_world *w, uint32_t n, uint64_t value, bool promote)
{
    struct stored_job *j = some_job(w, n);
    int64_t at = promote ? w->now : 1 + w->now / 2 + (int64_t)(value & 0xff);

    if (j == NULL)
        return true;
    int rc = promote ? due_promote(w->q, j->id) : due_reschedule(w->q, j->id, at);
    stored_note_refused(w);
    if (rc != 0 && rc != DUE_EINDOUBT)
        return no(w, j, rc, true);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "moved though it was gone", j);
    if (j->dead && !j->mortal)
        return stored_wrong(w, "moved though it is dead", j);
    bool sure = rc == 0 && !asynchronous(w);
    if (sure) {
        j->in = true;
        j->unsure = false;
    }
    add_time(j, at, at, sure);
    j->arrival = w->arrivals++;
    run_over(j, sure);
    j->plain = sure;
    j->shaky |= !sure;
    return true;
}

static bool clear(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    int topic = n % 3 == 0 ? DUE_ALL_TOPICS : (int)(n % STORED_TOPICS);
    int rc = due_clear(w->q, topic == DUE_ALL_TOPICS ? topic : w->topic[topic], NULL);

    stored_note_refused(w);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic != DUE_ALL_TOPICS && j->topic != topic) || (!j->in && !j->unsure))
            continue;
        if ((leased(w, j) || j->dead) && !restless(j))
            continue;
        if (rc != 0 || restless(j)) {
            j->unsure = j->shaky = true;
        } else {
            gone(w, j, true, false);
        }
    }
    return rc == 0 || rc == DUE_EINDOUBT || refused(rc) ||
           stored_wrong(w, "clear answers otherwise", NULL);
}

/* ---- The whole queue ---- */

static bool flush(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)n;
    (void)value;
    int rc = due_flush(w->q, DUE_MS(4));

    if (rc != 0)
        return rc == DUE_ETIMEDOUT || stored_wrong(w, "a flush answers otherwise", NULL);
    stored_note_refused(w);
    for (int i = 0; i < w->made; i++)
        w->job[i].dirty = false;
    return true;
}

/* A lease has ended that nobody answered for.  @now: what follows from it is seen to at once. */
static void lapse(struct stored_world *w, struct stored_job *j, bool now)
{
    add_nacked(j, j->leased_until, storeless(w)); /* due when it ended */
    j->plain |= storeless(w);
    j->leased_until = INT64_MIN;
    bool last = j->lease_limit > 0 && j->attempts >= j->lease_limit;
    j->doomed = j->attempts_least == j->attempts && last && !restless(j) && !j->revoked &&
                !(w->pattern & STORED_FULL);
    j->mortal |= last || spent(w, j);
    j->lapsing = j->unsure || j->dirty;
    if (j->revoked && j->in && !j->unsure) {
        gone(w, j, true, false);
        stored_key_ended(w, j, false, now);
        j->unsure = !now; /* nobody waits until the store has it too */
    } else if (now && j->doomed) {
        j->doomed = j->mortal = false;
        run_over(j, true);
        j->dead = true;
        j->cause = DUE_CAUSE_ATTEMPTS;
        j->died = w->now;
    }
}

/* Without a store: until what the end of leases brings with it is done, perhaps by a thread of the
 * queue's own. */
static bool lapsed(struct stored_world *w)
{
    uint64_t out = 0;
    uint64_t dead = 0;

    for (int i = 0; i < w->made; i++) {
        out += w->job[i].in && leased(w, &w->job[i]);
        dead += w->job[i].in && w->job[i].dead;
    }
    for (int i = 0; i < 2000; i++) {
        due_poll(w->q, NULL);
        struct due_stats s = stored_stats(w);
        if (s.leased == out && s.dead == dead)
            return true;
        crew_sleep(DUE_US(500));
    }
    return stored_wrong(w, "leases do not end as they should", NULL);
}

/* By the first time that it may have. */
static bool ripe_at(const struct stored_job *j, int64_t now)
{
    return j->time[0].until <= now;
}

static bool advance(struct stored_world *w, uint32_t n, uint64_t value)
{
    bool now = storeless(w) && (value & 1) != 0 && !(w->pattern & STORED_CROWDS);

    int64_t before = w->now;

    w->now += 1 + (int64_t)(n % 60);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        now = now && !(j->in && (restless(j) || stored_overdue(w, j)));
        if (j->leased_until != INT64_MIN && !leased(w, j))
            lapse(w, j, now);
        if (j->times > 0 && !ripe_at(j, before) && ripe_at(j, w->now))
            j->ripened = w->arrivals;
    }
    w->arrivals++;
    if (due_clock_turn_to(w->clock, w->now) != 0)
        return stored_wrong(w, "the clock does not turn", NULL);
    return (!now || lapsed(w)) && stored_at_rest(w); /* who dies then dies at that time */
}

static bool open_again(struct stored_world *w, uint64_t value, bool crash)
{
    static const int64_t timeouts[] = { 0, DUE_MS(1), DUE_S(5), DUE_S(20) };

    if (storeless(w))
        return true;
    return stored_close(w, crash, timeouts[value % (crash ? 2 : 4)]) && stored_open(w) &&
           stored_resolve(w, true);
}

static bool lose(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    if (!(w->pattern & STORED_LOSES))
        return true;
    if (!stored_resolve(w, true))
        return false;
    memory_disk_lose(w->disk, n % 7 == 0 ? SIZE_MAX : 1 + n % 7);
    return enqueue(w, n) && stored_resolve(w, true);
}

/* ---- The table ---- */

static bool put_one(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)n;
    return enqueue(w, value);
}

static bool take_one(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return stored_dequeue(w, n, false);
}

static bool take_many(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return stored_dequeue(w, n, true);
}

static bool cancel_plain(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return cancel(w, n, false);
}

static bool cancel_lent(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return cancel(w, n, true);
}

static bool move(struct stored_world *w, uint32_t n, uint64_t value)
{
    return reschedule(w, n, value, false);
}

static bool promote(struct stored_world *w, uint32_t n, uint64_t value)
{
    return reschedule(w, n, value, true);
}

static bool reopen(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)n;
    return open_again(w, value, false);
}

static bool crash(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)n;
    return open_again(w, value, true);
}

static bool resolve(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)n;
    (void)value;
    return stored_resolve(w, true);
}

static stored_step *const steps[VERBS] = {
    [ENQUEUE] = put_one,
    [BATCH] = batch,
    [DEQUEUE] = take_one,
    [DEQUEUE_BATCH] = take_many,
    [RESERVE] = stored_reserve,
    [ACK] = stored_ack,
    [NACK] = stored_nack,
    [BURY] = stored_bury,
    [EXTEND] = stored_extend,
    [DONE] = stored_done,
    [CANCEL] = cancel_plain,
    [CANCEL_LENT] = cancel_lent,
    [RESCHEDULE] = move,
    [PROMOTE] = promote,
    [CLEAR] = clear,
    [KICK] = stored_kick,
    [KICK_ALL] = stored_kick_all,
    [CLEAR_DEAD] = stored_clear_dead,
    [ENQUEUE_KEY] = stored_put_keyed,
    [ENQUEUE_REPEATING] = stored_put_repeating,
    [FIND_KEY] = stored_find_key,
    [CANCEL_KEY] = stored_cancel_key,
    [UPDATE] = stored_update,
    [FLUSH] = flush,
    [ADVANCE] = advance,
    [REOPEN] = reopen,
    [CRASH] = crash,
    [SET_LIMIT] = stored_limit,
    [PAUSE] = stored_pause,
    [RESUME] = stored_resume,
    [SET_POLICY] = stored_policy,
    [RESOLVE] = resolve,
    [LOSE] = lose,
};

bool stored_apply(struct stored_world *w, unsigned verb, uint32_t n, uint64_t value)
{
    w->steps++;
    bool right = verb >= VERBS || steps[verb](w, n, value);
    stored_age(w);
    return right;
}
