/* change.c - requests that change something.
 *
 * Jobs are put into the queue if there is room now: nobody waits here for it.  Who asked is told
 * which of them are in, and comes again with the others.
 */
#include "server/server.h"

#include <inttypes.h>

#include "os/atomic.h"
#include "server/verbs.h"

#define RESULT_MAX \
    96 /* bytes of what is said of a job: there is room for it before it is changed */

/* ---- Jobs that are named --------------------------------------------------------------------- */

static void add_result(struct due__ctl_buffer *b, due_id id, int rc)
{
    char text[DUE_ID_TEXT];

    due__ctl_buffer_text(b, "{\"id\":\"%s\",\"result\":\"%s\"}\n", due_id_format(id, text),
                         due_error_name(rc));
}

/* The program is shown what goes, and has its pointer. */
static int cancel_shown(struct due__ctl_carrier *c, due_id id)
{
    due_job job = { 0 };
    int rc = due_cancel(c->of->queue, id, &job);

    if (rc == 0)
        c->served->on_cancel(c->served->ctx, c->of->queue, &job);
    due_job_done(&job);
    return rc;
}

static int drop(struct due__ctl_carrier *c, due_id id)
{
    int rc = due__ctl_is_dead(c->of->queue, id, false);

    if (rc != 0)
        return rc;
    return c->served->on_cancel == NULL ? due_cancel(c->of->queue, id, NULL) : cancel_shown(c, id);
}

/* When it is to be due, on the queue's clock. */
static int64_t new_time(const struct due__ctl_carrier *c)
{
    const struct due__ctl_request *r = c->request;
    struct due__ctl_times now = due__ctl_times_now(c->of->queue);
    int64_t at_ns;

    if (r->delay_ns < 0)
        return due__ctl_times_to(now, r->at_ns);
    return __builtin_add_overflow(now.now_ns, r->delay_ns, &at_ns) ? DUE_FOREVER : at_ns;
}

static int change(struct due__ctl_carrier *c, due_id id, int64_t at_ns)
{
    switch (c->request->verb) {
    case DUE__CTL_CANCEL:
        return cancel_shown(c, id);
    case DUE__CTL_KICK:
        return due_kick(c->of->queue, id);
    case DUE__CTL_DROP:
        return drop(c, id);
    case DUE__CTL_PROMOTE:
        return due_promote(c->of->queue, id);
    default:
        return due_reschedule(c->of->queue, id, at_ns);
    }
}

/* One after another, until the queue or its store says no, or the socket is closed: a store that is
 * silent is waited for once, and not for each. */
static void change_each(struct due__ctl_carrier *c, int *results)
{
    const struct due__ctl_request *r = c->request;
    int64_t at_ns = r->verb == DUE__CTL_RESCHEDULE ? new_time(c) : 0;
    int over = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (over == 0 && due__load_seq(&c->served->stopping)) /* E1 */
            over = DUE_ECLOSED;
        results[i] = over != 0 ? over : change(c, r->ids[i], at_ns);
        if (results[i] != 0 && !due__ctl_is_of_job(results[i]))
            over = results[i];
    }
}

/* What is answered with DUE_OK is stored; or it is in doubt, and the answer says so. */
static int settle(struct due__ctl_carrier *c, int *results, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any = any || results[i] == 0;
    int rc = any ? due__ctl_carry_stored(c) : 0;
    for (size_t i = 0; i < n && rc != 0; i++) {
        if (results[i] == 0)
            results[i] = DUE_EINDOUBT;
    }
    return rc;
}

/* With a store many that are cancelled are one change, unless each is to be shown. */
int due__ctl_carry_ids(struct due__ctl_carrier *c)
{
    const struct due__ctl_request *r = c->request;
    int results[DUE__CTL_IDS];

    if (!due__ctl_buffer_grow(c->answer, r->n * RESULT_MAX))
        return DUE_ENOMEM;
    if (r->verb == DUE__CTL_CANCEL && c->served->on_cancel == NULL)
        (void)due_cancel_batch(c->of->queue, r->ids, r->n, results);
    else
        change_each(c, results);
    int rc = settle(c, results, r->n);
    for (size_t i = 0; i < r->n; i++)
        add_result(c->answer, r->ids[i], results[i]);
    return rc;
}

/* ---- All of a topic, or all ------------------------------------------------------------------ */

int due__ctl_carry_all(struct due__ctl_carrier *c)
{
    const char *topic = c->request->has_topic ? c->request->topic : NULL;
    due_queue *q = c->of->queue;
    uint64_t count = 0;
    int rc;

    switch (c->request->verb) {
    case DUE__CTL_KICK_ALL:
        rc = due__ctl_count_of_topic(q, topic, &count, due_kick_all);
        break;
    case DUE__CTL_DROP_ALL:
        rc = due__ctl_count_of_topic(q, topic, &count, due_clear_dead);
        break;
    case DUE__CTL_CLEAR:
        rc = due__ctl_count_of_topic(q, topic, &count, due_clear);
        break;
    case DUE__CTL_PAUSE:
        rc = due__ctl_of_topic(q, topic, due_pause);
        break;
    default:
        rc = due__ctl_of_topic(q, topic, due_resume);
        break;
    }
    due__ctl_buffer_text(c->answer, "{\"count\":%" PRIu64 "}\n", count);
    return rc == 0 ? due__ctl_carry_stored(c) : rc;
}

/* ---- Jobs that are put in -------------------------------------------------------------------- */

/* Those that come first have an answer each; of the others it is not known, or they are to be put
 * again: the error says. */
int due__ctl_carry_put(struct due__ctl_carrier *c)
{
    struct due__ctl_times now = due__ctl_times_now(c->of->queue);
    struct due__ctl_request *r = c->request;
    due_id ids[DUE__CTL_JOBS] = { 0 };
    int results[DUE__CTL_JOBS];
    const char *at = c->body;
    size_t done = 0;

    if (!due__ctl_buffer_grow(c->answer, r->jobs * RESULT_MAX))
        return DUE_ENOMEM;
    for (size_t i = 0; i < r->jobs; i++) {
        due_spec *spec = &r->specs[i];

        spec->data = spec->len > 0 ? at : NULL;
        at += spec->len;
        if (spec->flags & DUE_SPEC_AT)
            spec->at_ns = due__ctl_times_to(now, spec->at_ns);
    }
    int rc = due__ctl_put(c->of->queue, r->topic, r->specs, r->jobs, 0, ids, results, &done);
    int stored = settle(c, results, done);
    for (size_t i = 0; i < done; i++)
        add_result(c->answer, ids[i], results[i]);
    return stored != 0 ? stored : rc;
}
