/* books.c - who waits, for how long, and for what. */
#include "books.h"

#include <string.h>

#include "history.h"
#include "machine.h"
#include "store.h"
#include "world.h"

static const struct plan *plan;
static int64_t (*clock_now)(void);
static struct caller callers[PLAN_SEATS * BOOKS_CALLERS];
static uint64_t inside;    /* told to be in, and not told to have left */
static uint64_t revoked;   /* of those */
static uint64_t asked;     /* to be put in */
static uint64_t left;      /* of those: told to have left, or not to have come in */
static uint64_t last_take; /* event in which a call that takes began, or ended */
static bool closed[PLAN_SEATS];

static void keep(void)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(clock_now);
    WORLD_KEEP(callers);
    WORLD_KEEP(inside);
    WORLD_KEEP(revoked);
    WORLD_KEEP(asked);
    WORLD_KEEP(left);
    WORLD_KEEP(last_take);
    WORLD_KEEP(closed);
}

void books_begin(const struct plan *p, int64_t (*now)(void))
{
    keep();
    plan = p;
    clock_now = now;
    books_names_begin(p);
    books_looks_begin(p);
    rules_begin(p);
    deaths_begin(p);
    rounds_begin(p);
    contents_begin(p);
    memset(callers, 0, sizeof callers);
    inside = revoked = asked = left = last_take = 0;
    memset(closed, 0, sizeof closed);
}

int64_t books_now(void)
{
    return clock_now();
}

/* A call that clears was cut off: it may have had any job. */
static void doubt_cleared(void)
{
    bool cleared = false;
    struct book *b;

    for (unsigned i = 0; i < PLAN_SEATS * BOOKS_CALLERS; i++)
        cleared |= callers[i].wait == WAIT_CLEAR;
    for (uint64_t i = 1; cleared && (b = books_job(i)) != NULL; i++)
        rounds_doubt(b);
}

void books_life(void)
{
    struct book *b;

    doubt_cleared();
    memset(callers, 0, sizeof callers);
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++) {
        rounds_life(b);
        b->calls = b->looks = b->lent = 0;
        b->revoked_event = 0; /* the mark is not stored */
        b->rule.running = b->rule.counted = false;
        deaths_life(b);
    }
    rules_life();
    deaths_begin(plan);
    contents_life();
    memset(closed, 0, sizeof closed);
}

static unsigned long long number_of(const struct book *b)
{
    return (unsigned long long)books_number(b);
}

static bool stored(void)
{
    return plan_has(plan, KIND_STORED);
}

/* ---- Calls ---- */

/* Timeouts are counted on the monotonic clock, or on the one that is turned by hand. */
static int64_t timeout_now(void)
{
    return plan_has(plan, KIND_MANUAL) ? clock_now() : machine.now_ns;
}

struct caller *books_caller(unsigned thread)
{
    return &callers[thread / HISTORY_LANES * BOOKS_CALLERS + thread % HISTORY_LANES];
}

void books_call(unsigned thread, enum book_wait wait, uint32_t topics, int64_t timeout_ns)
{
    struct caller *c = books_caller(thread);

    *c = (struct caller){ .topics = topics, .begun_ns = timeout_now(), .timeout_ns = timeout_ns };
    c->process = machine.me->process;
    c->clock_ns = clock_now();
    c->lease_ns = DUE_FOREVER;
    c->replaced = !store_mine();
    c->fails = wait == WAIT_OTHER || wait == WAIT_ROOM || wait == WAIT_CLEAR;
    if (c->replaced)
        return;
    c->wait = wait;
    rules_call(&c->rule);
    c->rule.clock_ns = c->clock_ns;
    c->rule.lease_until_ns = DUE_FOREVER;
    if (wait == WAIT_ROOM)
        rules_puts(1);
    if (wait == WAIT_JOB || wait == WAIT_CLEAR)
        last_take = c->rule.begun;
}

