/* rounds.c - deadlines of rounds, that each is done with once, and that none follows a cancel. */
#include "rounds.h"

#include <string.h>

#include "books.h"
#include "machine.h"
#include "world.h"

static const struct plan *plan;

void rounds_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    plan = p;
}

bool rounds_repeats(const struct book *b)
{
    return b->round.every_ns != 0;
}

static bool unmet;

static void look(struct book *b)
{
    unmet |= rounds_repeats(b);
}

bool rounds_maybe(const struct book *b)
{
    if (b != NULL)
        return rounds_repeats(b);
    unmet = false;
    books_each_unmet(look);
    return unmet;
}

static unsigned long long number_of(const struct book *b)
{
    return (unsigned long long)books_number(b);
}

/* Is what was told to be so still? */
static bool binding(void)
{
    bool faults = plan_has(plan, KIND_AWAY) || plan_has(plan, KIND_DOUBT) ||
                  plan_has(plan, KIND_FULL) || plan_has(plan, KIND_LOSSES);

    return plan->confirm == DUE_CONFIRM_SYNC || !faults;
}

static bool steps(void)
{
    return plan->machine.clock_step_max_ns > 0;
}

void rounds_named(struct book *b)
{
    b->round.anew = rules_event();
    b->round.n_done = 0;
    b->round.done_most_ns = b->round.handed_most_ns = INT64_MIN;
    b->round.known = false;
}

void rounds_new(struct book *b)
{
    rounds_named(b);
    b->round.told = b->round.anew;
}

void rounds_life(struct book *b)
{
    struct round_facts *r = &b->round;
    bool lasting = plan->confirm == DUE_CONFIRM_SYNC && !plan_has(plan, KIND_LOSSES);

    if (!rounds_repeats(b))
        return;
    r->known = false;
    r->handed_most_ns = INT64_MIN;
    r->doubt |= !lasting || b->calls > 0 || b->revoked;
    if (b->revoked || !lasting)
        r->ended = 0; /* the mark is not stored */
    if (!lasting)
        rounds_named(b);
}

/* ---- When ---- */

/* The deadline of the round after that of @from_ns, which is done with at @now_ns. */
static int64_t following(const struct round_facts *r, int64_t from_ns, int64_t now_ns)
{
    int64_t passed = now_ns > from_ns ? (now_ns - from_ns) / r->every_ns : 0;
    int64_t next = from_ns + r->every_ns;

    if (r->kind == DUE_REPEAT_AFTER)
        return now_ns + r->every_ns;
    if (next >= now_ns)
        return next;
    next = from_ns + passed * r->every_ns; /* the last that has come */
    return r->kind == DUE_REPEAT_ONCE || next == now_ns ? next : next + r->every_ns;
}

/* With a store a round may have been taken for good, or an attempt been counted, by a call that has
 * ended long before. */
static bool taken_before(const struct book *b, const due_job *job)
{
    return (job->token == 0 || deaths_limited(b)) && plan_has(plan, KIND_STORED);
}

/* ---- Handed out ---- */

static void check_bytes(const struct book *b, uint64_t number)
{
    uint64_t own = books_number(b);

    if (number != own && books_job(number)->round.of != own)
        machine_fail("job %llu comes with the bytes of job %llu", number_of(b),
                     (unsigned long long)number);
}

static bool in_step(const struct round_facts *r, int64_t deadline_ns)
{
    return r->kind == DUE_REPEAT_AFTER || (deadline_ns - r->next_ns) % r->every_ns == 0;
}

