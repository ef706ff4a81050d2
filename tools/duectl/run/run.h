/* run.h - jobs that come due: `duectl run`, `check` and `work`.
 *
 * A run has two queues.  Every job leaves through the queue on the monotonic clock, which nobody
 * can set.  Those that a date was given for wait in the queue on the wall clock, and when they are
 * due a thread of their own passes them on to the first.
 *
 *     reader ---- delays ----------------------> queue ----> printer, or N workers
 *          \----- dates ----> wall ----> passer ---/
 *
 * A run with a store has one queue, which is on the wall clock and keeps everything in the store.
 *
 * Guards  I  set before the threads start, then constant    L  the lock of its own room
 *         A  atomic                                         R  the reader alone
 */
#ifndef DUECTL_RUN_H
#define DUECTL_RUN_H

#include "move/move.h"

/* ---- A run ----------------------------------------------------------------------------------- */

/* The commands that are running. */
struct ctl_crew {
    pthread_mutex_t lock;
    pid_t pids[CTL_WORKERS_MAX]; /* L  0: none */
    int signal;                  /* L  what they have been sent last; 0: nothing */
};

struct ctl_thread {
    struct ctl_run *run;
    void (*body)(struct ctl_run *run, int number);
    pthread_t id;
    int number;
};

/* A change that the store refused. */
struct ctl_refusal {
    due_id id;
    int rc;
};

/* What a run with a store has besides. */
struct ctl_stored {
    due_store *store;                        /* I  the queue's */
    int loaded_fd;                           /* I  readable once everything stored has been read */
    int ended_fd;                            /* I  readable when a job has been answered for */
    int handling;                            /* L  how many are at a due job */
    bool stopping;                           /* L  no due job is to be begun with */
    atomic_bool putting;                     /* A  lines are being stored */
    pthread_mutex_t lock;                    /* I  */
    size_t refusals;                         /* L  may be more than there is room for */
    struct ctl_refusal refused[2 * CTL_PUT]; /* L  */
    size_t n;                                /* R  lines that wait to be stored, */
    size_t bytes;                            /* R  */
    struct ctl_job *jobs[CTL_PUT];           /* R  */
    due_spec specs[CTL_PUT];                 /* R  */
    due_id ids[CTL_PUT];                     /* R  */
    int results[CTL_PUT];                    /* R  0, or why one was not stored */
};

struct ctl_run {
    const struct ctl_options *options; /* I  */
    struct ctl_input in;               /* I  */
    due_queue *queue;                  /* I  */
    due_queue *wall;                   /* I  NULL when a log is replayed */
    int stop_fd;                       /* I  readable once the run has been stopped */
    int event_fd;                      /* I  readable when the watch should look again */
    int64_t start_ns;                  /* I  */
    atomic_int busy;                   /* A  threads that have not ended */
    atomic_int broken;                 /* A  why it cannot go on: errno, CTL_SAID, or 0: it can */
    atomic_bool again;                 /* A  lines have been read that come again */
    void *keys;                        /* K  jobs with a key, of a run without a store */
    pthread_mutex_t keys_lock;         /* I  K */
    atomic_bool unread;                /* A  the input was not read to its end */
    atomic_bool opening;               /* A  whatever is logged is said */
    atomic_bool closing;               /* A  the stored queue is being closed */
    bool said_closing;                 /* what that waits for; by the thread that watches */
    struct ctl_screen screen;
    struct ctl_tally tally;
    struct ctl_crew crew;
    struct ctl_stored stored;
    struct ctl_thread threads[CTL_WORKERS_MAX + 3]; /* I  */
    int thread_count;                               /* I  by the thread that watches */
};

/* `duectl run`, `duectl check`: the exit status. */
int ctl_run(const struct ctl_options *options);
int ctl_check(const struct ctl_options *options);

/* The threads. */
void ctl_read(struct ctl_run *run, int number);
void ctl_pass(struct ctl_run *run, int number);
void ctl_print(struct ctl_run *run, int number);
void ctl_exec(struct ctl_run *run, int number);
void ctl_print_stored(struct ctl_run *run, int number);
void ctl_exec_stored(struct ctl_run *run, int number);

/* What came of a command: it has ended with 0; it asks to be run again; or it failed. */
enum ctl_outcome { CTL_DONE, CTL_AGAIN, CTL_FAILED };

/* Run the command for a job, and wait for it.  What went wrong is said, but not counted. */
enum ctl_outcome ctl_exec_job(struct ctl_run *run, int number, const struct ctl_job *job);

/* Is a job to be tried again after this? */
bool ctl_retries(const struct ctl_run *run, const due_job *due, enum ctl_outcome outcome);
/* A stored attempt that nobody answered for ended with its duectl: once there were as many as the
 * job may have, it is likely that its command ends duectl.  This is said; it is to be buried. */
