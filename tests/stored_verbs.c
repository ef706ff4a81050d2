/* stored_verbs.c - the steps of stored_model.c, on the queue and on what is known of its jobs. */
#include <string.h>

#include "crew.h"
#include "stored_known.h"

/* ---- Putting in ---- */

struct stored_job *stored_new_job(struct stored_world *w, uint64_t value, due_spec *spec,
                                  unsigned char *bytes)
{
    struct stored_job *j = &w->job[w->made];
    int64_t delay = (int64_t)(value >> 8 & 0xff);

    *j = (struct stored_job){ .number = w->made, .leased_until = INT64_MIN, .plain = true };
    j->topic = (int)(value % STORED_TOPICS);
    j->priority = (int)(value >> 4 & 3);
    *spec =
        (due_spec){ .size = DUE_SPEC_INIT, .topic = w->topic[j->topic], .priority = j->priority };
    if (value >> 16 & 1)
        spec->at_ns = 1 + w->now / 2 + delay;
    else
        spec->delay_ns = delay;
    if ((value >> 17 & 3) == 0) {
        j->retry = (due_retry){ .kind = DUE_RETRY_FIXED,
                                .attempts_max = 1 + (uint32_t)(value >> 19 & 1),
                                .delay_ns = 7 };
        spec->retry = &j->retry;
    }
    add_content(j, j->number, true);
    stored_payload(j->number, bytes, &spec->len);
    spec->data = bytes;
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
    unsigned char bytes[128];
    due_spec spec;

    if (w->made == STORED_ROOM)
        return true;
    stored_new_job(w, value, &spec, bytes);
    return stored_put(w, &spec);
}

static bool batch(struct stored_world *w, uint32_t n, uint64_t value)
{
    unsigned char bytes[20][128];
    due_spec spec[20];
    due_id id[20];
    int count = 2 + (int)(n % 19);

    if (w->made + count > STORED_ROOM)
        return true;
    memset(id, 0, sizeof id);
    int first = w->made;
    for (int i = 0; i < count; i++, w->made++)
        stored_new_job(w, value * (uint64_t)(i + 3), &spec[i], bytes[i]);
    w->made = first;
    int rc = due_enqueue_batch(w->q, spec, (size_t)count, 0, id);
    if (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED))
        return true;
    if (rc == 0 || (rc < 0 && rc != DUE_EINDOUBT && !refused(rc)))
        return stored_wrong(w, "a batch answers otherwise", NULL);
    for (int i = 0; i < count; i++)
        stored_keep_job(w, id[i], rc == DUE_EINDOUBT || i < rc, rc == DUE_EINDOUBT);
    return settle(w);
}

/* ---- Taking out ---- */

/* Is the time at which it is handed out known, and does nothing keep it back? */
static bool stands(const struct stored_job *j)
{
    return j->plain && !j->loose && j->times == 1 && !restless(j);
}

/* Of jobs of one deadline. */
static bool before_equal(const struct stored_world *w, const struct stored_job *a,
                         const struct stored_job *b)
{
    return a->priority > b->priority ||
           (storeless(w) && a->priority == b->priority && a->arrival < b->arrival);
}

/* @j was handed out: should another one of its topic have come before it? */
static bool in_order(struct stored_world *w, const struct stored_job *j)
{
    int64_t until = j->time[0].until;

    for (int i = 0; stands(j) && i < w->made; i++) {
        const struct stored_job *k = &w->job[i];

        if (!k->in || k->dead || k->topic != j->topic || leased(w, k) || !stands(k) ||
            k->round_step == w->steps) /* taken by the same call */
            continue;
        if (k->time[0].until < until || (k->time[0].until == until && before_equal(w, k, j)))
            return fprintf(
                       stderr,
                       "handed out: job %d, until %lld priority %d arrival %llu; %lld %d %llu\n",
                       j->number, (long long)until, j->priority, (unsigned long long)j->arrival,
                       (long long)k->time[0].until, k->priority, (unsigned long long)k->arrival),
                   stored_wrong(w, "it should have been handed out first", k);
    }
    return true;
}

