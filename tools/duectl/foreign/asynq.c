/* asynq.c - what hibiken/asynq keeps in a Redis.
 *
 *   asynq:queues             set   the names of all queues
 *   asynq:{QUEUE}:pending    list  ids that are due
 *   asynq:{QUEUE}:active     list  ids that a worker has
 *   asynq:{QUEUE}:scheduled  zset  ids by the second in which they are due
 *   asynq:{QUEUE}:retry      zset  the same, after a failure
 *   asynq:{QUEUE}:archived   zset  ids by the second in which they were given up
 *   asynq:{QUEUE}:completed  zset  ids that are done and kept for their results
 *   asynq:{QUEUE}:groups     set   groups whose tasks wait to be put together
 *   asynq:{QUEUE}:t:ID       hash  msg: the task, a message of Protocol Buffers; pending_since: ns
 */
#include "foreign/kinds.h"

#include <math.h>
#include <string.h>

#define PAUSE_NS DUE_S(15)        /* there about 15 s after the first failure, */
#define CAP_NS   DUE_S(24 * 3600) /* and more after each: its handlers' program decides */

/* Numbers of the fields that are looked at. */
enum {
    TYPE = 1,
    PAYLOAD = 2,
    ID = 3,
    RETRY = 5,
    RETRIED = 6,
    ERROR = 7,
    TIMEOUT = 8,
    DEADLINE = 9,
    UNIQUE = 10,
    RETENTION = 12,
    HEADERS = 15,
    FIELDS = 16
};

/* What a job loses on its way: bits, and their names below. */
enum { LOST_TIMEOUT, LOST_UNIQUE, LOST_RETENTION, LOST_HEADERS };

static void ask(struct ctl_foreign *f, const redisReply *id)
{
    static const struct ctl_text fields[] = { CTL_FOREIGN_WORD("msg"),
                                              CTL_FOREIGN_WORD("pending_since") };

    ctl_foreign_ask(f, "HMGET", "t:", id, fields, sizeof fields / sizeof fields[0]);
}

static bool is_bytes(uint32_t number)
{
    return number == TYPE || number == PAYLOAD || number == ID || number == ERROR ||
           number == UNIQUE || number == HEADERS;
}

/* False: it is no task. */
static bool read_fields(const redisReply *message, struct ctl_protobuf_field fields[FIELDS])
{
    struct ctl_protobuf p = { .at = (const unsigned char *)message->str,
                              .left = (size_t)message->len };
    struct ctl_protobuf_field field;

    memset(fields, 0, FIELDS * sizeof *fields);
    while (ctl_protobuf_next(&p, &field)) {
        if (field.number >= FIELDS)
            continue;
        bool bytes = field.type == CTL_PROTOBUF_BYTES;
        bool known = is_bytes(field.number) || field.number == 4 || field.number == 14;

        if (bytes != known || (!bytes && field.type != CTL_PROTOBUF_VARINT))
            return false;
        fields[field.number] = field;
    }
    return !p.broken && fields[ID].number == ID;
}

/* Counts are int32 there, and not negative. */
static uint32_t count_of(const struct ctl_protobuf_field *field)
{
    return field->value <= INT32_MAX ? (uint32_t)field->value : 0;
}

static void read_limits(const struct ctl_protobuf_field fields[FIELDS], struct ctl_foreign_job *job)
{
    due_record *r = &job->record;
    int64_t until_ns = ctl_foreign_time((double)fields[DEADLINE].value, DUE_S(1));

    if (fields[DEADLINE].value > 0 && until_ns > 0 && r->cause == 0)
        r->expires_ns = until_ns;
    job->lost = (unsigned)(fields[TIMEOUT].value > 0) << LOST_TIMEOUT |
                (unsigned)(fields[UNIQUE].len > 0) << LOST_UNIQUE |
                (unsigned)(fields[RETENTION].value > 0) << LOST_RETENTION |
                (unsigned)(fields[HEADERS].len > 0) << LOST_HEADERS;
}

/* How often it was tried, how often it may be, and why it is dead. */
static void read_tries(const struct ctl_foreign_item *item,
                       const struct ctl_protobuf_field fields[FIELDS], struct ctl_foreign_job *job)
{
    due_record *r = &job->record;
    uint32_t retried = count_of(&fields[RETRIED]);
    uint32_t most = count_of(&fields[RETRY]);
    bool dead = item->state == CTL_FOREIGN_DEAD;

    r->failures = retried + dead;
    r->attempts = r->failures + (item->state == CTL_FOREIGN_HELD);
    job->retry = (due_retry){ .kind = DUE_RETRY_EXPONENTIAL,
                              .attempts_max = most + 1,
                              .delay_ns = PAUSE_NS,
                              .cap_ns = CAP_NS };
    if (!dead)
        return;
    r->cause = retried >= most ? DUE_CAUSE_ATTEMPTS : DUE_CAUSE_BURIED;
    ctl_text_show(job->reason, sizeof job->reason, (const char *)fields[ERROR].bytes,
                  fields[ERROR].len);
}

static const char *read_task(const struct ctl_foreign_item *item, struct ctl_foreign_job *job)
{
    const redisReply *answer = item->answer[0];
    struct ctl_protobuf_field fields[FIELDS];
    due_record *r = &job->record;

    if (!due__reply_is_fields(answer, 2))
        return "its record is of another type";
    if (!due__reply_is_text(answer->element[0]))
        return "it has no record";
    if (!read_fields(answer->element[0], fields))
        return "its record is no task of asynq";
    if (fields[ID].len != item->id_len || memcmp(fields[ID].bytes, item->id, item->id_len) != 0)
        return "its record is that of another task";
    r->data = fields[PAYLOAD].bytes;
    r->len = fields[PAYLOAD].len;
    r->headers = fields[TYPE].bytes;
    r->headers_len = fields[TYPE].len;
    read_tries(item, fields, job);
    read_limits(fields, job);
    if (!isnan(item->score)) {
        job->when_ns = ctl_foreign_time(item->score, DUE_S(1));
        return job->when_ns == CTL_UNDATED ? "its time cannot be read" : NULL;
    }
    if (item->state == CTL_FOREIGN_READY) /* -1, that is undated, if there is none */
        job->when_ns = ctl_foreign_number(answer->element[1], DUE_FOREVER);
    return NULL;
}

static const struct ctl_foreign_list lists[] = { { "active", CTL_FOREIGN_HELD, false },
                                                 { "pending", CTL_FOREIGN_READY, false },
                                                 { "retry", CTL_FOREIGN_RETRIED, true },
                                                 { "scheduled", CTL_FOREIGN_LATER, true },
                                                 { "archived", CTL_FOREIGN_DEAD, true } };

static const struct ctl_foreign_rest rests[] = {
    { "completed", "ZCARD", "tasks that are done", false },
    { "groups", "SCARD", "groups whose tasks wait to be put together", true }
};

const struct ctl_foreign_kind ctl_foreign_asynq = {
    .name = "asynq",
    .prefix = "asynq",
    .job = "task",
    .keys = { { "", ":{", "}:" } },
    .keys_count = 1,
    .queues = ":queues",
    .lists = lists,
    .lists_count = sizeof lists / sizeof lists[0],
    .rests = rests,
    .rests_count = sizeof rests / sizeof rests[0],
    .losses = { [LOST_TIMEOUT] = "timeouts",
                [LOST_UNIQUE] = "unique locks",
                [LOST_RETENTION] = "retention of results",
                [LOST_HEADERS] = "headers" },
    .answers = 1,
    .ask = ask,
    .read = read_task,
};
