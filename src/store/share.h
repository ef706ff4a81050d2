/* share.h - a queue whose jobs many processes have: what it knows besides a stored queue's.
 *
 * Its journal is that of a stored queue: a commit inbox, one sender, batches.  What differs is
 * written down here and in the files share*.c, and begins with a look at due__commits.share.
 */
#ifndef DUE__SHARE_H
#define DUE__SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "due/store_shared.h"
#include "queue/queue.h"
#include "store/sender.h"

struct due__key;
struct due__request;

/* Of a job that this process has claimed. */
struct due__hold {
    _Alignas(8) uint64_t held; /* A  X2: its lease in the store; 0: another claim has the job */
    _Alignas(8)
        int64_t until_ns; /* A  X2: until then nobody else can have it, on due__sharing_clock() */
    int64_t since_ns;     /* K  when it was claimed */
    int64_t due_ns;       /* O  it was due then, on the store's clock */
    uint32_t extending; /* A  X1: it is CLAIMED to be extended, and leased else; written under T */
    bool returns;       /* K  it left the store for nobody, and is to be put in again, */
    bool robbed;        /* K  without its key, which another has by now */
    bool polled;        /* K  it was claimed for a call that did not wait */
};

/* Topics that somebody wants; none: any. */
struct due__sharing_topics {
    uint32_t number[DUE_CLAIM_TOPICS]; /* O */
    size_t count;                      /* O */
    bool any;                          /* O */
    bool more;                         /* O  others are wanted besides, and come next */
};

/* One who lists jobs: known by its cursor. */
struct due__listing {
    uint64_t cursor;         /* K  0: nobody */
    uint64_t used;           /* K  when last, in calls */
    bool over;               /* K  it has come to its end */
    struct due__pages pages; /* K */
};

#define DUE__LISTINGS 16u /* of which the one used least lately is forgotten */

/* What is kept of a job that is not here, until it has gone, to be shown to on_discard. */
struct due__last_look {
    due_job job;          /* O */
    unsigned char *bytes; /* O  headers, then payload; NULL: there are none */
    size_t size;          /* O */
};

#define DUE__LOOKS_KEPT 16u /* at a time */

/* Dead jobs that were kept for long enough, or that are too many. */
struct due__retention {
    bool turn;               /* K  it is ours, and not all of them have been looked at */
    bool sent;               /* K  the changes in sh->edits are of this page, and in doubt */
    bool last;               /* K  and it is the last one */
    size_t most;             /* K  so many jobs are looked at in the next one */
    int64_t rests_ns;        /* K  others are to look until then, monotonic: it has failed */
    struct due__pages pages; /* K  how far we are */
};

struct due__sharing {
    const struct due_shared_verbs *verbs; /* I */
    struct due__records holds;            /* A  its own edges: struct due__hold */
    size_t prefetch_max;                  /* I */
    size_t room;                          /* I  results */
    int *results;                         /* K  of the exchange under way */

    uint64_t number[2]; /* K  of the last exchange of each lane: puts, and work */

    /* Time. */
    bool doubt;                   /* K  it may have been sent, and is not answered */
    bool begun;                   /* K  the exchange was given to the store, and has not ended */
    int64_t sent_ns;              /* K  before that was first done, on due__sharing_clock() */
    int64_t began_ns;             /* K  the same of the one that has ended last */
    _Alignas(8) int64_t ahead_ns; /* A  relaxed: the store's clock is at most so much before ours */
    int64_t behind_ns;            /* K  and at least so much */
    int64_t measured_ns;          /* K  when that was measured; 0: not yet */

