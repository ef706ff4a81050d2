/* group.c - groups by name: one limiter each, as long as the queue has a job of it.
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
    return (k == 0 ? FIRST_BUCKETS : segment_begin(k)) * sizeof(struct due__limiter *);
}

static struct due__limiter **bucket_at(struct due__limiters *all, uint32_t bucket)
{
    unsigned k = segment_of(bucket);

    return &all->segment[k][bucket - segment_begin(k)];
}

struct due__limiter *due__group_first(struct due_queue *q, uint32_t bucket)
{
    return *bucket_at(&q->limiters, bucket);
}

/* Which bucket is for @hash: of a power of two that is not wholly there yet, the upper ones that
 * are missing stand for themselves in the lower half. */
static uint32_t bucket_for(const struct due__limiters *all, uint32_t hash)
{
    uint32_t half = UINT32_C(1) << (31 - __builtin_clz(all->buckets));
    uint32_t bucket = hash & (2 * half - 1);

    return bucket < all->buckets ? bucket : bucket - half;
}

/* One bucket more: some of what was in one of the others. */
static void split(struct due__limiters *all)
{
    uint32_t added = all->buckets;
    uint32_t half = UINT32_C(1) << (31 - __builtin_clz(added));
    struct due__limiter **from = bucket_at(all, added - half);
    struct due__limiter **to = bucket_at(all, added);

    all->buckets++;
    while (*from != NULL) {
        struct due__limiter *g = *from;

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

static struct due__limiter *find(struct due__limiters *all, uint32_t hash, uint32_t topic,
                                 const void *name, size_t len)
{
    struct due__limiter *g = all->buckets > 0 ? *bucket_at(all, bucket_for(all, hash)) : NULL;

    while (g != NULL && (g->hash != hash || g->topic != topic || g->len != len ||
                         memcmp(g->name, name, len) != 0))
        g = g->chain;
    return g;
}

/* ---- Joining ---- */

/* A new group, and memory for more buckets: made outside the lock. */
struct group_parts {
    struct due__limiter *limiter;  /* O */
    struct due__limiter **buckets; /* O */
    unsigned segment;              /* O  which those are */
};

/* Which segment is wanted before another group can be added; DUE__LIMITER_SEGMENTS: none. */
static unsigned lacks(const struct due__limiters *all)
{
    unsigned k = segment_of(all->buckets);

    return all->groups < all->buckets || k == DUE__LIMITER_SEGMENTS || all->segment[k] != NULL
               ? DUE__LIMITER_SEGMENTS
               : k;
}

/* The new group into the table.  NULL: something is wanted for that. */
static struct due__limiter *add(struct due__limiters *all, struct group_parts *p)
{
    unsigned k = lacks(all);
    struct due__limiter *g = p->limiter;

    if (g == NULL || (k < DUE__LIMITER_SEGMENTS && (p->buckets == NULL || p->segment != k)))
        return NULL;
    if (k < DUE__LIMITER_SEGMENTS) {
        all->segment[k] = p->buckets;
        p->buckets = NULL;
    }
    if (all->buckets == 0)
        all->buckets = FIRST_BUCKETS;
    else if (all->groups >= all->buckets && segment_of(all->buckets) < DUE__LIMITER_SEGMENTS)
        split(all);
    struct due__limiter **bucket = bucket_at(all, bucket_for(all, g->hash));
    g->chain = *bucket;
    *bucket = g;
    all->groups++;
    all->any = true;
    p->limiter = NULL;
    return g;
}

static void parts_free(struct due_queue *q, struct group_parts *p)
{
    if (p->limiter != NULL)
        due__limiter_free(q, p->limiter);
    if (p->buckets != NULL)
        due__alloc_free(&q->alloc, p->buckets, segment_bytes(p->segment));
    p->limiter = NULL;
    p->buckets = NULL;
}

/* What is wanted for a group of this name.  False: no memory. */
static bool parts_make(struct due_queue *q, struct group_parts *p, const struct due__limiter *like,
                       const void *name, unsigned segment)
{
    p->limiter = due__alloc_new(&q->alloc, sizeof *p->limiter + like->len);
    if (p->limiter == NULL)
        return false;
    p->limiter->queue = q;
    p->limiter->limit = 1;
    p->limiter->hash = like->hash;
    p->limiter->topic = like->topic;
    p->limiter->len = like->len;
    memcpy(p->limiter->name, name, like->len);
    p->segment = segment;
    if (segment < DUE__LIMITER_SEGMENTS)
        p->buckets = due__alloc_new(&q->alloc, segment_bytes(segment));
    return segment == DUE__LIMITER_SEGMENTS || p->buckets != NULL;
}

int due__group_join(struct due_queue *q, int topic, const void *name, size_t len,
                    struct due__limiter **group)
{
    struct due__limiter like = { .topic = (uint16_t)topic,
                                 .len = (uint16_t)len,
                                 .hash = hash_of(q, (uint32_t)topic, name, len) };
    struct group_parts p = { .limiter = NULL };
    struct due__tenure t;

    for (;;) {
        due__enter(q, &t);
        struct due__limiter *g = find(&q->limiters, like.hash, like.topic, name, len);
        if (g == NULL)
            g = add(&q->limiters, &p);
        if (g != NULL)
            due__add_relaxed(&g->jobs, 1); /* U1: under the lock */
        unsigned segment = lacks(&q->limiters);
        due__tenure_end(q, &t);
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

static void remove_group(struct due__limiters *all, struct due__limiter *g)
{
    struct due__limiter **at = bucket_at(all, bucket_for(all, g->hash));

    while (*at != g)
        at = &(*at)->chain;
    *at = g->chain;
    all->groups--;
}

/* False: it is the last. */
static bool part_from_others(struct due__limiter *g)
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
static bool part_last(struct due_queue *q, struct due__limiter *g, bool *empty)
{
    *empty = false;
    if (part_from_others(g))
        return true;
    for (uint32_t n = 0; g->line.count > 0; n++) {
        if (n == DROPS_MAX)
            return false;
        due__limiter_pop(q, g);
    }
    assert(g->running == 0);
    remove_group(&q->limiters, g);
    *empty = true;
    return true;
}

void due__group_part(struct due__limiter *g)
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
        due__tenure_end(q, &t);
    } while (!over);
    if (empty)
        due__limiter_free(q, g);
}

void due__limiters_destroy(struct due_queue *q)
{
    struct due__limiters *all = &q->limiters;

    for (uint32_t i = 0; i < q->topic_count; i++) {
        struct due__topic *t = due__topic_at(q, i);

        if (t->limiter != NULL)
            due__limiter_free(q, t->limiter);
        t->limiter = NULL;
    }
    for (uint32_t i = 0; i < all->buckets; i++) {
        struct due__limiter *next;

        for (struct due__limiter *g = due__group_first(q, i); g != NULL; g = next) {
            next = g->chain;
            due__limiter_free(q, g);
        }
    }
    for (unsigned k = 0; k < DUE__LIMITER_SEGMENTS; k++) {
        if (all->segment[k] != NULL)
            due__alloc_free(&q->alloc, all->segment[k], segment_bytes(k));
    }
}
