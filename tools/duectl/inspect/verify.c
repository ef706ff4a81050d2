/* verify.c - whether a stored queue is whole.
 *
 * Everything is read: the members of every topic with their records and entries, then the ids of
 * all records and of all entries.  What does not fit is only a suspicion, since a queue in use
 * changes meanwhile; so each suspect is looked at once more, alone, in one transaction, and that
 * look decides.
 */
#include "inspect/lists.h"
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 20 }; /* findings that are told one by one */

struct verify {
    struct ctl_server server;
    struct ctl_keys keys;
    struct ctl_ids members, records, entries, suspects;
    struct ctl_topics topics; /* those that are entered, */
    size_t entered;           /* then the others */
    bool *set;                /* of each of those: it is paused, or limited */
    uint64_t unused;          /* topics without a job, of which nothing is set */
    uint64_t strangers;       /* members that are no ids */
    size_t dead;              /* of the members */
    struct ctl_unique unique;
    uint64_t found[CTL_WRONGS];
    uint64_t wrong;
    uint64_t repaired;
    struct ctl_repair *repair; /* NULL: only look */
    bool shared;               /* jobs may be out */
    size_t out;                /* of the members */
    uint64_t expected;         /* jobs */
};

static void lists_free(struct verify *v)
{
    for (size_t i = 0; i < v->topics.n; i++)
        free((void *)(uintptr_t)v->topics.text[i].at);
    free(v->topics.text);
    free(v->set);
    free(v->members.id);
    free(v->records.id);
    free(v->entries.id);
    free(v->suspects.id);
    ctl_unique_free(&v->unique);
}

/* ---- Reading everything ---------------------------------------------------------------------- */

/* An id as the server has it. */
static bool id_read(due_id *id, const redisReply *bytes)
{
    memset(id, 0, sizeof *id);
    if (!due__reply_is_text(bytes) || bytes->len != DUE_STORE_ID_BYTES)
        return false;
    memcpy(id->byte, bytes->str, DUE_STORE_ID_BYTES);
    return true;
}

static bool add_member(void *ctx, const struct ctl_found *found)
{
    struct verify *v = ctx;
    struct due__record_room room;
    due_record record;
    due_id id;

    if (!id_read(&id, found->id)) {
        v->strangers++;
        return true;
    }
    ctl_progress("verify: jobs", v->members.n, v->expected);
    if (!ctl_ids_add(&v->members, &id))
        return false;
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    if (rc == 0 && !ctl_unique_met(&v->unique, &record))
        return ctl_no_memory();
    if (rc == 0 && ctl_stands_in(&record, found->topic) && ctl_score_of(&record) == found->score)
        return true;
    return ctl_ids_add(&v->suspects, &id);
}

/* It is out: the score is the end of a lease. */
static bool add_claimed(void *ctx, const struct ctl_found *found)
{
    struct verify *v = ctx;
    struct ctl_found own = *found;
    struct due__record_room room;
    due_record record;

    v->out++;
    if (ctl_record_read(&record, &room, found->id, found->record, found->entry) == 0)
        own.score = ctl_score_of(&record);
    return add_member(v, &own);
}

/* The field that keeps a hash from being a list. */
static bool is_table(const redisReply *field)
{
    return due__reply_is_text(field) && strcmp(field->str, DUE__REDIS_TABLE) == 0;
}

static bool add_fields(struct verify *v, const redisReply *page, struct ctl_ids *to)
{
    due_id id;

    for (size_t i = 0; i + 1 < page->elements; i += 2) {
        if (is_table(page->element[i]))
            continue;
        if (!id_read(&id, page->element[i]))
            v->strangers++;
        else if (!ctl_ids_add(to, &id))
            return false;
    }
    return true;
}

static bool add_records(void *ctx, const redisReply *page)
{
    struct verify *v = ctx;

    ctl_progress("verify: records", v->records.n, v->expected);
    return add_fields(v, page, &v->records);
}

static bool add_entries(void *ctx, const redisReply *page)
{
    struct verify *v = ctx;

    ctl_progress("verify: times and counts", v->entries.n, 0);
    return add_fields(v, page, &v->entries);
}

