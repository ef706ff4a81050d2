/* web.h - `duectl web`: stored queues, or what their owners say of them, as a page in a browser;
 * and `duectl metrics`, which can serve the figures of one.
 *
 *   command.c  the options
 *   webless.c  stands for all else where libmicrohttpd was missing
 *   guard.c    the token of an address; which Host and Origin a browser may name
 *   loop.c     one thread waits for connections, signals and errands, and for the next look
 *   http.c     requests: answered at once, or by an errand; each is handed to what is served:
 *   page.c     the page: what is refused, what is answered how
 *   scrape.c   the figures for Prometheus
 *   errand.c   whatever may take long: a process of its own, which writes to two pipes
 *   queues.c   which queues there are, and the list of them
 *   history.c  the looks at one of the last while
 *   sight.c    an errand: count what the queue holds, and ask its owner
 *   jobs.c     an errand: a page of jobs, or one of them
 *   change.c   an errand: kick or drop
 *
 * A look at a store waits for a server or reads a million jobs, and says on standard error what is
 * wrong.  So each is a forked process: it can be ended, its words can be shown, and the page is
 * served meanwhile.  What it writes are the lines of JSON of the other commands; nobody parses them
 * but the page, whose files (page.html and so on) are embedded.
 *
 * Threads  one
 */
#ifndef DUECTL_WEB_H
#define DUECTL_WEB_H

#include "inspect/owner.h"
#include "verbs/verbs.h"

enum {
    CTL_TOKEN = 32,            /* digits of a token */
    CTL_CONNECTIONS_MAX = 32,  /* that are served at a time */
    CTL_READS = 4,             /* processes at a time that read for one queue, besides its look */
    CTL_ERRANDS = 40,          /* at a time for all: one each for the looks, and for all else */
    CTL_HEAD_MAX = 16 << 10,   /* bytes of the head of a request */
    CTL_PAGE_JOBS = 200,       /* jobs of one answer, at most */
    CTL_EXCERPT_BYTES = 200,   /* of a payload, in a list */
    CTL_SHOWN_BYTES = 1 << 18, /* of a payload that is shown by itself */
    CTL_FIND_MAX = 255,        /* bytes that are looked for */
    CTL_LOOKS = 900            /* that are remembered */
};

/* Nanoseconds of a clock that is not set. */
int64_t ctl_web_now(void);

/* ---- guard.c --------------------------------------------------------------------------------- */

/* A new one, at random.  False: the system has no randomness. */
bool ctl_token_make(char token[CTL_TOKEN + 1]);
/* Does a path begin with "/" and the token, as a whole word?  It takes as long, whatever is
 * wrong. */
bool ctl_token_opens(const char *token, const char *path);
/* Is that localhost, or the address that is listened at (as in a URL), at this port?  Another name
 * may be that of a page whose owner has made it lead here. */
bool ctl_host_is_ours(const char *host, const char *address, int port);
bool ctl_origin_is_ours(const char *origin, const char *address, int port);

/* ---- errand.c -------------------------------------------------------------------------------- */

/* What the other process does: the exit status.  What it adds to @out goes to the caller. */
typedef int ctl_errand_body(const struct ctl_look *look, const void *ctx,
                            struct due__ctl_buffer *out);

struct ctl_errand {
    pid_t pid;                   /* 0: none */
    const struct ctl_look *look; /* at which queue */
    int out_fd, said_fd;         /* -1: at its end */
    struct due__ctl_buffer out;  /* what it has written */
    struct due__ctl_buffer said; /* what it has said on standard error */
    int64_t until_ns;            /* then it is ended */
    bool cut;                    /* it was: for its time, or its length */
    bool writes;                 /* it changes the queue, and so is not ended at once */
    int status;                  /* once it is over */
};

/* False: no process can be made. */
bool ctl_errand_start(struct ctl_errand *e, ctl_errand_body *body, const struct ctl_look *look,
                      const void *ctx, int64_t for_ns);
/* Read what has come.  True: it is over, and everything is there. */
bool ctl_errand_read(struct ctl_errand *e, bool out, bool said);
void ctl_errand_kill(struct ctl_errand *e);
void ctl_errand_free(struct ctl_errand *e); /* after its end */

/* ---- The bodies ------------------------------------------------------------------------------ */

/* @ctx is the struct ctl_seen of the look before. */
int ctl_sight(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out);

