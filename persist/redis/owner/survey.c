/* survey.c - who owns the queue, as the server has it. */
#include <string.h>

#include "redis/owner/owner.h"

#define META         8 /* fields of it that are asked for */
#define LEASE_MS_MAX (INT64_C(1) << 40)

/* ---- Looking --------------------------------------------------------------------------------- */

/* From here on the watch begins later than the last look at the fence, until somebody looks anew,
 * and it may be that nobody ever sees these answers. */
static void ask_survey(struct due__redis *s, bool all)
{
    static const char *const fields[] = { "format",      "least_reader", "mode",   "partitions",
                                          "incarnation", "writer",       "server", "late" };

    s->armed = false;
    due__redis_bare(s, "UNWATCH");
    due__redis_word(s, s->keys.fence, all ? 3 : 1, "WATCH");
    due__link_text(s->link, s->keys.writers);
    if (all) {
        due__link_text(s->link, s->keys.owner);
        due__link_text(s->link, s->keys.meta);
    }
    due__redis_word(s, s->keys.fence, 0, "GET");
    due__redis_word(s, s->keys.owner, 0, "GET");
    due__redis_word(s, s->keys.owner, 0, "PTTL");
    due__redis_word(s, s->keys.meta, META, "HMGET");
    for (size_t i = 0; i < META; i++)
        due__link_text(s->link, fields[i]);
    due__redis_word(s, s->keys.writers, 1, "HGET");
    due__link_number(s->link, (int64_t)s->writer);
    due__redis_word(s, s->keys.writers, 0, "HKEYS");
    due__redis_bare(s, "TIME");
}

static bool read_number(const redisReply *r, int64_t *number)
{
    uint64_t n;

    if (!due__reply_is_text(r) || !due__reply_digits(r->str, (size_t)r->len, &n) || n > INT64_MAX)
        return false;
    *number = (int64_t)n;
    return true;
}

static bool read_fence(struct due__redis *s, struct due__redis_survey *w, const redisReply *r)
{
    if (r->type == REDIS_REPLY_NIL)
        return true;
    if (!due__reply_is_text(r) || (size_t)r->len >= sizeof w->fence)
        return false;
    memcpy(w->fence, r->str, (size_t)r->len);
    w->fenced = true;
    w->ours = s->writer != 0 && due__redis_is_our_fence(s, r);
    if (strncmp(r->str, "s:", 2) == 0) /* a shared queue's, of no writer */
        return true;
    const char *colon = memchr(r->str, ':', (size_t)r->len);
    return colon != NULL && due__reply_digits(r->str, (size_t)(colon - r->str), &w->fence_writer);
}

static bool read_owner(struct due__redis_survey *w, const redisReply *r, const redisReply *pttl)
{
    if (pttl->type != REDIS_REPLY_INTEGER)
        return false;
    w->owner_ms = pttl->integer < LEASE_MS_MAX ? pttl->integer : LEASE_MS_MAX;
    if (r->type == REDIS_REPLY_NIL || pttl->integer == -2)
        return true;
    if (!due__reply_is_text(r))
        return false;
    /* One that is too long is cut: it belongs to nobody we know. */
    size_t len = (size_t)r->len < sizeof w->owner ? (size_t)r->len : sizeof w->owner - 1;
    memcpy(w->owner, r->str, len);
    w->owned = true;
    return true;
}

static enum due__redis_mode read_mode(const char *text)
{
    static const char *const modes[] = { [DUE__MODE_OWNER] = "owner",
                                         [DUE__MODE_SHARED] = "shared",
                                         [DUE__MODE_OWNING] = "owning",
                                         [DUE__MODE_SHARING] = "sharing" };
    int mode = DUE__MODE_OWNER;

    while (mode < DUE__MODE_UNKNOWN && strcmp(text, modes[mode]) != 0)
        mode++;
    return (enum due__redis_mode)mode;
}

