/* foreign.c - another library's queues, list by list and page by page, as lines of jobs.
 *
 * A job's id is made of the name that it has there, so that it is the same whenever it is read: an
 * import that is done again knows what is there already.  Jobs that share a time are a nanosecond
 * apart, in the order in which they would have come there; where no time is known it is that of
 * the first import.  The queues ought to be at rest; that they were is told by the lengths of their
 * lists, before and after.
 */
#define _GNU_SOURCE
#include "foreign/kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE       64
#define SHOW_NS    DUE_MS(200)
#define QUIET_NS   DUE_S(1)
#define NUMBER_MAX ((UINT64_C(1) << 56) - 1)

struct ctl_foreign {
    struct ctl_source source; /* first: it is what it is called with */
    const struct ctl_foreign_kind *kind;
    const struct ctl_from *from;
    struct ctl_server server;
    redisReply *names;           /* of all queues; NULL: the options have them */
    struct ctl_text queue;       /* the present one */
    size_t keys;                 /* and which of the kind's forms of keys */
    struct due__ctl_buffer key;  /* being made */
    struct due__ctl_buffer line; /* likewise */
    struct ctl_lines *lines;     /* where to */
    int64_t now_ns;              /* for what has no time */
    int64_t last_ns;             /* of the job before, in the same list, */
    int64_t same;                /* and how many before it had it */
    uint64_t total;              /* jobs that were counted first */
    uint64_t mixed;              /* of the lengths of all lists */
    uint64_t given;              /* lines */
    uint64_t left_out;           /* jobs that could not be carried over: each was said */
    uint64_t losses[CTL_FOREIGN_LOSSES];
    struct ctl_screen screen;
    int64_t began_ns, shown_ns; /* on the clock of due__mono_ns() */
};

/* ---- Questions ------------------------------------------------------------------------------- */

void ctl_foreign_key(struct ctl_foreign *f, const char *name, const redisReply *id)
{
    const struct ctl_foreign_keys *k = &f->kind->keys[f->keys];
    const char *prefix = f->from->prefix != NULL ? f->from->prefix : f->kind->prefix;

    f->key.len = 0;
    due__ctl_buffer_add(&f->key, k->before, strlen(k->before));
    due__ctl_buffer_add(&f->key, prefix, strlen(prefix));
    due__ctl_buffer_add(&f->key, k->between, strlen(k->between));
    due__ctl_buffer_add(&f->key, f->queue.at, f->queue.len);
    due__ctl_buffer_add(&f->key, k->behind, strlen(k->behind));
    due__ctl_buffer_add(&f->key, name, strlen(name));
    if (id != NULL)
        due__ctl_buffer_add(&f->key, id->str, (size_t)id->len);
    due__link_bytes(f->server.link, f->key.bytes, f->key.len);
}

void ctl_foreign_ask(struct ctl_foreign *f, const char *command, const char *name,
                     const redisReply *id, const struct ctl_text *words, size_t n)
{
    due__link_command(f->server.link, 2 + n);
    due__link_text(f->server.link, command);
    ctl_foreign_key(f, name, id);
    for (size_t i = 0; i < n; i++)
        due__link_bytes(f->server.link, words[i].at, words[i].len);
}

int64_t ctl_foreign_time(double units, int64_t unit_ns)
{
    if (!(units >= 0) || units >= (double)(INT64_MAX / unit_ns))
        return CTL_UNDATED;
    int64_t whole = (int64_t)units;
    return whole * unit_ns + (int64_t)((units - (double)whole) * (double)unit_ns);
}

int64_t ctl_foreign_number(const redisReply *text, int64_t most)
{
    uint64_t number;

    if (!due__reply_is_text(text) || text->len == 0 ||
        !due__reply_digits(text->str, (size_t)text->len, &number))
        return -1;
    return number < (uint64_t)most ? (int64_t)number : most;
}

/* ---- Lengths --------------------------------------------------------------------------------- */

static size_t queue_count(const struct ctl_foreign *f)
{
    return f->names != NULL ? f->names->elements : f->from->queue_count;
}

static void choose_queue(struct ctl_foreign *f, size_t i)
{
    if (f->names != NULL)
        f->queue =
            (struct ctl_text){ f->names->element[i]->str, (size_t)f->names->element[i]->len };
    else
        f->queue = (struct ctl_text){ f->from->queues[i], strlen(f->from->queues[i]) };
}

