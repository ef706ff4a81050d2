/* sender.h - a stored queue's changes on their way to the store.
 *
 * Whoever changes something leaves a node in an inbox.  One thread at a time has the key: it takes
 * what waits, sends it as one batch, and does what was to be done after it.  A caller that finds
 * the key free commits for itself; otherwise the enqueue proxy does.  No timer: a batch is what
 * came while the last one was under way.
 *
 * There are two batches: the one under way, and the next.  While the store works on the first, the
 * second is filled and prepared; it is sent as soon as the first has landed, before anything is
 * done that follows from that.
 */
#ifndef DUE__SENDER_H
#define DUE__SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "due/store.h"
#include "job/draft.h"
#include "job/key_table.h"
#include "mem/inbox.h"
#include "os/bell.h"
#include "os/lock.h"
#include "queue/journal.h"
#include "store/id_index.h"
#include "store/topic_settings.h"

struct due_queue;
struct due__fresh;
struct due__taking;
struct due__waiter;

struct due__sharing;
struct due__submission;
struct due__commits;
/* Under the calls' lock: is it so what the call waits for?  Who makes it so rings it. */
typedef bool due__reached(const struct due__commits *c, const struct due__submission *a);

/* One call that waits for its changes, or for something else, on its stack. */
struct due__submission {
    struct due__waiter *waiter; /* O  its bell is rung when nothing is left */
    uint32_t over;              /* A  G3: left has come to 0 */
    uint32_t left;              /* D  changes not yet settled */
    uint32_t landed;            /* D  of those settled, confirmed */
    uint32_t doubt;             /* D  and those whose end is not known: the queue has closed */
    uint32_t gone;              /* D  jobs behind a refused one, cancelled before they were sent */
    int rc;                     /* D  the first refusal */
    due__reached *reached;      /* O  what it waits for, if not for its changes; else NULL */
    uint64_t goal;              /* O  of that: a count */
    const uint32_t *numbers;    /* O  if each one's end is asked for: their places */
    int *results;               /* D  and what became of each that has ended */
    uint32_t count;             /* O  of them; 0: it is not */
    uint32_t at;                /* D  where the next one's is probably */
    uint64_t bytes;             /* D  backpressure.c: it waits for room for so many */
    struct due__submission *behind; /* D  who has come after it for that */
    const due_id *find;           /* D  a job to be looked for in the store; NULL: none, or it is */
    struct due__ask *ask;         /* D  what is to be asked there; NULL: nothing, or it is */
    int64_t until_ns;             /* D  and until when */
    bool polls;                   /* O  it waits for nobody, so also not for the proxy */
    bool in_list;                 /* D  nobody waits: a taking that was left (takings.c) */
    bool keeps;                   /* D  the same, of which only rounds wait for whoever comes */
    struct due__submission *next; /* D  all that wait */
    struct due__submission *prev; /* D */
};

/* One change of a batch. */
struct due__entry {
    uint32_t number; /* K */
    uint8_t purpose; /* K */
    bool sent;       /* K  it is among the changes; otherwise there was nothing to send */
    bool known;      /* K  its call knows that it is refused, also if it leaves: N4 */
    int16_t rc;      /* K */
    struct due__submission *submission; /* K  who waits, once its end is known */
    struct due__draft *draft;           /* K  of an UPDATE */
    uint32_t bytes;                     /* K  that were taken for it: backpressure.c */
};

struct due__batch {
    struct due__entry *entries; /* K  info.batch_changes of them */
    due_change *changes;        /* K  likewise */
    uint32_t count;             /* K  entries */
    uint32_t send;              /* K  changes */
    uint32_t upto;              /* K  entries that they are of */
    uint32_t aside;             /* D  changes taken with it that need not be sent */
    size_t filled_bytes;        /* K  payload bytes of its entries */
    size_t send_bytes;          /* K  of its changes */
    struct due__key *forgot;    /* K  keys that are no longer kept: behind its changes */
    struct due__key *keeping;   /* K  copies of those that are, there; or of those it drops */
    bool written;               /* K  its changes are written down, up to there */
    bool complete;              /* K  with what belongs to no job: nothing is filled in any more */
    bool prepared;              /* K  the store has them, for send() */
    bool refused;               /* K  some of its entries are not sent, for a reason */
    bool drops;                 /* K  it has no entries: it drops what the queue does not know */
    bool last;                  /* K  likewise, and there is nothing more of that */
    bool settings;              /* K  it has no entries: it tells what holds back topics */
};

