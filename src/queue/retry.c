/* retry.c - retry policies: kept once each, by number; and what they say.
 *
 * A job, a topic and the queue have the number of a policy; 0 is none.  What a job has comes before
 * what its topic has, and that before the queue's.  Policies stay until the queue is freed, so that
 * nobody counts who has one: programs have a few, and there is room for 65,535.  They are found by
 * their content in chains, one for each value of a hash, whose newest comes first.
 *
 * Guards     N  the lock of the topics' names      A  atomic, see Edges
 *
 * Edges      Y1  a policy is written, then the head of its chain -> whoever reads the head, or got
 *                a number from who did, sees the policy
 */
#include "queue/retry.h"

#include <stdbool.h>
#include <string.h>

#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"

static const char *ladder_wrong(const due_retry *r)
{
    if (r->rungs == 0 || r->rungs > DUE_RUNGS_MAX)
        return "retry->rungs of a ladder is not 1 to DUE_RUNGS_MAX";
    for (uint32_t i = 0; i < r->rungs; i++) {
        if (r->rung_ns[i] < 0)
            return "a retry->rung_ns is negative";
    }
    return NULL;
}

const char *due__retry_wrong(const due_retry *r)
{
    if (r->kind < DUE_RETRY_INHERIT || r->kind > DUE_RETRY_LADDER)
        return "retry->kind is none of DUE_RETRY_*";
    if (r->delay_ns < 0 || r->cap_ns < 0)
        return "retry->delay_ns or retry->cap_ns is negative";
    return r->kind == DUE_RETRY_LADDER ? ladder_wrong(r) : NULL;
}

/* Without what has no meaning for its kind, so that equal ones have equal bytes. */
static due_retry normal(const due_retry *r)
{
    due_retry n;

    memset(&n, 0, sizeof n);
    n.kind = r->kind;
    n.attempts_max = r->attempts_max;
    if (r->kind == DUE_RETRY_FIXED || r->kind == DUE_RETRY_EXPONENTIAL)
        n.delay_ns = r->delay_ns;
    if (r->kind == DUE_RETRY_EXPONENTIAL)
        n.cap_ns = r->cap_ns;
    if (r->kind != DUE_RETRY_LADDER)
        return n;
    n.rungs = r->rungs;
    memcpy(n.rung_ns, r->rung_ns, r->rungs * sizeof r->rung_ns[0]);
    if (n.attempts_max == 0)
        n.attempts_max = n.rungs + 1;
    return n;
}

static struct due__policy *policy_at(const struct due__retries *all, uint32_t number)
{
    return due__records_at(&all->policies, number - 1);
}

static uint16_t *chain_of(struct due__retries *all, const due_retry *r)
{
    uint64_t x = (uint64_t)r->delay_ns ^ (uint64_t)r->rung_ns[0];

    x = x * 31 + (uint64_t)r->cap_ns;
    x = x * 31 + r->attempts_max + ((uint64_t)r->kind << 32);
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return &all->chain[x >> 32 & (DUE__RETRY_CHAINS - 1)];
}

/* @first: the head of its chain.  0: there is none. */
static uint16_t find(const struct due__retries *all, uint16_t first, const due_retry *r)
{
    uint16_t number = first;

    while (number != 0 && memcmp(&policy_at(all, number)->says, r, sizeof *r) != 0)
        number = policy_at(all, number)->next;
    return number;
}

/* Under the names' lock: its number, which it gets if it is new; 0 if no room was made for it. */
static uint16_t find_or_append(struct due_queue *q, const due_retry *r, uint16_t *chain)
{
    struct due__retries *all = &q->retries;
    uint16_t number = find(all, *chain, r);

    if (number != 0 || all->count == UINT16_MAX || !due__records_has(&all->policies, all->count))
        return number;
    number = (uint16_t)(all->count + 1);
    struct due__policy *made = policy_at(all, number);
    made->says = *r;
    made->next = *chain;
    if (r->attempts_max > 0)
        due__store_relaxed(&q->limits, 1);   /* Y1: before the head */
    due__store_relaxed(&all->count, number); /* no edge: the lock's */
    due__store_release(chain, number);       /* Y1 */
    return number;
}