void books_lease(unsigned thread, int64_t lease_ns)
{
    bool steps = plan->machine.clock_step_max_ns > 0;
    struct caller *c = books_caller(thread);

    c->fails = true;
    c->lease_ns = lease_ns;
    machine_instant(lease_ns);
    c->rule.lease_until_ns = steps ? 0 : clock_now() + lease_ns;
}

void books_name(unsigned thread, struct book *b)
{
    struct caller *c = books_caller(thread);

    if (c->replaced)
        return;
    rules_touched(b);
    c->alone = b->calls++ == 0;
    b->due_by_ns = DUE_FOREVER;
    c->job = b;
    c->serial = ++b->serial;
}

void books_name_too(unsigned thread, struct book *b)
{
    struct caller *c = books_caller(thread);

    if (c->replaced)
        return;
    rules_touched(b);
    b->calls++;
    b->due_by_ns = DUE_FOREVER;
    b->serial++;
    c->others[c->n_others++] = b;
}

void books_not_there(struct book *b)
{
    if (!stored())
        b->denied = rules_event();
}

void books_looks_at(unsigned thread, struct book *b)
{
    struct caller *c = books_caller(thread);

    if (c->replaced || stored())
        return;
    c->alone = b->calls++ == 0;
    b->looks++;
    c->looks = true;
    c->job = b;
    c->serial = b->serial;
}

static bool others_call(const struct caller *c)
{
    for (unsigned i = 0; i < PLAN_SEATS * BOOKS_CALLERS; i++)
        if (&callers[i] != c && (callers[i].wait == WAIT_JOB || callers[i].wait == WAIT_CLEAR))
            return true;
    return false;
}

/* Do others take jobs?  What is there may be theirs already. */
static bool others_take(const struct caller *c)
{
    return others_call(c) || plan_has(plan, KIND_WORKERS) || stored() ||
           plan->machine.clock_step_max_ns > 0;
}

/* A call that takes has waited, and found nothing: no job was due, and nobody's, all the while.
 * What was put behind a put that was under way may not be seen yet. */
static void check_missed(unsigned thread, const struct caller *c)
{
    const struct book *b;

    if (others_take(c) || c->rule.gap || plan_has(plan, KIND_PAUSES) || plan->limit > 0 ||
        plan_has(plan, KIND_CLEARS)) /* who clears a topic has claimed jobs that it has not shown */
        return;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++) {
        if (b->due_by_ns <= c->clock_ns && b->due_since < c->rule.begun &&
            !rules_named_since(b, c->rule.begun) && b->rule.group == 0 &&
            (c->topics == BOOKS_ANY || (c->topics >> b->topic & 1) != 0))
            machine_fail("thread %u finds nothing, and job %llu has been due all the while", thread,
                         number_of(b));
    }
}

static int64_t waited(const struct caller *c)
{
    return timeout_now() - c->begun_ns;
}

void books_return(unsigned thread, int rc)
{
    struct caller *c = books_caller(thread);

    memory_empty(); /* others go by what he is told, and who tells them has to see to it */
    /* Who does not wait for a confirmation has none; but for what he takes. */
    if (c->replaced && c->fails && rc == 0 && !plan_has(plan, KIND_ASYNC))
        machine_fail("thread %u: a call is answered with 0, and the jobs are another's", thread);
    if (rc == DUE_ETIMEDOUT && !stored() && waited(c) < c->timeout_ns)
        machine_fail("thread %u: timed out after %lld of %lld ns", thread, (long long)waited(c),
                     (long long)c->timeout_ns);
    if (rc == DUE_ETIMEDOUT && !stored() && c->timeout_ns == 0 && c->wait != WAIT_OTHER)
        machine_fail("thread %u: timed out without waiting", thread);
    if (rc == DUE_EAGAIN && c->timeout_ns > 0)
        machine_fail("thread %u: was to wait, and is told to come again", thread);
    if (rc == DUE_ETIMEDOUT && c->wait == WAIT_JOB)
        check_missed(thread, c);
    if (c->wait == WAIT_ROOM)
        rules_puts(-1);
    if (c->wait == WAIT_JOB && (rc == DUE_EINDOUBT || rc == DUE_ESTORE))
        rules_left_out();
    if (c->wait == WAIT_JOB || c->wait == WAIT_CLEAR)
        last_take = rules_event();
    rules_event();
    if (c->job != NULL) {
        c->job->calls--;
        c->job->looks = (uint8_t)(c->job->looks - c->looks);
        c->job->returned = rules_event();
    }
    for (unsigned i = 0; i < c->n_others; i++) {
        c->others[i]->calls--;
        c->others[i]->returned = rules_event();
    }
    c->n_others = 0;
    c->wait = WAIT_NONE;
    c->waited = false;
}

