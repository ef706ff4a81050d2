/* answer.c - what the parts of an exchange have answered, told change by change. */
#include <string.h>

#include "redis/share/share.h"

/* ---- Do they make sense? --------------------------------------------------------------------- */

static bool is_status(const redisReply *r, size_t changes, const char *letters)
{
    if (!due__reply_is_text(r) || (r->len != 0 && (size_t)r->len != changes))
        return false;
    return strspn(r->str, letters) == (size_t)r->len;
}

/* Of each of so many jobs a text, which may be a time or none, or nothing; or '': of none. */
static bool of_each(const redisReply *r, size_t n, bool times)
{
    int64_t time_us;

    if (r->type != REDIS_REPLY_ARRAY)
        return due__reply_is_text(r) && r->len == 0;
    for (size_t i = 0; i < r->elements; i++) {
        const redisReply *one = r->element[i];
        if (!due__reply_is_text(one) && (times || one->type != REDIS_REPLY_NIL))
            return false;
        if (times && one->len > 0 && !due__share_number(one, 0, &time_us))
            return false;
    }
    return r->elements == n;
}

/* Jobs of a topic that were claimed. */
static bool is_group(const struct due__share_part *part, const redisReply *r)
{
    int64_t topic;

    if (r->type != REDIS_REPLY_ARRAY || r->elements != 5 ||
        r->element[0]->type != REDIS_REPLY_INTEGER ||
        !due__share_number(r->element[0], 1, &topic) || (size_t)topic > part->topics)
        return false;
    const redisReply *ids = r->element[1];
    const redisReply *records = r->element[3];
    return records->type == REDIS_REPLY_ARRAY && due__reply_is_text(ids) &&
           of_each(records, records->elements, false) &&
           (size_t)ids->len == records->elements * DUE_STORE_ID_BYTES &&
           of_each(r->element[2], records->elements, true) &&
           of_each(r->element[4], records->elements, false);
}

/* What stands behind the status of work: see work.lua. */
static bool is_claim(const struct due__share_part *part, const redisReply *r)
{
    size_t at = 8;
    size_t jobs = 0;
    int64_t word[5]; /* end of the leases, alarm, more, rung, claimed */

    for (size_t i = 0; i < 5; i++)
        if (r->element[3 + i]->type != REDIS_REPLY_INTEGER ||
            !due__share_number(r->element[3 + i], i == 1 ? -1 : 0, &word[i]))
            return false;
    for (; at < r->elements && r->element[at]->type == REDIS_REPLY_ARRAY; at++) {
        if (!is_group(part, r->element[at]))
            return false;
        jobs += r->element[at]->element[3]->elements;
    }
    return jobs <= DUE__SHARE_CLAIM && jobs == (size_t)word[4] && (r->elements - at) % 2 == 0;
}

bool due__share_is_void(const struct due__share_part *part)
{
    const redisReply *status = part->answer->element[2];

    return part->voids && due__reply_is_text(status) && status->len == 1 && status->str[0] == 'u';
}

static bool was_full(const struct due__share_lane *lane, size_t part)
{
    for (size_t p = 0; p < part; p++) {
        const struct due__share_part *before = &lane->part[p];
        if (before->kind == DUE__SHARE_PUT && before->rc == 0 && before->answer != NULL &&
            !before->voids && strchr(before->answer->element[2]->str, 'f') != NULL)
            return true;
    }
    return false;
}

/* Parts that are not in turn do not have what comes first in the first one: so either no job is
 * refused for lack of room, or all are. */
enum due__share_shut due__share_shut(const struct due__share_lane *lane, size_t part)
{
    size_t first = lane->plan.parts;
    size_t puts = 0;

    if (was_full(lane, part))
        return DUE__SHUT_ALL;
    for (size_t p = lane->plan.parts; p > 0; p--) {
        if (lane->part[p - 1].kind != DUE__SHARE_PUT)
            continue;
        first = p - 1;
        puts++;
    }
    if (lane->in_turn || puts < 2)
        return DUE__SHUT_NONE;
    return part == first ? DUE__SHUT_IF_FULL : DUE__SHUT_NEVER;
}

bool due__share_sane(struct due__redis *s, const struct due__share_part *part)
{
    const redisReply *r = part->answer;
    int64_t rang;

    if (!due__share_stamp(s, r, part->kind == DUE__SHARE_WORK ? 8 : 4))
        return false;
    if (part->kind == DUE__SHARE_WORK)
        return is_status(r->element[2], part->changes, "dsx") && is_claim(part, r);
    size_t changes = due__share_is_void(part) ? 1 : part->changes;
    return r->elements == 4 && is_status(r->element[2], changes, "dcouef") &&
           due__share_number(r->element[3], 0, &rang);
}

/* ---- Change by change ------------------------------------------------------------------------ */

static int result_of(char letter)
{
    switch (letter) {
    case 's':
        return DUE_ESTALE;
    case 'c':
    case 'f':
        return DUE_EAGAIN;
    case 'e':
        return DUE_EEXIST;
    case 'o':
        return DUE_EBUSY;
    case 'u':
        return DUE_ENOENT;
    case 'x':
        return DUE_REVOKED;
    default:
        return 0;
    }
}

