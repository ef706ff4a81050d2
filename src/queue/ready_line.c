/* ready_line.c - a topic's due jobs: the line and its window.
 *
 * Due jobs leave the timeline in order, so nearly every slot goes to the end of the run, a list of
 * chunks.  One that comes out of order (backdated, promoted, of higher priority) goes into a
 * leftist heap beside it, which takes any number of slots from the same chunks and needs O(log n)
 * in the worst case.  The first of the line is the smaller of the two fronts.
 *
 * Guards     T  the timeline lock      I  set at open      A  atomic, see Edges
 *
 * Edges      V1  publish writes the slot, then the ends -> take reads the ends, then the slot, and
 *                trusts it if its swap of the ends succeeds: a slot's place is written again only
 *                after the head has passed it.
 *
 * Always     N1  the run is in order; last is its last slot
 * (check)    N2  count is the run's and both heaps' slots together
 *
 * Not here   Whether a slot is alive: slab.h.  Which topic, who waits: topic.c, waiter.c.
 */
#include "queue/ready_line.h"

#include <assert.h>

#include "os/atomic.h"

/* ---- Nodes: 24 in a chunk, found from any of them because chunks are aligned ---- */

struct due__node {
    struct due__slot slot;   /* T */
    struct due__node *left;  /* T */
    struct due__node *right; /* T */
    uint32_t rank;           /* T */
};

#define NODES_IN_CHUNK \
    ((DUE__CHUNK_SLOTS * sizeof(struct due__slot) - 16) / sizeof(struct due__node))

/* A chunk of nodes: `count` are in use, `first` were used ever, free ones chained by left. */
struct node_chunk {
    struct due__chunk *next;               /* T */
    uint32_t first;                        /* T */
    uint32_t count;                        /* T */
    struct node_chunk *prev;               /* T */
    struct due__node *free;                /* T */
    struct due__node node[NODES_IN_CHUNK]; /* T */
};

_Static_assert(sizeof(struct node_chunk) <= DUE__CHUNK_BYTES, "a chunk holds its nodes");

static void partly_add(struct due__nodes *n, struct node_chunk *c)
{
    c->prev = NULL;
    c->next = n->partly;
    if (c->next != NULL)
        ((struct node_chunk *)(void *)c->next)->prev = c;
    n->partly = (struct due__chunk *)(void *)c;
}

static void partly_remove(struct due__nodes *n, struct node_chunk *c)
{
    if (c->prev == NULL)
        n->partly = c->next;
    else
        c->prev->next = c->next;
    if (c->next != NULL)
        ((struct node_chunk *)(void *)c->next)->prev = c->prev;
}

static struct due__node *node_take(struct due__nodes *n, struct due__slot s)
{
    struct node_chunk *c = (struct node_chunk *)(void *)n->partly;

    if (c == NULL) {
        c = (struct node_chunk *)(void *)due__pool_take(n->pool);
        if (c == NULL)
            return NULL;
        c->first = c->count = 0;
        c->free = NULL;
        partly_add(n, c);
    }
    struct due__node *it = c->free;
    if (it != NULL)
        c->free = it->left;
    else
        it = &c->node[c->first++];
    if (++c->count == NODES_IN_CHUNK)
        partly_remove(n, c);
    *it = (struct due__node){ .slot = s, .rank = 1 };
    return it;
}

static void node_give(struct due__nodes *n, struct due__node *it)
{
    uintptr_t at = (uintptr_t)it & ~(uintptr_t)(DUE__CHUNK_BYTES - 1);
    struct node_chunk *c = (struct node_chunk *)at;

    if (c->count == NODES_IN_CHUNK)
        partly_add(n, c);
    it->left = c->free;
    c->free = it;
    if (--c->count > 0)
        return;
    partly_remove(n, c);
    due__pool_give(n->pool, (struct due__chunk *)(void *)c);
}

/* Two leftist heaps into one: along the right spines, which are at most log2(n) long. */
static struct due__node *merge(struct due__node *a, struct due__node *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (due__slot_before(b->slot, a->slot)) {
        struct due__node *swap = a;

        a = b;
        b = swap;
    }
    a->right = merge(a->right, b);
    uint32_t left = a->left != NULL ? a->left->rank : 0;
    if (left < a->right->rank) {
        struct due__node *swap = a->left;

        a->left = a->right;
        a->right = swap;
    }
    a->rank = 1 + (a->right != NULL ? a->right->rank : 0);
    return a;
}

static struct due__slot heap_pop(struct due__node **root, struct due__nodes *n)
{
    struct due__node *top = *root;
    struct due__slot s = top->slot;

