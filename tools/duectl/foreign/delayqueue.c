/* delayqueue.c - what hdt3213/delayqueue keeps in a Redis.
 *
 *   dp:QUEUE:pending    zset   ids by the second in which they are due
 *   dp:QUEUE:ready      list   ids that are due
 *   dp:QUEUE:retry      list   ids that have failed and are due again
 *   dp:QUEUE:unack      zset   ids that a worker has, by the second in which it ought to be done
 *   dp:QUEUE:retry:cnt  hash   how many more tries each has
 *   dp:QUEUE:garbage    set    ids whose tries have run out, about to be deleted
 *   dp:QUEUE:msg:ID     string the payload, with a time to live
 *
 * With hash tags dp:QUEUE stands between braces.  How often a message was tried is not kept, nor
 * when one became ready.
 */
#include "foreign/kinds.h"

#include <math.h>

#define PAUSE_NS DUE_S(1) /* between two tries there: until the next look into Redis */

static void ask(struct ctl_foreign *f, const redisReply *id)
{
    ctl_foreign_ask(f, "GET", "msg:", id, NULL, 0);
    ctl_foreign_ask(f, "HGET", "retry:cnt", NULL, &(struct ctl_text){ id->str, (size_t)id->len },
                    1);
}

static const char *read_message(const struct ctl_foreign_item *item, struct ctl_foreign_job *job)
{
    const redisReply *message = item->answer[0];
    int64_t tries = ctl_foreign_number(item->answer[1], INT32_MAX);
    due_record *r = &job->record;

    if (message->type == REDIS_REPLY_NIL)
        return "its payload is gone, because its time to live has ended";
    if (!due__reply_is_text(message))
        return "its payload is of another type";
    if (tries < 0 && item->answer[1]->type != REDIS_REPLY_NIL)
        return "the number of its tries cannot be read";
    tries = tries < 0 ? 0 : tries;
    r->data = message->str;
    r->len = (size_t)message->len;
    r->attempts = item->state == CTL_FOREIGN_HELD || item->state == CTL_FOREIGN_RETRIED;
    r->failures = item->state == CTL_FOREIGN_RETRIED;
    job->retry.kind = DUE_RETRY_FIXED;
    job->retry.delay_ns = PAUSE_NS;
    job->retry.attempts_max = (uint32_t)tries + 1 + r->failures;
    if (isnan(item->score))
        return NULL;
    job->when_ns = ctl_foreign_time(item->score, DUE_S(1));
    return job->when_ns == CTL_UNDATED ? "its time cannot be read" : NULL;
}

static const struct ctl_foreign_list lists[] = { { "unack", CTL_FOREIGN_HELD, true },
                                                 { "retry", CTL_FOREIGN_RETRIED, false },
                                                 { "ready", CTL_FOREIGN_READY, false },
                                                 { "pending", CTL_FOREIGN_LATER, true } };

static const struct ctl_foreign_rest rests[] = { { "garbage", "SCARD",
                                                   "messages that had been given up", false } };

const struct ctl_foreign_kind ctl_foreign_delayqueue = {
    .name = "delayqueue",
    .prefix = "dp",
    .job = "message",
    .keys = { { "", ":", ":" }, { "{", ":", "}:" } },
    .keys_count = 2,
    .lists = lists,
    .lists_count = sizeof lists / sizeof lists[0],
    .rests = rests,
    .rests_count = sizeof rests / sizeof rests[0],
    .answers = 2,
    .ask = ask,
    .read = read_message,
};
