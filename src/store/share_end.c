/* share_end.c - how a job that was claimed leaves memory again, and how long it may stay.
 *
 * Whatever lands that leaves the job in the store lets go of it here: it was put, it waits again,
 * it is dead.  So does the answer that somebody else has it by now (DUE_ESTALE), whoever waits for
 * that; and the local end of a lease (see_to_one() of dead_letter.c), where no failure is counted:
 * whoever claims it next is told that a lease was not answered, and does.
 *
 * Guards     K  the key (sender.c)      T  the timeline lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: J1 slab.h, R1 R4 lease.c, X1 X2 share.c, G2 G3 sender.c
 */
#include "job/cancel.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "job/request.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/share.h"
#include "store/taking.h"

#define RETURN_NS DUE_MS(200) /* before what was refused is put in again */
#define SHORTER   8 /* a lease may be shorter by such a part of it, as it began with the claim; */
#define POLLED    4 /* that of who does not wait for more by such a part */

/* ---- What a change says ---- */

void due__sharing_describe(struct due_queue *q, const struct due__entry *e, due_change *ch)
{
    ch->keeps_room = e->purpose == DUE__RETURN;
    if (e->purpose == DUE__PUT || e->purpose == DUE__RETURN)
        return;
    ch->held = due__load_relaxed(&due__hold_at(q, e->number)->held); /* X2 */
    ch->was_dead = 0;
    ch->keeps_pass = e->purpose == DUE__GIVE_BACK || e->purpose == DUE__SNOOZE;
    if (e->purpose == DUE__ATTEMPT)
        ch->kind = DUE_CHANGE_BEGIN;
    if (e->purpose == DUE__RELEASE)
        ch->kind = DUE_CHANGE_RELEASE;
    if (e->purpose == DUE__EXTEND || e->purpose == DUE__HOLD) {
        ch->kind = DUE_CHANGE_EXTEND;
        ch->lease_ns = due__sharing_lease_fit(due__stored_at(q->commits, e->number)->want_ns);
    }
    if (e->purpose == DUE__ROUND && due__revoked(q, e->number)) /* R4 */
        ch->kind = DUE_CHANGE_DROP;                             /* it was the last one */
}

/* The time is the store's, and not before it: so a key is kept for as long as it was asked for, at
 * least.  What is put back may have lost its key before it was claimed, which is not known here: it
 * gets that again if it is free. */
void due__sharing_describe_key(struct due_queue *q, const struct due__entry *e,
                               const struct due__key *key, due_change *ch)
{
    bool done = e->purpose == DUE__ACK || e->purpose == DUE__TAKE || e->purpose == DUE__REPEAT ||
                e->purpose == DUE__ROUND; /* or, if it was cancelled, with its last round */

    if (done && key->term_ns > 0)
        ch->key_kept_ns = due__time_add(due__sharing_now(q), key->term_ns);
    if (ch->kind != DUE_CHANGE_PUT)
        return;
    if (e->purpose == DUE__RETURN && due__hold_at(q, e->number)->robbed)
        return;
    ch->record.key = key->bytes;
    ch->record.key_len = key->len;
    ch->record.keep_key_ns = key->term_ns;
    if (e->purpose == DUE__PUT)
        ch->from = key->of.id;
}

/* Somebody else has cancelled a job that is here.  What would have it wait again is its end then,
 * as if that had been known here in time; who has it still is told. */
void due__sharing_revoked(struct due_queue *q, struct due__entry *e, due_change *ch)
{
    enum due__purpose purpose = (enum due__purpose)e->purpose;
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, e->number)->word); /* J1: the change's */

    if (purpose == DUE__ATTEMPT || purpose == DUE__EXTEND || purpose == DUE__HOLD ||
        purpose == DUE__TAKE) {
        (void)due__lease_cancel(q, e->number, due__word_generation(w), NULL); /* or no memory */
        return;
    }
    if (ch->kind == DUE_CHANGE_DROP) /* it has gone as it was to */
        return;
    ch->kind = DUE_CHANGE_DROP;
    if (purpose == DUE__ROUND) /* it was the last one */
        return;
    if (purpose == DUE__BURY)
        due__dead_letter_at(q, e->number)->cause = 0;
    if (purpose == DUE__GIVE_BACK)
        due__nacked(q, e->number);
    if (purpose == DUE__GIVE_BACK || purpose == DUE__SNOOZE)
        due__lease_answered(q);
    e->purpose = purpose == DUE__REPEAT ? DUE__ACK : DUE__CANCEL;
}

