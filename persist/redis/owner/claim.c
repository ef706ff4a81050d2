/* claim.c - becoming the owner, staying it, coming back after a lost connection.
 *
 * Three keys say who the owner is.  `fence` names the last opening that took over, and is written
 * by a takeover only: each batch is guarded by a watch on it.  `owner` says who that is, and
 * expires with the lease.  `meta` tells one life of the queue's keys from another.
 *
 * After a lost connection the fence tells whether we still are the owner, and our number in
 * `writers` whether the batch in doubt landed.  A number that is lower than what had landed, or
 * keys that are gone, mean that the server has lost data: then we take over what is left, and the
 * queue puts everything again.  An older fence under our number is the same: an older copy of the
 * data.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/owner/owner.h"

#define LEASE_SLACK DUE_S(1)
#define META        18 /* names and values */
#define META_LATE   2  /* of them that of the start with which half a batch may land */
#define META_WRITER 6  /* and those of the writer and the server */
#define META_MODE   8  /* and the mode of a queue that is not owned yet */

enum judgement {
    JUDGED_MINE,  /* all is as it was */
    JUDGED_GONE,  /* the server has lost data; nobody else owns what is left */
    JUDGED_TAKEN, /* somebody else is the owner, for good */
    JUDGED_RIVAL  /* the lease of an earlier owner runs in an older copy of the data */
};

/* What EXEC or a script answered.  1: done; 0: the guard held it back, nothing was done; or an
 * error: DUE_ESTORE, and the link is down, if it makes no sense. */
static int claimed(struct due__redis *s)
{
    const redisReply *r = s->air.kept[0];
    enum due__reply_class class = s->air.worst;
    bool script = s->air.tag == 1;

    if (script && r->type == REDIS_REPLY_INTEGER)
        return r->integer == 1;
    if (!script && r->type == REDIS_REPLY_NIL)
        return 0;
    if (script ? r->type != REDIS_REPLY_ERROR : due__flight_is_odd(s, r)) {
        due__link_down(s->link);
        return DUE_ESTORE;
    }
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
        if (class == DUE__REPLY_FINE)
            class = due__redis_classify(s, r->element[i]);
    if (r->type == REDIS_REPLY_ARRAY && class == DUE__REPLY_FINE)
        return 1;
    if (class == DUE__REPLY_FINE || class == DUE__REPLY_ABORTED)
        class = r->type == REDIS_REPLY_ERROR && strstr(r->str, "OOM") != NULL
                    ? DUE__REPLY_FULL
                    : due__redis_classify(s, r);
    if (script && class == DUE__REPLY_DENIED)
        class = DUE__REPLY_FULL; /* scripts are forbidden here: it is full all the same */
    return due__redis_error(s, class);
}

/* ---- Taking over ----------------------------------------------------------------------------- */

/* What meta is to hold: all of it, or only what changes, and `late` if that is known. */
static size_t meta_fields(struct due__redis *s, const struct due__redis_survey *was,
                          const char *fields[META], char writer[24])
{
    bool owner = was->mode == DUE__MODE_OWNER;

    snprintf(writer, 24, "%" PRIu64, s->writer > was->last_writer ? s->writer : was->last_writer);
    const char *const all[META] = { "late",         s->server,
                                    "writer",       writer,
                                    "server",       due__redis_server(s),
                                    "mode",         owner ? "owner" : "owning",
                                    "format",       "1",
                                    "clock",        "realtime",
                                    "least_reader", "1",
                                    "partitions",   "1",
                                    "incarnation",  s->incarnation };
    size_t from = s->late && s->server[0] != '\0' ? 0 : META_LATE;
    size_t end = !was->meta ? META : owner ? META_WRITER : META_MODE;
    memcpy(fields, all + from, (end - from) * sizeof *all);
    return end - from;
}

