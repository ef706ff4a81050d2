/* request.h - what is said on a control socket: docs/control.md.
 *
 * One connection is one request, a line of JSON, and its answer, lines of JSON; the last of them is
 * {"end":"DUE_OK"}, or another name of an error.  Behind a request that puts jobs stand their
 * payloads, one after another, as many bytes as the request says.
 *
 * Threads  whoever has the request
 */
#ifndef DUE__CTL_REQUEST_H
#define DUE__CTL_REQUEST_H

#include "due/due.h"
#include "text/text.h"

enum {
    DUE__CTL_REQUEST_MAX = 1 << 16, /* bytes of a request */
    DUE__CTL_CLIENTS_MAX = 16,      /* connections at a time, and as many that wait for that */
    DUE__CTL_IDS = 256,             /* jobs that are named in one request, or listed at once */
    DUE__CTL_JOBS = 32,             /* that are put in: what is said of them fits into it */
    DUE__CTL_NAME_MAX = 64,         /* bytes of a queue's name */
    DUE__CTL_DATA_MAX = 1 << 23,    /* bytes of a payload that is shown */
    DUE__CTL_ANSWER_MAX = 1 << 24   /* bytes of a line of an answer */
};

#define DUE__CTL_REQUEST_NS DUE_S(5) /* for a request to come, and for an answer to be read */

/* In the order in which they are told apart: what names jobs, what is of a topic, or of all, what
 * looks.  request.c says of each which fields it has. */
enum due__ctl_verb {
    DUE__CTL_CANCEL,
    DUE__CTL_KICK,
    DUE__CTL_DROP,
    DUE__CTL_PROMOTE,
    DUE__CTL_RESCHEDULE,
    DUE__CTL_KICK_ALL,
    DUE__CTL_DROP_ALL,
    DUE__CTL_CLEAR,
    DUE__CTL_PAUSE,
    DUE__CTL_RESUME,
    DUE__CTL_PUT,
    DUE__CTL_SHOW,
    DUE__CTL_LIST,
    DUE__CTL_DEAD,
    DUE__CTL_STATS,
    DUE__CTL_METRICS,
    DUE__CTL_QUEUES,
    DUE__CTL_VERBS
};

struct due__ctl_request {
    enum due__ctl_verb verb;
    bool has_topic;
    char topic[DUE_TOPIC_LENGTH + 1];
    char queue[DUE__CTL_NAME_MAX + 1]; /* "": that of the socket, if it has only one */
    int64_t at_ns;                     /* nanoseconds since 1970; -1: none */
    int64_t delay_ns;                  /* from now; -1: none */
    size_t n;
    due_id ids[DUE__CTL_IDS];
    size_t key_len; /* of a job that is shown by its key; 0: none */
    char key[DUE_KEY_MAX];
    uint64_t cursor; /* of a list */
    int64_t max;     /* of a list: jobs; -1: none */
    int64_t data;    /* of what is shown: bytes of each payload, from its beginning; -1: none */
    size_t jobs;     /* that are put in */
    /* Of a request that was read they point into its line.  Their times are those of the wall
     * clock; without DUE_SPEC_AT one has a delay. */
    due_spec specs[DUE__CTL_JOBS];
    due_extra extras[DUE__CTL_JOBS];
};

/* Of this verb, and nothing else is said. */
void due__ctl_request_begin(struct due__ctl_request *r, enum due__ctl_verb verb);
void due__ctl_request_of_topic(struct due__ctl_request *r, const char *topic); /* NULL: of all */

/* A request as a line, and a line as a request; false: what is wrong, at a byte of the line. */
void due__ctl_request_write(struct due__ctl_buffer *b, const struct due__ctl_request *r);
bool due__ctl_request_read(struct due__ctl_request *r, struct due__ctl_json *j);
/* The bytes of the payloads that stand behind it. */
size_t due__ctl_request_body(const struct due__ctl_request *r);

/* Does this verb change something? */
bool due__ctl_changes(enum due__ctl_verb verb);

/* ---- Of the two, the part that has jobs: jobs.c ---------------------------------------------- */

void due__ctl_jobs_write(struct due__ctl_buffer *b, const struct due__ctl_request *r);
bool due__ctl_jobs_read(struct due__ctl_request *r, struct due__ctl_json *j);

/* The name of a field, of which each stands at most once, and its colon. */
bool due__ctl_field_read(struct due__ctl_json *j, const char *const *names, unsigned n,
                         unsigned *field, unsigned *seen);
bool due__ctl_is_word(const char *word, const char *text, size_t len);

/* ---- Words ----------------------------------------------------------------------------------- */

/* The code that a name such as "DUE_ENOENT" stands for; false: there is none. */
bool due__ctl_error_of(const char *name, size_t len, int *code);

/* An error that is the fault of a job, or of who names it, and not of the queue or its store. */
bool due__ctl_is_of_job(int rc);

#endif
