/* talk.c - commands of a shared queue out, and their answers in.
 *
 * A call may end before all answers are there.  Those of an exchange are waited for by the next
 * call, whatever it is; those of anything else nobody wants any more, and they are dropped as they
 * come.
 */
#include <string.h>

#include "redis/share/share.h"

void due__share_forget(redisReply **got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (got[i] != NULL)
            freeReplyObject(got[i]);
        got[i] = NULL;
    }
}

void due__share_cut(struct due__redis *s)
{
    struct due__share *h = s->share;

    if (h->air != NULL) {
        h->air->in_air = false;
        h->air->doubt = true;
    }
    h->air = NULL;
    h->stale = 0;
    h->loaded = false;
    due__flight_end(s);
}

/* One answer.  0; DUE_EAGAIN; DUE_ESTORE. */
static int receive(struct due__redis *s, redisReply **reply, int64_t until_ns)
{
    int rc = due__link_reply(s->link, reply, until_ns);

    if (rc != 0 && rc != DUE_EAGAIN) {
        due__share_cut(s);
        return DUE_ESTORE;
    }
    return rc;
}

int due__share_settle(struct due__redis *s, int64_t until_ns)
{
    struct due__share *h = s->share;
    redisReply *reply = NULL;

    for (; h->stale > 0; h->stale--) {
        int rc = receive(s, &reply, until_ns);
        if (rc != 0)
            return rc;
        freeReplyObject(reply);
    }
    if (h->air == NULL)
        return 0;
    int rc = receive(s, &reply, until_ns);
    if (rc != 0)
        return rc;
    h->air->answer = reply;
    h->air->in_air = false;
    h->air = NULL;
    return 0;
}

int due__share_talk(struct due__redis *s, size_t n, redisReply **got, int64_t until_ns)
{
    int rc = due__link_send(s->link, until_ns);

    memset(got, 0, n * sizeof *got);
    if (rc == DUE_ENOMEM)
        return rc;
    if (rc != 0) {
        due__share_cut(s);
        return DUE_ESTORE;
    }
    for (size_t i = 0; i < n; i++) {
        rc = receive(s, &got[i], until_ns);
        if (rc == 0)
            continue;
        due__share_forget(got, i);
        if (rc == DUE_EAGAIN)
            s->share->stale = n - i;
        return rc;
    }
    return 0;
}

/* ---- Being there ----------------------------------------------------------------------------- */

#define SCRIPTS_MOST 16 /* loaded at once */

static int load(struct due__redis *s, const struct due__script *const *all, size_t n,
                int64_t until_ns)
{
    redisReply *got[SCRIPTS_MOST];

    for (size_t i = 0; i < n; i++) {
        due__link_command(s->link, 3);
        due__link_text(s->link, "SCRIPT");
        due__link_text(s->link, "LOAD");
        due__link_bytes(s->link, all[i]->text, all[i]->len);
    }
    int rc = due__share_talk(s, n, got, until_ns);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++) {
        enum due__reply_class class = due__share_classify(s, got[i]);
        size_t len = sizeof all[i]->sha - 1;

        if (class != DUE__REPLY_FINE)
            rc = due__redis_error(s, class);
        else if (!due__reply_is_text(got[i]) || (size_t)got[i]->len != len ||
                 memcmp(got[i]->str, all[i]->sha, len) != 0)
            rc = DUE_ECORRUPT;
    }
    due__share_forget(got, n);
    return rc;
}

/* Those of a queue that is ordered by priority come besides, once it is known to be one. */
int due__share_load_scripts(struct due__redis *s, int64_t until_ns)
{
    static const struct due__script *const all[] = {
        &due__script_put,        &due__script_work, &due__script_edit,  &due__script_put_plain,
        &due__script_work_plain, &due__script_join, &due__script_leave, &due__script_beat,
        &due__script_census,     &due__script_page, &due__script_key,   &due__script_aside
    };
    static const struct due__script *const ranks[] = {
        &due__script_put_by_rank,        &due__script_work_by_rank, &due__script_put_plain_by_rank,
        &due__script_work_plain_by_rank, &due__script_edit_by_rank, &due__script_aside_by_rank
    };
    struct due__share *h = s->share;
    int rc = 0;

    if (!h->loaded) {
        rc = load(s, all, sizeof all / sizeof all[0], until_ns);
        h->loaded = rc == 0;
        h->loaded_ranks = false;
    }
    if (rc == 0 && h->by_rank && !h->loaded_ranks) {
        rc = load(s, ranks, sizeof ranks / sizeof ranks[0], until_ns);
        h->loaded_ranks = rc == 0;
    }
    return rc;
}

/* What is to be done on a connection that is up, until nothing is in the way. */
static int be_ready(struct due__redis *s, int64_t until_ns)
{
    if (s->air.kind != DUE__FLIGHT_NONE || s->probe_due) {
        int rc = due__redis_probe(s, false, until_ns);
        if (rc != 0)
            return rc;
    }
    int rc = due__share_settle(s, until_ns);
    return rc == 0 ? due__share_load_scripts(s, until_ns) : rc;
}

int due__share_up(struct due__redis *s, int64_t until_ns)
{
    if (s->fenced)
        return DUE_EFENCED;
    if (!s->share->joined || s->closed)
        return DUE_ECLOSED;
    if (s->share->lost)
        return DUE_ELOST;
    for (;;) {
        bool fresh = false;

        if (!due__link_is_up(s->link))
            due__share_cut(s);
        int rc = due__link_up(s->link, &fresh, until_ns);
        if (rc != 0)
            return rc;
        if (fresh) {
            due__share_cut(s);
            s->probe_due = true;
        }
        rc = be_ready(s, until_ns);
        s->armed = rc == 0;
        if (rc == 0)
            return s->below ? DUE_EDURABILITY : 0;
        if (rc != DUE_ESTORE)
            return rc;
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}