/* Keys of topics; those that are not entered are not found by a program that opens the queue. */
static bool add_keys(void *ctx, const redisReply *page)
{
    struct verify *v = ctx;
    size_t before = strlen(v->keys.base) + 2;

    for (size_t i = 0; i < page->elements; i++) {
        const redisReply *key = page->element[i];
        struct ctl_text name;

        if (!due__reply_is_text(key) || (size_t)key->len < before)
            continue;
        name = (struct ctl_text){ key->str + before, (size_t)key->len - before };
        if (name.len <= DUE_TOPIC_LENGTH && !ctl_topics_have(&v->topics, name) &&
            !ctl_topics_add(&v->topics, name))
            return false;
    }
    return true;
}

static bool read_topics(struct verify *v)
{
    redisReply *answer = CTL_ASK(&v->server, "HGETALL", v->keys.topics);
    char match[160];
    bool fine = ctl_answer_is(answer, REDIS_REPLY_ARRAY, "topics");

    v->set = fine ? calloc(answer->elements / 2 + 1, sizeof *v->set) : NULL;
    if (fine && v->set == NULL)
        fine = ctl_no_memory();
    for (size_t i = 0; fine && i + 1 < answer->elements; i += 2) {
        const redisReply *name = answer->element[i];
        const redisReply *value = answer->element[i + 1];

        v->set[i / 2] = !due__reply_is_text(value) || strcmp(value->str, "0") != 0;
        fine = due__reply_is_text(name) &&
               ctl_topics_add(&v->topics, (struct ctl_text){ name->str, (size_t)name->len });
    }
    freeReplyObject(answer);
    v->entered = v->topics.n;
    snprintf(match, sizeof match, "%st:*", v->keys.base);
    return fine && ctl_scan(&v->server, "SCAN", NULL, match, add_keys, v);
}

static bool read_all(struct verify *v)
{
    if (!read_topics(v))
        return false;
    for (size_t i = 0; i < v->topics.n; i++) {
        size_t before = v->members.n;

        if (!ctl_walk(&v->server, &v->keys, v->topics.text[i], add_member, v) ||
            (v->shared &&
             (!ctl_walk_claimed(&v->server, &v->keys, v->topics.text[i], add_claimed, v) ||
              !ctl_walk_kept_back(&v->server, &v->keys, v->topics.text[i], add_member, v))))
            return false;
        v->unused += i < v->entered && v->members.n == before && !v->set[i];
    }
    v->dead = v->members.n;
    if (!ctl_walk(&v->server, &v->keys, CTL_DEAD, add_member, v))
        return false;
    v->dead = v->members.n - v->dead;
    return ctl_scan(&v->server, "HSCAN", v->keys.jobs, NULL, add_records, v) &&
           ctl_scan(&v->server, "HSCAN", v->keys.again, NULL, add_entries, v);
}

/* What does not fit together. */
static bool suspect_all(struct verify *v)
{
    bool fine = true;

    ctl_ids_sort(&v->members);
    ctl_ids_unique(&v->records);
    ctl_ids_unique(&v->entries);
    for (size_t i = 1; fine && i < v->members.n; i++) {
        if (due_id_equal(v->members.id[i], v->members.id[i - 1]))
            fine = ctl_ids_add(&v->suspects, &v->members.id[i]);
    }
    for (size_t i = 0; fine && i < v->records.n; i++) {
        if (!ctl_ids_have(&v->members, &v->records.id[i]))
            fine = ctl_ids_add(&v->suspects, &v->records.id[i]);
    }
    for (size_t i = 0; fine && i < v->entries.n; i++) {
        if (!ctl_ids_have(&v->records, &v->entries.id[i]))
            fine = ctl_ids_add(&v->suspects, &v->entries.id[i]);
    }
    ctl_ids_unique(&v->suspects);
    return fine;
}

/* ---- One look at one job --------------------------------------------------------------------- */

/* Of a topic, and behind the last one the dead. */
static struct ctl_text text_of(const struct verify *v, size_t i)
{
    return i < v->topics.n ? v->topics.text[i] : CTL_DEAD;
}

static void ask_member(struct verify *v, const char *command, const char *key, const due_id *id)
{
    due__link_command(v->server.link, 3);
    due__link_text(v->server.link, command);
    due__link_text(v->server.link, key);
    due__link_bytes(v->server.link, id->byte, DUE_STORE_ID_BYTES);
}

static void ask_score(struct verify *v, char of, struct ctl_text topic, const due_id *id)
{
    due__link_command(v->server.link, 3);
    due__link_text(v->server.link, "ZSCORE");
    ctl_key_of_topic(&v->server, &v->keys, of, topic);
    due__link_bytes(v->server.link, id->byte, DUE_STORE_ID_BYTES);
}

