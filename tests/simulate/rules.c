/* rules.c - order, pauses and limits of what is handed out. */
#include "rules.h"

#include <limits.h>
#include <string.h>

#include "books.h"
#include "machine.h"
#include "settings.h"
#include "store.h"
#include "world.h"

#define TURNS_MOST (2 * PLAN_TOPICS) /* that another topic may have before it is this one's */

/* Of a topic. */
struct pause {
    unsigned calls; /* that pause or resume it, under way */
    bool overlap;   /* two of them were so at a time: either may have been the last */
    uint64_t since; /* event in which it was told to be paused; 0: it may not be */
};

/* Likewise.  UINT_MAX: any number. */
struct limit {
    unsigned least; /* that it may be now */
    unsigned most;
    unsigned changes; /* so often it was changed */
    unsigned calls;   /* that do so, under way */
    bool overlap;     /* two of them were so at a time */
    uint64_t had;     /* event since which it has had one; 0: perhaps never */
};

/* Likewise. */
struct turns {
    unsigned passed; /* so many calls in a row have taken of another topic */
    uint64_t call;   /* the last of these: when it began */
};

static const struct plan *plan;
static uint64_t events;
static unsigned puts_under_way;
static uint64_t put_last;  /* event in which the last one began */
static uint64_t sorted;    /* event before which whatever had come in has been sorted in */
static bool left_out;      /* in this life */
static struct book *first; /* of those whose order is known */
static struct pause pauses[PLAN_TOPICS];
static unsigned running[PLAN_TOPICS][PLAN_GROUPS + 1]; /* 0: all of the topic */
static unsigned counted[PLAN_TOPICS][PLAN_GROUPS + 1];
static struct limit limits[PLAN_TOPICS];
static struct turns turns[PLAN_TOPICS];

static unsigned limit_of(unsigned limit)
{
    return limit == 0 ? UINT_MAX : limit;
}

void rules_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(events);
    WORLD_KEEP(puts_under_way);
    WORLD_KEEP(put_last);
    WORLD_KEEP(sorted);
    WORLD_KEEP(left_out);
    WORLD_KEEP(first);
    WORLD_KEEP(pauses);
    WORLD_KEEP(running);
    WORLD_KEEP(counted);
    WORLD_KEEP(limits);
    WORLD_KEEP(turns);
    plan = p;
    events = 0;
    first = NULL;
    settings_begin(p);
    rules_life();
}

/* A queue that is opened goes by the limits that are stored from its first job on. */
static void limits_life(int topic)
{
    struct limit *l = &limits[topic];
    struct book *b;

    *l = (struct limit){ .least = UINT_MAX, .most = UINT_MAX, .changes = l->changes + 1 };
    if (!settings_stored())
        return;
    l->most = 0;
    for (unsigned i = 0; i < PLAN_LIMITS; i++) {
        if (!settings_may_be(SETTING_LIMIT, topic, i))
            continue;
        l->least = limit_of(i) < l->least ? limit_of(i) : l->least;
        l->most = limit_of(i) > l->most ? limit_of(i) : l->most;
    }
    l->had = settings_may_be(SETTING_LIMIT, topic, 0) ? 0 : ++events;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (b->topic == topic)
            b->rule.since = l->changes;
}

void rules_life(void)
{
    puts_under_way = 0;
    put_last = sorted = 0;
    left_out = false;
    memset(pauses, 0, sizeof pauses);
    memset(turns, 0, sizeof turns);
    memset(running, 0, sizeof running);
    memset(counted, 0, sizeof counted);
    settings_life();
    for (int i = 0; i < (int)PLAN_TOPICS; i++) {
        limits_life(i);
        if (settings_stored() && settings_must_be(SETTING_PAUSE, i, 1))
            pauses[i].since = ++events;
    }
}

uint64_t rules_event(void)
{
    return ++events;
}

void rules_puts(int more)
{
    puts_under_way = (unsigned)((int)puts_under_way + more);
    if (more > 0)
        put_last = events;
}

void rules_call(struct rule_call *c)
{
    c->begun = ++events;
    c->gap = puts_under_way > 0;
}