/* Its changes are to be written anew. */
static inline void due__batch_unwrite(struct due__batch *b)
{
    b->written = b->complete = b->prepared = false;
}

/* Is the job in one of its first @n changes? */
static inline bool due__batch_names(const struct due__batch *b, size_t n, due_id id)
{
    for (size_t i = 0; i < n; i++)
        if (due_id_equal(b->changes[i].record.id, id))
            return true;
    return false;
}

/* How far the batch now is (drawing: state.c). */
enum due__sender {
    DUE__SENDER_IDLE = 0, /* there is nothing in it */
    DUE__SENDER_FILLED,   /* it is to be sent: the store does not have it */
    DUE__SENDER_SENT,     /* send() sent it, and the store was not asked what came of it */
    DUE__SENDER_DOUBT,    /* the store was asked, and has not told */
    DUE__SENDER_STATES
};

/* What changes that. */
enum due__sender_event {
    DUE__SENDER_FILL,        /* something is to be sent */
    DUE__SENDER_SEND,        /* it was sent ahead of the answer */
    DUE__SENDER_UNANSWERED,  /* the store does not tell its end */
    DUE__SENDER_ANEW,        /* it has not landed, and is to be sent again, maybe with less in it */
    DUE__SENDER_END,         /* it has ended, and nothing stands behind it */
    DUE__SENDER_END_REST,    /* it has ended, and another one is filled */
    DUE__SENDER_END_FOLLOWED /* likewise, and that was sent already */
};

/* What is read from the store (drawing: state.c). */
enum due__reading {
    DUE__READER_JOBS = 0,      /* all jobs that are stored: the queue is loading */
    DUE__READER_KEYS,          /* then all keys that are kept */
    DUE__READER_SERVING,       /* nothing: all was read */
    DUE__READER_REWRITING,     /* nothing yet: what the queue holds is put again first */
    DUE__READER_DELETING_JOBS, /* all jobs, to drop those that the queue does not know */
    DUE__READER_DELETING_KEYS, /* then all kept keys, likewise */
    DUE__READER_STATES
};

/* What changes that. */
enum due__reading_event {
    DUE__READER_SHOWN,     /* the store has shown all of it */
    DUE__READER_AGAIN,     /* everything is to be put again */
    DUE__READER_REWRITTEN, /* nothing is left to be put */
    DUE__READER_EVENTS
};

struct due__commits {
    struct due_store *store;                          /* I */
    struct due_store_info info;                       /* I */
    bool async;                                       /* I */
    int64_t timeout_ns;                               /* I */
    uint64_t unsettled_max;                           /* I */
    uint64_t unsettled_bytes_max;                     /* I */
    struct due__records stored;                       /* A  its own edges: struct due__stored */
    struct due__index index;                          /* X */
    struct due__sharing *share;                       /* I  it shares its jobs: share.h; or NULL */
    void (*on_settled)(void *ctx, due_id id, int rc); /* I */
    void (*on_restore)(void *ctx, uint64_t restored, int finished); /* I */
    void *settled_ctx;                                              /* I */
    void *restore_ctx;                                              /* I */

    struct due__inbox inbox __attribute__((aligned(DUE__LINE))); /* A  G1 */
    _Alignas(8) uint64_t sequence;                               /* A  of the next id */
    _Alignas(8) uint64_t submitted;                              /* A  changes ever left */
    _Alignas(8) uint64_t submitted_bytes;                        /* A  ever taken for them */
    struct due__lock key __attribute__((aligned(DUE__LINE)));    /* K */