static void ask_about(struct verify *v, const due_id *id)
{
    struct due__link *l = v->server.link;

    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    ask_member(v, "HGET", v->keys.jobs, id);
    ask_member(v, "HGET", v->keys.again, id);
    for (size_t i = 0; i <= v->topics.n; i++) {
        due__link_command(l, 3);
        due__link_text(l, "ZSCORE");
        ctl_topic_key(&v->server, &v->keys, text_of(v, i));
        due__link_bytes(l, id->byte, DUE_STORE_ID_BYTES);
    }
    for (size_t i = 0; v->shared && i < v->topics.n; i++)
        ask_score(v, 'l', v->topics.text[i], id);
    for (size_t i = 0; v->shared && i < v->topics.n; i++)
        ask_score(v, 'g', v->topics.text[i], id);
    due__link_words(l, 1, (const char *const[]){ "EXEC" });
}

/* What is wrong with a job whose record can be read: only where it stands. */
static enum ctl_wrong judge_place(const struct ctl_finding *f, const due_record *record,
                                  int64_t score)
{
    if (f->in_count == 0)
        return CTL_NOWHERE;
    if (f->in_count > 1)
        return CTL_TWICE;
    bool timely = f->out || f->score == score;
    return ctl_stands_in(record, f->in[0]) && timely ? CTL_FINE_JOB : CTL_SHIFTED;
}

static enum ctl_wrong judge(struct ctl_finding *f, const redisReply *entry, int64_t score)
{
    redisReply id = { .type = REDIS_REPLY_STRING, .len = DUE_STORE_ID_BYTES };
    due_record record;
    int rc;

    id.str = (char *)f->id.byte;
    rc = ctl_record_read(&record, &f->room, &id, f->record, entry);
    if (rc == DUE_EVERSION)
        return CTL_NEWER;
    if (f->in_count == 0 && rc == DUE_ENOENT)
        return due__reply_is_text(entry) ? CTL_LEFTOVER : CTL_FINE_JOB;
    if (rc == DUE_ENOENT)
        return CTL_NO_RECORD;
    if (rc != 0)
        return CTL_DAMAGED;
    f->score = ctl_score_of(&record);
    f->topic =
        record.cause != 0 ? CTL_DEAD : (struct ctl_text){ f->room.topic, strlen(f->room.topic) };
    return judge_place(f, &record, score);
}

static void tell(struct verify *v, const struct ctl_finding *f)
{
    static const char *const texts[CTL_WRONGS] = {
        "",
        "a record that stands in no topic, nor among the dead",
        "stands in a topic without a record",
        "a damaged record, or another job's",
        "written by a later version: not touched",
        "stands in more than one topic, or is dead and not",
        "stands in another topic than its own, or at another time",
        "times and counts without a job",
    };
    char id[DUE_ID_TEXT];

    v->found[f->wrong]++;
    if (++v->wrong <= SHOWN_MAX || ctl_report_is_json())
        ctl_report_wrong("job", due_id_format(f->id, id), DUE_ID_TEXT - 1, texts[f->wrong]);
    else if (v->wrong == SHOWN_MAX + 1)
        ctl_report_line(CTL_BAD, "wrong   and more");
}

/* It stands nowhere, but its topic may be new since the topics were read: then one look there, and
 * whether the job still is stored, decides.  False: no answer. */
static bool look_at_new_topic(struct verify *v, struct ctl_finding *f)
{
    struct due__link *l = v->server.link;
    redisReply *got[6];
    bool fine;

    if (f->topic.at == NULL || ctl_topics_have(&v->topics, f->topic))
        return true;
    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    ask_member(v, "HGET", v->keys.jobs, &f->id);
    ask_score(v, 't', f->topic, &f->id);
    ask_score(v, v->shared ? 'l' : 't', f->topic, &f->id);
    ask_score(v, v->shared ? 'g' : 't', f->topic, &f->id);
    due__link_words(l, 1, (const char *const[]){ "EXEC" });
    if (!ctl_server_go(&v->server, 6, got))
        return false;
    fine = ctl_answer_is(got[5], REDIS_REPLY_ARRAY, "a job") && got[5]->elements == 4;
    bool there = fine && due__reply_is_text(got[5]->element[0]);
    for (size_t i = 1; fine && i < 4; i++)
        there = there && !due__reply_is_text(got[5]->element[i]);
    if (fine && !there) /* it has gone, or it stands there */
        f->wrong = CTL_FINE_JOB;
    ctl_answers_free(6, got);
    return fine;
}