bool books_alone(unsigned thread)
{
    bool alone = true;

    for (unsigned i = 0; i < PLAN_SEATS * BOOKS_CALLERS; i++)
        alone &= &callers[i] == books_caller(thread) || callers[i].wait == WAIT_NONE;
    return alone;
}

bool books_taken_since(const struct caller *c)
{
    return others_take(c) || last_take > c->rule.begun;
}

bool books_waits(unsigned thread)
{
    return books_caller(thread)->waited;
}

void books_ended(unsigned thread)
{
    const struct caller *c = books_caller(thread);

    if (c->job != NULL && c->job->serial == c->serial)
        rules_ended(c->job);
}

void books_denied(unsigned thread)
{
    if (!stored())
        books_caller(thread)->job->denied = rules_event();
}

void books_busy(unsigned thread)
{
    const struct caller *c = books_caller(thread);
    const struct book *b = c->job;

    if (b == NULL || b->lent > 0 || b->revoked)
        return;
    if (others_take(c) || plan->close != CLOSE_QUIET || plan_has(plan, KIND_CLEARS) ||
        deaths_mortal(b) || deaths_crowded_out(b)) /* or who finds that it has to die, or to go */
        return;                                    /* those have it for a moment */
    if (c->alone && b->calls == 0 && b->serial == c->serial && !b->keyed && b->lease_end_ns > 0 &&
        b->lease_end_ns <= c->clock_ns)
        machine_fail("job %llu is nobody's since %lld ns, and said to be somebody's", number_of(b),
                     (long long)(c->clock_ns - b->lease_end_ns));
}

/* Has it been in the queue all the while, dead or alive?  Nobody else may have had it out but who
 * kicks it, or reads or updates it. */
void books_unknown(unsigned thread)
{
    const struct caller *c = books_caller(thread);
    const struct book *b = c->job;

    if (b == NULL || others_take(c) || plan->close != CLOSE_QUIET || plan_has(plan, KIND_CLEARS) ||
        plan_has(plan, KIND_CROWDS) || deaths_kicking())
        return;
    if (b->told && b->told_event < c->rule.begun && !b->gone && !b->revoked && !b->keyed &&
        b->calls == b->death.kicks + b->looks && !rounds_repeats(b))
        machine_fail("job %llu is there, and said not to be", number_of(b));
}

void books_let_go(struct book *b)
{
    b->lent = (uint8_t)(b->lent - (b->lent > 0));
}

void books_holder(struct book *b, int64_t lease_ns)
{
    if (!stored())
        b->calls++;
    if (lease_ns > 0)
        b->lease_end_ns = DUE_FOREVER;
}

void books_holder_told(struct book *b)
{
    if (!stored())
        b->calls--;
}

/* May it die instead of being handed out?  Of one that has failed for the last time also later, if
 * there is no memory. */
static bool may_die(const struct book *b)
{
    return deaths_last(b, 0) || (deaths_mortal(b) && plan->machine.no_memory_every != 0);
}

void books_due_by(unsigned thread, int64_t due_by_ns)
{
    const struct caller *c = books_caller(thread);
    struct book *b = c->job;

    machine_instant(due_by_ns - clock_now());
    if (b != NULL && c->alone && b->calls == 0 && b->serial == c->serial && !b->keyed && !b->gone &&
        !b->revoked && !may_die(b)) {
        b->due_by_ns = due_by_ns;
        b->due_since = rules_event();
    }
}

