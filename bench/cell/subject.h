/* subject.h - the table of operations that every queue to be measured fills in.
 *
 * Threads: open, close and everything named "one thread" from one; enqueue, cancel and dequeue from
 * as many as the setup says, unless BENCH_ONE_THREAD is set.  A subject keeps what it needs of a
 * job itself: number, deadline, topic, payload.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What goes in and comes out. */
struct bench_job {
    uint64_t number;
    int64_t at_ns;    /* on the bench's clock, see bench_now().  In, 0: due at once: who needs the
                         time asks bench_now() then, as its user would */
    const void *data; /* in: copied; out: may be NULL if there was none, valid until done */
    uint32_t len;
    uint32_t topic;
};

/* Names a job that was put in, for cancel. */
union bench_handle {
    unsigned char byte[16];
    void *ptr;
    uint64_t number;
};

struct bench_setup {
    size_t jobs;        /* most that will be held at a time: reserve and touch memory for them */
    unsigned producers; /* threads that put in and cancel: 0 to producers - 1 */
    unsigned consumers; /* threads that take */
    size_t batch;       /* 0: one by one */
    size_t payload;     /* bytes of the largest */
    unsigned topics;    /* 1: no topics needed */
    bool virtual_clock; /* bench_now() stands still until it is turned */
    int64_t spin_ns;    /* wake this much early and spin, if the subject can; 0: no */
    bool lean;          /* memory is measured: reserve nothing, where that is a choice */
    bool spec;          /* put each job in by the call that can say everything of it */
    size_t line;        /* of the limit of cancel: bytes from word to word */
};

enum bench_can {
    BENCH_ONE_THREAD = 1, /* all calls must come from one thread */
    BENCH_CANCEL = 2,     /* cancel */
    BENCH_VIRTUAL = 4,    /* goes by bench_now() also where the clock is virtual */
    BENCH_TOPICS = 8,
    BENCH_PAYLOAD = 16,  /* carries bytes, more than the number */
    BENCH_NO_TIME = 32,  /* knows no deadlines: a priority queue */
    BENCH_SPINS = 64,    /* blocking takes burn the processor */
    BENCH_SPIN_NS = 128, /* honours spin_ns */
    BENCH_SPEC = 256     /* has a short call to put a job in, and honours spec */
};

struct bench_subject {
    const char *name;                               /* "libdue", "mutex-heap" */
    const char *about;                              /* one line: what it is, with its version */
    unsigned can;                                   /* of enum bench_can */
    void *(*open)(const struct bench_setup *setup); /* NULL: out of memory */
    void (*close)(void *q); /* one thread; nothing is left in it, or dropped */

    void (*enqueue)(void *q, unsigned thread, const struct bench_job *job,
                    union bench_handle *handle); /* handle may be NULL */

    /* NULL: the cell calls enqueue in a loop. */
    void (*enqueue_batch)(void *q, unsigned thread, const struct bench_job *jobs, size_t n,
                          union bench_handle *handles);

    /* The first due job.  @wait: until there is one.  False: none is due, and not asked to wait; or
     * nothing is left to drain. */
    bool (*dequeue)(void *q, unsigned thread, struct bench_job *job, bool wait);

    /* Up to @max that are due.  NULL: the cell takes one at a time. */
    size_t (*dequeue_batch)(void *q, unsigned thread, struct bench_job *jobs, size_t max,
                            bool wait);

    /* After the jobs of a take were looked at: their data is no longer needed.  May be NULL. */
    void (*done)(void *q, unsigned thread, struct bench_job *jobs, size_t n);

    /* True: nobody will get it. */
    bool (*cancel)(void *q, unsigned thread, union bench_handle handle);

    /* No more will be put in: who waits gets what is left, each at its time, and then false.  NULL:
     * it cannot be told that. */
    void (*drain)(void *q);

    /* The virtual clock was turned (bench_now() shows the new time).  May be NULL. */
    void (*turned)(void *q, int64_t now_ns);

    /* Give memory back that is no longer used.  May be NULL. */
    void (*trim)(void *q);

    /* Its unit of time: deadlines on a virtual clock are whole multiples of it.  0: 1 ns. */
    int64_t grain_ns;

    /* As cancel, several.  False: one of them could not be.  NULL: the cell calls cancel. */
    bool (*cancel_batch)(void *q, unsigned thread, const union bench_handle *handles, size_t n);

    /* A waiting job gets another deadline; its handle stays.  NULL: it cannot. */
    bool (*reschedule)(void *q, unsigned thread, union bench_handle handle, int64_t at_ns);
};

/* Every subject of this program, in the order of the table; ends with NULL. */
extern const struct bench_subject *const bench_subjects[];

/* The clock all subjects of the table go by: monotonic, or virtual.  Its other calls: clock.h. */
int64_t bench_now(void);

#ifdef __cplusplus
}
#endif

#endif
