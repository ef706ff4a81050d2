/* verbs.h - single jobs and whole queues, looked at and changed.
 *
 *   words.c    the options that these commands share; ids, as arguments and as lines
 *   ask.c      what destroys asks first
 *   access.c   the queue that is changed: this process becomes its owner
 *   answers.c  what became of each job: for people, or as lines of JSON
 *   push.c     duectl push
 *   named.c    duectl cancel, kick, promote, reschedule: jobs that are named
 *   dead.c     duectl dead ls, kick, drop
 *   whole.c    duectl clear, and all that are dead
 *   show.c     duectl show
 *   count.c    what a queue holds, by topic
 *   stats.c    duectl stats, and what metrics shows
 *   processes.c  duectl ps, evict
 *   socket.c   the control socket of a process that owns a queue
 *   client.c   a queue that is changed by its owner, who is asked there
 *   live.c     duectl pause, resume; stats, metrics of a control socket
 *
 * A queue is changed through a table of verbs (struct ctl_access_verbs), so that another way to
 * reach one is another table.
 *
 * Threads  one
 */
#ifndef DUECTL_VERBS_H
#define DUECTL_VERBS_H

#include "move/move.h"
#include "wire/request.h"

enum { CTL_NAMED = DUE__CTL_IDS }; /* jobs that are named in one change */

/* ---- The command line ------------------------------------------------------------------------ */

/* For the tables of options. */
bool ctl_take_topic(struct ctl_look *look, const char *value);
bool ctl_take_json(struct ctl_look *look, const char *value);
bool ctl_take_yes(struct ctl_look *look, const char *value);
bool ctl_take_all(struct ctl_look *look, const char *value);
bool ctl_take_control(struct ctl_look *look, const char *value);

/* Give the ids of the options to @take, CTL_NAMED at a time; it answers an exit status, and only 0
 * and CTL_FAULTS go on.  The exit status. */
typedef int ctl_ids_take(void *ctx, const due_id *ids, size_t n);
int ctl_ids(const struct ctl_look *look, ctl_ids_take *take, void *ctx);

/* Say what will be gone, and ask on the terminal.  @count UINT64_MAX: it is not known how many.
 * 0: it is agreed; else the exit status. */
int ctl_ask(const struct ctl_look *look, const char *what, uint64_t count);
/* The same of something else that is said in @what. */
int ctl_ask_for(const struct ctl_look *look, const char *what);

/* ---- A queue that is changed ----------------------------------------------------------------- */

struct ctl_access {
    const struct ctl_access_verbs *verbs;
    const struct ctl_look *look;
    due_queue *queue;
    bool shared; /* by other processes */
    int stop_fd; /* a put into a full queue ends when that can be read; 0: it does not */
};

/* Each answers 0 or a DUE_E* code, and waits until the change is stored.  A call with @topic NULL
 * is for all of them.  Those with ids answer for each in @results, and 0. */
struct ctl_access_verbs {
    /* The specs have no topic: it is @topic.  @ids and @results have what became of each.
     * DUE_ETIMEDOUT: the queue is full, and it is to stop; the others are not stored. */
    int (*put)(struct ctl_access *a, const char *topic, due_spec *specs, size_t n, due_id *ids,
               int *results);
    int (*cancel)(struct ctl_access *a, const due_id *ids, size_t n, int *results);
    int (*kick)(struct ctl_access *a, const due_id *ids, size_t n, int *results);
    int (*drop)(struct ctl_access *a, const due_id *ids, size_t n, int *results);
    int (*promote)(struct ctl_access *a, const due_id *ids, size_t n, int *results);
    int (*move)(struct ctl_access *a, const due_id *ids, size_t n, int64_t at_ns, int *results);
    int (*kick_all)(struct ctl_access *a, const char *topic, uint64_t *count);
    int (*drop_all)(struct ctl_access *a, const char *topic, uint64_t *count);
    int (*clear)(struct ctl_access *a, const char *topic, uint64_t *count);
    int (*pause)(struct ctl_access *a, const char *topic); /* of an owner that goes on */
    int (*resume)(struct ctl_access *a, const char *topic);
    int (*close)(struct ctl_access *a); /* to be called in any case */
};

extern const struct ctl_access_verbs ctl_asked_verbs; /* its owner is asked */

/* 0, or an exit status: said why not.  @must_exist: a queue that is not there is not made. */
int ctl_access_open(struct ctl_access *a, const struct ctl_look *look, bool must_exist);
/* @status, or that of what goes wrong. */
int ctl_access_close(struct ctl_access *a, int status);