    /* The claim. */
    struct due_claim claim;              /* K */
    const char *names[DUE_CLAIM_TOPICS]; /* K */
    struct due__sharing_topics wanted;   /* K  the topics of that claim */
    bool claiming;                       /* K  it was sent alone, and is not answered */
    due_change *edits;                   /* K  changes of jobs that are not here, */
    size_t n_edits;                      /* K  so many, */
    due_change edit;                     /* K  either this one, */
    due_retry edit_retry;                /* K  to what its record points, */
    unsigned char *edit_bytes;           /* K  the same; NULL: nothing */
    size_t edit_size;                    /* K */
    due_change *many;                    /* K  or these, of room for results; NULL: not yet */
    struct due__last_look *looks;        /* K  DUE__LOOKS_KEPT, of these; NULL: nobody wants them */
    bool clears;                         /* K  they are in doubt, and of a clear */
    bool asking;                         /* K  it was sent, and is not answered */
    bool riding;                         /* K  it goes with the batch under way */
    bool waits;                          /* K  the store will ring us for those topics */
    bool counted;                        /* K  the store counts on us, since its last answer */
    bool called;                         /* K  and it is time to come */
    bool rung;                           /* O  the proxy's: it has been rung since it last looked */
    struct due_heard heard;              /* O  or told when to claim; alarm_ns 0: not */
    int64_t heard_ahead_ns;              /* O  the store's clock is at least so much before ours; */
    int64_t heard_at_ns;                 /* O  as of then, on due__sharing_clock(); 0: not */
    struct due_heard told;               /* K  the same, looked at */
    uint64_t stamp;                      /* K  of the last exchange of work */
    size_t placed;                       /* K  jobs that claim has brought */
    int64_t alarm_ns;                  /* K  claim again then, on the store's clock; 0: when rung */
    int64_t claimed_ns;                /* K  when the last one was answered, monotonic */
    uint32_t turn;                     /* K  whose topics are asked for first */
    _Alignas(8) uint64_t taken;        /* A  relaxed: jobs ever taken from the lines */
    uint64_t taken_then;               /* K  so many at the last claim */
    int64_t lease_ns;                  /* K  of the last claim */
    _Alignas(8) int64_t asked_ns;      /* A  relaxed: the longest lease asked for since then */
    struct due__sharing_topics polled; /* D  what a call would have that did not wait */
    bool polls;                        /* D  there was one, and nothing has come since */
    bool missed;      /* D  what came for one went back before another one looked for it */
    bool claims_poll; /* K  the last claim was for one */

    /* Capacity (share_capacity.c). */
    _Alignas(8) uint64_t capacity; /* A  relaxed: of the queue, as last heard; 0: it has none */
    uint32_t room_waiting; /* A  X4: callers that wait for room, or were called and not gone */
    uint32_t room_called;  /* A  X4: of those that were called those that have yet to put again */
    uint32_t room_left;    /* A  X4: one of them has left room to others */
    bool room_tells;       /* K  and the store has yet to hear of it */
    bool room_asked;       /* K  the store will ring us for room */
    bool room_rung;        /* O  the proxy's: it has been rung since it last asked for room */

    /* What is to be done when; monotonic. */
    int64_t guard_ns;  /* K  see whether somebody came who was rung; DUE_FOREVER: nobody was */
    int64_t rang_ns;   /* K  and when somebody was last */
    int64_t again_ns;  /* K  claim of the topics that were left out; DUE_FOREVER: none was */
    int64_t look_ns;   /* K  see whether who was called has come; DUE_FOREVER: nobody was */
    int64_t renew_ns;  /* K  between two beats, as the last one has answered */
    int64_t sleeps_ns; /* K  the proxy looks again then; INT64_MIN: it is about to look */
    int64_t tidy_ns;   /* K  look at what lies untaken; DUE_FOREVER: nothing does */

    struct due__retention retention; /* K */

    struct due__listing listings[DUE__LISTINGS]; /* K */
    uint64_t listing;                            /* K  calls of those who list */
    uint64_t cursor;                             /* K  the last that was given */
};

/* A lease is no longer than a store can be asked for. */
static inline int64_t due__sharing_lease_fit(int64_t lease_ns)
{
    return lease_ns < DUE_CLAIM_LEASE_MAX ? lease_ns : DUE_CLAIM_LEASE_MAX;
}

static inline struct due__hold *due__hold_at(const struct due_queue *q, uint32_t number)
{
    return due__records_at(&q->commits->share->holds, number);
}

