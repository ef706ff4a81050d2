/* look.c - what is stored in a shared queue, for those who ask: nothing is changed. */
#include <stdlib.h>
#include <string.h>

#include "redis/owner/owner.h"
#include "redis/share/share.h"

#define TOPICS 64 /* that one census counts */

/* What an answer is that is none of those expected. */
static int refused(struct due__redis *s, const redisReply *r)
{
    enum due__reply_class class = due__share_classify(s, r);

    if (class == DUE__REPLY_NOSCRIPT) {
        s->share->loaded = false;
        return DUE_ESTORE;
    }
    return class != DUE__REPLY_FINE ? due__redis_error(s, class) : DUE_ECORRUPT;
}

/* Is it time to give up?  0: try again; else what the call answers. */
static int over(int rc, int64_t until_ns)
{
    if (rc != DUE_ESTORE)
        return rc;
    return until_ns <= due__mono_ns() ? DUE_EAGAIN : 0;
}

static int be_up(struct due__redis *s, int64_t until_ns)
{
    int rc = due__share_up(s, until_ns);

    return rc == DUE_EDURABILITY ? 0 : rc;
}

static bool is_field(const redisReply *r)
{
    return due__reply_is_text(r) || r->type == REDIS_REPLY_NIL;
}

/* ---- One job --------------------------------------------------------------------------------- */

static int ask_job(struct due__redis *s, due_id id, redisReply *got[2], int64_t until_ns)
{
    int rc = be_up(s, until_ns);

    if (rc != 0)
        return rc;
    due__redis_word(s, s->keys.jobs, 1, "HGET");
    due__link_bytes(s->link, id.byte, DUE_STORE_ID_BYTES);
    due__redis_word(s, s->keys.again, 1, "HGET");
    due__link_bytes(s->link, id.byte, DUE_STORE_ID_BYTES);
    rc = due__share_talk(s, 2, got, until_ns);
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        if (!is_field(got[i])) {
            rc = refused(s, got[i]);
            due__share_forget(got, 2);
        }
    }
    return rc;
}

/* ---- Whose a key is -------------------------------------------------------------------------- */

static int ask_holder(struct due__redis *s, const void *key, size_t len, redisReply **got,
                      int64_t until_ns)
{
    int rc = be_up(s, until_ns);

    if (rc != 0)
        return rc;
    due__share_call(s, &due__script_key, 3, 1);
    due__share_key(s, "k", "");
    due__share_key(s, "kx", "");
    due__share_key(s, "j", "");
    due__link_bytes(s->link, key, len);
    rc = due__share_talk(s, 1, got, until_ns);
    if (rc != 0 || ((*got)->type == REDIS_REPLY_ARRAY && (*got)->elements == 2 &&
                    due__reply_is_text((*got)->element[0])))
        return rc;
    rc = refused(s, *got);
    due__share_forget(got, 1);
    return rc;
}

int due__share_holder(struct due__redis *s, const void *key, size_t len, due_id *id,
                      int64_t until_ns)
{
    redisReply *got = NULL;
    int64_t kept = 0;

    for (;;) {
        int rc = ask_holder(s, key, len, &got, until_ns);
        if (rc == 0)
            break;
        rc = over(rc, until_ns);
        if (rc != 0)
            return rc;
    }
    const redisReply *who = got->element[0];
    bool known = who->len == DUE_STORE_ID_BYTES && due__share_number(got->element[1], 0, &kept);
    memset(id, 0, sizeof *id);
    if (known)
        memcpy(id->byte, who->str, DUE_STORE_ID_BYTES);
    due__share_forget(&got, 1);
    return known ? kept != 0 : DUE_ENOENT;
}

