/* journal.h - where a change of a job lands: the one seam between memory and a store.
 *
 * Whoever changes a job makes it his own first, and then hands the change to the queue's journal.
 * That writes it down, as far as the queue promises to, and then has it applied (job/apply.h): the
 * only place where a change takes effect.  In a queue of memory it has landed at once, and the
 * caller applies it (job/memory.c); in one with a store whoever has sent it does (store/apply.c).
 *
 * The short ways stay in front: an enqueue without a key, a take of what is shown, a cancel or an
 * ack of a plain job in memory need no journal.
 */
#ifndef DUE__JOURNAL_H
#define DUE__JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"

struct due__amendment;  /* amend.h: a change that its job stays after */
struct due__use;        /* amend.h */
struct due__submission; /* sender.h: a call that waits for its store */
struct due__fresh;      /* queue.h */
struct due_queue;
struct due_queue_census;
struct due_process;
struct due_stats;
struct due_store_stats;

/* What is to become of a job that its caller has made his own. */
enum due__purpose {
    DUE__NO_CHANGE = 0,
    DUE__PUT,       /* it was enqueued */
    DUE__UNSENT,    /* the same, but it was cancelled before that: who waits is told in its turn */
    DUE__TAKE,      /* it leaves, for a consumer */
    DUE__CANCEL,    /* it leaves, and is gone */
    DUE__LEND,      /* it leaves, and is lent to who cancelled it */
    DUE__ACK,       /* it leaves, answered for */
    DUE__CLEAR,     /* it leaves, and is shown to on_discard */
    DUE__MOVE,      /* it gets another deadline */
    DUE__GIVE_BACK, /* it has failed, and is to be handed out again, later */
    DUE__SNOOZE,    /* the same, but it has not failed, and its attempt does not count */
    DUE__ATTEMPT,   /* it is handed out once more */
    DUE__BURY,      /* it is dead */
    DUE__KICK,      /* it was dead, and is to be handed out */
    DUE__REVIVE,    /* the same, and it gets another deadline */
    DUE__RETURN,    /* it left for a consumer who has gone: it is put in again */
    DUE__UPDATE,    /* it is another: want_ns is its draft (draft.h) */
    DUE__REPEAT,    /* it was acked, and comes again */
    DUE__ROUND,     /* the same, but it was taken for good */
    DUE__LEAVE,     /* of one that was to come again: the queue ends, and it stays in the store */
    DUE__EXTEND,    /* of a shared queue: its lease goes on, for want_ns more */
    DUE__HOLD,      /* likewise: it was taken, and is to be held for so long */
    DUE__RELEASE    /* likewise: nobody here takes it, and others may */
};

/* What a call of a shared queue asks of the store: of a job that is not here, or of many, a page at
 * a time. */
enum due__asked {
    DUE__ASK_NOTHING, /* but that what is under way has ended */
    DUE__ASK_KEY,     /* whose it is */
    DUE__ASK_REKEY,   /* its job becomes what an enqueue of that key says */
    DUE__ASK_FIND,
    DUE__ASK_READ,
    DUE__ASK_CANCEL,
    DUE__ASK_MOVE,
    DUE__ASK_KICK,
    DUE__ASK_AMEND,
    DUE__ASK_HOLD_BACK, /* a topic, for all who share the queue */
    DUE__ASK_DEAD,
    DUE__ASK_TOPICS, /* those that the store has are topics of the queue from then on */
    DUE__ASK_LIST,   /* of those that wait */
    DUE__ASK_PAGE,   /* of a topic's that wait */
    DUE__ASK_CLEAR,  /* the same: they are cancelled, and shown to on_discard */
    DUE__ASK_CLEAR_DEAD,
    DUE__ASK_KICK_ALL,
    DUE__ASK_CLAIM,  /* what takes want that do not wait comes now, if it is due */
    DUE__ASK_CENSUS, /* of all that there is */
    DUE__ASK_PROCESSES
};

/* How far the pages of a topic have come; or those of the dead, of which one topic is wanted. */
struct due__pages {
    int topic;       /* O  DUE_ALL_TOPICS: of all, of the dead */
    bool over;       /* O  that was the end */
    int64_t from_ns; /* O  as in struct due_page */
    due_id from;     /* O */
};