/* ---- share_time.c ---- */

/* The clock of holds: it counts while the machine sleeps, and nobody sets it. */
int64_t due__sharing_clock(const struct due_queue *q);
/* The store's time, never before it. */
int64_t due__sharing_now(const struct due_queue *q);
/* The same, neither before it nor after it, as far as is known. */
int64_t due__sharing_mid(const struct due_queue *q);
/* How late a job of the caller's own is by that; never less than nothing. */
int64_t due__sharing_late(const struct due_queue *q, uint32_t number);
/* With the key: an exchange that was sent at @from_ns, and answered at @to_ns, took effect at
 * @now_ns of the store's clock. */
void due__sharing_measure(struct due__sharing *sh, int64_t from_ns, int64_t to_ns, int64_t now_ns);
/* The same: the store's clock is at least so much before ours. */
void due__sharing_at_least(struct due__sharing *sh, int64_t least_ns);

/* ---- share.c ---- */

/* As open() of the store: join those who have its jobs. */
int due__sharing_join(struct due_queue *q, struct due__commits *c, const due_options *o,
                      struct due_store_open *how, due_error *error);
/* Room for the answers of a batch.  False: no memory. */
bool due__sharing_room(struct due_queue *q, struct due__commits *c);
void due__sharing_leave(struct due__commits *c, int64_t until_ns);
void due__sharing_free(struct due_queue *q, struct due__commits *c);
/* With the key: the batch under way, as commit() of the store; its entries get their results. */
int due__sharing_send(struct due_queue *q, struct due__batch *b, int64_t until_ns);
/* The same: a claim alone, that is in sh->claim.  As exchange() of the store. */
int due__sharing_claim(struct due_queue *q, int64_t until_ns);
/* The same of the changes in sh->edits; their results are the first. */
int due__sharing_edit(struct due_queue *q, int64_t until_ns);
/* The same, and if they are in doubt they are seen through. */
int due__sharing_ask_edits(struct due_queue *q, int64_t until_ns);
/* The same of sh->edit alone: its answer. */
int due__sharing_ask_edit(struct due_queue *q, int64_t until_ns);
/* What those point to, and was made for them, is not needed any more.  The second: unless they are
 * in doubt. */
void due__sharing_edit_forget(struct due_queue *q);
void due__sharing_edit_over(struct due_queue *q);
/* As find() of the store; DUE_EAGAIN too once the queue stops, which only one call is told of. */
int due__sharing_find(struct due_queue *q, due_id id, due_store_visit *visit, void *ctx,
                      int64_t until_ns);
/* A change of a job that was looked at has that answer: may it be another since?  One that is
 * unknown has gone; or it is dead by now, or not any more. */
static inline bool due__sharing_look_again(int rc)
{
    return rc == DUE_EAGAIN || rc == DUE_ENOENT;
}
/* With the key: live, and see whether somebody came who was rung, if it is time for that. */
void due__sharing_beat(struct due_queue *q, int64_t now_ns, int64_t until_ns);
/* With the key: the store will not have us any more. */
void due__sharing_over(struct due_queue *q, int rc);

/* ---- share_claim.c ---- */

/* With the key: what is wanted now is in sh->claim.  False: nothing, or the store will ring. */
bool due__sharing_want(struct due_queue *q);
/* The claim is answered, and what it has brought is placed. */
void due__sharing_claimed(struct due_queue *q, const struct due_exchange *answer);
/* With the key: a claim, or a change, in doubt is seen through.  False: it is in doubt still. */
bool due__sharing_settle(struct due_queue *q, int64_t until_ns);
bool due__sharing_settled(const struct due_queue *q);
/* With the key: claim what is wanted.  True: it is to be tried again soon. */
bool due__sharing_turn(struct due_queue *q, int64_t until_ns);
/* When there may be something to do, monotonic; and until then, or the proxy is called. */
int64_t due__sharing_next(struct due_queue *q);
void due__sharing_sleep(struct due_queue *q, int64_t until_ns);
/* With the key: what is wanted is claimed at once.  As exchange() of the store. */
int due__sharing_claim_now(struct due_queue *q, int64_t until_ns);
/* A call takes jobs; or it found none, and does not wait.  The second: what came for the last one
 * has gone back; @again: and that is known. */
