/* convert.c - a queue that many processes shared becomes one that a process owns.
 *
 * It has been taken over: the fence is ours, so whatever those who shared it still say is refused,
 * and `mode` says "owning".  Then jobs that were out wait again, page by page, at their own times
 * and with the attempts that are stored; of those that were cancelled while they were out (`x`)
 * nothing stays.  Then what only a shared queue has goes; then `mode` says "owner".  Whoever comes
 * after a crash in between finds another mode, and begins once more with what is left: a step that
 * was made finds nothing to do.
 *
 * A server may carry out the beginning of a transaction or a script only, if it dies meanwhile
 * (docs/redis-layout.md).  So the fence is written before the mode: with an owner's fence and the
 * mode "shared" nothing was folded yet, and who comes to share it just goes on (join.lua).  A job
 * stands in `l` and `t` for a moment rather than in none of them, and the mode comes last.
 *
 * A new connection may lead to a server that has fallen back to an older state: pages that were
 * folded are out again there, though the fence is ours.  So after one all begins anew, and each
 * step is refused in any other mode than its own (ours.lua).
 *
 * The other way, and undoing it: index.c.
 */
#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "redis/share/share.h"

#define PAGE       256
#define PAGE_BYTES ((uint64_t)16 << 20) /* of long records in one */

/* ---- Steps ----------------------------------------------------------------------------------- */

/* What a lost connection, or an answer that is late, means for a step: it is made again. */
static int again(struct due__redis *s, int rc)
{
    if (rc == DUE_EAGAIN)
        due__flight_crash(s);
    if (s->lost) { /* what is left may be another queue */
        s->lost = false;
        due__redis_say(s, "open it again", "the server has lost data while it was opened");
        return DUE_ECORRUPT;
    }
    return rc == DUE_EAGAIN ? DUE_ESTORE : rc;
}

int due__share_insist_ahead(struct due__redis *s, due__share_step *step, void *ctx,
                            int64_t until_ns)
{
    int64_t end_ns = due__mono_ns() + s->set.connect_ns + s->set.answer_ns;
    int rc;

    if (end_ns < until_ns)
        end_ns = until_ns;
    do {
        rc = due__redis_up(s, end_ns);
        if (rc == 0 || rc == DUE_EDURABILITY)
            rc = step(s, ctx, end_ns);
        rc = again(s, rc);
    } while (rc == DUE_ESTORE && due__mono_ns() < end_ns);
    if (rc == DUE_EFENCED) {
        due__redis_say(s, "open it again", "another process has opened the queue meanwhile");
        return DUE_EBUSY;
    }
    return rc == DUE_ESTORE ? due__redis_unreached(s) : rc;
}

struct call {
    due__share_step *step;
    void *ctx;
};

static int with_clear_air(struct due__redis *s, void *ctx, int64_t until_ns)
{
    const struct call *call = ctx;
    int rc = due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns);

    return rc != 0 ? rc : call->step(s, call->ctx, until_ns);
}

int due__share_insist(struct due__redis *s, due__share_step *step, void *ctx, int64_t until_ns)
{
    struct call call = { step, ctx };

    return due__share_insist_ahead(s, with_clear_air, &call, until_ns);
}

/* Send what was formatted: @n answers. */
static int talk(struct due__redis *s, size_t n, int64_t until_ns)
{
    int rc = due__redis_fly(s, DUE__FLIGHT_CONVERT, 0, n, 0, until_ns);

    if (rc != 0)
        return rc;
    enum due__reply_class worst = due__flight_worst(s);
    if (worst == DUE__REPLY_FINE)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (due__share_classify(s, s->air.kept[i]) != DUE__REPLY_FINE)
            worst = due__share_classify(s, s->air.kept[i]);
    rc = due__redis_error(s, worst);
    due__flight_end(s);
    return rc;
}

/* The keys and words of ours.lua; the script's own @keys and @args follow them. */
static void begin_ours(struct due__redis *s, const struct due__script *script, size_t keys,
                       size_t args)
{
    due__link_command(s->link, 3 + 3 + keys + 4 + args);
    due__link_text(s->link, "EVAL");
    due__link_bytes(s->link, script->text, script->len);
    due__link_number(s->link, (int64_t)(3 + keys));
    due__share_key(s, "fence", "");
    due__share_key(s, "owner", "");
    due__share_key(s, "meta", "");
}

