/* base.h - what all of duectl shares: the command line, times, lines, what is said and counted.
 *
 * Guards  I  set before the threads start, then constant    L  the lock of its own room
 *         A  atomic
 */
#ifndef DUECTL_BASE_H
#define DUECTL_BASE_H

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
    const char *zone; /* of cron lines that name none */
    bool stats;
    bool help;
    bool json; /* check */
    int64_t grace_ns;
    const char *store;           /* a URL, or NULL: nothing is stored */
    const char *queue;           /* its name in the store */
    const char *control;         /* the path of a socket to be opened, or NULL */
    bool ack_lines;              /* */
    bool standby;                /* */
    bool shared;                 /* it is one of many that share the queue */
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

/* Show each option of `run`, `work` or `check`. */
typedef void ctl_option_visit(void *ctx, const char *name, bool has_value, const char *values);
void ctl_options_show(const char *command, ctl_option_visit *visit, void *ctx);

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

enum ctl_kind { CTL_NOTHING, CTL_DELAY, CTL_DATE, CTL_EVERY, CTL_CRON, CTL_FAULT };

enum {
    CTL_CRON_MAX = 200, /* bytes of a cron expression, */
    CTL_ZONE_MAX = 64,  /* and of the name of a time zone */
};

/* Bytes that a line gives a job. */
struct ctl_value {
    bool given;
    size_t len;
    char bytes[DUE_HEADERS_MAX]; /* a topic has a NUL behind them */
};

/* What stands before the time. */
struct ctl_fields {
    bool any; /* is anything there? */
    bool has_priority;
    int priority;
    int64_t ttl_ns; /* 0: none */
    struct ctl_value topic, key, group, headers, zone;
};

/* A line of a schedule. */
struct ctl_entry {
    enum ctl_kind kind;
    int64_t ns;         /* the delay, or how often; or nanoseconds since 1970, rounded up */
    size_t text;        /* where the text begins; it ends with the line */
    size_t column;      /* of the fault, from 1 */
    const char *reason; /* of the fault */
    struct ctl_fields fields;
    char cron[CTL_CRON_MAX + 1]; /* of CTL_CRON: the expression */
};

/* Read "1m30s" or "1.5s" at the cursor, rounded up to nanoseconds. */
bool ctl_delay_read(struct ctl_cursor *c, int64_t *ns);

void ctl_entry_read(struct ctl_entry *entry, const char *line, size_t len);

/* The delay or date at the cursor, up to a blank or the end. */
bool ctl_once_read(struct ctl_cursor *c, struct ctl_entry *entry);

/* Does it come again and again? */
bool ctl_comes_again(const struct ctl_entry *entry);

/* The time zone of lines that name none: @name, or with NULL that of the environment.  NULL: it is
 * none. */
const char *ctl_zone_of(const char *name);

/* Read a time that stands alone: kind and ns of @entry, or its fault. */
bool ctl_time_read(struct ctl_entry *entry, const char *text);
/* The same on the wall clock; a delay is from now, and a date before 1970 is the beginning of
 * that. */
int64_t ctl_at_ns(const struct ctl_entry *entry);

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

/* What takes more than a second says on a terminal's standard error how far it has come: @done of
 * @all, where 0 is not known.  Cheap enough for each job.  progress.c, which says by which threads.
 */
void ctl_progress_begin(void); /* the second begins */
void ctl_progress(const char *doing, uint64_t done, uint64_t all);
void ctl_progress_end(void); /* take the line away, before anything else is said */

/* Lines of standard output for somebody at a terminal. */
struct ctl_paint {
    bool terminal, coloured;
    int columns; /* 0: not known */
};
enum ctl_colour { CTL_PLAIN, CTL_HEADING, CTL_NOTABLE, CTL_BAD };

void ctl_paint_open(struct ctl_paint *p);
/* Print a line that ends with a line feed; on a terminal cut to its width.  False: it cannot be
 * written. */
bool ctl_paint_line(const struct ctl_paint *p, enum ctl_colour colour, const char *line,
                    size_t len);

/* ---- Times, written -------------------------------------------------------------------------- */

/* "2026-12-01T08:00:00.250000000Z", or "never". */
enum { CTL_DUMP_DATE = 40 };
const char *ctl_dump_date(char text[CTL_DUMP_DATE], int64_t ns);

/* ---- What is found --------------------------------------------------------------------------- */

/* What a command finds, on standard output: lines for people, or with --json an object each.  What
 * is of the other form says nothing.  report.c; of the main thread. */
void ctl_report_begin(bool json);
bool ctl_report_is_json(void);
/* A line for people, without its line feed; on a terminal coloured, and whole. */
void ctl_report_line(enum ctl_colour colour, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* An object: begun, then its names and values, then ended.  A text is bytes of any kind, of which
 * those that cannot be shown are question marks. */
void ctl_object_begin(void);
void ctl_object_text(const char *name, const char *text);
void ctl_object_bytes(const char *name, const void *bytes, size_t len); /* or base64 */
void ctl_object_number(const char *name, uint64_t value);
void ctl_object_flag(const char *name, bool value);
void ctl_object_time(const char *name, int64_t us); /* since 1970 */
void ctl_object_end(void);
/* Something is wrong with what is so named: a "job", a "topic", a "key" ...  The name may be NULL.
 * Both forms. */
void ctl_report_wrong(const char *what, const void *name, size_t len, const char *text);
/* The exit status: @status, or that all could not be written. */
int ctl_report_end(int status);

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

struct ctl_more;

/* What a queue carries: one line. */
struct ctl_job {
    int64_t late_ns;       /* how late the wall clock's queue has handed it out */
    int64_t wall_ns;       /* what its time was there; 0: it did not wait there */
    uint64_t line;         /* 0: of a stored job it is not known any more, */
    due_id id;             /* but this */
    struct ctl_more *more; /* NULL: its line says nothing besides time and text */
    bool has_key;          /* its key is taken, in a run without a store */
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

/* ---- Signals --------------------------------------------------------------------------------- */

/* Block the signals that stop a run, before its threads start: a descriptor, or -1. */
int ctl_signals_open(void);

/* The number of the next signal that has come, or 0. */
int ctl_signal_next(int signal_fd);

#endif