    *root = merge(top->left, top->right);
    node_give(n, top);
    return s;
}

/* ---- The line ---- */

/* A new slot at the end of the run. */
static bool run_append(struct due__line *l, struct due__pool *pool, struct due__slot s)
{
    struct due__chunk *c = l->tail;

    if (c == NULL || c->count == DUE__CHUNK_SLOTS) {
        c = due__pool_take(pool);
        if (c == NULL)
            return false;
        if (l->tail == NULL)
            l->head = c;
        else
            l->tail->next = c;
        l->tail = c;
    }
    due__slot_store(&c->slot[c->count++], s);
    due__slot_store(&l->last, s);
    return true;
}

bool due__line_push_aside(struct due__line *l, struct due__nodes *n, struct due__slot s)
{
    struct due__node *it = node_take(n, s);

    if (it == NULL)
        return false;
    l->side = merge(l->side, it);
    l->count++;
    return true;
}

static __attribute__((noinline)) bool push_usual(struct due__line *l, struct due__nodes *n,
                                                 struct due__slot s)
{
    if (l->head == NULL || !due__slot_before(s, l->last)) {
        if (!run_append(l, n->pool, s))
            return false;
    } else {
        return due__line_push_aside(l, n, s);
    }
    l->count++;
    return true;
}

/* The first of a line, with a chunk at hand; or in any other way, which is a call at the end, for
 * which nothing need be saved. */
bool due__line_push_any(struct due__line *l, struct due__nodes *n, struct due__slot s)
{
    if (l->tail != NULL || n->pool->free == NULL)
        return push_usual(l, n, s);
    struct due__chunk *c = due__pool_take_used(n->pool);

    c->count = 1;
    l->head = l->tail = c;
    due__slot_store(&c->slot[0], s);
    due__slot_store(&l->last, s);
    l->count++;
    return true;
}

bool due__line_unpop(struct due__line *l, struct due__nodes *n, struct due__slot s)
{
    struct due__chunk *c = l->head;

    if (c == NULL)
        return due__line_push(l, n, s);
    if (c->first == 0) {
        c = due__pool_take(n->pool);
        if (c == NULL)
            return false;
        c->first = c->count = DUE__CHUNK_SLOTS;
        c->next = l->head;
        l->head = c;
        l->broom = NULL;
    }
    c->slot[--c->first] = s;
    l->count++;
    return true;
}

/* Where the first slot of the line is: one of the heaps, or NULL for the run. */
static inline __attribute__((always_inline)) struct due__node *const *front(
    const struct due__line *l, struct due__slot *s)
{
    struct due__node *const *at = NULL;
    bool found = l->head != NULL;

    if (found)
        *s = l->head->slot[l->head->first];
    if (l->side != NULL && (!found || due__slot_before(l->side->slot, *s))) {
        *s = l->side->slot;
        at = &l->side;
        found = true;
    }
    if (l->swept != NULL && (!found || due__slot_before(l->swept->slot, *s))) {
        *s = l->swept->slot;
        at = &l->swept;
    }
    return at;
}

bool due__line_first(const struct due__line *l, struct due__slot *s)
{
    if (l->count == 0)
        return false;
    front(l, s);
    return true;
}

void due__line_shorten(struct due__line *l, struct due__nodes *n)
{
    struct due__chunk *c = l->head;

    l->head = c->next;
    if (l->head == NULL)
        l->tail = NULL;
    l->broom = NULL;
    due__pool_give(n->pool, c);
}

struct due__slot due__line_pop_any(struct due__line *l, struct due__nodes *n)
{
    struct due__slot s = { 0, 0 };
    struct due__node *const *at = front(l, &s);

    assert(l->count > 0);
    l->count--;
    if (at != NULL)
        return heap_pop(at == &l->side ? &l->side : &l->swept, n);

    if (++l->head->first == l->head->count)
        due__line_shorten(l, n);
    return s;
}

/* ---- Sweeping ---- */

static uint32_t chunk_filter(struct due__chunk *c, due__keep_fn *keep, const void *ctx)
{
    uint32_t before = c->count;

    c->count = c->first + (uint32_t)keep(ctx, c->slot + c->first, c->count - c->first);
    return before - c->count;
}

/* What is left of @c into the end of @before, if it fits. */
static bool chunk_join(struct due__chunk *before, struct due__chunk *c)
{
    uint32_t n = c->count - c->first;

    if (before == NULL || before->count + n > DUE__CHUNK_SLOTS)
        return n == 0;
    for (uint32_t i = c->first; i < c->count; i++)
        before->slot[before->count++] = c->slot[i];
    return true;
}

