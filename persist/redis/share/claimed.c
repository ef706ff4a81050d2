/* claimed.c - the jobs of a claim, shown one by one.
 *
 * The answer has them by topics, each group an array of five (work.lua).
 *
 * A record that is long does not stand in the claim's answer and is read by itself.  What cannot be
 * shown, since its record is missing or damaged, is set aside, as when an owner loads; what a newer
 * version has written stays, and is due again when its lease is over.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/share/share.h"

#define OLD_US (INT64_C(3600) * 1000000) /* a lease that ended before then is forgotten in time */

/* ---- Topics ---------------------------------------------------------------------------------- */

static void note_first(struct due__share *h, const char *name, size_t len, size_t at)
{
    char text[DUE__SHARE_NAME];
    size_t i = 0;

    if (len >= sizeof text || memchr(name, '\0', len) != NULL)
        return;
    memcpy(text, name, len);
    text[len] = '\0';
    while (i < h->n_recent && strcmp(h->recent[i], text) != 0)
        i++;
    if (i < at)
        return;
    if (i == h->n_recent) {
        i = h->n_recent < DUE__SHARE_TOPICS ? h->n_recent++ : DUE__SHARE_TOPICS - 1;
        if (i < at)
            return;
    }
    memmove(h->recent[at + 1], h->recent[at], (i - at) * sizeof h->recent[0]);
    memcpy(h->recent[at], text, sizeof text);
}

void due__share_note_heads(struct due__share *h, redisReply *const *at, size_t n)
{
    for (size_t i = 0; i + 1 < n && i / 2 < DUE__SHARE_TOPICS; i += 2)
        if (due__reply_is_text(at[i]))
            note_first(h, at[i]->str, (size_t)at[i]->len,
                       i / 2 < h->n_recent ? i / 2 : h->n_recent);
}

/* It comes last, if there is room. */
void due__share_note_topic(struct due__share *h, const char *name, size_t len)
{
    if (h->n_recent < DUE__SHARE_TOPICS)
        note_first(h, name, len, h->n_recent);
}

/* ---- What is long ---------------------------------------------------------------------------- */

enum group_word { TOPIC, IDS, OVER, RECORDS, ENTRIES };

static bool is_long(const redisReply *group, size_t i)
{
    const redisReply *record = group->element[RECORDS]->element[i];

    return due__reply_is_text(record) && record->len == 0;
}

static const char *id_at(const redisReply *group, size_t i)
{
    return group->element[IDS]->str + i * DUE_STORE_ID_BYTES;
}

/* The records that the answer leaves out, in the order of their jobs.  DUE_EINDOUBT: not now. */
static int read_long(struct due__redis *s, redisReply *const *groups, size_t n, redisReply **got,
                     int64_t until_ns)
{
    size_t asked = 0;

    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g]->element[RECORDS]->elements; i++)
            asked += is_long(groups[g], i);
    if (asked == 0)
        return 0;
    int rc = due__share_up(s, until_ns);
    if (rc != 0 && rc != DUE_EDURABILITY)
        return DUE_EINDOUBT;
    for (size_t g = 0; g < n; g++) {
        for (size_t i = 0; i < groups[g]->element[RECORDS]->elements; i++) {
            if (!is_long(groups[g], i))
                continue;
            due__redis_word(s, s->keys.jobs, 1, "HGET");
            due__link_bytes(s->link, id_at(groups[g], i), DUE_STORE_ID_BYTES);
        }
    }
    return due__share_talk(s, asked, got, until_ns) == 0 ? 0 : DUE_EINDOUBT;
}

/* ---- What cannot be shown -------------------------------------------------------------------- */

/* Its bytes, if it has any, are kept.  False: they are not. */
static bool keep(struct due__redis *s, const redisReply *id, const redisReply *record,
                 int64_t until_ns)
{
    bool there = due__reply_is_text(record);
    redisReply *got = NULL;

    due__redis_word(s, s->keys.aside, 2, there ? "HSET" : "HSETNX");
    due__link_bytes(s->link, id->str, DUE_STORE_ID_BYTES);
    due__link_bytes(s->link, there ? record->str : "", there ? (size_t)record->len : 0);
    if (due__share_talk(s, 1, &got, until_ns) != 0)
        return false;
    bool kept = !there || due__share_classify(s, got) == DUE__REPLY_FINE;
    due__share_forget(&got, 1);
    return kept;
}

/* Then it goes, and whoever follows it in its group may be rung for.  A server that has lost its
 * scripts gets them anew. */
static void take_out(struct due__redis *s, const char *topic, const redisReply *id,
                     struct due_exchange *answer, int64_t until_ns)
{
    enum due__reply_class class = DUE__REPLY_FINE;
    redisReply *got = NULL;
    int64_t rang;

    do {
        int rc = due__share_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return;
        due__share_call_as(s, &due__script_aside, &s->share->lane[1], 0, &topic, 1, NULL, 1);
        due__link_bytes(s->link, id->str, DUE_STORE_ID_BYTES);
        if (due__share_talk(s, 1, &got, until_ns) != 0)
            return;
        class = due__share_classify(s, got);
        if (class == DUE__REPLY_NOSCRIPT)
            s->share->loaded = false;
        if (class == DUE__REPLY_FINE && due__share_verdict(s, got) == 0 &&
            due__share_stamp(s, got, 3) && due__share_number(got->element[2], 0, &rang))
            answer->rang += (uint32_t)rang;
        due__share_forget(&got, 1);
    } while (class == DUE__REPLY_NOSCRIPT && due__mono_ns() < until_ns);
}

