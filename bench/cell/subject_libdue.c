/* subject_libdue.c - libdue, as its users call it.
 *
 * Without payload a job carries its number as a pointer, and goes in by the short verbs unless the
 * cell asks for a spec; with payload its number is the first 8 of its bytes.  A job due at once is
 * given no time at all: that is a delay of 0, "now".
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subject.h"

enum { MOST_AT_ONCE = 64 }; /* specs made before they are handed over */

/* What a consumer was lent, on cache lines of its own. */
struct lent {
    due_job *jobs;
    char pad[120];
};

struct subject {
    due_queue *queue;
    due_clock *clock; /* NULL: monotonic */
    int *topics;      /* by the bench's number */
    int *topic_back;  /* and back */
    unsigned topic_count;
    unsigned consumers;
    bool timers; /* a job is a pointer with a time: the short verbs say it */
    struct lent *lent;
};

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "libdue: %s: %s\n", what, due_error_text(rc));
    exit(1);
}

static void *alloc(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    must(memory != NULL ? 0 : DUE_ENOMEM, "the subject's own memory");
    return memory;
}

static void make_topics(struct subject *s, unsigned n)
{
    char name[32];

    s->topic_count = n;
    if (n <= 1)
        return;
    s->topics = alloc(n, sizeof *s->topics);
    s->topic_back = alloc(DUE_TOPIC_MAX + 1, sizeof *s->topic_back);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%u", i);
        s->topics[i] = due_topic(s->queue, name);
        must(s->topics[i], "topic");
        s->topic_back[s->topics[i]] = (int)i;
    }
}

static void *subject_open(const struct bench_setup *setup)
{
    struct subject *s = alloc(1, sizeof *s);
    due_options options = { DUE_OPTIONS_INIT, .spin_ns = setup->spin_ns };
    size_t batch = setup->batch > 0 ? setup->batch : 1;

    if (!setup->lean)
        options.reserve = setup->jobs;
    if (setup->virtual_clock) {
        s->clock = due_clock_manual(bench_now());
        must(s->clock != NULL ? 0 : DUE_ENOMEM, "clock");
        options.manual = s->clock;
    }
    s->timers = !setup->spec && setup->payload == 0 && setup->topics <= 1;
    must(due_open(&s->queue, &options, NULL), "open");
    make_topics(s, setup->topics);
    s->consumers = setup->consumers;
    s->lent = alloc(setup->consumers, sizeof *s->lent);
    for (unsigned i = 0; i < setup->consumers; i++)
        s->lent[i].jobs = alloc(batch, sizeof *s->lent[i].jobs);
    return s;
}

static void subject_close(void *q)
{
    struct subject *s = q;

    must(due_close(s->queue, DUE_CLOSE_DISCARD, DUE_S(60)), "close");
    must(due_free(s->queue), "free");
    must(due_clock_free(s->clock), "clock");
    for (unsigned i = 0; i < s->consumers; i++)
        free(s->lent[i].jobs);
    free(s->lent);
    free(s->topics);
    free(s->topic_back);
    free(s);
}

/* ---- Putting in ------------------------------------------------------------------------------ */

static inline void fill(const struct subject *s, due_spec *spec, const struct bench_job *job)
{
    *spec = (due_spec){ DUE_SPEC_INIT, .at_ns = job->at_ns };
    if (job->len > 0) {
        spec->data = job->data;
        spec->len = job->len;
    } else {
        spec->ptr = (void *)(uintptr_t)job->number;
    }
    if (s->topic_count > 1)
        spec->topic = s->topics[job->topic];
}

static void subject_enqueue(void *q, unsigned thread, const struct bench_job *job,
                            union bench_handle *handle)
{
    struct subject *s = q;
    due_id id;
    due_id *to = handle != NULL ? &id : NULL;
    void *number = (void *)(uintptr_t)job->number;

    (void)thread;
    if (s->timers && job->at_ns != 0) {
        must(due_enqueue_at(s->queue, job->at_ns, number, to), "enqueue");
    } else if (s->timers) {
        must(due_enqueue_after(s->queue, 0, number, to), "enqueue");
    } else {
        due_spec spec;

        fill(s, &spec, job);
        must(due_enqueue(s->queue, &spec, 0, to), "enqueue");
    }
    if (handle != NULL)
        memcpy(handle->byte, id.byte, sizeof id.byte);
}

static void subject_enqueue_batch(void *q, unsigned thread, const struct bench_job *jobs, size_t n,
                                  union bench_handle *handles)
{
    struct subject *s = q;
    due_spec specs[MOST_AT_ONCE];
    due_id ids[MOST_AT_ONCE];

