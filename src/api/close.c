/* close.c - closing a queue: refuse, deliver or discard, let everybody go.
 *
 * Edges      described elsewhere: C2 closing.c, E3 tenure.c, C1 C5 inside.c, G2 sender.c, J1 slab.h
 *
 * Not here   Who is inside, and waiting for the last of them: inside.c.
 */
#include "job/discard.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"

int due_close(due_queue *q, enum due_close_mode mode, int64_t timeout_ns)
{
    uint64_t discarded = 0;
    uint64_t dead = 0;
    enum due__ending ending;

    if (due__forked(q))
        return DUE_EFORK;
    if (due__handling(q))
        return DUE_EDEADLK;
    if (timeout_ns < 0 || (mode != DUE_CLOSE_DRAIN && mode != DUE_CLOSE_DISCARD))
        return DUE_EINVAL;
    int64_t until = due__time_add(due__timeout_now(q), timeout_ns);
    struct due__waiter *w = due__closer_enter(q);
    if (w == NULL)
        return DUE_ENOMEM;
    if (mode == DUE_CLOSE_DRAIN) {
        due__or_seq(&q->state, DUE__DRAINING); /* E3, C2 of closing.c */
        due__drain_all(q); /* as far as it can be reached; C5 of inside.c, as below */
        due__wake_all(q, false);
        due__drained(q);
    } else {
        due__or_seq(&q->state, DUE__CLOSING); /* E3, C1 of inside.c */
        q->journal->stop(q, due__time_add(due__monotonic_now(), timeout_ns));
        due__drain_all(q);
        due_clear(q, DUE_ALL_TOPICS, &discarded);
        due_clear_dead(q, DUE_ALL_TOPICS, &dead);
        discarded += dead;
        if (discarded > 0)
            due__log(q, DUE_LOG_INFO, "%s: closed with %llu jobs %s", q->name,
                     (unsigned long long)discarded, q->journal->left_text);
        due__wake_all(q, true);
    }
    int rc = due__closer_wait(q, w, until, &ending);
    if (ending == DUE__ENDING) {
        due__stop_proxies(q);
        q->journal->close(q);
    }
    due__closer_leave(q, w, ending == DUE__ENDING);
    return rc;
}
