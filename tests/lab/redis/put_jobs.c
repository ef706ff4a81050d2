/* put_jobs.c - puts jobs of every kind into a stored queue, for tests that are scripts.
 *
 *     put_jobs URL QUEUE [COUNT]
 *
 * The payload of a job says what it is.  None is due within a day.  COUNT plain ones come besides.
 * Exit status: 0 they are stored, and the queue is closed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/due.h"
#include "due/redis.h"
#include "lab/extra.h"

#define DAY DUE_S(86400)

static due_queue *queue;

static void need(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "put_jobs: %s: %s\n", what, due_error_text(rc));
        exit(1);
    }
}

static int topic(const char *name)
{
    int number = due_topic(queue, name);

    need(number, name);
    return number;
}

static void put(due_spec spec, const char *text)
{
    if (spec.delay_ns == 0)
        spec.delay_ns = DAY;
    spec.size = sizeof spec;
    spec.data = text;
    spec.len = strlen(text);
    need(due_enqueue(queue, &spec, DUE_S(10), NULL), text);
}

/* One that is reserved at once. */
static due_job put_now(due_spec spec, const char *text)
{
    due_job job;

    spec.delay_ns = 1;
    put(spec, text);
    need(due_reserve(queue, &job, DUE_S(10)), text);
    return job;
}

static void put_kinds(void)
{
    static const due_retry fixed = { .kind = DUE_RETRY_FIXED, .delay_ns = DAY };
    static const due_retry growing = {
        .kind = DUE_RETRY_EXPONENTIAL, .attempts_max = 7, .delay_ns = DUE_S(1), .cap_ns = DUE_S(60)
    };
    static const due_retry ladder = DUE_RETRY_LADDER_OF_HOURS;

    put((due_spec){ .priority = 0 }, "plain");
    put((due_spec){ .priority = 200 }, "urgent");
    put((due_spec){ .topic = topic("mail") }, "a letter");
    put((due_spec){ .topic = topic("mail") }, "a parcel");
    put((due_spec){ .topic = topic("fax") }, "a drawing");
    put((due_spec){ .more = EXTRA(.headers = "h: 1", .headers_len = 4) }, "with headers");
    put((due_spec){ .more = EXTRA(.retry = &fixed) }, "with a fixed retry");
    put((due_spec){ .more = EXTRA(.retry = &growing) }, "with a growing retry");
    put((due_spec){ .more = EXTRA(.retry = &ladder), .topic = topic("mail") }, "with a ladder");
    put((due_spec){ .more = EXTRA(.ttl_ns = DAY) }, "with a time to live");
    put((due_spec){ .more = EXTRA(.key = "green", .key_len = 5) }, "with a key");
    put((due_spec){ .more = EXTRA(.group = "g", .group_len = 1) }, "of a group");
    put((due_spec){ .more = EXTRA(.every_ns = DAY, .repeat = DUE_REPEAT_AFTER) }, "every day");
    put((due_spec){ .delay_ns = DAY }, "");
    put((due_spec){ .delay_ns = DAY }, "\033[31m\x7f\n\xc2\x9b\xe2\x80\xae");
}

/* Those that have been handed out before, or are gone. */
static void put_past(void)
{
    due_job tried = put_now((due_spec){ .topic = topic("mail") }, "tried");
    due_job dead = put_now(
        (due_spec){ .topic = topic("fax"), .more = EXTRA(.key = "red", .key_len = 3) }, "dead");
    due_job done = put_now(
        (due_spec){ .more = EXTRA(.key = "blue", .key_len = 4, .keep_key_ns = DAY) }, "done");

    need(due_nack(&tried, DAY), "tried");
    need(due_bury(&dead, "no such tea"), "dead");
    need(due_ack(&done), "done");
}

int main(int argc, char **argv)
{
    due_options options = { DUE_OPTIONS_INIT, .name = argc > 2 ? argv[2] : "" };
    due_error error = { "", "" };

    if (argc < 3)
        return 2;
    if (due_redis_open(&options.store, argv[1], NULL, &error) != 0 ||
        due_open(&queue, &options, &error) != 0) {
        fprintf(stderr, "put_jobs: %s\n", error.text);
        return 1;
    }
    put_past();
    put_kinds();
    for (long i = argc > 3 ? strtol(argv[3], NULL, 10) : 0; i > 0; i--) {
        char text[32];

        snprintf(text, sizeof text, "number %ld", i);
        put((due_spec){ .priority = (int)(i % 3), .delay_ns = DAY + i }, text);
    }
    need(due_flush(queue, DUE_S(60)), "flush");
    need(due_close(queue, DUE_CLOSE_DISCARD, DUE_S(10)), "close");
    need(due_free(queue), "free");
    return 0;
}
