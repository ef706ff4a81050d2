/* exchange.c - the parts of an exchange sent, each again until it has an answer.
 *
 * A lane remembers its last answer, so the parts go one after the other.  A part whose answer did
 * not come is in doubt: it goes again with its number, so it has one effect.  Of one that was
 * refused nothing was done, and its number is free; unless it was in doubt before, since then an
 * earlier copy of it may still arrive.  So only a refusal of what never was in doubt counts.  A
 * full server refuses for long: there the number is used up by nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/share/share.h"

#define TRIES 3 /* claims of one exchange, for topics that were not known */

/* ---- Beginning ------------------------------------------------------------------------------- */

static void forget_answers(struct due__share *h, struct due__share_lane *lane)
{
    for (size_t i = 0; i < DUE__SHARE_PARTS; i++)
        due__share_forget(&lane->part[i].answer, 1);
    if (h->air >= lane->part && h->air < lane->part + DUE__SHARE_PARTS) {
        h->air = NULL; /* nobody wants it any more */
        h->stale++;
    }
}

/* What has become of the parts of the exchange before does not matter any more. */
static void begin(struct due__share *h, struct due__share_lane *lane, uint64_t number,
                  const struct due_claim *claim)
{
    forget_answers(h, lane);
    memset(lane->part, 0, sizeof lane->part);
    for (size_t i = 0; i < lane->n_found; i++)
        free(lane->found[i]);
    lane->n_found = 0;
    lane->number = number;
    lane->in_turn = h->capacity > 0;
    lane->any = claim != NULL && claim->topics == NULL;
    lane->n_any = lane->any ? h->n_recent : 0;
    memcpy(lane->any_topic, h->recent, sizeof lane->any_topic);
    lane->state = DUE__SHARE_IDLE;
}

/* The same exchange once more, although its answer was told: it gets the same one.  Only the last
 * part is asked again; the answers of those before it are still here. */
static void repeat(struct due__share_lane *lane)
{
    struct due__share_part *last = NULL;

    for (size_t i = 0; i < lane->plan.parts; i++)
        if (lane->part[i].number == lane->last && lane->part[i].rc == 0)
            last = &lane->part[i];
    if (last != NULL) {
        due__share_forget(&last->answer, 1);
        last->over = false;
        last->doubt = true;
        lane->last--;
    }
    lane->state = DUE__SHARE_DOUBT;
}

/* ---- Topics that a change does not say ------------------------------------------------------- */

/* The topic in a record; "" if there is none, or it makes no sense: then the job is unknown. */
static char *topic_of(const redisReply *r, due_id id)
{
    struct due__record_room room;
    due_record record = { .id = id };

    if (!due__reply_is_text(r) || due__record_read(&record, &room, r->str, (size_t)r->len) != 0)
        return strdup("");
    return strdup(record.topic);
}

static int ask_topics(struct due__redis *s, const due_change *changes, size_t n, size_t unsaid,
                      redisReply **got, int64_t until_ns)
{
    int rc = due__share_up(s, until_ns);

    if (rc != 0)
        return rc;
    due__redis_word(s, s->keys.jobs, unsaid, "HMGET");
    for (size_t i = 0; i < n; i++)
        if (changes[i].record.topic == NULL)
            due__link_bytes(s->link, changes[i].record.id.byte, DUE_STORE_ID_BYTES);
    rc = due__share_talk(s, 1, got, until_ns);
    if (rc != 0 || due__reply_is_fields(*got, unsaid))
        return rc;
    enum due__reply_class class = due__share_classify(s, *got);
    due__share_forget(got, 1);
    return class != DUE__REPLY_FINE ? due__redis_error(s, class) : DUE_ECORRUPT;
}

