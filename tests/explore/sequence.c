/* sequence.c - what comes of verbs one after the other: it knows nothing of the library. */
#include "orders.h"

int64_t order_at(const struct plan *p, enum verb verb)
{
    return EXPLORE_START_NS + (verb == PUT_FIRST ? (p->early ? -DUE_MS(1) : DUE_MS(2))
                               : verb == CHANGE  ? DUE_MS(3)
                                                 : DUE_MS(5));
}

/* ---- One after the other ---- */

static void reference_put(struct outcome *o, const struct plan *p, enum verb verb, int *rc)
{
    unsigned n = verb == PUT_SECOND;
    struct item new = { WAITS, TEXT_PUT + n, 0, order_at(p, verb) };

    if (o->kept) {
        *rc = DUE_EEXIST;
        o->named[n] = X;
        return;
    }
    enum due_key_policy policy = p->policy[n];
    struct item *has = o->owner != NONE ? &o->job[o->owner] : NULL;
    if (has != NULL && policy == DUE_KEY_REFUSE) {
        *rc = DUE_EEXIST;
        o->named[n] = o->owner;
        return;
    }
    if (has == NULL || has->place == RESERVED) {
        o->owner = o->named[n] = BY_FIRST + n;
        o->job[o->owner] = new;
        return;
    }
    o->named[n] = o->owner;
    if (policy == DUE_KEY_EARLIEST && has->place == WAITS) {
        has->at_ns = has->at_ns < new.at_ns ? has->at_ns : new.at_ns;
        return;
    }
    if (policy == DUE_KEY_EARLIEST) { /* dead: as it was */
        has->place = WAITS;
        has->at_ns = new.at_ns;
        return;
    }
    if (policy == DUE_KEY_DEBOUNCE && has->place == WAITS && has->at_ns > new.at_ns)
        new.at_ns = has->at_ns;
    *has = new;
}

static void reference_end(struct outcome *o, const struct plan *p, unsigned job, bool done)
{
    o->job[job].place = NOWHERE;
    if (o->owner != job)
        return;
    o->owner = NONE;
    o->kept = done && p->keep && job == X;
}

static int reference_cancel(struct outcome *o, const struct plan *p, unsigned job)
{
    if (job == NONE || o->job[job].place == NOWHERE)
        return DUE_ENOENT;
    bool busy = o->job[job].place == TAKEN || o->job[job].place == RESERVED;
    if (!busy || o->returns) /* it does not come back, then */
        reference_end(o, p, job, false);
    o->revoked |= busy && job == X;
    return busy ? DUE_EBUSY : 0;
}

static int reference_take(struct outcome *o, const struct plan *p, enum verb verb)
{
    if (o->job[X].place != WAITS || o->job[X].at_ns > EXPLORE_START_NS)
        return DUE_EAGAIN; /* others are not due */
    o->got = o->job[X];
    if (verb == TAKE)
        reference_end(o, p, X, true);
    o->job[X].place = o->got.place = verb == TAKE ? TAKEN : RESERVED;
    return 0;
}

static int reference_give_back(struct outcome *o, const struct plan *p)
{
    if (o->got.place != RESERVED)
        return DUE_EINVAL;
    if (o->revoked)
        reference_end(o, p, X, false);
    else
        o->job[X].place = WAITS;
    return 0;
}

static int reference_change(const struct plan *p, struct item *x, unsigned what, size_t len)
{
    if (x->place == TAKEN || x->place == RESERVED)
        return DUE_EBUSY;
    if (x->place != WAITS)
        return DUE_ENOENT;
    if (what & DUE_SET_DATA)
        x->len = len;
    if (what & DUE_SET_TIME)
        x->at_ns = order_at(p, CHANGE);
    if (what & DUE_SET_HEADERS)
        x->headers_len = 1;
    return 0;
}

static int reference(struct outcome *o, const struct plan *p, enum verb verb)
{
    struct item *x = &o->job[X];
    int rc = 0;

    switch (verb) {
    case PUT_FIRST:
    case PUT_SECOND:
        reference_put(o, p, verb, &rc);
        break;
    case TAKE:
    case RESERVE:
        return reference_take(o, p, verb);
    case GIVE_BACK:
        return reference_give_back(o, p);
    case ACK:
        reference_end(o, p, X, true);
        break;
    case NACK:
        x->place = WAITS;
        break;
    case CANCEL:
        return reference_cancel(o, p, X);
    case CANCEL_KEY:
        return reference_cancel(o, p, o->owner);
    case KICK:
        if (x->place != DEAD)
            return DUE_ENOENT;
        x->place = WAITS;
        x->at_ns = EXPLORE_START_NS;
        break;
    case CHANGE:
        return reference_change(p, x, p->what, TEXT_CHANGED);
    case UPDATE:
        return reference_change(p, x, DUE_SET_DATA, TEXT_UPDATED);
    }
    return rc;
}

static struct outcome beginning(const struct plan *p)
{
    struct outcome o = { .owner = p->x == NOWHERE || p->plain ? NONE : X, .named = { NONE, NONE } };

    if (p->x != NOWHERE)
        o.job[X] = (struct item){ p->x, p->large ? LARGE : TEXT_X, 0, EXPLORE_START_NS };
    return o;
}

/* ---- Is it the same? ---- */

static bool same_item(const struct item *a, const struct item *b, bool inside)
{
    if (a->place != b->place)
        return false;
    return !inside ||
           (a->len == b->len && a->headers_len == b->headers_len && a->at_ns == b->at_ns);
}

