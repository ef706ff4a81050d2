/* watch.c - what a lock guards, noted by who leaves it and compared by who gets it.
 *
 * Guards     each note by the lock that it is of; the list by no lock: a queue is there before
 *            others have it, and as long as they do
 */
#include "lab/watch.h"

#ifdef DUE_WATCH_LOCKS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/key_table.h"
#include "queue/queue.h"
#include "store/sender.h"

#define QUEUES  8
#define TOPICS  8  /* so many of a queue, the first; */
#define WAITERS 16 /* and of those who wait */
#define PARTS   (2 + 4 * TOPICS + WAITERS)

struct part {
    const char *what;
    const unsigned char *at;
    size_t len;
};

/* What one lock guards, as it was when it was left. */
struct note {
    bool is;
    size_t parts;
    struct part part[PARTS];
    unsigned char *bytes;
    size_t room;
};

struct watched {
    due_queue *q;
    struct note timeline, names, leaving, places, blocks, key, calls;
    struct note shard[DUE__SHARDS], payloads[DUE__SHARDS], keys[DUE__KEY_SHARDS];
};

extern void (*due__lock_watcher)(struct due__lock *l, bool got);

static struct watched *watched[QUEUES];

/* ---- The order of locks ---- */

enum kind { NAMES, TIMELINE, LEAVING, PLACES, BLOCKS, SHARD, PAYLOADS, KEYS, KEY, CALLS, KINDS };

static const char *const name_of[KINDS] = { "names",   "timeline", "leaving",  "places", "blocks",
                                            "a shard", "payloads", "the keys", "key",    "calls" };

#define MAY(kind) (1u << (kind))

/* What may be got by who has this one: of those that are further on. */
static const unsigned inner[KINDS] = {
    [NAMES] = MAY(TIMELINE) | MAY(SHARD) | MAY(PLACES),
    [TIMELINE] = MAY(SHARD) | MAY(PLACES) | MAY(KEYS) | MAY(CALLS) | MAY(LEAVING),
    [SHARD] = MAY(SHARD) | MAY(PLACES), /* who sums has all of them */
    [PAYLOADS] = MAY(BLOCKS),
    [CALLS] = MAY(SHARD) | MAY(PLACES),
    [KEY] = (MAY(KINDS) - 1) & ~MAY(KEY),
};

static _Thread_local unsigned char held[32];
static _Thread_local size_t held_count;

static void has(enum kind kind)
{
    for (size_t i = 0; i < held_count; i++) {
        if (!(inner[held[i]] & MAY(kind))) {
            fprintf(stderr, "watch: %s is got by who has %s\n", name_of[kind], name_of[held[i]]);
            abort();
        }
    }
    if (held_count < sizeof held)
        held[held_count++] = (unsigned char)kind;
}

static void leaves(enum kind kind)
{
    for (size_t i = held_count; i-- > 0;) {
        if (held[i] == kind) {
            memmove(held + i, held + i + 1, held_count - i - 1);
            held_count--;
            return;
        }
    }
}

void watch_memory(void)
{
    for (size_t i = 0; i < held_count; i++) {
        if (held[i] != KEY) {
            fprintf(stderr, "watch: memory is asked for by who has %s\n", name_of[held[i]]);
            abort();
        }
    }
}

static enum kind kind_of(const struct watched *w, const struct note *n)
{
    return n == &w->names                                      ? NAMES
           : n == &w->timeline                                 ? TIMELINE
           : n == &w->leaving                                  ? LEAVING
           : n == &w->places                                   ? PLACES
           : n == &w->blocks                                   ? BLOCKS
           : n == &w->key                                      ? KEY
           : n == &w->calls                                    ? CALLS
           : n >= w->shard && n < w->shard + DUE__SHARDS       ? SHARD
           : n >= w->payloads && n < w->payloads + DUE__SHARDS ? PAYLOADS
                                                               : KEYS;
}

/* ---- Notes ---- */