/* Answers how many commands there are between MULTI and EXEC. */
static size_t ask_claim(struct due__redis *s, const struct due__redis_survey *was,
                        const char *const *meta, size_t n_meta)
{
    size_t stale = was->stale_writers;

    due__redis_bare(s, "MULTI");
    due__redis_word(s, s->keys.fence, 1, "SET"); /* first: see convert.c in ../share */
    due__link_text(s->link, s->fence);
    due__redis_word(s, s->keys.meta, n_meta, "HSET");
    for (size_t i = 0; i < n_meta; i++)
        due__link_text(s->link, meta[i]);
    due__redis_word(s, s->keys.owner, 3, "SET");
    due__link_text(s->link, s->owner);
    due__link_text(s->link, "PX");
    due__link_number(s->link, s->set.lease_ns / 1000000);
    if (stale > 0)
        due__redis_word(s, s->keys.writers, stale, "HDEL");
    for (size_t i = 0; i < stale; i++)
        due__link_number(s->link, (int64_t)was->stale_writer[i]);
    due__redis_word(s, s->keys.writers, 2, "HSET");
    due__link_number(s->link, (int64_t)s->writer);
    due__link_number(s->link, (int64_t)s->landed);
    due__redis_bare(s, "EXEC");
    due__redis_guard(s);
    return stale > 0 ? 5 : 4;
}

/* Write that we are the owner, if all is still as @was says.  0; 1: it is not; or an error. */
static int claim(struct due__redis *s, const struct due__redis_survey *was, int64_t until_ns)
{
    const char *meta[META];
    char writer[24];
    size_t n_meta = meta_fields(s, was, meta, writer);
    int rc = DUE_ENOSPC;

    for (int script = 0; script < 2 && rc == DUE_ENOSPC; script++) {
        size_t queued = 0;
        rc = due__flight_ready(s, DUE__FLIGHT_CLAIM, (uint64_t)script, until_ns);
        if (rc == 0 && script == 0)
            queued = ask_claim(s, was, meta, n_meta);
        else if (rc == 0)
            due__script_claim(s, was, meta, n_meta);
        if (rc == 0)
            rc = due__flight_start(s, DUE__FLIGHT_CLAIM, (uint64_t)script,
                                   script == 0 ? 1 + queued : 0, 3, until_ns);
        if (rc >= 0)
            rc = due__flight_land(s, until_ns);
        if (rc != 0)
            return rc;
        rc = claimed(s);
        due__redis_guarded(s, 1);
        s->held_ns = rc == 1 && s->armed ? s->air.sent_ns + s->set.lease_ns : s->held_ns;
        due__flight_end(s);
    }
    return rc < 0 ? rc : rc == 0 || !s->armed;
}

/* Whether this library can use what is there. */
static int examine(struct due__redis *s, const struct due__redis_survey *w)
{
    if (w->last_writer >= (UINT64_C(1) << 48) - 1) {
        due__redis_say(s, "", "the stored queue's counter of writers makes no sense");
        return DUE_ECORRUPT;
    }
    if (!w->meta)
        return 0;
    int known = w->mode == DUE__MODE_OWNER ? DUE__REDIS_FORMAT : DUE__REDIS_SHARED;
    if (w->mode == DUE__MODE_UNKNOWN) {
        due__redis_say(s, "", "the stored queue is neither owned nor shared, but of another kind");
        return DUE_ENOTSUP;
    }
    if (w->least_reader > known) {
        due__redis_say(s, "use the version of libdue that wrote it, or a newer one",
                       "the stored queue has format %" PRId64 ", for readers from %" PRId64
                       " on; this is %d",
                       w->format, w->least_reader, known);
        return DUE_EVERSION;
    }
    if (w->partitions != 1) {
        due__redis_say(s, "", "the stored queue is in several partitions");
        return DUE_ENOTSUP;
    }
    return 0;
}

static void be_writer(struct due__redis *s, const struct due__redis_survey *w)
{
    uint64_t ms = (uint64_t)(w->server_us / 1000);

    s->writer = w->last_writer + 1 > ms ? w->last_writer + 1 : ms;
    if (s->writer < s->how.writer_min)
        s->writer = s->how.writer_min;
    snprintf(s->fence, sizeof s->fence, "%" PRIu64 ":%s", s->writer, s->nonce);
    if (w->meta)
        memcpy(s->incarnation, w->incarnation, sizeof s->incarnation);
}

/* Are there processes that share it?  Who comes to share it too need not take it over then, nor if
 * they have only gone. */
static bool meets_sharers(struct due__redis *s, const struct due__redis_survey *w)
{
    bool lives = due__redis_is_shared(w);
    bool rests = w->mode == DUE__MODE_SHARED && strncmp(w->fence, "s:", 2) == 0 && !w->owned;

    s->met_sharers = lives || (s->joining && rests);
    return s->met_sharers;
}

