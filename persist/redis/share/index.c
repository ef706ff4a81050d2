/* index.c - a queue that a process owned becomes one that many processes share.
 *
 * It is taken over as any owner does, and if somebody began to make it one that is owned, that is
 * ended first (convert.c).  Then `mode` says "sharing"; all jobs are read, and what a shared queue
 * knows of some of them besides is written down: in `jk` which key a job has, in `b` which are
 * long, in `jg` which group it has, and in `gh` which comes first of a group.  None moves: a claim
 * keeps back what is not in front (groups.lua).  Which one had its group's pass only its owner
 * knew, and an owner who comes after him does not, either.  In a queue that is to be in the order
 * of priority each that waits enters `o:TOPIC` besides.  Then each topic gets its head, and `mode`
 * says "shared".  Whoever comes after a crash in between finds "sharing": what was written is
 * cleared, and all begins anew.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/share/share.h"

#define LOAD_MOST   500 /* jobs read at once */
#define TOPICS_MOST 64  /* heads written at once */
#define RANKS_MOST  500 /* jobs entered by priority at once */

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* What is to be written down of the jobs that were read last. */
struct index_item {
    due_id id;
    size_t key_len;
    uint64_t len;     /* of one that is long; 0: it is not */
    size_t group_len; /* as groups.lua has it; 0: none */
    bool front;       /* it may be the one in front of that */
    char key[DUE_KEY_MAX];
    unsigned char group[DUE_TOPIC_LENGTH + 2 + DUE_KEY_MAX];
};

struct index_page {
    struct due__redis *s;
    struct index_item *item;
    size_t n, room, keyed;
    bool rewind, more;
};

static void note_group(struct index_item *i, const due_record *record)
{
    size_t len = strlen(record->topic) + 1;

    i->group_len = 0;
    i->front = record->cause == 0;
    if (record->group_len == 0)
        return;
    memcpy(i->group, record->topic, len);
    i->group[len++] = (unsigned char)record->group_len;
    memcpy(i->group + len, record->group, record->group_len);
    i->group_len = len + record->group_len;
}

static int note_item(struct index_page *p, const due_record *record, uint64_t len)
{
    if (p->n == p->room) {
        size_t room = p->room == 0 ? 64 : 2 * p->room;
        struct index_item *more = realloc(p->item, room * sizeof *more);

        if (more == NULL)
            return DUE_ENOMEM;
        p->item = more;
        p->room = room;
    }
    struct index_item *i = &p->item[p->n++];
    i->id = record->id;
    i->len = len;
    i->key_len = record->key_len;
    if (record->key_len > 0)
        memcpy(i->key, record->key, record->key_len);
    p->keyed += record->key_len > 0;
    note_group(i, record);
    return 0;
}

/* As long as its record is. */
static uint64_t length_of(const due_record *record)
{
    unsigned char front[DUE__RECORD_FRONT];

    return due__record_front(record, front) + record->len;
}

static int see_job(void *ctx, const due_record *record)
{
    struct index_page *p = ctx;

    uint64_t len = length_of(record);
    if (len <= DUE__SHARE_LONG)
        len = 0;
    return record->key_len > 0 || record->group_len > 0 || len > 0 ? note_item(p, record, len) : 0;
}

static int read_page(struct due__redis *s, void *ctx, int64_t until_ns)
{
    struct index_page *p = ctx;

    if (p->rewind) /* again: what was seen comes once more */
        p->n = p->keyed = 0;
    int rc = due__redis_load(s, p->rewind, LOAD_MOST, see_job, p, until_ns);
    if (rc < 0)
        return rc;
    p->rewind = false;
    p->more = rc > 0;
    return 0;
}

/* Of those that may be in front, or of the others. */
static void put_groups(struct due__redis *s, const struct index_page *p, bool front)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->item[i].group_len == 0 || p->item[i].front != front)
            continue;
        due__link_bytes(s->link, p->item[i].id.byte, DUE_STORE_ID_BYTES);
        due__link_bytes(s->link, p->item[i].group, p->item[i].group_len);
    }
}

