/* owner_jobs.c - jobs of a queue in use, as its owner tells of them on its control socket.
 *
 * A list comes in pages, each with an answer of its own.  A page is read to its end before any of
 * it is shown: whoever reads what is shown may be slow, and the owner does not wait for that.
 * Times are on the owner's clock, which need not be the wall clock: they are shown as far from now
 * as they are there.
 */
#define _GNU_SOURCE
#include "inspect/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LISTED = 256,       /* bytes of a payload that a list shows of, */
    LISTED_JSON = 4096, /* or as JSON; more would move the job behind its equals */
    SHOWN = 4096,       /* of a job that is named */
    NAMED = 64          /* jobs that are asked for at once */
};

/* ---- A line ---------------------------------------------------------------------------------- */

/* What a line says: of a job, of the queue, or where the list goes on. */
struct line {
    char id[DUE_ID_TEXT];
    char topic[DUE_TOPIC_LENGTH + 1];
    char reason[DUE_REASON_BYTES];
    char cursor[17];
    char *data;
    size_t data_len;
    int cause;
    int result;
    int64_t at_ns, died_ns, priority, len;
    int64_t attempts, failures, now_ns, wall_ns; /* -1: it does not say */
    int64_t pid;
    char queue[DUE__CTL_NAME_MAX + 1];
};

static bool read_text(struct due__ctl_json *j, char *to, size_t room)
{
    char *text;
    size_t len;

    if (!due__ctl_json_bytes(j, &text, &len) || len >= room)
        return false;
    memcpy(to, text, len);
    to[len] = '\0';
    return true;
}

static bool read_cause(struct due__ctl_json *j, int *cause)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    char text[16];

    if (!read_text(j, text, sizeof text))
        return false;
    for (int i = 1; i < (int)(sizeof causes / sizeof causes[0]); i++) {
        if (strcmp(text, causes[i]) == 0)
            *cause = i;
    }
    return *cause != 0;
}

static bool read_result(struct due__ctl_json *j, int *result)
{
    char text[32];

    return read_text(j, text, sizeof text) && due__ctl_error_of(text, strlen(text), result);
}

static bool read_value(void *ctx, struct due__ctl_json *j, const char *name, size_t len)
{
    struct line *l = ctx;
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        { "at_ns", &l->at_ns },   { "died_ns", &l->died_ns },   { "priority", &l->priority },
        { "len", &l->len },       { "attempts", &l->attempts }, { "failures", &l->failures },
        { "now_ns", &l->now_ns }, { "wall_ns", &l->wall_ns },   { "pid", &l->pid }
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (due__ctl_is_word(numbers[i].name, name, len))
            return due__ctl_json_number(j, DUE_FOREVER, numbers[i].number);
    }
    if (due__ctl_is_word("id", name, len))
        return read_text(j, l->id, sizeof l->id);
    if (due__ctl_is_word("topic", name, len))
        return read_text(j, l->topic, sizeof l->topic);
    if (due__ctl_is_word("reason", name, len))
        return read_text(j, l->reason, sizeof l->reason);
    if (due__ctl_is_word("queue", name, len))
        return read_text(j, l->queue, sizeof l->queue);
    if (due__ctl_is_word("cursor", name, len))
        return read_text(j, l->cursor, sizeof l->cursor);
    if (due__ctl_is_word("cause", name, len))
        return read_cause(j, &l->cause);
    if (due__ctl_is_word("result", name, len))
        return read_result(j, &l->result);
    if (due__ctl_is_word("data", name, len))
        return due__ctl_json_bytes(j, &l->data, &l->data_len);
    return ctl_owner_pass(j);
}

static bool read_line(struct line *l, char *text, size_t len)
{
    *l = (struct line){ .now_ns = -1, .wall_ns = -1, .attempts = -1, .failures = -1 };
    return ctl_owner_line(text, len, read_value, l) && l->data_len <= (size_t)l->len;
}

