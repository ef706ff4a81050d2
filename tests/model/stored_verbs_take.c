/* stored_verbs_take.c - the steps of stored_model.c that take jobs, and what may be taken when. */
#include "os/atomic.h"
#include "store/sender.h"
#include "queue/queue.h"
#include "model/stored_known.h"
#include "lab/take.h"

#define TRIES 3    /* to have what is on its way out of the store */
#define LATE  1000 /* waits of a few milliseconds for a renewal */

/* Is the time at which it is handed out known, and does nothing keep it back? */
static bool stands(const struct stored_job *j)
{
    return j->plain && !j->loose && j->times == 1 && !restless(j);
}

/* Of jobs of one topic that are due. */
static bool before(const struct stored_world *w, const struct stored_job *a,
                   const struct stored_job *b)
{
    int64_t later = a->time[0].until - b->time[0].until;
    int less = b->priority - a->priority;

    if ((w->pattern & STORED_URGENT) && less != 0)
        return less < 0;
    if (later != 0 || less != 0)
        return later < 0 || (later == 0 && less < 0);
    return storeless(w) && a->arrival < b->arrival;
}

/* @j was handed out: should another one of its topic have come before it? */
static bool in_order(struct stored_world *w, const struct stored_job *j)
{
    int64_t until = j->time[0].until;

    for (int i = 0; stands(j) && i < w->made; i++) {
        const struct stored_job *k = &w->job[i];

        if (!k->in || k->dead || k->topic != j->topic || leased(w, k) || !stands(k) ||
            k->taken_step == w->steps /* taken by the same call */ || k->time[0].until > w->now ||
            !stored_same_limiters(w, k, j))
            continue;
        if (before(w, k, j))
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

static bool known_headers(const struct stored_job *j, const due_job *job)
{
    unsigned char bytes[STORED_BYTES];
    size_t len;

    for (int i = 0; i < j->heads; i++) {
        stored_headers(j->head[i], bytes, &len);
        if (job->headers_len == len && (len == 0 || memcmp(job->headers, bytes, len) == 0))
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

/* A round that a take had begun which was left, and which the store has as ended: the next take for
 * good gets it, also when somebody has had a later one.  Once. */
static bool is_late_round(struct stored_job *j, const due_job *job)
{
    bool late = false;
    int left = 0;

    for (int i = 0; i < j->begun; i++) {
        late |= j->begun_at[i] == job->deadline_ns;
        j->begun_at[left] = j->begun_at[i];
        left += j->begun_at[i] != job->deadline_ns;
    }
    j->begun = left;
    for (int i = 0; i < j->times; i++)
        late &= j->time[i].deadline != job->deadline_ns;
    return late;
}

/* A job was handed out: may it have been? */
static bool handed(struct stored_world *w, const due_job *job, bool for_good)
{
    struct stored_job *j = stored_find(w, job->id);

    if (j == NULL)
        return stored_wrong(w, "a job that was never put in", NULL);
    if (!known_bytes(j, job))
        return stored_wrong(w, "other bytes", j);
    if (!known_headers(j, job))
        return stored_wrong(w, "other headers", j);
    if (job->topic != w->topic[j->topic] || job->priority != j->priority)
        return stored_wrong(w, "another topic or priority", j);
    j->late = for_good && is_late_round(j, job);
    if (j->late)
        return true;
    if ((!j->in && !j->unsure) || (j->every == 0 && j->taken_step == w->steps))
        return stored_wrong(w, "handed out though it was gone", j);
    if (leased(w, j) && !restless(j))
        return stored_wrong(w, "handed out though it is reserved", j);
    if (!ripe(w, j, false))
        return stored_wrong(w, "handed out early", j);
    if (stored_expired(w, j, true) && !j->shaky) /* else it may have been taken in time */
        return stored_wrong(w, "handed out though its time is over", j);
    if (w->paused[j->topic] && !j->shaky) /* else it may have been taken before that */
        return stored_wrong(w, "handed out though its topic is paused", j);
    if (j->dead && !j->mortal)
        return stored_wrong(w, "handed out though it is dead", j);
    if (job->failures > j->failures || job->failures < j->nacks)
        return fprintf(stderr, "failures %u, %u to %u\n", job->failures, j->nacks, j->failures),
               stored_wrong(w, "handed out with other failures", j);
    if (job->attempts > j->attempts + !for_good || job->attempts < j->attempts_least + !for_good)
        return stored_wrong(w, "handed out with other attempts", j);
    uint32_t limit = policy(w, j)->attempts_max;
    if (limit > 0 && job->attempts > limit - for_good)
        return stored_wrong(w, "handed out too often", j);
    if (!known_deadline(w, j, job))
        return stored_wrong(w, "handed out with another deadline", j);
    if (storeless(w))
        j->unsure = j->shaky = j->mortal = j->dead = false;
    return in_order(w, j) && stored_let_through(w, j, for_good && j->every > 0);
}

/* Nothing was there: is nothing due? */
static bool nothing(struct stored_world *w, int topic)
{
    stored_note_refused(w);
    if (!stored_expire(w, topic, true))
        return false;
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic < 0 || j->topic == topic) && !w->paused[j->topic] && j->in && !j->dead &&
            !restless(j) && !leased(w, j) && ripe(w, j, true) && !stored_kept_back(w, j))
            return stored_wrong(w, "held back", j);
    }
    return stored_drained(w, topic);
}

/* What a call that takes and did not get this one may have begun of it, for the next one: a round
 * that ended then, or one more attempt.  The queue takes that back if nobody comes for it, and
 * tells the store so with what is next said of the job. */
static void begun(struct stored_world *w, struct stored_job *j, bool for_good)
{
    if (!for_good)
        j->attempts += policy(w, j)->attempts_max > 0;
    if (!for_good || j->every == 0)
        return;
    for (int i = 0; i < j->times; i++) {
        int k = 0;

        while (k < j->begun && j->begun_at[k] != j->time[i].deadline)
            k++;
        j->begun_at[k] = j->time[i].deadline;
        j->begun += k == j->begun && k < STORED_TIMES - 1;
    }
    if (!j->asked)
        j->asked_ns = w->now;
    j->asked = true;
    stored_next_round(w, j, false);
}

/* It was answered that nothing is there. */
static void left(struct stored_world *w, bool for_good)
{
    for (int i = 0; !storeless(w) && i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((j->in || j->unsure) && ripe(w, j, false) &&
            (restless(j) || (!for_good && !j->dead && !leased(w, j))))
            begun(w, j, for_good);
    }
}

/* A call that takes has failed: it may have any that is due still. */
static void shake(struct stored_world *w)
{
    stored_expire(w, -1, false);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((!j->in && !j->unsure) || !ripe(w, j, false) ||
            ((j->dead || leased(w, j)) && !restless(j)))
            continue;
        j->shaky = true;
        j->mortal |= spent(w, j); /* it is buried rather than handed out */
        begun(w, j, true);
        begun(w, j, false);
    }
}

