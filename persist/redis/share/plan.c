/* plan.c - which calls of scripts an exchange consists of, and which change stands where.
 *
 * A call names at most eight topics, so an exchange of more has several of a kind.  The claim is in
 * the last call of its kind, with as many of the ends as have room there: what is in one call
 * happens at one moment.
 *
 * In a queue with a capacity puts go in turn: a call has none that comes before one of an earlier
 * call, so that it is the last ones for which there is no room.  Of one that is not known to have a
 * capacity, and has one, all are refused (due__share_shut), and go in turn then.
 */
#include <string.h>

#include "redis/share/share.h"

/* What a change is to a script; 0: nothing that a shared queue knows. */
static char letter_of(const due_change *c)
{
    bool held = c->held != 0;

    switch (c->kind) {
    case DUE_CHANGE_PUT:
        return held || c->record.cause != 0 ? '\0' : 'p';
    case DUE_CHANGE_DROP:
        if (held)
            return c->key_kept_ns > 0 ? 'K' : 'a';
        if (c->record.mark_len > 0) /* which knows nothing of how many are dead */
            return c->dead_max != 0 ? '\0' : c->was_dead ? 'z' : 'l';
        return c->was_dead ? 'x' : 'c';
    case DUE_CHANGE_MOVE:
        if (held)
            return c->keeps_pass ? 'n' : c->key_kept_ns > 0 ? 'O' : 'o';
        return c->was_dead ? 'k' : 'm';
    case DUE_CHANGE_BURY:
        return held ? 'b' : '\0';
    case DUE_CHANGE_BEGIN:
        return held ? 't' : '\0';
    case DUE_CHANGE_TOPIC:
        return held || c->record.topic == NULL ? '\0' : 's';
    case DUE_CHANGE_AMEND:
        if (held)
            return '\0';
        return !c->was_dead ? 'u' : c->record.cause != 0 ? 'v' : 'w';
    case DUE_CHANGE_EXTEND:
        return held ? 'e' : '\0';
    case DUE_CHANGE_RELEASE:
        return held ? 'r' : '\0';
    default:
        return '\0';
    }
}

static enum due__share_kind kind_of(char letter)
{
    if (letter == 'p')
        return DUE__SHARE_PUT;
    return strchr("cxlzmkuvws", letter) != NULL ? DUE__SHARE_EDIT : DUE__SHARE_WORK;
}

/* The topic's number in the part, from 1; 0: it is not there and may not be. */
static size_t topic_in(struct due__share_part *part, const char *topic)
{
    for (size_t i = part->topics; i > 0; i--)
        if (part->topic[i - 1] == topic || strcmp(part->topic[i - 1], topic) == 0)
            return i;
    if (part->topics == DUE__SHARE_TOPICS)
        return 0;
    part->topic[part->topics++] = topic;
    return part->topics;
}

/* A new part begins; what has become of it before stays. */
static struct due__share_part *add_part(struct due__share_lane *lane, enum due__share_kind kind)
{
    struct due__share_part *part = &lane->part[lane->plan.parts++];

    part->kind = kind;
    part->claims = false;
    part->topics = 0;
    part->changes = 0;
    return part;
}

/* The group in which a change stands, which may be a new one. */
static size_t group_of(struct due__share_lane *lane, size_t part, char letter, size_t topic,
                       int64_t lease_us)
{
    struct due__share_plan *plan = &lane->plan;

    for (size_t i = plan->groups; i > 0; i--) {
        struct due__share_group *g = &plan->group[i - 1];
        if (g->part == part && g->letter == letter && g->topic == topic && g->lease_us == lease_us)
            return i - 1;
    }
    plan->group[plan->groups] = (struct due__share_group){
        .part = part, .letter = letter, .topic = topic, .lease_us = lease_us
    };
    return plan->groups++;
}