void due__sharing_asked(struct due_queue *q, const struct due__request *r);
bool due__sharing_polled(struct due_queue *q, const struct due__request *r, bool again);
/* One has, and nothing has come since. */
bool due__sharing_is_asked(const struct due_queue *q);
/* With the key: what lies untaken for long goes back. */
void due__sharing_tidy(struct due_queue *q);
/* With the key, when the queue is closing: what was refused when it was to be put in again goes,
 * and is shown if that is the end (restore_claim() of apply.c). */
void due__sharing_return_all(struct due_queue *q);
/* Without it: whatever lies untaken does. */
void due__sharing_release_all(struct due_queue *q);

/* ---- share_ask.c ---- */

/* As in journal.h.  And with the key: 0, or an error; DUE_EAGAIN: not now. */
int due__sharing_ask(struct due_queue *q, struct due__ask *ask, struct due__deadline *by);
int due__sharing_hold_back(struct due_queue *q, int topic, int64_t paused, int64_t held_max);
/* Without it: what the store was asked has been answered, or @until_ns has come. */
void due__sharing_quiesce(struct due_queue *q, int64_t until_ns);
int due__sharing_answer(struct due_queue *q, struct due__ask *ask, int64_t until_ns);
/* What a job that is dead is to become, to wait again at @at_ns.  False: its time is limited, so
 * its content is to be another. */
bool due__sharing_kick(const due_record *r, int64_t at_ns, due_change *ch);

/* ---- share_amend.c ---- */

/* With the key: a job that is not here gets other content, or is kicked without its limit. */
int due__sharing_amend(struct due_queue *q, const struct due__ask *ask, int64_t until_ns);

/* All that the change points to, but its topic, is kept with it: false: no memory. */
bool due__sharing_edit_keep(struct due_queue *q, due_record *r);

/* ---- share_lend.c ---- */

/* With the key: a job that is not here is cancelled, and lent to the caller in ask->job. */
int due__sharing_lend(struct due_queue *q, const struct due__ask *ask, int64_t until_ns);

/* ---- share_keys.c ---- */

/* With the key: whose a unique key is. */
int due__sharing_whose(struct due_queue *q, struct due__ask *ask, int64_t until_ns);
/* The job that has a key becomes what an enqueue says.  DUE_ENOENT: it has changed meanwhile, or
 * has the key no more. */
int due__sharing_rekey(struct due_queue *q, const struct due__ask *ask, int64_t until_ns);

/* ---- share_pages.c ---- */

/* With the key: what is asked of many jobs. */
int due__sharing_answer_many(struct due_queue *q, struct due__ask *ask, int64_t until_ns);
/* The same: at most @max jobs of the topic that is looked through, or dead ones, are shown. */
int due__sharing_page(struct due_queue *q, struct due__pages *pages, bool dead, size_t max,
                      due_store_visit *visit, void *ctx, int64_t until_ns);

/* ---- share_discard.c ---- */

/* What the job is.  False: no memory. */
bool due__look_keep(struct due_queue *q, const due_record *r, int topic, struct due__last_look *l);
/* With the key: room for those of a page, if there is a hook.  False: no memory. */
bool due__looks_make(struct due_queue *q);
/* With the key: the changes of a page of dead jobs have been answered; or not made: @rc. */
void due__sharing_retained(struct due_queue *q, int rc);
/* The same of a clear, whose jobs are shown; DUE_EINDOUBT: once it is known. */
void due__sharing_cleared(struct due_queue *q, int rc);
/* With the key: nothing is sent any more, so what is in doubt stays so. */
void due__sharing_discard_stop(struct due_queue *q);
/* At the end, which may be that of an opening: the queue may not know @sh. */
void due__sharing_discard_free(struct due_queue *q, struct due__sharing *sh);

