/* retained_keys.c - showing the keys that are kept after their job is gone.
 *
 * A scan of the `kx` zset, page by page, and of each page the ids from the `k` hash.  A scan shows
 * whatever is there during all of it at least once, also while batches change what is around it; on
 * another connection, which may be to another server, it begins anew.  A page that was read before
 * a batch is read again: so nothing is shown that was freed meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/read/read.h"

#define PAGE_MOST 1000

static void page_free(struct due__redis_kept *k)
{
    if (k->page != NULL)
        freeReplyObject(k->page);
    k->page = NULL;
    k->at = 0;
}

void due__redis_kept_forget(struct due__redis *s)
{
    page_free(s->kept);
    *s->kept = (struct due__redis_kept){ .losses = s->losses };
}

/* The time that a score stands for; DUE_FOREVER: none that can be told. */
static int64_t time_of(const redisReply *score)
{
    char *end;
    double us = strtod(score->str, &end);

    if (*end != '\0' || !(us < (double)(INT64_MAX / 1000)))
        return DUE_FOREVER;
    return us > 0 ? (int64_t)us * 1000 : 0;
}

/* A cursor, and keys with their scores. */
static bool is_page(const redisReply *r)
{
    return due__reply_is_array(r, 2) && due__reply_is_text(r->element[0]) &&
           r->element[0]->len < (int)sizeof((struct due__redis_kept *)NULL)->cursor &&
           due__reply_is_texts(r->element[1]) && r->element[1]->elements % 2 == 0;
}

static int read_page(struct due__redis *s, size_t max, int64_t until_ns)
{
    struct due__redis_kept *k = s->kept;
    int ready = due__flight_ready(s, DUE__FLIGHT_KEPT, s->stamp, until_ns);

    if (ready == 0) {
        due__redis_word(s, s->keys.kept, 3, "ZSCAN");
        due__link_text(s->link, k->cursor[0] != '\0' ? k->cursor : "0");
        due__link_text(s->link, "COUNT");
        due__link_number(s->link, max > 0 && max < PAGE_MOST ? (int64_t)max : PAGE_MOST);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_KEPT, s->stamp, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    if (!is_page(s->air.kept[0]))
        return due__redis_mistaken(s);
    k->page = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

/* Whose they are; answers what is to be freed, or NULL and *@rc. */
static redisReply *read_ids(struct due__redis *s, const redisReply *pairs, int64_t until_ns,
                            int *rc)
{
    int ready = due__flight_ready(s, DUE__FLIGHT_OF, s->stamp, until_ns);

    if (ready == 0) {
        due__redis_word(s, s->keys.unique, pairs->elements / 2, "HMGET");
        for (size_t i = 0; i < pairs->elements; i += 2)
            due__link_bytes(s->link, pairs->element[i]->str, (size_t)pairs->element[i]->len);
    }
    *rc = due__redis_fly(s, DUE__FLIGHT_OF, s->stamp, 1, ready, until_ns);
    if (*rc == 0 && !due__reply_is_fields(s->air.kept[0], pairs->elements / 2))
        *rc = due__redis_mistaken(s);
    if (*rc != 0)
        return NULL;
    redisReply *ids = due__flight_take(s, 0);
    due__flight_end(s);
    return ids;
}

/* One of the page.  A key whose id is not there was freed, or never taken, and half a batch has
 * left it here: it is over, so that the queue has it removed.  One whose id makes no sense is
 * passed over. */
static int show_key(const redisReply *key, const redisReply *score, const redisReply *of,
                    due_store_visit_key *visit, void *ctx)
{
    due_id id = { { 0 } };

    if (key->len == 0 || key->len > DUE_KEY_MAX)
        return 0;
    if (of->type == REDIS_REPLY_NIL)
        return visit(ctx, key->str, (size_t)key->len, id, 0);
    if (!due__reply_is_text(of) || of->len != DUE_STORE_ID_BYTES)
        return 0;
    memcpy(id.byte, of->str, DUE_STORE_ID_BYTES);
    return visit(ctx, key->str, (size_t)key->len, id, time_of(score));
}

/* The page that was read, from where it stands. */
static int show_page(struct due__redis *s, due_store_visit_key *visit, void *ctx, int64_t until_ns)
{
    struct due__redis_kept *k = s->kept;
    const redisReply *pairs = k->page->element[1];
    int rc = 0;

    if (pairs->elements == 0)
        return 0;
    redisReply *ids = read_ids(s, pairs, until_ns, &rc);
    if (ids == NULL)
        return rc;
    for (; k->at < pairs->elements && rc == 0; k->at += rc == 0 ? 2 : 0)
        rc = show_key(pairs->element[k->at], pairs->element[k->at + 1], ids->element[k->at / 2],
                      visit, ctx);
    freeReplyObject(ids);
    return rc;
}

/* 1: more are left. */
static int next_page(struct due__redis *s, size_t max, due_store_visit_key *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__redis_kept *k = s->kept;
    uint64_t link = due__link_count(s->link).connects;
    int rc = 0;

    if (k->link != link)
        k->cursor[0] = '\0';
    if (k->link != link || k->stamp != s->stamp)
        page_free(k);
    k->link = link;
    k->stamp = s->stamp;
    if (k->page == NULL)
        rc = read_page(s, max, until_ns);
    if (rc == 0)
        rc = show_page(s, visit, ctx, until_ns);
    if (rc == 0)
        memcpy(k->cursor, k->page->element[0]->str, (size_t)k->page->element[0]->len + 1);
    if (rc != DUE_EAGAIN)
        page_free(k);
    k->ended = rc == 0 && strcmp(k->cursor, "0") == 0;
    return rc == 0 ? !k->ended : rc;
}

int due__redis_kept(struct due__redis *s, int rewind, size_t max, due_store_visit_key *visit,
                    void *ctx, int64_t until_ns)
{
    int rc;

    if (rewind)
        due__redis_kept_forget(s);
    do {
        rc = due__redis_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return rc;
        if (s->lost) {
            s->lost = false;
            return DUE_ELOST;
        }
        if (s->kept->losses != s->losses)
            due__redis_kept_forget(s);
        if (s->kept->ended)
            return 0;
        rc = next_page(s, max, visit, ctx, until_ns);
        if ((rc == DUE_EACCES || rc == DUE_ECORRUPT) && due__link_is_up(s->link))
            due__redis_unreadable(s, s->keys.kept, rc);
        if (rc == 0)
            s->unreadable_told = false;
        if (rc == DUE_ESTORE && until_ns <= due__mono_ns())
            rc = DUE_EAGAIN;
    } while (rc == DUE_ESTORE);
    return rc;
}
