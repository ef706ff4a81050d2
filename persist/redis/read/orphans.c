/* orphans.c - records that stand in no zset.
 *
 * Half a batch, done by a server that was killed while it wrote its log, may leave records of new
 * jobs that stand nowhere.  Nobody was told that these jobs are there, and nothing ever shows them;
 * they only take room.  Once everything was shown the members of all zsets are counted, and only if
 * there are more records than that, all records are looked at, page by page.  Those that stand
 * nowhere are set aside, like damaged ones.
 *
 * One call goes through one page, so that batches come between two pages, and only there: a page
 * that was on its way when another batch was formatted (its stamp says so), or that was broken off
 * later, is read anew.  It is looked at in one transaction, and what comes of that is done under
 * the guard, so that no batch of a connection that was given up can have come between either.  The
 * cursor stays good meanwhile: a scan shows what is there during all of it, and what a batch puts
 * it gives a place.
 *
 * On the way it meets records that do stand somewhere, but where nothing was read: see
 * unlisted.c; or where no owner looks: see stranded.c.
 *
 * Where a look is not permitted, or a count or a page is broken off again and again, it is left
 * out: duectl verify finds the same.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/read/read.h"

#define MORE       1
#define LOOK       5u /* answers about a record */
#define TRIES      4u /* to count while no batch comes between, and to have a page */
#define PAGE_MOST  1000u
#define PAGE_BYTES ((size_t)16 << 20)
#define COUNT_MAX  (INT64_C(1) << 40)

void due__redis_sweep_forget(struct due__redis *s)
{
    if (s->load->sweep.topics != NULL)
        freeReplyObject(s->load->sweep.topics);
    s->load->sweep = (struct due__redis_sweep){ .over = false };
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void ask_count(struct due__redis *s, const char *key, size_t key_len)
{
    due__link_command(s->link, 4);
    due__link_text(s->link, "ZCOUNT");
    due__link_bytes(s->link, key, key_len);
    due__link_text(s->link, "-inf");
    due__link_text(s->link, "+inf");
}

/* Of what a server can hold: so the sum of those of all topics stays a number. */
static bool is_count(const redisReply *r)
{
    return r->type == REDIS_REPLY_INTEGER && r->integer >= 0 && r->integer <= COUNT_MAX;
}

/* All records, the dead, and the names of the topics. */
static int count_records(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_sweep *w = &s->load->sweep;
    int ready = due__flight_ready(s, DUE__FLIGHT_SWEEP, s->stamp, until_ns);

    if (ready == 0) {
        due__redis_word(s, s->keys.jobs, 0, "HLEN");
        ask_count(s, s->keys.dead, strlen(s->keys.dead));
        due__redis_word(s, s->keys.topics, 0, "HKEYS");
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_SWEEP, s->stamp, 3, ready, until_ns);
    if (rc != 0)
        return rc;
    redisReply **kept = s->air.kept;
    if (!is_count(kept[0]) || !is_count(kept[1]) || !due__reply_is_texts(kept[2]))
        return due__redis_mistaken(s);
    w->stamp = s->stamp;
    w->records = kept[0]->integer;
    w->placed = kept[1]->integer;
    w->at = 0;
    w->topics = due__flight_take(s, 2);
    due__flight_end(s);
    return 0;
}

/* The members of the next topics. */
static int count_topics(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_sweep *w = &s->load->sweep;
    size_t n = w->topics->elements - w->at;
    int ready = due__flight_ready(s, DUE__FLIGHT_SWEEP_COUNT, w->at, until_ns);

    if (n > DUE__REDIS_KEPT)
        n = DUE__REDIS_KEPT;
    for (size_t i = 0; ready == 0 && i < n; i++) {
        const redisReply *name = w->topics->element[w->at + i];
        struct due__redis_topic *t = due__redis_topic(s, name->str, (size_t)name->len);

        if (t == NULL || due__redis_unread(s, t) != 0) {
            due__link_forget(s->link);
            return DUE_ENOMEM;
        }
        ask_count(s, t->key, t->key_len);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_SWEEP_COUNT, w->at, n, ready, until_ns);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (!is_count(s->air.kept[i]))
            return due__redis_mistaken(s);
        w->placed += s->air.kept[i]->integer;
    }
    if (rc != 0)
        return rc;
    due__flight_end(s);
    w->at += n;
    return 0;
}

