/* shared_shelf.c - the shared store of scenarios: a few jobs, and who holds them. */
#include "shared_shelf.h"

#include <string.h>

#include "os/atomic.h"

static struct shared_shelf *shelf_of(due_store *s)
{
    return (struct shared_shelf *)(void *)s;
}

struct shared_job *shared_get(struct shared_shelf *it, due_id id)
{
    for (unsigned i = 0; i < SHARED_JOBS; i++) {
        if (it->job[i].state != SHARED_NONE && due_id_equal(it->job[i].id, id))
            return &it->job[i];
    }
    return NULL;
}

unsigned shared_number(const struct shared_shelf *it, const struct shared_job *job)
{
    return (unsigned)(job - it->job);
}

/* When it may be claimed. */
static int64_t ready_at(const struct shared_job *job)
{
    return job->state == SHARED_WAITS  ? job->due_ns
           : job->state == SHARED_HELD ? job->until_ns
                                       : DUE_FOREVER;
}

static int64_t head(const struct shared_shelf *it)
{
    int64_t first = DUE_FOREVER;

    for (unsigned i = 0; i < SHARED_JOBS; i++)
        first = ready_at(&it->job[i]) < first ? ready_at(&it->job[i]) : first;
    return first;
}

bool shared_due(const struct shared_shelf *it)
{
    return head(it) <= explore_now();
}

/* ---- Who waits ---- */

/* A queue that waits is rung if its alarm comes too late, or told the new one.  False: it does not
 * wait. */
static bool cover_by(struct shared_shelf *it, int64_t first)
{
    bool late = it->alarm_ns == 0 || it->alarm_ns > first;

    if (!it->waits)
        return false;
    if (!late && first > explore_now())
        return true;
    it->waits = first > explore_now();
    it->rung |= !it->waits;
    it->counted = !it->waits;
    if (it->waits)
        it->told = (struct due_heard){ .stamp = it->all->stamp, .alarm_ns = it->alarm_ns = first };
    due__bell_ring(&it->bell);
    return true;
}

/* One sees to it, unless one was rung and has not come yet. */
static void cover(struct shared_shelf *it)
{
    int64_t first = head(it);
    bool done = first == DUE_FOREVER;

    for (unsigned i = 0; i < SHARED_QUEUES; i++)
        done |= it->all->queue[i] != NULL && it->all->queue[i]->counted;
    for (unsigned i = 0; !done && i < SHARED_QUEUES; i++)
        done = it->all->queue[i] != NULL && cover_by(it->all->queue[i], first);
}

bool shared_owes(const struct shared_shelf *it)
{
    bool over = it->waits && it->alarm_ns != 0 && it->alarm_ns < explore_now() &&
                explore_next_wake() > explore_now(); /* who wakes by then has */

    return it->counted || over;
}

unsigned shared_room(const struct shared_shelf *it)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SHARED_JOBS; i++)
        n += it->job[i].state == SHARED_WAITS || it->job[i].state == SHARED_HELD;
    if (it->all->capacity == 0)
        return SHARED_JOBS;
    return n < it->all->capacity ? it->all->capacity - n : 0;
}

/* Whoever waits for room is rung if there is any. */
static void cover_room(struct shared_shelf *it)
{
    if (!it->waits_room || shared_room(it) == 0)
        return;
    it->waits_room = false;
    it->rung = true;
    due__bell_ring(&it->bell);
}

static int shared_listen(due_store *s, struct due_heard *heard, int64_t until_ns)
{
    struct shared_shelf *it = shelf_of(s);

    if (!it->rung && it->told.alarm_ns == 0)
        due__bell_wait(&it->bell, until_ns, false);
    bool rung = it->rung;
    *heard = it->told;
    if (rung)
        heard->alarm_ns = 0;
    it->rung = false;
    it->told.alarm_ns = 0;
    return rung || heard->alarm_ns != 0;
}

static void shared_wake(due_store *s)
{
    due__bell_ring(&shelf_of(s)->bell);
}

static int64_t begin_to_wait(struct shared_shelf *it)
{
    int64_t first = head(it);

    if (first <= explore_now())
        return -1;
    it->waits = true;
    it->alarm_ns = first == DUE_FOREVER ? 0 : first;
    return it->alarm_ns;
}

/* ---- Other processes ---- */

void shared_put(struct shared_shelf *it, unsigned n, int64_t due_ns)
{
    struct shared_job *job = &it->job[n];

    memset(&job->id, (int)n + 1, DUE_STORE_ID_BYTES);
    job->state = SHARED_WAITS;
    job->due_ns = due_ns;
    it->all->stamp++;
    cover(it);
}