    struct due__batch batch[2];  /* K */
    struct due__batch *now;      /* K  the one under way, or to be filled */
    struct due__batch *next;     /* K  the one behind it: filled only while that is under way */
    struct due__waiter **rings;  /* K  info.batch_changes: whom to ring after a batch */
    enum due__sender sender;     /* K  how far that one is; changed by due__sender_on() alone */
    bool later;                  /* K  what can wait was refused: the proxy tries again, later */
    uint32_t carry;              /* K  place plus 1: a node that was taken, and did not fit */
    uint64_t number;             /* K  of the batch under way, or the next one */
    int64_t renew_at_ns;         /* O  the proxy's, monotonic */
    int64_t retry_at_ns;         /* O  likewise: not before that, after a refusal; or 0 */
    int64_t page_ns;             /* O  how long the last page of what is stored took */
    uint32_t since_page;         /* A  relaxed: changes sent since then; written with the key */
    bool rewind;                 /* K  what is read is to be shown from its beginning */
    uint32_t mirror_at;          /* K  next place to put again, or DUE__NO_JOB */
    bool jobs_late;              /* K  the last batch had no room for one of those */
    bool lost;                   /* K  it has lost something: a key may be again whose it was */
    uint64_t purged;             /* K */
    bool closed;                 /* K  ownership was given up */
    uint32_t forget_at;          /* K  the shard of keys that was looked at last */
    bool keys_late;              /* K  the last batch had no room for what is to be told of keys */
    uint32_t keep_shard;         /* K  after a loss: the next one whose kept keys are to be told */
    struct due__keys_at keep_at; /* K  and how far they are */
    struct due__settings settings; /* A  topic_settings.h: what holds back topics */

    struct due__lock calls;             /* D */
    struct due__submission *first;      /* D  calls that wait */
    struct due__waiter *spare;          /* D  waiters of calls that have ended, by after[0] */
    _Alignas(8) uint64_t settled;       /* D  changes; A  relaxed, for a bound */
    _Alignas(8) uint64_t settled_bytes; /* D  given back; A  relaxed, for a bound */
    struct due__submission
        *line;          /* D  calls that wait for room, first come; A  relaxed, as a hint */
    uint64_t given_up;  /* D  times that others may look at a job again for that */
    uint32_t following; /* D  answers that wait for an extension of their lease */

    struct due__taking *takings;      /* D  left by their takers, the last one first: takings.c */
    struct due__taking *spare_taking; /* D */
    uint32_t takings_under_way;       /* A  Q7 of takings.c: so many of them; written under D */
    uint32_t takings_ready;           /* A  Q7: that have landed; likewise */
    bool takings_ended;               /* D  the queue has stopped: none any more */
    bool told;                        /* K  one of them has landed */
    _Alignas(8) uint64_t landed;      /* A  Q7: how often that was */

    int state;         /* A  relaxed: the store's last answer */
    uint32_t fenced;   /* A  G2: for good */
    uint32_t reader;   /* A  G2: enum due__reading; changed by due__reader_on() alone */
    uint32_t lacking;  /* A  G2: the store lacks something, or has too much, that is to be mended */
    uint32_t stopping; /* A  G2: the queue closes: nothing is sent, nobody waits for the store */
    uint32_t stopped;  /* A  G2: and nobody sends any more */
    _Alignas(
        8) int64_t unsure_ns; /* A  relaxed: since when the end of a batch is not known; 0: it is */
    int load_error;           /* A  G2: why what is stored cannot be read to its end; 0: it can */
    int load_told;            /* K  the last that was logged */
    _Alignas(8)
        int64_t held_ns; /* A  relaxed: nobody else owns the jobs until then, on CLOCK_BOOTTIME */
    _Alignas(8) uint64_t batches;  /* A  relaxed counter */
    _Alignas(8) uint64_t restored; /* A  relaxed counter */
    _Alignas(8) uint64_t mirrored; /* A  relaxed counter */
};

static inline struct due__stored *due__stored_at(const struct due__commits *c, uint32_t number)
{
    return due__records_at(&c->stored, number);
}

/* ---- state.c ---- */

/* With the key: that has happened to the batch under way. */
void due__sender_on(struct due__commits *c, enum due__sender_event event);