#define CTL_FATAL "duectl did not outlive its attempts"
bool ctl_is_fatal(struct ctl_run *run, const due_job *due);

/* A stored job as one that a command is given; NULL: no memory. */
struct ctl_job *ctl_job_copy(const due_job *due);

/* Was the commands' end brought about by the end of the run? */
bool ctl_was_stopped(struct ctl_crew *crew);

/* Send @signal to every command that runs, and to those that start after all. */
void ctl_crew_signal(struct ctl_crew *crew, int signal);

/* Count the lateness of a job that was just taken. */
void ctl_job_taken(struct ctl_run *run, const due_job *job);

/* The run cannot go on, for this errno of standard output; or CTL_SAID: the reason has been said.
 * The watch stops it. */
enum { CTL_SAID = -1 };
void ctl_run_broken(struct ctl_run *run, int error);

/* Open the queues of a run without a store: false: said why not. */
bool ctl_queues_open(struct ctl_run *run);
void ctl_queues_free(struct ctl_run *run);
/* One that has left both, or never was in one. */
void ctl_job_free(struct ctl_run *run, struct ctl_job *job);

/* Put a job into a queue of a run without a store: 0 or a DUE_E* code. */
int ctl_job_put(struct ctl_run *run, enum ctl_clock clock, int64_t at_ns, struct ctl_job *job);

/* It has been handed out, or its time limit had passed: it comes again, or is freed. */
void ctl_job_end(struct ctl_run *run, struct ctl_job *job, int64_t deadline_ns);

/* Has its time limit passed, since nobody took it?  Then this is said, and counted. */
bool ctl_job_is_over(struct ctl_run *run, const due_job *due);

/* Have the key of a job, until it is freed.  False: another job has it. */
bool ctl_key_take(struct ctl_run *run, struct ctl_job *job);

/* Close both: what waits is left. */
void ctl_queues_close(struct ctl_run *run);

/* The last that goes into a queue has gone in: close it when everything in it has been delivered,
 * or the run has been stopped. */
void ctl_run_drain(struct ctl_run *run, due_queue *q);

/* What the library logs, for due_options.on_log. */
void ctl_run_log(void *ctx, enum due_log_level level, const char *text);

/* Close the queue at once. */
void ctl_run_close(struct ctl_run *run);

/* One more thread of a run that is being watched: 0 or an errno. */
int ctl_run_start(struct ctl_run *run, void (*body)(struct ctl_run *, int), int number);

/* Watch until every thread has ended.  The answer is the signal that stopped the run, or 0; or it
 * does not return, because a thread hangs. */
int ctl_watch(struct ctl_run *run, int signal_fd);

/* Say what was left and, with --stats, what there was. */
void ctl_report(struct ctl_run *run, int signal);

/* The exit status of a run that has ended. */
int ctl_run_status(struct ctl_run *run, int signal);

/* ---- Stored jobs ----------------------------------------------------------------------------- */

/* Open run->queue: an exit status, said why unless it is CTL_FINE.  A signal ends it: 128 and its
 * number.  What it waits for is said. */
int ctl_queue_open(struct ctl_run *run, const due_options *options, int signal_fd);

/* Close run->queue.  False: a signal has come meanwhile, or it takes long and no thread can be had
 * for it; then it is still being closed, and the process should end. */
bool ctl_queue_close(struct ctl_run *run, int signal_fd);
#define CTL_CLOSE_NS DUE_S(10)

/* What that waits for, once. */
void ctl_say_closing(struct ctl_run *run);

/* Open the queue of a run with a store: an exit status. */
int ctl_stored_open(struct ctl_run *run, int signal_fd);
void ctl_stored_close(struct ctl_run *run); /* after its queue */

/* A line that is to be stored; it is given away.  False: stop reading. */
bool ctl_stored_put(struct ctl_run *run, struct ctl_job *job, int64_t at_ns);

/* Store what has been put, and wait until it is safe there. */
bool ctl_stored_flush(struct ctl_run *run);

/* Nothing more is put: close the queue when all has been delivered, or the run was stopped. */
void ctl_stored_finish(struct ctl_run *run);

/* Wait until everything stored has been read: false: the run was stopped before. */
bool ctl_stored_loaded(struct ctl_run *run);

/* Begin with no other job; close the queue when those that were begun with are done. */
void ctl_stored_stop(struct ctl_run *run);

/* Jobs that stay in the store. */
uint64_t ctl_stored_left(struct ctl_run *run);

/* `duectl work`: the exit status. */
int ctl_work(const struct ctl_options *options);

#endif
