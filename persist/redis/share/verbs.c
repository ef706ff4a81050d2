/* verbs.c - the table of a shared store's verbs. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/owner/owner.h"
#include "redis/share/share.h"

enum { PUT }; /* the lane of all that is no exchange */

static struct due__redis *redis_of(due_store *store)
{
    return (struct due__redis *)store;
}

/* ---- Joining --------------------------------------------------------------------------------- */

void due__share_name(struct due__redis *s)
{
    struct due__share *h = s->share;

    snprintf(h->base, sizeof h->base, "%.32s:{%.64s}:", s->prefix, s->name);
    h->base_len = strlen(h->base);
}

/* Until it is in, or time is up; one that has made the queue shared has some more. */
static int join(struct due__redis *s, int64_t *until)
{
    int64_t until_ns = *until;

    for (;;) {
        int rc = due__redis_reach(s, until_ns);

        if (rc == 0) {
            due__share_cut(s); /* nothing is in the air, and no script is known to be there */
            rc = due__share_join(s, until_ns);
        }
        if (rc == DUE__SHARE_OWNED) {
            rc = due__share_convert(s, until_ns);
            if (rc == 0) { /* by us, or by somebody else */
                int64_t then = due__mono_ns() + s->set.connect_ns + s->set.answer_ns;
                *until = until_ns = until_ns > then ? until_ns : then;
                continue;
            }
        }
        if (rc != DUE_ESTORE)
            return rc;
        if (until_ns <= due__mono_ns())
            return due__redis_unreached(s);
    }
}

static void tell_info(const struct due__redis *s, struct due_store_info *info)
{
    size_t changes = s->set.batch_changes;

    if (changes == 0 || changes > DUE__SHARE_CHANGES)
        changes = DUE__SHARE_CHANGES;
    *info = (struct due_store_info){ .writer = s->writer,
                                     .batch_changes = changes,
                                     .batch_bytes = s->set.batch_bytes,
                                     .renew_ns = s->share->renew_ns,
                                     .durability = s->durability,
                                     .jobs = s->jobs,
                                     .capacity = s->share->capacity,
                                     .by_priority = s->share->by_rank,
                                     .payload_max = s->payload_max };
}

/* What joining for the first time needs.  Nothing is left of it if that fails. */
static int prepare(struct due__redis *s)
{
    struct due__share *h = s->share;

    if (h->bell.link != NULL)
        return 0;
    if (!due__share_turn_begin(h))
        return DUE_ENOMEM;
    int rc = due__bell_begin(s);
    if (rc != 0)
        due__share_turn_end(h);
    return rc;
}

static int join_store(struct due__redis *s, const struct due_store_open *how,
                      struct due_store_info *info, due_error *error)
{
    struct due__share *h = s->share;
    bool again = h->joined && h->lost;
    int64_t until_ns = how->until_ns;
    int rc = again ? 0 : h->joined ? DUE_EINVAL : due__redis_begin(s, how);

    if (again) { /* a fence made anew must not be the old one, nor a writer that of another job */
        due__redis_draw(s);
        s->how.writer_min = s->writer + 1;
        s->how.capacity = how->capacity;
        s->how.by_priority = how->by_priority;
    }
    if (rc == 0)
        rc = prepare(s);
    if (rc == 0) {
        due__share_name(s);
        rc = join(s, &until_ns);
    }
    if (rc == 0)
        due__bell_rename(s);
    if (rc == 0 && !again)
        rc = due__bell_open(s, until_ns);
    if (rc == DUE_EAGAIN)
        rc = due__redis_unreached(s);
    if (rc == DUE_ECORRUPT && s->trouble[0] == '\0')
        due__redis_say(s, "see whether something else writes to the keys of this queue",
                       "the server does not answer as it should");
    if (rc != 0) {
        due__flight_crash(s);
        due__share_cut(s);
        if (error != NULL) {
            snprintf(error->text, sizeof error->text, "%s", s->trouble);
            snprintf(error->hint, sizeof error->hint, "%s", s->hint);
        }
        return rc;
    }
    h->joined = s->open = s->armed = true;
    tell_info(s, info);
    return 0;
}

/* ---- The verbs ------------------------------------------------------------------------------- */