/* It was taken for good. */
static void taken(struct stored_world *w, struct stored_job *j)
{
    if (j->late)
        return;
    j->taken_step = w->steps;
    if (j->every == 0)
        return;                                           /* it runs until it is done with */
    j->dirty = j->shaky = j->lapsing = j->mortal = false; /* the store has all that came before */
    if (j->asked) { /* the round may have ended before this call */
        j->rounding = true;
        j->rounding_from = j->asked_ns;
    }
    stored_next_round(w, j, !j->revoked && !j->asked);
    j->asked = false;
    j->leased_until = INT64_MIN;
    j->in = true;
    j->unsure = j->revoked;
}

/* Nobody is given what the store has not let go of: it is waited for, and then asked for again. */
static bool once_more(struct stored_world *w, int rc, int *tries)
{
    return rc == DUE_EAGAIN && !storeless(w) && (*tries)++ < TRIES &&
           due_flush(w->q, DUE_S(10)) == 0;
}

/* A busy machine renews late, and a queue that does not know whether it owns the jobs leases none:
 * true if that was so, when it knows. */
static bool was_late(struct stored_world *w)
{
    for (int i = 0; !storeless(w) && i < LATE; i++) {
        struct due__deadline by = { 0 };

        if (due__boottime_now() < due__load_relaxed(&w->q->commits->held_ns)) /* no edge: a guess */
            return i > 0;
        (void)due__commit_held(w->q, &by);
    }
    return false;
}

