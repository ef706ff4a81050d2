/* queue_verbs.c - the steps of queue_model.c, on the queue and on its reference. */
#include "model/queue_verbs.h"
#include "lab/take.h"
#include "lab/sound.h"

#define BATCHED 16

/* ---- Deadlines ---- */

static void choose_time(const struct world *w, uint64_t value, due_spec *spec)
{
    switch ((enum pattern)w->pattern) {
    case EQUAL:
        spec->at_ns = 1 + (w->now / 1000000 + 1) * 1000000;
        break;
    case EXPONENTIAL:
        spec->delay_ns = (int64_t)(value >> (4 + value % 60));
        break;
    case EARLIER:
        spec->at_ns = INT64_C(1000000000) - (int64_t)w->arrivals;
        break;
    case SAWTOOTH:
        spec->delay_ns = (int64_t)(w->arrivals % 256 * 1000);
        break;
    case OUTLIER:
        spec->delay_ns = value % 500 == 0 ? INT64_C(1) << 61 : (int64_t)(value % 10000);
        break;
    case NOW:
        break;
    default:
        spec->delay_ns = (int64_t)(value % 5000);
    }
}

static due_spec spec_of(struct world *w, uint32_t n, uint64_t value)
{
    due_spec spec = { DUE_SPEC_INIT, .topic = (int)(n % TOPICS) };

    spec.priority = n / TOPICS % 4 == 0 ? (int)(value >> 20 & 255) : 0;
    choose_time(w, value, &spec);
    return spec;
}

/* The job made for @spec; its pointer names it. */
static struct job *make(struct world *w, due_spec *spec)
{
    struct job *j = &w->jobs[w->made++];

    *j = (struct job){ .topic = spec->topic, .priority = spec->priority };
    j->deadline = spec->at_ns != 0 ? spec->at_ns : w->now + spec->delay_ns;
    spec->ptr = (void *)(uintptr_t)w->made;
    return j;
}

/* ---- The verbs; each answers whether all was as it should be ---- */

/* A job without delay that somebody else is to sort in is stamped when that is done (so that
 * producers do not disturb each other's order): see to it that it is done now. */
static bool settle(struct world *w, bool undelayed)
{
    return !undelayed || due_poll(w->q, NULL) >= 0;
}

static bool full(const struct world *w)
{
    return w->capacity > 0 && w->live_count >= w->capacity;
}

static bool verb_enqueue(struct world *w, uint32_t n, uint64_t value)
{
    due_spec spec = spec_of(w, n, value);

    if (w->made == ROOM)
        return true;
    struct job *j = make(w, &spec);
    int rc = due_enqueue(w->q, &spec, 0, &j->id);
    if (full(w)) {
        w->made--;
        return rc == DUE_EAGAIN;
    }
    w->enqueued++;
    reference_add(w, j);
    return rc == 0 && settle(w, j->deadline == w->now);
}

static bool verb_batch(struct world *w, uint32_t n, uint64_t value)
{
    size_t count = 1 + n % BATCHED;
    due_spec specs[BATCHED];
    due_id ids[BATCHED];
    uint32_t first = w->made;

    if (w->made + count > ROOM)
        return true;
    for (size_t i = 0; i < count; i++) {
        specs[i] = spec_of(w, n + (uint32_t)i, value + i * 997);
        make(w, &specs[i]);
    }
    size_t room = w->capacity == 0 ? count : w->capacity - w->live_count;
    int rc = due_enqueue_batch(w->q, specs, count, 0, ids);
    size_t taken = room < count ? room : count;
    w->made = first + (uint32_t)taken;
    if (taken == 0)
        return rc == DUE_EAGAIN;
    for (size_t i = 0; i < taken; i++) {
        struct job *j = &w->jobs[first + i];

        j->id = ids[i];
        reference_add(w, j);
    }
    w->enqueued += taken;
    return rc == (int)taken && settle(w, true);
}

/* A job that was handed out must be the first of its topic. */
static bool check_taken(struct world *w, due_job *job)
{
    struct job *j = reference_job(w, job->ptr);
    bool right = j != NULL && j->live && reference_head(w, j->topic) == j &&
                 due_id_equal(j->id, job->id) && job->deadline_ns == j->deadline &&
                 job->topic == j->topic && job->priority == j->priority &&
                 job->lateness_ns == w->now - j->deadline;

    if (right) {
        reference_remove(w, j);
        w->dequeued++;
    }
    w->held[w->held_count++] = *job;
    return right;
}

bool queue_dequeue(struct world *w)
{
    due_job job;

    if (w->held_count == HELD)
        return true;
    int rc = due_dequeue(w->q, &job, 0);
    if (!reference_due(w))
        return rc == DUE_EAGAIN;
    return rc == 0 && check_taken(w, &job);
}