static void check_next(const struct book *b, const struct rule_call *c, const due_job *job,
                       bool others)
{
    const struct round_facts *r = &b->round;
    int64_t at_ns = job->deadline_ns;

    if (taken_before(b, job) || c->begun < r->anew || b->calls > 0 || !binding())
        return;
    if (r->n_done > 0 && c->begun > r->done_event && at_ns <= r->done_most_ns &&
        (r->kind != DUE_REPEAT_AFTER || !steps()))
        machine_fail("job %llu comes for %lld, and its round of %lld is done with", number_of(b),
                     (long long)at_ns, (long long)r->done_most_ns);
    if (!r->known || others || c->begun < r->known_event || steps())
        return;
    /* With a store it may have been had meanwhile, and be on its way to somebody. */
    bool late = at_ns > r->next_most_ns && !plan_has(plan, KIND_STORED);
    if (at_ns < r->next_ns || late || !in_step(r, at_ns))
        machine_fail("job %llu comes for %lld, and its next round is from %lld to %lld",
                     number_of(b), (long long)at_ns, (long long)r->next_ns,
                     (long long)r->next_most_ns);
}

void rounds_handed(struct book *b, const struct rule_call *c, const due_job *job, uint64_t number,
                   int64_t now_ns, bool others)
{
    struct round_facts *r = &b->round;

    if (!rounds_repeats(b))
        return;
    check_bytes(b, number);
    r->late = job->token == 0 && plan_has(plan, KIND_STORED) && r->anew > r->told;
    r->told = rules_event();
    if (now_ns < job->deadline_ns && !steps())
        machine_fail("job %llu comes for %lld already at %lld", number_of(b),
                     (long long)job->deadline_ns, (long long)now_ns);
    if (r->ended != 0 && c->begun > r->ended && binding() && !taken_before(b, job))
        machine_fail("job %llu comes, and it was cancelled", number_of(b));
    check_next(b, c, job, others);
    if (job->deadline_ns < r->handed_most_ns || job->deadline_ns <= r->done_most_ns)
        return; /* it is told late */
    r->handed_most_ns = job->deadline_ns;
    r->known = !others && c->begun > r->anew && c->begun > r->unsure && b->calls == 0 &&
               !taken_before(b, job) &&
               !plan_has(plan, KIND_WORKERS); /* a pool may have had it since */
    r->known_event = rules_event();
    r->next_ns = r->next_most_ns = job->deadline_ns; /* unless it is done with */
}

void rounds_handled(struct book *b, int64_t deadline_ns)
{
    if (deadline_ns > b->round.handed_most_ns)
        b->round.handed_most_ns = deadline_ns;
    b->round.known = false;
}

void rounds_asked(struct book *b)
{
    b->round.known = false;
}

/* ---- Done with ---- */

static void check_once(const struct book *b, int64_t deadline_ns)
{
    const struct round_facts *r = &b->round;

    if (r->kind == DUE_REPEAT_AFTER && steps()) /* another round may have the same */
        return;
    for (unsigned i = 0; i < r->n_done && i < ROUNDS_KEPT; i++)
        if (r->done[i] == deadline_ns && binding())
            machine_fail("job %llu: its round of %lld is done with twice", number_of(b),
                         (long long)deadline_ns);
}

bool rounds_done(struct book *b, const struct rule_call *c, int64_t deadline_ns, int64_t now_ns)
{
    struct round_facts *r = &b->round;
    int64_t from_ns = plan_has(plan, KIND_STORED) ? deadline_ns : c->clock_ns;
    bool last = deadline_ns >= r->done_most_ns && deadline_ns >= r->handed_most_ns;

    if (c->begun < r->anew || b->calls > 0 || r->late) {
        r->known = false;
        r->unsure = rules_event();
        return false;
    }
    check_once(b, deadline_ns);
    r->done[r->n_done++ % ROUNDS_KEPT] = deadline_ns;
    r->done_event = r->known_event = rules_event();
    if (deadline_ns > r->done_most_ns)
        r->done_most_ns = deadline_ns;
    if (!last)
        return false;
    r->known = true;
    r->next_ns = following(r, deadline_ns, from_ns);
    r->next_most_ns = following(r, deadline_ns, now_ns);
    return true;
}

void rounds_ended(struct book *b)
{
    b->round.ended = rules_event();
}

void rounds_doubt(struct book *b)
{
    b->round.known = false;
    b->round.doubt = true;
}