/* Who comes when somebody has the job in hand may be told so rather than that it is gone, or (a
 * cancel of one that is being changed) than that it has taken it.  Gone it is. */
static bool same_answer(const struct plan *p, enum verb verb, int is, int as)
{
    bool names = verb == CANCEL || verb == CANCEL_KEY || verb >= CHANGE;

    if (names && is == DUE_EBUSY && as == DUE_ENOENT)
        return true;
    if (verb == CANCEL && is == DUE_EBUSY && as == 0)
        return p->large || p->stored;
    return is == as || (is == DUE_EINDOUBT && as == 0);
}

static bool same(const struct plan *p, const struct outcome *is, const struct outcome *as)
{
    bool equal = is->owner == as->owner && is->kept == as->kept &&
                 same_item(&is->got, &as->got, as->got.place != NOWHERE);

    for (unsigned i = 0; i < p->verbs; i++) {
        equal = equal && same_answer(p, p->verb[i], is->rc[i], as->rc[i]);
        if (p->verb[i] <= PUT_SECOND)
            equal = equal && (is->named[p->verb[i]] == as->named[p->verb[i]] ||
                              as->named[p->verb[i]] == ANY);
    }
    for (unsigned i = 0; i < JOBS; i++)
        equal = equal && same_item(&is->job[i], &as->job[i],
                                   as->job[i].place == WAITS || as->job[i].place == DEAD);
    return equal;
}

/* Which of two that name the same job put it in cannot be seen from outside: the first, be it. */
static void rename_second(struct outcome *o, const struct outcome *is)
{
    struct item first = o->job[BY_FIRST];

    if (is->named[0] != BY_FIRST || is->named[1] != BY_FIRST ||
        (o->named[0] != BY_SECOND && o->named[1] != BY_SECOND))
        return;
    for (unsigned n = 0; n < 2; n++)
        o->named[n] = o->named[n] == BY_SECOND ? BY_FIRST : o->named[n];
    o->job[BY_FIRST] = o->job[BY_SECOND];
    o->job[BY_SECOND] = first;
    if (o->owner == BY_SECOND)
        o->owner = BY_FIRST;
}

static bool failed(int rc)
{
    return rc == DUE_EINDOUBT || rc == DUE_ETIMEDOUT || rc == DUE_ENOSPC || rc == DUE_EACCES ||
           rc == DUE_ESTORE;
}

/* With a store: may the verb have done nothing?  It failed; or it met another that had the job, or
 * its key, in hand at that moment, perhaps in vain. */
static bool may_be_void(const struct plan *p, const struct outcome *is, unsigned i)
{
    bool others = false;

    for (unsigned other = 0; other < p->verbs; other++)
        others |= other != i && failed(is->rc[other]);
    if (!p->stored || failed(is->rc[i]))
        return p->stored;
    if (p->async && p->verb[i] <= PUT_SECOND && is->rc[i] == 0)
        return true;
    if (p->verb[i] == CANCEL || p->verb[i] == CANCEL_KEY)
        return false; /* what it has met, it has marked */
    if (is->rc[i] == DUE_EAGAIN || is->rc[i] == DUE_EBUSY)
        return others || p->verb[i] >= TAKE;
    return is->rc[i] == DUE_EEXIST && others;
}

/* A job that took its key over from X, and is cancelled before it was sent, leaves it to X. */
static bool goes_back(const struct outcome *before, struct outcome *after)
{
    bool back = before->owner >= BY_FIRST && before->owner < JOBS &&
                (before->job[X].place == RESERVED || before->job[X].place == WAITS);

    after->owner = back ? X : after->owner;
    return back;
}

/* Is it what comes of the verbs in some order, those of @left after those that made @o? */
static bool comes_of(const struct plan *p, const struct outcome *is, struct outcome o,
                     unsigned left)
{
    if (left == 0) {
        if (o.returns && o.job[X].place == RESERVED)
            o.job[X].place = WAITS;
        rename_second(&o, is);
        return same(p, is, &o);
    }
    for (unsigned i = 0; i < p->verbs; i++) {
        struct outcome next = o;

        if (!(left & 1u << i) || (p->two && i > 1 && (left & 1u << (i - 1))))
            continue;
        next.rc[i] = reference(&next, p, p->verb[i]);
        if (comes_of(p, is, next, left & ~(1u << i)))
            return true;
        if (p->stored && p->verb[i] == CANCEL_KEY && goes_back(&o, &next) &&
            comes_of(p, is, next, left & ~(1u << i)))
            return true;
        if (!may_be_void(p, is, i))
            continue;
        next = o;
        next.rc[i] = is->rc[i];
        if (p->verb[i] <= PUT_SECOND)
            next.named[p->verb[i]] = ANY;
        if (comes_of(p, is, next, left & ~(1u << i)))
            return true;
        if (p->verb[i] <= PUT_SECOND || p->verb[i] == CHANGE || next.job[X].place != WAITS)
            continue;
        next.job[X].place = RESERVED; /* so that others take its key over */
        next.returns = true;
        if (comes_of(p, is, next, left & ~(1u << i)))
            return true;
    }
    return false;
}

bool orders_explain(const struct plan *plan, const struct outcome *is)
{
    return comes_of(plan, is, beginning(plan), (1u << plan->verbs) - 1);
}
