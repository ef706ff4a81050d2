/* enqueue_proxy.c - the thread that sorts in what producers left, while they keep leaving more.
 *
 * A caller that has helped others for long enough sets ACTIVE and rings here.  While ACTIVE is set
 * producers only leave their jobs and go.  At the first empty look the proxy hands back (edge E2 of
 * core.c).  With DUE_PROXIES_ALWAYS the flag stays set and every producer rings.
 */
#include "core.h"

#include "atomic.h"

/* Sort in until the inbox is empty, or half linked: then its producer will look. */
static void drain(struct due_queue *q)
{
    struct due__tenure t;
    bool half;
    bool done;

    do {
        due__enter(q, &t);
        done = due__drain(q, DUE__PROXY_BATCH, &half);
        due__leave(q, &t);
    } while (!done);
}

void due__enqueue_proxy(struct due_queue *q)
{
    for (;;) {
        due__bell_wait(&q->enqueue_bell, DUE_FOREVER, false);
        if (due__load_seq(&q->state) & DUE__STOPPED) /* no edge: rung after it was set */
            return;
        drain(q);
        while (q->proxies != DUE_PROXIES_ALWAYS) {
            due__and_seq(&q->state, ~DUE__ACTIVE); /* E2 */
            if (!due__inbox_knocked(&q->inbox))    /* E2 */
                break;
            due__or_seq(&q->state, DUE__ACTIVE); /* E2 */
            drain(q);
        }
    }
}