/* A job of another process, which is still as that has put it. */
static bool is_foreign(const struct shared_shelf *it, unsigned n)
{
    due_id id = { { 0 } };

    memset(&id, (int)n + 1, DUE_STORE_ID_BYTES);
    return due_id_equal(it->job[n].id, id);
}

bool shared_has_put(const struct shared_shelf *it)
{
    bool has = false;

    for (unsigned i = 0; i < SHARED_JOBS; i++)
        has |= it->job[i].state != SHARED_NONE && !is_foreign(it, i);
    return has;
}

void shared_amend(struct shared_shelf *it, unsigned n)
{
    due__store_seq(&it->all->turns, 1); /* no edge: others may come between */
    if (it->job[n].state == SHARED_WAITS)
        it->job[n].content++;
}

bool shared_end_elsewhere(struct shared_shelf *it, unsigned n)
{
    due__store_seq(&it->all->turns, 1); /* no edge: others may come between */
    bool there = is_foreign(it, n) && it->job[n].state == SHARED_WAITS;

    if (there)
        it->job[n].state = SHARED_DONE;
    cover_room(it);
    return there;
}

int shared_revoke(struct shared_shelf *it, unsigned n)
{
    due__store_seq(&it->all->turns, 1); /* no edge: others may come between */
    struct shared_job *job = &it->job[n];

    if (job->state == SHARED_HELD) {
        job->revoked = true;
        return DUE_EBUSY;
    }
    if (job->state != SHARED_WAITS)
        return DUE_ENOENT;
    job->state = SHARED_DONE;
    cover_room(it);
    return 0;
}

bool shared_put_if_room(struct shared_shelf *it, unsigned n)
{
    if (shared_room(it) == 0)
        return false;
    shared_put(it, n, explore_now());
    return true;
}

void shared_over(struct shared_shelf *it, unsigned n)
{
    it->job[n].until_ns = explore_now();
    cover(it);
}

void shared_claim_elsewhere(struct shared_shelf *it, int64_t lease_ns)
{
    for (unsigned i = 0; i < SHARED_JOBS; i++) {
        struct shared_job *job = &it->job[i];

        if (ready_at(job) > explore_now())
            continue;
        job->state = job->revoked ? SHARED_DONE : SHARED_HELD;
        if (job->revoked)
            continue;
        job->held = ++it->all->leases;
        job->until_ns = explore_now() + lease_ns;
        job->by = NULL;
    }
}

/* ---- Exchanges ---- */

static int change_held(const struct shared_shelf *it, struct shared_job *job, const due_change *ch)
{
    if (job == NULL || job->state != SHARED_HELD || job->held != ch->held)
        return DUE_ESTALE;
    explore_check(job->by == it, "a lease of another process is known here");
    bool stays = ch->kind == DUE_CHANGE_BEGIN || ch->kind == DUE_CHANGE_EXTEND;

    if (job->revoked && !stays) {
        job->state = SHARED_DONE;
        return DUE_REVOKED;
    }
    switch (ch->kind) {
    case DUE_CHANGE_DROP:
    case DUE_CHANGE_BURY:
        job->state = SHARED_DONE;
        break;
    case DUE_CHANGE_MOVE:
        job->state = SHARED_WAITS;
        job->due_ns = ch->record.until_ns;
        job->attempts = ch->record.attempts;
        job->failures = ch->record.failures;
        break;
    case DUE_CHANGE_BEGIN:
        job->attempts = ch->record.attempts;
        break;
    case DUE_CHANGE_EXTEND:
        job->until_ns = explore_now() + ch->lease_ns;
        break;
    case DUE_CHANGE_RELEASE:
        job->state = SHARED_WAITS;
        break;
    default:
        explore_check(false, "a change of kind %d of a job that is held", (int)ch->kind);
    }
    return job->revoked ? DUE_REVOKED : 0;
}

static bool is_over(const struct shared_job *job)
{
    return job->state == SHARED_DONE && job->held == 0;
}

/* A new one, or one that was dequeued, and nobody came for it. */
static int put(struct shared_shelf *it, struct shared_job *job, const due_record *r)
{
    explore_check(job == NULL || job->state == SHARED_DONE, "put twice");
    explore_check(job == NULL || !job->revoked, "it was cancelled, and is put back");
    if (job == NULL && shared_room(it) == 0)
        return DUE_EAGAIN;
    for (unsigned i = 0; job == NULL && i < SHARED_JOBS; i++) {
        if (it->job[i].state == SHARED_NONE || (is_foreign(it, i) && is_over(&it->job[i])))
            job = &it->job[i];
    }
    explore_check(job != NULL, "more jobs than the scenario has");
    job->id = r->id;
    job->state = SHARED_WAITS;
    job->due_ns = r->until_ns;
    job->revoked = false;
    return 0;
}

