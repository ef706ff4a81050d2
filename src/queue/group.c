/* group.c - groups by name: one gate each, as long as the queue has a job of it.
 *
 * A group is of one topic: the same name in another topic is another group.  Each of its jobs,
 * delayed ones too, keeps it; the job's front leads to it, so its name is looked for only when a
 * job comes in.  The table grows by one bucket at a time (linear hashing), so nobody is held up
 * while it does, and never shrinks: at most 16 bytes for each group there ever was at a time.
 *
 * Guards     I  set when it is made      T  the timeline lock      A  atomic, see Edges
 *            O  its owner's alone
 *
 * Edges      U1  the count of a group's jobs rises under the lock only, and falls without it only
 *                as long as others are left.  The last one goes under the lock.  Who counts itself
 *                out releases; who finds itself the last acquires, and frees the group after all of
 *                them.
 */
#include <assert.h>
#include <string.h>

#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/limit.h"
#include "queue/queue.h"

#define FIRST_BUCKETS 64u
#define DROPS_MAX     512u /* dead slots dropped in one tenure */

/* ---- The table, under the lock ---- */

static unsigned segment_of(uint32_t bucket)
{
    return bucket < FIRST_BUCKETS ? 0 : (unsigned)(32 - __builtin_clz(bucket / FIRST_BUCKETS));
}

static uint32_t segment_begin(unsigned k)
{
    return k == 0 ? 0 : FIRST_BUCKETS << (k - 1);
}

static size_t segment_bytes(unsigned k)
{
    return (k == 0 ? FIRST_BUCKETS : segment_begin(k)) * sizeof(struct due__gate *);
}

static struct due__gate **bucket_at(struct due__gates *all, uint32_t bucket)
{
    unsigned k = segment_of(bucket);

    return &all->segment[k][bucket - segment_begin(k)];
}

struct due__gate *due__group_first(struct due_queue *q, uint32_t bucket)
{
    return *bucket_at(&q->gates, bucket);
}

/* Which bucket is for @hash: of a power of two that is not wholly there yet, the upper ones that
 * are missing stand for themselves in the lower half. */
static uint32_t bucket_for(const struct due__gates *all, uint32_t hash)
{
    uint32_t half = UINT32_C(1) << (31 - __builtin_clz(all->buckets));
    uint32_t bucket = hash & (2 * half - 1);

    return bucket < all->buckets ? bucket : bucket - half;
}

/* One bucket more: some of what was in one of the others. */
static void split(struct due__gates *all)
{
    uint32_t added = all->buckets;
    uint32_t half = UINT32_C(1) << (31 - __builtin_clz(added));
    struct due__gate **from = bucket_at(all, added - half);
    struct due__gate **to = bucket_at(all, added);

    all->buckets++;
    while (*from != NULL) {
        struct due__gate *g = *from;

        if ((g->hash & (2 * half - 1)) != added) {
            from = &g->chain;
            continue;
        }
        *from = g->chain;
        g->chain = *to;
        *to = g;
    }
}

/* Names come from outside: whoever chooses them must not be able to choose buckets. */
static uint32_t hash_of(const struct due_queue *q, uint32_t topic, const void *name, size_t len)
{
    return (uint32_t)due__siphash(q->seed, name, len) + topic * UINT32_C(0x9e3779b1);
}

static struct due__gate *find(struct due__gates *all, uint32_t hash, uint32_t topic,
                              const void *name, size_t len)
{
    struct due__gate *g = all->buckets > 0 ? *bucket_at(all, bucket_for(all, hash)) : NULL;

    while (g != NULL && (g->hash != hash || g->topic != topic || g->len != len ||
                         memcmp(g->name, name, len) != 0))
        g = g->chain;
    return g;
}

/* ---- Joining ---- */

/* A new group, and memory for more buckets: made outside the lock. */
struct group_parts {
    struct due__gate *gate;     /* O */
    struct due__gate **buckets; /* O */
    unsigned segment;           /* O  which those are */
};

/* Which segment is wanted before another group can be added; DUE__GATE_SEGMENTS: none. */
static unsigned lacks(const struct due__gates *all)
{
    unsigned k = segment_of(all->buckets);

    return all->groups < all->buckets || k == DUE__GATE_SEGMENTS || all->segment[k] != NULL
               ? DUE__GATE_SEGMENTS
               : k;
}

/* The new group into the table.  NULL: something is wanted for that. */
static struct due__gate *add(struct due__gates *all, struct group_parts *p)
{
    unsigned k = lacks(all);
    struct due__gate *g = p->gate;

