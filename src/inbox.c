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
 */
#include "inbox.h"

void due__inbox_init(struct due__inbox *in)
{
    __cds_wfcq_init(&in->head, &in->tail);
    in->knocked = 0;
}

void due__inbox_put(struct due__inbox *in, struct cds_wfcq_node *node)
{
    cds_wfcq_node_init(node);
    cds_wfcq_enqueue(&in->head, &in->tail, node); /* I1 */
    due__xchg_seq(&in->knocked, 1);               /* E1 */
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
    if (due__load_relaxed(&in->knocked) != 0) /* no edge: only saves an exchange that finds 0 */
        due__xchg_seq(&in->knocked, 0);       /* E1 */
}

void due__inbox_knock(struct due__inbox *in)
{
    due__xchg_seq(&in->knocked, 1); /* E1 */
}

bool due__inbox_knocked(struct due__inbox *in)
{
    return due__load_seq(&in->knocked) != 0; /* E1 */
}
