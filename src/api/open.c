/* open.c - opening a queue, and giving it back.
 *
 * Everything a queue will ever need but places, payloads, waiters and topics is had here: threads,
 * descriptors but due_fd()'s, and memory for all that is done under the lock.
 */
#define _GNU_SOURCE
#include "api/open.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/poll.h"
#include "job/discard.h"
#include "job/life.h"
#include "job/memory.h"
#include "os/atomic.h"
#include "os/siphash.h"
#include "os/sized.h"
#include "os/tsan.h"
#include "queue/board.h"
#include "queue/closing.h"
#include "queue/counts.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"
#include "store/sender.h"

#define LEASE_NS DUE_S(30)

/* ---- Options ---- */

static int fail(due_error *error, int code, const char *text, const char *hint)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        snprintf(error->hint, sizeof error->hint, "%s", hint);
    }
    return code;
}

bool due__name_ok(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n >= 1 && n <= 64 && name[n] == '\0';
}

static int options_check(const due_options *o, due_error *error)
{
    if (o->name != NULL && !due__name_ok(o->name))
        return fail(error, DUE_EINVAL, "the name is not allowed",
                    "use 1 to 64 letters, digits, '.', '_' or '-'");
    if (o->capacity > DUE_JOBS_MAX || o->reserve > DUE_JOBS_MAX)
        return fail(error, DUE_EINVAL, "the capacity or the reserve is too large",
                    "at most DUE_JOBS_MAX");
    if (o->proxies < DUE_PROXIES_ADAPTIVE || o->proxies > DUE_PROXIES_NEVER ||
        o->order < DUE_ORDER_DEADLINE || o->order > DUE_ORDER_PRIORITY || o->spin_ns < 0)
        return fail(error, DUE_EINVAL, "proxies, order or spin_ns is out of range", "");
    if (o->store != NULL && (o->proxies == DUE_PROXIES_NEVER || o->clock == DUE_CLOCK_BOOTTIME))
        return fail(error, DUE_EINVAL, "a stored queue has its proxies and the wall clock",
                    "its lease must be renewed, and its times must hold after a restart");
    if (o->confirm < DUE_CONFIRM_SYNC || o->confirm > DUE_CONFIRM_ASYNC ||
        o->store_timeout_ns < 0 || o->open_timeout_ns < 0)
        return fail(error, DUE_EINVAL, "confirm or a timeout is out of range", "");
    if (due__retry_wrong(&o->retry) != NULL || o->dead_keep_ns < 0 || o->lease_ns < 0)
        return fail(error, DUE_EINVAL, "the retry policy, lease_ns or dead_keep_ns is out of range",
                    "a ladder has 1 to DUE_RUNGS_MAX rungs, and no delay is negative");
    if (o->allocator != NULL && (o->allocator->alloc == NULL || o->allocator->free == NULL))
        return fail(error, DUE_EINVAL, "the allocator lacks a function", "give both, or none");
    return 0;
}

/* *@o as the caller's header had it, each hook with its ctx; @given NULL: all defaults. */
static int options_read(due_options *o, const due_options *given, due_error *error)
{
    int rc = given != NULL ? due__sized_read(o, sizeof *o, given) : 0;

    if (rc == DUE_EINVAL)
        return fail(error, rc, "the options have no size", "begin them with DUE_OPTIONS_INIT");
    if (rc != 0)
        return fail(error, rc, "an option is set that this version does not know",
                    "the program was built for a newer version");
    void **ctx[] = { &o->log_ctx,   &o->thread_ctx,  &o->discard_ctx,
                     &o->event_ctx, &o->settled_ctx, &o->restore_ctx };
    for (size_t i = 0; i < sizeof ctx / sizeof ctx[0]; i++) {
        if (*ctx[i] == NULL)
            *ctx[i] = o->ctx;
    }
    return 0;
}