static void add(struct note *n, const char *what, const void *from, const void *to)
{
    struct part *p = &n->part[n->parts++];

    *p = (struct part){ what, from,
                        (size_t)((const unsigned char *)to - (const unsigned char *)from) };
}

/* Between two fields, the second not included. */
#define BETWEEN(n, what, it, from, to) add((n), (what), &(it)->from, &(it)->to)

static void add_topics(struct note *n, due_queue *q)
{
    uint32_t topics = due__load_acquire(&q->topic_count);

    for (uint32_t i = 0; i < topics && i < TOPICS; i++) {
        const struct due__topic *t = due__topic_at(q, i);

        BETWEEN(n, "a topic's line, limiter, waiters or ring", t, line, under_way);
        BETWEEN(n, "a topic's flags", t, listed, retry);
        BETWEEN(n, "a topic's turn", t, turn, number);
        if (t->limiter != NULL)
            BETWEEN(n, "a topic's limiter", t->limiter, line, jobs);
    }
}

/* Of who waits in a list that the timeline's lock guards. */
static void add_waiters(struct note *n, const due_queue *q)
{
    size_t left = WAITERS;

    for (const struct due__waiter *w = q->all; w != NULL && left-- > 0; w = w->all_next)
        BETWEEN(n, "one who waits for a job", w, all_next, after);
    for (const struct due__waiter *w = q->capacity_line.first; w != NULL && left-- > 0;
         w = w->line_next)
        BETWEEN(n, "one who waits for room", w, all_next, after);
}

static void add_commits(const struct watched *w, struct note *n)
{
    const struct due__commits *c = w->q->commits;

    if (n == &w->key) {
        BETWEEN(n, "a sender's batches", c, batch, renew_at_ns);
        BETWEEN(n, "how far a sender has come", c, rewind, settings);
        BETWEEN(n, "what has landed", c, told, landed);
    } else {
        BETWEEN(n, "calls that wait for the store, or what was taken there", c, first, told);
    }
}

static void list_parts(const struct watched *w, struct note *n)
{
    due_queue *q = w->q;

    n->parts = 0;
    if (n == &w->timeline) {
        BETWEEN(n, "what stands behind the timeline's lock", q, gone, alarm);
        BETWEEN(n, "the worker proxy as one who waits", &q->worker, all_next, after);
        add_topics(n, q);
        add_waiters(n, q);
    } else if (n == &w->names) {
        BETWEEN(n, "the table of names", &q->names, table, room);
        add(n, "its room", &q->names.room, &q->names.room + 1);
    } else if (n == &w->leaving) {
        BETWEEN(n, "those who close", q, closers, closer);
    } else if (n == &w->places) {
        BETWEEN(n, "the depot of places", &q->slab, segments, shard);
    } else if (n == &w->blocks) {
        BETWEEN(n, "the depot of blocks", &q->slab.payloads, bytes, shard);
    } else if (n == &w->key || n == &w->calls) {
        add_commits(w, n);
    } else if (n >= w->shard && n < w->shard + DUE__SHARDS) {
        const struct due__shard *it = &q->slab.shard[n - w->shard];

        BETWEEN(n, "a shard's figures", it, count, spare_waiter);
        add(n, "a shard's places", it->magazine, it->magazine + it->count);
        add(n, "how many may leave", &it->spare, &it->spare + 1);
    } else if (n >= w->payloads && n < w->payloads + DUE__SHARDS) {
        const struct due__payload_shard *it = &q->slab.payloads.shard[n - w->payloads];

        add(n, "a shard's blocks", &it->bytes, it + 1);
    } else {
        const struct due__key_shard *it = &due__load_acquire(&q->keys)->shard[n - w->keys];

        add(n, "a shard of keys", &it->count, &it->spent + 1);
    }
}