/* One attempt.  0: we are the owner; 1: once more. */
static int try_take_over(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_survey w;
    bool fresh = false;
    int rc = due__redis_connect(s, &fresh, until_ns);

    if (rc != 0)
        return rc;
    if (fresh)
        due__flight_end(s);
    rc = due__redis_survey(s, true, &w, until_ns);
    if (rc == 0)
        rc = examine(s, &w);
    if (rc != 0)
        return rc == DUE_ESTORE ? 1 : rc;
    if (meets_sharers(s, &w) && s->joining)
        return DUE_EBUSY;
    /* A claim of ours can have landed although its answer was lost. */
    if (w.owned && !w.ours && due__owner_life(w.owner) != DUE__OWNER_DEAD) {
        rc = due__redis_await_owner(s, &w, until_ns);
        return rc == 0 ? 1 : rc;
    }
    s->mode = w.mode;
    be_writer(s, &w);
    due__redis_suspect(s, &w);
    s->server_ns = w.server_us * 1000;
    rc = claim(s, &w, until_ns);
    return rc == DUE_ESTORE ? 1 : rc;
}

int due__redis_take_over(struct due__redis *s, int64_t until_ns)
{
    int rc = 1;

    s->awaited[0] = '\0';
    while (rc == 1) {
        rc = try_take_over(s, until_ns);
        if (rc == 1 && until_ns <= due__mono_ns())
            rc = DUE_EAGAIN;
    }
    if (rc == DUE_EAGAIN) /* who was awaited has it, as far as is known */
        rc = s->awaited[0] != '\0' ? DUE_EBUSY : due__redis_unreached(s);
    return rc;
}

/* ---- Coming back ----------------------------------------------------------------------------- */

static enum judgement judge_rival(struct due__redis *s, const struct due__redis_survey *w)
{
    int64_t now = due__boot_ns();

    if (!w->owned || due__owner_life(w->owner) == DUE__OWNER_DEAD)
        return JUDGED_GONE;
    if (s->rival_ns == 0)
        s->rival_ns = now + LEASE_SLACK +
                      (w->owner_ms >= 0 && w->owner_ms < INT64_MAX / 4000000 ? DUE_MS(w->owner_ms)
                                                                             : s->set.lease_ns);
    /* It is renewed: somebody lives with it, whatever its number. */
    return now < s->rival_ns ? JUDGED_RIVAL : JUDGED_TAKEN;
}

static enum judgement judge(struct due__redis *s, const struct due__redis_survey *w)
{
    if (w->fenced && w->ours) {
        if (!w->meta || !w->same || !w->numbered || w->number < s->landed)
            return s->rewrite && w->meta && w->same ? JUDGED_MINE : JUDGED_GONE;
        return w->number > s->sent ? JUDGED_TAKEN : JUDGED_MINE;
    }
    if (!w->fenced)
        return (!w->meta || w->same) && w->last_writer <= s->writer ? JUDGED_GONE : JUDGED_TAKEN;
    /* A fence of those who share the queue has no writer: they came before us, or later. */
    bool shared = strncmp(w->fence, "s:", 2) == 0;
    bool later = shared ? w->last_writer > s->writer : w->fence_writer >= s->writer;
    return later ? JUDGED_TAKEN : judge_rival(s, w);
}

/* What the number on the server says of the batch in doubt. */
static void settle_doubt(struct due__redis *s, const struct due__redis_survey *w)
{
    if (s->rewrite) /* it says nothing then */
        return;
    if (w->numbered && w->number > s->landed && w->number <= s->sent) {
        s->landed = w->number;
        due__redis_count(s, 1, 0, 0);
        s->writes++;
        if (s->set.wait_replicas > 0)
            s->unconfirmed = w->number;
    }
    s->doubt = 0;
}

/* It is the queue that logs it, as it does for every store.  What had landed without its knowledge,
 * while another call waited for its own answer, is sent again: to the queue it was in doubt. */
void due__redis_note_loss(struct due__redis *s)
{
    s->lost = true;
    s->landed = s->told;
    s->counted = s->told < s->counted ? s->told : s->counted;
    s->doubt = 0;
    s->unconfirmed = 0;
    s->has_entries = s->has_dead = s->lossy = true;
    due__redis_topics_forget(s);
    s->losses++;
}

