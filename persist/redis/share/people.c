/* people.c - the processes that share a queue, as `p` tells of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/share/share.h"

/* The last word, as a number; it is cut off. */
static bool cut_number(char *text, int64_t *number)
{
    char *space = strrchr(text, ' ');
    uint64_t n;

    if (space == NULL || !due__reply_digits(space + 1, strlen(space + 1), &n) ||
        n > INT64_MAX / 1000)
        return false;
    *number = (int64_t)n;
    *space = '\0';
    return true;
}

/* "HOST HELD PID STARTED SEEN", times in us. */
bool due__share_read_process(const redisReply *writer, const redisReply *text,
                             struct due_process_seen *seen, char host[256])
{
    int64_t held;

    *seen = (struct due_process_seen){ .host = host };
    host[0] = '\0';
    if (!due__reply_is_text(writer) || !due__reply_is_text(text) || text->len > 255 ||
        !due__reply_digits(writer->str, (size_t)writer->len, &seen->writer))
        return false;
    memcpy(host, text->str, (size_t)text->len);
    host[text->len] = '\0';
    if (!cut_number(host, &seen->seen_ns) || !cut_number(host, &seen->started_ns) ||
        !cut_number(host, &seen->pid))
        return false;
    if (cut_number(host, &held))
        seen->held = (uint64_t)held;
    seen->seen_ns *= 1000;
    seen->started_ns *= 1000;
    return true;
}

static int refused(struct due__redis *s, const redisReply *r)
{
    enum due__reply_class class = due__share_classify(s, r);

    return class != DUE__REPLY_FINE ? due__redis_error(s, class) : DUE_ECORRUPT;
}

int due__share_hash(struct due__redis *s, const char *name, redisReply **fields,
                    redisReply **values, int64_t until_ns)
{
    *fields = *values = NULL;
    due__link_command(s->link, 2);
    due__link_text(s->link, "HKEYS");
    due__share_key(s, name, "");
    int rc = due__share_talk(s, 1, fields, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(*fields))
        rc = refused(s, *fields);
    if (rc != 0 || (*fields)->elements == 0) {
        if (rc != 0)
            due__share_forget(fields, 1);
        return rc;
    }
    size_t n = (*fields)->elements;
    due__link_command(s->link, 2 + n);
    due__link_text(s->link, "HMGET");
    due__share_key(s, name, "");
    for (size_t i = 0; i < n; i++)
        due__link_bytes(s->link, (*fields)->element[i]->str, (size_t)(*fields)->element[i]->len);
    rc = due__share_talk(s, 1, values, until_ns);
    if (rc == 0 && !due__reply_is_fields(*values, n))
        rc = refused(s, *values);
    if (rc != 0) {
        due__share_forget(fields, 1);
        due__share_forget(values, 1);
    }
    return rc;
}

/* The one that was heard of last; those that are gone may be in the list for a day. */
static bool find_last(const redisReply *fields, const redisReply *values,
                      struct due_process_seen *last, char last_host[256])
{
    struct due_process_seen seen;
    char host[256];
    bool any = false;

    for (size_t i = 0; values != NULL && i < fields->elements; i++) {
        if (!due__share_read_process(fields->element[i], values->element[i], &seen, host) ||
            (any && seen.seen_ns < last->seen_ns))
            continue;
        *last = seen;
        memcpy(last_host, host, sizeof host);
        any = true;
    }
    return any;
}

void due__share_say_who(struct due__redis *s, int64_t until_ns)
{
    redisReply *fields = NULL;
    redisReply *values = NULL;
    struct due_process_seen last = { .writer = 0 };
    char host[256];
    int64_t soon_ns = due__mono_ns() + s->set.answer_ns;

    due__flight_end(s);
    int rc = due__share_hash(s, "p", &fields, &values, until_ns > soon_ns ? until_ns : soon_ns);
    if (rc == 0 && find_last(fields, values, &last, host))
        due__redis_say(s, "share it, or end them first: `duectl ps` lists them",
                       "the queue is shared by others, such as process %" PRId64 " on host %.64s",
                       last.pid, host);
    due__share_forget(&fields, 1);
    due__share_forget(&values, 1);
}
