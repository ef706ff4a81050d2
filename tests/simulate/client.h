/* client.h - the threads that use the queue: verbs at random, each told to the history. */
#ifndef SIMULATE_CLIENT_H
#define SIMULATE_CLIENT_H

#include "due/workers.h"
#include "history.h"
#include "plan.h"
#include "settings.h"

#define CLIENT_KNOWN 24u /* jobs that a thread remembers */

#define CLIENT_BATCH 6u
#define CLIENT_HOOK  7u /* in the history, of what hooks are told */

struct book;
struct program;

struct client {
    struct program *program;
    unsigned thread; /* of its program 1 and up, 0 is the program's own; and HISTORY_LANES for
                        each program before it */
    uint64_t random; /* of the verb under way */
    struct book *known[CLIENT_KNOWN];
    size_t n_known;
    bool stopped;        /* the queue is closed */
    unsigned n_shown;    /* so many were discarded in the call under way */
    struct fiber *fiber; /* until it is joined */
};

/* What the queues of a process have in common. */
struct host {
    due_clock *manual; /* while somebody has it */
    unsigned users;
};

/* A life of a program that has the queue.  With two queues it is two of these. */
struct program {
    const struct plan *plan;
    unsigned seat;    /* among those that want the queue */
    unsigned queue;   /* number among its process's */
    unsigned process; /* of the machine */
    unsigned life;
    unsigned lives; /* left */
    due_queue *q;
    struct host *host;
    uint64_t live; /* blocks of memory that the queue has */
    due_clock *manual;
    int64_t manual_ns; /* what it showed when it was last turned, in an earlier life */
    int topic[PLAN_TOPICS];
    due_workers *pool;    /* or NULL */
    unsigned lanes;       /* of its handlers, that run: bits */
    uint64_t handled;     /* hand-overs to its handlers */
    uint64_t acked;       /* by clients, and told so */
    bool closing;         /* a close has begun */
    bool closed;          /* who begins no call now begins none any more */
    unsigned busy;        /* so often it could not be freed */
    bool ended;           /* nobody uses the queue any more */
    unsigned begun;       /* verbs, in this life */
    unsigned meeting;     /* so many times its threads have met */
    unsigned waiting;     /* of its threads, for the others, */
    unsigned present;     /* of those that are not through */
    struct fiber *closer; /* waits for a verb to begin; or NULL */
    bool last;            /* its last life: all is taken out in the end */
    unsigned threads;     /* in this life */
    struct book *hot;     /* the job that was named last; or NULL */
    struct client own;    /* thread 0 */
    struct client client[PLAN_THREADS_MAX];
};

/* ---- program.c ---- */

extern const char *const program_names[PLAN_QUEUES]; /* of the queues */

void program_run(void *program);
/* As many lives as it has left. */
void program_lives(void *program);
bool program_orderly(const struct plan *p);

/* ---- client.c ---- */

void client_run(void *client);
int client_topic(const struct program *p, int topic); /* its number in the plan; -1: none */
void client_remember(struct client *c, struct book *b);
void client_know(struct client *c, struct book *b); /* only this thread */
/* One that this thread knows, and where; NULL: it knows none.  And not any more. */
struct book *client_draw(struct client *c, size_t *at);
void client_forget(struct client *c, size_t at);
/* Its number in its program. */
static inline unsigned client_number_of(const struct client *c)
{
    return c->thread % HISTORY_LANES;
}

/* What the history calls a thread, for job @i of a call of several. */
static inline unsigned client_lane(const struct client *c, unsigned i)
{
    unsigned number = client_number_of(c);

    return c->thread - number + 8 + number * CLIENT_BATCH + i;
}

/* ---- client_bytes.c ---- */

#define CLIENT_BYTES   70000u /* of a job, at most */
#define CLIENT_HEADERS 64u    /* likewise */

/* What the bytes of a job, or its pointer, say it is; 0: not sound. */
uint64_t client_number(const due_job *job);
/* The bytes of a job, or what an update gives it; for memory_free(). */
unsigned char *client_payload(const struct plan *p, uint64_t number, size_t *len);
size_t client_length(const struct plan *p, uint64_t number); /* of those */
/* Likewise headers: their length; and the number they follow from, 0 if there are none. */
size_t client_headers(uint64_t number, unsigned char bytes[CLIENT_HEADERS]);
uint64_t client_headers_number(const due_job *job);

/* ---- client_put.c, client_take.c, client_change.c, client_look.c: the verbs ---- */

void client_put(struct client *c);
void client_put_batch(struct client *c);
void client_put_timer(struct client *c);

bool client_take(struct client *c, int64_t timeout_ns); /* true: it had one */
bool client_reserve(struct client *c, int64_t timeout_ns, bool ack);
void client_take_some(struct client *c);
void client_take_readable(struct client *c);
void client_take_batch(struct client *c);
void client_discarded(struct program *p, const due_job *job);

void client_cancel(struct client *c);
void client_cancelled(struct book *b, int rc);     /* a cancel of it is answered */
void client_end(struct client *c, struct book *b); /* one that comes again comes no more */
void client_end_rounds(struct client *c);          /* likewise all of them */
void client_cancel_key(struct client *c);
void client_move(struct client *c);
void client_update(struct client *c);
void client_amend(struct client *c);
void client_read(struct client *c);
void client_find(struct client *c);
void client_find_key(struct client *c);
void client_kick_one(struct client *c);
int client_kick_all(struct client *c); /* each that is listed; answers how many */
void client_look(struct client *c);
void client_measure(struct client *c);
void client_flush(struct client *c);

/* ---- client_topics.c ---- */

void client_pause(struct client *c);
void client_limit(struct client *c);
/* The topic, -1: all, is paused (1), resumed (0) or limited to @value; answers as the call does. */
int client_hold_back(struct client *c, enum setting what, int topic, unsigned value);

/* ---- client_batch.c ---- */

void client_ack_batch(struct client *c, struct book **books, due_job *jobs, unsigned n);
void client_cancel_batch(struct client *c);
void client_clear(struct client *c);
void client_clear_dead(struct client *c);
void client_kick_topic(struct client *c);

int64_t client_timeout(struct client *c);                 /* how long to wait, at random */
const char *client_id(due_id id, char text[DUE_ID_TEXT]); /* "-": none */

#endif