/* 0: they were counted, and no batch came between; or it was given up. */
static int count(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_sweep *w = &s->load->sweep;

    while (w->topics == NULL || w->stamp != s->stamp || w->at < w->topics->elements) {
        int rc;

        if (w->topics == NULL || w->stamp != s->stamp) {
            if (w->tries++ == TRIES) {
                w->over = true;
                return 0;
            }
            if (w->topics != NULL)
                freeReplyObject(w->topics);
            w->topics = NULL;
            rc = count_records(s, until_ns);
        } else {
            rc = count_topics(s, until_ns);
        }
        if (rc != 0)
            return rc;
    }
    w->counted = true;
    w->tries = 0;
    w->over = w->records <= w->placed;
    return 0;
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* 0 without a page: it was given up. */
static int scan(struct due__redis *s, redisReply **page, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    size_t each = l->seen_jobs > 0 ? l->seen_bytes / l->seen_jobs + 1 : 1;
    size_t n = PAGE_BYTES / each < PAGE_MOST ? PAGE_BYTES / each + 1 : PAGE_MOST;
    int ready = due__flight_ready(s, DUE__FLIGHT_SWEEP, s->stamp, until_ns);

    if (ready == 0 && l->sweep.tries++ == TRIES) {
        l->sweep.over = true;
        return 0;
    }
    if (ready == 0) {
        due__redis_word(s, s->keys.jobs, 3, "HSCAN");
        due__link_text(s->link, l->sweep.cursor[0] != '\0' ? l->sweep.cursor : "0");
        due__link_text(s->link, "COUNT");
        due__link_number(s->link, (int64_t)n);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_SWEEP, s->stamp, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *got = s->air.kept[0];
    if (!due__reply_is_array(got, 2) || !due__reply_is_text(got->element[0]) ||
        got->element[0]->len >= (int)sizeof l->sweep.cursor ||
        !due__reply_is_texts(got->element[1]) || got->element[1]->elements % 2 != 0)
        return due__redis_mistaken(s);
    *page = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

/* The topic of the record at @i; *@topic is NULL if that cannot be read. */
static int topic_of(struct due__redis *s, const redisReply *pairs, size_t i,
                    struct due__redis_topic **topic)
{
    struct due__record_room room;
    due_record record;

    *topic = NULL;
    if (due__redis_read_job(s, NULL, &record, &room, pairs->element[i], pairs->element[i + 1],
                            NULL) != 0)
        return 0;
    *topic = due__redis_topic(s, record.topic, strlen(record.topic));
    return *topic != NULL ? 0 : DUE_ENOMEM;
}

/* A page. */
struct looked {
    size_t *which;   /* positions of what was asked for; then, */
    size_t n;        /* so many of them, of what stands nowhere */
    redisReply *all; /* the answers */
    struct due__redis_stranded *stranded;
    size_t n_stranded;
};

static void ask_score(struct due__redis *s, const char *key, size_t key_len, const redisReply *id)
{
    due__link_command(s->link, 3);
    due__link_text(s->link, "ZSCORE");
    due__link_bytes(s->link, key, key_len);
    due__link_bytes(s->link, id->str, (size_t)id->len);
}

/* A job of this opening, which the queue knows. */
static bool is_ours(const struct due__redis *s, const redisReply *name)
{
    due_id id = { { 0 } };

    memcpy(id.byte, name->str, DUE_STORE_ID_BYTES); /* a name that was read as a job's */
    return due__redis_sequence(s, id) != 0;
}

/* Those of the page that stand nowhere: their positions come first in @which.  Where others stand
 * is to be read, if it was not. */
static int judge(struct due__redis *s, const redisReply *pairs, struct looked *p)
{
    size_t asked = p->all->elements / LOOK;
    size_t *which = p->which;
    int rc = 0;

    for (size_t i = 0; i < asked && rc == 0; i++) {
        struct due__redis_topic *t;
        redisReply **is = &p->all->element[LOOK * i];
        bool in_topic = is[0]->type != REDIS_REPLY_NIL;
        bool nowhere = !in_topic && is[1]->type == REDIS_REPLY_NIL;

        if (nowhere && due__redis_is_stranded(is + 2))
            p->stranded[p->n_stranded++] =
                (struct due__redis_stranded){ .id = pairs->element[which[i]],
                                              .record = pairs->element[which[i] + 1],
                                              .entry = is[4] };
        else if (nowhere)
            which[p->n++] = which[i];
        if (!in_topic || is_ours(s, pairs->element[which[i]]))
            continue;
        rc = topic_of(s, pairs, which[i], &t);
        if (rc == 0)
            rc = due__redis_unread(s, t);
    }
    return rc;
}

/* Which records of the page stand nowhere, and which where no owner looks. */
static int look(struct due__redis *s, const redisReply *pairs, struct looked *p, int64_t until_ns)
{
    size_t asked = 0;
    int ready = due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns);

    if (ready != 0)
        return ready;
    due__redis_bare(s, "MULTI");
    for (size_t i = 0; i < pairs->elements; i += 2) {
        struct due__redis_topic *t;

        if (topic_of(s, pairs, i, &t) != 0) {
            due__link_forget(s->link);
            return DUE_ENOMEM;
        }
        if (t == NULL)
            continue;
        ask_score(s, t->key, t->key_len, pairs->element[i]);
        ask_score(s, s->keys.dead, strlen(s->keys.dead), pairs->element[i]);
        due__redis_ask_stranded(s, t, pairs->element[i]);
        p->which[asked++] = i;
    }
    int rc = due__redis_transact(s, DUE__FLIGHT_SWEEP_LOOK, LOOK * asked, 0, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_fields(s->air.kept[0], LOOK * asked))
        return due__redis_mistaken(s);
    p->all = due__flight_take(s, 0);
    due__flight_end(s);
    return judge(s, pairs, p);
}

/* ---- Setting aside --------------------------------------------------------------------------- */

static void put_ids(struct due__redis *s, const char *key, const redisReply *pairs,
                    const size_t *which, size_t n)
{
    due__redis_word(s, key, n, "HDEL");
    for (size_t i = 0; i < n; i++) {
        const redisReply *id = pairs->element[which[i]];

        due__link_bytes(s->link, id->str, (size_t)id->len);
    }
}

static void count_aside(struct due__redis *s, size_t n)
{
    if (s->air.kept[0]->type == REDIS_REPLY_ARRAY) { /* else full, or not ours any more */
        due__redis_count(s, 0, 0, n);
        s->load->sweep.found += n;
    }
}

/* The call that asked ran out of time; the page is read again, without them. */
static void aside_over(struct due__redis *s)
{
    count_aside(s, (size_t)s->air.tag);
}

static int set_aside(struct due__redis *s, const redisReply *pairs, const size_t *which, size_t n,
                     int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns);

    if (rc != 0 || n == 0 || !s->armed) /* not armed: they stay */
        return rc;
    due__redis_bare(s, "MULTI");
    due__redis_word(s, s->keys.aside, 2 * n, "HSET");
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 2; k++) {
            const redisReply *part = pairs->element[which[i] + k];

            due__link_bytes(s->link, part->str, (size_t)part->len);
        }
    }
    put_ids(s, s->keys.jobs, pairs, which, n);
    put_ids(s, s->keys.again, pairs, which, n);
    rc = due__redis_transact(s, DUE__FLIGHT_ASIDE, 3, 0, until_ns);
    if (rc == DUE_EAGAIN) {
        s->air.tag = n;
        s->air.over = aside_over;
    }
    if (rc != 0)
        return rc;
    count_aside(s, n);
    due__flight_end(s);
    return 0;
}