bool due__sharing_lost(const struct due_queue *q, const struct due__entry *e)
{
    if (e->purpose == DUE__PUT || e->purpose == DUE__UNSENT || e->purpose == DUE__RETURN)
        return false;
    return due__load_relaxed(&due__hold_at(q, e->number)->held) == 0; /* X2 */
}

/* ---- What has landed ---- */

bool due__sharing_leaves(enum due__purpose purpose)
{
    return purpose == DUE__PUT || purpose == DUE__MOVE || purpose == DUE__GIVE_BACK ||
           purpose == DUE__SNOOZE || purpose == DUE__BURY || purpose == DUE__RETURN ||
           purpose == DUE__RELEASE || purpose == DUE__REPEAT || purpose == DUE__ROUND;
}

/* Under the lock: a job whose lease was to be extended is leased, until then. */
static void lease_again(struct due_queue *q, uint32_t number, int64_t at_ns)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: claimed for it */

    due__count(q, number, DUE__F_LEASED, 1);
    due__replace(q, number, w, DUE__LEASED,
                 at_ns > due__due_ns(q) ? at_ns : due__time_add(due__due_ns(q), 1));
    due__store_release(&due__hold_at(q, number)->extending, 0); /* X1: after the word */
}

void due__sharing_extend_undo(struct due_queue *q, uint32_t number)
{
    struct due__tenure t;

    due__enter(q, &t);
    lease_again(q, number,
                due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns)); /* J1: ours */
    due__tenure_end(q, &t);
}

void due__sharing_extend_mark(struct due_queue *q, uint32_t number, bool extends)
{
    due__store_relaxed(&due__hold_at(q, number)->extending, extends); /* X1: the word comes after */
}

/* Under the lock: it is held for longer; @leased: and leased. */
static void extended(struct due_queue *q, uint32_t number, bool leased)
{
    const struct due__sharing *sh = q->commits->share;
    struct due__hold *h = due__hold_at(q, number);
    int64_t lease = due__sharing_lease_fit(due__stored_at(q->commits, number)->want_ns);
    int64_t until = due__time_add(sh->began_ns, lease);
    int64_t now = due__clock_now(&q->clock); /* before what is left is looked at */
    int64_t left = until - due__sharing_clock(q);

    due__store_relaxed(&h->until_ns, until); /* X2 */
    if (leased)
        lease_again(q, number, due__time_add(now, left));
}

void due__sharing_apply(struct due_queue *q, const struct due__entry *e)
{
    struct due__job *j = due__job_at(&q->slab, e->number);

    if (e->purpose == DUE__EXTEND || e->purpose == DUE__HOLD)
        extended(q, e->number, e->purpose == DUE__EXTEND);
    else if (e->purpose == DUE__TAKE)
        due__store_relaxed(&due__hold_at(q, e->number)->held, 0); /* X2: the store has it no more */
    else if (e->purpose == DUE__PUT)
        due__word_set(&j->word, due__word_as(due__load_relaxed(&j->word), DUE__CLAIMED)); /* J1 */
}

/* The job of a change leaves memory; @taken: it was taken out of its line for that. */
static void go(struct due_queue *q, uint32_t number, bool taken)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: claimed for the change */

    if (due__word_state(w) != DUE__CLAIMED)
        w = due__word_as(w, DUE__CLAIMED);
    due__word_keep(&j->word, w | (taken ? DUE__READY : 0)); /* J1 */
    due__keep_stored(q, number);
}

bool due__sharing_dropped(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (!q->shared || !due__revoked(q, number))
        return false;
    due__word_keep(&j->word, due__load_relaxed(&j->word) | DUE__READY); /* J1: the caller's own */
    due__cancel_end(q, number);
    return true;
}