static bool verb_dequeue_from(struct world *w, uint32_t n)
{
    int topic = (int)(n % TOPICS);
    due_job job;

    if (w->held_count == HELD)
        return true;
    int rc = take_from(w->q, &topic, 1, &job, 0);
    if (reference_head(w, topic) == NULL)
        return rc == DUE_EAGAIN;
    return rc == 0 && job.topic == topic && check_taken(w, &job);
}

static bool verb_dequeue_batch(struct world *w, uint32_t n)
{
    int topics[2] = { (int)(n % TOPICS), (int)(n / TOPICS % TOPICS) };
    bool some = n / 16 % 2 == 0;
    size_t max = 1 + n / 32 % BATCHED;
    due_job jobs[BATCHED];

    if (w->held_count + max > HELD)
        return true;
    int rc = take_some(w->q, some ? topics : NULL, some ? 2 : 0, jobs, max, 0);
    bool due = some ? reference_head(w, topics[0]) != NULL || reference_head(w, topics[1]) != NULL
                    : reference_due(w);
    if (!due)
        return rc == DUE_EAGAIN;
    if (rc < 1 || (size_t)rc > max)
        return false;
    for (int i = 0; i < rc; i++) {
        if (some && jobs[i].topic != topics[0] && jobs[i].topic != topics[1])
            return false;
        if (!check_taken(w, &jobs[i]))
            return false;
    }
    due = some ? reference_head(w, topics[0]) != NULL || reference_head(w, topics[1]) != NULL
               : reference_due(w);
    return (size_t)rc == max || !due; /* as many as were due */
}

bool queue_done(struct world *w, uint32_t n)
{
    if (w->held_count == 0)
        return true;
    uint32_t at = n % w->held_count;
    due_job job = w->held[at];

    w->held[at] = w->held[--w->held_count];
    due_job_done(&job);
    return job.queue == NULL;
}

static struct job *pick(struct world *w, uint32_t n)
{
    return w->live_count > 0 ? w->live[n % w->live_count] : NULL;
}

static bool verb_cancel(struct world *w, uint32_t n)
{
    struct job *j = pick(w, n);
    due_job job;

    if (j == NULL)
        return true;
    bool back = n % 2 == 0 && w->held_count < HELD;
    int rc = due_cancel(w->q, j->id, back ? &job : NULL);
    if (rc != 0 || (back && (job.deadline_ns != j->deadline || !due_id_equal(job.id, j->id))))
        return false;
    if (back)
        w->held[w->held_count++] = job;
    reference_remove(w, j);
    w->cancelled++;
    return true;
}

static bool verb_cancel_lent(struct world *w, uint32_t n)
{
    if (w->held_count == 0)
        return true;
    due_id id = w->held[n % w->held_count].id;

    return due_cancel(w->q, id, NULL) == DUE_EBUSY && due_reschedule(w->q, id, 1) == DUE_EBUSY &&
           due_promote(w->q, id) == DUE_EBUSY;
}

static bool lent(const struct world *w, due_id id)
{
    for (uint32_t i = 0; i < w->held_count; i++) {
        if (due_id_equal(w->held[i].id, id))
            return true;
    }
    return false;
}

static bool verb_cancel_gone(struct world *w, uint32_t n)
{
    due_info info;

    if (w->made == 0)
        return true;
    struct job *j = &w->jobs[n % w->made];
    if (j->live || lent(w, j->id))
        return true;
    return due_cancel(w->q, j->id, NULL) == DUE_ENOENT &&
           due_reschedule(w->q, j->id, 1) == DUE_ENOENT &&
           due_find(w->q, j->id, &info) == DUE_ENOENT;
}

static bool verb_reschedule(struct world *w, uint32_t n, uint64_t value)
{
    struct job *j = pick(w, n);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 0 };

    if (j == NULL)
        return true;
    choose_time(w, value, &spec);
    int64_t to = spec.at_ns != 0 ? spec.at_ns : w->now + spec.delay_ns;
    if (value >> 32 & 1 && to > w->now / 2)
        to -= w->now / 2; /* into the past, often */
    if (due_reschedule(w->q, j->id, to) != 0)
        return false;
    reference_move(w, j, to);
    return true;
}

static bool verb_promote(struct world *w, uint32_t n)
{
    struct job *j = pick(w, n);
    due_info info;

    if (j == NULL)
        return true;
    if (due_promote(w->q, j->id) != 0 || due_find(w->q, j->id, &info) != 0 ||
        info.deadline_ns > w->now)
        return false;
    reference_move(w, j, info.deadline_ns);
    return true;
}

static bool verb_advance(struct world *w, uint32_t n, uint64_t value)
{
    int64_t by = (int64_t)(value % 2000);

    if (w->pattern == EXPONENTIAL || w->pattern == OUTLIER)
        by = (int64_t)(value >> (10 + n % 50));
    else if (w->pattern == EARLIER && n % 8 == 0)
        by = (int64_t)(value % 400000000);
    if (w->now > (INT64_C(1) << 62) || by < 0)
        by = 1;
    w->now += by;
    return due_clock_advance(w->clock, by) == 0 && due_now(w->q) == w->now;
}