/* May the batch under way have landed? */
static inline bool due__sender_unsure(const struct due__commits *c)
{
    return c->sender >= DUE__SENDER_SENT;
}

/* With the key: that has happened to what is read. */
void due__reader_on(struct due__commits *c, enum due__reading_event event);

/* Is what is stored being read for the first time?  Anybody may ask. */
static inline bool due__reader_loads(const struct due__commits *c)
{
    return due__load_seq(&c->reader) < DUE__READER_SERVING; /* G2 */
}

/* Is what is stored to be put again, or compared with what the queue knows? */
static inline bool due__reader_resyncs(const struct due__commits *c)
{
    return due__load_seq(&c->reader) > DUE__READER_SERVING; /* G2: with the key */
}

/* Is anything read, or to be read? */
static inline bool due__reader_reads(const struct due__commits *c)
{
    return due__load_seq(&c->reader) != DUE__READER_SERVING; /* G2: with the key */
}

/* ---- calls.c ---- */

/* The proxy is to look, or to commit. */
void due__proxy_call(struct due_queue *q);
/* With the key: nothing is to be done there any more. */
#define DUE__OWNED_BY_ANOTHER "another process owns the stored jobs now"
void due__commit_fence(struct due_queue *q, const char *why);

bool due__submission_over(struct due__commits *c, const struct due__submission *a);
/* Up to @n who wait look again; none where it is NULL. */
void due__ring_waiters(struct due_queue *q, struct due__waiter *const *waiters, uint32_t n);
/* Everyone who waits looks again. */
void due__submission_ring(struct due__commits *c);
/* Under the calls' lock: those that have got what they wait for, besides changes, look again. */
void due__submission_ring_reached(struct due__commits *c);
/* A call begins to wait for @changes, or until it is so; and ends.  False: no memory. */
bool due__submission_begin(struct due_queue *q, struct due__submission *a, uint32_t changes);
bool due__submission_begin_until(struct due_queue *q, struct due__submission *a,
                                 due__reached *reached, uint64_t goal);
void due__submission_end(struct due_queue *q, struct due__submission *a);
/* Under the calls' lock: it waits for one less.  True: for none any more. */
bool due__submission_less(struct due__submission *a);
/* It waits for @changes fewer: those were not left after all.  Never for more: whoever is rung by a
 * call that was over is rung when that returns. */
void due__submission_fewer(struct due__commits *c, struct due__submission *a, uint32_t changes);
/* Until the call is over (true), or @until_ns, or nobody is to wait any more. */
bool due__submission_wait(struct due__commits *c, struct due__submission *a, int64_t until_ns);
/* The same, but not longer than a moment, however the queue is. */
void due__submission_hear(struct due__commits *c, struct due__submission *a, int64_t until_ns);
/* Under the calls' lock: the caller is no longer concerned with a change. */
void due__submission_detach(struct due__submission *a, struct due__submission **of);
/* The call wants to know of each job how its change ended: also when the job is somebody else's by
 * then. */
void due__submission_each(struct due__submission *a, const uint32_t *numbers, size_t n,
                          int *results);
/* What is left of the call is at its end: nothing of it waits for the store. */
void due__submission_settle(struct due__commits *c, struct due__submission *a);
/* Under the calls' lock: what the other jobs of the call are refused with, one of which was refused
 * before them (N4 of sender.c); 0: none was. */
int due__refusal(struct due_queue *q, const struct due__submission *a);
/* What a caller is told for whom nothing has changed. */
int due__commit_excuse(struct due_queue *q);

/* When it is over (monotonic). */
int64_t due__deadline_at(const struct due_queue *q, struct due__deadline *by);

/* ---- backpressure.c ---- */

/* What the front of a job of the caller's adds to the next. */
uint32_t due__unsettled_extras(const struct due__job *j);

/* The bytes that a job of the caller's, or a draft, takes on the way to the store. */
static inline uint32_t due__unsettled_bytes(const struct due__job *j, struct due__facts f)
{
    return f.len + ((f.payload & DUE__EXTRAS) ? due__unsettled_extras(j) : 0);
}

