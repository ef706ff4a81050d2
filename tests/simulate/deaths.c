/* deaths.c - attempts, time limits, and what the dead say. */
#include "deaths.h"

#include <string.h>

#include "books.h"
#include "machine.h"
#include "world.h"

#define ATTEMPTS_SEEN 64u

static const struct plan *plan;
static unsigned kicking; /* calls under way that kick all they find */

void deaths_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(kicking);
    plan = p;
    kicking = 0;
}

static unsigned long long number_of(const struct book *b)
{
    return (unsigned long long)books_number(b);
}

static const due_retry *policy_of(const struct book *b)
{
    unsigned n = b->death.retry;

    if (n == 0)
        n = plan->topic_retry[b->topic];
    return &plan->retry[n != 0 ? n : plan->queue_retry];
}

static uint32_t attempts_max(const struct book *b)
{
    const due_retry *r = policy_of(b);

    return r->kind == DUE_RETRY_LADDER && r->attempts_max == 0 ? r->rungs + 1 : r->attempts_max;
}

static bool kicked_now(const struct death_facts *d)
{
    return d->kicks > 0 || kicking > 0;
}

static bool timed(const struct death_facts *d)
{
    return d->ttl_ns != 0 || d->expires_ns != 0;
}

bool deaths_mortal(const struct book *b)
{
    return timed(&b->death) || attempts_max(b) > 0 || b->death.vague;
}

bool deaths_crowded_out(const struct book *b)
{
    return plan_has(plan, KIND_CROWDS) && (b->death.buried || deaths_mortal(b));
}

bool deaths_limited(const struct book *b)
{
    return b->death.vague || attempts_max(b) > 0;
}

bool deaths_last(const struct book *b, uint32_t attempts)
{
    return b->death.vague || timed(&b->death) ||
           (attempts_max(b) > 0 && (b->death.amended || attempts >= attempts_max(b)));
}

/* Are they on disk before anybody has the job? */
static bool counted_there(const struct book *b)
{
    return attempts_max(b) > 0 && !plan->attempts_lazy && !b->death.vague && !b->death.amended &&
           !plan_has(plan, KIND_LOSSES);
}

void deaths_life(struct book *b)
{
    struct death_facts *d = &b->death;

    if (d->failed > d->least)
        d->least = d->failed;
    if (counted_there(b) && !b->keyed && !rounds_repeats(b) && !kicked_now(d))
        for (uint32_t n = 1; n < ATTEMPTS_SEEN; n++)
            if (d->seen >> n & 1 && n > d->least)
                d->least = n;
    d->seen = d->maybe = 0;
    d->kicks = 0;
    d->again = 0;
    d->all_seen = false;
}

/* ---- Handed out ---- */

static int64_t expiry(const struct death_facts *d, int64_t deadline_ns)
{
    if (d->kicked || kicking > 0 || d->vague || !timed(d))
        return DUE_FOREVER;
    if (d->expires_ns != 0)
        return d->expires_ns;
    return deadline_ns > DUE_FOREVER - d->ttl_ns ? DUE_FOREVER : deadline_ns + d->ttl_ns;
}

static void check_limits(const struct book *b, const due_job *job)
{
    uint32_t before = job->attempts - (job->token != 0);

    if (job->attempts < (job->token != 0) || job->failures > before)
        machine_fail("job %llu has failed %u times in %u attempts", number_of(b), job->failures,
                     job->attempts);
    if (!b->death.vague && attempts_max(b) > 0 && before >= attempts_max(b))
        machine_fail("job %llu comes after its last attempt", number_of(b));
}

/* Attempts that were given back, and not counted, are nobody's business here. */
static bool exact(void)
{
    bool faults = plan_has(plan, KIND_AWAY) || plan_has(plan, KIND_DOUBT) ||
                  plan_has(plan, KIND_FULL) || plan_has(plan, KIND_LOSSES);

    return !faults && !plan_has(plan, KIND_WORKERS);
}