static void put_ours(struct due__redis *s, const struct due__script *script)
{
    const char *mode = s->mode == DUE__MODE_SHARING ? "sharing" : "owning";

    due__link_text(s->link, s->fence);
    due__link_number(s->link, s->set.lease_ns / 1000000);
    due__link_text(s->link, s->owner);
    due__link_text(s->link, script == &due__script_under_way ? "" : mode);
}

void due__share_ours(struct due__redis *s, const struct due__script *script,
                     const char *const *keys, size_t n_keys, const char *const *topics,
                     size_t n_topics, size_t args)
{
    begin_ours(s, script, n_keys + n_topics, args);
    for (size_t i = 0; i < n_keys; i++)
        due__share_key(s, keys[i], "");
    for (size_t i = 0; i < n_topics; i++)
        due__share_key(s, "t:", topics[i]);
    put_ours(s, script);
}

/* It was not made: the mode is not that of this step. */
static bool is_late(const redisReply *r)
{
    return due__reply_is_array(r, 1) && due__reply_is_text(r->element[0]) &&
           strcmp(r->element[0]->str, "M") == 0;
}

int due__share_done(struct due__redis *s, int64_t until_ns)
{
    int rc = talk(s, 1, until_ns);

    if (rc == 0)
        rc = due__share_verdict(s, s->air.kept[0]);
    if (rc == 0 && is_late(s->air.kept[0])) {
        due__flight_end(s);
        rc = DUE__SHARE_ANEW;
    }
    if (rc == 0)
        s->held_ns = s->air.sent_ns + s->set.lease_ns;
    else if (rc == DUE_EFENCED)
        due__flight_end(s);
    return rc;
}

/* ---- What is out ----------------------------------------------------------------------------- */

/* A topic, and how far it is. */
struct fold {
    char topic[DUE__SHARE_NAME]; /* */
    const char *of; /* what its zset of those that are out, or kept back, begins with */
    bool more;      /* there may be more of it */
    redisReply *ids, *jobs, *entries;
    size_t n; /* of the page */
};

static void forget(struct fold *f)
{
    due__share_forget(&f->ids, 1);
    due__share_forget(&f->jobs, 1);
    due__share_forget(&f->entries, 1);
}

static void ask_fields(struct due__redis *s, const char *key, const struct fold *f)
{
    due__link_command(s->link, 2 + f->n);
    due__link_text(s->link, "HMGET");
    due__share_key(s, key, "");
    for (size_t i = 0; i < f->n; i++)
        due__link_bytes(s->link, f->ids->element[2 * i]->str, (size_t)f->ids->element[2 * i]->len);
}

/* Ids and ends of leases. */
static int read_ids(struct due__redis *s, struct fold *f, int64_t until_ns)
{
    due__link_command(s->link, 5);
    due__link_text(s->link, "ZRANGE");
    due__share_key(s, f->of, f->topic);
    due__link_number(s->link, 0);
    due__link_number(s->link, PAGE - 1);
    due__link_text(s->link, "WITHSCORES");
    int rc = talk(s, 1, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(s->air.kept[0]) || s->air.kept[0]->elements % 2 != 0)
        return due__redis_mistaken(s);
    f->ids = due__flight_take(s, 0);
    f->n = f->ids->elements / 2;
    due__flight_end(s);
    return 0;
}

