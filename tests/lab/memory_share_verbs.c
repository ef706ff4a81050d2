/* memory_share_verbs.c - the verbs of a store in memory whose jobs many share. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/memory_disk.h"

#define TOPICS_AT_ONCE 8 /* of a claim of any topic: more may be due */

/* One call of exchange(). */
struct exchange {
    struct memory_store *s;
    struct memory_process *process;
    enum memory_lane_of lane;
    const due_change *changes;
    size_t n;
    uint64_t number;
    const struct due_claim *claim; /* or NULL */
    bool full;
    size_t topics[TOPICS_AT_ONCE]; /* of the claim */
    size_t n_topics;
    int64_t clock_ns; /* now; of a number that is sent again not when it took effect */
};

static int64_t store_now(const struct memory_store *s)
{
    const struct memory_disk_options *o = &s->disk->options;

    return o->now != NULL ? o->now(o->clock) : s->now(s->clock);
}

bool memory_share_lost(const struct memory_store *s)
{
    return s->joined && !s->fenced && memory_process_of(s->disk, s->writer) == NULL;
}

/* ---- Join and leave ---- */

static int do_join(due_store *store, const struct due_store_open *how, struct due_store_info *info,
                   due_error *error)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_disk *disk = s->disk;
    struct memory_call call = memory_call_begin(s, MEMORY_JOIN, MEMORY_LANE_PUT, how->until_ns);

    if (s->opened && !memory_share_lost(s))
        memory_wrong(disk, "joined twice");
    int rc = memory_before(s, &call);
    if (rc == 0 && !memory_wait_for_owner(s, how->until_ns, true, error))
        rc = DUE_EBUSY;
    if (rc != 0 || (rc = memory_share_order(disk, how, error)) != 0)
        return memory_call_end(s, MEMORY_LANE_PUT, rc == DUE_EAGAIN ? DUE_ESTORE : rc);
    memory_join(disk, s, how->writer_min);
    (void)memory_share_order(disk, how, NULL); /* it was taken over, perhaps */
    s->now = how->now;
    s->clock = how->clock;
    (void)memory_process_new(disk, s, store_now(s));
    memory_room_set(&disk->share, how->capacity);
    memory_store_info(s, info);
    info->capacity = disk->share.capacity;
    info->by_priority = disk->share.by_rank;
    (void)memory_after(s, &call);
    return memory_call_end(s, MEMORY_LANE_PUT, 0);
}

static int do_leave(due_store *store, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = memory_call_begin(s, MEMORY_LEAVE, MEMORY_LANE_PUT, until_ns);
    int rc = memory_before(s, &call);
    struct memory_process *p = memory_process_of(s->disk, s->writer);

    if (rc == 0 && p != NULL && s->joined) {
        memory_process_remove(s->disk, p);
        (void)memory_wait_cover(s->disk, store_now(s), 1);
        (void)memory_room_cover(s->disk, NULL, store_now(s));
        memory_wake_all(s->disk);
    }
    s->closed = true;
    s->joined = false;
    (void)memory_after(s, &call);
    return memory_call_end(s, MEMORY_LANE_PUT, rc);
}

/* ---- Exchanges ---- */

/* Of any topic: those whose heads come first. */
static void choose_topics(struct exchange *x)
{
    struct memory_disk *disk = x->s->disk;
    const struct due_claim *claim = x->claim;

    x->n_topics = 0;
    for (size_t i = 0; claim->topics != NULL && i < claim->topic_count; i++)
        x->topics[x->n_topics++] = memory_jobs_topic(&disk->jobs, claim->topics[i]);
    while (claim->topics == NULL && x->n_topics < TOPICS_AT_ONCE) {
        size_t best = MEMORY_ANY;
        int64_t best_ns = DUE_FOREVER;

        for (size_t topic = 0; topic < disk->jobs.n_topics; topic++) {
            int64_t head_ns = memory_share_head(disk, topic);
            bool has = false;

            for (size_t i = 0; i < x->n_topics; i++)
                has |= x->topics[i] == topic;
            if (has || head_ns >= best_ns)
                continue;
            best = topic;
            best_ns = head_ns;
        }
        if (best == MEMORY_ANY)
            return;
        x->topics[x->n_topics++] = best;
    }
}

