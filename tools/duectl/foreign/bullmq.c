/* bullmq.c - what BullMQ keeps in a Redis.
 *
 *   bull:QUEUE:wait         list  ids that are due; "paused" in older versions, while paused
 *   bull:QUEUE:active       list  ids that a worker has
 *   bull:QUEUE:delayed      zset  ids by 4096 times the millisecond in which they are due, and more
 *   bull:QUEUE:prioritized  zset  ids that are due, by priority and arrival
 *   bull:QUEUE:failed       zset  ids by the millisecond in which they were given up
 *   bull:QUEUE:ID           hash  name, data, opts (JSON), timestamp (ms), atm (tries), ...
 */
#include "foreign/kinds.h"

#include <string.h>

#define STEPS  4096             /* of the score of a delayed job, in a millisecond */
#define CAP_NS DUE_S(24 * 3600) /* of pauses that grow */

/* What is asked of a job. */
enum {
    NAME,
    DATA,
    OPTS,
    TIMESTAMP,
    PRIORITY,
    TRIES,
    TRIES_BEFORE,
    REASON,
    PROCESSED,
    DEDUPLICATION,
    SCHEDULER,
    PARENT,
    FIELDS
};

enum { LOST_DEDUPLICATION, LOST_SCHEDULER, LOST_PARENT, LOST_BACKOFF, LOST_LIFO };

static void ask(struct ctl_foreign *f, const redisReply *id)
{
    static const struct ctl_text fields[] = {
        CTL_FOREIGN_WORD("name"),         CTL_FOREIGN_WORD("data"),
        CTL_FOREIGN_WORD("opts"),         CTL_FOREIGN_WORD("timestamp"),
        CTL_FOREIGN_WORD("priority"),     CTL_FOREIGN_WORD("atm"),
        CTL_FOREIGN_WORD("attemptsMade"), CTL_FOREIGN_WORD("failedReason"),
        CTL_FOREIGN_WORD("processedOn"),  CTL_FOREIGN_WORD("deid"),
        CTL_FOREIGN_WORD("rjk"),          CTL_FOREIGN_WORD("parentKey")
    };

    ctl_foreign_ask(f, "HMGET", "", id, fields, sizeof fields / sizeof fields[0]);
}

/* ---- Options --------------------------------------------------------------------------------- */

struct options {
    double attempts, delay_ms;
    bool exponential, own, lifo;
};

static void see_backoff(void *ctx, const struct ctl_loose *field)
{
    struct options *o = ctx;

    if (ctl_loose_is(field, "delay"))
        o->delay_ms = ctl_loose_number(field, 1e15);
    if (!ctl_loose_is(field, "type"))
        return;
    o->exponential = field->len == 13 && memcmp(field->text, "\"exponential\"", 13) == 0;
    o->own = !o->exponential && !(field->len == 7 && memcmp(field->text, "\"fixed\"", 7) == 0);
}

static void see_option(void *ctx, const struct ctl_loose *field)
{
    struct options *o = ctx;

    if (ctl_loose_is(field, "attempts"))
        o->attempts = ctl_loose_number(field, INT32_MAX);
    if (ctl_loose_is(field, "lifo"))
        o->lifo = field->first == 't';
    if (!ctl_loose_is(field, "backoff"))
        return;
    o->delay_ms = ctl_loose_number(field, 1e15);
    if (field->first == '{' && !ctl_loose_object(field->text, field->len, see_backoff, o))
        o->own = true;
}

