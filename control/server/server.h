/* server.h - the socket of a program, and what carries out what is asked for there.
 *
 *   open.c     opened and closed
 *   place.c    the file of the socket
 *   serve.c    the thread: who is connected, what has come, what is answered
 *   carry.c    a request: whose queue it is for, which verb
 *   verbs.c    changes, as calls of a queue; duectl, too, which owns a queue
 *   change.c   requests that change something
 *   times.c    the queue's clock and the wall clock
 *   look.c     requests that look at jobs
 *   figures.c  requests for figures
 *
 * Guards  I  set before the thread starts, then constant    T  that thread alone
 *         A  atomic
 *
 * Edges   E1  close: sets stopping, then wakes the thread -> which looks at it before each request,
 *             and between the jobs of one
 */
#ifndef DUE__CTL_SERVER_H
#define DUE__CTL_SERVER_H

#include <pthread.h>
#include <sys/types.h>
#include <sys/un.h>

#include "due/control.h"
#include "wire/request.h"

/* ---- The file of the socket ------------------------------------------------------------------ */

struct due__ctl_place {
    struct sockaddr_un address; /* I */
    int folder_fd;              /* I  of the file; -1: none.  Who has it opened closes it */
    dev_t device;               /* I  of the file that was made there, */
    ino_t inode;                /* I  of which 0: none was */
};

/* Make it, and listen: 0 or an errno.  What a process has left there that is gone is taken over. */
int due__ctl_place_take(struct due__ctl_place *p, int fd);
/* Take it away, if it is still the same file. */
void due__ctl_place_leave(const struct due__ctl_place *p);

/* ---- Carrying out ---------------------------------------------------------------------------- */

struct due__ctl_queue {
    due_queue *queue;                 /* I */
    unsigned flags;                   /* I */
    char name[DUE__CTL_NAME_MAX + 1]; /* I */
};

/* What can be asked for. */
struct due__ctl_served {
    struct due__ctl_queue *queues;                                      /* I */
    size_t n;                                                           /* I */
    void (*on_cancel)(void *ctx, due_queue *queue, const due_job *job); /* I */
    void *ctx;                                                          /* I */
    bool stopping;                                                      /* A: E1 */
};

/* A request that has come.  Guard: T */
struct due__ctl_carrier {
    const struct due__ctl_served *served;
    const struct due__ctl_queue *of; /* whose jobs it is about; set by due__ctl_carry() */
    struct due__ctl_request *request;
    const char *body; /* the payloads */
    struct due__ctl_buffer *answer;
};

/* Do it, and answer. */
void due__ctl_carry(struct due__ctl_carrier *c);
/* What is wrong with a request, as a line. */
void due__ctl_carry_fault(struct due__ctl_buffer *answer, const char *fault);
/* The last line of an answer. */
void due__ctl_carry_end(struct due__ctl_buffer *answer, int rc);

/* Wait until what was changed is stored, also in a queue whose changes nobody waits for.  0, or
 * DUE_EINDOUBT: the store is silent; or another error. */
int due__ctl_carry_stored(struct due__ctl_carrier *c);

/* Each answers 0 or a DUE_E* code; what it has answered before that stands. */
int due__ctl_carry_ids(struct due__ctl_carrier *c);
int due__ctl_carry_all(struct due__ctl_carrier *c);
int due__ctl_carry_put(struct due__ctl_carrier *c);
int due__ctl_carry_show(struct due__ctl_carrier *c);
int due__ctl_carry_list(struct due__ctl_carrier *c);
int due__ctl_carry_dead(struct due__ctl_carrier *c);
int due__ctl_carry_stats(struct due__ctl_carrier *c);
int due__ctl_carry_metrics(struct due__ctl_carrier *c);
int due__ctl_carry_queues(struct due__ctl_carrier *c);

/* ---- Times ----------------------------------------------------------------------------------- */

/* One moment, on both clocks. */
struct due__ctl_times {
    int64_t now_ns;  /* on the queue's clock */
    int64_t wall_ns; /* since 1970; the same, if the queue's clock is the wall clock */
};

struct due__ctl_times due__ctl_times_now(const due_queue *q);
/* A time of the wall clock on the queue's: never negative, nor later than DUE_FOREVER. */
int64_t due__ctl_times_to(struct due__ctl_times t, int64_t wall_ns);

/* ---- The thread ------------------------------------------------------------------------------ */

struct due__ctl_client;

struct due_control {
    struct due__ctl_served served;                         /* I */
    struct due__ctl_place place;                           /* I */
    void (*on_thread_start)(void *ctx, const char *name);  /* I */
    pid_t pid;                                             /* I  of who has opened it */
    int listen_fd;                                         /* I */
    int stop_fd;                                           /* I  readable: it is to end */
    size_t body_most;                                      /* I  bytes of payloads, of all */
    pthread_t thread;                                      /* I */
    struct due__ctl_client *clients[DUE__CTL_CLIENTS_MAX]; /* T  the first n */
    size_t n;                                              /* T */
};

/* Its main function. */
void *due__ctl_serve(void *control);

#endif