static bool others_wait(const struct exchange *x)
{
    bool wait = memory_wait_others(x->s->disk, MEMORY_ANY, x->clock_ns);

    for (size_t i = 0; i < x->n_topics; i++)
        wait |= memory_wait_others(x->s->disk, x->topics[i], x->clock_ns);
    return wait;
}

/* Answers how many are to be rung: two, if far more is due than is claimed here. */
static size_t claim_all(const struct exchange *x, struct memory_answer *answer)
{
    struct memory_disk *disk = x->s->disk;
    size_t wanted = x->claim->need + (x->claim->extra > 0 && !others_wait(x) ? x->claim->extra : 0);
    size_t left = wanted;
    size_t most = 1;

    answer->claimed = memory_need(calloc(wanted + 1, sizeof *answer->claimed));
    for (size_t i = 0; i < x->n_topics; i++)
        left -= memory_share_claim(disk, answer, x->topics[i], left, x->claim->lease_ns);
    for (size_t i = 0; i < answer->n_claimed; i++)
        memory_jobs_find(&disk->share.leased, answer->claimed[i].id)->holder = x->process->writer;
    for (size_t i = 0; left == 0 && i < x->n_topics; i++)
        if (memory_share_due(disk, x->topics[i], x->clock_ns, 2 * wanted + 1) > 2 * wanted)
            most = 2;
    return most;
}

static size_t take_effect(const struct exchange *x)
{
    struct memory_disk *disk = x->s->disk;
    struct memory_answer *answer = &x->process->lane[x->lane];
    size_t most = 1;

    memory_share_undo_begin(disk, x->process, (int)x->lane);
    free(answer->results);
    free(answer->claimed);
    disk->share.stamp++;
    if (disk->share.stamp < (uint64_t)x->clock_ns / 1000)
        disk->share.stamp = (uint64_t)x->clock_ns / 1000;
    *answer = (struct memory_answer){
        .number = x->number, .stamp = disk->share.stamp, .now_ns = x->clock_ns, .n = x->n
    };
    answer->results = memory_need(calloc(x->n + 1, sizeof *answer->results));
    bool shut = false;
    for (size_t i = 0; i < x->n; i++) {
        answer->results[i] = memory_share_change(disk, &x->changes[i], x->clock_ns, x->full, &shut);
        if (answer->results[i] == 0)
            memory_write_down(x->s, &x->changes[i], x->number);
    }
    if (x->claim != NULL)
        most = claim_all(x, answer);
    disk->batches++;
    x->s->counters.batches++;
    return most;
}

/* Of what was claimed, that which is still held so. */
static size_t still_held(const struct exchange *x, struct memory_job **jobs)
{
    const struct memory_answer *answer = &x->process->lane[x->lane];
    size_t n = 0;

    for (size_t i = 0; i < answer->n_claimed; i++) {
        struct memory_job *job = memory_disk_job(x->s->disk, answer->claimed[i].id);

        if (job != NULL && job->held == answer->claimed[i].held)
            jobs[n++] = job;
    }
    return n;
}

static int more_is_due(const struct exchange *x)
{
    struct memory_disk *disk = x->s->disk;

    if (x->claim->topics == NULL)
        return memory_share_head(disk, MEMORY_ANY) <= x->clock_ns;
    for (size_t i = 0; i < x->n_topics; i++)
        if (memory_share_head(disk, x->topics[i]) <= x->clock_ns)
            return 1;
    return 0;
}

