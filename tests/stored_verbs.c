/* stored_verbs.c - the steps of stored_model.c, on the queue and on what is known of its jobs. */
#include <string.h>

#include "stored_world.h"

/* ---- What is known ---- */

static bool refused(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_ENOSPC || rc == DUE_ESTORE;
}

static bool asynchronous(const struct stored_world *w)
{
    return (w->pattern & STORED_ASYNC) != 0;
}

static bool leased(const struct stored_world *w, const struct stored_job *j)
{
    return j->leased_until > w->now;
}

/* Somebody may have it, or its change may be under way. */
static bool restless(const struct stored_job *j)
{
    return j->unsure || j->dirty || j->shaky || j->lapsing;
}

static void add_time(struct stored_job *j, int64_t until, int64_t deadline, bool only)
{
    if (only)
        j->times = 0;
    if (j->times == STORED_TIMES) { /* an old one less */
        memmove(j->time, j->time + 1, (STORED_TIMES - 1) * sizeof j->time[0]);
        j->times--;
    }
    j->time[j->times++] = (struct stored_time){ until, deadline };
}

/* The same of one that was nacked: with whichever deadline it had, the one wanted last. */
static void add_nacked(struct stored_job *j, int64_t until, bool only)
{
    struct stored_time was[STORED_TIMES];
    int n = j->times;

    memcpy(was, j->time, sizeof was);
    for (int i = only ? n - 1 : 0; i < n; i++)
        add_time(j, until, was[i].deadline, only);
}

static bool ripe(const struct stored_world *w, const struct stored_job *j, bool surely)
{
    bool some = false;
    bool all = true;

    for (int i = 0; i < j->times; i++) {
        some |= j->time[i].until <= w->now;
        all &= j->time[i].until <= w->now;
    }
    return surely ? all : some;
}

static void gone(struct stored_world *w, struct stored_job *j, bool async)
{
    j->in = false;
    j->unsure = false;
    j->dirty = async && asynchronous(w);
    j->leased_until = INT64_MIN;
}

static struct stored_job *some_job(struct stored_world *w, uint32_t n)
{
    if (w->made == 0)
        return NULL;
    int recent = w->made < 40 ? w->made : 40;
    return &w->job[w->made - 1 - (int)(n % (uint32_t)recent)];
}

/* ---- Putting in ---- */

static struct stored_job *new_job(struct stored_world *w, uint64_t value, due_spec *spec,
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
    stored_payload(j, bytes, &spec->len);
    spec->data = bytes;
    j->loose = spec->at_ns == 0 && delay == 0;
    int64_t at = spec->at_ns != 0 ? spec->at_ns : w->now + delay;
    add_time(j, at, at, true);
    return j;
}

/* What became of the next job that was put in. */
static void keep_job(struct stored_world *w, due_id id, bool in, bool unsure)
{
    struct stored_job *j = &w->job[w->made++];

    j->id = id;
    j->in = in;
    j->unsure = unsure;
    j->dirty = in && asynchronous(w);
}

static bool enqueue(struct stored_world *w, uint64_t value)
{
    unsigned char bytes[128];
    due_spec spec;
    due_id id = { { 0 } };

    if (w->made == STORED_ROOM)
        return true;
    new_job(w, value, &spec, bytes);
    int rc = due_enqueue(w->q, &spec, 0, &id);
    if (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED))
        return true;
    if (rc != 0 && rc != DUE_EINDOUBT && !refused(rc))
        return stored_wrong(w, "an enqueue answers otherwise", NULL);
    keep_job(w, id, rc == 0 || rc == DUE_EINDOUBT, rc == DUE_EINDOUBT);
    return true;
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
        new_job(w, value * (uint64_t)(i + 3), &spec[i], bytes[i]);
    w->made = first;
    int rc = due_enqueue_batch(w->q, spec, (size_t)count, 0, id);
    if (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED))
        return true;
    if (rc == 0 || (rc < 0 && rc != DUE_EINDOUBT && !refused(rc)))
        return stored_wrong(w, "a batch answers otherwise", NULL);
    for (int i = 0; i < count; i++)
        keep_job(w, id[i], rc == DUE_EINDOUBT || i < rc, rc == DUE_EINDOUBT);
    return true;
}