/* One page.  It is read again if that is broken off. */
static int sweep_page(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_sweep *w = &s->load->sweep;
    uint64_t link = due__link_count(s->link).connects;
    redisReply *page = NULL;

    if (w->link != link) /* another server has another order */
        w->cursor[0] = '\0';
    w->link = link;
    int rc = scan(s, &page, until_ns);
    if (page == NULL)
        return rc;
    const redisReply *pairs = page->element[1];
    struct looked p = { .which = malloc((pairs->elements / 2 + 1) * sizeof *p.which),
                        .stranded = malloc((pairs->elements / 2 + 1) * sizeof *p.stranded) };
    rc = p.which != NULL && p.stranded != NULL ? look(s, pairs, &p, until_ns) : DUE_ENOMEM;
    if (rc == 0)
        rc = due__redis_put_back(s, p.stranded, p.n_stranded, until_ns);
    if (rc == 0)
        rc = set_aside(s, pairs, p.which, p.n, until_ns);
    if (rc == 0) {
        memcpy(w->cursor, page->element[0]->str, (size_t)page->element[0]->len + 1);
        w->over = strcmp(w->cursor, "0") == 0;
        w->tries = 0;
    }
    if (p.all != NULL)
        freeReplyObject(p.all);
    free(p.which);
    free(p.stranded);
    freeReplyObject(page);
    return rc;
}

int due__redis_sweep(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_sweep *w = &s->load->sweep;
    int rc = 0;

    if (!w->over && s->doubt != 0)
        rc = due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns);
    if (rc == 0 && s->doubt != 0) /* what it makes of them is not known */
        w->over = true;
    if (rc == 0 && !w->over)
        rc = w->counted ? sweep_page(s, until_ns) : count(s, until_ns);
    if (rc == DUE_EAGAIN || rc == DUE_ESTORE || rc == DUE_ENOMEM)
        return rc;
    if (rc == 0 && !w->over)
        return MORE;
    if (rc != 0)
        due__store_log(&s->how, DUE_LOG_WARNING,
                       "records that stand in no topic were not looked for: %s",
                       due_error_text(rc));
    if (w->found > 0)
        due__store_log(&s->how, DUE_LOG_WARNING,
                       "%zu records that stood in no topic were set aside in %s", w->found,
                       s->keys.aside);
    w->found = 0; /* said once */
    w->over = true;
    return 0;
}