/* No more of them than make a page that is not too long. */
static int shorten(struct due__redis *s, struct fold *f, int64_t until_ns)
{
    uint64_t sum = 0;

    ask_fields(s, "b", f);
    int rc = talk(s, 1, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *r = s->air.kept[0];
    if (!due__reply_is_fields(r, f->n))
        return due__redis_mistaken(s);
    for (size_t i = 0; i < f->n; i++) {
        int64_t len = 0;

        if (due__share_number(r->element[i], 0, &len))
            sum += (uint64_t)len;
        if (i > 0 && sum > PAGE_BYTES)
            f->n = i;
    }
    due__flight_end(s);
    return 0;
}

static int read_jobs(struct due__redis *s, struct fold *f, int64_t until_ns)
{
    ask_fields(s, "j", f);
    ask_fields(s, "a", f);
    int rc = talk(s, 2, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_fields(s->air.kept[0], f->n) || !due__reply_is_fields(s->air.kept[1], f->n))
        return due__redis_mistaken(s);
    f->jobs = due__flight_take(s, 0);
    f->entries = due__flight_take(s, 1);
    due__flight_end(s);
    return 0;
}

/* Its own time.  What cannot be read keeps a place: whoever reads the jobs sees to it. */
static void put_score(struct due__redis *s, const struct fold *f, size_t i)
{
    struct due__record_room room;
    due_record record;
    const redisReply *end = f->ids->element[2 * i + 1];

    if (!due__reply_is_text(f->jobs->element[i]))
        due__link_text(s->link, "");
    else if (due__redis_read_job(s, NULL, &record, &room, f->ids->element[2 * i],
                                 f->jobs->element[i], f->entries->element[i]) == 0)
        due__link_number(s->link, due__redis_score(record.until_ns));
    else
        due__link_bytes(s->link, end->str, (size_t)end->len);
}

/* Of a topic; done again, it finds what is left. */
static int fold_page(struct due__redis *s, void *ctx, int64_t until_ns)
{
    static const char *const hashes[] = { "j", "a", "x", "k", "jk" };
    struct fold *f = ctx;

    forget(f);
    int rc = read_ids(s, f, until_ns);
    if (rc == 0 && f->n > 0)
        rc = shorten(s, f, until_ns);
    if (rc == 0 && f->n > 0)
        rc = read_jobs(s, f, until_ns);
    if (rc != 0)
        return rc;
    /* The keys of a topic besides: their names are those of its own. */
    begin_ours(s, &due__script_fold, 4 + sizeof hashes / sizeof hashes[0], 2 * f->n);
    due__share_key(s, f->of, f->topic);
    due__share_key(s, "t:", f->topic);
    due__share_key(s, "dead", "");
    due__share_key(s, "w:", f->topic);
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++)
        due__share_key(s, hashes[i], "");
    put_ours(s, &due__script_fold);
    for (size_t i = 0; i < f->n; i++) {
        const redisReply *id = f->ids->element[2 * i];

        due__link_bytes(s->link, id->str, (size_t)id->len);
        put_score(s, f, i);
    }
    rc = due__share_done(s, until_ns);
    f->more = f->n > 0;
    if (rc == 0)
        due__flight_end(s);
    return rc;
}

/* Topics that are listed, or have a head. */
static int read_topics(struct due__redis *s, void *ctx, int64_t until_ns)
{
    redisReply **topics = ctx;

    due__link_command(s->link, 2);
    due__link_text(s->link, "HKEYS");
    due__share_key(s, "topics", "");
    due__link_command(s->link, 4);
    due__link_text(s->link, "ZRANGE");
    due__share_key(s, "h", "");
    due__link_number(s->link, 0);
    due__link_number(s->link, -1);
    int rc = talk(s, 2, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(s->air.kept[0]) || !due__reply_is_texts(s->air.kept[1]))
        return due__redis_mistaken(s);
    topics[0] = due__flight_take(s, 0);
    topics[1] = due__flight_take(s, 1);
    due__flight_end(s);
    return 0;
}

static int fold_topic(struct due__redis *s, const redisReply *name, const char *of,
                      int64_t until_ns)
{
    struct fold f = { .of = of, .more = true };
    int rc = 0;

    if (name->len > DUE_TOPIC_LENGTH)
        return 0; /* of nobody we know */
    memcpy(f.topic, name->str, (size_t)name->len + 1);
    while (f.more && rc == 0)
        rc = due__share_insist(s, fold_page, &f, until_ns);
    forget(&f);
    return rc;
}

/* Those that are out, and those that are kept back behind others of their group. */
static int fold_topics(struct due__redis *s, const redisReply *topics, int64_t until_ns)
{
    int rc = 0;

    for (size_t i = 0; i < topics->elements && rc == 0; i++) {
        rc = fold_topic(s, topics->element[i], "l:", until_ns);
        if (rc == 0)
            rc = fold_topic(s, topics->element[i], "g:", until_ns);
    }
    return rc;
}

/* ---- What only a shared queue has ------------------------------------------------------------ */

struct clear {
    const char *key;
    char cursor[24];
};

