/* redis_quarantine.c - damaged records set aside.
 *
 * A member of a zset whose record is missing, damaged or another job's goes out of the zset and its
 * bytes into a hash of their own, for people to look at; the load goes on.  It is done under the
 * guard, so that a process that is not the owner any more cannot do it.
 */
#include "redis_store.h"

static void put_member(struct due__redis *s, size_t at)
{
    const redisReply *id = s->load.ids->element[at];

    due__link_bytes(s->link, id->str, (size_t)id->len);
}

static void put_all(struct due__redis *s)
{
    for (size_t i = 0; i < s->load.n_bad; i++)
        put_member(s, s->load.bad[i]);
}

/* Answers how many commands stand in the transaction. */
static size_t ask(struct due__redis *s)
{
    static const char *const multi[] = { "MULTI" };
    static const char *const exec[] = { "EXEC" };
    struct due__redis_load *l = &s->load;

    due__link_words(s->link, 1, multi);
    for (size_t i = 0; i < l->n_bad; i++) {
        const redisReply *job = l->jobs->element[l->bad[i]];
        bool there = due__redis_is_text(job);
        /* What was kept of it before must not be lost for nothing. */
        due__redis_word(s, s->keys.aside, 2, there ? "HSET" : "HSETNX");
        put_member(s, l->bad[i]);
        due__link_bytes(s->link, there ? job->str : "", there ? (size_t)job->len : 0);
    }
    due__link_command(s->link, 2 + l->n_bad);
    due__link_text(s->link, "ZREM");
    due__link_bytes(s->link, l->line->key, l->line->key_len);
    put_all(s);
    due__redis_word(s, s->keys.jobs, l->n_bad, "HDEL");
    put_all(s);
    due__redis_word(s, s->keys.again, l->n_bad, "HDEL");
    put_all(s);
    due__link_words(s->link, 1, exec);
    due__redis_guard(s);
    return l->n_bad + 3;
}

int due__redis_set_aside(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = &s->load;
    int rc = due__flight_ready(s, DUE__FLIGHT_ASIDE, 0, until_ns);

    if (rc == 0) {
        size_t queued = ask(s);
        rc = due__flight_start(s, DUE__FLIGHT_ASIDE, 0, 1 + queued, 3, until_ns);
    }
    if (rc >= 0)
        rc = due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    bool done = s->air.kept[0]->type == REDIS_REPLY_ARRAY;
    due__redis_guarded(s, 1);
    due__flight_end(s);
    l->stale = true;
    if (done) {
        l->rank -= l->rank < l->n_bad ? l->rank : l->n_bad;
        due__redis_count(s, 0, 0, l->n_bad);
    } else {
        /* Full, or not ours any more.  They stay, and the page goes on behind them. */
        l->cursor.set = false;
    }
    l->set_aside += l->n_bad;
    l->n_bad = 0;
    return 0;
}