/* ---- An answer ------------------------------------------------------------------------------- */

struct telling {
    const struct ctl_look *look;
    ctl_jobs_visit *visit;
    void *ctx;
    struct due__ctl_buffer lines; /* of the answer at hand */
    int64_t to_wall_ns;           /* from the owner's clock to the wall clock */
    uint64_t cursor;              /* of the next page; 0: there is none */
    uint64_t shown;
    bool stopped; /* by the visit */
};

static bool keep_line(void *ctx, char *line, size_t len)
{
    struct telling *t = ctx;

    due__ctl_buffer_add(&t->lines, line, len);
    due__ctl_buffer_add(&t->lines, "\n", 1);
    return !t->lines.failed;
}

static int64_t on_wall(const struct telling *t, int64_t ns)
{
    int64_t wall_ns;

    if (ns == DUE_FOREVER || __builtin_add_overflow(ns, t->to_wall_ns, &wall_ns))
        return DUE_FOREVER;
    return wall_ns < 0 ? 0 : wall_ns;
}

static void show(struct telling *t, const struct line *l, due_id id)
{
    struct ctl_job_mark seen = { .lease = CTL_NOT_LEASED,
                                 .whole = (size_t)l->len,
                                 .tries_unsaid = l->attempts < 0 || l->failures < 0 };
    due_record r = { .id = id,
                     .topic = l->topic,
                     .data = l->data_len > 0 ? l->data : NULL,
                     .len = l->data_len,
                     .priority = (int)l->priority,
                     .attempts = seen.tries_unsaid ? 0 : (uint32_t)l->attempts,
                     .failures = seen.tries_unsaid ? 0 : (uint32_t)l->failures,
                     .cause = (enum due_cause)l->cause,
                     .died_ns = on_wall(t, l->died_ns),
                     .reason = l->reason,
                     .mark = &seen,
                     .mark_len = sizeof seen };

    r.deadline_ns = on_wall(t, l->at_ns);
    r.until_ns = r.deadline_ns;
    if (t->look->key != NULL) { /* it was asked for by that */
        r.key = t->look->key;
        r.key_len = strlen(t->look->key);
    }
    t->shown++;
    t->stopped = !t->visit(t->ctx, id, l->result, l->result == 0 ? &r : NULL);
}

static bool tell_line(struct telling *t, char *text, size_t len)
{
    struct line l;
    due_id id;

    if (!read_line(&l, text, len))
        return false;
    if (l.now_ns >= 0 && l.wall_ns >= 0)
        t->to_wall_ns = l.wall_ns - l.now_ns;
    if (l.cursor[0] != '\0')
        t->cursor = strtoull(l.cursor, NULL, 16);
    if (l.id[0] == '\0')
        return true;
    if (due_id_parse(l.id, &id) != 0)
        return false;
    show(t, &l, id);
    return true;
}

/* All lines of the answer.  False: one makes no sense. */
static bool tell_lines(struct telling *t)
{
    size_t at = 0;

    t->cursor = 0;
    while (at < t->lines.len && !t->stopped) {
        char *end = memchr(t->lines.bytes + at, '\n', t->lines.len - at);
        size_t len = (size_t)(end - t->lines.bytes) - at;

        if (!tell_line(t, t->lines.bytes + at, len))
            return false;
        at += len + 1;
    }
    return true;
}

/* 0, or an exit status: said why. */
static int ask(struct telling *t, const struct due__ctl_request *request)
{
    t->lines.len = 0;
    int rc = ctl_owner_ask(t->look->control, request, keep_line, t);

    if (rc == 0 && !tell_lines(t))
        rc = ctl_owner_senseless(t->look->control);
    if (rc == 0 || (rc == DUE_ENOENT && request->key_len > 0)) /* nobody has the key */
        return CTL_FINE;
    if (rc != DUE_ESTORE) /* that was said */
        fprintf(stderr, "duectl: %s\n", due_error_text(rc));
    return due__ctl_is_of_job(rc) ? CTL_FAULTS : CTL_BROKEN;
}

