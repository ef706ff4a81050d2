/* access.c - a queue that is changed by the process that owns it, which this one becomes; or by one
 * more of those that share it.
 *
 * What the library does with a queue that is opened it does here too: jobs whose time limit has
 * passed die, and what is damaged is set aside.  Nothing is handed out.
 */
#include "verbs/verbs.h"

#include <poll.h>
#include <stdio.h>

#include "server/verbs.h"

#define OPEN_NS  DUE_S(1) /* for the store, and for its present owner to go */
#define CLOSE_NS DUE_S(10)
#define SLICE_NS DUE_S(1) /* of waiting for room */
/* For the store's answer: a job of some hundred MB comes before it goes. */
#define STORE_NS DUE_S(30)

/* ---- The verbs of an owned queue ------------------------------------------------------------- */

static bool is_to_stop(const struct ctl_access *a)
{
    struct pollfd stop = { .fd = a->stop_fd, .events = POLLIN };

    return poll(&stop, 1, 0) > 0;
}

/* It waits for room: in slices where it is to hear that it should stop, behind a first try, for
 * which the store has all its time. */
static int owned_put(struct ctl_access *a, const char *topic, due_spec *specs, size_t n,
                     due_id *ids, int *results)
{
    int64_t wait_ns = a->shared && a->stop_fd > 0 ? 0 : DUE_FOREVER;
    const char *name = topic == NULL ? "" : topic;
    size_t done = 0;
    int rc;

    while ((rc = due__ctl_put(a->queue, name, specs, n, wait_ns, ids, results, &done)) ==
               DUE_EAGAIN ||
           rc == DUE_ETIMEDOUT) {
        if (wait_ns == DUE_FOREVER)
            return rc;
        if (is_to_stop(a))
            return DUE_ETIMEDOUT;
        wait_ns = SLICE_NS;
    }
    return rc;
}

static int owned_cancel(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    (void)due_cancel_batch(a->queue, ids, n, results);
    return 0;
}

static int owned_kick(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    for (size_t i = 0; i < n; i++)
        results[i] = due_kick(a->queue, ids[i]);
    return 0;
}

static int owned_drop(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    for (size_t i = 0; i < n; i++) {
        results[i] = due__ctl_is_dead(a->queue, ids[i], a->shared);
        if (results[i] == 0)
            results[i] = due_cancel(a->queue, ids[i], NULL);
    }
    return 0;
}

static int owned_promote(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    for (size_t i = 0; i < n; i++)
        results[i] = due_promote(a->queue, ids[i]);
    return 0;
}

static int owned_move(struct ctl_access *a, const due_id *ids, size_t n, int64_t at_ns,
                      int *results)
{
    for (size_t i = 0; i < n; i++)
        results[i] = due_reschedule(a->queue, ids[i], at_ns);
    return 0;
}

static int owned_kick_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return due__ctl_count_of_topic(a->queue, topic, count, due_kick_all);
}

static int owned_drop_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return due__ctl_count_of_topic(a->queue, topic, count, due_clear_dead);
}

static int owned_clear(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return due__ctl_count_of_topic(a->queue, topic, count, due_clear);
}

static int owned_pause(struct ctl_access *a, const char *topic)
{
    return due__ctl_of_topic(a->queue, topic, due_pause);
}

static int owned_resume(struct ctl_access *a, const char *topic)
{
    return due__ctl_of_topic(a->queue, topic, due_resume);
}

/* A queue that does not close is left to the end of the process, as its memory is. */
static int owned_close(struct ctl_access *a)
{
    int rc = due_close(a->queue, DUE_CLOSE_DISCARD, CLOSE_NS);

    if (rc == 0)
        rc = due_free(a->queue);
    a->queue = NULL;
    return rc;
}

static const struct ctl_access_verbs owned = {
    .put = owned_put,
    .cancel = owned_cancel,
    .kick = owned_kick,
    .drop = owned_drop,
    .promote = owned_promote,
    .move = owned_move,
    .kick_all = owned_kick_all,
    .drop_all = owned_drop_all,
    .clear = owned_clear,
    .pause = owned_pause,
    .resume = owned_resume,
    .close = owned_close,
};

/* ---- Opened and closed ----------------------------------------------------------------------- */

static void log_line(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    if (level != DUE_LOG_INFO)
        fprintf(stderr, "duectl: %s\n", text);
}

int ctl_access_open(struct ctl_access *a, const struct ctl_look *look, bool must_exist)
{
    due_options options = { DUE_OPTIONS_INIT, .name = look->queue, .on_log = log_line };
    due_error error = { "", "" };
    int status = CTL_USAGE;

    *a = (struct ctl_access){ .verbs = look->control != NULL ? &ctl_asked_verbs : &owned,
                              .look = look };
    if (look->control != NULL)
        return 0;
    a->shared = look->shared;
    status = a->shared ? 0 : ctl_is_shared(look, &a->shared);
    if (status != 0)
        return status;
    options.store = ctl_store_of(look, must_exist, &status);
    ctl_urls_forget();
    if (options.store == NULL)
        return status;
    options.open_timeout_ns = OPEN_NS;
    options.store_timeout_ns = STORE_NS;
    options.share = a->shared ? DUE_SHARED : DUE_OWNED;
    int rc = due_open(&a->queue, &options, &error);
    if (rc == 0)
        return 0;
    fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ", error.hint);
    ctl_store_free(options.store);
    return ctl_unopened(look, rc);
}

int ctl_access_close(struct ctl_access *a, int status)
{
    int rc = a->verbs->close(a);

    if (rc == 0)
        return status;
    fprintf(stderr, "duectl: the queue does not close: %s\n", due_error_text(rc));
    return CTL_BROKEN;
}
