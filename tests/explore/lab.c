/* lab.c - a whole queue for scenarios. */
#include "lab.h"

#include <string.h>

#include "engine.h"
#include "lab/take.h"

struct lab *lab;

static void on_discard(void *ctx, const due_job *job)
{
    size_t n = (size_t)((uintptr_t)job->ptr - 1);

    (void)ctx;
    explore_check(n < LAB_JOBS, "discard of no job of ours");
    explore_check(lab_gone((unsigned)n) == 0, "job %zu is discarded after it has left", n);
    lab->job[n].discarded++;
}

/* Free places into the magazines that threads try first: the slab has scenarios of its own. */
static void fill_magazines(struct due__slab *slab)
{
    struct due__shard *mine = due__shard_mine(slab);
    uint32_t place[3];

    for (size_t i = 0; i < 3; i++) {
        explore_check(due__slab_take(slab, &place[i], 1) == 1, "no place");
        due__lock_acquire(&slab->shard[((size_t)(mine - slab->shard) + i) % DUE__SHARDS].lock);
    }
    for (size_t i = 0; i < 3; i++)
        due__lock_release(&slab->shard[((size_t)(mine - slab->shard) + i) % DUE__SHARDS].lock);
    for (size_t i = 0; i < 3; i++)
        due__slab_untake(slab, place[i]);
}

int64_t lab_now(void)
{
    bool running = engine.running;

    engine.running = false;
    int64_t now = lab->clock != NULL ? due_clock_now(lab->clock)
                                     : world->now_ns + (lab->realtime ? world->wall_ns : 0);
    engine.running = running;
    return now;
}

