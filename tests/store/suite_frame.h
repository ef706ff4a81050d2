/* suite_frame.h - what the tests of a store are made of: jobs that are known, and their store.
 *
 * A test describes jobs and refers to them by their number.  What it commits is noted, and whatever
 * the store shows is compared with it, byte by byte.
 */
#ifndef SUITE_FRAME_H
#define SUITE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_suite.h"

#define SUITE_STORES  4
#define SUITE_SOON_NS DUE_S(30) /* far longer than any call may take that is not held up */

struct suite_job {
    due_record record; /* as stored, or as it will be put first */
    void *bytes;       /* its own copy, or NULL */
    size_t topic;      /* the number of its name */
    bool stored;       /* */
    bool gone_once;    /* was not stored all the time since the load began */
    unsigned seen;     /* times shown in this load */
};

struct suite {
    const struct store_maker *maker;
    const char *test;
    char queue[64];
    due_store *stores[SUITE_STORES];
    bool open[SUITE_STORES];
    struct due_store_info info[SUITE_STORES];
    uint64_t number[SUITE_STORES]; /* of the last batch */
    due_error error;
    uint64_t writer_min; /* what openings ask for */
    bool failed;
    unsigned told; /* things that are wrong: the first few are said */
    bool skipped;
    struct suite_job *jobs;
    size_t n_jobs;
    size_t jobs_room;
    char **topics;
    size_t n_topics;
    size_t *last;     /* of each topic: the job shown last, and one more; 0: none */
    size_t last_dead; /* the same of the dead */
    due_change *changes;
    size_t *changed; /* the numbers of their jobs */
    size_t n_changes;
    size_t changes_room;
    size_t shown; /* by the last call, or load */
    bool ordered; /* whether the order is looked at */
    int refuse;   /* what the visit answers instead of 0, */
    size_t after; /* once it has been shown so many */
    bool hurried; /* each call is interrupted before it begins */
    uint64_t random;
};

/* The test is over if this is not so. */
#define CHECK(t, truth, ...)                                                         \
    do {                                                                             \
        if (!suite_check((t), (truth), __FILE__, __LINE__, #truth ": " __VA_ARGS__)) \
            return;                                                                  \
    } while (0)
/* For a call of the store: its answer must be this. */
#define ANSWERS(t, call, wanted)                                              \
    do {                                                                      \
        if (!suite_answers((t), (call), (wanted), __FILE__, __LINE__, #call)) \
            return;                                                           \
    } while (0)

bool suite_check(struct suite *t, bool truth, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool suite_answers(struct suite *t, int rc, int wanted, const char *file, int line,
                   const char *call);
void suite_skip(struct suite *t, const char *why);
/* False, and the test is left out, if the hook is NULL. */
bool suite_has(struct suite *t, bool hook, const char *name);

int64_t suite_now_ns(void);      /* CLOCK_MONOTONIC */
int64_t suite_boottime_ns(void); /* CLOCK_BOOTTIME */
int64_t suite_soon(void);        /* now and SUITE_SOON_NS */
uint64_t suite_below(struct suite *t, uint64_t n);

/* ---- Stores: @s is 0 to SUITE_STORES - 1 ---- */

int suite_open_until(struct suite *t, int s, int64_t until_ns);
int suite_open(struct suite *t, int s);
/* As long as it takes to be told why not: a busy machine may be too slow to ask in a short time. */
int suite_open_in_vain(struct suite *t, int s);
void suite_close(struct suite *t, int s);   /* close and free */
void suite_abandon(struct suite *t, int s); /* free without closing, as a crash does */
void suite_end_lease(struct suite *t);      /* by the hook, or by waiting */
due_store *suite_store(struct suite *t, int s);

due_store *suite_called(struct suite *t, int s); /* the same, interrupted if calls are to be */

/* Calls that go on after DUE_EAGAIN and DUE_EINDOUBT until SUITE_SOON_NS have passed. */
int suite_ready(struct suite *t, int s);
int suite_commit(struct suite *t, int s); /* what has been gathered; if it lands, it is noted */
int suite_commit_on(struct suite *t, int s, int64_t until_ns); /* one call only, not noted */
void suite_noted(struct suite *t, int s);                      /* it has landed */
void suite_dropped(struct suite *t);                           /* it has not: forget it */

/* ---- Jobs ---- */

due_id suite_id(int priority, uint64_t writer, uint64_t sequence);
size_t suite_job(struct suite *t, const char *topic, int64_t until_ns, const void *data,
                 size_t len);
/* Gather changes for the next batch. */
void suite_put(struct suite *t, size_t job);
void suite_move(struct suite *t, size_t job, int64_t until_ns);
void suite_bury(struct suite *t, size_t job, enum due_cause cause, int64_t died_ns,
                const char *reason);
void suite_kick(struct suite *t, size_t job, int64_t until_ns); /* back from the dead */
void suite_drop(struct suite *t, size_t job); /* its key, if it has one, is free */
void suite_drop_keeping(struct suite *t, size_t job, int64_t until_ns); /* its key is kept */
void suite_change(struct suite *t, enum due_change_kind kind, size_t job, const due_record *record);
/* Commit whenever a batch is full. */
bool suite_put_all(struct suite *t, int s);
bool suite_drop_all(struct suite *t, int s);

/* ---- What the store shows ---- */

void suite_begin_load(struct suite *t);
int suite_visit(void *ctx, const due_record *record); /* compares */
/* One page, gone on after DUE_EAGAIN. */
int suite_page(struct suite *t, int s, bool rewind, size_t max);
bool suite_all_seen(struct suite *t);              /* everything that was stored all the time */
bool suite_same(struct suite *t, int s);           /* load everything: that, and nothing else */
int suite_find(struct suite *t, int s, due_id id); /* compares */

/* ---- The tests ---- */

struct suite_test {
    const char *name;
    void (*run)(struct suite *t);
};

/* Each ends with a name of NULL. */
extern const struct suite_test suite_open_tests[];
extern const struct suite_test suite_commit_tests[];
extern const struct suite_test suite_pipeline_tests[];
extern const struct suite_test suite_load_tests[];
extern const struct suite_test suite_call_tests[];
extern const struct suite_test suite_dead_tests[];
extern const struct suite_test suite_key_tests[];
extern const struct suite_test suite_topic_tests[];

#endif
