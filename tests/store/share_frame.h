/* share_frame.h - what the tests of a shared store are made of.
 *
 * The jobs and what is known of them are those of suite_frame.h: whatever a store shows is compared
 * with that.  A test gathers changes and a claim and sends them as one exchange of one of several
 * processes; what was answered is looked at where it was sent.
 */
#ifndef SHARE_FRAME_H
#define SHARE_FRAME_H

#include "store/share_suite.h"
#include "store/suite_frame.h"

#define SHARE_LONG_NS  DUE_S(600)  /* a lease that does not end */
#define SHARE_SHORT_NS DUE_MS(400) /* one that does, when time passes by */
#define SHARE_PASS_NS  DUE_MS(420) /* this */
#define SHARE_LATER_NS DUE_S(3600) /* a deadline that does not come */

/* A job that was shown by a claim. */
struct sharing_held {
    size_t job;
    uint64_t held;
    int64_t lapsed_ns;
};

struct replay;

struct sharing {
    struct suite base;
    struct replay *replay; /* what is sent is written down there; NULL: it is not */
    const struct share_maker *maker;
    uint64_t number[SUITE_STORES][2]; /* of the last exchange of each lane */
    struct due_claim claim;
    bool claims;
    bool work; /* the lane of what was gathered */
    int *results;
    size_t results_room;
    struct due_exchange answer;
    struct sharing_held *held; /* by the last exchange */
    size_t n_held;
    size_t held_room;
    unsigned calls;            /* that the last exchange took */
    char learnt[16][8];        /* names of groups, and keys, of others' jobs */
    size_t marked;             /* what was looked at last, */
    unsigned char mark[32768]; /* and its mark */
    size_t mark_len;
    int64_t soon_ns;   /* how long join() may take; 0: SUITE_SOON_NS */
    uint64_t capacity; /* what join() says of it */
    bool by_rank;      /* and of its order: by priority */
    int64_t heard_ns;  /* when the last answer came */
    bool own_time;     /* the time is that of the last answer, and what has gone by since */
    size_t long_len;   /* some jobs of a step are so long; 0: none */
    bool may_lose;     /* a step may be answered DUE_ELOST; */
    bool lost;         /* it was, and nothing was done: join anew */
    bool fenced;       /* or DUE_EFENCED: of an exchange that was sent twice nobody knows here */
    void (*heard_late)(struct sharing *t); /* a step's claim had to be sent again; NULL */
};

