/* control.h - what is said on a control socket: docs/duectl.md, "The control socket".
 *
 * One connection is one request, a line of JSON, and its answer, lines of JSON; the last of them is
 * {"end":"DUE_OK"}, or another name of an error.  Behind a request that puts jobs stand their
 * payloads, one after another, as many bytes as the request says.
 */
#ifndef DUECTL_CONTROL_H
#define DUECTL_CONTROL_H

#include "verbs/verbs.h"

enum {
    CTL_REQUEST_MAX = 1 << 16, /* bytes of a request */
    CTL_CLIENTS_MAX = 16,      /* connections at a time, and as many that wait for that */
    CTL_ASKED = 32,            /* jobs of a request: what is said of them fits into it */
    CTL_ANSWER_MAX = 1 << 24   /* bytes of a line of an answer */
};

#define CTL_REQUEST_NS DUE_S(5) /* for a request to come, and for an answer to be read */

enum ctl_request_verb {
    CTL_ASK_CANCEL,
    CTL_ASK_KICK,
    CTL_ASK_DROP,
    CTL_ASK_RESCHEDULE,
    CTL_ASK_KICK_ALL,
    CTL_ASK_DROP_ALL,
    CTL_ASK_CLEAR,
    CTL_ASK_PAUSE,
    CTL_ASK_RESUME,
    CTL_ASK_STATS,
    CTL_ASK_METRICS,
    CTL_ASK_PUT,
    CTL_ASK_VERBS
};

/* The words of the verbs, as a request has them. */
extern const char *const ctl_request_words[CTL_ASK_VERBS];

struct ctl_request {
    enum ctl_request_verb verb;
    bool has_topic;
    char topic[DUE_TOPIC_LENGTH + 1];
    int64_t at_ns; /* -1: none */
    size_t n;
    due_id ids[CTL_NAMED];
    size_t jobs; /* that are put in */
    due_spec specs[CTL_ASKED];
    due_extra extras[CTL_ASKED]; /* of a request that was read: they point into its line */
};

/* A request as a line, and a line as a request; false: what is wrong, at a byte of the line. */
void ctl_request_write(struct ctl_buffer *b, const struct ctl_request *r);
bool ctl_request_read(struct ctl_request *r, struct ctl_json *j);
/* The bytes of the payloads that stand behind it. */
size_t ctl_request_body(const struct ctl_request *r);

/* The code that a name such as "DUE_ENOENT" stands for; false: there is none. */
bool ctl_error_of(const char *name, size_t len, int *code);

/* Give the lines of the answer, without line feeds, to @line, which answers false if one makes no
 * sense.  The code at its end, or DUE_ESTORE: said what went wrong. */
typedef bool ctl_answer_take(void *ctx, char *line, size_t len);
int ctl_control_ask(const char *path, const struct ctl_request *request, ctl_answer_take *take,
                    void *ctx);

/* What the owner needs to do what a request asks for. */
struct ctl_carrier {
    due_queue *queue;
    const char *name; /* of the queue */
    bool takes_jobs;  /* it can say of each job what became of it */
    struct ctl_request *request;
    const char *body; /* the payloads */
    struct ctl_buffer *answer;
};

/* Do it, and answer. */
void ctl_carry(struct ctl_carrier *c);
/* The last line of an answer. */
void ctl_carry_end(struct ctl_buffer *answer, int rc);

#endif