/* Take what is left, under the same name as before.  0: done; 1: look again. */
static int retake(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_survey w;
    int rc = due__redis_survey(s, true, &w, until_ns);

    if (rc == 0)
        rc = examine(s, &w);
    if (rc != 0)
        return rc;
    enum judgement now = judge(s, &w);
    if (now == JUDGED_RIVAL || now == JUDGED_TAKEN)
        return 1;
    if (now == JUDGED_GONE && !s->lost)
        due__redis_note_loss(s);
    /* The claim of an earlier call can have landed. */
    if (now == JUDGED_MINE && !s->rewrite && w.owned && strcmp(w.owner, s->owner) == 0)
        return 1;
    if (w.meta)
        memcpy(s->incarnation, w.incarnation, sizeof s->incarnation);
    s->mode = w.mode;
    rc = claim(s, &w, until_ns);
    if (rc == 0)
        s->rewrite = false;
    return rc;
}

/* The same, to be gone on with in the next call if time is up. */
static int retake_in_turns(struct due__redis *s, int64_t until_ns)
{
    int rc = retake(s, until_ns);

    s->retaking = rc == DUE_EAGAIN;
    return rc;
}

static int wait_for_rival(struct due__redis *s, int64_t until_ns)
{
    int64_t now = due__mono_ns();
    int64_t left = s->rival_ns - due__boot_ns();

    bool enough = left < until_ns - now;
    int rc = due__link_pause(s->link, enough ? now + left : until_ns);

    return rc == 0 && enough ? 1 : DUE_EAGAIN;
}

/* Find out where we are, with a connection that is up.  0: the guard is armed; 1: look again. */
static int greet(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_survey w;

    if (s->retaking)
        return retake_in_turns(s, until_ns);
    int rc = due__redis_survey(s, false, &w, until_ns);
    if (rc != 0)
        return rc;
    switch (judge(s, &w)) {
    case JUDGED_MINE:
        settle_doubt(s, &w);
        if (s->mode == DUE__MODE_OWNER && w.mode != DUE__MODE_OWNER) {
            due__redis_note_loss(s); /* of when it was not: a copy of the data from then, */
            s->mode = w.mode;        /* and who says so makes it so again */
        }
        s->rival_ns = 0;
        s->armed = !s->rewrite;
        return s->rewrite ? retake_in_turns(s, until_ns) : 0;
    case JUDGED_GONE:
        due__redis_note_loss(s);
        return retake_in_turns(s, until_ns);
    case JUDGED_RIVAL:
        return wait_for_rival(s, until_ns);
    default:
        settle_doubt(s, &w);
        s->fenced = true;
        return DUE_EFENCED;
    }
}

/* After the lease may have ended, somebody can have taken over unseen: look now and then. */
bool due__redis_lease_in_doubt(const struct due__redis *s)
{
    int64_t now = due__boot_ns();

    return now > s->held_ns && now > s->checked_ns + s->set.lease_ns / 4;
}

