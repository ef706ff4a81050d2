/* subject_broken.c - mutex-heap with one fault each, at job 7: the checks must find it. */
#include <stdlib.h>
#include <string.h>

#include "subject_mutex_heap.h"

enum { VICTIM = 7 };

#define SHIFT_NS INT64_C(1000000000)

/* The second copy of a job waits here; one thread or another finds it. */
static struct bench_job second;
static unsigned char second_bytes[4096];
static bool second_waits;

static bool lost_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait)
{
    bool got = mutex_heap_dequeue(q, thread, out, wait);

    if (!got || out->number != VICTIM)
        return got;
    mutex_heap_done(q, thread, out, 1);
    return mutex_heap_dequeue(q, thread, out, wait);
}

static bool double_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait)
{
    if (__atomic_exchange_n(&second_waits, false, __ATOMIC_ACQ_REL)) {
        *out = second;
        return true;
    }
    bool got = mutex_heap_dequeue(q, thread, out, wait);
    if (got && out->number == VICTIM) {
        second = *out;
        if (out->len > 0)
            second.data = memcpy(second_bytes, out->data, out->len);
        __atomic_store_n(&second_waits, true, __ATOMIC_RELEASE);
    }
    return got;
}

static void double_done(void *q, unsigned thread, struct bench_job *jobs, size_t n)
{
    if (jobs[0].data != second_bytes)
        mutex_heap_done(q, thread, jobs, n);
}

/* Another deadline within than is said outside; what is due at once has none. */
static bool shifted;

static void shifted_enqueue(void *q, unsigned thread, const struct bench_job *in,
                            union bench_handle *handle, int64_t by_ns)
{
    struct bench_job job = *in;

    if (job.number == VICTIM && job.at_ns != 0) {
        job.at_ns += by_ns;
        __atomic_store_n(&shifted, true, __ATOMIC_RELEASE);
    }
    mutex_heap_enqueue(q, thread, &job, handle);
}

static bool shifted_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait,
                            int64_t by_ns)
{
    bool got = mutex_heap_dequeue(q, thread, out, wait);

    if (got && out->number == VICTIM && __atomic_load_n(&shifted, __ATOMIC_ACQUIRE))
        out->at_ns -= by_ns;
    return got;
}

static void early_enqueue(void *q, unsigned thread, const struct bench_job *in,
                          union bench_handle *handle)
{
    shifted_enqueue(q, thread, in, handle, -SHIFT_NS);
}

static bool early_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait)
{
    return shifted_dequeue(q, thread, out, wait, -SHIFT_NS);
}

static void order_enqueue(void *q, unsigned thread, const struct bench_job *in,
                          union bench_handle *handle)
{
    shifted_enqueue(q, thread, in, handle, SHIFT_NS);
}

static bool order_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait)
{
    return shifted_dequeue(q, thread, out, wait, SHIFT_NS);
}

/* Says so, and does not. */
static bool cancel_cancel(void *q, unsigned thread, union bench_handle handle)
{
    static unsigned calls;

    return __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) == VICTIM ||
           mutex_heap_cancel(q, thread, handle);
}

static bool bytes_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait)
{
    bool got = mutex_heap_dequeue(q, thread, out, wait);

    if (got && out->number == VICTIM && out->len > 0)
        out->data = memset(second_bytes, 1, out->len);
    return got;
}

static bool order_reschedule(void *q, unsigned thread, union bench_handle handle, int64_t at_ns)
{
    static unsigned calls;

    return __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) == VICTIM ||
           mutex_heap_reschedule(q, thread, handle, at_ns);
}

#define BROKEN(NAME, WHAT, ENQUEUE, DEQUEUE, DONE, CANCEL)   \
    const struct bench_subject NAME = {                      \
        .name = WHAT,                                        \
        .about = "mutex-heap with a fault",                  \
        .can = BENCH_CANCEL | BENCH_VIRTUAL | BENCH_PAYLOAD, \
        .open = mutex_heap_open,                             \
        .close = mutex_heap_close,                           \
        .enqueue = ENQUEUE,                                  \
        .dequeue = DEQUEUE,                                  \
        .done = DONE,                                        \
        .cancel = CANCEL,                                    \
        .reschedule = order_reschedule,                      \
    }

BROKEN(bench_broken_lost, "broken-lost", mutex_heap_enqueue, lost_dequeue, mutex_heap_done,
       mutex_heap_cancel);
BROKEN(bench_broken_double, "broken-double", mutex_heap_enqueue, double_dequeue, double_done,
       mutex_heap_cancel);
BROKEN(bench_broken_early, "broken-early", early_enqueue, early_dequeue, mutex_heap_done,
       mutex_heap_cancel);
BROKEN(bench_broken_order, "broken-order", order_enqueue, order_dequeue, mutex_heap_done,
       mutex_heap_cancel);
BROKEN(bench_broken_cancel, "broken-cancel", mutex_heap_enqueue, mutex_heap_dequeue,
       mutex_heap_done, cancel_cancel);
BROKEN(bench_broken_bytes, "broken-bytes", mutex_heap_enqueue, bytes_dequeue, mutex_heap_done,
       mutex_heap_cancel);