static void put_items(struct due__redis *s, const struct index_page *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->item[i].key_len == 0)
            continue;
        due__link_bytes(s->link, p->item[i].id.byte, DUE_STORE_ID_BYTES);
        due__link_bytes(s->link, p->item[i].key, p->item[i].key_len);
    }
    put_groups(s, p, true);
    put_groups(s, p, false);
    for (size_t i = 0; i < p->n; i++) {
        if (p->item[i].len == 0)
            continue;
        due__link_bytes(s->link, p->item[i].id.byte, DUE_STORE_ID_BYTES);
        due__link_number(s->link, (int64_t)p->item[i].len);
    }
}

static int write_page(struct due__redis *s, void *ctx, int64_t until_ns)
{
    static const char *const keys[] = { "jk", "b", "jg", "gh" };
    const struct index_page *p = ctx;
    size_t n_long = 0;
    size_t grouped = 0;
    size_t fronts = 0;

    for (size_t i = 0; i < p->n; i++) {
        n_long += p->item[i].len > 0;
        grouped += p->item[i].group_len > 0;
        fronts += p->item[i].group_len > 0 && p->item[i].front;
    }
    due__share_ours(s, &due__script_index, keys, 4, NULL, 0, 3 + 2 * (p->keyed + grouped + n_long));
    due__link_number(s->link, (int64_t)p->keyed);
    due__link_number(s->link, (int64_t)grouped);
    due__link_number(s->link, (int64_t)fronts);
    put_items(s, p);
    int rc = due__share_done(s, until_ns);
    if (rc == 0)
        due__flight_end(s);
    return rc;
}

/* It is to be renewed, if nothing else does it. */
static bool is_lease_old(const struct due__redis *s)
{
    return due__boot_ns() > s->held_ns - s->set.lease_ns / 3 * 2;
}

static int index_jobs(struct due__redis *s, int64_t until_ns)
{
    struct index_page p = { .s = s, .rewind = true, .more = true };
    int rc = 0;

    while (p.more && rc == 0) {
        rc = due__share_insist_ahead(s, read_page, &p, until_ns);
        if (rc == 0 && (p.n > 0 || is_lease_old(s)))
            rc = due__share_insist(s, write_page, &p, until_ns);
        p.n = p.keyed = 0;
    }
    free(p.item);
    due__redis_load_forget(s);
    return rc;
}

/* ---- Topics ---------------------------------------------------------------------------------- */

struct heads {
    redisReply *topics;
    size_t at;
};

