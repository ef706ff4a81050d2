/* taking.c - one taking: jobs on their way out of the store, for whoever takes them.
 *
 * Guards     D  the calls' lock (sender.c)      O  whose the taking is      A  atomic
 *
 * Edges      described elsewhere: E3 tenure.c, G3 sender.c, J1 slab.h
 *
 * Not here   Whose it is, and how long he waits: takings.c.
 */
#include <string.h>

#include "job/claim.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/share.h"
#include "store/taking_inside.h"

/* ---- Memory ---- */

static size_t bytes_for(size_t room)
{
    return sizeof(struct due__taking) +
           room * (sizeof(struct due__slot) + sizeof(due_job) + sizeof(due_id) + sizeof(int) +
                   sizeof(uint32_t) + sizeof(uint8_t));
}

static struct due__taking *make(struct due_queue *q, size_t room)
{
    unsigned char *at = due__alloc_raw(&q->alloc, bytes_for(room));
    struct due__taking *t = (struct due__taking *)(void *)at;

    if (t == NULL)
        return NULL;
    at += sizeof *t;
    *t = (struct due__taking){ .room = room };
    t->slots = (struct due__slot *)(void *)at;
    at += room * sizeof *t->slots;
    t->jobs = (due_job *)(void *)at;
    at += room * sizeof *t->jobs;
    t->ids = (due_id *)(void *)at;
    at += room * sizeof *t->ids;
    t->results = (int *)(void *)at;
    at += room * sizeof *t->results;
    t->numbers = (uint32_t *)(void *)at;
    at += room * sizeof *t->numbers;
    t->purposes = at;
    return t;
}

void due__taking_drop_all(struct due_queue *q, struct due__taking *t)
{
    while (t != NULL) {
        struct due__taking *next = t->next;

        due__alloc_free(&q->alloc, t, bytes_for(t->room));
        t = next;
    }
}

/* One for @n jobs: it is as large as it will be wanted. */
static struct due__taking *get(struct due_queue *q, size_t n)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    struct due__taking *t = c->spare_taking;
    if (t != NULL)
        c->spare_taking = t->next;
    due__lock_release(&c->calls);
    if (t != NULL && t->room >= n)
        return t;
    if (t != NULL)
        t->next = NULL;
    due__taking_drop_all(q, t);
    return make(q, n);
}

static void put(struct due_queue *q, struct due__taking *t)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    t->next = c->spare_taking;
    c->spare_taking = t;
    due__lock_release(&c->calls);
}

/* ---- Beginning ---- */

/* The jobs wait again. */
static void undo(struct due_queue *q, struct due__taking *t, size_t i)
{
    if (due__taking_is_round(t, i))
        due__round_drop(q, &t->jobs[i], t->numbers[i]);
    due__unclaim(q, t->numbers[i], true);
}

/* What is to be done with job @i in the store. */
static enum due__purpose purpose_of(struct due_queue *q, struct due__taking *t, size_t i,
                                    int64_t now_ns)
{
    if (t->purpose == DUE__ATTEMPT)
        return due__lease_limited(q, due__job_at(&q->slab, t->numbers[i])) ? DUE__ATTEMPT
                                                                           : DUE__NO_CHANGE;
    return due__round_begin(q, t->slots[i], now_ns, &t->jobs[i]) ? DUE__ROUND : DUE__TAKE;
}

/* How many changes it will be. */
static uint32_t fill(struct due_queue *q, struct due__taking *t, const struct due__slot *slots,
                     size_t n, enum due__purpose purpose)
{
    struct due__commits *c = q->commits;
    int64_t now = due__clock_now(&q->clock);
    uint32_t changes = 0;

    memcpy(t->slots, slots, n * sizeof *slots);
    t->n = n;
    t->purpose = purpose;
    t->was_left = false;
    t->rounds = 0;
    for (size_t i = 0; i < n; i++) {
        t->numbers[i] = due__slot_job(t->slots[i]);
        t->purposes[i] = (uint8_t)purpose_of(q, t, i, now);
        t->rounds += due__taking_is_round(t, i);
        t->results[i] = t->purposes[i] == DUE__NO_CHANGE ? 0 : DUE__PENDING;
        changes += t->results[i] != 0;
        __builtin_prefetch(due__stored_at(c, t->numbers[i]), 1); /* of jobs that came long ago */
    }
    return changes;
}

/* NULL: no memory, and they wait again. */
struct due__taking *due__taking_begin(struct due_queue *q, const struct due__slot *slots, size_t n,
                                      enum due__purpose purpose)
{
    struct due__taking *t = get(q, n);