uint32_t due__unsettled_of(const struct due_queue *q, uint32_t number);
/* Are so many changes on their way that also a call waits that need not? */
bool due__unsettled_crowded(const struct due__commits *c);
/* Room for @bytes, which are to be given back by whoever ends the change.  False: there is none. */
bool due__unsettled_try(struct due__commits *c, uint64_t bytes);
void due__unsettled_give(struct due__commits *c, uint64_t bytes);
/* The same under the calls' lock. */
void due__unsettled_back(struct due__commits *c, uint64_t bytes);
/* A call that was begun for one change stands in line for so many bytes; NULL: none does, but
 * others are let in. */
void due__unsettled_stand(struct due__commits *c, struct due__submission *a, uint64_t bytes);
/* And is done with that: whether it has them. */
bool due__unsettled_leave(struct due__commits *c, struct due__submission *a);
/* Under the calls' lock: with a batch is settled what was taken with it and needs not be sent, or a
 * flush would count that for what stands before it.  @bytes: that were taken for the changes. */
void due__settle(struct due__commits *c, uint32_t changes, uint64_t bytes);

/* ---- encode.c: with the key ---- */

/* Does a change for that purpose take the job out of the store? */
static inline bool due__removes(enum due__purpose purpose)
{
    return purpose >= DUE__TAKE && purpose <= DUE__CLEAR;
}

/* What a change is to say of the job: as it is or, with a draft, is to be. */
const struct due__job *due__content_of(const struct due_queue *q, uint32_t number,
                                       const struct due__draft *draft);
/* What the store is to be told of entry @e of @b. */
due_change due__describe(struct due_queue *q, const struct due__batch *b,
                         const struct due__entry *e);

/* ---- apply.c ---- */

/* A job that did not come in after all: its place goes back. */
void due__refused(struct due_queue *q, uint32_t number);

/* ---- batch.c: with the key ---- */

/* Take what waits into @b, until it is full; @mirror: and what is to be put again. */
void due__batch_fill(struct due_queue *q, struct due__batch *b, bool mirror);
/* Write the changes of @b down, or of what was filled in since. */
void due__batch_write(struct due_queue *q, struct due__batch *b);
/* It is to be sent: behind its changes comes what belongs to no job. */
void due__batch_complete(struct due_queue *q, struct due__batch *b);
/* A full store takes removals still: everything else of the batch is refused.  False: there is
 * nothing else. */
bool due__batch_shrink(struct due__batch *b);
/* The first @n entries have ended: @rc for every change that was sent.  The others are next.  If
 * there are none, the next batch takes its place: @sent: it was sent already. */
void due__batch_end(struct due_queue *q, int rc, uint32_t n, bool sent);

/* ---- pipeline.c: with the key ---- */

/* Can the store have a batch under way while the next is made ready? */
bool due__pipeline_can(const struct due__commits *c);
/* Send the batch under way, as far as that goes without an answer. */
void due__pipeline_send(struct due_queue *q, int64_t until_ns);
/* While it is under way: fill and prepare the next one. */
void due__pipeline_prepare(struct due_queue *q);
/* It has landed: send the next one at once.  False: nothing was sent. */
bool due__pipeline_follow(struct due_queue *q, int64_t until_ns);

/* ---- takings_left.c ---- */

#define DUE__PAGE_JOBS  512u  /* shown between two batches, at least */
#define DUE__PAGE_AFTER 4096u /* changes sent before the next page, at most, but for a batch more */

#define DUE__LEFT 3 /* a result: the change ends for nobody */

/* With the key and under the calls' lock: one has landed that nobody waits for. */
void due__taking_told(struct due__commits *c);
/* And after that lock: who takes jobs looks. */
void due__takings_landed(struct due_queue *q);
/* What has landed so and nobody has had goes into the store again or, if the queue has stopped, to
 * on_discard.  True: there was something. */
bool due__takings_return(struct due_queue *q);
/* The queue has stopped: none is left.  True: something is to be refused. */
bool due__takings_end(struct due_queue *q);
/* With the queue, also in a forked child. */
void due__takings_free(struct due_queue *q);

