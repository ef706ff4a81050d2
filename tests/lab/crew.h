/* crew.h - threads that call a queue, for tests that are programs of their own and for the lab.
 *
 * A crew program takes --seconds S and --seed N, goes through the proxies' modes, and ends with 0,
 * or with 1 after saying what was wrong.  If it hangs, its watchdog says what it was doing.
 */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/workers.h"
#include "lab/extra.h"

/* ---- The program ---- */

struct crew_options {
    int64_t ns;    /* how long to run, in all */
    uint64_t seed; /* */
};

/* Reads the arguments and sets the watchdog. */
struct crew_options crew_options(int argc, char **argv, double seconds);

/* It prints the name and what crew_doing() said last, if nothing else is said for so long. */
void crew_watchdog(const char *program, unsigned seconds);
void crew_doing(const char *what);

/* Print where and why, and end the program with status 1. */
_Noreturn void crew_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define CREW_CHECK(truth, ...)                                 \
    do {                                                       \
        if (!(truth))                                          \
            crew_fail(__FILE__, __LINE__, #truth __VA_ARGS__); \
    } while (0)

int64_t crew_now_ns(void);    /* monotonic */
int64_t crew_cpu_ns(void);    /* of the whole process */
uint64_t crew_switches(void); /* voluntary context switches of all threads so far */
unsigned crew_threads(void);  /* threads of the process */
void crew_sleep(int64_t ns);  /* only where lateness itself is measured */

uint64_t crew_random(uint64_t *state);
uint64_t crew_below(uint64_t *state, uint64_t n);

extern const char *const crew_mode_names[3];

/* An open queue of this mode, or the end of the program. */
due_queue *crew_open(const due_options *options);
/* Closed, every figure added up, and freed. */
void crew_close(due_queue *q, enum due_close_mode mode);

/* ---- A thread ---- */

struct crew_thread {
    pthread_t id;
    atomic_int tid;
    atomic_bool back; /* its call has returned */
    int (*run)(void *arg);
    void *arg;
    int rc;
};

void crew_go(struct crew_thread *t, int (*run)(void *arg), void *arg);
int crew_join(struct crew_thread *t); /* what its run() returned */

/* Until the thread sleeps in the kernel, or its call has returned. */
void crew_until_asleep(struct crew_thread *t);
void crew_until_all_asleep(struct crew_thread *const *t, unsigned n); /* at once; 16 at most */
void crew_until_others_asleep(void); /* all threads of the process but the one that asks */

/* ---- A thread that makes one call ---- */

struct crew_call {
    struct crew_thread thread;
    due_queue *q;
    int64_t timeout_ns;
    const int *topics;        /* dequeue, reserve: of these; NULL: of any */
    size_t n;                 /* topics */
    int64_t lease_ns;         /* reserve */
    due_workers *pool;        /* to be stopped */
    due_job job;              /* what was taken */
    due_spec spec;            /* what is to be put in */
    due_extra more;           /* a copy of what the spec had */
    enum due_close_mode mode; /* how to close */
};

void crew_call_dequeue(struct crew_call *c, due_queue *q, int64_t timeout_ns);
void crew_call_dequeue_from(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                            int64_t timeout_ns);
void crew_call_dequeue_batch(struct crew_call *c, due_queue *q, int64_t timeout_ns);
/* Of @n @topics; NULL and 0: of any. */
void crew_call_reserve(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                       int64_t lease_ns, int64_t timeout_ns);
void crew_call_reserve_batch(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                             int64_t lease_ns, int64_t timeout_ns);
void crew_call_enqueue(struct crew_call *c, due_queue *q, due_spec spec, int64_t timeout_ns);
void crew_call_enqueue_batch(struct crew_call *c, due_queue *q, due_spec spec, int64_t timeout_ns);
void crew_call_close(struct crew_call *c, due_queue *q, enum due_close_mode mode,
                     int64_t timeout_ns);
void crew_call_stop(struct crew_call *c, due_workers *pool, int64_t timeout_ns);

/* Until the call sleeps; what it answered. */
void crew_call_asleep(struct crew_call *c);
int crew_call_answer(struct crew_call *c);

#endif
