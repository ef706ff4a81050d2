/* inbox.h - where an enqueue lands before it is sorted in: liburcu's wait-free queue.
 *
 * liburcu's atomics are inline assembly and volatile accesses.  Here they are replaced by the
 * compiler's, so that ThreadSanitizer sees real atomics and the explorer can take over at each.
 * The code inlined from the header is liburcu's (LGPL-2.1).
 *
 * Whoever takes from the queue writes plainly to what others would have to read to see whether it
 * is empty.  So the look without the lock is at a word of our own beside it: a producer that has
 * linked its node knocks, and whoever drains answers the knock first.
 */
#ifndef DUE__INBOX_H
#define DUE__INBOX_H

#include <stdbool.h>

#include <urcu/compiler.h>
#include <urcu/system.h>
#include <urcu/uatomic.h>

#include "atomic.h"

#undef uatomic_xchg
#undef uatomic_cmpxchg
#undef CMM_LOAD_SHARED
#undef CMM_STORE_SHARED
/* All of these: I1 of inbox.c. */
#define uatomic_xchg(addr, v) due__xchg_seq((addr), (v))
#define uatomic_cmpxchg(addr, o, n)                    \
    __extension__({                                    \
        __typeof__(*(addr)) due__old = (o);            \
        due__cas_seq((addr), &due__old, (n)); /* I1 */ \
        due__old;                                      \
    })
#define CMM_LOAD_SHARED(p)     due__load_acquire(&(p))       /* I1 */
#define CMM_STORE_SHARED(p, v) due__store_release(&(p), (v)) /* I1 */

#define _LGPL_SOURCE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-value"
#include <urcu/wfcqueue.h>
#pragma GCC diagnostic pop
#undef _LGPL_SOURCE

#define DUE__LINE 64 /* bytes of a cache line */

struct due__inbox {
    struct __cds_wfcq_head head; /* A  I1; moved by the holder of the timeline lock only */
    char apart[DUE__LINE - sizeof(struct __cds_wfcq_head)]; /* I  producers touch tail only */
    struct cds_wfcq_tail tail;                              /* A  I1 */
    uint32_t knock;                                         /* A  E1 */
};

enum due__inbox_found {
    DUE__INBOX_EMPTY, /* nothing there */
    DUE__INBOX_HALF,  /* a producer stands between its exchange and its link: it will look itself */
    DUE__INBOX_NODE   /* one taken */
};

void due__inbox_init(struct due__inbox *in);

/* Any thread, wait-free: one exchange, one store and one more exchange. */
void due__inbox_put(struct due__inbox *in, struct cds_wfcq_node *node);

/* Under the timeline lock. */
enum due__inbox_found due__inbox_take(struct due__inbox *in, struct cds_wfcq_node **node);

/* Under the timeline lock, around taking: what is linked after the first knocks again.  @left:
 * nodes that could have been taken were not. */
void due__inbox_answer(struct due__inbox *in);
void due__inbox_answered(struct due__inbox *in, bool left);

/* Any thread: was a node linked that nobody has begun to take? */
bool due__inbox_knocked(struct due__inbox *in);

/* Any thread: has everything that was ever linked been taken, and sorted in? */
bool due__inbox_quiet(struct due__inbox *in);

#endif