static int verb_join(due_store *store, const struct due_store_open *how,
                     struct due_store_info *info, due_error *error)
{
    struct due__redis *s = redis_of(store);
    struct due__share *h = s->share;
    bool shared = h->joined; /* else nobody calls anything else */

    if (shared && !due__share_enter(h, PUT, how->until_ns))
        return DUE_EBUSY;
    int rc = due__redis_show(s, join_store(s, how, info, error));
    if (shared)
        due__share_exit(h);
    return rc;
}

/* A call's turn, and its end.  DUE_EAGAIN: it is not its turn in time. */
static int enter(struct due__redis *s, int lane, int64_t until_ns)
{
    if (!s->share->joined)
        return DUE_ECLOSED;
    return due__share_enter(s->share, lane, until_ns) ? 0 : DUE_EAGAIN;
}

static int leave_with(struct due__redis *s, int rc)
{
    rc = due__redis_show(s, rc);
    due__share_exit(s->share);
    return rc;
}

static int verb_exchange(due_store *store, const due_change *changes, size_t n, uint64_t number,
                         int *results, const struct due_claim *claim,
                         due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                         int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    if (n > DUE__SHARE_CHANGES)
        return DUE_EINVAL;
    int lane = due__share_is_work(changes, n, claim);
    int rc = enter(s, lane, until_ns);
    if (rc == DUE_EAGAIN && s->share->lane[lane].state == DUE__SHARE_DOUBT)
        return DUE_EINDOUBT; /* only calls of this lane change that */
    if (rc != 0)
        return rc;
    rc = due__share_exchange(s, changes, n, number, results, claim, visit, ctx, answer, until_ns);
    return leave_with(s, rc);
}

static int verb_holder(due_store *store, const void *key, size_t len, due_id *id, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_holder(s, key, len, id, until_ns));
}

static int verb_dead(due_store *store, size_t from, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_dead(s, from, max, visit, ctx, until_ns));
}

static int verb_page(due_store *store, struct due_page *at, size_t max, due_store_visit *visit,
                     void *ctx, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_page(s, at, max, visit, ctx, until_ns));
}

static int verb_census(due_store *store, struct due_census_all *all,
                       int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                       int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_census(s, all, visit, ctx, until_ns));
}

static int verb_processes(due_store *store,
                          int (*visit)(void *ctx, const struct due_process_seen *process),
                          void *ctx, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_processes(s, visit, ctx, until_ns));
}

static int verb_beat(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    return leave_with(s, due__share_beat(s, beat, until_ns));
}

static int verb_listen(due_store *store, struct due_heard *heard, int64_t until_ns)
{
    return due__bell_listen(redis_of(store), heard, until_ns);
}

static void verb_wake(due_store *store)
{
    struct due__share_bell *b = &redis_of(store)->share->bell;

    if (b->link != NULL)
        due__link_interrupt(b->link);
}

static int verb_leave(due_store *store, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    if (!s->closed)
        rc = due__share_leave(s, until_ns);
    s->closed = true;
    return leave_with(s, rc);
}

const struct due_shared_verbs due__share_verbs = { .size = sizeof(struct due_shared_verbs),
                                                   .join = verb_join,
                                                   .exchange = verb_exchange,
                                                   .dead = verb_dead,
                                                   .page = verb_page,
                                                   .census = verb_census,
                                                   .processes = verb_processes,
                                                   .beat = verb_beat,
                                                   .listen = verb_listen,
                                                   .wake = verb_wake,
                                                   .leave = verb_leave,
                                                   .holder = verb_holder };

int due__share_verb_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                         int64_t until_ns)
{
    int rc = enter(s, PUT, until_ns);

    if (rc != 0)
        return rc;
    rc = due__share_find(s, id, visit, ctx, until_ns);
    due__share_exit(s->share);
    return rc;
}

void due__share_free(struct due__redis *s)
{
    struct due__share *h = s->share;

    for (int i = 0; i < 2; i++) {
        struct due__share_lane *lane = &h->lane[i];
        for (size_t p = 0; p < DUE__SHARE_PARTS; p++)
            due__share_forget(&lane->part[p].answer, 1);
        for (size_t k = 0; k < lane->n_found; k++)
            free(lane->found[k]);
    }
    free(h->holds.at);
    if (h->bell.link == NULL)
        return;
    due__link_free(h->bell.link);
    pthread_mutex_destroy(&h->bell.lock);
    due__share_turn_end(h);
}