void books_put_asked(void)
{
    asked++;
}

void books_put_refused(void)
{
    left++;
}

void books_put(struct book *b, int64_t due_by_ns)
{
    if (b->told || !store_mine()) {
        left++; /* it was there, and has been changed */
        return;
    }
    machine_instant(due_by_ns - clock_now());
    b->told = true;
    b->told_event = rules_event();
    bool stays = !deaths_last(b, 0); /* till somebody takes it */
    if (stays && !rounds_repeats(b))
        rules_in(b, due_by_ns);
    inside += !b->gone;
    if (!b->gone && !b->keyed && b->serial == 0 && stays) {
        b->due_by_ns = due_by_ns;
        b->due_since = rules_event();
    }
}

/* Somebody has been told that it has left, and no longer owns the jobs: so it has left before. */
static void gone_before(const struct book *b)
{
    if (b->owner == store_taken() && !store_has_lost() && !plan_has(plan, KIND_ASYNC) &&
        !plan_has(plan, KIND_LOSSES))
        machine_fail("job %llu has left, and the next program has had it", number_of(b));
}

void books_gone(struct book *b)
{
    if (!store_mine()) {
        gone_before(b);
        return;
    }
    rules_ended(b);
    b->gone_event = rules_event();
    if (b->gone && (stored() || b->gone_maybe)) {
        b->gone_maybe = false; /* once */
        return;                /* stored: a kill may bring it back */
    }
    if (b->gone)
        machine_fail("job %llu has left twice", number_of(b));
    rules_touched(b);
    left++;
    b->gone = true;
    b->due_by_ns = DUE_FOREVER;
    inside -= b->told;
    revoked -= b->told && b->revoked;
}

void books_discarded(struct book *b)
{
    uint64_t before = left;

    books_gone(b);
    left = before;
}

void books_revoked(struct book *b)
{
    if (!store_mine())
        return;
    revoked += b->told && !b->gone && !b->revoked;
    b->revoked = true;
    b->revoked_event = rules_event();
    rules_ends(b);
}

void books_handed(unsigned thread, struct book *b, uint64_t number, int topic, const due_job *job)
{
    const struct caller *c = books_caller(thread);
    bool others = others_call(c);

    if (b->topic != topic)
        machine_fail("job %llu is of another topic", number_of(b));
    if (c->replaced && c->fails)
        machine_fail("job %llu is handed out, and the jobs are another's", number_of(b));
    if (!store_mine())
        return;
    b->serial++;
    b->lent++;
    contents_moved(b);
    b->owner = store_taken();
    b->due_by_ns = DUE_FOREVER;
    if (b->revoked_event != 0 && b->revoked_event < c->rule.begun)
        machine_fail("job %llu comes, and was cancelled while somebody had it", number_of(b));
    int64_t end_ns = c->lease_ns == DUE_FOREVER ? DUE_FOREVER : clock_now() + c->lease_ns;
    if (end_ns > b->lease_end_ns) /* another's may be told of later, and have been before */
        b->lease_end_ns = end_ns;
    if (b->denied != 0 && b->denied < c->rule.begun)
        machine_fail("job %llu comes, and was said not to be there", number_of(b));
    if (c->topics != BOOKS_ANY && (c->topics >> topic & 1) == 0)
        machine_fail("job %llu is of topic %d, which was not asked for", number_of(b), topic);
    rules_handed(b, &c->rule, job, clock_now(), others);
    if (!others_take(c) && !plan_has(plan, KIND_CLEARS))
        rules_turn(b, &c->rule, c->topics);
    deaths_handed(b, &c->rule, job, others);
    rounds_handed(b, &c->rule, job, number, clock_now(), others);
}