    if (t == NULL) {
        due__put_back(q, slots, n);
        return NULL;
    }
    uint32_t changes = fill(q, t, slots, n, purpose);
    if (!due__submission_begin(q, &t->submission, changes)) {
        for (size_t i = 0; i < n; i++)
            undo(q, t, i);
        put(q, t);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        t->ids[i] = due__stored_id(due__stored_at(q->commits, t->numbers[i]));
    due__submission_each(&t->submission, t->numbers, n, t->results);
    return t;
}

/* Nothing is left of it. */
void due__taking_end(struct due_queue *q, struct due__taking *t)
{
    due__submission_end(q, &t->submission);
    put(q, t);
}

/* ---- Its end, as far as it is known ---- */

/* While any of it is under way, who sends writes what becomes of it. */
static bool enter(struct due__commits *c, const struct due__taking *t)
{
    bool shared = !due__load_acquire(&t->submission.over); /* G3 */

    if (shared)
        due__lock_acquire(&c->calls);
    return shared;
}

static void leave(struct due__commits *c, bool shared)
{
    if (shared)
        due__lock_release(&c->calls);
}

/* Under the calls' lock: a change that was not sent is given up. */
static bool withdraw(struct due__commits *c, struct due__taking *t, size_t i)
{
    struct due__stored *s = due__stored_at(c, t->numbers[i]);

    if (t->results[i] != DUE__PENDING || s->submission != &t->submission ||
        !(s->purpose & DUE__QUEUED))
        return false;
    s->purpose = DUE__QUEUED | DUE__NO_CHANGE; /* N3 of sender.c */
    t->results[i] = DUE__GONE;
    due__submission_detach(&t->submission, &s->submission);
    return true;
}

/* What was not sent waits again. */
void due__taking_take_back(struct due_queue *q, struct due__taking *t)
{
    struct due__commits *c = q->commits;

    for (size_t i = 0; i < t->n; i++) {
        due__lock_acquire(&c->calls);
        bool back = withdraw(c, t, i);
        due__lock_release(&c->calls);
        if (back)
            undo(q, t, i);
    }
}

/* Of job @i: how its change has ended, once if it has not landed. */
static int end_of(struct due__commits *c, struct due__taking *t, size_t i)
{
    bool shared = enter(c, t);
    int rc = t->results[i];
    if (rc < 0 || rc == DUE__LEFT)
        t->results[i] = DUE__GONE;
    leave(c, shared);
    return rc;
}

/* What was refused waits again.  If nobody will know whether a job has left, who sends has shown it
 * to on_discard; its id is kept for who took it: how many of those there are. */
size_t due__taking_sort_out(struct due_queue *q, struct due__taking *t)
{
    size_t unknown = 0;

    for (size_t i = 0; i < t->n; i++) {
        int rc = end_of(q->commits, t, i);

        if (rc == DUE_EINDOUBT)
            t->ids[unknown++] = t->ids[i];
        bool gone = rc == DUE_ESTALE; /* who sends has let go of it */
        if (rc < 0 && !gone && (rc != DUE_EINDOUBT || t->purpose == DUE__ATTEMPT))
            undo(q, t, i);
        else if ((rc < 0 || rc == DUE__LEFT) && due__taking_is_round(t, i))
            due__round_drop(q, &t->jobs[i], t->numbers[i]);
    }
    return unknown;
}

/* ---- Who has it ---- */

int due__taking_result(struct due__commits *c, const struct due__taking *t, size_t i)
{
    bool shared = enter(c, t);
    int result = t->results[i];
    leave(c, shared);
    return result;
}

void due__taking_had(struct due__commits *c, struct due__taking *t, size_t i)
{
    bool shared = enter(c, t);
    t->results[i] = DUE__GONE;
    leave(c, shared);
}

bool due__taking_wanted(const struct due_queue *q, const struct due__request *r,
                        const struct due__taking *t, size_t i)
{
    return due__wants(&r->wanted, due__facts_load(due__job_at(&q->slab, t->numbers[i])).topic);
}

enum due__purpose due__taking_purpose(const struct due__request *r)
{
    return r->lease_ns == 0 ? DUE__TAKE : DUE__ATTEMPT;
}

/* A job that has left the store, or had an attempt counted, for nobody. */
void due__taking_give_back(struct due_queue *q, struct due__taking *t, size_t i)
{
    uint32_t number = t->numbers[i];

    if (t->purpose == DUE__ATTEMPT) {
        due__taking_revoke(q, t, i);
        return;
    }
    if (due__sharing_dropped(q, number))
        return;
    due__key_returns(q, number);
    due__commit_submit(q, number, DUE__RETURN,
                       due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns), /* J1 */
                       NULL);
}

void due__taking_revoke(struct due_queue *q, struct due__taking *t, size_t i)
{
    if (t->purpose == DUE__ATTEMPT)
        due__lease_uncount(q, t->numbers[i]);
    else if (due__sharing_dropped(q, t->numbers[i]))
        return;
    due__unclaim(q, t->numbers[i], true);
}

bool due__taking_empty(const struct due__taking *t)
{
    bool all = true;

    for (size_t i = 0; all && i < t->n; i++)
        all = t->results[i] == DUE__GONE;
    return all;
}

bool due__taking_over(struct due__commits *c, const struct due__taking *t)
{
    bool shared = enter(c, t);
    bool all = due__taking_empty(t);
    leave(c, shared);
    return all;
}