void lab_open_bare(due_options o)
{
    lab = explore_new(sizeof *lab);
    o.size = sizeof(due_options);
    o.allocator = &explore_allocator;
    o.on_discard = on_discard;
    o.name = "lab";
    o.reserve = 1; /* growing is no part of these scenarios */
    lab->clock = o.manual;
    lab->realtime = o.clock == DUE_CLOCK_REALTIME;
    lab->epoch_ns = lab_now() - explore_now();
    int rc = due_open(&lab->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    fill_magazines(&lab->q->slab);
}

void lab_open(due_options o)
{
    lab_open_bare(o);
    explore_check(due_topic(lab->q, "one") == 1 && due_topic(lab->q, "two") == 2, "topics");
}

unsigned lab_gone(unsigned n)
{
    return (unsigned)lab->job[n].handed_out + lab->job[n].cancelled + lab->job[n].discarded;
}

int lab_put(unsigned n, int topic, int64_t at_ns, int64_t timeout_ns)
{
    struct lab_job *it = &lab->job[n];
    due_spec spec = { DUE_SPEC_INIT, .topic = topic, .priority = it->priority };
    int64_t before = lab_now();

    spec.at_ns = at_ns != 0 ? at_ns + lab->epoch_ns : 0;
    spec.ptr = (void *)(uintptr_t)(n + 1);
    it->topic = topic;
    it->now = at_ns == 0;
    it->deadline_ns = at_ns != 0 ? spec.at_ns : before;
    explore_note("put %u", n);
    int rc = due_enqueue(lab->q, &spec, timeout_ns, &it->id);
    explore_note("put %u: %s", n, due_error_name(rc));
    it->latest_ns = at_ns != 0 ? spec.at_ns : lab_now();
    it->accepted = rc == 0;
    explore_check(rc == 0 || rc == DUE_ECLOSED || rc == DUE_EAGAIN || rc == DUE_ETIMEDOUT,
                  "put answers %s", due_error_name(rc));
    explore_check(rc == 0 || lab_gone(n) == 0, "job %u was refused with %s, and yet had", n,
                  due_error_name(rc));
    return rc;
}

/* ---- Takes, and whom they pass over ---- */

/* The queue when a take began. */
struct begun {
    unsigned event;
    bool held[LAB_JOBS]; /* jobs that were in it */
    uint8_t moves[LAB_JOBS];
};

static void begin_take(struct begun *b)
{
    b->event = ++lab->events;
    for (unsigned i = 0; i < LAB_JOBS; i++) {
        const struct lab_job *it = &lab->job[i];

        b->held[i] = it->accepted && lab_gone(i) == 0 && it->moves % 2 == 0;
        b->moves[i] = it->moves;
    }
}

/* Somebody else may be about to have what @job passed over: that shows when he has it, and so does
 * when exactly it was due. */
static void note_passed(const struct begun *b, const due_job *job)
{
    for (unsigned i = 0; i < LAB_JOBS && !lab->paused && !lab->realtime && !lab->gaps; i++) {
        struct lab_job *it = &lab->job[i];

        if (b->held[i] && lab_gone(i) == 0 && it->moves == b->moves[i] && it->passed_event == 0 &&
            it->topic == job->topic && it->deadline_ns < job->deadline_ns) {
            it->passed_event = lab->events + 1;
            it->passed_ns = job->deadline_ns;
        }
    }
}

static int had(due_job *job, const struct begun *b)
{
    size_t n = (size_t)((uintptr_t)job->ptr - 1);

    explore_check(n < LAB_JOBS, "no job of ours: %zu", n);
    struct lab_job *it = &lab->job[n];
    explore_note("has %zu", n);
    explore_check(lab_gone((unsigned)n) == 0, "job %zu comes after it has left", n);
    explore_check(job->topic == it->topic, "job %zu is of another topic", n);
    explore_check(job->deadline_ns <= lab_now(), "job %zu comes early", n);
    explore_check(job->lateness_ns >= 0, "job %zu: negative lateness", n);
    explore_check(job->deadline_ns >= it->deadline_ns, "job %zu comes by an old deadline", n);
    explore_check(!it->accepted || it->moves > 0 || lab->realtime ||
                      job->deadline_ns <= it->latest_ns,
                  "job %zu is due after its put had returned", n);
    explore_check(it->passed_event == 0 || b->event < it->passed_event ||
                      job->deadline_ns >= it->passed_ns,
                  "job %zu was passed over", n);
    it->handed_out++;
    it->taken_ns = job->deadline_ns;
    note_passed(b, job);
    due_job_done(job);
    return (int)n;
}

int lab_take(int topic, int64_t timeout_ns)
{
    struct begun b;
    due_job jobs[2];
    due_job job;
    int rc;

    explore_note("take");
    begin_take(&b);
    lab->waiting[topic] += timeout_ns > 0;
    if (topic == 0 && !lab->named) {
        rc = due_dequeue(lab->q, &job, timeout_ns);
    } else {
        rc = take_some(lab->q, &topic, 1, jobs, lab->roomy ? 2 : 1, timeout_ns);
        explore_check(rc < 2, "two jobs came, and there is but one");
        job = jobs[0];
        rc = rc > 0 ? 0 : rc;
    }
    lab->waiting[topic] -= timeout_ns > 0;
    if (rc != 0)
        explore_note("take: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == (timeout_ns == 0 ? DUE_EAGAIN : DUE_ETIMEDOUT) ||
                      rc == DUE_ECLOSED,
                  "take answers %s", due_error_name(rc));
    explore_check(rc != 0 || topic == 0 || job.topic == topic, "asked for %d, got of %d", topic,
                  job.topic);
    rc = rc == 0 ? had(&job, &b) : rc;
    lab->events++;
    return rc;
}

int lab_take_batch(size_t max, int64_t timeout_ns)
{
    due_job jobs[LAB_JOBS];
    struct begun b;

    explore_note("take %zu", max);
    begin_take(&b);
    lab->waiting[0] += timeout_ns > 0;
    int rc = take_some(lab->q, NULL, 0, jobs, max, timeout_ns);
    lab->waiting[0] -= timeout_ns > 0;
    explore_check(rc != 0 && rc <= (int)max, "take answers %d", rc);
    for (int i = 0; i < rc; i++)
        had(&jobs[i], &b);
    lab->events++;
    return rc;
}

int lab_cancel(unsigned n)
{
    int rc = due_cancel(lab->q, lab->job[n].id, NULL);

    explore_note("cancel %u: %s", n, due_error_name(rc));
    if (rc == 0) {
        explore_check(lab_gone(n) == 0, "job %u is cancelled after it has left", n);
        lab->job[n].cancelled++;
    }
    return rc;
}

int lab_move(unsigned n, int64_t at_ns)
{
    int64_t before = lab->job[n].deadline_ns;

    at_ns += lab->epoch_ns;
    explore_note("move %u", n);
    if (at_ns < before) /* it may be handed out before the call returns */
        lab->job[n].deadline_ns = at_ns;
    lab->job[n].moves++;
    lab->job[n].passed_event = 0;
    int rc = due_reschedule(lab->q, lab->job[n].id, at_ns);
    explore_note("move %u: %s", n, due_error_name(rc));
    explore_check(rc != 0 || lab->job[n].handed_out == 0 || lab->job[n].taken_ns == at_ns,
                  "job %u was moved, and had by its old deadline", n);
    lab->job[n].moves++;
    if (rc == 0)
        lab->job[n].deadline_ns = at_ns;
    else if (lab_gone(n) == 0)
        lab->job[n].deadline_ns = before;
    return rc;
}

int lab_close(enum due_close_mode mode, int64_t timeout_ns)
{
    explore_note("close");
    int rc = due_close(lab->q, mode, timeout_ns);
    explore_note("close: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ETIMEDOUT, "close answers %s", due_error_name(rc));
    if (rc == 0) {
        lab->closed = true;
        explore_check(lab->q->all == NULL && lab->q->capacity_line.first == NULL,
                      "closed, and somebody sleeps");
    }
    return rc;
}

void lab_show(void)
{
    due_info info;

    explore_check(due_peek(lab->q, &info) == 0, "nothing to show");
}

/* ---- What must hold whenever the lock is released ---- */

void due__measure_end(struct due_queue *q)
{
    bool running = engine.running;

    engine.running = false;                                         /* without a step */
    const struct due__topic *t = q->fresh == NULL ? q->ring : NULL; /* else it comes back */
    for (bool on = t != NULL; on; on = t != q->ring) {
        explore_check(q->proxies == DUE_PROXIES_ALWAYS || due__called_for(q, t),
                      "somebody waits for a job that is shown, and nobody is under way");
        t = t->next;
    }
    engine.running = running;
}

/* ---- What must hold at rest ---- */

/* Does somebody wait who takes this job? */
static bool is_wanted(const struct lab_job *it)
{
    return lab->waiting[0] > 0 || (it->topic > 0 && lab->waiting[it->topic] > 0);
}

void lab_idle(void)
{
    struct due_queue *q = lab->q;

    explore_check(q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(q->inbox.tail.p == &q->inbox.head.node, "a job is forgotten in the inbox");
    explore_check(!(q->state & DUE__ACTIVE) || (q->state & DUE__STOPPED) ||
                      q->proxies == DUE_PROXIES_ALWAYS,
                  "the enqueue proxy sleeps and is still active");
    explore_check(q->used >= q->capacity || q->capacity_line.first == NULL,
                  "there is room, and somebody sleeps for it");
    explore_check(!(q->state & DUE__REFUSING) || q->capacity_line.first == NULL,
                  "nobody may put, and somebody sleeps for room");
    for (uint32_t i = 0; i < q->topic_count; i++)
        explore_check(due__topic_at(q, i)->under_way == DUE__NOBODY,
                      "everybody rests, and one is said to be under way");
    for (const struct due__waiter *w = q->closers.first; w != NULL; w = w->line_next)
        explore_check(lab->clock == NULL || w->until_ns > lab_now(),
                      "who closes sleeps, and his time has passed");
    for (unsigned i = 0; i < LAB_JOBS; i++) {
        const struct lab_job *it = &lab->job[i];

        if (!it->accepted || lab_gone(i) > 0 || lab->paused || !is_wanted(it))
            continue;
        int64_t left = it->deadline_ns - lab_now();
        explore_check(left > 0, "job %u is due, and somebody waits", i);
        explore_check(lab->clock != NULL || left >= explore_next_wake() - explore_now(),
                      "job %u will be due, somebody waits, and nobody has set the timer", i);
    }
}

/* ---- The books at the end ---- */

/* Of the jobs ever marked ready, those that have not left: exact when nobody is inside. */
static void check_ready(uint64_t left)
{
    const struct due_queue *q = lab->q;
    int64_t ready = (int64_t)(q->readied - q->unreadied - q->taken - q->reserved);

    for (unsigned i = 0; i < DUE__SHARDS; i++)
        ready -= (int64_t)(q->slab.shard[i].unready + q->slab.shard[i].dequeued);
    explore_check(ready >= 0 && (uint64_t)ready <= left, "%lld counted as ready of %llu waiting",
                  (long long)ready, (unsigned long long)left);
}

static void check_stats(void)
{
    struct due_stats s;
    uint64_t accepted = 0;
    uint64_t handed_out = 0;
    uint64_t cancelled = 0;
    uint64_t discarded = 0;
    uint64_t left = 0;

    explore_check(due_stats_read(lab->q, &s) == 0, "stats");
    for (unsigned i = 0; i < LAB_JOBS; i++) {
        const struct lab_job *it = &lab->job[i];

        explore_check(lab_gone(i) <= 1, "job %u has left %u times", i, lab_gone(i));
        accepted += it->accepted;
        handed_out += it->handed_out;
        cancelled += it->cancelled;
        discarded += it->discarded;
        left += it->accepted && lab_gone(i) == 0;
    }
    explore_check(s.enqueued == accepted, "stats: %llu enqueued, not %llu",
                  (unsigned long long)s.enqueued, (unsigned long long)accepted);
    explore_check(s.dequeued + s.acked == handed_out, "stats: %llu dequeued or acked, not %llu",
                  (unsigned long long)(s.dequeued + s.acked), (unsigned long long)handed_out);
    explore_check(s.cancelled == cancelled, "stats: %llu cancelled, not %llu",
                  (unsigned long long)s.cancelled, (unsigned long long)cancelled);
    explore_check(s.discarded == discarded, "stats: %llu discarded, not %llu",
                  (unsigned long long)s.discarded, (unsigned long long)discarded);
    explore_check(s.waiting == left, "stats: %llu waiting, not %llu", (unsigned long long)s.waiting,
                  (unsigned long long)left);
    check_ready(left);
    explore_check(s.lent == 0, "stats: %llu lent", (unsigned long long)s.lent);
    explore_check(s.ready <= s.waiting, "stats: %llu ready of %llu waiting",
                  (unsigned long long)s.ready, (unsigned long long)s.waiting);
    explore_check(s.mended == 0, "stats: mended");
}

void lab_check(void)
{
    check_stats();
    if (!lab->closed) { /* whatever is left can be had, in order */
        struct begun b;
        int64_t last = 0;
        due_job job;

        world->now_ns += DUE_S(1000);
        explore_check(lab->clock == NULL || due_clock_advance(lab->clock, DUE_S(1000)) == 0,
                      "advance");
        lab->paused = false;
        explore_check(due_resume(lab->q, DUE_ALL_TOPICS) == 0, "resume");
        begin_take(&b);
        while (!engine.failed && take_from(lab->q, &(int){ 0 }, 1, &job, 0) == 0) {
            explore_check(job.deadline_ns >= last, "out of order");
            last = job.deadline_ns;
            had(&job, &b);
        }
        while (!engine.failed && due_dequeue(lab->q, &job, 0) == 0)
            had(&job, &b);
        check_stats();
    }
    for (unsigned i = 0; i < LAB_JOBS; i++) {
        const struct lab_job *it = &lab->job[i];

        explore_check(!it->accepted || lab_gone(i) == 1, "job %u was accepted and is lost", i);
        explore_check(it->accepted || lab_gone(i) == 0, "job %u was refused and had", i);
    }
}
