/* store.c - a sample from a stored queue: each job is looked at, as `duectl stats` does.
 *
 * What has come and gone between two looks is told by their ids.  A job that has come and gone
 * since the last look was never seen, so its rates are the least that can have been.
 */
#define _GNU_SOURCE
#include "top/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASK_EVERY = 256, OTHER = DUE_FIGURES_TOPICS }; /* topics behind the last that is shown */

/* One look under way. */
struct look {
    struct top_store *store;
    struct top_sample *s;
    struct top_job *jobs;
    size_t n, room;
    int64_t oldest_ns, next_ns;
    int64_t oldest_of[DUE_FIGURES_TOPICS];
    uint32_t last; /* the topic of the job before: jobs come by topic */
    uint64_t unreadable;
    bool failed, stopped;
};

/* ---- A look ---------------------------------------------------------------------------------- */

/* The row of a topic; OTHER: there is no room for one. */
static uint32_t topic_of(struct look *l, const char *name)
{
    struct top_store *t = l->store;

    if (l->last < t->topic_count && strcmp(t->topics[l->last].name, name) == 0)
        return l->last;
    for (uint32_t i = 0; i < t->topic_count; i++) {
        if (strcmp(t->topics[i].name, name) == 0)
            return l->last = i;
    }
    if (t->topic_count == DUE_FIGURES_TOPICS || strlen(name) >= sizeof t->topics[0].name)
        return OTHER;
    strcpy(t->topics[t->topic_count].name, name);
    return l->last = t->topic_count++;
}

static bool note(struct look *l, const due_record *r, uint32_t topic)
{
    if (l->n == l->room) {
        size_t room = l->room == 0 ? 1024 : 2 * l->room;
        struct top_job *jobs = realloc(l->jobs, room * sizeof *jobs);

        if (jobs == NULL)
            return false;
        l->jobs = jobs;
        l->room = room;
    }
    l->jobs[l->n++] = (struct top_job){ r->id, r->failures, topic };
    return true;
}

static void count(struct top_counts *c, const due_record *r, int64_t now_ns, int64_t *oldest_ns)
{
    if (r->cause != 0) {
        c->dead++;
    } else if (r->attempts > r->failures) {
        c->leased++;
    } else {
        c->waiting++;
        c->ready += r->until_ns <= now_ns;
        if (r->until_ns <= now_ns && r->until_ns < *oldest_ns)
            *oldest_ns = r->until_ns;
    }
}

static bool visit(void *ctx, due_id id, int rc, const due_record *r)
{
    struct look *l = ctx;
    struct top_sample *s = l->s;
    const char *only = l->store->look->topic;

    (void)id;
    if ((l->n + l->unreadable) % ASK_EVERY == 0 && l->store->stop(l->store->ctx)) {
        l->stopped = true;
        return false;
    }
    if (rc != 0) {
        l->unreadable++;
        return true;
    }
    if (only != NULL && strcmp(only, r->topic) != 0)
        return true;
    uint32_t topic = topic_of(l, r->topic);
    if (!note(l, r, topic)) {
        l->failed = true;
        return false;
    }
    count(&s->all, r, s->taken_ns, &l->oldest_ns);
    if (topic != OTHER)
        count(&s->topic[topic].counts, r, s->taken_ns, &l->oldest_of[topic]);
    if (r->cause == 0 && r->attempts <= r->failures && r->until_ns <= s->taken_ns) {
        s->late.bucket[due_histogram_bucket(s->taken_ns - r->until_ns)]++;
        s->late.count++;
    } else if (r->cause == 0 && r->until_ns > s->taken_ns && r->until_ns < l->next_ns) {
        l->next_ns = r->until_ns;
    }
    return true;
}