/* Room is made before the lock is taken, and another may take it. */
static int add(struct due_queue *q, const due_retry *r, uint16_t *chain, uint16_t *number)
{
    struct due__retries *all = &q->retries;

    do {
        uint32_t count = due__load_relaxed(&all->count); /* no edge: a guess */

        if (count < UINT16_MAX && !due__records_make(&all->policies, &q->alloc, count))
            return DUE_ENOMEM;
        due__lock_acquire(&q->names.lock);
        *number = find_or_append(q, r, chain);
        bool full = all->count == UINT16_MAX;
        due__lock_release(&q->names.lock);
        if (*number == 0 && full)
            return DUE_ELIMIT;
    } while (*number == 0);
    return 0;
}

int due__retry_number(struct due_queue *q, const due_retry *r, uint16_t *number)
{
    *number = 0;
    if (r->kind == DUE_RETRY_INHERIT)
        return 0;
    due_retry n = normal(r);
    uint16_t *chain = chain_of(&q->retries, &n);
    *number = find(&q->retries, due__load_acquire(chain), &n); /* Y1 */
    return *number != 0 ? 0 : add(q, &n, chain, number);
}

void due__retries_init(struct due_queue *q)
{
    due__records_init(&q->retries.policies, sizeof(struct due__policy));
    q->retries.random = q->tag;
}

void due__retries_destroy(struct due_queue *q)
{
    due__records_destroy(&q->retries.policies, &q->alloc);
}

const due_retry *due__retry_named(const struct due_queue *q, uint16_t number)
{
    return number > 0 ? &policy_at(&q->retries, number)->says : NULL; /* Y1 */
}

const due_retry *due__retry_of(const struct due_queue *q, const struct due__job *j)
{
    struct due__facts f = due__facts_load(j);
    uint16_t number = (f.payload & DUE__EXTRAS) ? due__extras_at(j)->retry : 0;

    if (number == 0)
        number = due__load_acquire(&due__topic_at(q, f.topic)->retry); /* Y1 */
    return due__retry_named(q, number > 0 ? number : q->retry);
}

uint32_t due__retry_limit(const due_retry *r)
{
    return r != NULL ? r->attempts_max : 0;
}

/* Between 0 and @most, anything as likely. */
static int64_t random_upto(struct due_queue *q, int64_t most)
{
    uint64_t x = due__add_relaxed(&q->retries.random, /* no edge: any number will do */
                                  UINT64_C(0x9e3779b97f4a7c15));

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return (int64_t)(x % ((uint64_t)most + 1));
}

/* The first delay, doubled for each failure after the first, up to the cap. */
static int64_t doubled(const due_retry *r, uint32_t failures)
{
    int64_t cap = r->cap_ns > 0 ? r->cap_ns : DUE_FOREVER - 1;
    int64_t delay = r->delay_ns;

    for (uint32_t i = 1; i < failures && delay > 0 && delay < cap; i++)
        delay = delay <= cap / 2 ? 2 * delay : cap;
    return delay < cap ? delay : cap;
}

int64_t due__retry_delay(struct due_queue *q, const due_retry *r, uint32_t failures)
{
    if (r == NULL)
        return 0;
    switch (r->kind) {
    case DUE_RETRY_FIXED:
        return r->delay_ns;
    case DUE_RETRY_EXPONENTIAL:
        return random_upto(q, doubled(r, failures));
    case DUE_RETRY_LADDER:
        return r->rung_ns[failures < r->rungs ? (failures > 0 ? failures - 1 : 0) : r->rungs - 1];
    default:
        return 0;
    }
}

int due_topic_retry(due_queue *q, int topic, const due_retry *retry)
{
    uint16_t number;

    if (due__forked(q))
        return DUE_EFORK;
    if (due_topic_name(q, topic) == NULL || due__retry_wrong(retry) != NULL)
        return DUE_EINVAL;
    int rc = due__retry_number(q, retry, &number);
    if (rc == 0)
        due__store_release(&due__topic_at(q, (uint32_t)topic)->retry, number); /* Y1 */
    return rc;
}