static int find_topics(struct due__redis *s, struct due__share_lane *lane,
                       const due_change *changes, size_t n, int64_t until_ns)
{
    redisReply *got = NULL;
    size_t unsaid = 0;
    int rc;

    for (size_t i = 0; i < n; i++)
        unsaid += changes[i].record.topic == NULL;
    if (unsaid == lane->n_found)
        return 0;
    do
        rc = ask_topics(s, changes, n, unsaid, &got, until_ns);
    while (rc == DUE_ESTORE && due__mono_ns() < until_ns);
    if (rc != 0)
        return rc == DUE_ESTORE ? DUE_EAGAIN : rc;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (changes[i].record.topic != NULL)
            continue;
        char *topic = topic_of(got->element[lane->n_found], changes[i].record.id);
        rc = topic == NULL ? DUE_ENOMEM : 0;
        if (topic != NULL)
            lane->found[lane->n_found++] = topic;
    }
    due__share_forget(&got, 1);
    return rc;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool names(const struct due__share_part *part, const char *topic)
{
    for (size_t t = 0; t < part->topics; t++)
        if (strcmp(part->topic[t], topic) == 0)
            return true;
    return false;
}

/* Work without a claim ends our waiting, too: where that was for topics by name the part names
 * them, as far as there is room, so that somebody else is found for what is due there. */
static void name_waits(const struct due__share *h, struct due__share_part *part)
{
    for (size_t i = 0; i < h->n_waits && part->topics < DUE__SHARE_TOPICS; i++)
        if (!names(part, h->waits[i]))
            part->topic[part->topics++] = h->waits[i];
}

/* It has been answered. */
static void end_waits(struct due__share *h, const struct due__share_part *part)
{
    bool all = true;

    for (size_t i = 0; i < h->n_waits; i++)
        all = all && names(part, h->waits[i]);
    if (all)
        h->n_waits = 0; /* else once more, by the next one */
}

/* Where the claim names no topic for which we stood as waiting, we stand there no more. */
static size_t format_left(struct due__redis *s, const struct due__share_lane *lane,
                          const struct due__share_part *part)
{
    struct due__share *h = s->share;
    const struct due_claim *claim = lane->plan.claim;
    size_t left = 0;

    for (size_t i = 0; i < h->n_waits; i++) {
        if (names(part, h->waits[i]))
            continue;
        due__link_command(s->link, 3);
        due__link_text(s->link, "ZREM");
        due__share_key(s, "w:", h->waits[i]);
        due__link_text(s->link, h->writer);
        left++;
    }
    h->n_waits = 0;
    for (size_t t = 0; claim->topics != NULL && claim->waits && t < claim->topic_count; t++)
        snprintf(h->waits[h->n_waits++], DUE__SHARE_NAME, "%s", claim->topics[t]);
    return left;
}

/* 0: it is in the air; DUE_ESTORE: the link is down; DUE_ENOMEM. */
static int send_part(struct due__redis *s, struct due__share_lane *lane, size_t p, int64_t until_ns)
{
    struct due__share *h = s->share;
    struct due__share_part *part = &lane->part[p];
    size_t stale = part->claims ? format_left(s, lane, part) : 0;

    if (part->kind == DUE__SHARE_WORK && !part->claims)
        name_waits(h, part);
    part->number = lane->last + 1;
    int rc = due__share_format(s, lane, p);
    if (rc != 0) {
        due__link_forget(s->link);
        return rc;
    }
    due__link_owes(s->link);
    rc = due__link_send(s->link, until_ns);
    if (rc == DUE_ENOMEM)
        return rc;
    if (rc == DUE_EAGAIN) { /* not a byte has left */
        due__share_cut(s);
        return DUE_ESTORE;
    }
    h->air = part;
    h->stale = stale;
    part->in_air = true;
    if (rc != 0) {
        due__share_cut(s);
        return DUE_ESTORE;
    }
    return 0;
}

/* ---- What came back -------------------------------------------------------------------------- */

