/* backpressure.c - how much is on its way to the store, and calls that wait until it is less.
 *
 * There are two bounds.  That of changes is looked at only: calls that come together may pass it
 * together, each by what it leaves.  Bytes are taken, before what has them is left, and given back
 * by whoever ends the change: who sends, or who takes it back or cancels it before it was sent.  So
 * that bound is kept exactly; but one job, or one update, that is larger is let in when nothing
 * else is under way.
 *
 * Who finds no room for his bytes stands in line.  Who gives some back lets in who stands first, as
 * long as there is room for him; so a large job is not passed by small ones for ever.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges      I  set at open
 *
 * Edges      described elsewhere: G2 G3 sender.c
 *
 * Always     N1  bytes were taken for each job from before it is LINKED, for each draft from before
 *                it is submitted, until the end of that change, and for nothing else; but for a
 *                moment also by a try that finds too late that others were quicker
 *            N2  nobody stands in line while there is room for who stands first.  A try that is
 *                undone may keep him out; who makes it stands in line next, and looks for him.
 */
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"
#include "store/sender.h"

uint32_t due__unsettled_extras(const struct due__job *j)
{
    const struct due__extras *extras = due__extras_at(j);

    return extras->headers_len + (extras->key != NULL ? extras->key->len : 0u);
}

uint32_t due__unsettled_of(const struct due_queue *q, uint32_t number)
{
    const struct due__job *j = due__job_at(&q->slab, number);

    return due__unsettled_bytes(j, due__facts_load(j));
}

/* ---- Changes ---- */

/* A bound, not a count. */
bool due__unsettled_crowded(const struct due__commits *c)
{
    uint64_t settled = due__load_relaxed(&c->settled); /* no edge: before what is never less */

    return due__load_relaxed(&c->submitted) - settled > c->unsettled_max; /* no edge: likewise */
}

/* ---- Bytes ---- */

static bool fits(const struct due__commits *c, uint64_t taken, uint64_t given, uint64_t bytes)
{
    return taken == given || taken - given + bytes <= c->unsettled_bytes_max;
}

/* What was given back may be more than was taken before these bytes: then somebody came behind them
 * and has gone again.  He had room beside them, so they have it too. */
static bool take(struct due__commits *c, uint64_t bytes)
{
    uint64_t given = due__load_relaxed(&c->settled_bytes);   /* no edge: as above */
    uint64_t taken = due__load_relaxed(&c->submitted_bytes); /* no edge: a guess */

    if (!fits(c, taken, given, bytes))
        return false;
    taken = due__add_relaxed(&c->submitted_bytes, bytes); /* no edge: this counts */
    if (fits(c, taken, given, bytes))
        return true;
    due__add_relaxed(&c->submitted_bytes, 0 - bytes); /* no edge: likewise */
    return false;
}

bool due__unsettled_try(struct due__commits *c, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    return due__load_relaxed(&c->line) == NULL && take(c, bytes); /* no edge: not before others */
}

/* ---- The line: under the calls' lock ---- */

static struct due__submission *first(const struct due__commits *c)
{
    return due__load_relaxed(&c->line); /* no edge: written under the lock */
}

static void first_is(struct due__commits *c, struct due__submission *a)
{
    due__store_relaxed(&c->line, a); /* no edge: for others a hint */
}

/* Who stands there, as long as there is room. */
static void let_in(struct due__commits *c)
{
    struct due__submission *a;

    while ((a = first(c)) != NULL && take(c, a->bytes)) {
        first_is(c, a->behind);
        due__submission_less(a);
        due__bell_ring(&a->waiter->bell);
    }
}

/* @a stands behind all others. */
static void stand(struct due__commits *c, struct due__submission *a)
{
    struct due__submission *last = first(c);

    while (last != NULL && last->behind != NULL)
        last = last->behind;
    if (last != NULL)
        last->behind = a;
    else
        first_is(c, a);
}

static void leave(struct due__commits *c, struct due__submission *a)
{
    struct due__submission *before = first(c);

    while (before != a && before->behind != a)
        before = before->behind;
    if (before != a)
        before->behind = a->behind;
    else
        first_is(c, a->behind);
}

/* ---- Taking it and giving it back ---- */

void due__unsettled_back(struct due__commits *c, uint64_t bytes)
{
    if (bytes == 0)
        return;
    due__add_relaxed(&c->settled_bytes, bytes); /* no edge: see take() */
    let_in(c);
}

void due__unsettled_give(struct due__commits *c, uint64_t bytes)
{
    if (bytes == 0)
        return;
    due__lock_acquire(&c->calls);
    due__unsettled_back(c, bytes);
    due__lock_release(&c->calls);
}

/* ---- A call in the line ---- */

void due__unsettled_stand(struct due__commits *c, struct due__submission *a, uint64_t bytes)
{
    due__lock_acquire(&c->calls);
    if (a != NULL) {
        a->bytes = bytes;
        stand(c, a);
    }
    let_in(c); /* N2 */
    due__lock_release(&c->calls);
}

bool due__unsettled_leave(struct due__commits *c, struct due__submission *a)
{
    due__lock_acquire(&c->calls);
    bool in = a->left == 0;
    if (!in) {
        leave(c, a);
        let_in(c); /* who stood behind it may need less */
    }
    due__lock_release(&c->calls);
    return in;
}

/* ---- What is settled ---- */

void due__settle(struct due__commits *c, uint32_t changes, uint64_t bytes)
{
    due__unsettled_back(c, bytes);
    due__add_relaxed(&c->settled, changes + c->now->aside); /* no edge: read as a bound only */
    c->now->aside = 0;
    due__submission_ring_reached(c);
}