/* Where anything fails it is ours until its lease is over, and is tried again then. */
static void set_aside(struct due__redis *s, const char *topic, const redisReply *id,
                      const redisReply *record, struct due_exchange *answer, int64_t until_ns)
{
    char text[DUE_ID_TEXT];
    due_id job = { { 0 } };
    bool there = due__reply_is_text(record);

    memcpy(job.byte, id->str, DUE_STORE_ID_BYTES);
    due__store_log(&s->how, DUE_LOG_ERROR, "job %s is %s in the store, and was set aside",
                   due_id_format(job, text), there ? "damaged" : "missing");
    due__redis_count(s, 0, 0, 1);
    int rc = due__share_up(s, until_ns);
    if (rc != 0 && rc != DUE_EDURABILITY)
        return;
    if (keep(s, id, record, until_ns))
        take_out(s, topic, id, answer, until_ns);
}

/* ---- Showing --------------------------------------------------------------------------------- */

struct claim {
    const struct due__share_part *part;
    struct due_exchange *answer;
    int64_t end_us;
    due_store_visit_claimed *visit;
    void *ctx;
    int64_t until_ns;
};

/* Has it the lease of this claim still?  If nobody can tell it is left out, and due again when that
 * is over. */
static bool is_ours(struct due__redis *s, const struct claim *claim, const char *topic,
                    const redisReply *id)
{
    redisReply *got = NULL;
    int64_t end_us = 0;
    int rc = due__share_up(s, claim->until_ns);

    if (rc != 0 && rc != DUE_EDURABILITY)
        return false;
    due__link_command(s->link, 3);
    due__link_text(s->link, "ZSCORE");
    due__share_key(s, "l:", topic);
    due__link_bytes(s->link, id->str, DUE_STORE_ID_BYTES);
    if (due__share_talk(s, 1, &got, claim->until_ns) != 0)
        return false;
    bool ours =
        due__reply_is_text(got) && due__share_number(got, 0, &end_us) && end_us == claim->end_us;
    due__share_forget(&got, 1);
    return ours;
}

/* What stands there for a job, if there is any for some of them. */
static const redisReply *of_job(const redisReply *group, enum group_word which, size_t i)
{
    static const redisReply nothing = { .type = REDIS_REPLY_NIL };
    const redisReply *all = group->element[which];

    return all->type == REDIS_REPLY_ARRAY && all->element[i]->len > 0 ? all->element[i] : &nothing;
}

/* One job of a group, and its record. */
static int show_one(struct due__redis *s, const struct claim *claim, const redisReply *group,
                    size_t i, const redisReply *record)
{
    const char *topic = claim->part->topic[group->element[TOPIC]->integer - 1];
    char name[DUE_STORE_ID_BYTES];
    redisReply id = { .type = REDIS_REPLY_STRING, .str = name, .len = sizeof name };
    struct due__record_room room;
    due_claimed job = { .held = claim->answer->stamp };
    int64_t over_us = 0;

    memcpy(name, id_at(group, i), sizeof name);
    int rc =
        due__redis_read_job(s, NULL, &job.record, &room, &id, record, of_job(group, ENTRIES, i));

    if (rc == 0 && (job.record.cause != 0 || strcmp(job.record.topic, topic) != 0))
        rc = DUE_ECORRUPT;
    if (rc == DUE_EVERSION)
        return 0;
    bool read_late = is_long(group, i) && !due__reply_is_text(record);
    if (rc != 0 && read_late && !is_ours(s, claim, topic, &id))
        return 0; /* others have claimed it since, and ended it */
    if (rc != 0) {
        set_aside(s, topic, &id, record, claim->answer, claim->until_ns);
        return 0;
    }
    (void)due__share_number(of_job(group, OVER, i), 0, &over_us);
    job.lapsed_ns = over_us * 1000;
    struct due__share_hold hold = { job.record.id, job.held, claim->end_us,
                                    due__redis_score(job.record.until_ns),
                                    job.record.key_len > 0 || job.record.group_len > 0 };
    if (!due__hold_add(&s->share->holds, hold, s->share->now_us - OLD_US))
        return 0; /* no memory: it is due again when its lease is over */
    claim->answer->claimed++;
    return claim->visit(claim->ctx, &job);
}

int due__share_show(struct due__redis *s, const struct due__share_part *part,
                    due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                    int64_t until_ns)
{
    redisReply *const *word = part->answer->element;
    struct claim claim = { part, answer, 0, visit, ctx, until_ns };
    int64_t number[4]; /* alarm, more, rung, claimed */
    redisReply **longs = NULL;
    size_t at_long = 0;

    (void)due__share_number(word[3], 0, &claim.end_us);
    for (size_t i = 0; i < 4; i++)
        (void)due__share_number(word[4 + i], -1, &number[i]);
    size_t n = 0;
    while (8 + n < part->answer->elements && word[8 + n]->type == REDIS_REPLY_ARRAY)
        n++;
    longs = calloc((size_t)number[3] + 1, sizeof *longs);
    if (longs == NULL)
        return DUE_EINDOUBT;
    int rc = read_long(s, word + 8, n, longs, until_ns);
    for (size_t g = 0; g < n; g++) {
        const redisReply *group = word[8 + g];
        for (size_t i = 0; i < group->element[RECORDS]->elements && rc == 0; i++) {
            bool apart = is_long(group, i);
            rc = show_one(s, &claim, group, i,
                          apart ? longs[at_long] : group->element[RECORDS]->element[i]);
            at_long += apart;
        }
    }
    due__share_forget(longs, (size_t)number[3]);
    free(longs);
    if (rc == DUE_EINDOUBT)
        return rc;
    answer->alarm_ns = number[0] > 0 ? number[0] * 1000 : number[0];
    answer->more = number[1] != 0;
    due__share_note_heads(s->share, word + 8 + n, part->answer->elements - 8 - n);
    return rc;
}