static bool read_meta(struct due__redis *s, struct due__redis_survey *w, const redisReply *r)
{
    int64_t writer = 0;

    if (!due__reply_is_array(r, META))
        return false;
    for (size_t i = 0; i < META; i++)
        w->meta = w->meta || r->element[i]->type != REDIS_REPLY_NIL;
    if (!w->meta)
        return true;
    const redisReply *life = r->element[4];
    if (!read_number(r->element[0], &w->format) || !read_number(r->element[1], &w->least_reader) ||
        !due__reply_is_text(r->element[2]) || !read_number(r->element[3], &w->partitions) ||
        !due__reply_is_text(life) || (size_t)life->len >= sizeof w->incarnation ||
        !read_number(r->element[5], &writer))
        return false;
    w->mode = read_mode(r->element[2]->str);
    memcpy(w->incarnation, life->str, (size_t)life->len);
    w->same = strcmp(w->incarnation, s->incarnation) == 0;
    const redisReply *server = r->element[6];
    if (server->type != REDIS_REPLY_NIL) { /* one that is too long is nobody's we know */
        bool fits =
            due__reply_is_text(server) && server->len > 0 && (size_t)server->len < sizeof w->server;
        memcpy(w->server, fits ? server->str : "?", fits ? (size_t)server->len : 1);
    }
    const redisReply *late = r->element[7];
    if (due__reply_is_text(late) && (size_t)late->len < sizeof w->late)
        memcpy(w->late, late->str, (size_t)late->len);
    w->last_writer = (uint64_t)writer;
    return true;
}

/* The highest of them, falling; what falls out at the end is to be forgotten. */
static void note_writer(struct due__redis_survey *w, uint64_t writer)
{
    for (size_t i = 0; i < w->writers; i++) {
        uint64_t other = w->old_writers[i];
        if (other < writer) {
            w->old_writers[i] = writer;
            writer = other;
        }
    }
    if (w->writers < DUE__REDIS_WRITERS)
        w->old_writers[w->writers++] = writer;
    else if (w->stale_writers < DUE__REDIS_WRITERS)
        w->stale_writer[w->stale_writers++] = writer;
}

static bool read_writers(struct due__redis_survey *w, const redisReply *ours, const redisReply *all)
{
    uint64_t writer;
    int64_t number;

    if (all->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < all->elements; i++)
        if (due__reply_is_text(all->element[i]) &&
            due__reply_digits(all->element[i]->str, (size_t)all->element[i]->len, &writer))
            note_writer(w, writer);
    if (w->writers > 0 && w->old_writers[0] > w->last_writer)
        w->last_writer = w->old_writers[0];
    if (w->fence_writer > w->last_writer)
        w->last_writer = w->fence_writer;
    if (ours->type == REDIS_REPLY_NIL)
        return true;
    w->numbered = read_number(ours, &number);
    w->number = w->numbered ? (uint64_t)number : 0;
    return w->numbered;
}

static bool read_time(struct due__redis_survey *w, const redisReply *r)
{
    int64_t seconds;
    int64_t us;

    if (!due__reply_is_array(r, 2) || !read_number(r->element[0], &seconds) ||
        !read_number(r->element[1], &us) || seconds >= INT64_MAX / DUE_S(1) || us > 999999)
        return false;
    w->server_us = seconds * 1000000 + us;
    return true;
}

int due__redis_survey(struct due__redis *s, bool all, struct due__redis_survey *w, int64_t until_ns)
{
    enum due__flight_kind kind = all ? DUE__FLIGHT_SURVEY_ALL : DUE__FLIGHT_SURVEY;
    int rc = due__flight_ready(s, kind, 0, until_ns);

    if (rc == 0) {
        ask_survey(s, all);
        rc = due__flight_start(s, kind, 0, 2, 7, until_ns);
    }
    if (rc >= 0)
        rc = due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    *w = (struct due__redis_survey){ 0 };
    redisReply **kept = s->air.kept;
    enum due__reply_class worst = due__flight_worst(s);
    if (worst != DUE__REPLY_FINE)
        rc = due__redis_error(s, worst);
    else if (!read_fence(s, w, kept[0]) || !read_owner(w, kept[1], kept[2]) ||
             !read_meta(s, w, kept[3]) || !read_writers(w, kept[4], kept[5]) ||
             !read_time(w, kept[6]))
        rc = DUE_ECORRUPT;
    s->checked_ns = s->air.sent_ns;
    if (rc == DUE_ECORRUPT) /* or else it is within a transaction that we know nothing of */
        due__flight_crash(s);
    due__flight_end(s);
    return rc;
}