/* The claim came back short. */
static int64_t begin_to_wait(const struct exchange *x)
{
    struct memory_disk *disk = x->s->disk;
    int64_t alarm_ns = 0;

    if (more_is_due(x))
        return -1;
    if (x->claim->topics == NULL)
        return memory_wait_enter(disk, x->process, MEMORY_ANY, memory_share_head(disk, MEMORY_ANY),
                                 x->clock_ns);
    for (size_t i = 0; i < x->n_topics; i++) {
        int64_t set_ns = memory_wait_enter(disk, x->process, x->topics[i],
                                           memory_share_head(disk, x->topics[i]), x->clock_ns);

        if (set_ns > 0 && (alarm_ns == 0 || set_ns < alarm_ns))
            alarm_ns = set_ns;
    }
    return alarm_ns;
}

/* Show copies, without the lock.  A visit that refuses is as an answer that did not come. */
static int show_claimed(const struct exchange *x, due_store_visit_claimed *visit, void *ctx,
                        struct due_exchange *answer)
{
    struct memory_answer *a = &x->process->lane[x->lane];
    struct memory_job **jobs = memory_need(calloc(a->n_claimed + 1, sizeof(struct memory_job *)));
    int64_t *lapsed_ns = memory_need(calloc(a->n_claimed + 1, sizeof *lapsed_ns));
    size_t n = still_held(x, jobs);
    int rc = 0;

    for (size_t i = 0, at = 0; i < n; at++)
        if (memcmp(&a->claimed[at].id, &jobs[i]->place.id, sizeof a->claimed[at].id) == 0) {
            lapsed_ns[i] = a->claimed[at].lapsed_ns;
            jobs[i] = memory_job_copy(&x->s->disk->jobs, jobs[i]);
            i++;
        }
    pthread_mutex_unlock(&x->s->disk->lock);
    for (size_t i = 0; i < n; i++) {
        due_claimed shown = { .record = memory_job_record(&x->s->disk->jobs, jobs[i]),
                              .held = jobs[i]->held,
                              .lapsed_ns = lapsed_ns[i] };

        if (rc == 0)
            rc = visit(ctx, &shown);
        memory_job_free(jobs[i]);
    }
    pthread_mutex_lock(&x->s->disk->lock);
    free(jobs);
    free(lapsed_ns);
    answer->claimed = n;
    return rc;
}

/* What the exchange leaves behind besides the jobs: who waits, and who is rung. */
static void wait_and_ring(const struct exchange *x, bool again, size_t most,
                          struct due_exchange *answer)
{
    struct memory_disk *disk = x->s->disk;
    struct memory_answer *a = &x->process->lane[x->lane];

    answer->stamp = a->stamp;
    answer->now_ns = a->now_ns;
    answer->alarm_ns = -1;
    if (x->claim != NULL) {
        struct memory_job **jobs =
            memory_need(calloc(a->n_claimed + 1, sizeof(struct memory_job *)));
        size_t n = still_held(x, jobs);

        free(jobs);
        answer->more = more_is_due(x);
        if (x->claim->waits && (n < x->claim->need || x->claim->need == 0))
            answer->alarm_ns = begin_to_wait(x);
    }
    /* Nobody knows whether the ring of a put that is sent again was heard. */
    answer->rang =
        again && x->lane == MEMORY_LANE_PUT ? 1 : memory_wait_cover(disk, x->clock_ns, most);
    if (again)
        return;
    for (size_t i = 0; i < x->n; i++)
        if (x->changes[i].kind == DUE_CHANGE_PUT && a->results[i] == 0)
            memory_room_came(&disk->share, x->process);
    answer->rang += memory_room_cover(disk, x->process, x->clock_ns);
}

/* It is reached, and the number is its next one, or its last once more. */
static int make_exchange(struct exchange *x, const struct memory_call *call, int *results,
                         struct due_exchange *answer)
{
    struct memory_store *s = x->s;
    struct memory_answer *a;
    bool again;
    size_t most = 1;