/* A record names the key that its job came with: it is shown if it is the job's still. */
static int judge_key(struct due__redis *s, due_record *record, int64_t until_ns)
{
    due_id id;
    int rc = DUE_ENOENT;

    if (record->key_len > 0)
        rc = due__share_holder(s, record->key, record->key_len, &id, until_ns);
    if (rc < 0 && rc != DUE_ENOENT)
        return rc;
    if (rc != 0 || !due_id_equal(id, record->id))
        due__redis_judge_key(record, NULL);
    return 0;
}

int due__share_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                    int64_t until_ns)
{
    redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)id.byte };
    struct due__record_room room;
    redisReply *got[2];
    due_record record;
    int rc;

    name.len = DUE_STORE_ID_BYTES;
    do {
        rc = ask_job(s, id, got, until_ns);
        if (rc == 0)
            break;
        rc = over(rc, until_ns);
        if (rc != 0)
            return rc;
    } while (true);
    rc = got[0]->type == REDIS_REPLY_NIL
             ? DUE_ENOENT
             : due__redis_read_job(s, NULL, &record, &room, &name, got[0], got[1]);
    if (rc == 0) {
        record.mark = got[0]->str;
        record.mark_len = (size_t)got[0]->len;
        rc = judge_key(s, &record, until_ns);
    }
    if (rc == 0)
        rc = visit(ctx, &record);
    due__share_forget(got, 2);
    return rc;
}

/* ---- The dead -------------------------------------------------------------------------------- */

static void put_ids(struct due__redis *s, const char *key, const redisReply *ids)
{
    due__redis_word(s, key, ids->elements, "HMGET");
    for (size_t i = 0; i < ids->elements; i++)
        due__link_bytes(s->link, ids->element[i]->str, (size_t)ids->element[i]->len);
}

/* Ids, records, entries. */
static int ask_dead(struct due__redis *s, size_t from, size_t max, redisReply *got[3],
                    int64_t until_ns)
{
    int rc = be_up(s, until_ns);

    memset(got, 0, 3 * sizeof *got);
    if (rc != 0)
        return rc;
    due__redis_word(s, s->keys.dead, 2, "ZRANGE");
    due__link_number(s->link, (int64_t)from);
    due__link_number(s->link, (int64_t)(from + max - 1));
    rc = due__share_talk(s, 1, got, until_ns);
    if (rc == 0 && !due__reply_is_texts(got[0]))
        rc = refused(s, got[0]);
    if (rc == 0 && got[0]->elements > 0) {
        put_ids(s, s->keys.jobs, got[0]);
        put_ids(s, s->keys.again, got[0]);
        rc = due__share_talk(s, 2, got + 1, until_ns);
        for (size_t i = 1; i < 3 && rc == 0; i++)
            if (!due__reply_is_fields(got[i], got[0]->elements))
                rc = refused(s, got[i]);
    }
    if (rc != 0)
        due__share_forget(got, 3);
    return rc;
}

