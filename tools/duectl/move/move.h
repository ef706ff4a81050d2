/* move.h - jobs out of a store and into one, as lines of JSON: docs/export.md.
 *
 *   dump_write.c  a job, or a kept key, as a line
 *   dump_read.c   a line as a job, or a kept key
 *   digest.c      whether two sets of lines are the same
 *   hold.c        a store that a command owns for a while
 *   export.c      duectl export
 *   import.c      lines into a store, for duectl import
 *   ls.c          duectl ls
 *   rounds.c      what a line of a schedule says of its job; lines that come again
 *
 * Threads  one
 */
#ifndef DUECTL_MOVE_H
#define DUECTL_MOVE_H

#include "inspect/inspect.h"
#include "text/text.h"

#define CTL_DUMP_VERSION 1

/* ---- Lines, written -------------------------------------------------------------------------- */

/* Each is a whole line, with its line feed; all ways to write the same job have the same bytes. */
void ctl_dump_head(struct due__ctl_buffer *b);
void ctl_dump_job(struct due__ctl_buffer *b, const due_record *record);
void ctl_dump_key(struct due__ctl_buffer *b, const void *key, size_t len, due_id id,
                  int64_t until_ns);
void ctl_dump_end(struct due__ctl_buffer *b, uint64_t jobs, uint64_t keys);

/* A time at which a kept key ends, as a line has it: stores know it in whole microseconds. */
int64_t ctl_dump_kept(int64_t until_ns);

/* ---- Lines, read ----------------------------------------------------------------------------- */

enum ctl_dump_kind { CTL_DUMP_HEAD, CTL_DUMP_JOB, CTL_DUMP_KEY, CTL_DUMP_END };

/* What a line says. */
struct ctl_dump {
    enum ctl_dump_kind kind;
    due_record record;     /* JOB; KEY: id and key */
    int64_t kept_until_ns; /* KEY */
    int64_t version;       /* HEAD */
    int64_t jobs, keys;    /* END */
    due_retry retry;
    char topic[DUE_TOPIC_LENGTH + 1];
    char reason[DUE_REASON_BYTES];
};

/* Read a line without its line feed.  @dump points into it and into itself.  False: @j->fault says
 * what is wrong, at the byte @j->at. */
bool ctl_dump_read(struct ctl_dump *dump, struct due__ctl_json *j);

/* ---- Sets of lines --------------------------------------------------------------------------- */

/* Of lines, in whatever order. */
struct ctl_digest {
    uint64_t lines, sum, mixed;
};

uint64_t ctl_hash(const void *bytes, size_t len);
void ctl_digest_add(struct ctl_digest *d, const struct due__ctl_buffer *line);
bool ctl_digest_same(const struct ctl_digest *a, const struct ctl_digest *b);

/* What came before, of which it may say so falsely; never falsely that it did not. */
struct ctl_filter {
    uint64_t *bits; /* NULL: no memory */
};

void ctl_filter_open(struct ctl_filter *f);
bool ctl_filter_add(struct ctl_filter *f, uint64_t hash); /* true: perhaps it was there already */
void ctl_filter_close(struct ctl_filter *f);

/* ---- A store that a command owns ------------------------------------------------------------- */

struct ctl_hold {
    const struct ctl_look *look;
    due_store *store; /* NULL: not open */
    due_store *again; /* of a shared queue: by this it is so again afterwards; or NULL */
    struct due_store_info info;
    int64_t renewed_ns;
    bool stopped; /* a visit has ended its call, and said why */
};

/* Own the queue.  @must_exist: one that is not there is not made; @writer_min as in store.h.  0, or
 * an exit status: said why not. */
int ctl_hold_open(struct ctl_hold *h, const struct ctl_look *look, bool must_exist,
                  uint64_t writer_min);
/* It is shared again, if it was.  0, or an exit status: said why not. */
int ctl_hold_close(struct ctl_hold *h);

/* Calls of the store, until they are answered or 30 s are over; its ownership is renewed.  0, what
 * the visit has answered, or an error: said what. */
int ctl_hold_load(struct ctl_hold *h, due_store_visit *visit, void *ctx);
int ctl_hold_keys(struct ctl_hold *h, due_store_visit_key *visit, void *ctx);
int ctl_hold_find(struct ctl_hold *h, due_id id, due_store_visit *visit,
                  void *ctx); /* DUE_ENOENT */
int ctl_hold_commit(struct ctl_hold *h, const due_change *changes, size_t n, uint64_t number);

/* ---- Lines into a store ---------------------------------------------------------------------- */

/* What gets the lines of a source. */
struct ctl_lines {
    /* 0, or an exit status with which the source is to end. */
    int (*take)(void *ctx, const char *line, size_t len);
    /* An import that is done again: the job is there already, and that is its deadline: 1; it is
     * not: 0; or an exit status, negative. */
    int (*find)(void *ctx, due_id id, int64_t *deadline_ns);
    void *ctx;
};

/* Where lines of jobs come from, other than standard input. */
struct ctl_source {
    int (*read)(struct ctl_source *source, struct ctl_lines *lines);
    char at[200]; /* which job the present line is of, for what is said */
};

/* Put them, all or none of a batch, and read the store back: the exit status.  @source is NULL:
 * those of an export, on standard input. */
int ctl_import_lines(const struct ctl_look *look, struct ctl_source *source);

/* ---- Lists ----------------------------------------------------------------------------------- */

/* "waiting", "reserved" or "dead". */
const char *ctl_state_of(const due_record *record);
/* The line of an export, and the state in front of all else. */
void ctl_dump_listed(struct due__ctl_buffer *b, const due_record *record);
/* How a list is written for people: what stands above it on a terminal, and each line. */
struct ctl_form {
    const char *heading;
    void (*add)(struct due__ctl_buffer *line, const due_record *record);
};
/* Print those jobs that the options want, in that form or with --json.  The exit status. */
int ctl_list(const struct ctl_look *look, const struct ctl_form *form);

/* ---- The commands ---------------------------------------------------------------------------- */

extern const struct ctl_command ctl_ls;
extern const struct ctl_command ctl_export;

/* ---- Lines of a schedule --------------------------------------------------------------------- */

/* What a line says of its job besides its time and text. */
struct ctl_more {
    due_extra extra;
    const char *topic; /* NULL: none is named */
    bool has_priority;
    bool again; /* it comes again and again */
    bool named; /* the line has a key of its own */
    int priority;
    int64_t ttl_ns; /* also of one that comes again, which extra does not say */
    char bytes[];
};

/* Make it, with @zone for a line that names none; NULL: there is nothing to be said.  It is freed
 * by free().  False: why not. */
bool ctl_more_new(struct ctl_more **more, struct ctl_entry *entry, const char *zone,
                  const char *text, size_t len, const char **why);

/* Read the line of a job that comes again: false: it does not. */
bool ctl_round_read(struct ctl_entry *entry, const void *headers, size_t len);

/* When such a line comes next, if it came at @last_ns: 0, or an error of due_cron_next(). */
int ctl_round_next(const struct ctl_entry *entry, int64_t last_ns, int64_t now_ns,
                   int64_t *next_ns);

/* Before a job is acked or buried: if its line comes again, the next one is put in.  0, or why it
 * is not: then the job has to stay. */
int ctl_round_follow(const due_job *due);

/* Has the time limit of such a line passed? */
bool ctl_round_is_over(const due_job *due);

#endif