static uint64_t random_tag(const void *salt)
{
    uint64_t tag;

    if (getrandom(&tag, sizeof tag, GRND_NONBLOCK) != (ssize_t)sizeof tag)
        tag = (uint64_t)due__monotonic_now() * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)salt;
    return tag;
}

/* A page that reads as zero in a child after fork. */
static unsigned char *mark_make(void)
{
    unsigned char *mark =
        mmap(NULL, DUE__PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return NULL;
    if (madvise(mark, DUE__PAGE, MADV_WIPEONFORK) != 0) {
        munmap(mark, DUE__PAGE);
        return NULL;
    }
    *mark = 1;
    return mark;
}

/* ---- Parts, in order; each undone by its number ---- */

static size_t keep_live(const void *ctx, struct due__slot *slot, size_t n)
{
    return due__keep_live(ctx, slot, n, false);
}

static int bells_init(struct due_queue *q)
{
    int rc = due__bell_init(&q->enqueue_bell);

    if (rc != 0)
        return rc;
    rc = due__bell_init(&q->worker.bell);
    if (rc != 0)
        goto free_enqueue;
    rc = due__bell_init(&q->closer.bell);
    if (rc != 0)
        goto free_worker;
    rc = due__bell_init(&q->dequeue_bell);
    if (rc != 0)
        goto free_closer;
    if (q->clock.manual == NULL && q->clock.id != CLOCK_MONOTONIC)
        rc = due__alarm_init(&q->alarm, q->clock.id);
    else
        rc = due__bell_init(&q->alarm);
    if (rc == 0)
        return 0;
    due__bell_destroy(&q->dequeue_bell, false);
free_closer:
    due__bell_destroy(&q->closer.bell, false);
free_worker:
    due__bell_destroy(&q->worker.bell, false);
free_enqueue:
    due__bell_destroy(&q->enqueue_bell, false);
    return rc;
}

static void bells_destroy(struct due_queue *q, bool forked)
{
    due__bell_destroy(&q->alarm, forked);
    due__bell_destroy(&q->dequeue_bell, forked);
    due__bell_destroy(&q->closer.bell, forked);
    due__bell_destroy(&q->worker.bell, forked);
    due__bell_destroy(&q->enqueue_bell, forked);
}

static int memory_init(struct due_queue *q, const due_retry *retry)
{
    due__pool_init(&q->pool, &q->alloc);
    q->nodes.pool = &q->pool;
    due__slab_init(&q->slab, &q->alloc);
    due__records_init(&q->leases, sizeof(struct due__lease));
    due__records_init(&q->dead_letters, sizeof(struct due__dead_letter));
    struct due__region *chunks = due__region_new(&q->alloc, DUE__CHUNKS_AT_OPEN);
    int rc = DUE_ENOMEM;

    if (chunks == NULL)
        goto free_pool;
    due__pool_adopt(&q->pool, chunks);
    rc = due__timeline_init(&q->timeline, &q->alloc, &q->pool, keep_live, q);
    if (rc != 0)
        goto free_pool;
    rc = due__topics_init(q);
    if (rc == 0)
        rc = due__retry_number(q, retry, &q->retry);
    if (rc == 0)
        return 0;
    due__retries_destroy(q);
    due__topics_destroy(q);
    due__timeline_destroy(&q->timeline);
free_pool:
    due__slab_destroy(&q->slab); /* no lease was ever made */
    due__pool_destroy(&q->pool);
    return rc;
}

static void memory_destroy(struct due_queue *q)
{
    due__limiters_destroy(q);
    due__topics_destroy(q);
    due__timeline_destroy(&q->timeline);
    due__retries_destroy(q);
    due__records_destroy(&q->dead_letters, &q->alloc);
    due__records_destroy(&q->leases, &q->alloc);
    due__slab_destroy(&q->slab);
    due__pool_destroy(&q->pool);
    due__events_free(q);
}

/* Touch the memory of @n jobs and their slots, so that enqueues need not fault it in. */
static int reserve(struct due_queue *q, size_t n)
{
    struct due__chunk *taken = NULL;

    while (due__slab_end(&q->slab) < n) {
        int rc = due__grow(q);

        if (rc != 0)
            return rc;
    }
    due__slab_touch(&q->slab, n);
    for (size_t i = 0; i < n / DUE__CHUNK_SLOTS; i++) {
        struct due__chunk *c = due__pool_take(&q->pool);

        if (c == NULL)
            break;
        c->next = taken;
        taken = c;
    }
    while (taken != NULL) {
        struct due__chunk *next = taken->next;

        due__pool_give(&q->pool, taken);
        taken = next;
    }
    return 0;
}

/* The one that reads what is stored comes last: until all are there the queue holds nothing. */
static int threads_start(struct due_queue *q)
{
    if (q->proxies == DUE_PROXIES_NEVER)
        return 0;
    int rc = due__thread_start(&q->threads[1], q, 'w', due__worker_proxy);
    if (rc == 0 && q->proxies == DUE_PROXIES_ALWAYS)
        rc = due__thread_start(&q->threads[2], q, 'd', due__dequeue_proxy);
    if (rc == 0)
        rc = due__thread_start(&q->threads[0], q, 'e', q->journal->proxy);
    if (rc != 0)
        due__stop_proxies(q);
    return rc;
}

/* What needs no undoing. */
static void settings(struct due_queue *q, const due_options *o, const struct due__alloc *alloc)
{
    q->alloc = *alloc;
    q->tag = random_tag(q);
    due__siphash_seed(q->seed);
    due__retries_init(q);
    q->lease_ns = o->lease_ns > 0 ? o->lease_ns : LEASE_NS;
    q->dead_keep_ns = o->dead_keep_ns;
    q->dead_max = o->dead_max;
    q->attempts_lazy = o->attempts_lazy != 0;
    q->capacity = o->share == DUE_SHARED ? 0 : o->capacity; /* there the store counts */
    q->spin_ns = o->spin_ns;
    q->proxies = o->proxies;
    q->order = o->order;
    q->hooks.on_log = o->on_log;
    q->hooks.on_thread_start = o->on_thread_start;
    q->hooks.on_discard = o->on_discard;
    q->hooks.log_ctx = o->log_ctx;
    q->hooks.thread_ctx = o->thread_ctx;
    q->hooks.discard_ctx = o->discard_ctx;
    q->payload_max = DUE_PAYLOAD_MAX;
    snprintf(q->name, sizeof q->name, "%s", o->name != NULL ? o->name : "queue");
    q->state = o->proxies == DUE_PROXIES_ALWAYS ? DUE__ACTIVE : 0;
    q->sole_until = -1;
    q->published_ns = -1;
    q->beat_ns = -1;
    q->armed = DUE__AWAKE;
    q->shows = o->proxies != DUE_PROXIES_ALWAYS && o->order == DUE_ORDER_DEADLINE;
    q->sweep_at = 2 * DUE__SWEEP_PIECE;
    q->worker.hand = DUE__NO_JOB;
    q->closer.hand = DUE__NO_JOB;
    q->fd = -1;
    due__inbox_init(&q->inbox);
    due__lock_init_biased(&q->lock);
    due__lock_init(&q->fdlock);
    due__lock_init(&q->leaving);
    q->life = &due__jobs_life;
    q->tenure_end = due__tenure_settle;
    q->journal = &due__memory_journal;
    due__pool_stats_init(&q->pool_stats);
}

/* What says that nothing can be done quickly. */
static const unsigned char never;

/* Which short ways there are. */
static void ways_init(struct due_queue *q, const due_options *o)
{
    q->short_ways = o->store == NULL && q->events == NULL;
    q->short_puts = q->short_ways && q->capacity == 0;
    q->short_takes = q->short_ways && q->shows && !q->clock.steps && !due__tsan_blind();
    q->quick =
        q->short_puts && !q->clock.steps && q->proxies != DUE_PROXIES_ALWAYS && !due__tsan_blind()
            ? q->mark
            : &never;
    q->counter.trusted = q->short_takes && q->clock.manual == NULL &&
                         q->clock.id == CLOCK_MONOTONIC && due__counter_trusted();
}

static int queue_make(struct due_queue *q, const due_options *o, due_error *error)
{
    unsigned char *mark = mark_make();
    int rc;

    if (mark == NULL)
        return fail(error, DUE_ENOMEM, "no page for the fork mark", "");
    q->mark = mark;
    rc = bells_init(q);
    if (rc != 0) {
        fail(error, rc, "no alarm for this clock", "descriptors may be used up: see ulimit -n");
        goto free_mark;
    }
    rc = due__events_open(q, o);
    ways_init(q, o);
    if (rc == 0) {
        rc = memory_init(q, &o->retry);
        if (rc != 0)
            due__events_free(q);
    }
    if (rc == 0 && o->reserve > 0) {
        rc = reserve(q, o->reserve);
        if (rc != 0)
            memory_destroy(q);
    }
    if (rc != 0) {
        fail(error, rc, "out of memory", "");
        goto free_bells;
    }
    if (o->store != NULL) {
        rc = due__commits_open(q, o, error);
        if (rc != 0) {
            if (error != NULL && error->text[0] == '\0')
                fail(error, rc, "the store could not be opened", "");
            goto free_memory;
        }
    }
    rc = threads_start(q);
    if (rc != 0) {
        fail(error, rc, "a thread could not be started",
             "raise the limit of processes, or open with DUE_PROXIES_NEVER");
        q->journal->undo(q);
        goto free_memory;
    }
    return 0;

free_memory:
    memory_destroy(q);
free_bells:
    bells_destroy(q, false);
free_mark:
    munmap(mark, DUE__PAGE);
    return rc;
}

/* With options that make sense. */
static int open_with(due_queue **queue, const due_options *o, due_error *error)
{
    struct due__alloc alloc;
    struct due__clock clock;

    enum due_clock_kind kind = o->clock;
    if (o->store != NULL && o->manual == NULL)
        kind = DUE_CLOCK_REALTIME;
    int rc = due__clock_init(&clock, kind, o->manual);
    if (rc != 0)
        return fail(error, rc, "the clock is not available",
                    "choose another, or a manual clock without a kind");
    due__alloc_init(&alloc, o->allocator);
    struct due_queue *q = due__alloc_region(&alloc, sizeof *q);
    if (q == NULL)
        return fail(error, DUE_ENOMEM, "out of memory", "");
    q->clock = clock;
    settings(q, o, &alloc);
    q->turns = (struct due__listener){ .turned = due__tick, .arg = q };
    rc = queue_make(q, o, error);
    if (rc != 0) {
        due__alloc_region_free(&alloc, q, sizeof *q);
        return rc;
    }
    if (q->stored)
        due__listener_hear(&q->turns); /* its journal does */
    if (clock.manual != NULL)
        due__clock_join(clock.manual, &q->turns);
    *queue = q;
    return 0;
}

int due_open(due_queue **queue, const due_options *options, due_error *error)
{
    due_options given = { DUE_OPTIONS_INIT };
    int cancel;

    *queue = NULL;
    if (error != NULL)
        *error = (due_error){ "", "" };
    int rc = options_read(&given, options, error);
    if (rc == 0)
        rc = options_check(&given, error);
    if (rc != 0)
        return rc;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* files and stores are points of it */
    rc = open_with(queue, &given, error);
    pthread_setcancelstate(cancel, NULL);
    return rc;
}

/* ---- Giving back ---- */

static void waiters_destroy(struct due_queue *q, bool forked)
{
    while (q->made != NULL) {
        struct due__waiter *w = q->made;

        q->made = w->made_next;
        due__bell_destroy(&w->bell, forked);
        due__alloc_free(&q->alloc, w, sizeof *w);
    }
}

/* In a child after fork: payloads that stand apart, of jobs that were whole at that moment. */
static void payloads_free(struct due_queue *q)
{
    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        struct due__job *j = due__job_at(&q->slab, i);
        uint64_t w = due__load_relaxed(&j->word); /* no edge: alone */
        enum due__state state = due__word_state(w);
        struct due__facts f = due__facts_load(j);

        if (state != DUE__FREE && (state != DUE__DONE || (w & DUE__HELD)) &&
            ((f.payload & DUE__EXTRAS) || (f.payload & DUE__PAYLOAD_MASK) == DUE__BYTES_APART)) {
            if ((f.payload & DUE__EXTRAS) && due__extras_at(j)->key != NULL)
                due__key_drop_forked(q, due__extras_at(j)->key);
            due__payload_drop(&q->slab.payloads, j->payload.ptr, due__block_bytes(j, f));
        }
    }
}

