/* commit.c - calls that change stored jobs, and wait until the store has confirmed it.
 *
 * A call leaves its changes in the commit inbox and waits (calls.c).  If time is up it takes back
 * what was not sent yet; what was sent is seen through without it.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G2 sender.c, J1 slab.h, Q7 takings.c
 */
#include "job/discard.h"
#include "job/draft.h"
#include "job/key_table.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "store/sender.h"

/* Give up a change that was not settled.  True: it had not been sent. */
static bool give_up(struct due__commits *c, uint32_t number, struct due__submission *a, bool *doubt)
{
    struct due__stored *s = due__stored_at(c, number);
    bool back = false;

    *doubt = false;
    if (due__submission_over(c, a))
        return false;
    due__lock_acquire(&c->calls);
    if (s->submission == a) {
        back = (s->purpose & DUE__QUEUED) != 0;
        *doubt = !back;
        if (back)
            s->purpose = DUE__QUEUED | DUE__NO_CHANGE; /* N3 of sender.c */
        due__submission_detach(a, &s->submission);
    }
    due__lock_release(&c->calls);
    return back;
}

/* A change that nobody waits for. */
static int submit_only(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                       int64_t want_ns)
{
    if (due__load_seq(&q->commits->stopping)) /* G2: who comes too early is refused later */
        return DUE_ECLOSED;
    if (due__state_of(q) != 0)
        return DUE_EFENCED;
    if (due__removes(purpose))
        due__key_gone(q, number, purpose == DUE__ACK);
    due__commit_submit(q, number, purpose, want_ns, NULL);
    due__commit_go(q, NULL, 0);
    return 0;
}

/* It is known that the queue is another's, or that this process was turned out.  If that was the
 * store's answer to this change, who sends is about to say so; else it is in doubt. */
static void hear_end(struct due_queue *q, uint32_t number, struct due__submission *a,
                     int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (!q->shared || due__submission_over(c, a) || !due__load_seq(&c->fenced)) /* G2 */
        return;
    due__lock_acquire(&c->calls);
    bool queued = (due__stored_at(c, number)->purpose & DUE__QUEUED) != 0;
    due__lock_release(&c->calls);
    if (!queued)
        due__submission_hear(c, a, until_ns);
}

/* One that is waited for, until @until_ns.  *@back: it was not sent. */
static int submit_and_wait(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                           int64_t want_ns, int64_t until_ns, bool *back)
{
    struct due__commits *c = q->commits;
    struct due__submission a;
    bool doubt;

    *back = true;
    if (!due__submission_begin(q, &a, 1))
        return DUE_ENOMEM;
    due__commit_submit(q, number, purpose, want_ns, &a);
    due__commit_go(q, &a, until_ns);
    due__submission_wait(c, &a, until_ns);
    hear_end(q, number, &a, until_ns);
    *back = give_up(c, number, &a, &doubt);
    due__submission_settle(c, &a);
    int rc = *back ? due__commit_excuse(q) : doubt ? DUE_EINDOUBT : a.rc;
    due__submission_end(q, &a);
    return rc;
}

/* May a round of the job that leaves have landed for a poll, which nobody came for yet?  Then the
 * removal is waited for: once it was answered nobody gets the round (taking_hand()). */
static bool round_left(const struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    const struct due__commits *c = q->commits;

    return due__removes(purpose) && due__repeats(q, number) &&
           (due__load_seq(&c->takings_ready) > 0 ||
            due__load_seq(&c->takings_under_way) > 0); /* Q7 */
}

int due__commit_one(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                    int64_t want_ns, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    bool waits =
        (!c->async && !by->polls) || purpose == DUE__LEND || round_left(q, number, purpose);
    uint64_t bytes = 0;
    int64_t until = 0;
    bool back;

    if (waits || purpose == DUE__UPDATE)
        until = due__deadline_at(q, by);
    if (purpose == DUE__UPDATE) {
        bytes = due__draft_bytes(due__draft_wanted(purpose, want_ns));
        int rc = due__unsettled_take(q, bytes, until);

        if (rc != 0)
            return rc;
    }
    int rc = waits ? submit_and_wait(q, number, purpose, want_ns, until, &back)
                   : submit_only(q, number, purpose, want_ns);
    if (waits ? back : rc != 0)
        due__unsettled_give(c, bytes);
    if (rc == 0 && by->polls)
        due__commit_try(q);
    return rc;
}

/* A piece at a time: the store works on one while the next is left. */
void due__commit_leave_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                           enum due__purpose purpose, int64_t want_ns, struct due__submission *a,
                           int64_t until_ns)
{
    size_t piece = due__commit_piece(q->commits);

    for (size_t i = 0; i < n; i += piece) {
        if (i > 0)
            due__commit_push(q, until_ns);
        due__submit_all(q, numbers + i, n - i < piece ? n - i : piece, purpose, want_ns, a);
    }
}

void due__commit_leave_each(struct due_queue *q, const uint32_t *numbers, const uint8_t *purposes,
                            size_t n, struct due__submission *a, int64_t until_ns)
{
    size_t piece = due__commit_piece(q->commits);

    for (size_t i = 0; i < n; i += piece) {
        if (i > 0)
            due__commit_push(q, until_ns);
        due__submit_each(q, numbers + i, purposes + i, n - i < piece ? n - i : piece, a);
    }
}

void due__commit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                     int *results)
{
    struct due__commits *c = q->commits;
    struct due__submission a;
    bool waits = !c->async || purpose == DUE__HOLD; /* it is handed out by the answer */
    bool doubt = false;

    for (size_t i = 0; !waits && i < n; i++)
        waits = round_left(q, numbers[i], purpose);

    for (size_t i = 0; !waits && i < n; i++)
        results[i] = submit_only(q, numbers[i], purpose, want_ns);
    for (size_t i = 0; waits && i < n; i++)
        results[i] = DUE_ENOMEM;
    if (!waits || !due__submission_begin(q, &a, (uint32_t)n))
        return;
    due__submission_each(&a, numbers, n, results);
    int64_t until = due__deadline_at(q, by);
    due__commit_leave_all(q, numbers, n, purpose, want_ns, &a, until);
    due__commit_go(q, &a, until);
    due__submission_wait(c, &a, until);
    for (size_t i = 0; i < n; i++) {
        bool back = give_up(c, numbers[i], &a, &doubt);

        if (back || doubt) /* else who sends says, or has said, how it ended */
            results[i] = back ? due__commit_excuse(q) : DUE_EINDOUBT;
    }
    due__submission_settle(c, &a);
    due__submission_end(q, &a);
    for (size_t i = 0; purpose == DUE__CLEAR && i < n; i++) {
        const struct due__job *j = due__job_at(&q->slab, numbers[i]);

        if (results[i] == 0) /* its place is the caller's until he has shown it */
            due__discard(q, numbers[i], due__load_relaxed(&j->word)); /* J1: the caller's own */
    }
}