bool rules_named_since(const struct book *b, uint64_t event)
{
    return b->calls > 0 || b->returned > event;
}

/* ---- Order ---- */

static bool ordered(void)
{
    return plan->order == DUE_ORDER_DEADLINE && plan->machine.clock_step_max_ns == 0 &&
           plan->limit == 0 && !plan_has(plan, KIND_PAUSES) && !plan_has(plan, KIND_STORED) &&
           !plan_has(plan, KIND_WORKERS) && plan->machine.no_memory_every == 0;
}

void rules_in(struct book *b, int64_t at_ns)
{
    struct rule_facts *f = &b->rule;

    if (!ordered() || b->keyed || b->gone || b->serial != 0)
        return;
    if (plan_has(plan, KIND_GROUPS) && at_ns <= books_now()) /* it may have its pass already */
        return;
    f->in = ++events;
    f->at_ns = at_ns;
    f->last = NULL;
    f->next = first;
    if (first != NULL)
        first->rule.last = b;
    first = b;
}

void rules_touched(struct book *b)
{
    struct rule_facts *f = &b->rule;

    if (f->in == 0)
        return;
    f->in = f->passed = 0;
    f->placed = false;
    if (f->last != NULL)
        f->last->rule.next = f->next;
    else
        first = f->next;
    if (f->next != NULL)
        f->next->rule.last = f->last;
}

/* A put that begins while somebody takes may stop before it has linked its job to the one before,
 * which cannot be sorted in until then. */
static void check_order(struct book *b, const struct rule_call *c, const due_job *job)
{
    bool had_before = job->attempts > (job->token != 0);
    bool gap = put_last > c->begun;

    if (!gap && !c->gap && c->begun > sorted)
        sorted = c->begun;
    for (struct book *it = first; it != NULL && sorted == c->begun; it = it->rule.next)
        it->rule.placed |= it->rule.in < sorted && it->rule.at_ns > c->clock_ns;
    if (b->rule.passed != 0 && c->begun > b->rule.passed && !had_before)
        machine_fail("a job was passed over by one that is due later");
    rules_touched(b);
    for (struct book *it = first; it != NULL && !c->gap; it = it->rule.next)
        if (it->topic == b->topic && it->rule.group == b->rule.group && it->rule.in < c->begun &&
            (!gap || it->rule.in < sorted) && (it->rule.group == 0 || it->rule.placed) &&
            it->rule.at_ns < job->deadline_ns && it->rule.passed == 0 &&
            !rules_named_since(it, c->begun))
            it->rule.passed = events;
}

/* ---- Turns ---- */

/* One of the topic was due before the call began, and nobody has named it since. */
static bool was_due(int topic, const struct rule_call *c)
{
    const struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (b->topic == topic && b->due_by_ns <= c->clock_ns && b->due_since < c->begun &&
            !rules_named_since(b, c->begun) && b->rule.group == 0 && !rounds_repeats(b))
            return true;
    return false;
}

void rules_turn(const struct book *b, const struct rule_call *c, uint32_t topics)
{
    /* One that is found to be dead has had its topic's turn. */
    bool mortal = plan_has(plan, KIND_EXPIRY) || plan_has(plan, KIND_ATTEMPTS);

    for (int i = 0; i < (int)PLAN_TOPICS && ordered() && !mortal && !c->gap; i++) {
        struct turns *t = &turns[i];

        if (i == b->topic || t->call == c->begun || (topics >> i & 1) == 0 || !was_due(i, c))
            continue;
        t->call = c->begun;
        if (++t->passed > TURNS_MOST)
            machine_fail("%u calls took of other topics, and jobs of topic %d were due", t->passed,
                         i);
    }
}

/* ---- Pauses ---- */

void rules_pause_begins(int topic)
{
    struct pause *p = &pauses[topic];

    p->overlap |= p->calls++ > 0;
    p->since = 0;
}

void rules_pause_ends(int topic, bool paused)
{
    struct pause *p = &pauses[topic];
    bool sure = --p->calls == 0 && paused && !p->overlap;

    p->since = sure ? ++events : 0;
    p->overlap &= p->calls > 0;
}

/* ---- Limits ---- */