/* A round of it: when the next one is due. */
static void again(const struct caller *c, struct book *b, int64_t deadline_ns, bool acked)
{
    bool quiet =
        plan->close == CLOSE_QUIET; /* else it may be refusing already, and no round comes */

    if (!rounds_done(b, &c->rule, deadline_ns, clock_now()) || b->gone || b->revoked)
        return;
    if (acked || quiet)
        rules_ended(b);
    if (may_die(b) || !quiet)
        return;
    b->due_by_ns = b->round.next_most_ns;
    b->due_since = rules_event();
}

void books_done(unsigned thread, struct book *b, int64_t deadline_ns, bool acked)
{
    if (!rounds_repeats(b)) {
        books_gone(b);
    } else if (b->revoked && acked && !b->gone) { /* busy it is, too, while another cancels it */
        books_gone(b);
        b->gone_maybe = b->calls > 0;
    } else {
        again(books_caller(thread), b, deadline_ns, acked);
    }
}

void books_given_back(unsigned thread, uint32_t attempts)
{
    const struct caller *c = books_caller(thread);

    if (c->job != NULL) /* else another program owns the jobs */
        deaths_given_back(c->job, &c->rule, attempts);
}

void books_handled(struct book *b, int topic, const due_job *job)
{
    if (b->topic != topic)
        machine_fail("job %llu is of another topic", number_of(b));
    if (!store_mine())
        return;
    deaths_handled(b, job);
    rounds_handled(b, job->deadline_ns);
    rules_touched(b);
    rules_ends(b); /* it will be */
    contents_moved(b);
    b->serial++;
    b->owner = store_taken();
    b->due_by_ns = DUE_FOREVER;
}

uint64_t books_inside(void)
{
    return inside - revoked;
}

uint64_t books_left(void)
{
    return left;
}

uint64_t books_inside_most(uint64_t left_before)
{
    return asked - left_before;
}

/* ---- At rest ---- */

static void check_wanted(unsigned thread, const struct caller *c)
{
    int64_t now_ns = clock_now();
    const struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++) {
        if (b->due_by_ns > now_ns || !rules_free(b) ||
            (c->topics != BOOKS_ANY && (c->topics >> b->topic & 1) == 0))
            continue;
        machine_fail("job %llu is due for %lld ns, and thread %u waits for it", number_of(b),
                     (long long)(now_ns - b->due_by_ns), thread);
    }
}

/* Time may have passed before the call has looked at the clock. */
static bool time_runs(void)
{
    return plan_has(plan, KIND_JUMPS) || plan_has(plan, KIND_DRIFT) || plan_has(plan, KIND_MANUAL);
}

void books_idle(void)
{
    bool steps = plan->machine.clock_step_max_ns > 0;

    for (unsigned i = 0; i < PLAN_SEATS * BOOKS_CALLERS; i++) {
        struct caller *c = &callers[i];

        if (c->wait == WAIT_NONE || machine_stopped(c->process) ||
            machine_process_ended(c->process))
            continue; /* who is stopped may be anywhere in the call, and who was killed nowhere */
        c->waited = true;
        if (!stored() && c->timeout_ns != DUE_FOREVER && waited(c) > c->timeout_ns && !time_runs())
            machine_fail("thread %u waits for %lld ns, and was to wait for %lld", i,
                         (long long)waited(c), (long long)c->timeout_ns);
        if (closed[i / BOOKS_CALLERS] && c->wait < WAIT_OTHER)
            machine_fail("thread %u waits, and the queue is closed", i);
        if (c->wait == WAIT_JOB && !steps && !stored() && !plan_has(plan, KIND_PAUSES) &&
            !plan_has(plan, KIND_WORKERS))
            check_wanted(i, c);
        if (c->wait == WAIT_ROOM && !stored() && inside < plan->capacity)
            machine_fail("thread %u waits for room, and there is some: %llu of %llu", i,
                         (unsigned long long)inside, (unsigned long long)plan->capacity);
    }
}

void books_closed(unsigned thread)
{
    closed[thread / HISTORY_LANES] = true;
}
