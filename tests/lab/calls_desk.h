/* calls_desk.h - a queue with a store, whose calls are looked at section by section of the calls'
 * lock (knock.h). */
#ifndef CALLS_DESK_H
#define CALLS_DESK_H

#include "lab/knock.h"
#include "lab/shop.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/taking_inside.h"

enum { ROOM = 100 }; /* bytes that may be on their way */

struct desk {
    struct shop s;
    due_queue *q;
    struct due__commits *c;
    struct due__submission a; /* the test's own call */
    struct due__submission b; /* likewise */
    struct due__taking *t;
    struct due__taking *spare;
    due_id id;
    uint64_t told;
    uint64_t before;
    uint32_t number;
    bool over;
    unsigned looks;
};

static inline void desk_open(struct desk *d, struct lab_options with)
{
    *d = (struct desk){ .looks = 0 };
    with.start_ns = 1;
    with.with.unsettled_bytes_max = ROOM;
    d->s = shop_new(NULL, with);
    d->q = d->s.lab.q;
    d->c = d->q->commits;
    crew_until_others_asleep();
}

static inline void desk_make(struct desk *d)
{
    desk_open(d, (struct lab_options){ .kernel = false });
}

static inline void begin(struct desk *d, struct due__submission *a)
{
    cr_assert(due__submission_begin(d->q, a, 1));
    (void)due__bell_take(&a->waiter->bell);
}

/* Of a call that takes the lock several times: it is under one of them that it is done. */
static inline void once_under(struct desk *d, void (*open)(struct desk *), void (*call)(void *),
                              enum knock_far (*far)(void *), const char *what)
{
    enum knock how = KNOCK_UNDER;
    unsigned under = 0;
    unsigned n;

    for (n = 1; how != KNOCK_NEVER && how != KNOCK_BLIND; n++) {
        open(d);
        how = knock_nth(&d->c->calls, n, call, far, d);
        under += how == KNOCK_UNDER;
        shop_close(&d->s);
    }
    cr_expect(under == 1 || how == KNOCK_BLIND, "%s: under %u of %u", what, under, n - 2);
}

#endif
