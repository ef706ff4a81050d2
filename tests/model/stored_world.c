/* stored_world.c - opening and closing what stored_world.h describes. */
#include "queue/queue.h"
#include "model/stored_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/rest.h"
#include "lab/watch.h"
#include "model/stored_known.h"

/* What landed of a job. */
static void print_log(struct stored_world *w, const struct stored_job *j)
{
    static const char *const kinds[] = { "?", "put", "move", "bury", "drop", "keep", "forget" };
    struct memory_entry e;

    for (size_t i = 0; !storeless(w) && memory_disk_entry(w->disk, i, &e); i++) {
        if (due_id_equal(e.id, j->id))
            fprintf(stderr, "  writer %llu batch %llu %s %lld\n", (unsigned long long)e.writer,
                    (unsigned long long)e.number, kinds[e.kind], (long long)e.until_ns);
    }
}

bool stored_wrong(struct stored_world *w, const char *what, const struct stored_job *j)
{
    if (w->wrong == NULL) {
        fprintf(stderr, "stored_model: %s (job %d, time %lld, pattern %u)\n", what,
                j != NULL ? j->number : -1, (long long)w->now, w->pattern);
        if (j != NULL)
            print_log(w, j);
    }
    w->wrong = what;
    return false;
}

/* Some are longer than what fits into a place. */
void stored_payload(int content, unsigned char *bytes, size_t *len)
{
    *len = 1 + (size_t)content * 7 % 90;
    for (size_t i = 0; i < *len; i++)
        bytes[i] = (unsigned char)((size_t)content * 31 + i);
}

void stored_headers(int head, unsigned char *bytes, size_t *len)
{
    *len = head == 0 ? 0 : 1 + (size_t)head * 11 % 60;
    for (size_t i = 0; i < *len; i++)
        bytes[i] = (unsigned char)((size_t)head * 17 + i);
}

struct stored_job *stored_find(struct stored_world *w, due_id id)
{
    for (int i = w->made; i-- > 0;) {
        if (due_id_equal(w->job[i].id, id))
            return &w->job[i];
    }
    return NULL;
}

void stored_note_refused(struct stored_world *w)
{
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < w->refused_count; i++) {
        struct stored_job *j = stored_find(w, w->refused[i]);

        if (j != NULL)
            j->unsure = true;
    }
    w->refused_count = 0;
    pthread_mutex_unlock(&w->lock);
}

static void on_settled(void *ctx, due_id id, int rc)
{
    struct stored_world *w = ctx;

    if (rc == 0)
        return;
    pthread_mutex_lock(&w->lock);
    if (w->refused_count < STORED_ROOM)
        w->refused[w->refused_count++] = id;
    pthread_mutex_unlock(&w->lock);
}

void stored_dice(struct stored_world *w, bool on)
{
    struct memory_dice dice = { .seed = w->seed++ };

    if (storeless(w))
        return;
    if (on) {
        dice.per_mille[MEMORY_AWAY] = w->pattern & STORED_AWAY ? 80 : 0;
        dice.per_mille[MEMORY_DOUBT_NOT] = w->pattern & STORED_DOUBT ? 60 : 0;
        dice.per_mille[MEMORY_DOUBT_LANDED] = w->pattern & STORED_DOUBT ? 60 : 0;
        dice.per_mille[MEMORY_FULL] = w->pattern & STORED_FULL ? 100 : 0;
        dice.per_mille[MEMORY_LOSE] = w->pattern & STORED_LOSES ? 15 : 0;
    }
    memory_store_dice(w->store, &dice);
}

struct due_stats stored_stats(struct stored_world *w)
{
    struct due_stats s = { 0 };

    if (due_stats_read(w->q, &s) != 0)
        stored_wrong(w, "no stats", NULL);
    return s;
}

static bool loaded(struct stored_world *w)
{
    for (int i = 0; i < 20000; i++) {
        if (!stored_stats(w).loading)
            return true;
        crew_sleep(DUE_US(500));
    }
    return stored_wrong(w, "it is never loaded", NULL);
}

/* What holds back topics is as it was; what the disk has lost is as it is there. */
static bool held_back(struct stored_world *w)
{
    for (int t = 0; t < STORED_TOPICS; t++) {
        const struct due__topic *it = due__topic_at(w->q, (uint32_t)w->topic[t]);
        size_t limit = it->limiter != NULL ? it->limiter->limit : 0;
        bool same = it->paused == w->paused[t] && limit == w->limit[t];

        if (!same && !(w->pattern & STORED_LOSES))
            return stored_wrong(w, "a topic is held back otherwise", NULL);
        w->paused[t] = it->paused;
        w->limit[t] = w->limit_most[t] = limit;
        w->gated[t] = it->limiter != NULL;
    }
    return true;
}