void due__sharing_return(struct due_queue *q, uint32_t number)
{
    struct due__sharing *sh = q->commits->share;
    int64_t at = due__time_add(due__monotonic_now(), RETURN_NS);

    due__hold_at(q, number)->returns = true;
    sh->tidy_ns = at < sh->tidy_ns ? at : sh->tidy_ns;
}

/* A change of it was given up, and its node is in the inbox still: it goes when that comes out. */
static bool goes_later(struct due_queue *q, uint32_t number)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    bool queued = (due__stored_at(c, number)->purpose & DUE__QUEUED) != 0;
    due__lock_release(&c->calls);
    if (queued)
        due__commit_submit(q, number, DUE__RELEASE, 0, NULL);
    return queued;
}

void due__sharing_let_go(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);

    due__word_keep(&j->word, due__load_relaxed(&j->word) | DUE__READY); /* J1: the caller's own */
    if (!goes_later(q, number))
        go(q, number, true);
}

void due__sharing_lapse(struct due_queue *q, uint32_t number)
{
    if (!goes_later(q, number))
        due__keep_stored(q, number);
}

void due__sharing_left(struct due_queue *q, const struct due__entry *e)
{
    switch (e->purpose) {
    case DUE__REPEAT:
        due__step(q, e->number, DUE__S_REPEATED, 0);
        due__lease_answered(q);
        /* fall through */
    case DUE__ROUND:
        if (due__stored_at(q->commits, e->number)->stored == DUE__IS_STORED) /* not the last one */
            due__add_relaxed(&q->repeated, 1); /* no edge: a counter */
        break;
    case DUE__GIVE_BACK:
        due__nacked(q, e->number);
        /* fall through */
    case DUE__SNOOZE:
        due__add_relaxed(&q->retried, 1); /* no edge: a counter */
        due__lease_answered(q);
        break;
    case DUE__BURY:
        due__add_relaxed(&q->buried, 1); /* no edge: a counter */
        due__dead_letter_at(q, e->number)->cause = 0;
        due__count(q, e->number, DUE__F_DEAD, -1); /* it is dead in the store, not here */
        break;
    default:
        break;
    }
    go(q, e->number, e->purpose == DUE__RETURN);
}

/* Who answered for it is told, and lets go of his copy; who took it takes another. */
void due__sharing_stale(struct due_queue *q, const struct due__entry *e)
{
    struct due__hold *h = due__hold_at(q, e->number);
    bool taken = e->purpose == DUE__TAKE || e->purpose == DUE__ATTEMPT || e->purpose == DUE__HOLD ||
                 e->purpose == DUE__ROUND;

    due__store_relaxed(&h->held, 0);      /* X2 */
    due__store_relaxed(&h->extending, 0); /* X1: and CLAIMED for good */
    if (e->purpose == DUE__ACK || e->purpose == DUE__GIVE_BACK || e->purpose == DUE__SNOOZE ||
        e->purpose == DUE__EXTEND || e->purpose == DUE__REPEAT)
        due__lease_answered(q);
    if (e->purpose == DUE__BURY)
        due__dead_letter_at(q, e->number)->cause = 0;
    go(q, e->number, taken);
}

bool due__sharing_extending(const struct due_queue *q, uint32_t number)
{
    return due__load_acquire(&due__hold_at(q, number)->extending) != 0; /* X1 */
}

/* ---- What is ours for how long ---- */

static int64_t left_of(const struct due_queue *q, uint32_t number, int64_t now_ns)
{
    const struct due__hold *h = due__hold_at(q, number);

    if (due__load_relaxed(&h->held) == 0) /* X2 */
        return 0;
    return due__load_relaxed(&h->until_ns) - now_ns; /* X2 */
}

/* Those that are over are let go of: after a long stop of the process somebody else may have
 * them. */
