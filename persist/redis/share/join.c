/* join.c - becoming one of those who share a queue, staying it, going.
 *
 * Who was not seen for a day is struck off by whoever comes.  How often one lives depends on how
 * many there are, so that an idle queue costs its server nothing that grows with them.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redis/owner/owner.h"
#include "redis/share/share.h"

#define DAY_US        (INT64_C(86400) * 1000000)
#define TRIM          64                  /* most that are struck off at once */
#define CAPACITY_MOST (UINT64_C(1) << 53) /* above it there is none */
#define BEAT_MIN      DUE_S(10)
#define BEAT_FOR      DUE_S(2) /* for each process */
#define BEAT_MOST     1800     /* of them, so an hour at most; as in beat.lua */

/* What `p` is to say of us, without the time of the last beat. */
static void describe(const struct due__redis *s, char text[208])
{
    char host[128];

    if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "?");
    host[sizeof host - 1] = '\0';
    for (char *at = host; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            *at = '?';
    snprintf(text, 208, "%s %zu %" PRId64 " %" PRId64, host, due__holds_live(s->share),
             (int64_t)getpid(), s->server_ns / 1000);
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* Time on the server. */
static int read_time(struct due__redis *s, int64_t *us, int64_t until_ns)
{
    redisReply *time = NULL;
    int64_t seconds = 0;
    int64_t rest = 0;

    due__redis_bare(s, "TIME");
    int rc = due__share_talk(s, 1, &time, until_ns);
    if (rc != 0)
        return rc;
    enum due__reply_class class = due__share_classify(s, time);
    if (class != DUE__REPLY_FINE)
        rc = due__redis_error(s, class);
    else if (!due__reply_is_array(time, 2) || !due__share_number(time->element[0], 0, &seconds) ||
             !due__share_number(time->element[1], 0, &rest) || seconds > INT64_MAX / 2000000)
        rc = DUE_ECORRUPT;
    else
        *us = seconds * 1000000 + rest;
    freeReplyObject(time);
    return rc;
}

/* Those who have not lived for a day, into @old; how many there are in all. */
static size_t find_old(const redisReply *fields, const redisReply *values, int64_t now_us,
                       size_t old[TRIM])
{
    struct due_process_seen seen;
    char host[256];
    size_t n = 0;

    for (size_t i = 0; values != NULL && i < fields->elements && n < TRIM; i++)
        if (due__share_read_process(fields->element[i], values->element[i], &seen, host) &&
            seen.seen_ns / 1000 < now_us - DAY_US)
            old[n++] = i;
    return n;
}

/* What is to become of the capacity: a number that is exact in a script. */
static void put_capacity(struct due__redis *s, uint64_t capacity)
{
    if (capacity == 0)
        due__link_text(s->link, "");
    else
        due__link_number(s->link, capacity <= CAPACITY_MOST ? (int64_t)capacity : 0);
}

static void ask_join(struct due__redis *s, const redisReply *fields, const redisReply *values,
                     const size_t *old, size_t n_old)
{
    static const char *const keys[] = { "fence", "writers", "c", "meta", "w", "p", "owner", "j" };
    enum { N = sizeof keys / sizeof keys[0] };
    char who[208];

    describe(s, who);
    due__share_call(s, &due__script_join, N, 8 + 2 * n_old);
    for (size_t i = 0; i < N; i++)
        due__share_key(s, keys[i], "");
    due__link_text(s->link, s->nonce);
    due__link_text(s->link, s->incarnation);
    due__link_number(s->link, DUE__REDIS_SHARED);
    due__link_number(s->link, 3 * s->share->renew_ns / 1000000);
    due__link_text(s->link, who);
    due__link_number(s->link, (int64_t)s->how.writer_min);
    put_capacity(s, s->how.capacity);
    due__link_text(s->link, s->how.by_priority != 0 ? "priority" : "");
    for (size_t i = 0; i < n_old; i++) {
        const redisReply *writer = fields->element[old[i]];
        const redisReply *text = values->element[old[i]];
        due__link_bytes(s->link, writer->str, (size_t)writer->len);
        due__link_bytes(s->link, text->str, (size_t)text->len);
    }
}

static int refuse(struct due__redis *s, const redisReply *r)
{
    switch (r->element[0]->str[0]) {
    case 'O':
    case 'M':
        return DUE__SHARE_OWNED;
    case 'V':
        due__redis_say(s, "use a newer version of the library",
                       "the queue is stored by a newer version");
        return DUE_EVERSION;
    case 'N':
        due__redis_say(s, "", "the queue has more than one partition");
        return DUE_ENOTSUP;
    case 'D':
        due__redis_say(s, "open it owned, and close it, and then share it in that order",
                       "the queue is shared in the order of deadlines, or has jobs that were");
        return DUE_EINVAL;
    default:
        return DUE_ECORRUPT;
    }
}

static bool copy(char *to, size_t room, const redisReply *r)
{
    if (!due__reply_is_text(r) || r->len == 0 || (size_t)r->len >= room)
        return false;
    memcpy(to, r->str, (size_t)r->len + 1);
    return true;
}

/* What the script has answered. */
static int joined(struct due__redis *s, const redisReply *r)
{
    struct due__share *h = s->share;
    enum due__reply_class class = due__share_classify(s, r);
    int64_t stamp = 0;
    int64_t now_us = 0;

    if (class == DUE__REPLY_NOSCRIPT) {
        h->loaded = false;
        return DUE_ESTORE;
    }
    if (class != DUE__REPLY_FINE)
        return due__redis_error(s, class);
    if (r->type != REDIS_REPLY_ARRAY || r->elements < 1 || !due__reply_is_text(r->element[0]) ||
        r->element[0]->len != 1)
        return DUE_ECORRUPT;
    if (r->element[0]->str[0] != 'J')
        return refuse(s, r);
    int64_t capacity = 0;
    int64_t by_rank = 0;
    if (r->elements != 7 || !copy(h->writer, sizeof h->writer, r->element[1]) ||
        !due__reply_digits(h->writer, strlen(h->writer), &s->writer) ||
        s->writer >= UINT64_C(1) << 48 || !copy(s->fence, sizeof s->fence, r->element[2]) ||
        !due__share_number(r->element[3], 0, &stamp) ||
        !due__share_number(r->element[4], 0, &now_us) ||
        !due__share_number(r->element[5], 0, &capacity) ||
        !due__share_number(r->element[6], 0, &by_rank))
        return DUE_ECORRUPT;
    h->by_rank = by_rank != 0;
    h->capacity = (uint64_t)capacity;
    if ((uint64_t)stamp > h->stamp)
        h->stamp = (uint64_t)stamp;
    h->now_us = now_us;
    return 0;
}

static void begin_lanes(struct due__share *h)
{
    for (size_t i = 0; i < 2; i++) {
        snprintf(h->lane[i].name, sizeof h->lane[i].name, "%.23s:%c", h->writer, "pw"[i]);
        h->lane[i].last = 0;
        h->lane[i].state = DUE__SHARE_IDLE;
    }
    h->n_waits = 0;
    h->lost = h->grouped = false;
}

/* The topics in which something is due next. */
int due__share_read_heads(struct due__redis *s, int64_t until_ns)
{
    redisReply *heads = NULL;

    due__link_command(s->link, 5);
    due__link_text(s->link, "ZRANGE");
    due__share_key(s, "h", "");
    due__link_number(s->link, 0);
    due__link_number(s->link, DUE__SHARE_TOPICS - 1);
    due__link_text(s->link, "WITHSCORES");
    int rc = due__share_talk(s, 1, &heads, until_ns);
    if (rc != 0)
        return rc;
    enum due__reply_class class = due__share_classify(s, heads);
    if (class != DUE__REPLY_FINE)
        rc = due__redis_error(s, class);
    else if (!due__reply_is_texts(heads))
        rc = DUE_ECORRUPT;
    else
        due__share_note_heads(s->share, heads->element, heads->elements);
    freeReplyObject(heads);
    return rc;
}

/* The more share the queue, the more seldom each says that it lives. */
static int64_t beat_every(int64_t writers)
{
    int64_t every = (writers < BEAT_MOST ? writers : BEAT_MOST) * BEAT_FOR;

    return every > BEAT_MIN ? every : BEAT_MIN;
}

static int ask_all(struct due__redis *s, redisReply **fields, redisReply **values, int64_t until_ns)
{
    struct due__share *h = s->share;
    size_t old[TRIM];
    redisReply *reply = NULL;
    int64_t now_us = 0;
    int rc = read_time(s, &now_us, until_ns);

    if (rc == 0)
        rc = due__share_hash(s, "p", fields, values, until_ns);
    if (rc != 0)
        return rc;
    size_t n = find_old(*fields, *values, now_us, old);
    int64_t others = (int64_t)((*fields)->elements - n);
    h->renew_ns = beat_every(others);
    if (!h->joined)
        s->server_ns = now_us * 1000;
    ask_join(s, *fields, *values, old, n);
    rc = due__share_talk(s, 1, &reply, until_ns);
    if (rc != 0)
        return rc;
    rc = joined(s, reply);
    freeReplyObject(reply);
    if (rc != 0)
        return rc;
    begin_lanes(h);
    return due__share_read_heads(s, until_ns);
}

int due__share_join(struct due__redis *s, int64_t until_ns)
{
    redisReply *fields = NULL;
    redisReply *values = NULL;
    int rc = due__share_load_scripts(s, until_ns);

    if (rc == 0)
        rc = ask_all(s, &fields, &values, until_ns);
    due__share_forget(&fields, 1);
    due__share_forget(&values, 1);
    return rc;
}

/* ---- Living, going --------------------------------------------------------------------------- */

/* One call that has no number, and so may be made again.  1: its answer is there, a stamp and
 * @more; or an error. */
static int call(struct due__redis *s, redisReply **reply, size_t more, int64_t until_ns)
{
    int rc = due__share_talk(s, 1, reply, until_ns);

    if (rc != 0)
        return rc;
    enum due__reply_class class = due__share_classify(s, *reply);
    if (class == DUE__REPLY_NOSCRIPT) {
        s->share->loaded = false;
        rc = DUE_ESTORE;
    } else if (class != DUE__REPLY_FINE) {
        rc = due__redis_error(s, class);
    } else {
        rc = due__share_verdict(s, *reply);
        if (rc == DUE_ELOST)
            s->share->lost = true;
        if (rc == 0 && !due__share_stamp(s, *reply, 2 + more))
            rc = DUE_ECORRUPT;
    }
    if (rc != 0)
        due__share_forget(reply, 1);
    return rc;
}

static int beat(struct due__redis *s, struct due_beat *b, int64_t until_ns)
{
    redisReply *reply = NULL;
    int64_t now_us = 0;
    int64_t late = 0;
    int64_t turn = 0;
    int64_t room = 0;
    int64_t capacity = 0;
    int64_t writers = 0;
    const char *topics[DUE__SHARE_TOPICS];
    char who[208];

    for (size_t i = 0; i < s->share->n_recent; i++)
        topics[i] = s->share->recent[i];
    describe(s, who);
    due__share_call_as(s, &due__script_beat, &s->share->lane[1], 0, topics, s->share->n_recent,
                       NULL, 6);
    due__link_text(s->link, who);
    due__link_number(s->link, 3 * s->share->renew_ns / 1000000);
    due__link_number(s->link, (b->turn_ns + 999) / 1000);
    due__link_number(s->link, b->dead_keep_ns);
    due__link_number(s->link, (int64_t)(b->dead_max & INT64_MAX));
    due__link_number(s->link, b->waits_room != 0);
    int rc = call(s, &reply, 7, until_ns);
    if (rc != 0)
        return rc;
    rc = DUE_ECORRUPT;
    if (due__share_number(reply->element[1], 0, &now_us) &&
        due__share_number(reply->element[4], 0, &late) &&
        due__share_number(reply->element[5], 0, &turn) &&
        due__share_number(reply->element[6], 0, &room) &&
        due__share_number(reply->element[7], 0, &capacity) &&
        due__share_number(reply->element[8], 0, &writers))
        rc = (late != 0 ? DUE_BEAT_RANG : 0) | (turn != 0 ? DUE_BEAT_TURN : 0);
    freeReplyObject(reply);
    b->now_ns = now_us * 1000;
    if (rc < 0)
        return rc;
    b->room = (uint64_t)room;
    b->capacity = s->share->capacity = (uint64_t)capacity;
    due__link_wrote(s->link);
    b->renew_ns = s->share->renew_ns = beat_every(writers);
    due__bell_every(s, 2 * s->share->renew_ns); /* a ring that it missed is mended by others */
    return rc;
}

int due__share_beat(struct due__redis *s, struct due_beat *b, int64_t until_ns)
{
    if (due__boot_ns() >= s->probed_ns + DUE__REDIS_PROBE_NS)
        s->probe_due = true;
    for (;;) {
        int rc = due__share_up(s, until_ns);
        if (rc == 0 || rc == DUE_EDURABILITY)
            rc = beat(s, b, until_ns);
        if (rc != DUE_ESTORE)
            return rc;
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}

static int leave(struct due__redis *s, int64_t until_ns)
{
    struct due__share *h = s->share;
    const char *topics[DUE__SHARE_TOPICS];
    redisReply *reply = NULL;

    for (size_t i = 0; i < h->n_waits; i++)
        topics[i] = h->waits[i];
    due__share_call_as(s, &due__script_leave, &h->lane[1], 0, topics, h->n_waits, NULL, 1);
    due__link_text(s->link, h->lane[0].name);
    int rc = call(s, &reply, 2, until_ns);
    if (reply != NULL)
        freeReplyObject(reply);
    return rc;
}

/* As in handing over, an interruption meant for the call before means nothing here. */
int due__share_leave(struct due__redis *s, int64_t until_ns)
{
    int rc;

    do {
        rc = due__share_up(s, until_ns);
        if (rc == 0 || rc == DUE_EDURABILITY)
            rc = leave(s, until_ns);
    } while ((rc == DUE_EAGAIN || rc == DUE_ESTORE) && due__mono_ns() < until_ns);
    return rc;
}