/* ---- Answers --------------------------------------------------------------------------------- */

/* The exit status of an error. */
int ctl_status_of(int rc);

struct ctl_answers {
    const struct ctl_look *look;
    const char *done; /* "cancelled" */
    const char *busy; /* what DUE_EBUSY means of that, in words; NULL: no more than ever */
    uint64_t count;   /* of those that were */
    int status;
    struct due__ctl_buffer line;
};

/* One job was changed, or @rc says why not. */
void ctl_answer(struct ctl_answers *a, due_id id, int rc);
/* So many were; @rc: or why not all. */
void ctl_answer_all(struct ctl_answers *a, uint64_t count, int rc);
/* The line that was made goes out. */
void ctl_answer_line(struct ctl_answers *a);
/* Say how many; the exit status, or @status if that is worse. */
int ctl_answers_end(struct ctl_answers *a, int status);

/* ---- What a queue holds ---------------------------------------------------------------------- */

struct ctl_count {
    char *topic; /* NULL: of all */
    uint64_t waiting, due, reserved, dead, bytes;
    int64_t oldest_ns; /* the earliest time of what is due; DUE_FOREVER: nothing is */
    int64_t next_ns;   /* the same of what waits */
    bool paused;       /* of a topic: nothing of it is handed out, */
    uint64_t limit;    /* or so many at a time; 0: any number */
};

struct ctl_counted {
    struct ctl_count all;
    struct ctl_count *topics; /* by name */
    size_t n, room;
    size_t *table; /* 1 + the place of a topic, by its hash; of a power of two */
    size_t slots;
    int64_t now_ns;
    uint64_t unreadable;
    bool failed; /* no memory */
};

/* Count the jobs of the options' topic, or of all: the exit status, said what is wrong. */
int ctl_count(struct ctl_counted *c, const struct ctl_look *look);
void ctl_count_free(struct ctl_counted *c);

/* The same of jobs that are seen otherwise: begin, add each, put the topics in order.  False: no
 * memory. */
void ctl_count_open(struct ctl_counted *c);
bool ctl_count_job(struct ctl_counted *c, const due_record *record);
void ctl_count_sort(struct ctl_counted *c);
/* The line of `duectl stats --json`. */
void ctl_count_dump(struct due__ctl_buffer *b, const struct ctl_count *c, const char *queue);

/* ---- The control socket ---------------------------------------------------------------------- */

/* Open it for a queue of this name: 0, or an exit status: said why not.  @takes_jobs: the queue
 * waits until a change is stored, so it can be said of each job.  Close it before the queue is
 * freed; NULL is allowed. */
struct due_control;
int ctl_control_open(struct due_control **control, const char *path, due_queue *q, const char *name,
                     bool takes_jobs);
void ctl_control_close(struct due_control *control);

/* What the owner says of its queue: the exit status. */
int ctl_live_show(const struct ctl_look *look, bool metrics);
/* Are the options such that it can be asked?  False: said why not. */
bool ctl_live_fits(const struct ctl_look *look);

/* ---- The commands ---------------------------------------------------------------------------- */

extern const struct ctl_command ctl_push;
extern const struct ctl_command ctl_show;
extern const struct ctl_command ctl_cancel;
extern const struct ctl_command ctl_kick;
extern const struct ctl_command ctl_promote;
extern const struct ctl_command ctl_reschedule;
extern const struct ctl_command ctl_dead_ls;
extern const struct ctl_command ctl_dead_kick;
extern const struct ctl_command ctl_dead_drop;
extern const struct ctl_command ctl_clear;
extern const struct ctl_command ctl_pause;
extern const struct ctl_command ctl_resume;
extern const struct ctl_command ctl_stats;
extern const struct ctl_command ctl_ps;
extern const struct ctl_command ctl_evict;
int ctl_dead(int argc, char **argv); /* the exit status */

/* `metrics`, once: the exit status. */
int ctl_metrics_show(const struct ctl_look *look);

/* Of `dead`. */
int ctl_named_go(struct ctl_look *look, const char *done, const char *busy,
                 int (*change)(struct ctl_access *a, const due_id *ids, size_t n, int *results));
int ctl_whole_go(struct ctl_look *look, const char *done, const char *what,
                 int (*change)(struct ctl_access *a, const char *topic, uint64_t *count));

#endif