/* ---- share_retain.c ---- */

/* With the key: one page, if it is our turn.  True: there may be another. */
bool due__sharing_retain(struct due_queue *q, int64_t until_ns);

/* ---- share_end.c ---- */

/* With the key: what a change of a shared queue says besides. */
void due__sharing_describe(struct due_queue *q, const struct due__entry *e, due_change *ch);
void due__sharing_describe_key(struct due_queue *q, const struct due__entry *e,
                               const struct due__key *key, due_change *ch);
/* Does the job leave memory once that has landed, and stay in the store? */
bool due__sharing_leaves(enum due__purpose purpose);
/* Under the timeline lock: it has landed. */
void due__sharing_apply(struct due_queue *q, const struct due__entry *e);
/* After it: it leaves; somebody else has it; what was refused is to be tried again. */
void due__sharing_left(struct due_queue *q, const struct due__entry *e);
void due__sharing_stale(struct due_queue *q, const struct due__entry *e);
/* Before it: the change @ch of the entry has landed, its job was cancelled while it was held. */
void due__sharing_revoked(struct due_queue *q, struct due__entry *e, due_change *ch);
/* Has another claim the job of the entry?  Then its change is not sent. */
bool due__sharing_lost(const struct due_queue *q, const struct due__entry *e);
/* A lease that is to be extended: as in journal.h. */
bool due__sharing_extending(const struct due_queue *q, uint32_t number);
void due__sharing_extend_mark(struct due_queue *q, uint32_t number, bool extends);
void due__sharing_extend_undo(struct due_queue *q, uint32_t number);
/* A job that was taken for good, and has left the store, for nobody: true, and it is gone, if it
 * was cancelled meanwhile; whoever did that was told that it does not come again. */
bool due__sharing_dropped(struct due_queue *q, uint32_t number);
/* With the key: it was to be put in again, and is to be tried later. */
void due__sharing_return(struct due_queue *q, uint32_t number);
/* A job whose lease has ended is let go of.  And: one that was taken. */
void due__sharing_lapse(struct due_queue *q, uint32_t number);
void due__sharing_let_go(struct due_queue *q, uint32_t number);
/* Of taken jobs those that are ours for long enough to the front: how many.  The others are let go
 * of, or wait again: *@rc. */
size_t due__sharing_fit(struct due_queue *q, const struct due__request *r, struct due__slot *slots,
                        size_t n, struct due__deadline *by, int *rc);
/* How much of a lease they may have; at most 0: they are not to be handed out. */
int64_t due__sharing_lease(const struct due_queue *q, const struct due__slot *slots, size_t n,
                           int64_t lease_ns);
/* Their leases have begun: in the store they are called so. */
void due__sharing_tokens(struct due_queue *q, const struct due__slot *slots, size_t n,
                         due_job *jobs);

/* ---- share_capacity.c ---- */

/* The queue has a capacity, and is full. */
void due__sharing_full(struct due__sharing *sh);
/* There was no room for a job.  Waits up to @timeout_ns, counted from the first time, until it may
 * be put again: 1; or DUE_ETIMEDOUT, DUE_ECLOSED, DUE_EFENCED, DUE_ENOMEM. */
int due__sharing_await_room(struct due_queue *q, int64_t timeout_ns, struct due__deadline *by,
                            bool *inside);
/* Who was called for room has put again: @used: it has got in, or another was faster; or else it
 * leaves that room. */
void due__sharing_came(struct due_queue *q, bool used);
/* Is the store to be asked for room now?  *@waits: somebody waits for it. */
bool due__sharing_asks_room(struct due_queue *q, bool *waits);
/* What it has answered, with the key. */
void due__sharing_told_room(struct due_queue *q, const struct due_beat *beat);

/* ---- restore.c ---- */

/* As due_store_visit_claimed, with the queue as @ctx: the job is placed, due at once. */
int due__restore_claimed(void *queue, const due_claimed *job);

#endif