static int change(struct shared_shelf *it, const due_change *ch)
{
    struct shared_job *job = shared_get(it, ch->record.id);

    if (ch->held != 0)
        return change_held(it, job, ch);
    if (ch->kind == DUE_CHANGE_PUT)
        return put(it, job, &ch->record);
    explore_check(ch->kind == DUE_CHANGE_DROP, "a change of kind %d of a job that nobody holds",
                  (int)ch->kind);
    if (job == NULL || job->state == SHARED_DONE)
        return DUE_ENOENT;
    if (job->state == SHARED_HELD) {
        job->revoked |= ch->revokes != 0;
        return DUE_EBUSY;
    }
    if (ch->record.mark_len > 0 &&
        (job->due_ns != ch->was_ns || job->attempts != ch->record.attempts ||
         job->failures != ch->record.failures ||
         memcmp(ch->record.mark, &job->content, sizeof job->content) != 0))
        return DUE_EAGAIN;
    job->state = SHARED_DONE;
    return 0;
}

static void claim_all(struct shared_shelf *it, struct shared_answer *a, const struct due_claim *c)
{
    size_t left = c->need + c->extra;

    for (unsigned i = 0; i < SHARED_JOBS && left > 0; i++) {
        struct shared_job *job = &it->job[i];

        if (ready_at(job) > explore_now())
            continue;
        if (job->revoked) {
            job->state = SHARED_DONE;
            continue;
        }
        a->lapsed_ns[i] = job->state == SHARED_HELD ? job->until_ns : 0;
        job->state = SHARED_HELD;
        job->held = a->held[i] = ++it->all->leases;
        job->until_ns = explore_now() + c->lease_ns;
        job->by = it;
        left--;
    }
}

/* @content: a copy of the job's, which may be others as soon as anybody does anything. */
static due_record record_of(const struct shared_job *job, const unsigned *content)
{
    return (due_record){ .id = job->id,
                         .deadline_ns = job->due_ns,
                         .until_ns = job->due_ns,
                         .topic = "default",
                         .data = content,
                         .len = sizeof *content,
                         .attempts = job->attempts,
                         .failures = job->failures,
                         .mark = content,
                         .mark_len = sizeof *content };
}

/* Of what was claimed, that which is held so still. */
static int show(struct shared_shelf *it, const struct shared_answer *a,
                due_store_visit_claimed *visit, void *ctx, uint64_t *n)
{
    int rc = 0;

    *n = 0;
    for (unsigned i = 0; i < SHARED_JOBS; i++) {
        struct shared_job *job = &it->job[i];

        if (a->held[i] == 0 || job->state != SHARED_HELD || job->held != a->held[i])
            continue;
        unsigned content = job->content;
        due_claimed shown = { .record = record_of(job, &content),
                              .held = job->held,
                              .lapsed_ns = a->lapsed_ns[i] };

        ++*n;
        rc = rc == 0 ? visit(ctx, &shown) : rc;
    }
    return rc;
}

/* N2 of share.c: what is sent once more is what it was. */
static void check_same(const struct shared_answer *a, const due_change *changes, size_t n,
                       const struct due_claim *c)
{
    bool same = a->n == n && a->claims == (c != NULL);

    for (size_t i = 0; same && i < n; i++) {
        const due_change *ch = &a->changes[i];

        same = ch->kind == changes[i].kind && ch->held == changes[i].held &&
               ch->was_ns == changes[i].was_ns && ch->lease_ns == changes[i].lease_ns &&
               due_id_equal(ch->record.id, changes[i].record.id);
    }
    if (same && c != NULL)
        same = a->claimed == c->need + c->extra && a->lease_ns == c->lease_ns;
    explore_check(same, "another exchange by the number of one that is in doubt");
}

static size_t lane_of(const due_change *changes, size_t n, const struct due_claim *claim)
{
    bool work = claim != NULL;

    for (size_t i = 0; i < n; i++)
        work |= changes[i].held != 0;
    return work;
}

