/* duectl.h - the rooms of the command duectl.
 *
 *   main.c           main, usage, version
 *   options.c   the command line
 *   lines.c     a file or a pipe becomes lines
 *   delay.c     delays, and the lines of a schedule
 *   date.c      dates of ISO 8601, and timestamps in the lines of a log
 *   feed.c      lines become jobs
 *   take.c      due jobs are printed
 *   exec.c      due jobs are handed to commands
 *   run.c       what a run consists of: opened, started, ended
 *   watch.c     signals, the progress line, the end of a run
 *   tally.c     counts and lateness
 *   report.c    what a run says at its end
 *   screen.c    standard output and standard error
 *   text.c      the bytes of others, made fit for a terminal
 *   bench.c     finds and starts the benchmarks
 *   url.c       the address of a server, and how its password is hidden
 *   open.c      a stored queue is opened and closed while signals are looked for
 *   stored.c    a run whose jobs are stored: lines go in, due jobs come out
 *   inspect/store.c     the store of such a run
 *   server.c    questions to a server, for the commands that look at one
 *   keys.c      the keys of a stored queue, and its jobs page by page
 *   inspect/restore.c   what a stored queue holds
 *   doctor.c    what a server promises, and what is to be changed
 *   verify.c    whether a stored queue is whole
 *   repair.c    what is done about it
 *   storeless.c instead of the last seven, where the library has no store
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
#ifndef DUECTL_H
#define DUECTL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "due/due.h"
#include "due/store.h"

/* Exit statuses of all commands; who is stopped by a signal ends with 128 and its number. */
enum { CTL_FINE = 0, CTL_FAULTS = 1, CTL_USAGE = 2, CTL_BROKEN = 3 };

enum {
    CTL_LINE_MAX = 1 << 20,  /* bytes of one line */
    CTL_WORKERS_MAX = 256,   /* commands at a time */
    CTL_AHEAD = 1 << 16,     /* lines of a log that are read ahead */
    CTL_BATCH = 64,          /* lines printed at once */
    CTL_ENV_MAX = 64 * 1024, /* bytes of a text that is also put into the environment */
    CTL_PUT = 256,           /* lines that are stored at once, */
    CTL_PUT_BYTES = 4 << 20, /* and about how many bytes */
    CTL_TOPICS_MAX = 64,     /* that `work` takes jobs of, where it is not all */
    CTL_ATTEMPTS = 5,        /* of a command that is tried again */
    CTL_TEMPFAIL = 75,       /* the exit status that asks for that (EX_TEMPFAIL) */
};

/* ---- The command line ------------------------------------------------------------------------ */

struct ctl_options {
    const char *file; /* NULL: standard input */
    const char *exec; /* NULL: print */
    int workers;
    bool replay;
    double speed;
    bool stats;
    bool help;
    int64_t grace_ns;
    const char *store;           /* a URL, or NULL: nothing is stored */
    const char *queue;           /* its name in the store */
    bool ack_lines;              /* */
    bool standby;                /* */
    enum due_durability require; /* */
    enum due_durability assume;  /* what a server keeps that does not say */
    bool retries;                /* failed commands are run again: */
    due_retry retry;             /* when, */
    uint32_t attempts;           /* and how often in all, unless they ask for more */
    const char *topics[CTL_TOPICS_MAX];
    size_t topic_count; /* 0: all */
};

/* Read "5s", "1s..1h" or "1m,10m,1h". */
bool ctl_retry_read(const char *text, due_retry *retry);
/* The policy of a stored queue: so that each attempt is stored before it begins. */
due_retry ctl_retry_stored(const struct ctl_options *o);

/* Read the arguments of `run`, `work` or `check`; @argv[0] is that word.  False: said what is
 * wrong. */
bool ctl_options_read(struct ctl_options *options, int argc, char **argv);

/* Note what URLs the arguments and the environment hold, and overwrite their users and passwords
 * where other processes can see them.  First of all in main(). */
void ctl_urls_hide(int argc, char **argv);

/* The URL of which @shown is left in the arguments; NULL: the one of the environment, or NULL. */
const char *ctl_url_of(const char *shown);

/* Wipe what was noted: after the last use of a URL. */
void ctl_urls_forget(void);

/* Is an argument that stands alone a URL? */
bool ctl_is_url(const char *text);