    x->process = memory_process_of(s->disk, s->writer);
    if (x->process == NULL)
        return DUE_ELOST;
    a = &x->process->lane[x->lane];
    again = x->number == a->number;
    if (!again && x->number != a->number + 1)
        return DUE_ELOST;
    if (!again && call->has[MEMORY_DOUBT_NOT])
        return DUE_EINDOUBT;
    x->full = call->has[MEMORY_FULL];
    x->clock_ns = store_now(s);
    if (x->lane == MEMORY_LANE_WORK)
        memory_wait_remove(s->disk, x->process);
    if (x->claim != NULL)
        choose_topics(x);
    if (!again)
        most = take_effect(x);
    s->counters.resent += again;
    memset(answer, 0, sizeof *answer);
    wait_and_ring(x, again, most, answer);
    for (size_t i = 0; i < x->n; i++)
        results[i] = a->results[i];
    return 0;
}

static int do_exchange(due_store *store, const due_change *changes, size_t n, uint64_t number,
                       int *results, const struct due_claim *claim, due_store_visit_claimed *visit,
                       void *ctx, struct due_exchange *answer, int64_t until_ns)
{
    enum memory_lane_of lane = memory_exchange_lane(changes, n, claim);
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call =
        memory_call_begin(s, lane == MEMORY_LANE_WORK ? MEMORY_WORK : MEMORY_PUT, lane, until_ns);
    struct memory_lane *l = &s->lanes[lane];
    struct exchange x = {
        .s = s, .lane = lane, .changes = changes, .n = n, .number = number, .claim = claim
    };

    if (!memory_check_exchange(s, changes, n, number, claim))
        return memory_call_end(s, lane, DUE_EINVAL);
    int rc = memory_before(s, &call);
    if (rc == 0)
        rc = make_exchange(&x, &call, results, answer);
    else if (rc == DUE_EAGAIN && l->doubt)
        rc = DUE_EINDOUBT;
    if (rc == 0 && (memory_after(s, &call) || call.has[MEMORY_DOUBT_LANDED]))
        rc = DUE_EINDOUBT;
    if (rc == 0 && claim != NULL)
        rc = show_claimed(&x, visit, ctx, answer);
    l->doubt = rc == DUE_EINDOUBT || (l->doubt && rc == DUE_EAGAIN);
    if (rc == 0)
        l->acked = number;
    return memory_call_end(s, lane, rc);
}

/* ---- Looking ---- */

/* Begins a call that only looks. */
static int look_begin(struct memory_store *s, struct memory_call *call, enum memory_verb verb,
                      int64_t until_ns)
{
    *call = memory_call_begin(s, verb, MEMORY_LANE_PUT, until_ns);
    int rc = memory_before(s, call);

    return rc == 0 && memory_share_lost(s) ? DUE_ELOST : rc;
}

static int look_end(struct memory_store *s, struct memory_call *call, int rc)
{
    (void)memory_after(s, call);
    return memory_call_end(s, MEMORY_LANE_PUT, rc);
}

static int do_dead(due_store *store, size_t from, size_t max, due_store_visit *visit, void *ctx,
                   int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_jobs *jobs = &s->disk->jobs;
    struct memory_place at = { .topic = MEMORY_DEAD, .until_ns = INT64_MIN };
    struct memory_call call;
    int rc = look_begin(s, &call, MEMORY_DEAD_JOBS, until_ns);
    int shown = 0;

    for (size_t i = 0; rc == 0 && (size_t)shown < max; i++) {
        struct memory_job *job = memory_jobs_behind(jobs, &at);

        if (job == NULL)
            break;
        at = job->place;
        if (i < from)
            continue;
        struct memory_job *copy = memory_job_copy(jobs, job);
        due_record record = memory_job_record(jobs, copy);
        pthread_mutex_unlock(&s->disk->lock);
        rc = visit(ctx, &record);
        pthread_mutex_lock(&s->disk->lock);
        memory_job_free(copy);
        shown++;
    }
    return look_end(s, &call, rc == 0 ? shown : rc);
}