static int shared_exchange(due_store *s, const due_change *changes, size_t n, uint64_t number,
                           int *results, const struct due_claim *claim,
                           due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                           int64_t until_ns)
{
    struct shared_shelf *it = shelf_of(s);
    size_t lane = lane_of(changes, n, claim);
    struct shared_answer *a = &it->lane[lane];

    (void)until_ns;
    explore_check(!it->left, "an exchange after leave");
    explore_check(n <= SHARED_JOBS, "a batch of %zu", n);
    explore_check(number == a->number || number == a->number + 1, "number %llu behind %llu",
                  (unsigned long long)number, (unsigned long long)a->number);
    unsigned *refusals = n > 0 && it->unsent > 0 ? &it->unsent : &it->away;
    if (*refusals > 0) {
        --*refusals;
        return DUE_EAGAIN;
    }
    if (lane == 1)
        it->waits = it->counted = false;
    if (number != a->number) {
        *a = (struct shared_answer){ .number = number, .stamp = ++it->all->stamp, .n = n };
        for (size_t i = 0; i < n; i++)
            a->changes[i] = changes[i];
        a->claims = claim != NULL;
        a->claimed = claim != NULL ? claim->need + claim->extra : 0;
        a->lease_ns = claim != NULL ? claim->lease_ns : 0;
        for (size_t i = 0; i < n; i++)
            a->results[i] = change(it, &changes[i]);
        if (claim != NULL)
            claim_all(it, a, claim);
    } else {
        check_same(a, changes, n, claim);
        it->resent++;
    }
    cover(it);
    cover_room(it);
    unsigned *left = n > 0 && it->unsure > 0 ? &it->unsure : &it->doubt;
    if (*left > 0) {
        --*left;
        return DUE_EINDOUBT;
    }
    *answer = (struct due_exchange){ .stamp = a->stamp, .now_ns = explore_now(), .alarm_ns = -1 };
    memcpy(results, a->results, n * sizeof *results);
    if (claim == NULL)
        return 0;
    int rc = show(it, a, visit, ctx, &answer->claimed);
    answer->more = shared_due(it);
    if (claim->waits && (answer->claimed < claim->need || claim->need == 0))
        answer->alarm_ns = begin_to_wait(it);
    return rc;
}

/* ---- The rest ---- */

static int shared_join(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                       due_error *error)
{
    (void)s, (void)how, (void)error;
    *info = (struct due_store_info){
        .writer = 1, .batch_changes = 2, .batch_bytes = 1000, .renew_ns = DUE_FOREVER
    };
    return 0;
}

static int shared_census(due_store *s, struct due_census_all *all,
                         int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                         int64_t until_ns)
{
    (void)s, (void)visit, (void)ctx, (void)until_ns;
    *all = (struct due_census_all){ .now_ns = explore_now(), .head_ns = DUE_FOREVER };
    return 0;
}

static int shared_beat(due_store *s, struct due_beat *beat, int64_t until_ns)
{
    struct shared_shelf *it = shelf_of(s);

    (void)until_ns;
    beat->now_ns = explore_now();
    beat->capacity = it->all->capacity;
    beat->room = beat->waits_room ? shared_room(it) : 0;
    it->waits_room = beat->waits_room && beat->room == 0;
    return 0;
}

static int shared_leave(due_store *s, int64_t until_ns)
{
    (void)until_ns;
    shelf_of(s)->left = true;
    return 0;
}

static int shared_ready(due_store *s, int64_t until_ns)
{
    (void)until_ns;
    explore_check(!shelf_of(s)->left, "used after leave");
    return 0;
}

static int shared_find(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    const struct shared_job *job = shared_get(shelf_of(s), id);

    (void)until_ns;
    if (job == NULL || job->state == SHARED_DONE)
        return DUE_ENOENT;
    unsigned content = job->content;
    due_record r = record_of(job, &content);
    int rc = visit(ctx, &r);
    (void)due__load_seq(&shelf_of(s)->all->turns); /* no edge: others may come between */
    return rc;
}

static int shared_close(due_store *s, int64_t until_ns)
{
    (void)s, (void)until_ns;
    return 0;
}

static void shared_stats(due_store *s, struct due_store_stats *stats)
{
    (void)s;
    *stats = (struct due_store_stats){ .connected = 1 };
}

static void shared_nothing(due_store *s)
{
    (void)s;
}

static const struct due_shared_verbs shared = {
    .size = sizeof(struct due_shared_verbs),
    .join = shared_join,
    .exchange = shared_exchange,
    .census = shared_census,
    .beat = shared_beat,
    .listen = shared_listen,
    .wake = shared_wake,
    .leave = shared_leave,
};

static const struct due_store_verbs verbs = {
    .size = sizeof(struct due_store_verbs),
    .ready = shared_ready,
    .find = shared_find,
    .close = shared_close,
    .interrupt = shared_nothing,
    .stats = shared_stats,
    .free = shared_nothing,
    .shared = &shared,
};

void shared_make(struct shared_shelf *it, const struct shared_shelf *beside)
{
    unsigned n = 0;

    it->head.verbs = &verbs;
    it->all = beside != NULL ? beside->all : explore_new(sizeof *it->all);
    it->job = it->all->job;
    if (beside == NULL)
        it->all->leases = 100; /* not what they would be called here */
    while (it->all->queue[n] != NULL)
        n++;
    it->all->queue[n] = it;
    explore_check(due__bell_init(&it->bell) == 0, "a bell");
}