static size_t drop_ended(struct due_queue *q, struct due__slot *slots, size_t n)
{
    int64_t now = due__sharing_clock(q);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (left_of(q, due__slot_job(slots[i]), now) > 0)
            slots[kept++] = slots[i];
        else
            due__sharing_let_go(q, due__slot_job(slots[i]));
    }
    return kept;
}

#define AT_ONCE 64u /* extended together */

/* Of @n taken jobs @some, up to AT_ONCE, are to be held for a whole lease: those at @at, in order.
 * How many there are then: those that are not held that long are none of them any more. */
static size_t hold_longer(struct due_queue *q, struct due__slot *slots, size_t n,
                          const uint32_t *at, size_t some, int64_t lease_ns,
                          struct due__deadline *by, int *rc)
{
    uint32_t numbers[AT_ONCE] = { 0 };
    int results[AT_ONCE];
    size_t kept = 0;

    for (size_t i = 0; i < some; i++)
        numbers[i] = due__slot_job(slots[at[i]]);
    q->journal->change_all(q, numbers, some, DUE__HOLD, lease_ns, by, results);
    for (size_t i = 0, next = 0; i < n; i++) {
        int result = next < some && at[next] == i ? results[next++] : 0;

        if (result == 0)
            slots[kept++] = slots[i];
        else if (result != DUE_ESTALE && result != DUE_EINDOUBT) /* else it is seen to */
            due__put_back(q, &slots[i], 1);
        if (result != 0 && result != DUE_ESTALE)
            *rc = result;
    }
    return kept;
}

/* Who does not wait cannot wait for more of a lease: a taken job that has too little of it goes
 * back, and the next claim of it is as long as this call asked for. */
static void claim_anew(struct due_queue *q, struct due__slot s)
{
    uint32_t number = due__slot_job(s);
    struct due__job *j = due__job_at(&q->slab, number);

    due__word_keep(&j->word, due__load_relaxed(&j->word) | DUE__READY); /* J1: the caller's */
    due__commit_submit(q, number, DUE__RELEASE, 0, NULL);
}

size_t due__sharing_fit(struct due_queue *q, const struct due__request *r, struct due__slot *slots,
                        size_t n, struct due__deadline *by, int *rc)
{
    struct due__sharing *sh = q->commits->share;
    int64_t lease = due__sharing_lease_fit(r->lease_ns);
    int64_t enough = lease - lease / (due__polls(r) ? POLLED : SHORTER);
    uint32_t at[AT_ONCE]; /* where those stand that are not held for long enough */
    size_t some = 0;
    size_t kept = 0;

    due__add_relaxed(&sh->taken, n); /* no edge: a guess */
    n = drop_ended(q, slots, n);
    if (lease <= 0)
        return n;
    int64_t now = due__sharing_clock(q);
    for (size_t i = 0; i < n; i++) {
        bool fits = left_of(q, due__slot_job(slots[i]), now) >= enough;

        if (!fits && due__polls(r)) {
            claim_anew(q, slots[i]);
            continue;
        }
        if (!fits && some == AT_ONCE) { /* nor is what comes behind it handed out before it */
            due__put_back(q, slots + i, n - i);
            break;
        }
        if (!fits)
            at[some++] = (uint32_t)kept;
        slots[kept++] = slots[i];
    }
    return some > 0 ? hold_longer(q, slots, kept, at, some, lease, by, rc) : kept;
}

int64_t due__sharing_lease(const struct due_queue *q, const struct due__slot *slots, size_t n,
                           int64_t lease_ns)
{
    int64_t now = due__sharing_clock(q);

    for (size_t i = 0; i < n; i++) {
        int64_t left = left_of(q, due__slot_job(slots[i]), now);

        lease_ns = left < lease_ns ? left : lease_ns;
    }
    return lease_ns;
}

void due__sharing_tokens(struct due_queue *q, const struct due__slot *slots, size_t n,
                         due_job *jobs)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t number = due__slot_job(slots[i]);
        uint64_t held = due__load_relaxed(&due__hold_at(q, number)->held); /* X2 */

        due__store_relaxed(&due__lease_at(q, number)->token, due__token_of(held)); /* R1: ours */
        jobs[i].token = held != 0 ? held : 1;
    }
}