/* ---- Taking out ---- */

/* A job was handed out: may it have been? */
static bool handed(struct stored_world *w, const due_job *job, bool for_good)
{
    struct stored_job *j = stored_find(w, job->id);
    unsigned char bytes[128];
    size_t len;

    if (j == NULL)
        return stored_wrong(w, "a job that was never put in", NULL);
    stored_payload(j, bytes, &len);
    if (job->len != len || memcmp(job->data, bytes, len) != 0)
        return stored_wrong(w, "other bytes", j);
    if (job->topic != w->topic[j->topic] || job->priority != j->priority)
        return stored_wrong(w, "another topic or priority", j);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "handed out though it was gone", j);
    if (leased(w, j) && !restless(j))
        return stored_wrong(w, "handed out though it is reserved", j);
    if (!ripe(w, j, false))
        return stored_wrong(w, "handed out early", j);
    if (job->failures > j->failures + 1000 || (!for_good && job->attempts > j->attempts + 1))
        return stored_wrong(w, "too many attempts", j);
    return true;
}

/* Nothing was there: is nothing due? */
static bool nothing(struct stored_world *w, int topic)
{
    stored_note_refused(w);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic < 0 || j->topic == topic) && j->in && !restless(j) && !leased(w, j) &&
            ripe(w, j, true))
            return stored_wrong(w, "held back", j);
    }
    return true;
}

/* A call that takes has failed: it may have any that is due still. */
static void shake(struct stored_world *w)
{
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((j->in || j->unsure) && ripe(w, j, false))
            j->shaky = true;
    }
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
    if (rc == DUE_ESTORE || (many && rc > 0))
        shake(w); /* of a batch some may be in doubt */
    if (rc < 0)
        return rc == DUE_ESTORE || stored_wrong(w, "a dequeue answers otherwise", NULL);
    for (int i = 0; i < (many ? rc : 1); i++) {
        if (!handed(w, &job[i], true))
            return false;
        gone(w, stored_find(w, job[i].id), false);
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
    if (rc < 0)
        return rc == DUE_ESTORE || stored_wrong(w, "a reserve answers otherwise", NULL);
    if (!handed(w, &job, false))
        return false;
    struct stored_job *j = stored_find(w, job.id);
    j->in = true;
    j->unsure = false;
    j->plain = j->lapsing = false;
    j->attempts++;
    j->failures++; /* unless it is acked */
    j->leased_until = w->now + lease;
    w->held[w->held_count++] = job;
    return true;
}

/* One that is held, out of the list; *@job has it. */
static struct stored_job *let_go(struct stored_world *w, uint32_t n, due_job *job, bool *valid)
{
    if (w->held_count == 0)
        return NULL;
    int at = (int)(n % (uint32_t)w->held_count);
    struct stored_job *j = stored_find(w, w->held[at].id);

    *job = w->held[at];
    *valid = true;
    w->held[at] = w->held[--w->held_count];
    for (int i = 0; i < w->held_count; i++) /* a later lease of the same job */
        *valid = *valid && !(due_id_equal(w->held[i].id, job->id) && w->held[i].token > job->token);
    return j;
}

/* An answer of ack or nack, besides 0.  True: that is all of it. */
static bool answer(struct stored_world *w, struct stored_job *j, due_job *job, int rc, bool valid,
                   bool *right)
{
    *right = true;
    if (rc == DUE_ESTALE) {
        if (valid && leased(w, j) && j->in && !restless(j))
            *right = stored_wrong(w, "stale though it is reserved", j);
        return true;
    }
    if (refused(rc)) {
        w->held[w->held_count++] = *job;
        return true;
    }
    if ((rc == 0 || rc == DUE_EINDOUBT) && (!valid || !leased(w, j)))
        *right = stored_wrong(w, "a stale lease was heard", j);
    else if (rc != 0 && rc != DUE_EINDOUBT)
        *right = stored_wrong(w, "a lease is answered otherwise", j);
    return !*right;
}