/* 0, or an exit status: said why there is no answer. */
static int ask_length(struct ctl_foreign *f, const char *command, const char *name,
                      uint64_t *length)
{
    redisReply *answer = NULL;

    ctl_foreign_ask(f, command, name, NULL, NULL, 0);
    if (!ctl_server_go(&f->server, 1, &answer))
        return CTL_BROKEN;
    int status = ctl_answer_is(answer, REDIS_REPLY_INTEGER, name) && answer->integer >= 0
                     ? 0
                     : ctl_server_status(&f->server);
    *length = status == 0 ? (uint64_t)answer->integer : 0;
    freeReplyObject(answer);
    return status;
}

/* Of all lists: 0, or an exit status. */
static int count_all(struct ctl_foreign *f, uint64_t *total, uint64_t *mixed)
{
    *total = *mixed = 0;
    for (size_t i = 0; i < queue_count(f); i++) {
        choose_queue(f, i);
        for (f->keys = 0; f->keys < f->kind->keys_count; f->keys++) {
            for (size_t l = 0; l < f->kind->lists_count; l++) {
                const struct ctl_foreign_list *list = &f->kind->lists[l];
                uint64_t length;
                int status = ask_length(f, list->is_zset ? "ZCARD" : "LLEN", list->name, &length);

                if (status != 0)
                    return status;
                *total += length;
                *mixed = *mixed * 1000003 + length;
            }
        }
    }
    return 0;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static due_id id_of(const struct ctl_foreign *f, const struct ctl_foreign_item *item, int priority)
{
    struct due__ctl_buffer name = { 0 };
    due_id id = { .byte = { [6] = 1 } };

    due__ctl_buffer_add(&name, f->kind->name, strlen(f->kind->name) + 1);
    due__ctl_buffer_add(&name, f->queue.at, f->queue.len);
    due__ctl_buffer_add(&name, "", 1);
    due__ctl_buffer_add(&name, item->id, item->id_len);
    uint64_t number = ctl_hash(name.bytes, name.len) % NUMBER_MAX + 1;
    due__ctl_buffer_free(&name);
    id.byte[0] = (unsigned char)(255 - priority);
    for (int i = 13; i >= 7; i--, number >>= 8)
        id.byte[i] = (unsigned char)number;
    return id;
}

/* Its times, and its place among those that share them.  0, or an exit status. */
static int date_job(struct ctl_foreign *f, const struct ctl_foreign_item *item,
                    struct ctl_foreign_job *job)
{
    due_record *r = &job->record;
    int64_t known_ns;
    bool undated = job->when_ns == CTL_UNDATED;
    int64_t when_ns = undated ? f->now_ns : job->when_ns;

    f->same = when_ns == f->last_ns ? f->same + 1 : 0;
    f->last_ns = when_ns;
    when_ns += when_ns < DUE_FOREVER - f->same ? f->same : 0;
    r->id = id_of(f, item, r->priority);
    if (undated) {
        int found = f->lines->find(f->lines->ctx, r->id, &known_ns);

        if (found < 0)
            return -found;
        when_ns = found > 0 ? known_ns : when_ns;
    }
    r->deadline_ns = r->until_ns = when_ns;
    if (item->state == CTL_FOREIGN_DEAD)
        r->died_ns = when_ns;
    return 0;
}

/* What an import, or a store, would not take. */
static const char *too_much(const struct ctl_foreign *f, const struct ctl_foreign_job *job)
{
    const due_record *r = &job->record;

    if (f->queue.len > DUE_TOPIC_LENGTH || memchr(f->queue.at, '\0', f->queue.len) != NULL)
        return "the name of its queue can be no topic";
    if (r->headers_len > DUE_HEADERS_MAX)
        return "its name is longer than headers may be: 256 bytes";
    return r->len > DUE_PAYLOAD_MAX ? "its payload is too large" : NULL;
}

static void name_job(struct ctl_foreign *f, const struct ctl_foreign_item *item)
{
    char id[64];
    char queue[64];

    snprintf(f->source.at, sizeof f->source.at, "%s %s of queue %s", f->kind->job,
             ctl_text_show(id, sizeof id, item->id, item->id_len),
             ctl_text_show(queue, sizeof queue, f->queue.at, f->queue.len));
}

static void show_progress(struct ctl_foreign *f)
{
    char text[80];
    int64_t now = due__mono_ns();

    if (now - f->began_ns < QUIET_NS || now - f->shown_ns < SHOW_NS)
        return;
    f->shown_ns = now;
    snprintf(text, sizeof text, "duectl: %" PRIu64 " of %" PRIu64 " read", f->given + f->left_out,
             f->total);
    ctl_screen_progress(&f->screen, text);
}

/* 0, or an exit status. */
static int give_job(struct ctl_foreign *f, const struct ctl_foreign_item *item)
{
    struct ctl_foreign_job job = { .when_ns = CTL_UNDATED };
    char topic[DUE_TOPIC_LENGTH + 1];
    const char *why = f->kind->read(item, &job);

    if (job.is_none)
        return 0;
    name_job(f, item);
    why = why != NULL ? why : too_much(f, &job);
    if (why != NULL) {
        ctl_say(&f->screen, "duectl: %s: %s: it is left out\n", f->source.at, why);
        f->left_out++;
        return 0;
    }
    memcpy(topic, f->queue.at, f->queue.len);
    topic[f->queue.len] = '\0';
    job.record.topic = topic;
    job.record.reason = job.reason;
    job.record.retry = job.retry.kind != DUE_RETRY_INHERIT ? &job.retry : NULL;
    int status = date_job(f, item, &job);
    if (status != 0)
        return status;
    for (size_t i = 0; i < CTL_FOREIGN_LOSSES; i++)
        f->losses[i] += job.lost >> i & 1;
    f->line.len = 0;
    ctl_dump_job(&f->line, &job.record);
    if (f->line.failed) {
        ctl_say(&f->screen, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    f->given++;
    show_progress(f);
    return f->lines->take(f->lines->ctx, f->line.bytes, f->line.len - 1);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Ids, of a zset with their scores; of a list from its tail on, where the oldest are. */
static redisReply *page_of(struct ctl_foreign *f, const struct ctl_foreign_list *list, int64_t from)
{
    redisReply *ids = NULL;
    int64_t first = list->is_zset ? from : -(from + PAGE);

    due__link_command(f->server.link, list->is_zset ? 5 : 4);
    due__link_text(f->server.link, list->is_zset ? "ZRANGE" : "LRANGE");
    ctl_foreign_key(f, list->name, NULL);
    due__link_number(f->server.link, first);
    due__link_number(f->server.link, first + PAGE - 1);
    if (list->is_zset)
        due__link_text(f->server.link, "WITHSCORES");
    if (!ctl_server_go(&f->server, 1, &ids))
        return NULL;
    size_t most = list->is_zset ? 2 * PAGE : PAGE;
    if (ctl_answer_is(ids, REDIS_REPLY_ARRAY, list->name) && ids->elements <= most &&
        (!list->is_zset || ids->elements % 2 == 0) && due__reply_is_texts(ids))
        return ids;
    freeReplyObject(ids);
    return NULL;
}

static double score_of(const redisReply *ids, const struct ctl_foreign_list *list, size_t i)
{
    return list->is_zset ? strtod(ids->element[2 * i + 1]->str, NULL) : NAN;
}

/* 0, or an exit status.  All are asked for at once, and read one by one: they may be large. */
static int give_page(struct ctl_foreign *f, const struct ctl_foreign_list *list,
                     const redisReply *ids, size_t n)
{
    const redisReply *id[PAGE];
    int status = 0;

    for (size_t i = 0; i < n; i++) {
        id[i] = list->is_zset ? ids->element[2 * i] : ids->element[n - 1 - i];
        f->kind->ask(f, id[i]);
    }
    for (size_t i = 0; i < n && status == 0; i++) {
        redisReply *answers[CTL_FOREIGN_ANSWERS];

        if (!ctl_server_go(&f->server, f->kind->answers, answers))
            return CTL_BROKEN;
        struct ctl_foreign_item item = { .state = list->state,
                                         .id = id[i]->str,
                                         .id_len = (size_t)id[i]->len,
                                         .score = score_of(ids, list, i),
                                         .answer = answers };
        status = give_job(f, &item);
        ctl_answers_free(f->kind->answers, answers);
    }
    return status;
}

static int give_list(struct ctl_foreign *f, const struct ctl_foreign_list *list)
{
    size_t n = PAGE;
    int status = 0;

    f->last_ns = CTL_UNDATED;
    for (int64_t from = 0; n == PAGE && status == 0; from += PAGE) {
        redisReply *ids = page_of(f, list, from);

        if (ids == NULL)
            return ctl_server_status(&f->server);
        n = list->is_zset ? ids->elements / 2 : ids->elements;
        status = n > 0 ? give_page(f, list, ids, n) : 0;
        freeReplyObject(ids);
    }
    return status;
}

/* As ctl_source has it. */
static int give_all(struct ctl_source *source, struct ctl_lines *lines)
{
    struct ctl_foreign *f = (struct ctl_foreign *)(void *)source;
    int status = 0;

    f->lines = lines;
    for (size_t i = 0; i < queue_count(f); i++) {
        choose_queue(f, i);
        for (f->keys = 0; f->keys < f->kind->keys_count; f->keys++) {
            for (size_t l = 0; l < f->kind->lists_count && status == 0; l++)
                status = give_list(f, &f->kind->lists[l]);
        }
    }
    ctl_screen_progress(&f->screen, NULL);
    return status;
}

/* ---- Before and after ------------------------------------------------------------------------ */

static int find_queues(struct ctl_foreign *f)
{
    char key[DUE_TOPIC_LENGTH + 64];

    if (f->from->queue_count > 0)
        return 0;
    snprintf(key, sizeof key, "%s%s", f->from->prefix != NULL ? f->from->prefix : f->kind->prefix,
             f->kind->queues);
    f->names = CTL_ASK(&f->server, "SMEMBERS", key);
    if (ctl_answer_is(f->names, REDIS_REPLY_ARRAY, key) && due__reply_is_texts(f->names))
        return 0;
    return ctl_server_status(&f->server);
}

/* So much of a kind stays behind: jobs, or something of so many jobs. */
static void say_lost(const char *what, uint64_t count, bool of_jobs)
{
    fprintf(stderr,
            of_jobs ? "duectl: not carried over: %s: of %" PRIu64 " jobs\n"
                    : "duectl: not carried over: %s: %" PRIu64 "\n",
            what, count);
    ctl_object_begin();
    ctl_object_text("left", what);
    ctl_object_number(of_jobs ? "of_jobs" : "count", count);
    ctl_object_end();
}

/* What stays behind.  0, or 1: somebody has to see to it; or another exit status. */
static int say_rest(struct ctl_foreign *f)
{
    int worst = f->left_out > 0 ? CTL_FAULTS : 0;

    for (size_t r = 0; r < f->kind->rests_count; r++) {
        const struct ctl_foreign_rest *rest = &f->kind->rests[r];
        uint64_t sum = 0;

        for (size_t i = 0; i < queue_count(f); i++) {
            choose_queue(f, i);
            for (f->keys = 0; f->keys < f->kind->keys_count; f->keys++) {
                uint64_t length;
                int status = ask_length(f, rest->command, rest->name, &length);

                if (status != 0)
                    return status;
                sum += length;
            }
        }
        if (sum > 0)
            say_lost(rest->what, sum, false);
        worst = sum > 0 && rest->matters ? CTL_FAULTS : worst;
    }
    for (size_t i = 0; i < CTL_FOREIGN_LOSSES; i++) {
        if (f->losses[i] > 0)
            say_lost(f->kind->losses[i], f->losses[i], true);
    }
    return worst;
}

static int carry_over(struct ctl_foreign *f, const struct ctl_look *look)
{
    uint64_t total;
    uint64_t mixed;
    int status = find_queues(f);

    if (status == 0)
        status = count_all(f, &f->total, &f->mixed);
    if (status != 0)
        return status;
    if (f->total == 0) {
        fprintf(stderr, "duectl: %s: there are no jobs of %s\n", f->server.where, f->kind->name);
        return say_rest(f) == CTL_BROKEN ? CTL_BROKEN : CTL_FAULTS;
    }
    status = ctl_import_lines(look, &f->source);
    if (status != 0)
        return status;
    status = count_all(f, &total, &mixed);
    if (status == 0 && mixed != f->mixed) {
        fprintf(stderr,
                "duectl: %s: the queues have changed meanwhile: stop their workers, and "
                "import --again\n",
                f->server.where);
        status = CTL_FAULTS;
    }
    int rest = status == CTL_BROKEN ? CTL_BROKEN : say_rest(f);
    return status > rest ? status : rest;
}

static int64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

int ctl_foreign_import(const struct ctl_look *look)
{
    static const struct ctl_foreign_kind *const kinds[] = { &ctl_foreign_delayqueue,
                                                            &ctl_foreign_asynq,
                                                            &ctl_foreign_bullmq };
    struct ctl_foreign f = { .source = { .read = give_all }, .from = &look->from };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, look->from.kind) == 0)
            f.kind = kinds[i];
    }
    ctl_screen_open(&f.screen, true, false);
    f.screen.wants_progress = isatty(STDERR_FILENO); /* nothing is read from a terminal */
    f.now_ns = wall_ns();
    f.began_ns = due__mono_ns();
    int status = ctl_server_open(&f.server, ctl_url_of(look->from.url));
    if (status == 0) {
        status = carry_over(&f, look);
        ctl_server_close(&f.server);
    }
    freeReplyObject(f.names);
    due__ctl_buffer_free(&f.key);
    due__ctl_buffer_free(&f.line);
    return status;
}
