/* carry.c - what a request on a control socket asks for is carried out, by who owns the queue.
 *
 * Jobs are put into the queue if there is room now: nobody waits here for it.  Who asked is told
 * which of them are in, and comes again with the others.
 *
 * Threads  that of the socket
 */
#include "verbs/control.h"

#include <inttypes.h>
#include <unistd.h>

#include "due/metrics.h"

enum { UNANSWERED = 1 }; /* no result of a job */

/* ---- Jobs that are named, or all ------------------------------------------------------------- */

static void add_results(struct ctl_carrier *c, const int *results)
{
    char id[DUE_ID_TEXT];

    for (size_t i = 0; i < c->request->n; i++)
        ctl_buffer_text(c->answer, "{\"id\":\"%s\",\"result\":\"%s\"}\n",
                        due_id_format(c->request->ids[i], id), due_error_name(results[i]));
}

static int serve_ids(struct ctl_carrier *c, struct ctl_access *a)
{
    const struct ctl_request *r = c->request;
    int results[CTL_NAMED];
    int rc;

    switch (r->verb) {
    case CTL_ASK_CANCEL:
        rc = a->verbs->cancel(a, r->ids, r->n, results);
        break;
    case CTL_ASK_KICK:
        rc = a->verbs->kick(a, r->ids, r->n, results);
        break;
    case CTL_ASK_DROP:
        rc = a->verbs->drop(a, r->ids, r->n, results);
        break;
    default:
        rc = a->verbs->move(a, r->ids, r->n, r->at_ns, results);
        break;
    }
    if (rc == 0)
        add_results(c, results);
    return rc;
}

static int serve_all(struct ctl_carrier *c, struct ctl_access *a)
{
    const char *topic = c->request->has_topic ? c->request->topic : NULL;
    uint64_t count = 0;
    int rc;

    switch (c->request->verb) {
    case CTL_ASK_KICK_ALL:
        rc = a->verbs->kick_all(a, topic, &count);
        break;
    case CTL_ASK_DROP_ALL:
        rc = a->verbs->drop_all(a, topic, &count);
        break;
    case CTL_ASK_CLEAR:
        rc = a->verbs->clear(a, topic, &count);
        break;
    case CTL_ASK_PAUSE:
        rc = a->verbs->pause(a, topic);
        break;
    default:
        rc = a->verbs->resume(a, topic);
        break;
    }
    ctl_buffer_text(c->answer, "{\"count\":%" PRIu64 "}\n", count);
    return rc;
}

/* ---- Jobs that are put in -------------------------------------------------------------------- */

/* Those that come first have an answer each; of the others it is not known, or they are to be put
 * again: the error says. */
static int serve_put(struct ctl_carrier *c, struct ctl_access *a)
{
    struct ctl_request *r = c->request;
    due_id ids[CTL_ASKED] = { 0 };
    int results[CTL_ASKED];
    char id[DUE_ID_TEXT];
    const char *at = c->body;

    if (!c->takes_jobs)
        return DUE_ENOTSUP;
    for (size_t i = 0; i < r->jobs; i++) {
        results[i] = UNANSWERED;
        r->specs[i].data = r->specs[i].len > 0 ? at : NULL;
        at += r->specs[i].len;
    }
    a->waits_not = true;
    int rc = a->verbs->put(a, r->topic, r->specs, r->jobs, ids, results);
    for (size_t i = 0; i < r->jobs && results[i] != UNANSWERED; i++)
        ctl_buffer_text(c->answer, "{\"id\":\"%s\",\"result\":\"%s\"}\n", due_id_format(ids[i], id),
                        due_error_name(results[i]));
    return rc;
}

/* ---- What there is --------------------------------------------------------------------------- */

static int serve_stats(struct ctl_carrier *c)
{
    struct due_stats s;
    int rc = due_stats_read(c->queue, &s);

    if (rc != 0)
        return rc;
    const struct {
        const char *name;
        uint64_t value;
    } all[] = { { "waiting", s.waiting },
                { "ready", s.ready },
                { "reserved", s.leased },
                { "dead", s.dead },
                { "kept_back", s.kept_back },
                { "enqueued", s.enqueued },
                { "restored", s.restored },
                { "dequeued", s.dequeued },
                { "acked", s.acked },
                { "nacked", s.nacked },
                { "retried", s.retried },
                { "buried", s.buried },
                { "kicked", s.kicked },
                { "cancelled", s.cancelled },
                { "discarded", s.discarded },
                { "unsettled", s.unsettled },
                { "loading", (uint64_t)s.loading } };

    ctl_buffer_text(c->answer, "{\"queue\":\"%s\",\"pid\":%d,\"store\":\"%s\"", c->name,
                    (int)getpid(), due_error_name(s.store_state));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ctl_buffer_text(c->answer, ",\"%s\":%" PRIu64, all[i].name, all[i].value);
    ctl_buffer_text(c->answer, "}\n");
    return 0;
}

static int serve_metrics(struct ctl_carrier *c)
{
    struct ctl_buffer text = { 0 };
    int len = due_metrics_write(c->queue, NULL, 0);

    while (len >= 0 && (size_t)len >= text.room && text.room < CTL_ANSWER_MAX / 4) {
        if (!ctl_buffer_grow(&text, (size_t)len + 4096))
            return DUE_ENOMEM;
        len = due_metrics_write(c->queue, text.bytes, text.room);
    }
    if (len >= 0 && (size_t)len >= text.room)
        len = DUE_ELIMIT;
    if (len >= 0) {
        ctl_buffer_text(c->answer, "{\"metrics\":");
        ctl_dump_bytes(c->answer, text.bytes, (size_t)len);
        ctl_buffer_text(c->answer, "}\n");
    }
    ctl_buffer_free(&text);
    return len < 0 ? len : 0;
}

/* ---- A request ------------------------------------------------------------------------------- */

/* What is answered is stored, also in a queue whose changes nobody waits for; one that takes jobs
 * waits for those. */
static int serve_verb(struct ctl_carrier *c)
{
    struct ctl_access a;
    int rc;

    ctl_access_of(&a, c->queue);
    switch (c->request->verb) {
    case CTL_ASK_STATS:
        return serve_stats(c);
    case CTL_ASK_METRICS:
        return serve_metrics(c);
    case CTL_ASK_PUT:
        return serve_put(c, &a);
    default:
        rc = c->request->verb <= CTL_ASK_RESCHEDULE ? serve_ids(c, &a) : serve_all(c, &a);
        return rc == 0 ? due_flush(c->queue, CTL_REQUEST_NS) : rc;
    }
}

void ctl_carry(struct ctl_carrier *c)
{
    int rc = serve_verb(c);

    ctl_carry_end(c->answer, c->answer->failed ? DUE_ENOMEM : rc);
}

void ctl_carry_end(struct ctl_buffer *answer, int rc)
{
    ctl_buffer_text(answer, "{\"end\":\"%s\"}\n", due_error_name(rc));
}
