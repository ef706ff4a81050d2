/* hold.c - a store that a command owns for a while, and calls as a queue calls it. */
#include "move/move.h"

#include <stdio.h>
#include <time.h>

#define OPEN_NS  DUE_S(1)
#define CALL_NS  DUE_S(5)
#define QUIET_NS DUE_S(30) /* without an answer, then it is given up */
#define PAGE     256

static int64_t mono_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static int64_t wall_ns(void *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static void log_line(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    fprintf(stderr, "duectl: %s\n", text);
}

static void give_up(struct ctl_hold *h)
{
    ctl_store_free(h->store);
    ctl_store_free(h->again);
    h->store = h->again = NULL;
}

/* If the queue is shared, what makes it so again.  0, or an exit status. */
static int prepare_again(struct ctl_hold *h)
{
    bool shared = false;
    int status = ctl_is_shared(h->look, &shared);

    if (status != 0 || !shared)
        return status;
    h->again = ctl_store_of(h->look, false, &status);
    return h->again != NULL ? 0 : status;
}

int ctl_hold_open(struct ctl_hold *h, const struct ctl_look *look, bool must_exist,
                  uint64_t writer_min)
{
    struct due_store_open how = { .name = look->queue,
                                  .now = wall_ns,
                                  .log = log_line,
                                  .until_ns = mono_ns() + OPEN_NS,
                                  .writer_min = writer_min };
    due_error error = { "", "" };
    int status = CTL_BROKEN;

    *h = (struct ctl_hold){ .look = look };
    h->store = ctl_store_of(look, must_exist, &status);
    if (h->store == NULL)
        return status;
    status = prepare_again(h);
    if (status != 0) {
        give_up(h);
        return status;
    }
    int rc = h->store->verbs->open(h->store, &how, &h->info, &error);
    h->renewed_ns = mono_ns();
    if (rc == 0)
        return 0;
    fprintf(stderr, "duectl: %s%s%s\n", error.text[0] != '\0' ? error.text : due_error_text(rc),
            error.hint[0] == '\0' ? "" : "; ", error.hint);
    give_up(h);
    return ctl_unopened(look, rc);
}

int ctl_hold_close(struct ctl_hold *h)
{
    if (h->store == NULL)
        return 0;
    (void)h->store->verbs->close(h->store, mono_ns() + OPEN_NS);
    ctl_store_free(h->store);
    h->store = NULL;
    return ctl_share_again(h->again, h->look->queue);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A call has answered @rc.  True: it, or the next, is to be made; until *@quiet_ns. */
static bool goes_on(struct ctl_hold *h, int *rc, int64_t *quiet_ns)
{
    int64_t now_ns = mono_ns();
    int64_t held_ns;

    if (*rc == 1)
        *quiet_ns = now_ns + QUIET_NS;
    else if (*rc != DUE_EAGAIN && *rc != DUE_EINDOUBT)
        return false;
    else if (now_ns >= *quiet_ns)
        return false;
    else
        (void)h->store->verbs->ready(h->store, now_ns + CALL_NS);
    if (now_ns - h->renewed_ns < h->info.renew_ns)
        return true;
    h->renewed_ns = now_ns;
    int renewed = h->store->verbs->renew(h->store, &held_ns, now_ns + CALL_NS);
    if (renewed == 0 || renewed == DUE_EAGAIN)
        return true;
    *rc = renewed;
    return false;
}

static int ended(struct ctl_hold *h, int rc)
{
    if (rc < 0 && rc != DUE_ENOENT && !h->stopped) {
        ctl_progress_end();
        fprintf(stderr, "duectl: the store answers: %s\n", due_error_text(rc));
    }
    return rc;
}

int ctl_hold_load(struct ctl_hold *h, due_store_visit *visit, void *ctx)
{
    int64_t quiet_ns = mono_ns() + QUIET_NS;
    int rewind = 1;
    int rc;

    do {
        rc = h->store->verbs->load(h->store, rewind, PAGE, visit, ctx, mono_ns() + CALL_NS);
        rewind = 0;
    } while (goes_on(h, &rc, &quiet_ns));
    return ended(h, rc);
}

int ctl_hold_keys(struct ctl_hold *h, due_store_visit_key *visit, void *ctx)
{
    int64_t quiet_ns = mono_ns() + QUIET_NS;
    int rewind = 1;
    int rc;

    do {
        rc = h->store->verbs->keys(h->store, rewind, PAGE, visit, ctx, mono_ns() + CALL_NS);
        rewind = 0;
    } while (goes_on(h, &rc, &quiet_ns));
    return ended(h, rc);
}

int ctl_hold_find(struct ctl_hold *h, due_id id, due_store_visit *visit, void *ctx)
{
    int64_t quiet_ns = mono_ns() + QUIET_NS;
    int rc;

    do
        rc = h->store->verbs->find(h->store, id, visit, ctx, mono_ns() + CALL_NS);
    while (goes_on(h, &rc, &quiet_ns));
    return ended(h, rc);
}

int ctl_hold_commit(struct ctl_hold *h, const due_change *changes, size_t n, uint64_t number)
{
    int64_t quiet_ns = mono_ns() + QUIET_NS;
    int rc;

    do
        rc = h->store->verbs->commit(h->store, changes, n, number, mono_ns() + CALL_NS);
    while (goes_on(h, &rc, &quiet_ns));
    if (rc == 0) { /* between two batches */
        int more = DUE_EAGAIN;

        if (mono_ns() - h->renewed_ns >= h->info.renew_ns)
            (void)goes_on(h, &more, &quiet_ns);
    }
    return ended(h, rc);
}