bool stored_open(struct stored_world *w)
{
    due_options o = { DUE_OPTIONS_INIT, .on_settled = on_settled, .ctx = w };

    flaky_init(&w->memory, FLAKY_NEVER);
    o.allocator = &w->memory.hooks;
    o.manual = w->clock;
    if (!storeless(w))
        o.store = w->store = memory_store_new(w->disk);
    o.confirm = w->pattern & STORED_ASYNC ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC;
    o.proxies = w->pattern & STORED_NEVER    ? DUE_PROXIES_NEVER
                : w->pattern & STORED_ALWAYS ? DUE_PROXIES_ALWAYS
                                             : DUE_PROXIES_ADAPTIVE;
    o.order = w->pattern & STORED_URGENT ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE;
    o.capacity = w->pattern & STORED_BOUNDED ? 60 : 0;
    o.dead_keep_ns = w->pattern & STORED_ROTS ? STORED_DEAD_KEEP_NS : 0;
    o.dead_max = w->pattern & STORED_CROWDS ? STORED_DEAD_MAX : 0;
    o.store_timeout_ns = stored_fails(w) ? DUE_MS(3) : DUE_S(20); /* a busy machine is slow */
    o.unsettled_max = 50;
    o.unsettled_bytes_max = 600;
    if (due_open(&w->q, &o, NULL) != 0)
        return stored_wrong(w, "it does not open", NULL);
    watch_begin(w->q);
    w->fresh = w->made > 0;
    memset(w->policy, 0, sizeof w->policy); /* they are not stored */
    w->topic[1] = due_topic(w->q, "a");
    w->topic[2] = due_topic(w->q, "b");
    if (w->topic[1] <= 0 || w->topic[2] <= 0)
        return stored_wrong(w, "no topics", NULL);
    return held_back(w) && loaded(w);
}

/* ---- Closing ---- */

static bool closed_stats(struct stored_world *w)
{
    struct due_stats s = stored_stats(w);

    if (s.enqueued != s.dequeued + s.cancelled + s.discarded + s.acked + s.kept + s.leased + s.dead)
        return stored_wrong(w, "the stats do not add up", NULL);
    if (s.waiting != 0 || s.lent != 0 || s.mended != 0 || s.unsettled_bytes != 0)
        return stored_wrong(w, "something is left after close", NULL);
    const char *left = rest_wrong(w->q);
    return left == NULL || stored_wrong(w, left, NULL);
}

/* What was not flushed may be lost, or done. */
static void forget(struct stored_world *w)
{
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        j->unsure |= j->dirty || (j->shaky && j->in);
        j->dirty = j->shaky = j->lapsing = j->revoked = false;
        j->leased_until = INT64_MIN;
        j->plain = true;
        j->doomed = false;
        j->mortal |= spent(w, j) && !j->dead;
        j->attempts_least = j->attempts_stored;
        j->buried = 0;
        run_over(j, true);
    }
}

bool stored_close(struct stored_world *w, bool crash, int64_t timeout_ns)
{
    if (w->pattern & STORED_LOSES) { /* what it has lost must be mended before that */
        if (!stored_resolve(w, false))
            return false;
    }
    if (crash)
        memory_store_crash(w->store);
    while (w->held_count > 0)
        due_job_done(&w->held[--w->held_count]);
    if (due_close(w->q, DUE_CLOSE_DISCARD, timeout_ns) != 0)
        if (due_close(w->q, DUE_CLOSE_DISCARD, DUE_S(20)) != 0)
            return stored_wrong(w, "it does not close", NULL);
    bool right = closed_stats(w);
    watch_end(w->q);
    if (due_free(w->q) != 0)
        return stored_wrong(w, "it is not freed", NULL);
    if (atomic_load(&w->memory.live) != 0 || atomic_load(&w->memory.bad) != 0)
        return stored_wrong(w, "memory is left", NULL);
    stored_note_refused(w);
    forget(w);
    if (!storeless(w) && memory_disk_wrong(w->disk) != NULL)
        return stored_wrong(w, memory_disk_wrong(w->disk), NULL);
    return right;
}