#define SHARE_CHECK(t, truth, ...)                                                          \
    do {                                                                                    \
        if (!suite_check(&(t)->base, (truth), __FILE__, __LINE__, #truth ": " __VA_ARGS__)) \
            return;                                                                         \
    } while (0)
#define SHARE_ANSWERS(t, call, wanted)                                               \
    do {                                                                             \
        if (!suite_answers(&(t)->base, (call), (wanted), __FILE__, __LINE__, #call)) \
            return;                                                                  \
    } while (0)

const struct due_shared_verbs *sharing_verbs(struct sharing *t, int s);
int64_t sharing_now(struct sharing *t); /* the store's time, asked of the first process */
void sharing_pass(struct sharing *t, int64_t ns);

/* A frame, of no queue yet. */
void sharing_begin(struct sharing *t, const struct share_maker *maker, const char *test);
void sharing_end(struct sharing *t);

/* ---- Processes ---- */

int sharing_join(struct sharing *t, int s);
bool sharing_all_join(struct sharing *t, int n); /* the first so many */
void sharing_leave(struct sharing *t, int s);
void sharing_vanish(struct sharing *t, int s); /* without leaving, as a kill does */

/* ---- An exchange ---- */

/* A job, due at the store's time and @in_ns (negative: it is overdue). */
size_t sharing_job(struct sharing *t, const char *topic, int64_t in_ns);
size_t sharing_job_of(struct sharing *t, const char *topic, int64_t in_ns, const void *data,
                      size_t len);
/* The same with a group, whose name stays. */
size_t sharing_grouped(struct sharing *t, const char *topic, int64_t in_ns, const char *group);

/* Changes of what nobody holds. */
void sharing_put(struct sharing *t, size_t job);
void sharing_cancel(struct sharing *t, size_t job);
void sharing_move(struct sharing *t, size_t job, int64_t until_ns);
void sharing_kick(struct sharing *t, size_t job, int64_t until_ns);
void sharing_strike(struct sharing *t, size_t job); /* off the dead */
/* Process @s looks at it, so that it is known by what it may be amended; false: it is not there. */
bool sharing_look(struct sharing *t, int s, size_t job);
/* It gets other bytes, which stay valid, and waits until then; as it was when it was looked at. */
void sharing_amend(struct sharing *t, size_t job, int64_t until_ns, const void *data, size_t len);
/* It is dropped, dead or not, as it was when it was looked at. */
void sharing_lend(struct sharing *t, size_t job);
/* What holds back a topic is another; -1: as it is. */
void sharing_hold_back(struct sharing *t, const char *topic, int64_t paused, int64_t held_max);
/* Of what is held so. */
void sharing_done(struct sharing *t, struct sharing_held h);
void sharing_back(struct sharing *t, struct sharing_held h, int64_t until_ns);  /* with its pass */
void sharing_round(struct sharing *t, struct sharing_held h, int64_t until_ns); /* without it */
void sharing_bury(struct sharing *t, struct sharing_held h, const char *reason);
void sharing_start(struct sharing *t, struct sharing_held h, uint32_t attempts); /* BEGIN */
void sharing_extend(struct sharing *t, struct sharing_held h, int64_t lease_ns);
void sharing_release(struct sharing *t, struct sharing_held h);
/* The claim; any topic. */
void sharing_claim(struct sharing *t, size_t need, size_t extra, int64_t lease_ns);
void sharing_wait(struct sharing *t, size_t need, int64_t lease_ns); /* the same, and it waits */
void sharing_of(struct sharing *t, const char *const *topics, size_t n);

/* Send what was gathered, again and again after DUE_EAGAIN and DUE_EINDOUBT; what took effect is
 * noted. */
int sharing_send(struct sharing *t, int s);
int sharing_send_once(struct sharing *t, int s); /* one call, not noted, and not forgotten */
void sharing_expect(struct sharing *t);          /* note it, before it is sent */
void sharing_forget(struct sharing *t);          /* what was gathered */
bool sharing_sent(struct sharing *t, int s);     /* the answer is 0, and so are all results */
/* These are held since the last exchange, in this order. */
bool sharing_got(struct sharing *t, const size_t *jobs, size_t n);
/* Put it, and claim it as process @s. */
bool sharing_have(struct sharing *t, int s, size_t job, int64_t lease_ns, struct sharing_held *h);
/* Everything that is due can be claimed, and is what is thought to be stored and due: @n jobs. */
bool sharing_drain(struct sharing *t, int s, size_t n);

/* ---- What it shows ---- */

size_t sharing_job_named(const struct sharing *t, due_id id); /* base.n_jobs: not known */

int sharing_find(struct sharing *t, int s, size_t job); /* compares */
int sharing_census(struct sharing *t, int s, struct due_census_all *all);
/* Of the last census; zeros if the topic was not told. */
struct due_census_topic sharing_counted(const char *topic);
size_t sharing_dead(struct sharing *t, int s, size_t from, size_t max, size_t *jobs);
/* A page, behind @at: how many, and whether there may be more. */
size_t sharing_page(struct sharing *t, int s, struct due_page *at, size_t max, size_t *jobs,
                    bool *more);

extern const struct suite_test_shared {
    const char *name;
    void (*run)(struct sharing *t);
} share_change_tests[], share_edit_tests[], share_claim_tests[], share_number_tests[],
    share_join_tests[], share_wait_tests[], share_look_tests[], share_size_tests[],
    share_history_tests[], share_topic_tests[], share_key_tests[], share_group_tests[],
    share_capacity_tests[], share_rank_tests[], share_lend_tests[], share_revoke_tests[];

#endif