/* False: they cannot be read. */
static bool read_options(const redisReply *text, struct ctl_foreign_job *job)
{
    struct options o = { .attempts = 1 };

    if (due__reply_is_text(text) && !ctl_loose_object(text->str, (size_t)text->len, see_option, &o))
        return false;
    int64_t delay_ns = ctl_foreign_time(o.delay_ms, DUE_MS(1));
    delay_ns =
        delay_ns < 0 || delay_ns > DUE_S(365 * 24 * 3600) ? DUE_S(365 * 24 * 3600) : delay_ns;
    job->retry.attempts_max = o.attempts < 1 ? 1 : (uint32_t)o.attempts;
    job->retry.kind = o.exponential && delay_ns > 0 ? DUE_RETRY_EXPONENTIAL : DUE_RETRY_FIXED;
    job->retry.delay_ns = delay_ns;
    if (job->retry.kind == DUE_RETRY_EXPONENTIAL)
        job->retry.cap_ns = delay_ns > CAP_NS ? delay_ns : CAP_NS;
    job->lost |= (unsigned)o.own << LOST_BACKOFF | (unsigned)o.lifo << LOST_LIFO;
    return true;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* There 1 is the highest, and what has none comes before all. */
static int priority_of(const redisReply *text)
{
    int64_t priority = ctl_foreign_number(text, 255);

    return priority <= 0 ? 0 : priority > 255 ? 1 : (int)(256 - priority);
}

static int64_t whole_ms(int64_t ns)
{
    return ns < 0 ? ns : ns - ns % DUE_MS(1);
}

/* When it is due, or died.  False: that cannot be read. */
static bool read_time(const struct ctl_foreign_item *item, redisReply *const *fields,
                      struct ctl_foreign_job *job)
{
    const redisReply *text = fields[TIMESTAMP];
    int64_t ms;

    if (item->state == CTL_FOREIGN_LATER)
        job->when_ns = whole_ms(ctl_foreign_time(item->score / STEPS, DUE_MS(1)));
    else if (item->state == CTL_FOREIGN_DEAD)
        job->when_ns = ctl_foreign_time(item->score, DUE_MS(1));
    if (item->state == CTL_FOREIGN_LATER || item->state == CTL_FOREIGN_DEAD)
        return job->when_ns != CTL_UNDATED;
    if (item->state == CTL_FOREIGN_HELD && due__reply_is_text(fields[PROCESSED]))
        text = fields[PROCESSED];
    ms = ctl_foreign_number(text, INT64_MAX / DUE_MS(1));
    job->when_ns = ms < 0 ? CTL_UNDATED : ms * DUE_MS(1);
    return true;
}

static void read_tries(const struct ctl_foreign_item *item, redisReply *const *fields,
                       struct ctl_foreign_job *job)
{
    due_record *r = &job->record;
    const redisReply *text =
        fields[TRIES]->type != REDIS_REPLY_NIL ? fields[TRIES] : fields[TRIES_BEFORE];
    int64_t tries = ctl_foreign_number(text, INT32_MAX);

    r->failures = tries < 0 ? 0 : (uint32_t)tries;
    r->attempts = r->failures + (item->state == CTL_FOREIGN_HELD);
    if (item->state != CTL_FOREIGN_DEAD)
        return;
    r->cause = r->failures >= job->retry.attempts_max ? DUE_CAUSE_ATTEMPTS : DUE_CAUSE_BURIED;
    if (due__reply_is_text(fields[REASON]))
        ctl_text_show(job->reason, sizeof job->reason, fields[REASON]->str,
                      (size_t)fields[REASON]->len);
}

/* Older versions have marks among the ids, which are no jobs. */
static bool is_mark(const struct ctl_foreign_item *item)
{
    return item->id_len >= 2 && memcmp(item->id, "0:", 2) == 0;
}

static const char *read_job(const struct ctl_foreign_item *item, struct ctl_foreign_job *job)
{
    const redisReply *answer = item->answer[0];
    due_record *r = &job->record;

    if (!due__reply_is_fields(answer, FIELDS))
        return "its record is of another type";
    redisReply *const *fields = answer->element;
    job->is_none = !due__reply_is_text(fields[DATA]) && is_mark(item);
    if (!due__reply_is_text(fields[DATA]))
        return "it has no record, or no data in it";
    if (!read_options(fields[OPTS], job))
        return "its options cannot be read";
    if (!read_time(item, fields, job))
        return "its time cannot be read";
    r->data = fields[DATA]->str;
    r->len = (size_t)fields[DATA]->len;
    if (due__reply_is_text(fields[NAME])) {
        r->headers = fields[NAME]->str;
        r->headers_len = (size_t)fields[NAME]->len;
    }
    r->priority = priority_of(fields[PRIORITY]);
    read_tries(item, fields, job);
    job->lost |= (unsigned)due__reply_is_text(fields[DEDUPLICATION]) << LOST_DEDUPLICATION |
                 (unsigned)due__reply_is_text(fields[SCHEDULER]) << LOST_SCHEDULER |
                 (unsigned)due__reply_is_text(fields[PARENT]) << LOST_PARENT;
    return NULL;
}

static const struct ctl_foreign_list lists[] = {
    { "active", CTL_FOREIGN_HELD, false },  { "wait", CTL_FOREIGN_READY, false },
    { "paused", CTL_FOREIGN_READY, false }, { "prioritized", CTL_FOREIGN_READY, true },
    { "delayed", CTL_FOREIGN_LATER, true }, { "failed", CTL_FOREIGN_DEAD, true }
};

static const struct ctl_foreign_rest rests[] = {
    { "completed", "ZCARD", "jobs that are done", false },
    { "waiting-children", "ZCARD", "parents that wait for their children", true },
    { "repeat", "ZCARD", "job schedulers", true }
};

const struct ctl_foreign_kind ctl_foreign_bullmq = {
    .name = "bullmq",
    .prefix = "bull",
    .job = "job",
    .keys = { { "", ":", ":" } },
    .keys_count = 1,
    .lists = lists,
    .lists_count = sizeof lists / sizeof lists[0],
    .rests = rests,
    .rests_count = sizeof rests / sizeof rests[0],
    .losses = { [LOST_DEDUPLICATION] = "deduplication",
                [LOST_SCHEDULER] = "what makes it again",
                [LOST_PARENT] = "parents",
                [LOST_BACKOFF] = "a backoff of its own",
                [LOST_LIFO] = "that the last comes first" },
    .answers = 1,
    .ask = ask,
    .read = read_job,
};
