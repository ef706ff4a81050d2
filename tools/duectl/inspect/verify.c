/* verify.c - whether a stored queue is whole.
 *
 * Everything is read: the members of every topic with their records and entries, then the ids of
 * all records and of all entries.  What does not fit is only a suspicion, since a queue in use
 * changes meanwhile; so each suspect is looked at once more, alone, in one transaction, and that
 * look decides.
 */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 20 }; /* findings that are told one by one */

/* Ids, and how many. */
struct ids {
    due_id *id;
    size_t n, room;
};

struct topics {
    struct ctl_text *text; /* copies */
    size_t n, room;
};

struct verify {
    struct ctl_server server;
    struct ctl_keys keys;
    struct ids members, records, entries, suspects;
    struct topics topics; /* those that are entered, */
    size_t entered;       /* then the others */
    uint64_t unused;      /* topics without a job */
    uint64_t strangers;   /* members that are no ids */
    size_t dead;          /* of the members */
    struct ctl_unique unique;
    uint64_t found[CTL_WRONGS];
    uint64_t wrong;
    uint64_t repaired;
    struct ctl_repair *repair; /* NULL: only look */
};

static bool no_memory(void)
{
    fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
    return false;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool ids_add(struct ids *list, const due_id *id)
{
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 1024 : 2 * list->room;
        due_id *more = realloc(list->id, room * sizeof *more);

        if (more == NULL)
            return no_memory();
        list->id = more;
        list->room = room;
    }
    list->id[list->n++] = *id;
    return true;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(due_id));
}

static void ids_sort(struct ids *list)
{
    if (list->n > 0)
        qsort(list->id, list->n, sizeof *list->id, compare);
}

static void ids_unique(struct ids *list)
{
    size_t kept = 0;

    ids_sort(list);
    for (size_t i = 0; i < list->n; i++) {
        if (kept == 0 || compare(&list->id[i], &list->id[kept - 1]) != 0)
            list->id[kept++] = list->id[i];
    }
    list->n = kept;
}

static bool ids_have(const struct ids *list, const due_id *id)
{
    return list->n > 0 && bsearch(id, list->id, list->n, sizeof *id, compare) != NULL;
}

static bool topics_have(const struct topics *list, struct ctl_text name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->text[i].len == name.len && memcmp(list->text[i].at, name.at, name.len) == 0)
            return true;
    }
    return false;
}

static bool topics_add(struct topics *list, struct ctl_text name)
{
    char *copy;

    if (list->n == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        struct ctl_text *more = realloc(list->text, room * sizeof *more);

        if (more == NULL)
            return no_memory();
        list->text = more;
        list->room = room;
    }
    copy = malloc(name.len + 1);
    if (copy == NULL)
        return no_memory();
    memcpy(copy, name.at, name.len);
    copy[name.len] = '\0';
    list->text[list->n++] = (struct ctl_text){ copy, name.len };
    return true;
}

static void lists_free(struct verify *v)
{
    for (size_t i = 0; i < v->topics.n; i++)
        free((void *)(uintptr_t)v->topics.text[i].at);
    free(v->topics.text);
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
    if (!ids_add(&v->members, &id))
        return false;
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    if (rc == 0 && !ctl_unique_met(&v->unique, &record))
        return no_memory();
    if (rc == 0 && ctl_stands_in(&record, found->topic) && ctl_score_of(&record) == found->score)
        return true;
    return ids_add(&v->suspects, &id);
}

/* The field that keeps a hash from being a list. */
static bool is_table(const redisReply *field)
{
    return due__reply_is_text(field) && strcmp(field->str, DUE__REDIS_TABLE) == 0;
}

static bool add_fields(struct verify *v, const redisReply *page, struct ids *to)
{
    due_id id;

    for (size_t i = 0; i + 1 < page->elements; i += 2) {
        if (is_table(page->element[i]))
            continue;
        if (!id_read(&id, page->element[i]))
            v->strangers++;
        else if (!ids_add(to, &id))
            return false;
    }
    return true;
}

