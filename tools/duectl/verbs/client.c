/* client.c - a queue that is changed by its owner, who is asked on its control socket. */
#include "verbs/verbs.h"

#include <poll.h>
#include <string.h>

#include "inspect/owner.h"

#define ROOM_MS 100 /* until an owner that had no room is asked again */

/* ---- The verbs of a queue that is asked for -------------------------------------------------- */

/* {"id":"ff00...","result":"DUE_OK"} */
struct result {
    due_id id;
    int rc;
    bool has_id, has_rc;
};

static bool take_result_field(void *ctx, struct due__ctl_json *j, const char *name, size_t len)
{
    struct result *r = ctx;
    char id[DUE_ID_TEXT] = "";
    char *text;
    size_t n;

    if (due__ctl_is_word("id", name, len)) {
        if (!due__ctl_json_string(j, &text, &n) || n != sizeof id - 1)
            return false;
        memcpy(id, text, n);
        r->has_id = due_id_parse(id, &r->id) == 0;
        return r->has_id;
    }
    if (due__ctl_is_word("result", name, len)) {
        r->has_rc = due__ctl_json_string(j, &text, &n) && due__ctl_error_of(text, n, &r->rc);
        return r->has_rc;
    }
    return ctl_owner_pass(j);
}

static bool read_result(struct result *r, char *line, size_t len)
{
    *r = (struct result){ .rc = 0 };
    return ctl_owner_line(line, len, take_result_field, r) && r->has_id && r->has_rc;
}

struct results {
    const struct due__ctl_request *request;
    int *results;
    size_t n;
};

/* In the order of the request. */
static bool take_result(void *ctx, char *line, size_t len)
{
    struct results *r = ctx;
    struct result one;

    if (r->n == r->request->n || !read_result(&one, line, len) ||
        !due_id_equal(one.id, r->request->ids[r->n]))
        return false;
    r->results[r->n++] = one.rc;
    return true;
}

static int ask_ids(struct ctl_access *a, enum due__ctl_verb verb, const due_id *ids, size_t n,
                   int64_t at_ns, int *results)
{
    struct due__ctl_request request;
    struct results got = { .request = &request, .results = results };

    ctl_owner_begin(&request, a->look, verb);
    request.at_ns = at_ns;
    request.n = n;
    memcpy(request.ids, ids, n * sizeof *ids);
    int rc = ctl_owner_ask(a->look->control, &request, take_result, &got);
    return rc == 0 && got.n < n ? ctl_owner_senseless(a->look->control) : rc;
}

static int asked_cancel(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, DUE__CTL_CANCEL, ids, n, -1, results);
}

static int asked_kick(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, DUE__CTL_KICK, ids, n, -1, results);
}

static int asked_drop(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, DUE__CTL_DROP, ids, n, -1, results);
}

static int asked_promote(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, DUE__CTL_PROMOTE, ids, n, -1, results);
}

static int asked_move(struct ctl_access *a, const due_id *ids, size_t n, int64_t at_ns,
                      int *results)
{
    return ask_ids(a, DUE__CTL_RESCHEDULE, ids, n, at_ns, results);
}

/* {"count":3} */
struct count {
    uint64_t *to;
    bool told;
};

static bool take_count_field(void *ctx, struct due__ctl_json *j, const char *name, size_t len)
{
    struct count *c = ctx;
    int64_t value;

    if (!due__ctl_is_word("count", name, len))
        return ctl_owner_pass(j);
    c->told = due__ctl_json_number(j, DUE_FOREVER, &value);
    *c->to = (uint64_t)value;
    return c->told;
}

static bool take_count(void *ctx, char *line, size_t len)
{
    struct count c = { .to = ctx };

    return ctl_owner_line(line, len, take_count_field, &c) && c.told;
}

static int ask_all(struct ctl_access *a, enum due__ctl_verb verb, const char *topic,
                   uint64_t *count)
{
    struct due__ctl_request request;

    ctl_owner_begin(&request, a->look, verb);
    due__ctl_request_of_topic(&request, topic);
    return ctl_owner_ask(a->look->control, &request, take_count, count);
}

static int asked_kick_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, DUE__CTL_KICK_ALL, topic, count);
}

static int asked_drop_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, DUE__CTL_DROP_ALL, topic, count);
}

static int asked_clear(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, DUE__CTL_CLEAR, topic, count);
}

static int asked_pause(struct ctl_access *a, const char *topic)
{
    uint64_t count;

    return ask_all(a, DUE__CTL_PAUSE, topic, &count);
}

static int asked_resume(struct ctl_access *a, const char *topic)
{
    uint64_t count;

    return ask_all(a, DUE__CTL_RESUME, topic, &count);
}

/* ---- Jobs that are put in -------------------------------------------------------------------- */

struct put_answers {
    due_id *ids;
    int *results;
    size_t n, most;
};

/* The id is its own, or that of the one that has its key. */
static bool take_put(void *ctx, char *line, size_t len)
{
    struct put_answers *p = ctx;
    struct result one;

    if (p->n == p->most || !read_result(&one, line, len))
        return false;
    p->ids[p->n] = one.id;
    p->results[p->n++] = one.rc;
    return true;
}

/* As many as go into one request: one at least. */
static size_t some_of(const due_spec *specs, size_t n)
{
    size_t bytes = specs[0].len;
    size_t some = 1;

    while (some < n && some < DUE__CTL_JOBS && bytes + specs[some].len <= CTL_PUT_BYTES)
        bytes += specs[some++].len;
    return some;
}

/* The answers are counted in @p, also where it fails. */
static int ask_put(struct ctl_access *a, const char *topic, const due_spec *specs, size_t n,
                   struct put_answers *p)
{
    struct due__ctl_request request;

    ctl_owner_begin(&request, a->look, DUE__CTL_PUT);
    due__ctl_request_of_topic(&request, topic);
    request.jobs = n;
    memcpy(request.specs, specs, n * sizeof *specs);
    p->most = p->n + n;
    int rc = ctl_owner_ask(a->look->control, &request, take_put, p);
    return rc == 0 && p->n < p->most ? ctl_owner_senseless(a->look->control) : rc;
}

/* The owner has no room now.  False: it is to stop. */
static bool wait_for_room(struct ctl_access *a)
{
    struct pollfd stop = { .fd = a->stop_fd > 0 ? a->stop_fd : -1, .events = POLLIN };

    return poll(&stop, 1, ROOM_MS) <= 0;
}

/* Who waits for room is here: the owner is asked again. */
static int asked_put(struct ctl_access *a, const char *topic, due_spec *specs, size_t n,
                     due_id *ids, int *results)
{
    struct put_answers p = { .ids = ids, .results = results };

    while (p.n < n) {
        int rc =
            ask_put(a, topic == NULL ? "" : topic, specs + p.n, some_of(specs + p.n, n - p.n), &p);

        if (rc == DUE_EAGAIN || rc == DUE_ETIMEDOUT) {
            if (!wait_for_room(a))
                return DUE_ETIMEDOUT;
        } else if (rc == DUE_ENOTSUP) {
            while (p.n < n)
                results[p.n++] = rc;
        } else if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int asked_close(struct ctl_access *a)
{
    (void)a;
    return 0;
}

const struct ctl_access_verbs ctl_asked_verbs = {
    .put = asked_put,
    .cancel = asked_cancel,
    .kick = asked_kick,
    .drop = asked_drop,
    .promote = asked_promote,
    .move = asked_move,
    .kick_all = asked_kick_all,
    .drop_all = asked_drop_all,
    .clear = asked_clear,
    .pause = asked_pause,
    .resume = asked_resume,
    .close = asked_close,
};