static int clear_page(struct due__redis *s, void *ctx, int64_t until_ns)
{
    struct clear *c = ctx;

    due__share_ours(s, &due__script_clear, &c->key, 1, NULL, 0, 1);
    due__link_text(s->link, c->cursor);
    int rc = due__share_done(s, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *next = s->air.kept[0];
    if (!due__reply_is_text(next) || (size_t)next->len >= sizeof c->cursor)
        return due__redis_mistaken(s);
    memcpy(c->cursor, next->str, (size_t)next->len + 1);
    due__flight_end(s);
    return 0;
}

/* A hash from cursor "0" on, a zset by "z". */
static int clear_all(struct due__redis *s, const char *key, const char *cursor, int64_t until_ns)
{
    struct clear c = { .key = key };
    int rc;

    snprintf(c.cursor, sizeof c.cursor, "%s", cursor);

    do
        rc = due__share_insist(s, clear_page, &c, until_ns);
    while (rc == 0 && strcmp(c.cursor, "0") != 0);
    return rc;
}

static int own(struct due__redis *s, void *ctx, int64_t until_ns)
{
    static const char *const keys[] = { "writers", "c",  "p", "w",  "h",  "jk",
                                        "b",       "wr", "g", "gh", "jg", "x" };

    (void)ctx;
    due__share_ours(s, &due__script_own, keys, sizeof keys / sizeof keys[0], NULL, 0, 0);
    s->armed = false; /* what is watched is written to */
    int rc = due__share_done(s, until_ns);
    if (rc == 0)
        due__flight_end(s);
    return rc;
}

/* Whoever comes to own the queue leaves the order in which it is shared as it is. */
static int under_way(struct due__redis *s, void *ctx, int64_t until_ns)
{
    bool says = s->mode == DUE__MODE_SHARING && s->how.by_priority != 0;

    due__share_ours(s, &due__script_under_way, NULL, 0, NULL, 0, 2);
    due__link_text(s->link, ctx);
    due__link_text(s->link, says ? "priority" : "");
    int rc = due__share_done(s, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *order = s->air.kept[0];
    if (order->type != REDIS_REPLY_INTEGER)
        return due__redis_mistaken(s);
    s->share->by_rank = order->integer == 2;
    due__flight_end(s);
    return 0;
}

int due__share_begin(struct due__redis *s, enum due__redis_mode mode, int64_t until_ns)
{
    static char owning[] = "owning";
    static char sharing[] = "sharing";

    s->mode = mode;
    return due__share_insist(s, under_way, mode == DUE__MODE_SHARING ? sharing : owning, until_ns);
}

/* Where the jobs of these topics stood by priority, if that was their order. */
static int clear_ranks(struct due__redis *s, const redisReply *topics, int64_t until_ns)
{
    char key[DUE__SHARE_NAME + 2];
    int rc = 0;

    for (size_t i = 0; s->share->by_rank && i < topics->elements && rc == 0; i++) {
        if (topics->element[i]->len > DUE_TOPIC_LENGTH)
            continue;
        snprintf(key, sizeof key, "o:%s", topics->element[i]->str);
        rc = clear_all(s, key, "z", until_ns);
    }
    return rc;
}

/* From one end to the other. */
static int fold_all(struct due__redis *s, int64_t until_ns)
{
    static const char *const hashes[] = { "jk", "b", "gh", "jg", "x" };
    redisReply *topics[2] = { NULL, NULL };
    int rc = due__share_begin(s, DUE__MODE_OWNING, until_ns);

    if (rc == 0)
        rc = due__share_insist(s, read_topics, topics, until_ns);

    for (size_t i = 0; i < 2 && rc == 0; i++)
        rc = fold_topics(s, topics[i], until_ns);
    for (size_t i = 0; i < 2 && rc == 0; i++)
        rc = clear_ranks(s, topics[i], until_ns);
    due__share_forget(topics, 2);
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0] && rc == 0; i++)
        rc = clear_all(s, hashes[i], "0", until_ns);
    if (rc == 0)
        rc = clear_all(s, "g", "z", until_ns);
    return rc == 0 ? due__share_insist(s, own, NULL, until_ns) : rc;
}

bool due__share_is_other(struct due__redis *s, uint64_t connects, int rc)
{
    return rc == DUE__SHARE_ANEW || (rc == 0 && due__link_count(s->link).connects != connects);
}

int due__share_fold(struct due__redis *s, int64_t until_ns)
{
    for (int round = 0; round < DUE__SHARE_ROUNDS; round++) {
        uint64_t connects = due__link_count(s->link).connects;
        int rc = fold_all(s, until_ns);

        if (due__share_is_other(s, connects, rc))
            continue;
        if (rc == 0)
            s->mode = DUE__MODE_OWNER;
        return rc;
    }
    return due__redis_unreached(s);
}

void due__share_give_up(struct due__redis *s, int rc, int64_t until_ns)
{
    char trouble[sizeof s->trouble];
    char hint[sizeof s->hint];

    memcpy(trouble, s->trouble, sizeof trouble);
    memcpy(hint, s->hint, sizeof hint);
    if (rc != DUE_EBUSY)
        (void)due__redis_hand_over(s, until_ns);
    memcpy(s->trouble, trouble, sizeof trouble);
    memcpy(s->hint, hint, sizeof hint);
}
