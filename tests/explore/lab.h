/* lab.h - a whole queue for scenarios, and the books kept of its jobs.
 *
 * Every job has a number, carried as its pointer.  The books say what each call answered; from them
 * follows what must hold when nobody can go on (lab_idle) and at the end (lab_check):
 *
 *   a job is handed out once at most, never before its deadline, from its own topic
 *   none is passed over: whoever takes gets none that is later than one of the same topic that was
 *   in the queue when he began, and was had by somebody who began when he had ended
 *   one without delay is due at a moment between the beginning and the end of its put
 *   cancel and discard and hand-over exclude each other
 *   while somebody waits for a job, none that he takes is due
 *   while somebody waits for room, there is none
 *   nothing is left in the inbox, and nobody holds the lock, when everybody rests
 *   what was accepted has been had by somebody, or is still in the queue and can be taken
 *   the stats say the same
 */
#ifndef DUE__EXPLORE_LAB_H
#define DUE__EXPLORE_LAB_H

#include "queue/queue.h"
#include "explore.h"
#include "lab/extra.h"

#define LAB_JOBS 6u

struct lab_job {
    due_id id;
    int64_t deadline_ns; /* the last one it was given; without delay: not before that */
    int64_t latest_ns;   /* and not after that: its put had returned */
    int64_t taken_ns;    /* the one it was handed out with */
    int topic;
    int priority; /* set before it is put */
    bool now;     /* put without delay: due at some moment of that */
    bool accepted;
    uint8_t handed_out;
    uint8_t cancelled;
    uint8_t discarded;
    uint8_t moves;         /* calls that moved it: begun and ended ones */
    unsigned passed_event; /* when somebody had a later one instead; 0: never */
    int64_t passed_ns;     /* the deadline of that one */
};

struct lab {
    due_queue *q;
    due_clock *clock; /* turned by hand, or NULL */
    int64_t epoch_ns; /* what the queue's clock was ahead of the monotonic one at first */
    bool realtime;
    bool gaps; /* a put may be under way behind another job: then that one can be passed over */
    struct lab_job job[LAB_JOBS];
    unsigned waiting[3]; /* consumers that wait for any topic, for topic 1, for topic 2 */
    bool closed;         /* a close has answered 0 */
    bool paused;         /* some topic may be paused: nobody need be served */
    bool named;          /* who takes of topic 0 says so, instead of any */
    bool roomy;          /* who takes by name has room for two, where there is but one */
    unsigned events;     /* beginnings and ends of takes so far */
};
extern struct lab *lab;

void lab_open(due_options o);
void lab_open_bare(due_options o); /* without topics 1 and 2 */

/* What the queue's clock shows, without a step. */
int64_t lab_now(void);

/* In threads; instants are LAB_AT(), whatever the queue's clock.  They answer what the library
 * answers. */
int lab_put(unsigned n, int topic, int64_t at_ns, int64_t timeout_ns); /* at_ns 0: now */
int lab_take(int topic, int64_t timeout_ns); /* topic 0: any; answers the number, or an error */
int lab_take_batch(size_t max, int64_t timeout_ns); /* of any topic; at most LAB_JOBS */
int lab_cancel(unsigned n);
int lab_move(unsigned n, int64_t at_ns);
int lab_close(enum due_close_mode mode, int64_t timeout_ns);

/* In setup: what is ready is shown, so that it can be taken without the lock. */
void lab_show(void);

void lab_idle(void);
void lab_check(void);

/* How often job @n left the queue. */
unsigned lab_gone(unsigned n);

#define LAB_AT(n_ns) (EXPLORE_START_NS + (n_ns))

/* A scenario over a whole queue: how far it is searched, quick and deep, and random walks. */
#define LAB(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                     \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = lab_idle,          \
        .check = lab_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                \
    }

#endif
