/* enqueue_proxy.c - the thread that sorts in what producers left, while they keep leaving more.
 *
 * A caller that has helped others for long enough sets ACTIVE and rings here.  While ACTIVE is set
 * producers only leave their jobs and go.  At the first empty look the proxy hands back (edge E2 of
 * tenure.c).  With DUE_PROXIES_ALWAYS the flag stays set and every producer rings.
 */
#include "os/atomic.h"
#include "queue/queue.h"

void due__enqueue_proxy(struct due_queue *q)
{
    for (;;) {
        due__bell_wait(&q->enqueue_bell, DUE_FOREVER, false);
        if (due__load_seq(&q->state) & DUE__STOPPED) /* no edge: rung after it was set */
            return;
        due__drain_all(q);
        if (q->proxies == DUE_PROXIES_ALWAYS && due__inbox_knocked(&q->inbox)) /* E2 */
            due__bell_ring(&q->enqueue_bell);
        while (q->proxies != DUE_PROXIES_ALWAYS) {
            due__and_seq(&q->state, ~DUE__ACTIVE); /* E2 */
            if (!due__inbox_knocked(&q->inbox))    /* E2 */
                break;
            due__or_seq(&q->state, DUE__ACTIVE); /* E2 */
            due__drain_all(q);
        }
    }
}