bool stored_dequeue(struct stored_world *w, uint32_t n, bool many)
{
    due_job job[8];
    int topic = n % 4 == 3 ? -1 : (int)(n % 4);
    int tries = 0;
    bool none = false;
    int rc;

    do {
        rc = many        ? take_some(w->q, NULL, 0, job, 1 + n % 8, 0)
             : topic < 0 ? due_dequeue(w->q, job, 0)
                         : take_from(w->q, &w->topic[topic], 1, job, 0);
        none |= rc == DUE_EAGAIN;
    } while (once_more(w, rc, &tries));

    stored_note_refused(w);
    if (none)
        left(w, true);
    if (rc == DUE_EAGAIN)
        return nothing(w, many ? -1 : topic);
    if (rc < 0 || (many && rc > 0 && !storeless(w)))
        shake(w); /* of a batch some may be in doubt */
    if (rc < 0)
        return refused(rc) || stored_wrong(w, "a dequeue answers otherwise", NULL);
    if (!stored_expire(w, many ? -1 : topic, false))
        return false;
    for (int i = 0; i < (many ? rc : 1); i++) {
        if (!handed(w, &job[i], true))
            return false;
        taken(w, stored_find(w, job[i].id));
    }
    for (int i = 0; i < (many ? rc : 1); i++) {
        struct stored_job *j = stored_find(w, job[i].id);

        if (j->every == 0)
            gone(w, j, false, true);
        due_job_done(&job[i]);
    }
    return true;
}

bool stored_reserve(struct stored_world *w, uint32_t n, uint64_t value)
{
    int64_t lease = 1 + (int64_t)(value & 0x7f);
    due_job job;

    if (w->held_count == STORED_HELD)
        return true;
    int tries = 0;
    bool none = false;
    int rc;

    do {
        rc = n % 4 == 0 ? take_leased_some(w->q, NULL, 0, &job, 1, lease, 0)
                        : take_leased(w->q, &job, lease, 0);
        none |= rc == DUE_EAGAIN;
    } while ((rc == DUE_EAGAIN && was_late(w)) || once_more(w, rc, &tries));
    stored_note_refused(w);
    if (none)
        left(w, false);
    if (rc == DUE_EAGAIN)
        return nothing(w, -1);
    if (rc < 0) {
        shake(w); /* a hand-over of one with a limit is written down first */
        return refused(rc) || stored_wrong(w, "a reserve answers otherwise", NULL);
    }
    if (!stored_expire(w, -1, false) || !handed(w, &job, false))
        return false;
    struct stored_job *j = stored_find(w, job.id);
    j->in = true;
    j->unsure = false;
    j->plain = j->lapsing = false;
    j->dead = j->mortal = j->doomed = false;
    j->token = job.token;
    j->attempts = j->attempts_least = job.attempts;
    j->lease_limit = policy(w, j)->attempts_max;
    if (j->lease_limit > 0 && !(w->pattern & STORED_LOSES)) /* else put again as it was */
        j->attempts_stored = job.attempts;
    j->failures = job.failures + 1; /* unless it is acked */
    j->leased_until = w->now + lease;
    j->arrival = w->arrivals++; /* when it comes again because that has ended */
    w->held[w->held_count++] = job;
    return true;
}