static void note(const struct watched *w, struct note *n)
{
    size_t len = 0;

    list_parts(w, n);
    for (size_t i = 0; i < n->parts; i++)
        len += n->part[i].len;
    if (len > n->room) {
        free(n->bytes);
        n->bytes = malloc(2 * len);
        n->room = n->bytes != NULL ? 2 * len : 0;
    }
    n->is = n->bytes != NULL;
    len = 0;
    for (size_t i = 0; n->is && i < n->parts; i++) {
        memcpy(n->bytes + len, n->part[i].at, n->part[i].len);
        len += n->part[i].len;
    }
}

static void compare(const struct note *n)
{
    size_t len = 0;

    for (size_t i = 0; i < n->parts; i++) {
        const struct part *p = &n->part[i];

        for (size_t k = 0; memcmp(n->bytes + len, p->at, p->len) != 0 && k < p->len; k++) {
            if (n->bytes[len + k] != p->at[k]) {
                fprintf(stderr, "watch: %s, byte %zu of %zu: changed by who had not the lock\n",
                        p->what, k, p->len);
                abort();
            }
        }
        len += p->len;
    }
}

/* ---- Locks ---- */

/* What is noted of this lock of the queue; NULL: nothing. */
static struct note *note_of(struct watched *w, const struct due__lock *l)
{
    due_queue *q = w->q;
    const struct due__keys *keys = due__load_acquire(&q->keys);

    if (l == &q->lock)
        return &w->timeline;
    if (l == &q->names.lock)
        return &w->names;
    if (l == &q->leaving)
        return &w->leaving;
    if (l == &q->slab.depot)
        return &w->places;
    if (l == &q->slab.payloads.depot)
        return &w->blocks;
    if (q->commits != NULL && l == &q->commits->key)
        return &w->key;
    if (q->commits != NULL && l == &q->commits->calls)
        return &w->calls;
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        if (l == &q->slab.shard[i].lock)
            return &w->shard[i];
        if (l == &q->slab.payloads.shard[i].lock)
            return &w->payloads[i];
    }
    for (size_t i = 0; keys != NULL && i < DUE__KEY_SHARDS; i++) {
        if (l == &keys->shard[i].lock)
            return &w->keys[i];
    }
    return NULL;
}

static void watch(struct due__lock *l, bool got)
{
    for (size_t i = 0; i < QUEUES; i++) {
        struct watched *w = due__load_acquire(&watched[i]);
        struct note *n = w != NULL ? note_of(w, l) : NULL;

        if (n == NULL)
            continue;
        if (!got)
            note(w, n);
        else if (n->is)
            compare(n);
        if (got)
            n->is = false; /* whoever has it may do so */
        if (got)
            has(kind_of(w, n));
        else
            leaves(kind_of(w, n));
        return;
    }
}

/* ---- Queues ---- */

void watch_begin(due_queue *q)
{
    struct watched *w = calloc(1, sizeof *w);
    size_t i = 0;

    while (i < QUEUES && watched[i] != NULL)
        i++;
    if (w == NULL || i == QUEUES) {
        free(w);
        return;
    }
    w->q = q;
    due__lock_watcher = watch;
    due__store_release(&watched[i], w);
}

static void note_free(struct note *n)
{
    free(n->bytes);
}

void watch_end(due_queue *q)
{
    held_count = 0;
    for (size_t i = 0; i < QUEUES; i++) {
        struct watched *w = watched[i];

        if (w == NULL || w->q != q)
            continue;
        due__store_release(&watched[i], NULL);
        note_free(&w->timeline);
        note_free(&w->names);
        note_free(&w->leaving);
        note_free(&w->places);
        note_free(&w->blocks);
        note_free(&w->key);
        note_free(&w->calls);
        for (size_t k = 0; k < DUE__SHARDS; k++) {
            note_free(&w->shard[k]);
            note_free(&w->payloads[k]);
        }
        for (size_t k = 0; k < DUE__KEY_SHARDS; k++)
            note_free(&w->keys[k]);
        free(w);
    }
}

#else

void watch_memory(void) {}

void watch_begin(due_queue *q)
{
    (void)q;
}

void watch_end(due_queue *q)
{
    (void)q;
}

#endif
