/* shared_cell.h - a cell of a queue that is one server's, with producers and consumers around it.
 *
 * The main thread starts the server, forks the processes that consume before anything else has
 * threads, puts the jobs in, and lets the consumers begin.  What they count lies in memory that all
 * share.  How fast, how late and at what cost is reckoned in one place for all subjects (work.c).
 *
 * Not here   The cells of queues in one process: ../cell.
 */
#ifndef BENCH_SHARED_CELL_H
#define BENCH_SHARED_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SHARED_S       INT64_C(1000000000) /* a second */
#define SHARED_BATCH   256                 /* most jobs of one call */
#define SHARED_PAYLOAD 1024                /* most bytes of a job */
#define SHARED_CREW    64                  /* most producers, consumers and processes */

/* Exit statuses: README.md. */
enum shared_status { SHARED_OK = 0, SHARED_WRONG = 1, SHARED_USAGE = 2, SHARED_CANNOT = 3 };

struct shared_options {
    uint64_t jobs;
    unsigned producers, consumers, processes;
    size_t batch; /* put in, taken and acked at once; 0: one by one */
    size_t payload;
    int64_t gap_ns;
};

struct shared_job {
    uint64_t number;  /* */
    int64_t delay_ns; /* put: from now; 0: due at once */
    bool intact;      /* taken: its bytes are those that went in */
};

/* Jobs that a server has. */
struct shared_count {
    uint64_t later; /* not due yet */
    uint64_t other; /* due, or taken and not acked */
};

/* A server of one kind, and its clients.  Whatever goes wrong ends the process by shared_die(). */
struct shared_subject {
    const char *name, *about;
    void (*start)(void); /* a private server */
    void (*stop)(void);
    pid_t (*server)(void);
    /* A client for so many threads of this process.  @put: it puts in; else it takes. */
    void *(*open)(const struct shared_options *o, unsigned threads, bool puts);
    void (*close)(void *client);
    /* By the thread of that number, at most SHARED_BATCH jobs; returns when all were confirmed. */
    void (*put)(void *client, unsigned thread, const struct shared_job *jobs, size_t n);
    /* At least one, if one comes within some tenths of a second, and at most a batch. */
    size_t (*take)(void *client, unsigned thread, struct shared_job *jobs);
    void (*done)(void *client, unsigned thread); /* all that was taken last: acked */
    struct shared_count (*count)(void *client);  /* as the server has it */
};

extern const struct shared_subject shared_libdue, shared_beanstalkd;

struct shared_line {
    double value, wall_s, cpu_s;
    long voluntary, involuntary;
    uint64_t count, hash;
    const char *more_name[6];
    double more[6];
    size_t more_count;
};

void shared_die(int status, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* ---- Jobs (work.c) ---- */

void shared_payload(const struct shared_options *o, uint64_t number, unsigned char *bytes);
/* The number in these bytes, and whether they are as they went in. */
struct shared_job shared_read(const struct shared_options *o, const void *bytes, size_t len);

/* ---- The workloads (work.c) ---- */

struct shared_workload {
    const char *name, *about, *unit;
    uint64_t jobs; /* default */
    void (*run)(const struct shared_subject *s, const struct shared_options *o,
                struct shared_line *line);
};

extern const struct shared_workload shared_workloads[]; /* ends with a NULL name */

/* ---- Processes that consume (crew.c) ---- */

/* What consumers have counted, when all jobs were done. */
struct shared_taken {
    uint64_t count, hash, garbled;
    int64_t first_ns, last_ns; /* monotonic: when they were let begin, and when the last was done */
    double cpu_s;              /* of all processes */
    long voluntary, involuntary;
};

/* Fork them; they open their clients and wait.  @late: room for the time at which each job was had,
 * by number, or NULL; shared_crew_room() gives it. */
void shared_crew_start(const struct shared_subject *s, const struct shared_options *o,
                       int64_t *late);
void *shared_crew_room(size_t bytes); /* zeroed, and shared with processes forked after */
void shared_crew_ready(void);         /* returns when all have opened their clients */
void shared_crew_begin(void);
struct shared_taken shared_crew_end(uint64_t jobs); /* returns when so many are done */

/* ---- Time ---- */

int64_t shared_now(void); /* monotonic: the same for all processes */
void shared_nap(int64_t ns);
double shared_server_s(pid_t server); /* processor time of its main thread; below 0: not known */

#endif