/* A part was refused, by an error of this class.  0: it is over, or goes again; or an error. */
static int refused(struct due__redis *s, struct due__share_part *part, enum due__reply_class class)
{
    if (class == DUE__REPLY_NOSCRIPT) {
        s->share->loaded = false;
        return 0;
    }
    if (class == DUE__REPLY_FULL && part->kind == DUE__SHARE_PUT && !part->voids) {
        part->voids = part->doubt;
        part->over = !part->voids;
        part->rc = DUE_ENOSPC;
        return 0;
    }
    if (class == DUE__REPLY_FULL) /* what it should not refuse */
        class = DUE__REPLY_AGAIN;
    int rc = due__redis_error(s, class);
    if (rc != DUE_ESTORE && part->doubt) {
        due__link_refused(s->link, "it refuses a script");
        rc = DUE_ESTORE;
    }
    if (rc == DUE_ESTORE)
        return rc;
    part->over = true;
    part->rc = rc;
    return 0;
}

/* The script that claims knows no groups, and there are some (G); or it would have to end jobs that
 * were cancelled while they were held, and may have keys (R).  Nothing was done, and the one that
 * knows all is asked: about groups from now on, else this once.  No other says so. */
static bool is_for_another(struct due__share *h, struct due__share_part *part)
{
    const redisReply *r = part->answer;

    if (!part->plain || !part->claims || r->type != REDIS_REPLY_ARRAY || r->elements != 1 ||
        !due__reply_is_text(r->element[0]))
        return false;
    bool groups = strcmp(r->element[0]->str, "G") == 0;
    if (!groups && strcmp(r->element[0]->str, "R") != 0)
        return false;
    h->grouped = h->grouped || groups;
    part->whole = true;
    return true;
}

/* A part's answer is there.  0: it is over, or goes again; DUE_ESTORE; DUE_EFENCED, DUE_ELOST. */
static int judge(struct due__redis *s, struct due__share_lane *lane, struct due__share_part *part)
{
    enum due__reply_class class = due__share_classify(s, part->answer);
    int rc = 0;

    if (class != DUE__REPLY_FINE) {
        rc = refused(s, part, class);
    } else if (!is_for_another(s->share, part)) {
        rc = due__share_verdict(s, part->answer);
        if (rc == 0 && due__share_sane(s, part)) {
            part->over = true;
            /* Of the empty cancel, or of the puts, if those came after all. */
            part->voids = due__share_is_void(part);
            part->rc = part->voids ? DUE_ENOSPC : 0;
            lane->last = part->number;
            if (part->kind == DUE__SHARE_WORK && !part->claims)
                end_waits(s->share, part);
            due__link_wrote(s->link);
            return 0;
        }
        if (rc == 0) {
            due__link_refused(s->link, "its answer makes no sense");
            part->doubt = true;
            rc = DUE_ESTORE;
        }
    }
    due__share_forget(&part->answer, 1);
    return rc;
}

/* ---- The exchange ---------------------------------------------------------------------------- */

/* May any of it have been done, or be done yet? */
static bool is_begun(const struct due__share_lane *lane)
{
    for (size_t p = 0; p < lane->plan.parts; p++) {
        const struct due__share_part *part = &lane->part[p];
        if (part->in_air || part->doubt || part->answer != NULL || (part->over && part->rc == 0))
            return true;
    }
    return false;
}

/* One part, until it is over. */
static int run_part(struct due__redis *s, struct due__share_lane *lane, size_t p, int64_t until_ns)
{
    struct due__share_part *part = &lane->part[p];

    while (!part->over) {
        int rc = due__share_up(s, until_ns);
        if (rc == DUE_EDURABILITY && is_begun(lane))
            rc = 0;
        if (rc == 0 && part->answer == NULL)
            rc = send_part(s, lane, p, until_ns);
        if (rc == 0)
            rc = due__share_settle(s, until_ns);
        if (rc == 0)
            rc = judge(s, lane, part);
        if (rc != 0 && rc != DUE_ESTORE)
            return rc;
        if (rc != 0 && (part->doubt || until_ns <= due__mono_ns()))
            return DUE_EAGAIN; /* it goes again in the next call */
    }
    return 0;
}

