/* contents.c - deadlines, priorities, bytes and headers that are known. */
#include "contents.h"

#include <string.h>

#include "books.h"
#include "machine.h"
#include "store.h"
#include "world.h"

static const struct plan *plan;
static struct content_lane keys[PLAN_KEYS + 1];

void contents_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(keys);
    plan = p;
    memset(keys, 0, sizeof keys);
}

static struct content_lane *lane_of(struct book *b)
{
    return b->content.key != 0 ? &keys[b->content.key] : &b->content.lane;
}

static const struct content_lane *lane_seen(const struct book *b)
{
    return b->content.key != 0 ? &keys[b->content.key] : &b->content.lane;
}

/* ---- What is not known any more ---- */

static void forget(struct book *b, unsigned fields)
{
    b->content.is.fields &= ~fields;
}

/* Any of its key may have been changed. */
static void forget_lane(struct book *b)
{
    struct book *it;

    forget(b, CONTENT_ALL);
    for (uint64_t i = 1; b->content.key != 0 && (it = books_job(i)) != NULL; i++)
        if (it->content.key == b->content.key)
            forget(it, CONTENT_ALL);
}

void contents_forget(struct book *b)
{
    forget_lane(b);
}

void contents_moved(struct book *b)
{
    b->content.moved = true;
}

/* What was under way may have been made, and so may what is confirmed later; or been lost. */
void contents_life(void)
{
    bool lasting = plan->confirm == DUE_CONFIRM_SYNC && !plan_has(plan, KIND_LOSSES);
    struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++) {
        if (!lasting || lane_of(b)->calls > 0)
            forget(b, CONTENT_ALL);
        b->content.moved = true;
        b->content.lane = (struct content_lane){ .event = rules_event() };
    }
    for (unsigned key = 0; key <= PLAN_KEYS; key++)
        keys[key] = (struct content_lane){ .event = rules_event() };
}

/* ---- Changes ---- */

void contents_ask(struct book *b)
{
    struct content_lane *lane = lane_of(b);

    lane->overlap |= lane->calls++ > 0;
}

/* Was it the only one?  A call of an owner that was replaced meanwhile is nobody's. */
static bool leave(struct content_lane *lane)
{
    bool alone = !lane->overlap && lane->calls > 0;

    lane->event = rules_event();
    lane->calls -= lane->calls > 0;
    lane->overlap &= lane->calls > 0;
    return alone && store_mine();
}

static void change_time(struct content *is, const struct content *change)
{
    bool steps = plan->machine.clock_step_max_ns > 0 && !change->timed;

    is->least_ns = change->least_ns;
    is->most_ns = change->most_ns;
    is->fields = steps ? is->fields & ~(unsigned)CONTENT_TIME : is->fields | CONTENT_TIME;
}

static void apply(struct book *b, const struct content *change)
{
    struct content *is = &b->content.is;

    if (change->fields & CONTENT_TIME) {
        change_time(is, change);
        b->content.moved = false;
    }
    if (change->fields & CONTENT_PRIORITY)
        is->priority = change->priority;
    if (change->fields & CONTENT_BYTES)
        is->bytes = change->bytes;
    if (change->fields & CONTENT_HEADERS)
        is->headers = change->headers;
    is->fields |= change->fields & ~(unsigned)CONTENT_TIME;
}

/* May a change that was answered be given up by a close, or a new owner?  Then the job waits again
 * as it was, and may be had so, before on_settled says it. */
static bool may_be_given_up(void)
{
    return plan_has(plan, KIND_ASYNC) &&
           (plan_has(plan, KIND_DISCARD) || plan_has(plan, KIND_STANDBY));
}

bool contents_told(struct book *b, int rc, const struct content *change)
{
    bool alone = leave(lane_of(b));

    if (!alone || rc == DUE_EINDOUBT || (rc == 0 && may_be_given_up()))
        forget_lane(b);
    else if (rc == 0)
        apply(b, change);
    return alone;
}

/* Has somebody else begun a job with this key, whose name nobody was told? */
static bool nameless(const struct book *own)
{
    const struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (b != own && b->content.key == own->content.key && !b->met && !b->content.never)
            return true;
    return false;
}