/* ---- What has changed ------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    return memcmp(&((const struct top_job *)a)->id, &((const struct top_job *)b)->id,
                  sizeof(due_id));
}

/* @was and @is: one of them NULL, or both of one job. */
static void tell(struct top_counts *c, const struct top_job *was, const struct top_job *is)
{
    c->enqueued += was == NULL;
    c->dequeued += is == NULL;
    if (was != NULL && is != NULL && is->failures > was->failures)
        c->failed += is->failures - was->failures;
}

static void changed(struct top_store *t, const struct top_job *was, const struct top_job *is)
{
    uint32_t topic = is != NULL ? is->topic : was->topic;

    tell(&t->seen, was, is);
    if (topic != OTHER)
        tell(&t->topics[topic].counts, was, is);
}

/* Both are in order of ids; one that is shown twice counts once. */
static void compare(struct top_store *t, struct look *l)
{
    size_t a = 0;
    size_t n = 0;

    if (l->n > 0)
        qsort(l->jobs, l->n, sizeof *l->jobs, by_id);
    for (size_t i = 0; i < l->n; i++) {
        if (n == 0 || by_id(&l->jobs[n - 1], &l->jobs[i]) != 0)
            l->jobs[n++] = l->jobs[i];
    }
    for (size_t b = 0; t->looks > 0 && (a < t->n || b < n);) {
        int order = a == t->n ? 1 : b == n ? -1 : by_id(&t->jobs[a], &l->jobs[b]);

        changed(t, order <= 0 ? &t->jobs[a] : NULL, order >= 0 ? &l->jobs[b] : NULL);
        a += order <= 0;
        b += order >= 0;
    }
    free(t->jobs);
    t->jobs = l->jobs;
    t->n = n;
    t->looks++;
}

/* ---- The sample ------------------------------------------------------------------------------ */

static void fill(struct top_sample *s, const struct top_store *t, const struct look *l)
{
    s->of_store = true;
    s->measured = true;
    s->number = t->looks;
    s->all.enqueued = t->seen.enqueued;
    s->all.dequeued = t->seen.dequeued;
    s->all.failed = t->seen.failed;
    s->all.overdue_ns = l->oldest_ns == DUE_FOREVER ? -1 : s->taken_ns - l->oldest_ns;
    s->next_ns = l->next_ns == DUE_FOREVER ? -1 : l->next_ns - s->taken_ns;
    s->topics = s->topics_here = t->topic_count;
    for (uint32_t i = 0; i < t->topic_count; i++) {
        struct top_counts *c = &s->topic[i].counts;

        memcpy(s->topic[i].name, t->topics[i].name, sizeof s->topic[i].name);
        c->enqueued = t->topics[i].counts.enqueued;
        c->dequeued = t->topics[i].counts.dequeued;
        c->failed = t->topics[i].counts.failed;
        c->overdue_ns = l->oldest_of[i] == DUE_FOREVER ? -1 : s->taken_ns - l->oldest_of[i];
    }
}

int top_store_take(struct top_store *t, struct top_sample *s)
{
    struct look l = { .store = t, .s = s, .oldest_ns = DUE_FOREVER, .next_ns = DUE_FOREVER };

    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < DUE_FIGURES_TOPICS; i++)
        l.oldest_of[i] = DUE_FOREVER;
    snprintf(s->queue, sizeof s->queue, "%s", t->look->queue);
    s->taken_ns = top_now_ns(CLOCK_REALTIME);
    s->monotonic_ns = top_now_ns(CLOCK_MONOTONIC);
    int status = ctl_jobs(t->look, visit, &l);
    if (l.failed) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        status = CTL_BROKEN;
    }
    if (l.stopped || l.failed || status != CTL_FINE) {
        free(l.jobs);
        return l.stopped && !l.failed ? TOP_TAKEN : status;
    }
    if (l.unreadable > 0)
        fprintf(stderr, "duectl: %" PRIu64 " jobs cannot be read: duectl verify says more\n",
                l.unreadable);
    compare(t, &l);
    fill(s, t, &l);
    return TOP_TAKEN;
}

void top_store_free(struct top_store *t)
{
    free(t->jobs);
}