/* Jobs of a closed queue that nobody has: reserved, or back from that. */
static uint64_t left_over(const struct due_queue *q)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        uint64_t w = due__load_acquire(&due__job_at(&q->slab, i)->word); /* J1 */

        n += due__word_state(w) == DUE__LEASED || due__word_state(w) == DUE__WAITING;
    }
    return n;
}

/* Is anything still out, or anybody in?  Who does not wait is not counted as inside.  But if he has
 * a job in hand, and has not counted it as gone yet, there are more that have come and not gone
 * than are here. */
static bool busy(struct due_queue *q)
{
    struct due__tenure t;

    due__lapse_now(q);
    due__enter(q, &t);
    struct due__sums all = due__sum_up(q);
    bool out = q->pools > 0 || due__sums_leased(&all) > 0;
    due__tenure_end(q, &t);
    if (out)
        return true;
    return !q->journal->keeps_jobs && due__waiting(q) > left_over(q);
}

/* Whoever turns its clock ends leases that are over, and discards their jobs: he is waited for, and
 * comes no more.  If the queue cannot be freed he may come again, and what he would have seen to
 * meanwhile is seen to now. */
static int quiesce(struct due_queue *q)
{
    due_clock *clock = q->clock.manual;

    if (due__inside_any(q))
        return DUE_EBUSY;
    if (clock != NULL)
        due__clock_leave(clock, &q->turns, &q->dequeue_bell);
    if (!busy(q))
        return 0;
    if (clock != NULL) {
        due__clock_join(clock, &q->turns);
        due__tick(q);
    }
    return DUE_EBUSY;
}