static void plan_change(struct due__share_lane *lane, size_t i, const char *name)
{
    const due_change *c = &lane->plan.changes[i];
    char letter = letter_of(c);
    enum due__share_kind kind = kind_of(letter);
    size_t topic = 0;
    size_t p = kind == DUE__SHARE_PUT ? lane->plan.put_from : 0;

    for (; p < lane->plan.parts && topic == 0; p++)
        if (lane->part[p].kind == kind)
            topic = topic_in(&lane->part[p], name);
    if (topic == 0) {
        topic = topic_in(add_part(lane, kind), name);
        p = lane->plan.parts;
        if (kind == DUE__SHARE_PUT && lane->in_turn)
            lane->plan.put_from = p - 1;
    }
    p--;
    lane->part[p].changes++;
    int64_t lease_us = letter == 'e' ? (c->lease_ns + 999) / 1000 : 0;
    size_t group = group_of(lane, p, letter, topic, lease_us);
    lane->plan.in[i] = (uint16_t)group;
    lane->plan.group[group].n++;
}

static void plan_claim(struct due__share_lane *lane, const struct due_claim *claim)
{
    struct due__share_part *part = add_part(lane, DUE__SHARE_WORK);

    part->claims = true;
    if (claim->topics == NULL) {
        for (size_t i = 0; i < lane->n_any; i++)
            part->topic[part->topics++] = lane->any_topic[i];
        return;
    }
    for (size_t i = 0; i < claim->topic_count; i++)
        part->topic[part->topics++] = claim->topics[i];
}

/* Where each group's changes begin, and the changes in that order. */
static void put_in_order(struct due__share_plan *plan)
{
    size_t at = 0;

    for (size_t g = 0; g < plan->groups; g++) {
        plan->group[g].first = at;
        at += plan->group[g].n;
        plan->group[g].n = 0;
    }
    for (size_t i = 0; i < plan->n; i++) {
        struct due__share_group *g = &plan->group[plan->in[i]];
        plan->order[g->first + g->n++] = (uint16_t)i;
    }
}

bool due__share_is_work(const due_change *changes, size_t n, const struct due_claim *claim)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].held != 0)
            return true;
    return claim != NULL;
}

static bool is_lease(int64_t lease_ns)
{
    return lease_ns >= 0 && lease_ns <= DUE_CLAIM_LEASE_MAX;
}

int due__share_check(const due_change *changes, size_t n, const struct due_claim *claim)
{
    if (n > DUE__SHARE_CHANGES)
        return DUE_EINVAL;
    if (claim != NULL && (claim->topic_count > DUE__SHARE_TOPICS || !is_lease(claim->lease_ns)))
        return DUE_EINVAL;
    for (size_t i = 0; i < n; i++) {
        char letter = letter_of(&changes[i]);

        if (letter == '\0')
            return DUE_ENOTSUP;
        if (changes[i].record.topic == NULL && kind_of(letter) != DUE__SHARE_EDIT)
            return DUE_EINVAL;
        if (changes[i].record.group_len > DUE_KEY_MAX ||
            (changes[i].kind == DUE_CHANGE_EXTEND && !is_lease(changes[i].lease_ns)))
            return DUE_EINVAL;
    }
    return 0;
}

void due__share_make_plan(struct due__share_lane *lane, const due_change *changes, size_t n,
                          const struct due_claim *claim)
{
    struct due__share_plan *plan = &lane->plan;
    size_t found = 0;

    plan->changes = changes;
    plan->n = n;
    plan->claim = claim;
    plan->parts = plan->groups = plan->put_from = 0;
    if (claim != NULL)
        plan_claim(lane, claim);
    for (size_t i = 0; i < n; i++) {
        const char *topic = changes[i].record.topic;
        plan_change(lane, i, topic != NULL ? topic : lane->found[found++]);
    }
    put_in_order(plan);
}

size_t due__share_next_put(const struct due__share_plan *plan, size_t part, size_t from)
{
    while (from < plan->n && plan->group[plan->in[from]].part != part)
        from++;
    return from;
}

size_t due__share_next_group(const struct due__share_plan *plan, size_t part, size_t from)
{
    while (from < plan->groups && plan->group[from].part != part)
        from++;
    return from;
}