static void change(unsigned of[PLAN_TOPICS][PLAN_GROUPS + 1], const struct book *b, int by)
{
    unsigned *all = &of[b->topic][0];
    unsigned *group = &of[b->topic][b->rule.group];

    if (of == counted || b->rule.limited)
        *all = (unsigned)((int)*all + by);
    if (b->rule.group != 0)
        *group = (unsigned)((int)*group + by);
}

void rules_new(struct book *b)
{
    b->rule.since = limits[b->topic].changes;
}

void rules_limit_begins(int topic, unsigned limit)
{
    struct limit *l = &limits[topic];

    l->overlap |= l->calls++ > 0;
    if (limit_of(limit) > l->most)
        l->most = limit_of(limit);
    if (limit_of(limit) < l->least)
        l->least = limit_of(limit);
}

void rules_limit_ends(int topic, unsigned limit, bool done)
{
    struct limit *l = &limits[topic];

    if (done && limit > 0 && l->had == 0)
        l->had = ++events;
    if (--l->calls > 0)
        return;
    if (done && !l->overlap) {
        l->least = l->most = limit_of(limit);
        l->changes++;
    }
    l->overlap = false;
}

/* Was one of those that run asked for when the limit was what it is now? */
static bool some_since(int topic)
{
    const struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (b->topic == topic && b->rule.running && b->rule.since == limits[topic].changes)
            return true;
    return false;
}

static void check_limits(struct book *b, const struct rule_call *c, int64_t now_ns)
{
    struct rule_facts *f = &b->rule;

    if (!f->counted)
        change(counted, b, 1);
    /* A keyed one may begin anew at any time; this one may be cancelled, or be so when its lease
     * ends, or die then; if that is over, others have had it meanwhile; and a round that somebody
     * takes for good has ended. */
    bool sure = !b->keyed && !rounds_repeats(b) && b->calls == 0 && !b->revoked &&
                now_ns < c->lease_until_ns && !deaths_mortal(b);
    if (!f->running && sure) {
        f->limited = limits[b->topic].had != 0 && limits[b->topic].had < c->begun;
        change(running, b, 1);
    }
    f->counted = true;
    f->running |= sure;
    if (running[b->topic][0] > limits[b->topic].most && some_since(b->topic))
        machine_fail("%u jobs of topic %d run, and only %u may", running[b->topic][0], b->topic,
                     limits[b->topic].most);
    if (f->group > 0 && running[b->topic][f->group] > 1)
        machine_fail("two jobs of a group run");
}

void rules_left_out(void)
{
    left_out = true;
}

void rules_handed(struct book *b, const struct rule_call *c, const due_job *job, int64_t now_ns,
                  bool others)
{
    uint64_t paused = pauses[b->topic].since;
    bool left = plan_has(plan, KIND_STORED) &&
                (left_out || others || plan_has(plan, KIND_POLLS) || plan_has(plan, KIND_WORKERS));

    if (paused != 0 && c->begun > paused && !left)
        machine_fail("a job of a topic comes that is paused");
    turns[b->topic].passed = 0;
    check_order(b, c, job);
    check_limits(b, c, now_ns);
}

void rules_ends(struct book *b)
{
    if (!store_mine())
        return;
    if (b->rule.running)
        change(running, b, -1);
    b->rule.running = false;
}

void rules_ended(struct book *b)
{
    rules_ends(b);
    if (b->rule.counted)
        change(counted, b, -1);
    b->rule.counted = false;
}

/* May one of those that are counted have the group of this job?  Several calls put jobs by one key,
 * and which of them said the group of what is there now the books do not know. */
static bool group_taken(const struct book *b)
{
    const struct book *other;

    if (b->rule.group > 0 && counted[b->topic][b->rule.group] > 0)
        return true;
    if (b->rule.group == 0 && !b->keyed)
        return false;
    for (uint64_t i = 1; (other = books_job(i)) != NULL; i++)
        if (other->topic == b->topic && other->rule.counted &&
            (other->keyed || (b->keyed && other->rule.group > 0)))
            return true;
    return false;
}

bool rules_free(const struct book *b)
{
    return counted[b->topic][0] < limits[b->topic].least && !group_taken(b);
}
