/* top.h - `duectl top`: what a queue does, looked at again and again.
 *
 *   file.c      a sample from the file in which a program shows its figures
 *   find.c      which such files a process has
 *   store.c     a sample from a stored queue
 *   rates.c     what two samples say of the time between them
 *   page.c      a sample as lines for a terminal
 *   lines.c     a sample as plain lines, or as a line of JSON
 *   terminal.c  the terminal: taken, asked for keys, given back
 *   top.c       the command, and its loop
 *
 * Threads  one
 */
#ifndef DUECTL_TOP_H
#define DUECTL_TOP_H

#include "due/figures.h"
#include "move/move.h"
#include "verbs/verbs.h"

/* Counts of a topic, or of all. */
struct top_counts {
    uint64_t enqueued;
    uint64_t dequeued;  /* of a store: that have left */
    uint64_t acked;     /* of a store: not known, 0 */
    uint64_t failed;    /* times one waits again, or died */
    uint64_t waiting;   /* now: delayed and ready */
    uint64_t ready;     /* now */
    uint64_t leased;    /* now */
    uint64_t dead;      /* now */
    int64_t overdue_ns; /* for how long the oldest that is ready has been due; -1: none is */
};

struct top_topic {
    char name[256];
    struct top_counts counts;
};

struct top_sample {
    bool of_store;        /* of a stored queue; else of a file of figures */
    bool measured;        /* counts of topics, and lateness, are there */
    bool silent;          /* the program has not written for too long */
    bool closed;          /* the queue is: there will be no other sample */
    uint64_t number;      /* of the set in the file; of a store, of the look */
    int64_t pid;          /* of a file */
    int64_t opened_ns;    /* of a file: with the pid, which queue it is */
    int64_t taken_ns;     /* since 1970 */
    int64_t monotonic_ns; /* the same on that clock */
    int64_t age_ns;       /* when it was looked at */
    int64_t next_ns;      /* of a store: until the next deadline; -1: not known, or none */
    int32_t store_state;  /* of a file: the last answer of its store */
    char queue[72];
    struct top_counts all;
    due_histogram late; /* of a file: of all that were handed out; of a store: of what is due now */
    uint32_t topics;    /* there are */
    uint32_t topics_here;
    uint32_t pools_here;
    struct top_topic topic[DUE_FIGURES_TOPICS];
    struct due_figures_pool pool[DUE_FIGURES_POOLS];
};

/* ---- Samples --------------------------------------------------------------------------------- */

enum { TOP_TAKEN = -1 }; /* else an exit status */

/* A file of figures; its last one stays open, so that it can be told how a program has ended. */
struct top_file {
    const char *path;
    const char *named; /* as people are told of it */
    int fd;            /* -1: none yet */
};

/* Look into it: TOP_TAKEN; or an exit status, said why. */
int top_file_take(struct top_file *file, struct top_sample *s);
void top_file_close(struct top_file *file);
/* The same of its bytes, as far as they can be trusted: what is wrong with them, or NULL. */
const char *top_figures_check(struct due_figures *f, uint64_t number);

/* The path of the file of figures that process @pid has, of the queue @queue, or of its only one.
 * An exit status, said why; or TOP_TAKEN. */
int top_find(char *path, size_t room, int64_t pid, const char *queue);

/* What was in a stored queue when it was looked at last. */
struct top_job {
    due_id id;
    uint32_t failures;
    uint32_t topic; /* in the sample */
};
struct top_store {
    const struct ctl_look *look;
    bool (*stop)(void *ctx); /* asked now and then: is it to end? */
    void *ctx;
    struct top_job *jobs; /* by id */
    size_t n;
    uint64_t looks;
    struct top_counts seen;                      /* enqueued, dequeued, failed so far */
    struct top_topic topics[DUE_FIGURES_TOPICS]; /* likewise, by the order of their coming */
    uint32_t topic_count;
};
int top_store_take(struct top_store *t, struct top_sample *s);
void top_store_free(struct top_store *t);

/* ---- Rates ----------------------------------------------------------------------------------- */

struct top_rates {
    bool known;
    double enqueued, dequeued, acked, failed; /* a second */
};

/* Between @before and @now; not known if they are not of one queue. */
bool top_follows(const struct top_sample *before, const struct top_sample *now);
struct top_rates top_rates_of(const struct top_sample *before, const struct top_sample *now,
                              const struct top_counts *was, const struct top_counts *is);
/* The counts of the topic of that name; NULL: there is none. */
const struct top_counts *top_topic_named(const struct top_sample *s, const char *name);
/* What was handed out meanwhile; zeroes if that is not known. */
void top_late_between(due_histogram *late, const struct top_sample *before,
                      const struct top_sample *now);

/* ---- Shown ----------------------------------------------------------------------------------- */

/* @before may be of another queue, or of none: then there are no rates. */
void top_page(const struct ctl_paint *paint, int rows, const struct top_sample *before,
              const struct top_sample *now);
void top_plain(struct due__ctl_buffer *b, const struct top_sample *before,
               const struct top_sample *now);
void top_json(struct due__ctl_buffer *b, const struct top_sample *before,
              const struct top_sample *now);

/* ---- The terminal ---------------------------------------------------------------------------- */

enum top_event { TOP_TIME, TOP_QUIT, TOP_RESIZED, TOP_SIGNAL };

struct top_terminal {
    bool shows;    /* standard output is one that can be drawn on */
    bool taken;    /* it is ours now */
    bool keys;     /* and standard input is, too */
    int signal_fd; /* what stops commands */
    int window_fd; /* a window has changed, or the job control speaks */
    int said_fd;   /* what is said on standard error meanwhile */
    int error_fd;  /* and where it belongs */
    int signal;    /* TOP_SIGNAL: which */
};

/* An exit status, said why; 0: it is ready. */
int top_terminal_open(struct top_terminal *t, bool shows);
/* From here on pages are drawn, and keys read. */
void top_terminal_take(struct top_terminal *t);
/* As it was; and what was said meanwhile is said. */
void top_terminal_give_back(struct top_terminal *t);
/* Until something happens, or that time on the monotonic clock has come. */
enum top_event top_terminal_wait(struct top_terminal *t, int64_t until_ns);
int top_terminal_rows(void);
int64_t top_now_ns(clockid_t clock);

/* ---- The command ----------------------------------------------------------------------------- */

extern const struct ctl_command ctl_top;

#endif
