/* quarantine.c - damaged records set aside, and jobs put back into their place.
 *
 * A member of a zset whose record is missing, damaged, another job's or no job's at all goes out of
 * the zset and its bytes into a hash of their own, for people to look at; the load goes on.  One
 * whose record and entry say that it belongs elsewhere is put there: so stands what half of a batch
 * has left behind, which a server may do that was killed while it wrote its log.
 *
 * It is done under the guard, so that a process that is not the owner any more cannot do it.
 */
#include <string.h>

#include "redis/read/read.h"

/* Can the job be used?  Then it stands in the wrong place only. */
static bool readable(struct due__redis *s, struct due__redis_bad bad, due_record *record,
                     struct due__record_room *room)
{
    const struct due__redis_load *l = s->load;
    const redisReply *entry = l->entries != NULL ? l->entries->element[bad.at] : NULL;

    return !bad.nonsense && due__redis_read_job(s, NULL, record, room, l->ids->element[bad.at],
                                                l->jobs->element[bad.at], entry) == 0;
}

static void put_member(struct due__redis *s, size_t at)
{
    const redisReply *id = s->load->ids->element[at];

    due__link_bytes(s->link, id->str, (size_t)id->len);
}

/* What was kept of it before must not be lost for nothing. */
static void put_aside(struct due__redis *s, size_t at)
{
    const redisReply *job = s->load->jobs->element[at];
    bool there = due__reply_is_text(job);

    due__redis_word(s, s->keys.aside, 2, there ? "HSET" : "HSETNX");
    put_member(s, at);
    due__link_bytes(s->link, there ? job->str : "", there ? (size_t)job->len : 0);
}

/* Into the zset that it belongs to.  Answers how many commands that takes; 0: no memory. */
static size_t put_back(struct due__redis *s, size_t at, const due_record *r)
{
    struct due__redis_topic *line =
        r->cause != 0 ? due__redis_dead(s) : due__redis_topic(s, r->topic, strlen(r->topic));

    if (line == NULL)
        return 0;
    due__link_command(s->link, 4);
    due__link_text(s->link, "ZADD");
    due__link_bytes(s->link, line->key, line->key_len);
    due__link_number(s->link, due__redis_score(r->cause != 0 ? r->died_ns : r->until_ns));
    put_member(s, at);
    if (r->cause != 0)
        return 1;
    due__redis_word(s, s->keys.topics, 2, "HSETNX");
    due__link_text(s->link, r->topic);
    due__link_number(s->link, 0);
    return 2;
}

/* Of the page's bad members, or of the @damaged ones only, from @key. */
static void put_removals(struct due__redis *s, const char *command, const char *key, size_t key_len,
                         size_t n, bool damaged)
{
    struct due__redis_load *l = s->load;
    struct due__record_room room;
    due_record record;

    due__link_command(s->link, 2 + n);
    due__link_text(s->link, command);
    due__link_bytes(s->link, key, key_len);
    for (size_t i = 0; i < l->n_bad; i++)
        if (!damaged || !readable(s, l->bad[i], &record, &room))
            put_member(s, l->bad[i].at);
}

/* Answers how many commands stand in the transaction, or 0: no memory.  *@damaged: how many of the
 * members are. */
static size_t ask(struct due__redis *s, size_t *damaged)
{
    struct due__redis_load *l = s->load;
    struct due__record_room room;
    due_record record;
    size_t n = 1;

    *damaged = 0;
    due__redis_bare(s, "MULTI");
    for (size_t i = 0; i < l->n_bad; i++) {
        size_t some = 1;

        if (readable(s, l->bad[i], &record, &room))
            some = put_back(s, l->bad[i].at, &record);
        else
            put_aside(s, l->bad[i].at), ++*damaged;
        if (some == 0)
            return 0;
        n += some;
    }
    put_removals(s, "ZREM", l->line->key, l->line->key_len, l->n_bad, false);
    if (*damaged > 0) {
        put_removals(s, "HDEL", s->keys.jobs, strlen(s->keys.jobs), *damaged, true);
        put_removals(s, "HDEL", s->keys.again, strlen(s->keys.again), *damaged, true);
        n += 2;
    }
    return n;
}

/* Those that can be read and are @dead, or are not, come at the end.  False: no memory. */
static bool show_again(struct due__redis *s, bool dead)
{
    struct due__redis_load *l = s->load;
    struct due__record_room room;
    due_record record;

    for (size_t i = 0; i < l->n_bad; i++)
        if (readable(s, l->bad[i], &record, &room) && (record.cause != 0) == dead &&
            !due__redis_load_stray(s, record.id))
            return false;
    return true;
}

int due__redis_set_aside(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = due__flight_ready(s, DUE__FLIGHT_ASIDE, 0, until_ns);
    size_t queued = rc == 0 ? ask(s, &l->damaged) : 0;

    /* Who waits is remembered before it is sent: if the answer is lost he can stand behind us. */
    if (rc == 0 && (queued == 0 || !show_again(s, false))) {
        due__link_forget(s->link);
        return DUE_ENOMEM;
    }
    rc = due__redis_transact(s, DUE__FLIGHT_ASIDE, queued, rc, until_ns);
    if (rc != 0) /* if it was odd, how far the rank falls is not known */
        return rc;
    bool done = s->air.kept[0]->type == REDIS_REPLY_ARRAY;
    due__flight_end(s);
    l->stale = true;
    if (done) { /* the dead come last, and are shown there */
        l->rank -= l->rank < l->n_bad ? l->rank : l->n_bad;
        l->passed -= l->bad_passed;
        l->set_aside += l->damaged;
        l->put_back += l->n_bad - l->damaged;
        due__redis_count(s, 0, 0, l->damaged);
    } else {
        /* Full, or not ours any more.  They stay, and the page goes on behind them. */
        if (!show_again(s, true))
            return DUE_ENOMEM;
    }
    l->n_bad = l->bad_passed = 0;
    return 0;
}