/* ---- What is asked for ----------------------------------------------------------------------- */

static int all_pages(struct telling *t, enum due__ctl_verb verb)
{
    struct due__ctl_request request;
    uint64_t limit = t->look->limit;
    int status;

    ctl_owner_begin(&request, t->look, verb);
    request.data = t->look->json ? LISTED_JSON : LISTED;
    if (limit > 0 && limit < DUE__CTL_IDS && t->look->topic == NULL)
        request.max = (int64_t)limit;
    do {
        status = ask(t, &request);
        request.cursor = t->cursor;
    } while (status == 0 && t->cursor != 0 && !t->stopped);
    return status;
}

static int by_key(struct telling *t)
{
    struct due__ctl_request request;
    size_t len = strlen(t->look->key);

    ctl_owner_begin(&request, t->look, DUE__CTL_SHOW);
    memcpy(request.key, t->look->key, len);
    request.key_len = len;
    request.data = t->look->json ? LISTED_JSON : LISTED;
    return ask(t, &request);
}

int ctl_owner_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx)
{
    struct telling t = { .look = look, .visit = visit, .ctx = ctx };
    bool waiting = look->state == NULL || strcmp(look->state, "waiting") == 0;
    bool dead = look->state == NULL || strcmp(look->state, "dead") == 0;
    int status = CTL_FINE;

    if (!waiting && !dead) {
        (void)ctl_look_wrong(look, "an owner does not tell of jobs that somebody has", look->state);
        return CTL_USAGE;
    }
    if (look->key != NULL)
        status = by_key(&t);
    if (look->key == NULL && waiting)
        status = all_pages(&t, DUE__CTL_LIST);
    if (look->key == NULL && dead && status == 0 && !t.stopped)
        status = all_pages(&t, DUE__CTL_DEAD);
    due__ctl_buffer_free(&t.lines);
    return status;
}

int ctl_owner_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n,
                         ctl_jobs_visit *visit, void *ctx)
{
    struct telling t = { .look = look, .visit = visit, .ctx = ctx };
    bool whole = look->data || look->json;
    size_t most = whole ? 1 : NAMED;
    struct due__ctl_request request;
    int status = CTL_FINE;

    ctl_owner_begin(&request, look, DUE__CTL_SHOW);
    request.data = whole ? DUE__CTL_DATA_MAX : SHOWN;
    for (size_t at = 0; at < n && status == 0 && !t.stopped; at += request.n) {
        request.n = n - at < most ? n - at : most;
        memcpy(request.ids, ids + at, request.n * sizeof *ids);
        status = ask(&t, &request);
    }
    due__ctl_buffer_free(&t.lines);
    return status;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

struct queues {
    ctl_process_visit *visit;
    void *ctx;
    struct ctl_process process;
    bool stopped; /* by the visit */
};

static bool tell_queue(void *ctx, char *text, size_t len)
{
    struct queues *q = ctx;
    struct line l;

    if (!read_line(&l, text, len))
        return false;
    q->process.queue = l.queue;
    q->process.pid = l.pid;
    q->stopped = q->stopped || !q->visit(q->ctx, &q->process);
    return true;
}

int ctl_owner_queues(const struct ctl_look *look, ctl_process_visit *visit, void *ctx)
{
    struct queues q = { .visit = visit, .ctx = ctx };
    struct due__ctl_request request;

    due__ctl_request_begin(&request, DUE__CTL_QUEUES);
    (void)gethostname(q.process.host, sizeof q.process.host - 1);
    int rc = ctl_owner_ask(look->control, &request, tell_queue, &q);
    if (rc != 0 && rc != DUE_ESTORE) /* that was said */
        fprintf(stderr, "duectl: %s\n", due_error_text(rc));
    return rc == 0 ? CTL_FINE : CTL_BROKEN;
}