/* Read "none", "everysec" or "always"; @option is what it was given for.  False: said. */
bool ctl_durability_read(const char *option, const char *text, enum due_durability *level);

/* 1 to 64 of the characters that the name of a queue may have. */
bool ctl_is_name(const char *name);

/* ---- Delays and lines of a schedule ---------------------------------------------------------- */

/* A text that is being read.  Whoever cannot go on says why and where. */
struct ctl_cursor {
    const char *text;
    size_t len;
    size_t at;
    const char *reason; /* NULL: no fault */
};

enum ctl_kind { CTL_NOTHING, CTL_DELAY, CTL_DATE, CTL_FAULT };

/* A line of a schedule. */
struct ctl_entry {
    enum ctl_kind kind;
    int64_t ns;         /* the delay; or nanoseconds since 1970, rounded up */
    size_t text;        /* where the text begins; it ends with the line */
    size_t column;      /* of the fault, from 1 */
    const char *reason; /* of the fault */
};

/* Read "1m30s" or "1.5s" at the cursor, rounded up to nanoseconds. */
bool ctl_delay_read(struct ctl_cursor *c, int64_t *ns);

void ctl_entry_read(struct ctl_entry *entry, const char *line, size_t len);

/* Note a fault at the cursor.  Always false. */
bool ctl_fault(struct ctl_cursor *c, const char *reason);

/* Read up to @most digits; the answer is how many there were. */
int ctl_digits_read(struct ctl_cursor *c, int most, int64_t *value);

/* ---- Dates and timestamps -------------------------------------------------------------------- */

/* Read "2026-12-01T08:00:00Z" at the cursor: nanoseconds since 1970, rounded up. */
bool ctl_date_read(struct ctl_cursor *c, int64_t *unix_ns);

/* Find the first timestamp in a line of a log. */
bool ctl_stamp_find(const char *line, size_t len, int64_t *unix_ns);

/* ---- Input ----------------------------------------------------------------------------------- */

struct ctl_input {
    const char *name; /* as it is said in messages */
    int fd;
};

struct ctl_line {
    const char *bytes; /* without its ending; valid during the call */
    size_t len;
    uint64_t number; /* from 1 */
    bool too_long;   /* it had more than CTL_LINE_MAX bytes; these are the first */
};

/* Whoever gets the lines. */
struct ctl_sink {
    void (*arrived)(void *ctx); /* bytes have come, or the end: look at the clock */
    bool (*line)(void *ctx, const struct ctl_line *line); /* false: stop reading */
    bool (*paused)(void *ctx); /* nothing more has come so far, or the end; likewise.  Or NULL */
    void *ctx;
};

/* Open the file, or standard input for NULL and "-".  False: said why not. */
bool ctl_input_open(struct ctl_input *in, const char *file);
void ctl_input_close(struct ctl_input *in);

/* Read to the end: 0.  1: @stop_fd became readable (-1: none), or the sink stopped; or -errno. */
int ctl_lines_read(const struct ctl_input *in, int stop_fd, const struct ctl_sink *sink);

/* ---- What is said ---------------------------------------------------------------------------- */

struct ctl_screen {
    pthread_mutex_t lock;
    bool shared;          /* I  standard output and standard error are both terminals */
    bool wants_progress;  /* I  */
    bool shows_progress;  /* L  */
    atomic_bool given_up; /* A  a thread that hangs may hold the lock: do without */
};

void ctl_screen_open(struct ctl_screen *s, bool progress, bool exec);

/* Write lines to standard output: 0 or -errno. */
int ctl_screen_write(struct ctl_screen *s, struct iovec *pieces, int n);

