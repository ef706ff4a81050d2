/* dequeue_proxy.c - the thread that takes due jobs for consumers that wait.
 *
 * A consumer that is awake takes its job itself, so in a queue of memory this duty has work only
 * when every operation must go through its proxy: with DUE_PROXIES_ALWAYS.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E1 tenure.c, J1 slab.h
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/take.h"

/* The first topic in turn that has a job and somebody parked for it. */
static struct due__topic *choose(struct due_queue *q, struct due__waiter **w)
{
    struct due__topic *t = q->ring;

    while (t != NULL) {
        *w = due__waiter_for(q, t);
        if (*w != NULL)
            return t;
        t = t->next != q->ring ? t->next : NULL;
    }
    return NULL;
}

/* What was in the inbox when it began to hand out: it may stand before what is sorted in by now.
 * What comes later is not waited for, or nothing would be handed out while others keep coming. */
struct awaited {
    const struct due__job *last; /* T  NULL: nothing */
    uint32_t rounds;             /* T  tenures that were spent on it */
};

/* Sort in and move.  True: all that was there is in its line, so the order among it is known. */
static bool sorted_in(struct due_queue *q, struct awaited *a)
{
    if (a->rounds == 0)
        a->last = due__last_in_inbox(q);
    a->rounds++;
    bool moved = due__catch_up(q, DUE__PROXY_BATCH);
    if (!due__inbox_knocked(&q->inbox) || a->last == NULL || /* E1: nothing is left */
        a->rounds > due__slab_end(&q->slab) / DUE__PROXY_BATCH + 1)
        return moved;
    return moved && !(due__load_acquire(&a->last->word) & DUE__LINKED); /* J1 */
}

/* One tenure.  True: more is to be handed out. */
static bool hand_out(struct due_queue *q, struct awaited *a)
{
    struct due__tenure t;
    struct due__topic *topic = NULL;
    struct due__waiter *w;
    struct due__slot s;

    due__enter(q, &t);
    bool moved = sorted_in(q, a);
    if (moved)
        a->rounds = 0;
    while (moved && (topic = choose(q, &w)) != NULL && due__tenure_room(&t)) {
        int number = topic->number;
        struct due__wanted wanted = { .topics = &number, .count = 1 };
        size_t got;

        enum due__found found = due__take_ready(q, &wanted, &s, 1, &got);
        if (found == DUE__AGAIN)
            break;
        if (found == DUE__NOTHING)
            continue; /* it has left the ring */
        due__topic_last(q, topic);
        w->hand = due__slot_job(s);
        due__call(q, &t, w, NULL); /* it comes for what is in its hand */
    }
    due__tenure_end(q, &t);
    return !moved || topic != NULL;
}

void due__dequeue_proxy(struct due_queue *q)
{
    while (!(due__load_seq(&q->state) & DUE__STOPPED)) { /* no edge: rung after it was set */
        due__bell_wait(&q->dequeue_bell, DUE_FOREVER, false);
        struct awaited a = { .last = NULL };

        while (hand_out(q, &a))
            ;
    }
}