/* What is known of a job that was held, after its change. */
static void note_end(struct due__redis *s, const due_change *c, int result, int64_t now_us)
{
    struct due__share_holds *holds = &s->share->holds;
    struct due__share_hold *hold = due__hold_find(holds, c->record.id);

    if (hold == NULL || hold->held != c->held)
        return;
    bool made = result == 0 || result == DUE_REVOKED;

    if (made && c->kind == DUE_CHANGE_EXTEND)
        hold->end_us = now_us + (c->lease_ns + 999) / 1000;
    else if (!made || c->kind != DUE_CHANGE_BEGIN)
        due__hold_remove(holds, c->record.id);
}

/* Of new jobs: their letters are in the order of the exchange. */
static void tell_puts(const struct due__share_plan *plan, size_t p,
                      const struct due__share_part *part, int *results)
{
    const redisReply *status = part->rc == 0 ? part->answer->element[2] : NULL;
    bool each = status != NULL && status->len > 0 && !part->voids;
    size_t letter = 0;

    for (size_t i = due__share_next_put(plan, p, 0); i < plan->n;
         i = due__share_next_put(plan, p, i + 1), letter++)
        results[i] = each ? result_of(status->str[letter]) : part->rc;
}

static void tell_changes(struct due__redis *s, const struct due__share_lane *lane, size_t p,
                         int *results)
{
    const struct due__share_plan *plan = &lane->plan;
    const struct due__share_part *part = &lane->part[p];
    const redisReply *status = part->rc == 0 ? part->answer->element[2] : NULL;
    int64_t now_us = 0;
    size_t letter = 0;

    if (part->kind == DUE__SHARE_PUT) {
        tell_puts(plan, p, part, results);
        return;
    }
    if (part->rc == 0)
        (void)due__share_number(part->answer->element[1], 0, &now_us);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1)) {
        for (size_t i = 0; i < plan->group[g].n; i++, letter++) {
            size_t at = plan->order[plan->group[g].first + i];
            int result = part->rc;
            if (status != NULL && status->len > 0 && !part->voids)
                result = result_of(status->str[letter]);
            results[at] = result;
            if (part->rc == 0 && plan->changes[at].held != 0)
                note_end(s, &plan->changes[at], result, now_us);
        }
    }
}

/* Topics that were entered with what was put. */
static void note_topics(struct due__redis *s, const struct due__share_part *part)
{
    for (size_t i = 0; i < part->topics; i++) {
        struct due__redis_topic *t = due__redis_topic(s, part->topic[i], strlen(part->topic[i]));
        if (t != NULL)
            t->entered = true;
        due__share_note_topic(s->share, part->topic[i], strlen(part->topic[i]));
    }
}

/* There is a capacity, which we had not heard of. */
static void note_full(struct due__share *h, const redisReply *status)
{
    if (h->capacity == 0 && strchr(status->str, 'f') != NULL)
        h->capacity = 1; /* until the next beat tells */
}

static void note_part(struct due__redis *s, const struct due__share_part *part,
                      struct due_exchange *answer)
{
    const redisReply *r = part->answer;
    int64_t stamp = 0;
    int64_t now_us = 0;
    int64_t rang = 0;

    (void)due__share_number(r->element[0], 0, &stamp);
    (void)due__share_number(r->element[1], 0, &now_us);
    (void)due__share_number(r->element[part->kind == DUE__SHARE_WORK ? 6 : 3], 0, &rang);
    if (part->claims || (uint64_t)stamp > answer->stamp) {
        answer->stamp = (uint64_t)stamp;
        answer->now_ns = now_us * 1000;
    }
    answer->rang += (uint32_t)rang;
    if (part->kind == DUE__SHARE_PUT && !part->voids) {
        note_full(s->share, r->element[2]);
        note_topics(s, part);
    }
}

/* The order of parts is that in which they are sent: the claim's, which is last, is made first. */
int due__share_tell(struct due__redis *s, struct due__share_lane *lane, int *results,
                    due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                    int64_t until_ns)
{
    struct due__share *h = s->share;
    int rc = 0;
    bool done = lane->plan.parts == 0;

    *answer = (struct due_exchange){ .alarm_ns = -1 };
    for (size_t p = 0; p < lane->plan.parts; p++) {
        const struct due__share_part *part = &lane->part[p];
        done = done || part->rc == 0 || part->rc == DUE_ENOSPC;
        if (part->rc == 0)
            note_part(s, part, answer);
        else if (rc == 0)
            rc = part->rc;
    }
    if (!done)
        return rc;
    if (answer->stamp == 0) {
        answer->stamp = h->stamp;
        answer->now_ns = h->now_us * 1000;
    }
    rc = 0;
    if (lane->plan.parts > 0 && lane->part[0].claims && lane->part[0].rc == 0)
        rc = due__share_show(s, &lane->part[0], visit, ctx, answer, until_ns);
    for (size_t p = 0; p < lane->plan.parts && rc != DUE_EINDOUBT; p++)
        tell_changes(s, lane, p, results);
    return rc;
}