static int read_names(struct due__redis *s, void *ctx, int64_t until_ns)
{
    struct heads *h = ctx;

    due__redis_word(s, s->keys.topics, 0, "HKEYS");
    int rc = due__redis_fly(s, DUE__FLIGHT_CONVERT, 0, 1, 0, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(s->air.kept[0]))
        return due__redis_mistaken(s);
    h->topics = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

static int write_heads(struct due__redis *s, void *ctx, int64_t until_ns)
{
    static const char *const keys[] = { "topics", "h" };
    const struct heads *h = ctx;
    const char *names[TOPICS_MOST];
    size_t n = 0;

    for (size_t i = h->at; i < h->topics->elements && n < TOPICS_MOST; i++)
        if (h->topics->element[i]->len <= DUE_TOPIC_LENGTH)
            names[n++] = h->topics->element[i]->str;
    if (n == 0)
        return 0;
    due__share_ours(s, &due__script_heads, keys, 2, names, n, n);
    for (size_t i = 0; i < n; i++)
        due__link_text(s->link, names[i]);
    int rc = due__share_done(s, until_ns);
    if (rc == 0)
        due__flight_end(s);
    return rc;
}

/* How far the jobs of a topic are entered by priority. */
struct ranks {
    const char *topic;
    size_t done;
    bool more;
};

static int write_ranks(struct due__redis *s, void *ctx, int64_t until_ns)
{
    char key[2][DUE__SHARE_NAME + 2];
    const char *const keys[] = { key[0], key[1] };
    struct ranks *r = ctx;

    snprintf(key[0], sizeof key[0], "t:%s", r->topic);
    snprintf(key[1], sizeof key[1], "o:%s", r->topic);
    due__share_ours(s, &due__script_ranks, keys, 2, NULL, 0, 2);
    due__link_number(s->link, (int64_t)r->done);
    due__link_number(s->link, RANKS_MOST);
    int rc = due__share_done(s, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *n = s->air.kept[0];
    if (n->type != REDIS_REPLY_INTEGER || n->integer < 0)
        return due__redis_mistaken(s);
    r->done += (size_t)n->integer;
    r->more = n->integer == RANKS_MOST;
    due__flight_end(s);
    return 0;
}

static int index_ranks(struct due__redis *s, const redisReply *topics, int64_t until_ns)
{
    int rc = 0;

    for (size_t i = 0; i < topics->elements && rc == 0; i++) {
        struct ranks r = { .topic = topics->element[i]->str, .more = true };

        while (rc == 0 && r.more && topics->element[i]->len <= DUE_TOPIC_LENGTH)
            rc = due__share_insist(s, write_ranks, &r, until_ns);
    }
    return rc;
}

static int index_topics(struct due__redis *s, int64_t until_ns)
{
    struct heads h = { .topics = NULL };
    int rc = due__share_insist(s, read_names, &h, until_ns);

    if (rc == 0 && s->share->by_rank)
        rc = index_ranks(s, h.topics, until_ns);
    for (; rc == 0 && h.at < h.topics->elements; h.at += TOPICS_MOST)
        rc = due__share_insist(s, write_heads, &h, until_ns);
    due__share_forget(&h.topics, 1);
    return rc;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int end_sharing(struct due__redis *s, int64_t until_ns)
{
    due__share_ours(s, &due__script_share, NULL, 0, NULL, 0, 1);
    due__link_text(s->link, s->nonce);
    s->armed = false; /* what is watched is written to */
    int rc = due__share_done(s, until_ns);
    if (rc == 0)
        due__flight_end(s);
    return rc;
}

/* Only once: if its answer is lost, whoever joins sees what has become of it. */
static int flip(struct due__redis *s, uint64_t connects, int64_t until_ns)
{
    int64_t end_ns = due__mono_ns() + s->set.connect_ns + s->set.answer_ns;

    if (end_ns < until_ns)
        end_ns = until_ns;
    int rc = due__redis_up(s, end_ns);
    if (rc == 0 || rc == DUE_EDURABILITY)
        rc = due__flight_ready(s, DUE__FLIGHT_NONE, 0, end_ns);
    if (due__share_is_other(s, connects, rc))
        return DUE__SHARE_ANEW;
    if (rc == 0)
        rc = end_sharing(s, end_ns);
    return rc == DUE_ESTORE || rc == DUE_EAGAIN || rc == DUE_EFENCED ? 0 : rc;
}

/* A batch that a torn log may give back is undone by the next owner, who writes all jobs again. */
static int be_sure(struct due__redis *s)
{
    if (!s->unsure)
        return 0;
    due__redis_say(s, "open it owned, and close it, and then share it",
                   "the server was started since the queue's last owner died");
    return DUE_ENOTSUP;
}

/* From one end to the other. */
static int share_all(struct due__redis *s, int64_t until_ns)
{
    int rc = 0;

    if (s->mode != DUE__MODE_OWNER)
        rc = due__share_fold(s, until_ns);
    if (rc != 0)
        return rc;
    uint64_t connects = due__link_count(s->link).connects;
    rc = due__share_begin(s, DUE__MODE_SHARING, until_ns);
    if (rc == 0)
        rc = index_jobs(s, until_ns);
    if (rc == 0)
        rc = index_topics(s, until_ns);
    return rc == 0 ? flip(s, connects, until_ns) : rc;
}

static int make_shared(struct due__redis *s, int64_t until_ns)
{
    int rc = be_sure(s);

    if (rc != 0)
        return rc;
    for (int round = 0; round < DUE__SHARE_ROUNDS; round++) {
        rc = share_all(s, until_ns);
        if (rc != DUE__SHARE_ANEW)
            return rc;
    }
    return due__redis_unreached(s);
}

int due__share_convert(struct due__redis *s, int64_t until_ns)
{
    s->joining = true;
    int rc = due__redis_take_over(s, until_ns);
    s->joining = false;
    if (rc == DUE_EBUSY && s->met_sharers)
        return 0;
    if (rc != 0)
        return rc;
    s->open = true;
    rc = make_shared(s, until_ns);
    if (rc != 0)
        due__share_give_up(s, rc, until_ns);
    due__flight_crash(s); /* nothing is watched by who shares a queue */
    s->open = s->fenced = false;
    return rc;
}