/* ---- sender.c ---- */

/* With the key: send until @a is over (NULL: until nothing waits) or @until_ns.  True: something
 * is left to do. */
bool due__commit_work(struct due_queue *q, const struct due__submission *a, int64_t until_ns);
/* With the key: send what waits, or see what was sent through and send that after it. */
void due__commit_step(struct due_queue *q, int64_t until_ns);
/* With the key, once the queue stops: what is left is refused. */
void due__commit_refuse(struct due_queue *q);

/* Give the key back, and see that somebody goes on with what is left (@more), or was left
 * meanwhile. */
void due__commit_leave(struct due_queue *q, bool more);

/* What was submitted is to be sent: by the caller, if it waits (@a) and nobody else sends. */
void due__commit_go(struct due_queue *q, const struct due__submission *a, int64_t until_ns);
/* Of a call with many changes that many are left at a time, and then pushed: the store has
 * something to do while the call goes on.  At its end comes due__commit_go(). */
size_t due__commit_piece(const struct due__commits *c);
void due__commit_push(struct due_queue *q, int64_t until_ns);
/* What can be sent without waiting. */
void due__commit_try(struct due_queue *q);
/* With the key: is anything to be sent? */
bool due__commit_any(struct due__commits *c);

/* ---- proxy.c ---- */

void due__commit_proxy(struct due_queue *q);

/* ---- journal.c ---- */

extern const struct due__journal due__stored_journal;

/* ---- attach.c ---- */

int due__commits_open(struct due_queue *q, const due_options *o, due_error *error);
/* The queue closes: what waits is sent until @until_ns (monotonic), then nothing is sent any more,
 * and nobody waits for the store. */
void due__commits_stop(struct due_queue *q, int64_t until_ns);
/* The proxies have ended: give up ownership, once. */
void due__commits_close(struct due_queue *q);
/* As if it had not been opened: the store is its opener's again. */
void due__commits_undo(struct due_queue *q);
void due__commits_free(struct due_queue *q);
void due__commits_stats(struct due_queue *q, struct due_stats *s);

/* ---- submit.c ---- */

/* A change of a job of the caller's own (CLAIMED) is to be sent; @a: who waits for it, or NULL. */
void due__commit_submit(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, struct due__submission *a);

/* The same of @n jobs. */
void due__submit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__submission *a);
/* The same, each for a purpose of its own, whatever time is wanted; NO_CHANGE: it is left alone. */
void due__submit_each(struct due_queue *q, const uint32_t *numbers, const uint8_t *purposes,
                      size_t n, struct due__submission *a);

/* ---- commit.c ---- */

#define DUE__TAKEN_AT_ONCE 256u /* jobs that leave the store in one batch of their taker's */

/* The same as the next, of many jobs. */
void due__commit_leave_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                           enum due__purpose purpose, int64_t want_ns, struct due__submission *a,
                           int64_t until_ns);
void due__commit_leave_each(struct due_queue *q, const uint32_t *numbers, const uint8_t *purposes,
                            size_t n, struct due__submission *a, int64_t until_ns);
/* What came of putting in several jobs, besides how many are in. */
struct due__put {
    size_t room;  /* that take room: of so many the queue has seen the last, or will */
    size_t named; /* those that are in, the first ones, and behind them those in doubt */
    bool over;    /* the others are not to be tried again: some are in doubt, or were shown to
                     on_discard, or time is up */
};

/* ---- put.c ---- */

/* A job that was named is left in the inbox, for @a or nobody. */
void due__submit_fresh(struct due_queue *q, const struct due__fresh *it, struct due__submission *a);

/* Put @n filled places into the store and then into the queue.  Answers how many were accepted, the
 * first ones (0: the first one's key is not to be had now), or an error if none was.  @ids has room
 * for @n.  What @jobs says is used up. */
int due__commit_put(struct due_queue *q, struct due__fresh *jobs, size_t n,
                    struct due__deadline *by, due_id *ids, struct due__put *put);