struct due__ask {
    enum due__asked kind; /* O */
    due_id id;            /* O  of one job; KEY: told then */
    const void *key;      /* O  KEY, REKEY; CANCEL: only if that is the job's; NULL: whichever */
    size_t key_len;       /* O */
    bool kept;            /* O  KEY: that job is gone, and the key kept for it */
    due_job *job;         /* O  CANCEL: it is lent there; NULL: its bytes are not wanted */
    int64_t
        at_ns; /* O  MOVE, KICK, AMEND, REKEY: its time; KICK_ALL: of those that died until then */
    due_info *info;           /* O  FIND, LIST, PAGE: what is known, but for ready */
    const due_spec *spec;     /* O  REKEY; AMEND: the new content, */
    unsigned what;            /* O  as far as DUE_SET_* says */
    void *buffer;             /* O  READ: room for so many bytes */
    size_t size;              /* O */
    due_dead *dead;           /* O  DEAD: room for @max, from the @from-th on */
    size_t from;              /* O */
    size_t max;               /* O  DEAD, LIST, PAGE */
    size_t got;               /* O  shown; changed; READ: how long it is */
    uint64_t cursor;          /* O  LIST: whose, 0: a new one's; told then */
    struct due__pages *pages; /* O  PAGE, CLEAR and so on: moved */
    bool more;                /* O  LIST: there may be more, though nothing was shown */
    int topic;        /* O  HOLD_BACK; TOPICS: that of what is due longest; -1: nothing is */
    int64_t paused;   /* O  HOLD_BACK: as in due_change */
    int64_t held_max; /* O */
    struct due_queue_census *census; /* O  CENSUS: of all topics */
    struct due_queue_census *each;   /* O  and of each of @max, from @from on */
    struct due_process *processes;   /* O  PROCESSES: room for @max, whose numbers are over @from */
    struct due_queue *queue;         /* O */
};

/* How long a call waits for its store, in all.  Begins when it may first have to wait. */
struct due__deadline {
    int64_t timeout_ns; /* its own, if that is shorter than the store's; 0: it has none */
    int64_t at_ns;      /* monotonic; 0: not begun */
    bool polls;         /* it does not wait at all */
    int64_t room_ns;    /* until when it waits for room in a shared queue, on the timeouts' clock;
                           0: it has not begun to */
};

/* Guard: none, constant. */
struct due__journal {
    /* The flag of the word of a job whose put it was not told of yet; 0: there are none. */
    uint64_t unsent;
    /* What the enqueue proxy does; and what became of jobs that were there at the end. */
    void (*proxy)(struct due_queue *q);
    const char *left_text;
    /* What becomes of a job that was to come again, in a queue that ends: ACK, or LEAVE. */
    enum due__purpose no_round;
    /* What waits when the queue ends stays where it is: not lost, only not known any more. */
    bool keeps_jobs;
    /* Whatever is handed to it takes time, so a call that has none left can do nothing more. */
    bool takes_time;
    /* A job's priority is part of its id, so that it stays. */
    bool fixed_priority;
    /* The keys of jobs that are done are kept by it, and the queue knows of them only. */
    bool keeps_keys;

    /* The job of the caller's own is to become what @purpose says, @want_ns with it.  0: it has,
     * and unless @purpose is LEND all that follows is done; DUE_EINDOUBT: it will be seen to; any
     * other error: nothing has changed, and the job is the caller's still. */
    int (*change)(struct due_queue *q, uint32_t number, enum due__purpose purpose, int64_t want_ns,
                  struct due__deadline *by);
    /* The same of @n jobs for one purpose, each with its answer in @results. */
    void (*change_all)(struct due_queue *q, const uint32_t *numbers, size_t n,
                       enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                       int *results);
    /* A job that waits, or is dead, is claimed, decided upon and changed, as one step for who looks
     * on where that is possible: amend.h.  And: each of several. */
    int (*amend)(struct due_queue *q, struct due__amendment *a, struct due__deadline *by);
    int (*amend_all)(struct due_queue *q, const struct due__amendment *as,
                     const struct due__use *jobs, size_t n, struct due__deadline *by,
                     uint64_t *done);
    /* Until a job that was on its way, or CHANGING, when @news were told, may be another: 0, or an
     * error.  @inside: as in due__inside_once(). */
    int (*unsettled)(struct due_queue *q, uint32_t number, uint32_t generation, uint64_t news,
                     struct due__deadline *by, bool *inside);
    /* The same as change of one that nobody waits for. */
    void (*leave)(struct due_queue *q, uint32_t number, enum due__purpose purpose);
    /* A job of the caller's own that it was never told of (unsent) leaves for that purpose. */
    void (*end_unsent)(struct due_queue *q, uint32_t number, enum due__purpose purpose);
    /* The caller's own job is as it was, and he has let go of it: who waits for that looks anew. */
    void (*given_up)(struct due_queue *q);
    /* Until everything is settled that was left before, or @by: 0, or an error. */
    int (*flush)(struct due_queue *q, struct due__deadline *by);
    /* The same until it is known what jobs there are; and that, but not once the queue stops. */
    int (*loaded)(struct due_queue *q, struct due__deadline *by);
    int (*whole)(struct due_queue *q, struct due__deadline *by);