static bool known_bytes(const struct stored_job *j, const due_job *job)
{
    unsigned char bytes[128];
    size_t len;

    for (int i = 0; i < j->contents; i++) {
        stored_payload(j->content[i], bytes, &len);
        if (job->len == len && memcmp(job->data, bytes, len) == 0)
            return true;
    }
    return false;
}

/* Its own, at which it was to be handed out for the first time, or which its round began with: it
 * tells which round it is in. */
static bool known_deadline(struct stored_world *w, struct stored_job *j, const due_job *job)
{
    int left = 0;

    if (j->loose)
        return true;
    bool another = stored_round_may_be(w, j, job->deadline_ns);
    for (int i = 0; i < j->times; i++) {
        j->time[left] = j->time[i];
        left += j->time[i].deadline == job->deadline_ns;
    }
    if (left > 0 || another)
        j->times = left;
    if (left == 0 && another)
        add_time(j, job->deadline_ns, job->deadline_ns, true);
    j->rounding = false;
    return left > 0 || another;
}

/* A job was handed out: may it have been? */
static bool handed(struct stored_world *w, const due_job *job, bool for_good)
{
    struct stored_job *j = stored_find(w, job->id);

    if (j == NULL)
        return stored_wrong(w, "a job that was never put in", NULL);
    if (!known_bytes(j, job))
        return stored_wrong(w, "other bytes", j);
    if (job->topic != w->topic[j->topic] || job->priority != j->priority)
        return stored_wrong(w, "another topic or priority", j);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "handed out though it was gone", j);
    if (leased(w, j) && !restless(j))
        return stored_wrong(w, "handed out though it is reserved", j);
    if (!ripe(w, j, false))
        return stored_wrong(w, "handed out early", j);
    if (j->dead && !j->mortal)
        return stored_wrong(w, "handed out though it is dead", j);
    if (job->failures > j->failures || job->failures < j->nacks)
        return fprintf(stderr, "failures %u, %u to %u\n", job->failures, j->nacks, j->failures),
               stored_wrong(w, "handed out with other failures", j);
    if (job->attempts > j->attempts + !for_good || job->attempts < j->attempts_least + !for_good)
        return stored_wrong(w, "handed out with other attempts", j);
    if (j->retry.attempts_max > 0 && job->attempts > j->retry.attempts_max - for_good)
        return stored_wrong(w, "handed out too often", j);
    if (!known_deadline(w, j, job))
        return stored_wrong(w, "handed out with another deadline", j);
    return in_order(w, j);
}

/* Nothing was there: is nothing due? */
static bool nothing(struct stored_world *w, int topic)
{
    stored_note_refused(w);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic < 0 || j->topic == topic) && j->in && !j->dead && !restless(j) &&
            !leased(w, j) && ripe(w, j, true))
            return stored_wrong(w, "held back", j);
    }
    return true;
}

/* A call that takes has failed: it may have any that is due still. */
static void shake(struct stored_world *w)
{
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((!j->in && !j->unsure) || !ripe(w, j, false) ||
            ((j->dead || leased(w, j)) && !restless(j)))
            continue;
        j->shaky = true;
        j->mortal |= spent(j); /* it is buried rather than handed out */
        if (j->every > 0)
            stored_next_round(w, j, false);
        j->attempts += j->retry.attempts_max > 0;
    }
}

/* It was taken for good. */
static void taken(struct stored_world *w, struct stored_job *j)
{
    if (j->every == 0) {
        gone(w, j, false, true);
        return;
    }
    j->dirty = j->shaky = j->lapsing = j->mortal = false; /* the store has all that came before */
    stored_next_round(w, j, !j->revoked);
    j->unsure = j->revoked;
}