/* Whoever has it next after it was put off has the same attempt. */
static void check_again(struct book *b, const struct rule_call *c, const due_job *job, bool others)
{
    struct death_facts *d = &b->death;

    if (d->again != 0 && c->begun > d->again_event && exact() && !others && !b->keyed &&
        !rounds_repeats(b) && !kicked_now(d) && !plan_has(plan, KIND_STORED) && job->token != 0 &&
        job->attempts != d->again)
        machine_fail("job %llu was put off, and has attempt %u and not %u", number_of(b),
                     job->attempts, d->again);
    d->again = 0;
}

static uint64_t bit_of(uint32_t attempts)
{
    return UINT64_C(1) << attempts % ATTEMPTS_SEEN;
}

static void check_counts(struct book *b, const due_job *job, bool others)
{
    struct death_facts *d = &b->death;
    uint64_t bit = bit_of(job->attempts);

    if (job->attempts <= d->least)
        machine_fail("job %llu had attempt %u in an earlier life, and now %u", number_of(b),
                     d->least, job->attempts);
    if (job->attempts >= ATTEMPTS_SEEN)
        return;
    if (d->seen & bit)
        machine_fail("job %llu has attempt %u twice", number_of(b), job->attempts);
    d->all_seen |= job->attempts == 1;
    if (d->all_seen && exact() && !others && ((bit - 2) & ~(d->seen | d->maybe)) != 0)
        machine_fail("job %llu has attempt %u, and one before it was nobody's", number_of(b),
                     job->attempts);
    d->seen |= bit;
}

void deaths_handed(struct book *b, const struct rule_call *c, const due_job *job, bool others)
{
    struct death_facts *d = &b->death;
    bool steps = plan->machine.clock_step_max_ns > 0;

    check_limits(b, job);
    check_again(b, c, job, others);
    if (!steps && !plan_has(plan, KIND_STORED) && c->clock_ns >= expiry(d, job->deadline_ns))
        machine_fail("job %llu comes, and its time is over", number_of(b));
    if (b->keyed || rounds_repeats(b)) /* it may begin anew at any time */
        return;
    if (c->begun < d->anew || kicked_now(d)) {
        d->maybe |= bit_of(job->attempts);
        return;
    }
    if (exact() && !plan_has(plan, KIND_STORED) &&
        job->failures != job->attempts - (job->token != 0))
        machine_fail("job %llu has failed %u times, and has attempt %u", number_of(b),
                     job->failures, job->attempts);
    if (job->token != 0)
        check_counts(b, job, others);
}

void deaths_handled(const struct book *b, const due_job *job)
{
    check_limits(b, job);
}

void deaths_given_back(struct book *b, const struct rule_call *c, uint32_t attempts)
{
    struct death_facts *d = &b->death;
    bool sync = plan->confirm == DUE_CONFIRM_SYNC && !plan_has(plan, KIND_LOSSES);

    if (sync && !b->keyed && !kicked_now(d) && c->begun > d->anew && attempts > d->failed &&
        !rounds_repeats(b))
        d->failed = attempts;
}

void deaths_snooze(struct book *b, uint32_t attempts)
{
    b->death.seen &= ~bit_of(attempts);
    b->death.maybe |= bit_of(attempts);
    b->death.again = 0;
}

void deaths_snoozed(struct book *b, uint32_t attempts)
{
    struct death_facts *d = &b->death;

    d->again = attempts;
    d->again_event = rules_event();
}

void deaths_amend(struct book *b)
{
    b->death.vague = true;
}

/* Had it died before, by its old limits?  Then it says so. */
void deaths_amended(unsigned thread, struct book *b, unsigned what, unsigned retry, int64_t ttl_ns)
{
    struct death_facts *d = &b->death;
    bool waited = (what & (DUE_SET_TIME | DUE_SET_LIMIT)) != 0;

    if (!books_undisturbed(thread) || !waited || kicked_now(d) || d->kicked)
        return;
    d->vague = false;
    if (what & DUE_SET_RETRY) {
        d->retry = (uint8_t)retry;
        d->amended = true;
    }
    if (what & DUE_SET_LIMIT) {
        d->ttl_ns = ttl_ns;
        d->expires_ns = 0;
    }
}