    (void)thread;
    for (size_t at = 0; at < n;) {
        size_t some = n - at < MOST_AT_ONCE ? n - at : MOST_AT_ONCE;

        for (size_t i = 0; i < some; i++)
            fill(s, &specs[i], &jobs[at + i]);
        int rc = due_enqueue_batch(s->queue, specs, some, 0, handles != NULL ? ids : NULL);
        must(rc, "enqueue");
        for (size_t i = 0; handles != NULL && i < (size_t)rc; i++)
            memcpy(handles[at + i].byte, ids[i].byte, sizeof ids[i].byte);
        at += (size_t)rc;
    }
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static inline void show(const struct subject *s, const due_job *from, struct bench_job *job)
{
    job->at_ns = from->deadline_ns;
    job->data = from->data;
    job->len = (uint32_t)from->len;
    job->topic = s->topic_count > 1 ? (uint32_t)s->topic_back[from->topic] : 0;
    if (from->len > 0)
        memcpy(&job->number, from->data, sizeof job->number);
    else
        job->number = (uint64_t)(uintptr_t)from->ptr;
}

static bool subject_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    struct subject *s = q;
    due_job *from = s->lent[thread].jobs;
    int rc = due_dequeue(s->queue, from, wait ? DUE_FOREVER : 0);

    if (rc == DUE_EAGAIN || rc == DUE_ECLOSED)
        return false;
    must(rc, "dequeue");
    show(s, from, job);
    return true;
}

static size_t subject_dequeue_batch(void *q, unsigned thread, struct bench_job *jobs, size_t max,
                                    bool wait)
{
    struct subject *s = q;
    due_job *from = s->lent[thread].jobs;
    int rc = due_take(s->queue, NULL, from, max, wait ? DUE_FOREVER : 0);

    if (rc == DUE_EAGAIN || rc == DUE_ECLOSED)
        return 0;
    must(rc, "dequeue");
    for (int i = 0; i < rc; i++)
        show(s, &from[i], &jobs[i]);
    return (size_t)rc;
}

static void subject_done(void *q, unsigned thread, struct bench_job *jobs, size_t n)
{
    struct subject *s = q;

    (void)jobs;
    due_jobs_done(s->lent[thread].jobs, n);
}

static bool subject_cancel(void *q, unsigned thread, union bench_handle handle)
{
    struct subject *s = q;
    due_id id;

    (void)thread;
    memcpy(id.byte, handle.byte, sizeof id.byte);
    return due_cancel(s->queue, id, NULL) == 0;
}

static bool subject_cancel_batch(void *q, unsigned thread, const union bench_handle *handles,
                                 size_t n)
{
    struct subject *s = q;
    due_id ids[MOST_AT_ONCE];

    (void)thread;
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < MOST_AT_ONCE ? n - at : MOST_AT_ONCE;
        for (size_t i = 0; i < some; i++)
            memcpy(ids[i].byte, handles[at + i].byte, sizeof ids[i].byte);
        if (due_cancel_batch(s->queue, ids, some, NULL) != (int)some)
            return false;
    }
    return true;
}

static bool subject_reschedule(void *q, unsigned thread, union bench_handle handle, int64_t at_ns)
{
    struct subject *s = q;
    due_id id;

    (void)thread;
    memcpy(id.byte, handle.byte, sizeof id.byte);
    return due_reschedule(s->queue, id, at_ns) == 0;
}

static void subject_drain(void *q)
{
    struct subject *s = q;
    int rc = due_close(s->queue, DUE_CLOSE_DRAIN, 0);

    must(rc == DUE_ETIMEDOUT ? 0 : rc, "drain");
}

static void subject_turned(void *q, int64_t now_ns)
{
    struct subject *s = q;

    must(due_clock_turn_to(s->clock, now_ns), "turn");
}

static void subject_trim(void *q)
{
    struct subject *s = q;

    must(due_trim(s->queue), "trim");
}

#define TEXT(x)   #x
#define NUMBER(x) TEXT(x)
#define VERSION \
    NUMBER(DUE_VERSION_MAJOR) "." NUMBER(DUE_VERSION_MINOR) "." NUMBER(DUE_VERSION_PATCH)

const struct bench_subject bench_libdue = {
    .name = "libdue",
    .about = "libdue " VERSION,
    .can = BENCH_CANCEL | BENCH_VIRTUAL | BENCH_TOPICS | BENCH_PAYLOAD | BENCH_SPIN_NS | BENCH_SPEC,
    .open = subject_open,
    .close = subject_close,
    .enqueue = subject_enqueue,
    .enqueue_batch = subject_enqueue_batch,
    .dequeue = subject_dequeue,
    .dequeue_batch = subject_dequeue_batch,
    .done = subject_done,
    .cancel = subject_cancel,
    .cancel_batch = subject_cancel_batch,
    .reschedule = subject_reschedule,
    .drain = subject_drain,
    .turned = subject_turned,
    .trim = subject_trim,
};