/* Which jobs; @has_id: that one alone, with more of its payload if it is to be @whole. */
struct ctl_page {
    bool has_topic, has_id, whole;
    char topic[DUE_TOPIC_LENGTH + 1];
    char state[12];              /* "": any */
    char find[CTL_FIND_MAX + 1]; /* in the key, or at the beginning of the id; "": anything */
    due_id id;
    uint64_t from;
    uint64_t most;
};
int ctl_page(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out);
/* The line of a job, with at most so many bytes of its payload. */
void ctl_job_show(struct due__ctl_buffer *out, const char *name, const due_record *record,
                  size_t most);

/* @ctx is a struct due__ctl_request. */
int ctl_change(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out);
bool ctl_change_is_known(const struct due__ctl_request *r);

/* ---- history.c ------------------------------------------------------------------------------- */

/* Hashes of the ids that a look has seen, in order. */
struct ctl_seen {
    const uint64_t *hashes; /* NULL: none, or too many */
    size_t n;
    int64_t at_ns; /* by ctl_web_now(); 0: there was no look */
};

struct ctl_history {
    char *samples[CTL_LOOKS]; /* a line each, at its number modulo CTL_LOOKS */
    size_t lens[CTL_LOOKS];
    uint64_t count;              /* of all there ever were */
    struct due__ctl_buffer rest; /* the other lines of the last one that succeeded */
    struct due__ctl_buffer said; /* what the last one said was wrong */
    struct due__ctl_buffer seen; /* its hashes */
    struct ctl_seen last;
    int status;
};

/* Take over what a look has written. */
void ctl_history_add(struct ctl_history *h, struct ctl_errand *look);
/* Take over only what one has said.  True: something is wrong, and it is not what was said last. */
bool ctl_history_said(struct ctl_history *h, const struct ctl_errand *e);
/* The samples behind number @after, and the rest. */
void ctl_history_write(const struct ctl_history *h, uint64_t after, struct due__ctl_buffer *to);
/* The last sample, without a line feed, or null. */
void ctl_history_last(const struct ctl_history *h, struct due__ctl_buffer *to);
/* What was said, as a text of JSON. */
void ctl_said_dump(struct due__ctl_buffer *to, const struct due__ctl_buffer *said);
void ctl_history_free(struct ctl_history *h);

/* ---- loop.c, http.c -------------------------------------------------------------------------- */

struct ctl_watched {
    struct ctl_look look;
    struct ctl_history history;
    int64_t look_ns;  /* when the next look begins */
    int64_t began_ns; /* the last one */
    bool looked;      /* once, and said what was wrong then */
};

struct ctl_web {
    const struct ctl_site *site;
    const struct ctl_look *look;           /* what was asked for */
    struct ctl_watched queues[CTL_QUEUES]; /* the queues of that */
    size_t queue_count;
    char token[CTL_TOKEN + 1];
    const char *address; /* as in a URL */
    int port;
    struct MHD_Daemon *daemon;
    struct ctl_errand errands[CTL_ERRANDS]; /* the first CTL_QUEUES are the looks */
    struct ctl_asked *asked[CTL_ERRANDS];   /* the request that waits for each */
    struct ctl_client {
        int fd;           /* -1: free */
        int64_t until_ns; /* then it is ended */
    } clients[CTL_CONNECTIONS_MAX];
};

/* Serve at this socket.  False: said why not. */
bool ctl_http_open(struct ctl_web *w, int listen_fd);
/* The errand at this place is over. */
void ctl_http_answer(struct ctl_web *w, size_t place);
/* End connections whose time is up; when the next one's will be. */
int64_t ctl_http_sweep(struct ctl_web *w, int64_t now_ns);
/* All requests that wait are answered, whatever becomes of their errands. */
void ctl_http_close(struct ctl_web *w);

/* ---- queues.c -------------------------------------------------------------------------------- */

/* Note the queues of @w->look, in order.  False: said what is wrong with them. */
bool ctl_watched_open(struct ctl_web *w);
/* The one that an errand is of. */
struct ctl_watched *ctl_watched_of(struct ctl_web *w, const struct ctl_errand *e);
/* A line for each, unless there is but one. */
void ctl_watched_write(const struct ctl_web *w, struct due__ctl_buffer *to);

/* ---- What is served -------------------------------------------------------------------------- */

/* Serve the page until a signal comes: the exit status. */
int ctl_web_serve(struct ctl_look *look);
/* The same of the figures. */
int ctl_scrape_serve(struct ctl_look *look);

/* A file of the page. */
struct ctl_web_file {
    const char *name; /* "": the page itself */
    const char *type;
    const unsigned char *bytes;
    size_t len;
};
extern const struct ctl_web_file ctl_web_files[];
extern const size_t ctl_web_file_count;

extern const struct ctl_command ctl_web_command;
extern const struct ctl_command ctl_metrics;

#endif