static bool add_records(void *ctx, const redisReply *page)
{
    struct verify *v = ctx;

    return add_fields(v, page, &v->records);
}

static bool add_entries(void *ctx, const redisReply *page)
{
    struct verify *v = ctx;

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
        if (name.len <= DUE_TOPIC_LENGTH && !topics_have(&v->topics, name) &&
            !topics_add(&v->topics, name))
            return false;
    }
    return true;
}

static bool read_topics(struct verify *v)
{
    redisReply *answer = CTL_ASK(&v->server, "HKEYS", v->keys.topics);
    char match[160];
    bool fine = ctl_answer_is(answer, REDIS_REPLY_ARRAY, "topics");

    for (size_t i = 0; fine && i < answer->elements; i++) {
        const redisReply *name = answer->element[i];

        fine = due__reply_is_text(name) &&
               topics_add(&v->topics, (struct ctl_text){ name->str, (size_t)name->len });
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

        if (!ctl_walk(&v->server, &v->keys, v->topics.text[i], add_member, v))
            return false;
        v->unused += i < v->entered && v->members.n == before;
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

    ids_sort(&v->members);
    ids_unique(&v->records);
    ids_unique(&v->entries);
    for (size_t i = 1; fine && i < v->members.n; i++) {
        if (compare(&v->members.id[i], &v->members.id[i - 1]) == 0)
            fine = ids_add(&v->suspects, &v->members.id[i]);
    }
    for (size_t i = 0; fine && i < v->records.n; i++) {
        if (!ids_have(&v->members, &v->records.id[i]))
            fine = ids_add(&v->suspects, &v->records.id[i]);
    }
    for (size_t i = 0; fine && i < v->entries.n; i++) {
        if (!ids_have(&v->records, &v->entries.id[i]))
            fine = ids_add(&v->suspects, &v->entries.id[i]);
    }
    ids_unique(&v->suspects);
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
    return ctl_stands_in(record, f->in[0]) && f->score == score ? CTL_FINE_JOB : CTL_SHIFTED;
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
    if (++v->wrong <= SHOWN_MAX)
        printf("wrong   %s  %s\n", due_id_format(f->id, id), texts[f->wrong]);
    else if (v->wrong == SHOWN_MAX + 1)
        printf("wrong   and more\n");
}

/* It stands nowhere, but its topic may be new since the topics were read: then one look there, and
 * whether the job still is stored, decides.  False: no answer. */
static bool look_at_new_topic(struct verify *v, struct ctl_finding *f)
{
    struct due__link *l = v->server.link;
    redisReply *got[4];
    bool fine;

    if (f->topic.at == NULL || topics_have(&v->topics, f->topic))
        return true;
    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    ask_member(v, "HGET", v->keys.jobs, &f->id);
    due__link_command(l, 3);
    due__link_text(l, "ZSCORE");
    ctl_topic_key(&v->server, &v->keys, f->topic);
    due__link_bytes(l, f->id.byte, DUE_STORE_ID_BYTES);
    due__link_words(l, 1, (const char *const[]){ "EXEC" });
    if (!ctl_server_go(&v->server, 4, got))
        return false;
    fine = ctl_answer_is(got[3], REDIS_REPLY_ARRAY, "a job") && got[3]->elements == 2;
    if (fine && (!due__reply_is_text(got[3]->element[0]) || due__reply_is_text(got[3]->element[1])))
        f->wrong = CTL_FINE_JOB;
    ctl_answers_free(4, got);
    return fine;
}

/* The answer to ask_about(): the arrays of what EXEC answered. */
static bool look_at(struct verify *v, const due_id *id, const redisReply *all, struct ctl_text *in)
{
    struct ctl_finding f = { .id = *id, .in = in };
    int64_t score = 0;

    if (!ctl_answer_is(all, REDIS_REPLY_ARRAY, "a job") || all->elements != 3 + v->topics.n)
        return false;
    f.record = all->element[0];
    for (size_t i = 0; i <= v->topics.n; i++) {
        if (!due__reply_is_text(all->element[2 + i]))
            continue;
        score = ctl_score_read(all->element[2 + i]);
        in[f.in_count++] = text_of(v, i);
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
    size_t answers = 5 + v->topics.n; /* MULTI's, two, one of each topic and the dead, EXEC's */
    redisReply **got = calloc(answers, sizeof(redisReply *));
    struct ctl_text *in = calloc(v->topics.n + 1, sizeof *in);
    bool fine = got != NULL && in != NULL;

    if (!fine)
        no_memory();
    for (size_t i = 0; fine && i < v->suspects.n; i++) {
        ask_about(v, &v->suspects.id[i]);
        fine = ctl_server_go(&v->server, answers, got);
        if (fine) {
            fine = look_at(v, &v->suspects.id[i], got[answers - 1], in);
            ctl_answers_free(answers, got);
        }
    }
    free(got);
    free(in);
    return fine;
}

/* A topic that is not entered is wrong; one that is not used only takes room. */
static bool look_at_topics(struct verify *v)
{
    char shown[CTL_SHOWN];

    for (size_t i = v->entered; i < v->topics.n; i++) {
        v->wrong++;
        printf("wrong   topic %s is not entered in topics: its jobs would not be found\n",
               ctl_shown(shown, v->topics.text[i].at, v->topics.text[i].len));
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
        bool empty;

        due__link_command(v->server.link, 2);
        due__link_text(v->server.link, "ZCARD");
        ctl_topic_key(&v->server, &v->keys, v->topics.text[i]);
        if (!ctl_server_go(&v->server, 1, &answer))
            return false;
        empty = answer->type == REDIS_REPLY_INTEGER && answer->integer == 0;
        freeReplyObject(answer);
        if (empty && !ctl_repair_topic(v->repair, v->topics.text[i], false))
            return false;
    }
    return true;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int verify(struct verify *v, const struct ctl_head *head)
{
    if (!read_all(v) || !suspect_all(v))
        return ctl_server_status(&v->server);
    printf("jobs    %zu members of %zu topics, %zu dead, %zu records, %zu with times or counts of "
           "their own\n",
           v->members.n - v->dead, v->topics.n, v->dead, v->records.n, v->entries.n);
    if (head->aside > 0)
        printf("aside   %" PRIu64 " damaged records were set aside earlier: HGETALL %s\n",
               head->aside, v->keys.aside);
    if (!look_at_suspects(v) || !look_at_topics(v) || !remove_unused(v) ||
        !ctl_unique_check(&v->unique, &v->server, &v->keys, v->repair))
        return ctl_server_status(&v->server);
    v->wrong += v->unique.wrong;
    v->repaired += v->unique.repaired;
    if (v->unique.held.n > 0)
        printf("keys    %zu, %zu of them kept after their job is gone\n", v->unique.held.n,
               v->unique.kept.n);
    if (v->unique.lost > 0)
        printf("without %" PRIu64 " jobs whose key was taken over\n", v->unique.lost);
    if (v->unused > 0)
        printf("unused  %" PRIu64 " topics without a job%s\n", v->unused,
               v->repair != NULL ? ", removed" : "");
    if (v->strangers > 0)
        printf("wrong   %" PRIu64 " names that are no ids: not touched\n", v->strangers);
    v->wrong += v->strangers;
    if (v->wrong == 0)
        printf("whole\n");
    else if (v->repair != NULL)
        printf("%" PRIu64 " wrong, %" PRIu64 " repaired\n", v->wrong, v->repaired);
    else
        printf("%" PRIu64 " wrong; --repair sets right what it can\n", v->wrong);
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
    if (look->repair) {
        if (!ctl_repair_begin(&repair, look->url, look->queue))
            return CTL_BROKEN;
        v->repair = &repair;
    }
    status = verify(v, &head);
    ctl_repair_end(&repair);
    return status;
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
    return fflush(stdout) != 0 ? CTL_BROKEN : status;
}