    /* A job is done with: its id is nobody's any more.  And: that, or its id, is asked soon. */
    void (*forget)(struct due_queue *q, uint32_t number);
    void (*prefetch_end)(struct due_queue *q, uint32_t number);
    void (*prefetch_id)(struct due_queue *q, uint32_t number);
    due_id (*id)(const struct due_queue *q, uint32_t number);
    /* The place of the job @id, and its use of it.  DUE_ENOENT; if it may have to be looked for,
     * that is done until @by (NULL: not), or why it cannot be told. */
    int (*find)(struct due_queue *q, due_id id, struct due__deadline *by, uint32_t *number,
                uint32_t *generation);
    /* A job that was named is left, with the shard of its key, for @a or nobody. */
    void (*put)(struct due_queue *q, const struct due__fresh *it, struct due__submission *a);

    /* Can anything be changed: 0, or DUE_EFENCED.  Is it all there, or still being read? */
    int (*state)(const struct due_queue *q);
    bool (*loading)(const struct due_queue *q);
    /* How many takes have landed whose taker did not wait, and are there for the next one;
     * *@coming: others may come. */
    uint32_t (*left)(const struct due_queue *q, bool *coming);
    /* Of a shared queue: a take that did not wait has asked for jobs, and none has come since. */
    bool (*asked)(const struct due_queue *q);
    /* How many of them have landed so far; and how many changes have ended, however. */
    uint64_t (*landed)(const struct due_queue *q);
    uint64_t (*news)(const struct due_queue *q);
    /* A lease may be begun, or go on, only while nobody else can own the jobs: 0, or why it may
     * not, after having waited for that until @by. */
    int (*held)(struct due_queue *q, struct due__deadline *by);
    /* A thread that waits for it, with its key, is to look again. */
    void (*interrupt)(struct due_queue *q);
    /* Does it have the job? */
    bool (*has)(const struct due_queue *q, uint32_t number);
    /* The queue closes: what waits is written down until @until_ns (monotonic), and then nothing
     * more; once its proxies have ended; what was taken back after that; and before it is freed, in
     * a forked child too.  Or: as if it had not been opened. */
    void (*stop)(struct due_queue *q, int64_t until_ns);
    void (*close)(struct due_queue *q);
    void (*refuse)(struct due_queue *q);
    void (*free)(struct due_queue *q);
    void (*undo)(struct due_queue *q);
    /* What it has done, and its store; false: there is none. */
    void (*stats)(struct due_queue *q, struct due_stats *s);
    bool (*store_stats)(struct due_queue *q, struct due_store_stats *s);
    /* Does what comes back not wait any more, but stay in the store, or leave? */
    bool (*closed)(const struct due_queue *q);
    /* Of a shared queue: somebody has begun to wait for a job, or a manual clock was turned. */
    void (*wanted)(struct due_queue *q);
    /* Likewise: the lease of a job of the caller's own has ended here, and others may have it. */
    void (*lapse)(struct due_queue *q, uint32_t number);
    /* Likewise: is the lease of a job, which is CLAIMED for that, being extended? */
    bool (*extending)(const struct due_queue *q, uint32_t number);
    /* Likewise: a call answers for such a job as soon as that has ended (@by is 1); and it has left
     * its answer, or gives up (-1).  Who closes waits for it. */
    void (*follows)(struct due_queue *q, int by);
    /* Likewise: the store is asked, until @by.  0, or an error: DUE_ENOENT; DUE_EBUSY: somebody has
     * the job. */
    int (*ask)(struct due_queue *q, struct due__ask *ask, struct due__deadline *by);
    /* If the store keeps that: what holds back the jobs of a topic, or of all topics that there
     * are, for all who have the queue; as in due_change. */
    int (*hold_back)(struct due_queue *q, int topic, int64_t paused, int64_t held_max);
    /* Under the lock: it is going to be, or not.  And: it was not, and is leased as before. */
    void (*extend_mark)(struct due_queue *q, uint32_t number, bool extends);
    void (*extend_undo)(struct due_queue *q, uint32_t number);
    /* With a store: the time that its deadlines are counted on; never before they are. */
    int64_t (*now)(const struct due_queue *q);
    /* Of a shared queue: how late a job of the caller's own is, by that. */
    int64_t (*late)(const struct due_queue *q, uint32_t number);
    /* A job of the caller's own leaves memory for good.  Is it nowhere else?  Then it is shown. */
    bool (*lacks)(const struct due_queue *q, uint32_t number);
};

#endif