/* One chunk of the run; true at its end. */
static bool run_sweep_step(struct due__line *l, struct due__pool *pool, due__keep_fn *keep,
                           const void *ctx)
{
    struct due__chunk *c = l->broom != NULL ? l->broom->next : l->head;

    if (c == NULL)
        return true;
    l->count -= chunk_filter(c, keep, ctx);
    if (!chunk_join(l->broom, c)) {
        l->broom = c;
        return false;
    }
    if (l->broom != NULL)
        l->broom->next = c->next;
    else
        l->head = c->next;
    if (l->tail == c)
        l->tail = l->broom;
    due__pool_give(pool, c);
    return false;
}

bool due__line_sweep(struct due__line *l, struct due__nodes *n, due__keep_fn *keep, const void *ctx,
                     size_t budget)
{
    for (size_t looked = 0; looked < budget;) {
        if (l->side != NULL) {
            struct due__slot s = l->side->slot;

            looked += 4; /* a step down a heap costs as much as a few slots in a row */
            if (keep(ctx, &s, 1) == 1) {
                struct due__node *it = l->side;

                l->side = merge(it->left, it->right);
                it->left = it->right = NULL;
                it->rank = 1;
                l->swept = merge(l->swept, it);
            } else {
                heap_pop(&l->side, n);
                l->count--;
            }
            continue;
        }
        if (run_sweep_step(l, n->pool, keep, ctx)) {
            l->side = l->swept;
            l->swept = NULL;
            l->broom = NULL;
            if (l->tail != NULL)
                l->last = l->tail->slot[l->tail->count - 1];
            return true;
        }
        looked += DUE__CHUNK_SLOTS;
    }
    if (l->tail != NULL)
        l->last = l->tail->slot[l->tail->count - 1];
    return false;
}

static bool heap_check(const struct due__node *it, size_t *count)
{
    if (it == NULL)
        return true;
    ++*count;
    uint32_t left = it->left != NULL ? it->left->rank : 0;
    uint32_t right = it->right != NULL ? it->right->rank : 0;

    return left >= right && it->rank == right + 1 &&
           (it->left == NULL || !due__slot_before(it->left->slot, it->slot)) &&
           (it->right == NULL || !due__slot_before(it->right->slot, it->slot)) &&
           heap_check(it->left, count) && heap_check(it->right, count);
}

bool due__line_check(const struct due__line *l)
{
    size_t count = 0;
    bool any = false;
    struct due__slot before = { 0, 0 };

    for (const struct due__chunk *c = l->head; c != NULL; c = c->next) {
        if (c->first >= c->count)
            return false;
        for (uint32_t i = c->first; i < c->count; i++) {
            if (any && due__slot_before(c->slot[i], before))
                return false; /* N1 */
            before = c->slot[i];
            any = true;
            count++;
        }
        if (c->next == NULL && l->tail != c)
            return false;
    }
    return heap_check(l->side, &count) && heap_check(l->swept, &count) &&
           count == l->count; /* N2 */
}

/* ---- The window ---- */

void due__window_publish(struct due__window *w, const struct due__slot *slots, uint32_t n)
{
    uint64_t now = due__load_acquire(&w->ends); /* V1: the places' takers are through */
    uint32_t tail = (uint32_t)(now >> 32);

    assert(tail - (uint32_t)now + n <= DUE__WINDOW_SLOTS);
    for (uint32_t i = 0; i < n; i++) {
        struct due__slot *at = &w->slot[(tail + i) % DUE__WINDOW_SLOTS];

        due__store_relaxed(&at->hi, slots[i].hi); /* V1 */
        due__store_relaxed(&at->lo, slots[i].lo); /* V1 */
    }
    while (!due__cas_acq_rel(&w->ends, &now, due__window_ends((uint32_t)now, tail + n))) /* V1 */
        ;
}

uint32_t due__window_take(struct due__window *w, struct due__slot *slots, uint32_t max)
{
    uint64_t now = due__load_acquire(&w->ends); /* V1 */

    for (;;) {
        uint32_t head = (uint32_t)now;
        uint32_t tail = (uint32_t)(now >> 32);
        uint32_t n = tail - head < max ? tail - head : max;

        if (n == 0)
            return 0;
        for (uint32_t i = 0; i < n; i++)
            slots[i] = due__window_slot(w, head + i);                           /* V1 */
        if (due__cas_acq_rel(&w->ends, &now, due__window_ends(head + n, tail))) /* V1 */
            return n;
    }
}

uint32_t due__window_recall(struct due__window *w, struct due__slot *slots)
{
    return due__window_take(w, slots, DUE__WINDOW_SLOTS);
}
