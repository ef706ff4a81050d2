/* inbox.c - wait-free submission.
 *
 * A producer exchanges the tail, then links its node behind the one it found there.  In between
 * the chain is half linked, and what lies behind the gap cannot be reached.  Nobody waits for the
 * link: the producer at the gap has still to knock, and to look at the lock (tenure.c, edge E1).
 *
 * Edges      I1  put: the exchange of the tail and the link release the node -> take acquires it
 *            E1  see tenure.c: put links, then knocks, then looks at the state and the lock; a
 *                holder releases the lock, then looks whether anybody knocked.  Linking, both looks
 *                at the knock, answering and taking are sequentially consistent, so who finds that
 *                somebody has knocked before him need not do so again: that knock is answered after
 *                his look, and what he linked before it is found by whoever takes after that.  Many
 *                producers then share the knock's line, instead of taking it from each other.
 *            I2  a drain sorts in, then says quiet -> whoever finds it quiet sees in its place
 *                whatever was put before.  While a gap is left it is not quiet.
 *            I3  what may be taken without the lock must not stand behind anything that was put.
 *                Whoever shows jobs reads the clock, then drains to the end, then shows only what
 *                is due by that reading.  A producer puts its job, then reads the clock; is the
 *                deadline later than that, then either the drain came after the put, and has sorted
 *                the job in, or the job stands behind all that is shown.  So does a job without
 *                delay: it is not due before after_ns, see N1.  If the deadline is not later, or
 *                that cannot be told, the producer says that it is late before it returns.  A drain
 *                answers first, and only at its end, if nobody has said so again, is nothing late:
 *                then a taker that finds it so sees in its place whatever was put before.  If a
 *                drain had to stop early and jobs are shown all the same, its holder says that they
 *                are late.
 *
 * Always     N1  no call that put what is in it had returned at after_ns.  That rises in three
 *                ways.  When a drain begins after one that left nothing: what has left the timeline
 *                by then was due by clocks that were read before somebody found the inbox empty, or
 *                quiet, and only after that came what is in it.  When all up to the mark has been
 *                sorted in: that was the last one when the clock had shown mark_ns.  And with each
 *                job without delay that is taken out: it read the clock before it was put, and
 *                those behind it were put later.
 */
#include "mem/inbox.h"

void due__inbox_init(struct due__inbox *in)
{
    in->head.node.next = NULL;
    in->tail.p = &in->head.node;
    in->knock = DUE__QUIET;
    in->late = DUE__QUIET;
    in->after_ns = -1;
    in->mark_ns = -1;
    in->mark = NULL;
    in->left = DUE__INBOX_EMPTY;
}

/* Unless somebody has, and has not been answered. */
static inline void knock(uint32_t *word)
{
    if (due__load_seq(word) != DUE__KNOCKED) /* E1, I3 */
        due__xchg_seq(word, DUE__KNOCKED);   /* E1, I3 */
}

void due__inbox_put_all(struct due__inbox *in, const struct due__string *s)
{
    if (s->first == NULL)
        return;
    struct cds_wfcq_node *before = due__xchg_seq(&in->tail.p, s->last); /* I1 */
    due__store_seq(&before->next, s->first);                            /* I1, E1 */
    knock(&in->knock);                                                  /* E1 */
}

void due__inbox_put(struct due__inbox *in, struct cds_wfcq_node *node)
{
    struct due__string one = { NULL, NULL };

    due__string_add(&one, node);
    due__inbox_put_all(in, &one);
}

void due__inbox_say_late(struct due__inbox *in)
{
    knock(&in->late); /* I3 */
}

/* What was marked has been sorted in. */
static void pass_mark(struct due__inbox *in)
{
    in->mark = NULL;
    if (in->mark_ns > in->after_ns)
        in->after_ns = in->mark_ns;
}

/* The node @first, which the head leads to, out of the queue.  False: behind it a producer has not
 * linked yet. */
static bool unlink_first(struct due__inbox *in, struct cds_wfcq_node *first)
{
    struct cds_wfcq_node *last = first;
    struct cds_wfcq_node *next = due__load_seq(&first->next); /* I1, E1 */

    if (next == NULL) {
        due__store_relaxed(&in->head.node.next, NULL); /* I1: with the exchange, if it succeeds */
        if (due__cas_seq(&in->tail.p, &last, &in->head.node)) /* I1 */
            return true; /* it was the last: what comes now is linked behind the head */
        next = due__load_seq(&first->next); /* I1, E1 */
    }
    due__store_relaxed(&in->head.node.next, next != NULL ? next : first); /* I1: nobody else does */
    return next != NULL;
}

enum due__inbox_found due__inbox_take(struct due__inbox *in, struct cds_wfcq_node **node)
{
    if (in->mark == &in->head.node)
        pass_mark(in);
    struct cds_wfcq_node *found = due__load_seq(&in->head.node.next); /* I1, E1 */

    if (found == NULL)
        return due__load_seq(&in->tail.p) == &in->head.node /* I1 */
                   ? DUE__INBOX_EMPTY
                   : DUE__INBOX_HALF;
    if (!unlink_first(in, found))
        return DUE__INBOX_HALF;
    if (found == in->mark)
        in->mark = &in->head.node;
    *node = found;
    return DUE__INBOX_NODE;
}

void due__inbox_answer(struct due__inbox *in)
{
    due__xchg_seq(&in->knock, DUE__ANSWERED); /* E1 */
    if (due__inbox_late(in))
        due__xchg_seq(&in->late, DUE__ANSWERED); /* I3 */
    if (in->mark == NULL && in->mark_ns > in->after_ns)
        in->mark = due__load_acquire(&in->tail.p); /* I1: after the clock was read */
}

void due__inbox_answered(struct due__inbox *in, enum due__inbox_found last)
{
    uint32_t answered = DUE__ANSWERED;

    in->left = last;
    if (in->mark == &in->head.node || (in->mark != NULL && last == DUE__INBOX_EMPTY))
        pass_mark(in);
    if (last == DUE__INBOX_NODE)
        due__xchg_seq(&in->knock, DUE__KNOCKED); /* E1: on behalf of what is left */
    if (last != DUE__INBOX_EMPTY)
        return;
    due__cas_seq(&in->knock, &answered, DUE__QUIET); /* E1, I2 */
    answered = DUE__ANSWERED;
    if (due__inbox_late(in))
        due__cas_seq(&in->late, &answered, DUE__QUIET); /* I3 */
}