int due__share_dead(struct due__redis *s, size_t from, size_t max, due_store_visit *visit,
                    void *ctx, int64_t until_ns)
{
    struct due__record_room room;
    redisReply *got[3];
    due_record record;
    int shown = 0;

    max = max < DUE__SHARE_CLAIM ? max : DUE__SHARE_CLAIM;
    if (max == 0 || from > INT32_MAX)
        return 0;
    for (;;) {
        int rc = ask_dead(s, from, max, got, until_ns);
        if (rc == 0)
            break;
        rc = over(rc, until_ns);
        if (rc != 0)
            return rc;
    }
    for (size_t i = 0; got[1] != NULL && i < got[0]->elements && shown >= 0; i++) {
        int rc = due__redis_read_job(s, NULL, &record, &room, got[0]->element[i],
                                     got[1]->element[i], got[2]->element[i]);
        if (rc != 0 || record.cause == 0)
            continue; /* gone meanwhile, or not to be read */
        rc = visit(ctx, &record);
        shown = rc != 0 ? rc : shown + 1;
    }
    due__share_forget(got, 3);
    return shown;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Where the page ends: as a job's time, which leads to the same score again. */
static bool read_place(const redisReply *score, const redisReply *id, struct due_page *at)
{
    uint64_t us;

    if (!due__reply_is_text(score) || !due__reply_is_text(id) || id->len != DUE_STORE_ID_BYTES ||
        !due__reply_digits(score->str, (size_t)score->len, &us))
        return false;
    at->from_ns = us > INT64_MAX / 1000 ? INT64_MAX : (int64_t)us * 1000;
    memcpy(at->from.byte, id->str, DUE_STORE_ID_BYTES);
    return true;
}

static void put_page(struct due__redis *s, const struct due_page *at, size_t max)
{
    due__share_call(s, &due__script_page, at->topic == NULL ? 1 : 2, 3);
    if (at->topic == NULL) {
        due__share_key(s, "dead", "");
    } else {
        due__share_key(s, "t:", at->topic);
        due__share_key(s, "g:", at->topic);
    }
    due__link_number(s->link, (int64_t)max);
    if (at->from_ns == INT64_MIN)
        due__link_text(s->link, "");
    else
        due__link_number(s->link, due__redis_score(at->from_ns));
    due__link_bytes(s->link, at->from.byte, DUE_STORE_ID_BYTES);
}

/* Every other word of a page. */
static void put_page_ids(struct due__redis *s, const char *key, const redisReply *page)
{
    due__redis_word(s, key, page->elements / 2, "HMGET");
    for (size_t i = 1; i < page->elements; i += 2)
        due__link_bytes(s->link, page->element[i]->str, (size_t)page->element[i]->len);
}

/* Scores and ids, records, entries. */
static int ask_page(struct due__redis *s, const struct due_page *at, size_t max, redisReply *got[3],
                    int64_t until_ns)
{
    int rc = be_up(s, until_ns);

    memset(got, 0, 3 * sizeof *got);
    if (rc != 0)
        return rc;
    put_page(s, at, max);
    rc = due__share_talk(s, 1, got, until_ns);
    if (rc == 0 && (!due__reply_is_texts(got[0]) || got[0]->elements % 2 != 0))
        rc = refused(s, got[0]);
    if (rc == 0 && got[0]->elements > 0) {
        put_page_ids(s, s->keys.jobs, got[0]);
        put_page_ids(s, s->keys.again, got[0]);
        rc = due__share_talk(s, 2, got + 1, until_ns);
        for (size_t i = 1; i < 3 && rc == 0; i++)
            if (!due__reply_is_fields(got[i], got[0]->elements / 2))
                rc = refused(s, got[i]);
    }
    if (rc != 0)
        due__share_forget(got, 3);
    return rc;
}

/* A job that is not there any more, or not to be read, is left out; so is one that was kicked, or
 * has died, since the page was made. */
static int show_page(struct due__redis *s, bool dead, redisReply *const got[3],
                     due_store_visit *visit, void *ctx)
{
    struct due__record_room room;
    due_record record;
    int rc = 0;

    for (size_t i = 0; 2 * i < got[0]->elements && rc == 0; i++)
        if (due__redis_read_job(s, NULL, &record, &room, got[0]->element[2 * i + 1],
                                got[1]->element[i], got[2]->element[i]) == 0 &&
            (record.cause != 0) == dead)
            rc = visit(ctx, &record);
    return rc;
}

int due__share_page(struct due__redis *s, struct due_page *at, size_t max, due_store_visit *visit,
                    void *ctx, int64_t until_ns)
{
    struct due_page end = *at;
    redisReply *got[3];
    int rc;

    max = max < DUE__SHARE_CHANGES ? max : DUE__SHARE_CHANGES;
    do {
        rc = ask_page(s, at, max, got, until_ns);
        if (rc == 0)
            break;
        rc = over(rc, until_ns);
        if (rc != 0)
            return rc;
    } while (true);
    size_t n = got[0]->elements;
    if (n > 0 && !read_place(got[0]->element[n - 2], got[0]->element[n - 1], &end))
        rc = DUE_ECORRUPT;
    if (rc == 0 && n > 0)
        rc = show_page(s, at->topic == NULL, got, visit, ctx);
    due__share_forget(got, 3);
    if (rc != 0)
        return rc;
    *at = end;
    return n == 2 * max;
}

/* ---- Counting -------------------------------------------------------------------------------- */

typedef int see_topic(void *ctx, const struct due_census_topic *topic);

static int64_t or_never(const redisReply *r)
{
    int64_t us;

    return due__share_number(r, 0, &us) ? us * 1000 : DUE_FOREVER;
}

static void ask_census(struct due__redis *s, redisReply *const *topics, size_t n)
{
    static const char *const keys[] = { "j", "dead", "p", "h" };
    enum { N = sizeof keys / sizeof keys[0] };

    due__share_call(s, &due__script_census, N + 3 * n, 0);
    for (size_t i = 0; i < N; i++)
        due__share_key(s, keys[i], "");
    for (size_t i = 0; i < n; i++) {
        due__share_key(s, "t:", topics[i]->str);
        due__share_key(s, "l:", topics[i]->str);
        due__share_key(s, "g:", topics[i]->str);
    }
}

static int read_all(struct due_census_all *all, const redisReply *r)
{
    int64_t word[4]; /* time, records, dead, writers */

    for (size_t i = 0; i < 4; i++)
        if (!due__share_number(r->element[i], 0, &word[i]))
            return DUE_ECORRUPT;
    *all = (struct due_census_all){ .now_ns = word[0] * 1000,
                                    .jobs = (uint64_t)word[1],
                                    .dead = (uint64_t)word[2],
                                    .processes = (uint64_t)word[3],
                                    .head_ns = or_never(r->element[4]) };
    return 0;
}

static int read_topic(struct due_census_topic *t, const char *name, redisReply *const *word)
{
    int64_t number[3]; /* delayed, ready, leased */

    for (size_t i = 0; i < 3; i++)
        if (!due__share_number(word[i], 0, &number[i]))
            return DUE_ECORRUPT;
    *t = (struct due_census_topic){ .topic = name,
                                    .delayed = (uint64_t)number[0],
                                    .ready = (uint64_t)number[1],
                                    .leased = (uint64_t)number[2],
                                    .oldest_ns = or_never(word[3]) };
    return 0;
}

/* Some topics.  They are shown only once nothing can go wrong any more. */
static int count_some(struct due__redis *s, struct due_census_all *all, redisReply *const *topics,
                      size_t n, see_topic *visit, void *ctx, int64_t until_ns)
{
    struct due_census_topic t[TOPICS];
    redisReply *reply = NULL;
    int rc = be_up(s, until_ns);

    if (rc != 0)
        return rc;
    ask_census(s, topics, n);
    rc = due__share_talk(s, 1, &reply, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_array(reply, 5 + 4 * n))
        rc = refused(s, reply);
    else
        rc = read_all(all, reply);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_topic(&t[i], topics[i]->str, reply->element + 5 + 4 * i);
    for (size_t i = 0; i < n && rc == 0 && visit != NULL; i++)
        rc = visit(ctx, &t[i]);
    freeReplyObject(reply);
    return rc;
}

static int list_topics(struct due__redis *s, redisReply **topics, int64_t until_ns)
{
    int rc = be_up(s, until_ns);

    if (rc != 0)
        return rc;
    due__redis_word(s, s->keys.topics, 0, "HKEYS");
    rc = due__share_talk(s, 1, topics, until_ns);
    if (rc == 0 && !due__reply_is_texts(*topics)) {
        rc = refused(s, *topics);
        due__share_forget(topics, 1);
    }
    return rc;
}

int due__share_census(struct due__redis *s, struct due_census_all *all,
                      int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                      int64_t until_ns)
{
    redisReply *topics = NULL;
    size_t at = 0;
    int rc;

    do {
        rc = list_topics(s, &topics, until_ns);
        if (rc != 0 && (rc = over(rc, until_ns)) != 0)
            return rc;
    } while (topics == NULL);
    do {
        size_t n = topics->elements - at < TOPICS ? topics->elements - at : TOPICS;
        rc = count_some(s, all, topics->element + at, n, visit, ctx, until_ns);
        if (rc == 0)
            at += n;
        else
            rc = over(rc, until_ns);
    } while (rc == 0 && at < topics->elements);
    freeReplyObject(topics);
    return rc;
}

/* ---- Who is there ---------------------------------------------------------------------------- */

/* The scores of those writers in `w`, or in that of a topic. */
static void ask_waits(struct due__redis *s, const char *topic, const redisReply *writers)
{
    due__link_command(s->link, 2 + writers->elements);
    due__link_text(s->link, "ZMSCORE");
    due__share_key(s, topic == NULL ? "w" : "w:", topic == NULL ? "" : topic);
    for (size_t i = 0; i < writers->elements; i++)
        due__link_bytes(s->link, writers->element[i]->str, (size_t)writers->element[i]->len);
}

/* Which of them wait, for any topic or for one of @topics. */
static int see_waits(struct due__redis *s, const redisReply *topics, const redisReply *writers,
                     bool *waits, int64_t until_ns)
{
    size_t n = writers->elements;

    for (size_t t = 0; n > 0 && t <= topics->elements; t++) {
        redisReply *scores = NULL;

        ask_waits(s, t == 0 ? NULL : topics->element[t - 1]->str, writers);
        int rc = due__share_talk(s, 1, &scores, until_ns);
        if (rc == 0 && !due__reply_is_fields(scores, n))
            rc = refused(s, scores);
        for (size_t i = 0; rc == 0 && i < n; i++)
            waits[i] = waits[i] || due__reply_is_text(scores->element[i]);
        due__share_forget(&scores, 1);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* What the server says of them. */
struct people {
    redisReply *writers;
    redisReply *texts; /* NULL: there are none */
    redisReply *topics;
    bool *waits;
};

static void forget_people(struct people *p)
{
    due__share_forget(&p->writers, 1);
    due__share_forget(&p->texts, 1);
    due__share_forget(&p->topics, 1);
    free(p->waits);
    *p = (struct people){ .texts = NULL };
}

static int ask_people(struct due__redis *s, struct people *p, int64_t until_ns)
{
    int rc = list_topics(s, &p->topics, until_ns);

    if (rc == 0)
        rc = due__share_hash(s, "p", &p->writers, &p->texts, until_ns);
    if (rc == 0 && (p->waits = calloc(p->writers->elements + 1, sizeof *p->waits)) == NULL)
        rc = DUE_ENOMEM;
    if (rc == 0)
        rc = see_waits(s, p->topics, p->writers, p->waits, until_ns);
    if (rc != 0)
        forget_people(p);
    return rc;
}

int due__share_processes(struct due__redis *s,
                         int (*visit)(void *ctx, const struct due_process_seen *process), void *ctx,
                         int64_t until_ns)
{
    struct people p = { .texts = NULL };
    struct due_process_seen seen;
    char host[256];
    int rc;

    do {
        rc = ask_people(s, &p, until_ns);
        if (rc != 0 && (rc = over(rc, until_ns)) != 0)
            return rc;
    } while (p.writers == NULL);
    for (size_t i = 0; p.texts != NULL && i < p.writers->elements && rc == 0; i++) {
        if (!due__share_read_process(p.writers->element[i], p.texts->element[i], &seen, host))
            continue;
        seen.waits = p.waits[i];
        rc = visit(ctx, &seen);
    }
    forget_people(&p);
    return rc;
}