/* Its holder's answer has removed it. */
static void removed(struct stored_world *w, struct stored_job *j, int rc)
{
    int64_t until = j->leased_until;

    gone(w, j, true);
    j->leased_until = until;
    j->unsure = rc == DUE_EINDOUBT;
    j->lapsing = j->unsure || j->dirty;
}

static bool ack(struct stored_world *w, uint32_t n)
{
    bool valid;
    bool right;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    int rc = due_ack(&job);
    if (answer(w, j, &job, rc, valid, &right))
        return right;
    removed(w, j, rc);
    return true;
}

static bool nack(struct stored_world *w, uint32_t n, uint64_t value)
{
    int64_t delay = (int64_t)(value & 0x3f);
    bool valid;
    bool right;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    int rc = due_nack(&job, delay);
    if (answer(w, j, &job, rc, valid, &right))
        return right;
    if (j->revoked && !j->unsure) {
        removed(w, j, rc);
        return true;
    }
    bool sure = rc == 0 && !asynchronous(w);
    add_nacked(j, w->now + delay, sure && !restless(j));
    j->shaky |= !sure;
    j->lapsing |= !sure;
    j->nacks += sure;
    j->plain = sure && !restless(j);
    if (sure)
        j->leased_until = INT64_MIN;
    return true;
}

static bool extend(struct stored_world *w, uint32_t n, uint64_t value)
{
    int64_t lease = 1 + (int64_t)(value & 0x7f);
    bool valid;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    w->held[w->held_count++] = job;
    int rc = due_extend(&w->held[w->held_count - 1], lease);
    if (rc == 0 && (!valid || !leased(w, j)))
        return stored_wrong(w, "a stale lease was extended", j);
    if (rc == DUE_ESTALE && valid && leased(w, j) && j->in && !restless(j))
        return stored_wrong(w, "stale though it is reserved", j);
    if (rc == 0)
        j->leased_until = w->now + lease;
    return rc == 0 || rc == DUE_ESTALE || stored_wrong(w, "an extend answers otherwise", j);
}

static bool done(struct stored_world *w, uint32_t n)
{
    bool valid;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    due_job_done(&job);
    j->lapsing |= leased(w, j);
    return true;
}

/* ---- By name ---- */

/* An answer other than 0 and DUE_EINDOUBT: may it be? */
static bool no(struct stored_world *w, const struct stored_job *j, int rc)
{
    if (rc == DUE_ENOENT && j->in && !restless(j))
        return stored_wrong(w, "not found though it is there", j);
    if (rc == DUE_EBUSY && !leased(w, j) && !restless(j))
        return stored_wrong(w, "busy though nobody has it", j);
    return rc == DUE_ENOENT || rc == DUE_EBUSY || refused(rc) ||
           stored_wrong(w, "a named job answers otherwise", j);
}

static bool cancel(struct stored_world *w, uint32_t n, bool lent)
{
    struct stored_job *j = some_job(w, n);
    due_job job = { .queue = NULL };

    if (j == NULL)
        return true;
    int rc = due_cancel(w->q, j->id, lent ? &job : NULL);
    stored_note_refused(w);
    if (rc == DUE_EBUSY) {
        j->unsure |= restless(j) || !leased(w, j); /* it may be marked, or not */
        j->revoked |= leased(w, j);
    }
    if (rc != 0 && rc != DUE_EINDOUBT)
        return no(w, j, rc);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "cancelled though it was gone", j);
    if (leased(w, j) && !restless(j))
        return stored_wrong(w, "cancelled though it is reserved", j);
    gone(w, j, !lent);
    j->unsure = rc == DUE_EINDOUBT;
    if (lent && rc == 0)
        due_job_done(&job);
    return true;
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
        return no(w, j, rc);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "moved though it was gone", j);
    bool sure = rc == 0 && !asynchronous(w);
    if (sure) {
        j->in = true;
        j->unsure = false;
    }
    add_time(j, at, at, sure);
    j->plain = sure;
    j->shaky |= !sure;
    return true;
}

