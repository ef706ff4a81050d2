/* inspect.h - the store of the options, and the commands that look into one. */
#ifndef DUECTL_INSPECT_H
#define DUECTL_INSPECT_H

#include "base/base.h"

/* The store that the options ask for; NULL: said why there is none. */
due_store *ctl_store_new(const struct ctl_options *options);
void ctl_store_free(due_store *store); /* one that no queue took over */

/* The path that a store's name means, if it is a file: what has no colon before its first slash, or
 * begins with "sqlite:".  NULL: it is none. */
const char *ctl_file_of(const char *store);
due_store *ctl_file_store(const struct ctl_options *options);   /* as ctl_store_new() */
due_store *ctl_server_store(const struct ctl_options *options); /* likewise */

/* ---- The command line ------------------------------------------------------------------------ */

/* What `push` is told of the jobs that it makes; zero: nothing. */
struct ctl_push {
    const char *file; /* NULL: standard input */
    const char *key, *group, *zone;
    int64_t ttl_ns;
    int priority;
    enum due_key_policy on_key;
};

/* Of `top`; zero: not said. */
struct ctl_top {
    int64_t pid;         /* instead of a store, */
    const char *figures; /* and so is this */
    int64_t every_ns;
    int64_t count;
    bool named; /* --queue was given */
};

/* What `import` reads from, if that is another library's: a kind of NULL: none is. */
struct ctl_from {
    const char *kind;
    const char *url;
    const char *prefix; /* of its keys; NULL: the usual one */
    const char *queues[CTL_TOPICS_MAX];
    size_t queue_count;
};

enum { CTL_QUEUES = 16 };

/* What `web` was told that each of its queues is made of, in order. */
struct ctl_several {
    const char *urls[CTL_QUEUES];
    size_t url_count;
    const char *queues[CTL_QUEUES];
    size_t queue_count;
    const char *controls[CTL_QUEUES];
    size_t control_count;
};

struct ctl_look {
    const char *command;
    const char *url; /* or a path */
    const char *queue;
    bool help;
    bool list;                  /* restore */
    bool repair;                /* verify */
    bool json;                  /* ls */
    const char *topic;          /* only this, or of this; NULL: all, or the default topic */
    const char *state;          /* ls: likewise */
    uint64_t limit;             /* ls */
    const char *control;        /* instead of url: the owner's socket */
    const char *key;            /* ls: only the job that has this unique key */
    bool shared;                /* push: a queue that is made is one that many share */
    bool ack_lines;             /* push */
    bool yes;                   /* what destroys does not ask */
    bool all;                   /* dead: instead of ids */
    bool data;                  /* show: the payload's bytes */
    char **words;               /* ids, and "-" for those on standard input */
    size_t word_count;          /* */
    const char *time;           /* reschedule, push --at */
    struct ctl_push push;       /* */
    struct ctl_top top;         /* */
    bool salvage;               /* export */
    bool again;                 /* import */
    bool check;                 /* import: no store is needed */
    struct ctl_from from;       /* import */
    enum due_durability assume; /* doctor */
    uint16_t port;              /* web, metrics; 0: any */
    char address[16];           /* metrics: where to listen, as in a URL; "": it ends at once */
    bool writes;                /* web: it may change the queues */
    struct ctl_several several; /* web */
};

/* The store of a command that is to own the queue; @must_exist: one that is not there is not made.
 * NULL: said why not, and *@status is the exit status. */
due_store *ctl_store_of(const struct ctl_look *look, bool must_exist, int *status);
due_store *ctl_file_store_of(const char *path, bool must_exist, int *status);
due_store *ctl_server_store_of(const struct ctl_look *look, bool must_exist, int *status);

/* The exit status if a store that was made cannot be opened, by the error: a file that holds no
 * such queue is a fault of who names it. */
int ctl_unopened(const struct ctl_look *look, int rc);

/* Is it a queue that many processes share?  0, or an exit status: said why that cannot be told. */
int ctl_is_shared(const struct ctl_look *look, bool *shared);
int ctl_server_is_shared(const struct ctl_look *look, bool *shared);

/* The queue of that name was shared, and this process has owned it: it is shared again.  The store
 * (NULL: it was not) is not open yet, and is freed.  0, or an exit status: said why not. */
int ctl_share_again(due_store *store, const char *queue);

/* An option that one command has besides --queue, --store and --help. */
struct ctl_look_option {
    const char *name;
    bool has_value;
    bool (*take)(struct ctl_look *look, const char *value); /* false: said what is wrong */
    const char *values; /* words it may be, or "FILE"; NULL: anything */
};

/* What may stand alone, besides the URL. */
enum ctl_operands {
    CTL_URL_ONLY,
    CTL_IDS,      /* of 32 hexadecimal digits, and "-" */
    CTL_IDS_TIME, /* the same, and a time behind them */
    CTL_NUMBERS,  /* of processes */
    CTL_SEVERAL,  /* URLs, control sockets, or both */
    CTL_INPUT     /* a file, behind the URL if both stand alone */
};

/* A command, and its options. */
struct ctl_command {
    const char *name;
    const char *usage;
    enum ctl_operands operands;
    const struct ctl_look_option *own;
    size_t own_count;
    int (*go)(struct ctl_look *look); /* the exit status */
};

/* Read the arguments, and do it, or print its help: the exit status. */
int ctl_command_go(const struct ctl_command *command, int argc, char **argv);
/* Show each option that it takes. */
void ctl_command_options(const struct ctl_command *command, ctl_option_visit *visit, void *ctx);

/* Say what is wrong with @value, and where more is said.  Always false. */
bool ctl_look_wrong(const struct ctl_look *look, const char *what, const char *value);

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* A record that is shown has as its mark what else was seen; NULL: nothing. */
enum ctl_lease { CTL_LEASE_UNSAID, CTL_LEASED, CTL_NOT_LEASED };