/* Say something on standard error. */
void ctl_say(struct ctl_screen *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Show, or with NULL erase, the progress line, of ASCII; it is cut to the terminal's width. */
void ctl_screen_progress(struct ctl_screen *s, const char *text);

/* A text as a terminal may show it: each control character, mark of writing direction, or byte that
 * is no UTF-8 becomes a question mark.  What does not fit into @room is cut: at least 4. */
const char *ctl_text_show(char *shown, size_t room, const void *text, size_t len);

/* ---- Counts ---------------------------------------------------------------------------------- */

enum { CTL_FIRST_LEFT = 3, CTL_EXCERPT = 60, CTL_BUCKETS = 59 * 32 };

/* Durations, exact below 32 ns and to one part in 32 above. */
struct ctl_histogram {
    uint64_t bucket[CTL_BUCKETS];
    uint64_t count;
    int64_t max_ns;
};

void ctl_histogram_add(struct ctl_histogram *h, int64_t ns);

/* The duration that @percent of all do not exceed, rounded up to its bucket's end. */
int64_t ctl_histogram_percentile(const struct ctl_histogram *h, double percent);

/* What a queue carries: one line. */
struct ctl_job {
    int64_t late_ns; /* how late the wall clock's queue has handed it out */
    uint64_t line;   /* 0: of a stored job it is not known any more, */
    due_id id;       /* but this */
    size_t len;
    char text[]; /* and after it a line feed */
};

/* Jobs that nobody got, and the earliest of them. */
struct ctl_left {
    uint64_t count;
    struct ctl_left_job {
        int64_t deadline_ns;
        uint64_t line;
        char text[CTL_EXCERPT + 4];
    } first[CTL_FIRST_LEFT];
};

enum ctl_clock { CTL_MONOTONIC, CTL_WALL };

struct ctl_counts {
    uint64_t lines;        /* read */
    uint64_t jobs;         /* of them, what became jobs */
    uint64_t faults;       /* of them, what could not be read */
    uint64_t past;         /* jobs whose date had passed when they were read */
    uint64_t unstamped;    /* lines of a log without a timestamp */
    uint64_t out_of_order; /* lines of a log with a timestamp before an earlier line's */
    uint64_t delivered;    /* printed, or their command has ended */
    uint64_t failed;       /* commands that failed */
    uint64_t early;        /* handed out before the deadline: a bug of the library */
};

struct ctl_tally {
    pthread_mutex_t lock;
    struct ctl_counts counts;      /* L  */
    struct ctl_histogram lateness; /* L  */
    struct ctl_left left[2];       /* L  by enum ctl_clock */
};

void ctl_tally_open(struct ctl_tally *t);
void ctl_tally_add(struct ctl_tally *t, uint64_t *count, uint64_t by);
void ctl_tally_lateness(struct ctl_tally *t, int64_t ns, bool early);
void ctl_tally_left(struct ctl_tally *t, enum ctl_clock clock, int64_t deadline_ns,
                    const struct ctl_job *job);
struct ctl_counts ctl_tally_counts(struct ctl_tally *t);

/* Write a duration for people: "31.2 us", "2.50 s", "3 h 20 min". */
enum { CTL_DURATION = 32 };
char *ctl_duration(char text[CTL_DURATION], int64_t ns);

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

/* The last that goes into a queue has gone in: close it when everything in it has been delivered,
 * or the run has been stopped. */
void ctl_run_drain(struct ctl_run *run, due_queue *q);

/* What the library logs, for due_options.on_log. */
void ctl_run_log(void *ctx, enum due_log_level level, const char *text);

/* Close the queue at once. */
void ctl_run_close(struct ctl_run *run);

/* Close both queues; what waits is counted as left. */
void ctl_run_stop(struct ctl_run *run);

/* Block the signals that stop a run, before its threads start: a descriptor, or -1. */
int ctl_watch_open(void);

/* The number of the next signal that has come, or 0. */
int ctl_signal_next(int signal_fd);

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

/* The store that the options ask for; NULL: said why there is none. */
due_store *ctl_store_new(const struct ctl_options *options);
void ctl_store_free(due_store *store); /* one that no queue took over */

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

/* Wait until everything stored has been read: false: the run was stopped before. */
bool ctl_stored_loaded(struct ctl_run *run);

/* Begin with no other job; close the queue when those that were begun with are done. */
void ctl_stored_stop(struct ctl_run *run);

/* Jobs that stay in the store. */
uint64_t ctl_stored_left(struct ctl_run *run);

/* `duectl work`: the exit status. */
int ctl_work(const struct ctl_options *options);

/* `duectl restore`, `doctor`, `verify`: the exit status; @argv[0] is that word. */
int ctl_restore(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_verify(int argc, char **argv);

/* ---- The benchmarks -------------------------------------------------------------------------- */

/* `duectl bench`: become the program that runs them, with these arguments.  It returns, with an
 * exit status, only if it cannot. */
int ctl_bench(char **argv);

#endif
