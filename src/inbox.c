/* inbox.c - wait-free submission.
 *
 * A producer exchanges the tail, then links its node behind the one it found there.  In between
 * the chain is half linked, and what lies behind the gap cannot be reached.  Nobody waits for the
 * link: the producer at the gap has still to knock, and to look at the lock (core.c, edge E1).
 *
 * Edges      I1  put: the exchange of the tail and the link release the node -> take acquires it
 *            E1  see core.c: put links, then knocks, then looks at the state and the lock; a holder
 *                releases the lock, then looks whether anybody knocked.  Answering a knock acquires
 *                the link that came before it.
 *            I2  a drain sorts in, then says quiet -> a taker that finds it quiet sees in its place
 *                whatever was put before, but for what stands behind a gap
 */
#include "inbox.h"

enum { QUIET, KNOCKED, ANSWERED };

void due__inbox_init(struct due__inbox *in)
{
    __cds_wfcq_init(&in->head, &in->tail);
    in->knock = QUIET;
}

void due__inbox_put(struct due__inbox *in, struct cds_wfcq_node *node)
{
    cds_wfcq_node_init(node);
    cds_wfcq_enqueue(&in->head, &in->tail, node); /* I1 */
    due__xchg_seq(&in->knock, KNOCKED);           /* E1 */
}

enum due__inbox_found due__inbox_take(struct due__inbox *in, struct cds_wfcq_node **node)
{
    struct cds_wfcq_node *found = __cds_wfcq_dequeue_nonblocking(&in->head, &in->tail); /* I1 */

    if (found == NULL)
        return DUE__INBOX_EMPTY;
    if (found == CDS_WFCQ_WOULDBLOCK)
        return DUE__INBOX_HALF;
    *node = found;
    return DUE__INBOX_NODE;
}

void due__inbox_answer(struct due__inbox *in)
{
    if (due__load_relaxed(&in->knock) !=
        QUIET)                               /* no edge: only saves an exchange that finds it so */
        due__xchg_seq(&in->knock, ANSWERED); /* E1 */
}

void due__inbox_answered(struct due__inbox *in, bool left)
{
    uint32_t answered = ANSWERED;

    if (left)
        due__xchg_seq(&in->knock, KNOCKED);             /* E1: on behalf of what is left */
    else if (due__load_relaxed(&in->knock) == ANSWERED) /* no edge: the swap decides */
        due__cas_seq(&in->knock, &answered, QUIET);     /* E1, I2 */
}

bool due__inbox_knocked(struct due__inbox *in)
{
    return due__load_seq(&in->knock) == KNOCKED; /* E1 */
}

bool due__inbox_quiet(struct due__inbox *in)
{
    return due__load_seq(&in->knock) == QUIET; /* I2 */
}