static int64_t less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t more(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool contents_timed(const struct book *b)
{
    return (b->content.is.fields & CONTENT_TIME) != 0 && !b->content.moved && !deaths_kicking() &&
           b->content.is.least_ns > books_now() && plan->machine.clock_step_max_ns == 0;
}

/* The earlier or the later of both deadlines. */
static struct content merged(const struct book *b, enum due_key_policy policy,
                             const struct content *brought)
{
    const struct content *is = &b->content.is;
    struct content change = *brought;

    if (policy == DUE_KEY_REPLACE)
        return change;
    if (policy == DUE_KEY_EARLIEST)
        change.fields = CONTENT_TIME;
    if (!contents_timed(b)) {
        change.fields &= ~(unsigned)CONTENT_TIME;
    } else if (policy == DUE_KEY_EARLIEST) {
        change.least_ns = less(is->least_ns, brought->least_ns);
        change.most_ns = less(is->most_ns, brought->most_ns);
    } else {
        change.least_ns = more(is->least_ns, brought->least_ns);
        change.most_ns = more(is->most_ns, brought->most_ns);
    }
    return change;
}

void contents_enqueued(struct book *own, struct book *b, enum due_key_policy policy,
                       const struct content *brought)
{
    bool alone = leave(lane_of(own));

    own->content.never = own != b;
    if (!alone || nameless(own)) {
        forget_lane(own);
        return;
    }
    if (own == b) {
        apply(b, brought);
        return;
    }
    struct content change = merged(b, policy, brought);
    if (!(change.fields & CONTENT_TIME)) {
        forget(b, CONTENT_TIME);
        b->content.moved = true;
    }
    apply(b, &change);
}

/* ---- Looks ---- */

static unsigned known(const struct book *b, uint64_t begun)
{
    const struct content_lane *lane = lane_seen(b);

    return lane->calls == 0 && lane->event < begun && store_mine() ? b->content.is.fields : 0;
}

void contents_seen(const struct book *b, uint64_t begun, const struct content *seen)
{
    const struct content *is = &b->content.is;
    unsigned fields = known(b, begun) & seen->fields;
    unsigned long long number = (unsigned long long)books_number(b);

    if ((fields & CONTENT_TIME) && !rounds_repeats(b) &&
        (seen->least_ns < is->least_ns || seen->least_ns > is->most_ns))
        machine_fail("job %llu has the deadline %lld, and should have %lld to %lld", number,
                     (long long)seen->least_ns, (long long)is->least_ns, (long long)is->most_ns);
    if ((fields & CONTENT_PRIORITY) && seen->priority != is->priority)
        machine_fail("job %llu has priority %d, and should have %d", number, seen->priority,
                     is->priority);
    if ((fields & CONTENT_BYTES) && seen->bytes != is->bytes)
        machine_fail("job %llu has the bytes of %llu, and should have those of %llu", number,
                     (unsigned long long)seen->bytes, (unsigned long long)is->bytes);
    if ((fields & CONTENT_HEADERS) && seen->headers != is->headers)
        machine_fail("job %llu has the headers of %llu, and should have those of %llu", number,
                     (unsigned long long)seen->headers, (unsigned long long)is->headers);
}

void contents_remaining(const struct book *b, uint64_t begun, int64_t least_ns, int64_t most_ns)
{
    const struct content *is = &b->content.is;

    if (!contents_timed(b) || !(known(b, begun) & CONTENT_TIME) || rounds_repeats(b))
        return;
    if (most_ns < is->least_ns || least_ns > is->most_ns)
        machine_fail("job %llu is said to be due from %lld to %lld, and is from %lld to %lld",
                     (unsigned long long)books_number(b), (long long)least_ns, (long long)most_ns,
                     (long long)is->least_ns, (long long)is->most_ns);
}

uint64_t contents_bytes(const struct book *b, uint64_t begun)
{
    return known(b, begun) & CONTENT_BYTES ? b->content.is.bytes : 0;
}