static bool clear(struct stored_world *w, uint32_t n)
{
    int topic = n % 3 == 0 ? DUE_ALL_TOPICS : (int)(n % STORED_TOPICS);
    int rc = due_clear(w->q, topic == DUE_ALL_TOPICS ? topic : w->topic[topic], NULL);

    stored_note_refused(w);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic != DUE_ALL_TOPICS && j->topic != topic) || (!j->in && !j->unsure))
            continue;
        if (leased(w, j) && !restless(j))
            continue;
        if (rc != 0 || restless(j)) {
            j->unsure = j->shaky = true;
        } else {
            gone(w, j, true);
        }
    }
    return rc == 0 || rc == DUE_EINDOUBT || refused(rc) ||
           stored_wrong(w, "clear answers otherwise", NULL);
}

/* ---- The whole queue ---- */

static bool flush(struct stored_world *w)
{
    int rc = due_flush(w->q, DUE_MS(4));

    if (rc != 0)
        return rc == DUE_ETIMEDOUT || stored_wrong(w, "a flush answers otherwise", NULL);
    stored_note_refused(w);
    for (int i = 0; i < w->made; i++)
        w->job[i].dirty = false;
    return true;
}

static bool advance(struct stored_world *w, uint32_t n)
{
    w->now += 1 + (int64_t)(n % 60);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if (j->leased_until == INT64_MIN || leased(w, j))
            continue;
        add_time(j, j->leased_until, j->time[j->times - 1].deadline, false); /* due when it ended */
        j->leased_until = INT64_MIN;
        j->lapsing = j->unsure || j->dirty;
        if (j->revoked && j->in && !j->unsure) {
            gone(w, j, true);
            j->unsure = true; /* nobody waits until the store has it too */
        }
    }
    return due_clock_turn_to(w->clock, w->now) == 0;
}

static bool reopen(struct stored_world *w, uint64_t value, bool crash)
{
    static const int64_t timeouts[] = { 0, DUE_MS(1), DUE_S(5), DUE_S(20) };

    return stored_close(w, crash, timeouts[value % (crash ? 2 : 4)]) && stored_open(w) &&
           stored_resolve(w, true);
}

static bool lose(struct stored_world *w, uint32_t n)
{
    if (!(w->pattern & STORED_LOSES))
        return true;
    if (!stored_resolve(w, true))
        return false;
    memory_disk_lose(w->disk, n % 7 == 0 ? SIZE_MAX : 1 + n % 7);
    return enqueue(w, n) && stored_resolve(w, true);
}

bool stored_apply(struct stored_world *w, unsigned verb, uint32_t n, uint64_t value)
{
    switch ((enum stored_verb)verb) {
    case ENQUEUE:
        return enqueue(w, value);
    case BATCH:
        return batch(w, n, value);
    case DEQUEUE:
        return dequeue(w, n, false);
    case DEQUEUE_BATCH:
        return dequeue(w, n, true);
    case RESERVE:
        return reserve(w, n, value);
    case ACK:
        return ack(w, n);
    case NACK:
        return nack(w, n, value);
    case EXTEND:
        return extend(w, n, value);
    case DONE:
        return done(w, n);
    case CANCEL:
        return cancel(w, n, false);
    case CANCEL_LENT:
        return cancel(w, n, true);
    case RESCHEDULE:
        return reschedule(w, n, value, false);
    case PROMOTE:
        return reschedule(w, n, value, true);
    case CLEAR:
        return clear(w, n);
    case FLUSH:
        return flush(w);
    case ADVANCE:
        return advance(w, n);
    case REOPEN:
        return reopen(w, value, false);
    case CRASH:
        return reopen(w, value, true);
    case RESOLVE:
        return stored_resolve(w, true);
    case LOSE:
        return lose(w, n);
    default:
        return true;
    }
}