/* The first of what is due in a topic that is not paused; else what becomes due next. */
static bool verb_peek(struct world *w)
{
    const struct job *next = reference_next(w);
    due_info info;
    int rc = due_peek(w->q, &info);

    for (int t = 0; t < TOPICS; t++) {
        const struct job *head = reference_head(w, t);

        if (head != NULL && rc == 0 && due_id_equal(info.id, head->id))
            return info.ready == 1 && info.deadline_ns == head->deadline && info.topic == t;
    }
    if (reference_due(w))
        return false;
    if (next == NULL)
        return rc == DUE_EAGAIN;
    return rc == 0 && due_id_equal(info.id, next->id) && info.ready == 0;
}

static bool verb_find(struct world *w, uint32_t n)
{
    struct job *j = pick(w, n);
    due_info info;
    int64_t ns;

    if (j == NULL)
        return true;
    return due_find(w->q, j->id, &info) == 0 && due_id_equal(info.id, j->id) &&
           info.deadline_ns == j->deadline && info.topic == j->topic &&
           info.priority == j->priority && info.ready == (j->deadline <= w->now) &&
           due_remaining(w->q, j->id, &ns) == 0 && ns == j->deadline - w->now;
}

static bool verb_list(struct world *w, uint32_t n)
{
    due_info infos[BATCHED];
    uint64_t cursor = 0;
    uint32_t seen = 0;
    int got;

    while ((got = due_list(w->q, &cursor, infos, 1 + n % BATCHED)) > 0)
        for (int i = 0; i < got; i++)
            seen++;
    return got == 0 && seen == w->live_count;
}

static bool verb_clear(struct world *w, uint32_t n)
{
    int topic = n % 4 == 0 ? DUE_ALL_TOPICS : (int)(n % TOPICS);
    uint64_t expected = topic < 0 ? w->live_count : w->line[topic].count;
    uint64_t cleared = UINT64_MAX;

    if (due_clear(w->q, topic, &cleared) != 0)
        return false;
    w->discarded += cleared;
    return cleared == expected && !w->wrong_discard && w->shown == w->discarded;
}

bool queue_pause(struct world *w, uint32_t n, bool paused)
{
    int topic = (int)(n % TOPICS);

    w->line[topic].paused = paused;
    return (paused ? due_pause(w->q, topic) : due_resume(w->q, topic)) == 0;
}

static bool verb_poll(struct world *w)
{
    int64_t next;
    int ready = due_poll(w->q, &next);

    if (ready < 0 || (uint64_t)ready > reference_count_due(w, true) ||
        (uint64_t)ready < reference_count_due(w, false))
        return false;
    if (reference_due(w))
        return due_next_deadline(w->q) <= w->now;
    return next > w->now;
}

bool queue_stats(struct world *w)
{
    struct due_stats s;

    if (due_stats_read(w->q, &s) != 0)
        return false;
    return s.enqueued == w->enqueued && s.dequeued == w->dequeued && s.cancelled == w->cancelled &&
           s.discarded == w->discarded && s.waiting == w->live_count && s.lent == w->held_count &&
           s.mended == 0 && sound_wrong(w->q) == NULL;
}

bool queue_apply(struct world *w, unsigned verb, uint32_t n, uint64_t value)
{
    switch ((enum verb)verb) {
    case ENQUEUE:
        return verb_enqueue(w, n, value);
    case BATCH:
        return verb_batch(w, n, value);
    case DEQUEUE:
        return queue_dequeue(w);
    case DEQUEUE_FROM:
        return verb_dequeue_from(w, n);
    case DEQUEUE_BATCH:
        return verb_dequeue_batch(w, n);
    case DONE:
        return queue_done(w, n);
    case CANCEL:
        return verb_cancel(w, n);
    case CANCEL_LENT:
        return verb_cancel_lent(w, n);
    case CANCEL_GONE:
        return verb_cancel_gone(w, n);
    case RESCHEDULE:
        return verb_reschedule(w, n, value);
    case PROMOTE:
        return verb_promote(w, n);
    case ADVANCE:
        return verb_advance(w, n, value);
    case PEEK:
        return verb_peek(w);
    case FIND:
        return verb_find(w, n);
    case LIST:
        return verb_list(w, n);
    case CLEAR:
        return verb_clear(w, n);
    case PAUSE:
        return queue_pause(w, n, true);
    case RESUME:
        return queue_pause(w, n, false);
    case POLL:
        return verb_poll(w);
    case TRIM:
        return due_trim(w->q) == 0;
    case STATS:
        return queue_stats(w);
    case VERBS:
        break;
    }
    return false;
}