/* A job of the caller's own (CLAIMED) is to leave the store or to move in it, to @want_ns.  0: it
 * has, and unless @purpose is LEND all that follows is done; DUE_ETIMEDOUT or a refusal:
 * nothing has changed, and the job is the caller's still; DUE_EINDOUBT: it will be seen to. */
int due__commit_one(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                    int64_t want_ns, struct due__deadline *by);

/* The same of @n jobs of the caller's own, as one change; each one's answer in @results. */
void due__commit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                     int *results);

/* ---- find_stored.c ---- */

/* With the key: the jobs that calls look for while the store is being read. */
void due__commit_finds(struct due_queue *q);

/* The job @id; while the store is being read it may be there only.  As due__id_find(). */
int due__commit_find(struct due_queue *q, due_id id, struct due__deadline *by, uint32_t *number,
                     uint32_t *generation);

/* ---- wait.c ---- */

/* Changes that the store has confirmed or refused so far, or that were given up. */
uint64_t due__commit_news(struct due__commits *c);
/* Until there are @goal of them, for as long as a call waits for the store: 0, or an error. */
int due__commit_await(struct due_queue *q, uint64_t goal, struct due__deadline *by);
/* As follows() of journal.h.  And: until nobody does, or @until_ns: 0, or an error. */
void due__commit_follows(struct due_queue *q, int by);
int due__commit_followed(struct due_queue *q, int64_t until_ns);
/* A change was given up, or a job before it was sent, and what they held is free, @bytes on the way
 * to the store too: who waits for that looks again. */
void due__commit_given_up(struct due_queue *q, uint64_t bytes);

/* A lease may be begun only while nobody else can own the jobs: 0, or DUE_ETIMEDOUT after having
 * waited until @by, DUE_EAGAIN if it was not to wait, DUE_EFENCED, DUE_ECLOSED. */
int due__commit_held(struct due_queue *q, struct due__deadline *by);

/* Until the store has again what it had lost, or @until_ns: 0, or an error. */
int due__commit_mended(struct due_queue *q, int64_t until_ns);

/* Room for @bytes, as due__unsettled_try(), waiting for it: 0, or why there is none. */
int due__unsettled_take(struct due_queue *q, uint64_t bytes, int64_t until_ns);
/* Until there is room for a change more: 0, or why there is none. */
int due__unsettled_wait(struct due_queue *q, int64_t until_ns);
/* As due_flush(), until @by. */
int due__commit_flush(struct due_queue *q, struct due__deadline *by);
/* Until all that is stored was read, or @by. */
int due__commit_loaded(struct due_queue *q, struct due__deadline *by);
/* The same for who acts on all jobs, and nobody else owns them; not once the queue stops. */
int due__commit_whole(struct due_queue *q, struct due__deadline *by);
/* Why the load cannot come to its end as things are; 0: nothing is in its way, or it is over. */
int due__commit_load_error(struct due_queue *q);
/* What a take answers that would answer @rc: if its time was up, why nothing may have come. */
int due__commit_why(struct due_queue *q, int rc);

/* ---- restore.c: under the key ---- */

/* The next page.  0, or what keeps the store from showing it. */
int due__restore_page(struct due_queue *q, int64_t until_ns);
/* The store may have the job @id. */
int due__restore_one(struct due_queue *q, due_id id, int64_t until_ns);
/* The batch of drops has ended. */
void due__purge_end(struct due_queue *q, int rc);
/* The store has lost something: everything is to be put again. */
void due__mirror_begin(struct due_queue *q);
/* The place @number is to be put (again), but not at once: the store refuses. */
void due__mirror_later(struct due__commits *c, uint32_t number);
/* Is there nothing more to be put again or dropped?  Then whoever waits for that is told. */
void due__mirror_over(struct due__commits *c);
/* The next place that is to be put again, or DUE__NO_JOB. */
uint32_t due__mirror_next(struct due_queue *q);

/* What a draft takes on the way to the store. */
static inline uint32_t due__draft_bytes(const struct due__draft *d)
{
    return due__unsettled_bytes(&d->made, due__facts_load(&d->made));
}

#endif