/* The answer to ask_about(): the arrays of what EXEC answered. */
static bool look_at(struct verify *v, const due_id *id, const redisReply *all, struct ctl_text *in)
{
    struct ctl_finding f = { .id = *id, .in = in };
    int64_t score = 0;

    size_t besides = v->shared ? v->topics.n : 0; /* of each kind: out, kept back */

    if (!ctl_answer_is(all, REDIS_REPLY_ARRAY, "a job") ||
        all->elements != 3 + v->topics.n + 2 * besides)
        return false;
    f.record = all->element[0];
    for (size_t i = 0; i <= v->topics.n; i++) {
        if (!due__reply_is_text(all->element[2 + i]))
            continue;
        score = ctl_score_read(all->element[2 + i]);
        in[f.in_count++] = text_of(v, i);
    }
    for (size_t i = 0; i < 2 * besides; i++) {
        const redisReply *is = all->element[3 + v->topics.n + i];

        if (!due__reply_is_text(is))
            continue;
        f.out = f.out || i < besides;
        score = i < besides ? score : ctl_score_read(is);
        in[f.in_count++] = v->topics.text[i % besides];
    }
    f.wrong = judge(&f, all->element[1], score);
    if (f.wrong == CTL_NOWHERE && !look_at_new_topic(v, &f))
        return false;
    if (f.wrong == CTL_FINE_JOB)
        return true;
    tell(v, &f);
    if (v->repair == NULL || f.wrong == CTL_NEWER)
        return true;
    if (!ctl_repair_job(v->repair, &f)) {
        fprintf(stderr, "duectl: not repaired: the queue is not ours, or the server refuses\n");
        return false;
    }
    v->repaired++;
    return true;
}

static bool look_at_suspects(struct verify *v)
{
    /* MULTI's, two, one of each topic and the dead, of each topic what is out, EXEC's */
    size_t answers = 5 + v->topics.n + (v->shared ? 2 * v->topics.n : 0);
    redisReply **got = calloc(answers, sizeof(redisReply *));
    struct ctl_text *in = calloc(3 * v->topics.n + 1, sizeof *in);
    bool fine = (got != NULL && in != NULL) || ctl_no_memory();

    for (size_t i = 0; fine && i < v->suspects.n; i++) {
        ctl_progress("verify: suspects", i, v->suspects.n);
        ask_about(v, &v->suspects.id[i]);
        fine = ctl_server_go(&v->server, answers, got);
        if (fine) {
            fine = look_at(v, &v->suspects.id[i], got[answers - 1], in);
            ctl_answers_free(answers, got);
        }
    }
    ctl_progress_end();
    free(got);
    free(in);
    return fine;
}

/* A topic that is not entered is wrong; one that is not used only takes room. */
static bool look_at_topics(struct verify *v)
{
    for (size_t i = v->entered; i < v->topics.n; i++) {
        v->wrong++;
        ctl_report_wrong("topic", v->topics.text[i].at, v->topics.text[i].len,
                         "is not entered in topics: its jobs would not be found");
        if (v->repair != NULL && !ctl_repair_topic(v->repair, v->topics.text[i], true))
            return false;
        v->repaired += v->repair != NULL;
    }
    return true;
}

/* Removed when nothing is wrong with what stands in it; it comes back with its next job.  One may
 * be left without a job by what was put right. */
static bool remove_unused(struct verify *v)
{
    for (size_t i = 0; v->repair != NULL && i < v->topics.n; i++) {
        redisReply *answer = NULL;

        due__link_command(v->server.link, 2);
        due__link_text(v->server.link, "ZCARD");
        ctl_topic_key(&v->server, &v->keys, v->topics.text[i]);
        if (!ctl_server_go(&v->server, 1, &answer))
            return false;
        bool empty = answer->type == REDIS_REPLY_INTEGER && answer->integer == 0;
        freeReplyObject(answer);
        if (empty && !ctl_repair_topic(v->repair, v->topics.text[i], false))
            return false;
    }
    return true;
}

/* ---- The command ----------------------------------------------------------------------------- */