/* Jobs of a topic that nobody holds, or the dead, behind a place, which moves on. */
static int do_page(due_store *store, struct due_page *page, size_t max, due_store_visit *visit,
                   void *ctx, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_jobs *jobs = &s->disk->jobs;
    struct memory_place at = { .topic = page->topic == NULL ? MEMORY_DEAD
                                                            : memory_jobs_topic(jobs, page->topic),
                               .until_ns = page->from_ns,
                               .id = page->from };
    struct memory_call call;
    int rc = look_begin(s, &call, MEMORY_PAGE, until_ns);
    struct memory_job *job = NULL;

    for (size_t shown = 0; rc == 0 && shown < max; shown++) {
        size_t topic = at.topic;

        job = memory_jobs_behind(jobs, &at);
        if (job == NULL || job->place.topic != topic)
            break;
        at = job->place;
        struct memory_job *copy = memory_job_copy(jobs, job);
        due_record record = memory_job_record(jobs, copy);
        pthread_mutex_unlock(&s->disk->lock);
        rc = visit(ctx, &record);
        pthread_mutex_lock(&s->disk->lock);
        memory_job_free(copy);
    }
    if (rc == 0) {
        size_t topic = at.topic;

        page->from_ns = at.until_ns;
        page->from = at.id;
        job = memory_jobs_behind(jobs, &at);
        rc = job != NULL && job->place.topic == topic;
    }
    return look_end(s, &call, rc);
}

static int do_census(due_store *store, struct due_census_all *all,
                     int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                     int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_disk *disk = s->disk;
    struct memory_place dead = { .topic = MEMORY_DEAD, .until_ns = INT64_MIN };
    struct memory_call call;
    int rc = look_begin(s, &call, MEMORY_CENSUS, until_ns);

    if (rc != 0)
        return look_end(s, &call, rc);
    *all = (struct due_census_all){ .now_ns = store_now(s),
                                    .jobs = disk->jobs.count + disk->share.leased.count,
                                    .head_ns = memory_share_head(disk, MEMORY_ANY) };
    for (struct memory_job *job; (job = memory_jobs_behind(&disk->jobs, &dead)) != NULL;) {
        dead = job->place;
        all->dead++;
    }
    for (struct memory_process *p = disk->share.processes; p != NULL; p = p->next)
        all->processes++;
    size_t n = disk->jobs.n_topics;
    struct due_census_topic *count = memory_need(calloc(n + 1, sizeof *count));
    for (size_t topic = 0; topic < n; topic++)
        memory_share_census(disk, topic, all->now_ns, &count[topic]);
    pthread_mutex_unlock(&disk->lock);
    for (size_t topic = 0; topic < n && rc == 0; topic++)
        rc = visit(ctx, &count[topic]);
    pthread_mutex_lock(&disk->lock);
    free(count);
    return look_end(s, &call, rc);
}

/* How many jobs it has on a lease that has not ended. */
static uint64_t held_by(struct memory_disk *disk, uint64_t writer, int64_t now_ns)
{
    struct memory_job *job = memory_jobs_first(&disk->share.leased);
    uint64_t n = 0;

    for (; job != NULL; job = memory_jobs_behind(&disk->share.leased, &job->place))
        n += job->holder == writer && job->place.until_ns > now_ns;
    return n;
}

static bool waits(const struct memory_disk *disk, const struct memory_process *who)
{
    for (size_t i = 0; i < disk->share.n_waits; i++)
        if (disk->share.waits[i].who == who)
            return true;
    return false;
}