int due__redis_up(struct due__redis *s, int64_t until_ns)
{
    if (s->fenced)
        return DUE_EFENCED;
    if (!s->open || s->closed)
        return DUE_ECLOSED;
    for (;;) {
        bool fresh = false;
        int rc = due__link_up(s->link, &fresh, until_ns);

        if (rc != 0)
            return rc;
        if (fresh) {
            due__flight_end(s);
            s->armed = false;
            s->probe_due = true;
        }
        if (!s->armed || due__redis_lease_in_doubt(s))
            rc = greet(s, until_ns);
        if (rc == 0 && s->probe_due)
            rc = due__redis_probe(s, false, until_ns);
        if (rc == 0 && !s->armed) /* it was another start of the server */
            rc = 1;
        if (rc == 0)
            return s->below ? DUE_EDURABILITY : 0;
        if (rc != DUE_ESTORE && rc != 1)
            return rc;
        if (rc == 1 && until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}

/* ---- Staying, leaving ------------------------------------------------------------------------ */

static int ask_renew(struct due__redis *s, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_RENEW, 0, until_ns);

    if (rc == 0) {
        /* No transaction, and PEXPIRE rather than SET: a full server refuses those.  If the fence
         * still is ours behind it, the key that was renewed was ours too. */
        due__redis_word(s, s->keys.owner, 1, "PEXPIRE");
        due__link_number(s->link, s->set.lease_ns / 1000000);
        due__redis_word(s, s->keys.fence, 0, "GET");
        rc = due__flight_start(s, DUE__FLIGHT_RENEW, 0, 0, 2, until_ns);
    }
    return rc < 0 ? rc : due__flight_land(s, until_ns);
}

/* 0: done; 1: the key had expired; DUE_ESTORE: look again. */
static int renewed(struct due__redis *s)
{
    const redisReply *set = s->air.kept[0];
    enum due__reply_class worst = due__flight_worst(s);
    int rc = 0;

    if (worst != DUE__REPLY_FINE)
        rc = due__redis_error(s, worst);
    else if (!due__redis_is_our_fence(s, s->air.kept[1]))
        rc = DUE_ESTORE;
    else if (set->type == REDIS_REPLY_INTEGER && set->integer == 1)
        s->held_ns = s->air.sent_ns + s->set.lease_ns;
    else
        rc = 1;
    if ((rc == 0 || rc == 1) && s->sent <= s->landed) /* else a batch tells */
        due__link_wrote(s->link);
    if (rc == 0 || rc == 1)
        s->checked_ns = s->air.sent_ns;
    else if (rc == DUE_ESTORE)
        s->armed = false;
    due__flight_end(s);
    return rc;
}

int due__redis_renew(struct due__redis *s, int64_t *held_ns, int64_t until_ns)
{
    int below = 0;

    if (due__boot_ns() >= s->probed_ns + DUE__REDIS_PROBE_NS)
        s->probe_due = true;
    for (;;) {
        int rc = due__redis_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return rc;
        below = rc;
        rc = ask_renew(s, until_ns);
        if (rc == 0)
            rc = renewed(s);
        if (rc == 1)
            rc = retake_in_turns(s, until_ns);
        if (rc == 0) {
            *held_ns = s->held_ns;
            return below;
        }
        if (rc != DUE_ESTORE && rc != 1)
            return rc;
        s->armed = false;
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}

static int ask_hand_over(struct due__redis *s, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_CLOSE, 0, until_ns);

    if (rc == 0) {
        due__redis_bare(s, "MULTI");
        due__redis_word(s, s->keys.owner, 0, "DEL");
        if (!s->unsure) {
            due__redis_word(s, s->keys.meta, 1, "HDEL");
            due__link_text(s->link, "server");
        }
        due__redis_bare(s, "EXEC");
        s->armed = false;
        rc = due__flight_start(s, DUE__FLIGHT_CLOSE, 0, 2u + !s->unsure, 1, until_ns);
    }
    return rc < 0 ? rc : due__flight_land(s, until_ns);
}

/* A guard may hold it back that is broken by what we did ourselves: a script writes the number
 * under it.  Then it is set anew, unless somebody else has the queue by now.  False: it did not. */
static bool is_unguarded(struct due__redis *s)
{
    if (s->air.kept[0]->type != REDIS_REPLY_NIL)
        return false;
    due__flight_end(s);
    return true;
}

/* Who closes has interrupted the call before this one.  If that ended by itself, the interruption
 * is heard here, and means nothing as long as there is an answer to be waited for. */
int due__redis_hand_over(struct due__redis *s, int64_t until_ns)
{
    bool again;
    int rc;

    do {
        rc = s->air.kind == DUE__FLIGHT_CLOSE ? 0 : due__redis_up(s, until_ns);
        if (rc == 0 || rc == DUE_EDURABILITY)
            rc = ask_hand_over(s, until_ns);
        again = rc == 0 ? is_unguarded(s) : rc == DUE_EAGAIN && s->air.kind != DUE__FLIGHT_NONE;
    } while (again && due__mono_ns() < until_ns);
    if (rc != 0 || again)
        return rc != 0 ? rc : DUE_ESTORE;
    const redisReply *exec = s->air.kept[0];
    bool done = exec->type == REDIS_REPLY_ARRAY && !due__flight_is_odd(s, exec);
    enum due__reply_class worst = due__flight_worst(s);
    if (worst != DUE__REPLY_FINE)
        rc = due__redis_error(s, worst);
    due__flight_end(s);
    return rc != 0 || done ? rc : DUE_ESTORE;
}
