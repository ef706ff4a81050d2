/* inbox.h - where an enqueue lands before it is sorted in: a wait-free queue.
 *
 * The queue is that of liburcu's wfcqueue, and has its types.  What is done to it is written here,
 * with the library's own atomics: how liburcu's headers reach theirs differs from version to
 * version, so they cannot be replaced from outside, and what is claimed of the order here would
 * hold with some of them only.
 *
 * Whoever takes from the queue writes to what others would have to read to see whether it is empty.
 * So the look without the lock is at a word of our own beside it: a producer that has linked its
 * node knocks, and whoever drains answers the knock first.
 */
#ifndef DUE__INBOX_H
#define DUE__INBOX_H

#include <stdbool.h>

#include "os/atomic.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <urcu/compiler.h>
#include <urcu/wfcqueue.h>
#pragma GCC diagnostic pop

#define DUE__LINE 64 /* bytes of a cache line */

enum due__inbox_found {
    DUE__INBOX_EMPTY, /* nothing there */
    DUE__INBOX_HALF,  /* a producer stands between its exchange and its link: it will look itself */
    DUE__INBOX_NODE   /* one taken */
};

struct due__inbox {
    union {
        struct {
            struct __cds_wfcq_head head; /* A  I1; moved by the holder of the timeline lock only */
            int64_t after_ns; /* T  N1: no call that put what is in it had returned by then */
            int64_t mark_ns;  /* T  N1: nor had what stands behind the mark */
            struct cds_wfcq_node *mark; /* T  NULL: there is none; the head's: it was taken out */
            enum due__inbox_found left; /* T  what the last drain ended with */
        };
        char apart[DUE__LINE]; /* I  producers touch what follows only */
    };
    union {
        struct cds_wfcq_tail tail;  /* A  I1; written for each node */
        char tail_apart[DUE__LINE]; /* I  never written as such */
    };
    union {
        struct {
            uint32_t knock; /* A  E1; mostly read, as long as nobody answers it */
            uint32_t late;  /* A  I3 */
        };
        char knock_apart[DUE__LINE]; /* I  likewise */
    };
};

/* Of a knock, and of late. */
enum due__knock { DUE__QUIET, DUE__KNOCKED, DUE__ANSWERED };

void due__inbox_init(struct due__inbox *in);

/* Any thread, wait-free: one exchange, one store, and one more exchange unless somebody's knock is
 * still to be answered. */
void due__inbox_put(struct due__inbox *in, struct cds_wfcq_node *node);

/* Nodes that are to be put together. */
struct due__string {
    struct cds_wfcq_node *first; /* O  NULL: there are none */
    struct cds_wfcq_node *last;  /* O */
};

static inline void due__string_add(struct due__string *s, struct cds_wfcq_node *node)
{
    due__store_relaxed(&node->next, NULL); /* I1: likewise */
    if (s->first == NULL)
        s->first = node;
    else
        due__store_relaxed(&s->last->next, node); /* I1: with the exchange of the tail */
    s->last = node;
}

/* Any thread: as if something had been put, for who has left it elsewhere. */
static inline void due__inbox_knock(struct due__inbox *in)
{
    due__xchg_seq(&in->knock, DUE__KNOCKED); /* E1 */
}

/* As due__inbox_put(), in their order, with nothing in between.  It costs what one costs. */
void due__inbox_put_all(struct due__inbox *in, const struct due__string *s);

/* Any thread: what was put may stand before what is shown. */
void due__inbox_say_late(struct due__inbox *in);

/* Under the timeline lock. */
enum due__inbox_found due__inbox_take(struct due__inbox *in, struct cds_wfcq_node **node);

/* Under the timeline lock, before a drain: what has left the timeline so far was due by @ns.  (N1
 * of inbox.c) */
static inline void due__inbox_note(struct due__inbox *in, int64_t ns)
{
    if (in->left == DUE__INBOX_EMPTY && ns > in->after_ns)
        in->after_ns = ns;
}

/* The same: the clock, as it was read just now. */
static inline void due__inbox_mark(struct due__inbox *in, int64_t now_ns)
{
    if (in->mark == NULL)
        in->mark_ns = now_ns;
}

/* Under the timeline lock, around taking: what is linked after the first knocks again.  @last: what
 * the last take found. */
void due__inbox_answer(struct due__inbox *in);
void due__inbox_answered(struct due__inbox *in, enum due__inbox_found last);

/* Any thread: was a node linked that nobody has begun to take? */
static inline bool due__inbox_knocked(struct due__inbox *in)
{
    return due__load_seq(&in->knock) == DUE__KNOCKED; /* E1 */
}

/* Any thread: has everything that was ever put been taken, and sorted in? */
static inline bool due__inbox_quiet(struct due__inbox *in)
{
    return due__load_seq(&in->knock) == DUE__QUIET; /* E1, I2 */
}

/* Any thread: may something in it stand before what is shown? */
static inline bool due__inbox_late(struct due__inbox *in)
{
    return due__load_seq(&in->late) != DUE__QUIET; /* I3 */
}

/* Under the timeline lock: the node that will be taken next, if one was taken before. */
static inline void due__inbox_prefetch(const struct due__inbox *in)
{
    __builtin_prefetch(due__load_relaxed(&in->head.node.next), 1); /* no edge: not looked into */
}

#endif