static void begin_anew(struct book *b)
{
    struct death_facts *d = &b->death;

    rules_touched(b);
    rounds_named(b);
    b->serial++;
    d->kicked = true;
    d->all_seen = false;
    d->anew = rules_event();
    d->seen = d->maybe = 0;
    d->failed = d->least = d->again = 0;
}

void deaths_kick(struct book *b)
{
    if (b == NULL) { /* it may be any of those */
        books_each_unmet(deaths_kick);
        return;
    }
    b->death.kicks++;
    begin_anew(b);
}

void deaths_kicked(struct book *b)
{
    if (b == NULL) {
        books_each_unmet(deaths_kicked);
        return;
    }
    b->death.kicks -= b->death.kicks > 0;
    begin_anew(b);
}

bool deaths_kicking(void)
{
    return kicking > 0;
}

/* Those too that come meanwhile. */
void deaths_kick_all(int topic)
{
    struct book *b;

    kicking++;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (topic < 0 || b->topic == topic)
            begin_anew(b);
}

void deaths_kicked_all(int topic)
{
    struct book *b;

    kicking -= kicking > 0;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (topic < 0 || b->topic == topic) {
            begin_anew(b);
            contents_moved(b);
        }
}

/* ---- Dead ---- */

static void check_reason(const due_dead *dead)
{
    char id[DUE_ID_TEXT];
    const char *reason = dead->cause == DUE_CAUSE_BURIED ? due_id_format(dead->id, id) : "";

    if (strcmp(dead->reason, reason) != 0)
        machine_fail("a dead job is listed with the reason \"%s\"", dead->reason);
    if (dead->failures > dead->attempts)
        machine_fail("a dead job has failed %u times in %u attempts", dead->failures,
                     dead->attempts);
}

void deaths_listed(const struct book *b, const due_dead *dead, uint64_t begun)
{
    bool steps = plan->machine.clock_step_max_ns > 0;

    check_reason(dead);
    if (b != NULL && b->revoked_event != 0 && b->calls == 0 && b->lent == 0 && exact() &&
        b->revoked_event < begun && b->returned < begun && !plan_has(plan, KIND_STORED))
        machine_fail("job %llu was cancelled, and is dead", number_of(b));
    if (b == NULL || b->death.vague)
        return;
    if (dead->cause == DUE_CAUSE_BURIED && !b->death.buried)
        machine_fail("job %llu is said to be buried", number_of(b));
    if (dead->cause == DUE_CAUSE_ATTEMPTS &&
        (attempts_max(b) == 0 || dead->attempts < attempts_max(b)))
        machine_fail("job %llu is dead after %u attempts of %u", number_of(b), dead->attempts,
                     attempts_max(b));
    if (dead->cause != DUE_CAUSE_EXPIRED || b->death.kicked || kicking > 0)
        return;
    int64_t end_ns = expiry(&b->death, dead->deadline_ns);
    if (end_ns == DUE_FOREVER || (!steps && dead->died_ns < end_ns))
        machine_fail("job %llu is dead at %lld, and its time ends at %lld", number_of(b),
                     (long long)dead->died_ns, (long long)end_ns);
}

/* ---- Given back ---- */

void deaths_delay(const struct book *b, uint32_t failures, int64_t *least_ns, int64_t *most_ns)
{
    const due_retry *r = policy_of(b);

    *least_ns = *most_ns = 0;
    if (b->death.vague) {
        *most_ns = DUE_FOREVER;
    } else if (r->kind == DUE_RETRY_FIXED) {
        *least_ns = *most_ns = r->delay_ns;
    } else if (r->kind == DUE_RETRY_LADDER) {
        *least_ns = *most_ns = r->rung_ns[failures < r->rungs ? failures - 1 : r->rungs - 1];
    } else if (r->kind == DUE_RETRY_EXPONENTIAL) {
        *most_ns = r->delay_ns;
        for (uint32_t i = 1; i < failures && *most_ns < DUE_S(1000000); i++)
            *most_ns *= 2;
        if (r->cap_ns > 0 && *most_ns > r->cap_ns)
            *most_ns = r->cap_ns;
    }
}