    if (g == NULL || (k < DUE__GATE_SEGMENTS && (p->buckets == NULL || p->segment != k)))
        return NULL;
    if (k < DUE__GATE_SEGMENTS) {
        all->segment[k] = p->buckets;
        p->buckets = NULL;
    }
    if (all->buckets == 0)
        all->buckets = FIRST_BUCKETS;
    else if (all->groups >= all->buckets && segment_of(all->buckets) < DUE__GATE_SEGMENTS)
        split(all);
    struct due__gate **bucket = bucket_at(all, bucket_for(all, g->hash));
    g->chain = *bucket;
    *bucket = g;
    all->groups++;
    all->any = true;
    p->gate = NULL;
    return g;
}

static void parts_free(struct due_queue *q, struct group_parts *p)
{
    if (p->gate != NULL)
        due__gate_free(q, p->gate);
    if (p->buckets != NULL)
        due__alloc_free(&q->alloc, p->buckets, segment_bytes(p->segment));
    p->gate = NULL;
    p->buckets = NULL;
}

/* What is wanted for a group of this name.  False: no memory. */
static bool parts_make(struct due_queue *q, struct group_parts *p, const struct due__gate *like,
                       const void *name, unsigned segment)
{
    p->gate = due__alloc_new(&q->alloc, sizeof *p->gate + like->len);
    if (p->gate == NULL)
        return false;
    p->gate->queue = q;
    p->gate->limit = 1;
    p->gate->hash = like->hash;
    p->gate->topic = like->topic;
    p->gate->len = like->len;
    memcpy(p->gate->name, name, like->len);
    p->segment = segment;
    if (segment < DUE__GATE_SEGMENTS)
        p->buckets = due__alloc_new(&q->alloc, segment_bytes(segment));
    return segment == DUE__GATE_SEGMENTS || p->buckets != NULL;
}

int due__group_join(struct due_queue *q, int topic, const void *name, size_t len,
                    struct due__gate **group)
{
    struct due__gate like = { .topic = (uint16_t)topic,
                              .len = (uint16_t)len,
                              .hash = hash_of(q, (uint32_t)topic, name, len) };
    struct group_parts p = { .gate = NULL };
    struct due__tenure t;

    for (;;) {
        due__enter(q, &t);
        struct due__gate *g = find(&q->gates, like.hash, like.topic, name, len);
        if (g == NULL)
            g = add(&q->gates, &p);
        if (g != NULL)
            due__add_relaxed(&g->jobs, 1); /* U1: under the lock */
        unsigned segment = lacks(&q->gates);
        due__leave(q, &t);
        parts_free(q, &p);
        if (g != NULL) {
            *group = g;
            return 0;
        }
        if (!parts_make(q, &p, &like, name, segment)) {
            parts_free(q, &p);
            return DUE_ENOMEM;
        }
    }
}

/* ---- Parting ---- */

static void remove_group(struct due__gates *all, struct due__gate *g)
{
    struct due__gate **at = bucket_at(all, bucket_for(all, g->hash));

    while (*at != g)
        at = &(*at)->chain;
    *at = g->chain;
    all->groups--;
}

/* False: it is the last. */
static bool part_from_others(struct due__gate *g)
{
    uint32_t jobs = due__load_acquire(&g->jobs); /* U1 */

    while (jobs > 1) {
        if (due__cas_acq_rel(&g->jobs, &jobs, jobs - 1)) /* U1 */
            return true;
    }
    return false;
}

/* Under the lock: the last job, but for others that came meanwhile.  What waits there is dead, and
 * is dropped first.  False: more of it is left. */
static bool part_last(struct due_queue *q, struct due__gate *g, bool *empty)
{
    *empty = false;
    if (part_from_others(g))
        return true;
    for (uint32_t n = 0; g->line.count > 0; n++) {
        if (n == DROPS_MAX)
            return false;
        due__gate_pop(q, g);
    }
    assert(g->running == 0);
    remove_group(&q->gates, g);
    *empty = true;
    return true;
}

void due__group_part(struct due__gate *g)
{
    struct due_queue *q = g->queue;
    struct due__tenure t;
    bool empty = false;
    bool over;

    if (part_from_others(g))
        return;
    do {
        due__enter(q, &t);
        over = part_last(q, g, &empty);
        due__leave(q, &t);
    } while (!over);
    if (empty)
        due__gate_free(q, g);
}

void due__gates_destroy(struct due_queue *q)
{
    struct due__gates *all = &q->gates;

    for (uint32_t i = 0; i < q->topic_count; i++) {
        struct due__topic *t = due__topic_at(q, i);

        if (t->gate != NULL)
            due__gate_free(q, t->gate);
        t->gate = NULL;
    }
    for (uint32_t i = 0; i < all->buckets; i++) {
        struct due__gate *next;

        for (struct due__gate *g = due__group_first(q, i); g != NULL; g = next) {
            next = g->chain;
            due__gate_free(q, g);
        }
    }
    for (unsigned k = 0; k < DUE__GATE_SEGMENTS; k++) {
        if (all->segment[k] != NULL)
            due__alloc_free(&q->alloc, all->segment[k], segment_bytes(k));
    }
}