static bool dequeue(struct stored_world *w, uint32_t n, bool many)
{
    due_job job[8];
    int topic = n % 4 == 3 ? -1 : (int)(n % 4);
    int rc = many        ? due_dequeue_batch(w->q, NULL, 0, job, 1 + n % 8, 0)
             : topic < 0 ? due_dequeue(w->q, job, 0)
                         : due_dequeue_from(w->q, &w->topic[topic], 1, job, 0);

    stored_note_refused(w);
    if (rc == DUE_EAGAIN)
        return nothing(w, many ? -1 : topic);
    if (rc < 0 || (many && rc > 0 && !storeless(w)))
        shake(w); /* of a batch some may be in doubt */
    if (rc < 0)
        return refused(rc) || stored_wrong(w, "a dequeue answers otherwise", NULL);
    for (int i = 0; i < (many ? rc : 1); i++) {
        if (!handed(w, &job[i], true))
            return false;
        taken(w, stored_find(w, job[i].id));
        due_job_done(&job[i]);
    }
    return true;
}

static bool reserve(struct stored_world *w, uint32_t n, uint64_t value)
{
    int64_t lease = 1 + (int64_t)(value & 0x7f);
    due_job job;

    if (w->held_count == STORED_HELD)
        return true;
    int rc = n % 4 == 0 ? due_reserve_batch(w->q, NULL, 0, &job, 1, lease, 0)
                        : due_reserve(w->q, &job, lease, 0);
    stored_note_refused(w);
    if (rc == DUE_EAGAIN)
        return nothing(w, -1);
    if (rc < 0) {
        shake(w); /* a hand-over of one with a limit is written down first */
        return refused(rc) || stored_wrong(w, "a reserve answers otherwise", NULL);
    }
    if (!handed(w, &job, false))
        return false;
    struct stored_job *j = stored_find(w, job.id);
    j->in = true;
    j->unsure = false;
    j->plain = j->lapsing = false;
    j->dead = j->mortal = j->doomed = false;
    j->token = job.token;
    j->attempts = j->attempts_least = job.attempts;
    if (j->retry.attempts_max > 0 && !(w->pattern & STORED_LOSES)) /* else put again as it was */
        j->attempts_stored = job.attempts;
    j->failures = job.failures + 1; /* unless it is acked */
    j->leased_until = w->now + lease;
    j->arrival = w->arrivals++; /* when it comes again because that has ended */
    w->held[w->held_count++] = job;
    return true;
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
    j->doomed = j->attempts_least == j->attempts && spent(j) && !restless(j) && !j->revoked &&
                !(w->pattern & STORED_FULL);
    j->mortal |= spent(j);
    j->lapsing = j->unsure || j->dirty;
    if (j->revoked && j->in && !j->unsure) {
        gone(w, j, true, false);
        stored_key_ended(w, j, false, now);
        j->unsure = !now; /* nobody waits until the store has it too */
    } else if (now && j->doomed) {
        j->doomed = j->mortal = false;
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

static bool advance(struct stored_world *w, uint32_t n, uint64_t value)
{
    bool now = storeless(w) && (value & 1) != 0;

    w->now += 1 + (int64_t)(n % 60);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        now = now && !(j->in && restless(j));
        if (j->leased_until != INT64_MIN && !leased(w, j))
            lapse(w, j, now);
    }
    if (due_clock_turn_to(w->clock, w->now) != 0)
        return stored_wrong(w, "the clock does not turn", NULL);
    return !now || lapsed(w);
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
    return dequeue(w, n, false);
}

static bool take_many(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return dequeue(w, n, true);
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
    [RESERVE] = reserve,
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
    [RESOLVE] = resolve,
    [LOSE] = lose,
};

bool stored_apply(struct stored_world *w, unsigned verb, uint32_t n, uint64_t value)
{
    w->steps++;
    return verb >= VERBS || steps[verb](w, n, value);
}