/* All of them: what nobody holds, what is held, and the claim, which is the first part, last. */
static int run(struct due__redis *s, struct due__share_lane *lane, int64_t until_ns)
{
    bool claims = lane->plan.claim != NULL;
    int rc = 0;

    for (size_t p = claims; p < lane->plan.parts && rc == 0; p++)
        rc = run_part(s, lane, p, until_ns);
    return rc == 0 && claims ? run_part(s, lane, 0, until_ns) : rc;
}

/* A claim for any topic that got nothing, while something is due in one that it did not name, goes
 * once more for those that it was told.  Not one that was in doubt: what it had claimed may have
 * gone to others since, and then it would claim twice. */
static bool claims_again(struct due__redis *s, struct due__share_lane *lane)
{
    struct due__share *h = s->share;
    struct due__share_part *part = &lane->part[0];

    if (lane->plan.claim == NULL || !lane->any || part->rc != 0 || part->changes > 0 || part->doubt)
        return false;
    redisReply *const *word = part->answer->element;
    if (word[5]->integer == 0 || word[7]->integer > 0)
        return false;
    due__share_note_heads(h, word + 8, part->answer->elements - 8);
    due__share_forget(&part->answer, 1);
    part->over = part->doubt = false;
    lane->n_any = h->n_recent;
    memcpy(lane->any_topic, h->recent, sizeof lane->any_topic);
    return true;
}

/* An end for good that comes when some of it is done is said in the next call, since it would mean
 * that nothing is; @told: the caller knows that something may be. */
static int ended(struct due__redis *s, struct due__share_lane *lane, int rc, bool told)
{
    if (rc == DUE_ELOST)
        s->share->lost = true;
    if ((rc == DUE_EFENCED || rc == DUE_ELOST) && (told || !is_begun(lane))) {
        lane->state = DUE__SHARE_IDLE;
        return rc;
    }
    if (!is_begun(lane))
        return rc;
    lane->state = DUE__SHARE_DOUBT;
    return rc == DUE_ECLOSED ? rc : DUE_EINDOUBT;
}

int due__share_exchange(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                        int *results, const struct due_claim *claim, due_store_visit_claimed *visit,
                        void *ctx, struct due_exchange *answer, int64_t until_ns)
{
    struct due__share *h = s->share;
    struct due__share_lane *lane = &h->lane[due__share_is_work(changes, n, claim)];
    int rc = due__share_check(changes, n, claim);

    if (rc != 0)
        return rc;
    bool fresh = lane->state == DUE__SHARE_IDLE || lane->number != number;
    bool told = !fresh && lane->state == DUE__SHARE_DOUBT;
    /* A claim that names none would only ring another; one that cannot ask names none. */
    if (fresh && claim != NULL && claim->topics == NULL && h->n_recent == 0 &&
        due__share_up(s, until_ns) == 0)
        (void)due__share_read_heads(s, until_ns);
    if (fresh)
        begin(h, lane, number, claim);
    else if (lane->state == DUE__SHARE_DONE)
        repeat(lane);
    lane->plan.parts = lane->state == DUE__SHARE_IDLE ? 0 : lane->plan.parts;
    rc = find_topics(s, lane, changes, n, until_ns);
    if (rc != 0)
        return ended(s, lane, rc, told);
    for (int tries = 0; tries < TRIES; tries++) {
        due__share_make_plan(lane, changes, n, claim);
        rc = run(s, lane, until_ns);
        if (rc != 0 || tries + 1 == TRIES || !claims_again(s, lane))
            break;
    }
    if (rc != 0)
        return ended(s, lane, rc, told);
    rc = due__share_tell(s, lane, results, visit, ctx, answer, until_ns);
    if (rc == DUE_EINDOUBT) {
        lane->state = DUE__SHARE_DOUBT;
        return rc;
    }
    lane->state = is_begun(lane) ? DUE__SHARE_DONE : DUE__SHARE_IDLE;
    due__redis_count(s, 1, 0, 0);
    return rc;
}