struct ctl_job_mark {
    enum ctl_lease lease; /* where a shared queue, or an owner, says so */
    size_t whole;         /* bytes of the payload of which the record has the beginning; 0: all */
    bool tries_unsaid;    /* its attempts and failures are not told */
};

static inline enum ctl_lease ctl_lease_of(const due_record *r)
{
    return r->mark != NULL ? ((const struct ctl_job_mark *)r->mark)->lease : CTL_LEASE_UNSAID;
}

static inline bool ctl_tries_unsaid(const due_record *r)
{
    return r->mark != NULL && ((const struct ctl_job_mark *)r->mark)->tries_unsaid;
}

/* Is the payload cut? */
static inline bool ctl_is_cut(const due_record *r)
{
    return r->mark != NULL && ((const struct ctl_job_mark *)r->mark)->whole > r->len;
}

static inline size_t ctl_length_of(const due_record *r)
{
    return ctl_is_cut(r) ? ((const struct ctl_job_mark *)r->mark)->whole : r->len;
}

/* Shows each job by topic and time, then the dead; in a queue in use one may be shown twice, or not
 * at all.  @rc is 0, or why it cannot be read.  The visit answers false to end it.  Each answers an
 * exit status. */
typedef bool ctl_jobs_visit(void *ctx, due_id id, int rc, const due_record *record);
int ctl_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx);
int ctl_file_jobs(const char *path, ctl_jobs_visit *visit, void *ctx);
/* Of a file whose pages are damaged, also the kept keys; *@all: whatever else is lost was told.  A
 * visit is told
 * of each job whose id is known, with an error if nothing else is. */
int ctl_file_salvage(const char *path, ctl_jobs_visit *visit, due_store_visit_key *visit_key,
                     void *ctx, bool *all);
int ctl_server_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx);

/* The same of those jobs alone that are named, in this order; @rc is DUE_ENOENT: there is none. */
int ctl_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n, ctl_jobs_visit *visit,
                   void *ctx);
int ctl_file_jobs_named(const char *path, const due_id *ids, size_t n, ctl_jobs_visit *visit,
                        void *ctx);
int ctl_server_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n,
                          ctl_jobs_visit *visit, void *ctx);

/* "2026-12-01T08:00:00.250Z", or "never". */
enum { CTL_WHEN = 40 };
const char *ctl_date_show(char text[CTL_WHEN], int64_t us);
/* A line of `restore --list`; @at_us: when it is due, or has died. */
void ctl_restore_line(int64_t at_us, const due_record *record);

/* What `restore` says of a topic, or (@name NULL) of the dead. */
struct ctl_sum {
    uint64_t jobs;
    uint64_t leased;
    uint64_t tried; /* jobs that were handed out before */
    uint64_t most;  /* times that one of them was */
    uint64_t unreadable;
    int64_t first_us, last_us; /* when they are due, or have died */
};
void ctl_restore_heading(void);
void ctl_restore_sum(const void *name, size_t len, const struct ctl_sum *sum);

/* ---- Processes ------------------------------------------------------------------------------- */

/* One who has a queue open. */
struct ctl_process {
    uint64_t number;   /* 0: it owns the queue alone, or was asked itself */
    const char *queue; /* that it was asked for; NULL: that of the options */
    char host[128];
    int64_t pid;
    int64_t started_ns, seen_ns; /* 0: not known */
    uint64_t held;
    bool waits;
    bool evicted;
};

/* Show them; the visit answers false to end it.  An exit status. */
typedef bool ctl_process_visit(void *ctx, const struct ctl_process *process);
int ctl_processes(const struct ctl_look *look, ctl_process_visit *visit, void *ctx);
int ctl_server_processes(const struct ctl_look *look, ctl_process_visit *visit, void *ctx);
int ctl_file_processes(const struct ctl_look *look, const char *path, ctl_process_visit *visit,
                       void *ctx);
/* Is it a store of which a process can be turned out at all?  0, or an exit status: said why not.
 * Then: */
int ctl_evict_can(const struct ctl_look *look);
/* Turn those out whose numbers these are.  @done is told of each: 0, or DUE_ENOENT. */
typedef void ctl_evict_done(void *ctx, const char *number, int rc);
int ctl_evict_all(const struct ctl_look *look, ctl_evict_done *done, void *ctx);
int ctl_server_evict(const struct ctl_look *look, ctl_evict_done *done, void *ctx);

/* ---- What is held back ----------------------------------------------------------------------- */

/* Show each topic that is paused, or of which at most so many jobs run at a time (@limit 0: any
 * number).  0, or an exit status. */
typedef bool ctl_held_back_visit(void *ctx, const char *topic, bool paused, uint64_t limit);
int ctl_held_back(const struct ctl_look *look, ctl_held_back_visit *visit, void *ctx);
int ctl_server_held_back(const struct ctl_look *look, ctl_held_back_visit *visit, void *ctx);
int ctl_file_held_back(const char *path, ctl_held_back_visit *visit, void *ctx);

/* ---- The commands ---------------------------------------------------------------------------- */

extern const struct ctl_command ctl_restore;
extern const struct ctl_command ctl_doctor;
extern const struct ctl_command ctl_verify;

/* Of a file. */
int ctl_file_restore(const char *path, const struct ctl_look *look);
int ctl_file_verify(const char *path, const struct ctl_look *look);
int ctl_file_doctor(const char *path, const struct ctl_look *look);

/* Of a server. */
int ctl_server_restore(const struct ctl_look *look);
int ctl_server_verify(const struct ctl_look *look);
int ctl_server_doctor(const struct ctl_look *look);

#endif