int due_free(due_queue *q)
{
    struct due__tenure t;
    int cancel;

    if (q == NULL)
        return 0;
    bool forked = due__forked(q);
    if (!forked) {
        int rc = quiesce(q);

        if (rc != 0)
            return rc;
        due__enter(q, &t);
        due__drain(q, UINT32_MAX); /* what was cancelled in the inbox */
        due__tenure_end(q, &t);
        q->journal->refuse(q); /* what was taken back after the end */
        due__leases_discard(q);
    } else {
        if (q->clock.manual != NULL)
            due__clock_forget(q->clock.manual, &q->turns);
        due__keys_free(q, true);
        payloads_free(q);
    }
    if (!forked)
        due__keys_free(q, false);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (q->fd >= 0)
        close(q->fd);
    if (q->board != NULL)
        q->board->free(q, q->board, forked);
    q->journal->free(q);
    waiters_destroy(q, forked);
    due__pool_stats_free(q);
    memory_destroy(q);
    bells_destroy(q, forked);
    munmap((void *)(uintptr_t)q->mark, DUE__PAGE);
    struct due__alloc alloc = q->alloc;
    due__alloc_region_free(&alloc, q, sizeof *q);
    pthread_setcancelstate(cancel, NULL);
    return 0;
}

int64_t due_now(const due_queue *q)
{
    return due__jobs_now(q);
}