/* They are shown in no order that anybody could rely on: the last to join first. */
static int do_processes(due_store *store,
                        int (*visit)(void *ctx, const struct due_process_seen *process), void *ctx,
                        int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call;
    int rc = look_begin(s, &call, MEMORY_PROCESSES, until_ns);
    char host[64] = "";
    uint64_t last = UINT64_MAX;

    gethostname(host, sizeof host - 1);
    while (rc == 0) {
        const struct memory_process *next = NULL;

        for (const struct memory_process *p = s->disk->share.processes; p != NULL; p = p->next)
            if (p->writer < last && (next == NULL || p->writer > next->writer))
                next = p;
        if (next == NULL)
            break;
        struct due_process_seen seen = { .writer = last = next->writer,
                                         .host = host,
                                         .pid = getpid(),
                                         .started_ns = next->started_ns,
                                         .seen_ns = next->seen_ns,
                                         .held = held_by(s->disk, next->writer, store_now(s)),
                                         .waits = waits(s->disk, next) };
        pthread_mutex_unlock(&s->disk->lock);
        rc = visit(ctx, &seen);
        pthread_mutex_lock(&s->disk->lock);
    }
    return look_end(s, &call, rc);
}

/* ---- Living and waiting ---- */

static int do_beat(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call;
    int rc = look_begin(s, &call, MEMORY_BEAT, until_ns);

    if (rc == 0) {
        int64_t now_ns = store_now(s);
        int64_t head_ns = memory_share_head(s->disk, MEMORY_ANY);

        memory_process_of(s->disk, s->writer)->seen_ns = now_ns;
        s->disk->owned_until_ns = memory_boottime_ns() + s->disk->options.lease_ns;
        if (memory_wait_cover(s->disk, now_ns, 1) > 0 && head_ns < now_ns - DUE_RING_NS)
            rc |= DUE_BEAT_RANG;
        if (memory_room_beat(s->disk, memory_process_of(s->disk, s->writer), beat, now_ns) > 0)
            rc |= DUE_BEAT_RANG;
        beat->now_ns = now_ns;
        if (beat->turn_ns > 0 && memory_share_turn(s->disk, beat))
            rc |= DUE_BEAT_TURN;
    }
    return look_end(s, &call, rc);
}

/* Who could not hear for a while may have missed a ring. */
static int do_listen(due_store *store, struct due_heard *heard, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = memory_call_begin(s, MEMORY_LISTEN, MEMORY_LANE_LISTEN, until_ns);
    int rc = memory_before(s, &call);

    if (rc == DUE_EFENCED)
        rc = 0; /* that is for exchanges to find */
    if (rc == 0 && s->deaf)
        s->rung = true;
    s->deaf = rc != 0;
    while (rc == 0 && !s->rung && s->heard.alarm_ns == 0 &&
           !memory_interrupted(s, MEMORY_LANE_LISTEN))
        if (!memory_sleep_until(s, until_ns))
            break;
    if (rc == 0) {
        *heard = s->rung ? (struct due_heard){ .stamp = s->heard.stamp } : s->heard;
        rc = s->rung || heard->alarm_ns != 0;
        s->rung = false;
        s->heard.alarm_ns = 0;
    }
    (void)memory_after(s, &call);
    return memory_call_end(s, MEMORY_LANE_LISTEN, rc);
}

static void do_wake(due_store *store)
{
    if (memory_store_of(store)->pid != getpid())
        return;
    struct memory_store *s = memory_store_lock(store);
    s->lanes[MEMORY_LANE_LISTEN].interrupted = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->disk->lock);
}

const struct due_shared_verbs memory_shared_verbs = {
    .size = sizeof(struct due_shared_verbs),
    .join = do_join,
    .exchange = do_exchange,
    .dead = do_dead,
    .page = do_page,
    .census = do_census,
    .processes = do_processes,
    .beat = do_beat,
    .listen = do_listen,
    .wake = do_wake,
    .leave = do_leave,
    .holder = memory_share_verb_holder,
};