static void say_what_is_there(const struct verify *v, const struct ctl_head *head)
{
    ctl_report_line(CTL_PLAIN,
                    "jobs    %zu members of %zu topics, %zu dead, %zu records, %zu with times or "
                    "counts of their own",
                    v->members.n - v->dead, v->topics.n, v->dead, v->records.n, v->entries.n);
    if (v->shared)
        ctl_report_line(CTL_PLAIN, "out     %zu on a lease", v->out);
    if (head->aside > 0)
        ctl_report_line(CTL_NOTABLE,
                        "aside   %" PRIu64 " damaged records were set aside earlier: HGETALL %s",
                        head->aside, v->keys.aside);
}

/* The numbers, as one object. */
static void tell_numbers(const struct verify *v, const struct ctl_head *head)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = { { "members", v->members.n - v->dead },
                { "topics", v->topics.n },
                { "dead", v->dead },
                { "records", v->records.n },
                { "entries", v->entries.n },
                { "out", v->out },
                { "aside", head->aside },
                { "keys", v->unique.held.n },
                { "kept_keys", v->unique.kept.n },
                { "lost_keys", v->unique.lost },
                { "unused_topics", v->unused },
                { "wrong", v->wrong },
                { "repaired", v->repaired } };

    ctl_object_begin();
    ctl_object_flag("whole", v->wrong <= v->repaired);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ctl_object_number(all[i].name, all[i].value);
    ctl_object_end();
}

static void say_end(struct verify *v, const struct ctl_head *head)
{
    char text[64];

    if (v->unique.held.n > 0)
        ctl_report_line(CTL_PLAIN, "keys    %zu, %zu of them kept after their job is gone",
                        v->unique.held.n, v->unique.kept.n);
    if (v->unique.lost > 0)
        ctl_report_line(CTL_PLAIN, "without %" PRIu64 " jobs whose key was taken over",
                        v->unique.lost);
    if (v->unused > 0)
        ctl_report_line(CTL_PLAIN, "unused  %" PRIu64 " topics without a job%s", v->unused,
                        v->repair != NULL ? ", removed" : "");
    if (v->strangers > 0) {
        snprintf(text, sizeof text, "%" PRIu64 " names that are no ids: not touched", v->strangers);
        ctl_report_wrong("names", NULL, 0, text);
    }
    v->wrong += v->strangers;
    if (v->wrong == 0)
        ctl_report_line(CTL_PLAIN, "whole");
    else if (v->repair != NULL)
        ctl_report_line(v->wrong > v->repaired ? CTL_BAD : CTL_NOTABLE,
                        "%" PRIu64 " wrong, %" PRIu64 " repaired", v->wrong, v->repaired);
    else
        ctl_report_line(CTL_BAD, "%" PRIu64 " wrong; --repair sets right what it can", v->wrong);
    tell_numbers(v, head);
}

static int verify(struct verify *v, const struct ctl_head *head)
{
    v->expected = head->jobs;
    bool read = read_all(v) && suspect_all(v);
    ctl_progress_end();
    if (!read)
        return ctl_server_status(&v->server);
    say_what_is_there(v, head);
    if (!look_at_suspects(v) || !look_at_topics(v) || !remove_unused(v) ||
        !ctl_unique_check(&v->unique, &v->server, &v->keys, v->repair))
        return ctl_server_status(&v->server);
    v->wrong += v->unique.wrong;
    v->repaired += v->unique.repaired;
    say_end(v, head);
    return v->wrong > v->repaired ? CTL_FAULTS : CTL_FINE;
}

/* First it must be known that there is such a queue: opening would make it. */
static int run(struct verify *v, const struct ctl_look *look)
{
    struct ctl_repair repair = { .server = &v->server, .keys = &v->keys };
    struct ctl_head head;
    int status = ctl_head_read(&v->server, &v->keys, look->queue, &head);

    if (status != 0)
        return status;
    v->shared = head.shared;
    if (head.settled && !ctl_heads_check(&v->server, &v->keys, &head, &v->wrong))
        return ctl_server_status(&v->server);
    if (look->repair) {
        if (!ctl_repair_begin(&repair, look->url, look->queue, head.shared))
            return CTL_BROKEN;
        v->repair = &repair;
        v->repaired = v->wrong; /* it is made anew */
        v->shared = false;
    }
    status = verify(v, &head);
    return ctl_repair_end(&repair) ? status : CTL_BROKEN;
}

int ctl_server_verify(const struct ctl_look *look)
{
    struct verify v = { .wrong = 0 };
    int status = ctl_server_open(&v.server, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(&v.keys, look->queue);
    status = run(&v, look);
    ctl_urls_forget();
    ctl_server_close(&v.server);
    lists_free(&v);
    return status;
}
