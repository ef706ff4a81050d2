/* store_shared.h - what a store must do besides, for a queue that many processes share.
 *
 * The jobs stay in the store, and nothing is loaded.  Each process claims what is due, with a
 * lease, and says what became of it.  The store has the clock: deadlines are on it, and a lease
 * that ends makes its job due again, for everybody.
 *
 * Changes are those of due/store.h, with these meanings:
 *
 *   PUT             a new job, for whoever comes; with a key only if that is no other job's but
 *                   @from's, nor kept for another: DUE_EEXIST.  That one goes on without it.  Only
 *                   if there is room: DUE_EAGAIN
 *   DROP            held: it is done.  Not held: cancelled, or with was_dead struck off the dead;
 *                   with was_ns only if it died then, with dead_max only if there are too many;
 *                   with a mark, and no dead_max, only if it is as it was shown
 *   MOVE            held: it waits again.  Not held: it gets another time; was_dead: it waits again
 *   BURY            held
 *   BEGIN EXTEND RELEASE   held
 *   AMEND           not held: it gets other content, and waits until until_ns.  was_dead: the same,
 *                   if the record has no cause any more; else it stays dead as it is
 *   TOPIC           for all that share the queue, and stays; who waits for what it lets go is rung
 *
 * A change of a job that is held takes effect only if the lease is still that of @held; of one that
 * is not, only if nobody holds it and it is as was_ns and the counts in record say (MOVE, AMEND, a
 * DROP with a mark; of a dead job only was_ns is looked at, the counts are new), or whatever it is
 * (any other DROP).  An AMEND, and a DROP with a mark, only if its content is what it was when it
 * was shown with that mark, too.  A store whose find() shows no mark gives no bytes of what is
 * cancelled: DUE_ENOTSUP.
 *
 * A key is its job's until a DROP, whether that says it or not; then it is free, or, if the job was
 * held, kept until key_kept_ns.  An AMEND or DROP of a job that nobody holds which says a key is
 * made only if that is the job's still: DUE_EAGAIN.
 *
 * Of a group's jobs, in one topic, one at a time is claimed: the first that is due.  It has the
 * group's pass then, while it is held, and when its lease is over; and it keeps that if it waits
 * again by a RELEASE, or by a MOVE with keeps_pass, until it is MOVEd or AMENDed to another time by
 * whoever does not hold it.  With each other change, and with its end, the next may be claimed.
 *
 * A queue may have a capacity: every job that is not dead takes room, whoever holds it.  Where that
 * is gone none of the PUTs behind the first that has none is made, but those that keep theirs, and
 * those whose key is the reason.  Who waits for room says so when it beats, and is rung.
 *
 * A DROP of what nobody holds may say that it revokes.  Then a job that somebody holds stays his,
 * and that change is DUE_EBUSY; but the job does not come again, whatever becomes of him.  What
 * would have it wait again, or dead, is its end (MOVE, BURY, RELEASE), and its holder is told so
 * (DUE_REVOKED); so he is when he holds it further (BEGIN, EXTEND).  Once its lease is over a claim
 * that meets it ends it, and a DROP without a mark that revokes is made.  A DROP by its holder is
 * as ever, but he is told as well: he may have taken it for somebody who has left, and would put
 * it again.  A MOVE says until when the key is kept (key_kept_ns), if that is its end.  When the
 * queue comes to be owned such jobs are gone.
 *
 * A lease keeps its name: after BEGIN and EXTEND the job is held by the same one.  When its time is
 * up its holder may still say what became of the job, until somebody has claimed it.
 *
 * The conformance suite is tests/store/share_suite.h.
 */
#ifndef DUE_STORE_SHARED_H
#define DUE_STORE_SHARED_H

#include "due/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A claim. */
struct due_claim {
    const char *const *topics; /* names; NULL: any */
    size_t topic_count;        /* at most DUE_CLAIM_TOPICS */
    size_t need;               /* so many callers wait for a job each */
    size_t extra;              /* so many more are welcome, if nobody else waits for them */
    int64_t lease_ns;          /* from the time of the answer; at most DUE_CLAIM_LEASE_MAX */
    int waits;                 /* 1: if it comes back short we wait: see alarm_ns, and listen().
                                  Any exchange of lane work ends what an earlier one waits for; a
                                  claim of nothing that waits begins it anew, one that does not
                                  passes a ring on to somebody else */
};

#define DUE_CLAIM_TOPICS 8
/* A hundred years, of an EXTEND too: so any store can tell the end of a lease in microseconds. */
#define DUE_CLAIM_LEASE_MAX (DUE_S(86400) * 36525)

#define DUE_REVOKED 1 /* a result: see exchange() */

/* A job that was claimed. */
typedef struct due_claimed {
    due_record record;    /* valid during the call */
    uint64_t held;        /* its lease, in every change of it */
    int64_t lapsed_ns;    /* a lease ended then that nobody had answered for; 0: there was none */
    uint64_t reserved[2]; /* zero */
} due_claimed;

typedef int due_store_visit_claimed(void *ctx, const due_claimed *job);

/* What came of an exchange.  Times are those of the store. */
struct due_exchange {
    uint64_t stamp;   /* higher than that of every exchange before it, of any process */
    int64_t now_ns;   /* when it took effect */
    uint64_t claimed; /* jobs shown */
    int more;         /* 1: more is due, or may be: a claim that got what it wanted need not look */
    int64_t alarm_ns; /* claim again then, or when listen() says so; 0: only then; -1: it is
                             not waited for */
    uint32_t rang;    /* others that were rung; if nothing is heard of them, beat() */
    uint64_t reserved[3]; /* zero */
};

/* What a process that waits is told by an exchange of another. */
struct due_heard {
    uint64_t stamp;       /* of that exchange, or the highest before it */
    int64_t alarm_ns;     /* 0: claim now; else claim then, on the store's clock, unless an exchange
                             of lane work with a higher stamp has been answered */
    int64_t now_ns;       /* that clock when it was said; 0: not known */
    uint64_t reserved[1]; /* zero */
};

/* How much there is. */
struct due_census_topic {
    const char *topic;    /* valid during the call */
    uint64_t delayed;     /* */
    uint64_t ready;       /* due, with those whose lease is over */
    uint64_t leased;      /* */
    int64_t oldest_ns;    /* deadline of the one that is due longest; DUE_FOREVER: none */
    uint64_t reserved[2]; /* zero */
};

struct due_census_all {
    int64_t now_ns;       /* the store's time */
    uint64_t jobs;        /* stored, with the dead */
    uint64_t dead;        /* */
    uint64_t processes;   /* that have joined */
    int64_t head_ns;      /* a lower bound of when the next job is due; DUE_FOREVER: none */
    uint64_t reserved[3]; /* zero */
};

/* How far somebody has looked through the jobs of a topic, or the dead. */
struct due_page {
    const char *topic;    /* its name; NULL: the dead */
    int64_t from_ns;      /* the next page begins behind this time and this id; INT64_MIN: at the */
    due_id from;          /* beginning.  Valid for the store that has written them */
    uint64_t reserved[2]; /* zero */
};

/* A process that has joined. */
struct due_process_seen {
    uint64_t writer;    /* */
    const char *host;   /* valid during the call */
    int64_t pid;        /* */
    int64_t started_ns; /* */
    int64_t seen_ns;    /* its last beat */
    uint64_t held;      /* jobs that it had claimed then */
    int64_t waits;      /* 1: it waits to be rung, or for a time */
};

/* We live, and would perhaps see to what one is to do for all: look at the dead.  Those who ask for
 * the same do so in turn. */
struct due_beat {
    int64_t turn_ns;      /* nobody was given that turn for so long; 0: we would not */
    int64_t dead_keep_ns; /* what is asked for */
    uint64_t dead_max;    /* likewise */
    int64_t now_ns;       /* answered: the store's time */
    int waits_room;       /* 1: callers wait for room here: if there is none we are to be rung */
    uint64_t room;        /* answered: so many of them may put again; 0: once we are rung */
    uint64_t capacity;    /* answered: of the queue; 0: it has none */
    int64_t renew_ns;     /* answered: beat again then, as many as there are now; 0: as info says */
};

/* In two lanes: put, that is exchanges with PUTs or with changes of jobs that nobody holds, join(),
 * leave(), beat(), find() and all that only looks; and work, exchanges with changes of jobs that
 * are held, and claims.  An exchange that has both is of work.  In each lane one call is made at a
 * time; listen() is a third, for one thread.  wake() and interrupt() may come at any moment;
 * interrupt() is for the calls under way in the first two. */
struct due_shared_verbs {
    size_t size; /* sizeof(struct due_shared_verbs) */

    /**
     * Be one of those who share the queue, which is made if there is none.  If it had an owner, who
     * closed it or whose lease is over, it is shared from then on, and that one is refused; what is
     * stored stays as it is.  Making it so may take longer than until how->until_ns.  After
     * DUE_ELOST once more: it is another process then, with a writer number of its own, and numbers
     * begin anew.
     *
     * Errors:   as open(); DUE_EBUSY: one process owns it, alone, until how->until_ns; DUE_ENOTSUP:
     *           it must be opened by an owner first, who writes all of it again
     */
    int (*join)(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                due_error *error);

    /**
     * Make these changes, each with its own answer in @results, and then claim, if @claim is not
     * NULL.  Numbered from 1 without gaps, in each lane.  After DUE_EINDOUBT the queue calls again
     * with the same number and the same arguments until another answer comes: it has one effect,
     * and shows the same jobs, without those whose lease has ended meanwhile.  Likewise after what
     * @visit answered that was not 0, which is the answer of the call.  No two changes name one
     * job.
     *
     * Results:  0; DUE_REVOKED: as 0, and the job was cancelled while it was held: it is gone, or
     *           after a BEGIN or EXTEND is not to come again;
     *           DUE_ESTALE: another lease, or none; DUE_EBUSY: somebody holds it; DUE_ENOENT;
     *           DUE_EAGAIN: it has changed; of a PUT DUE_EEXIST: its key is another job's,
     *           DUE_EAGAIN: there is no room, DUE_ENOSPC: the store is full
     * Errors:   DUE_EAGAIN: nothing was sent; DUE_EINDOUBT; DUE_EFENCED; DUE_ELOST: the store has
     *           lost what came after an earlier exchange, or this process; any other: refused.
     *           Nothing was done, unless DUE_EINDOUBT came before one of the last three
     */
    int (*exchange)(due_store *s, const due_change *changes, size_t n, uint64_t number,
                    int *results, const struct due_claim *claim, due_store_visit_claimed *visit,
                    void *ctx, struct due_exchange *answer, int64_t until_ns);

    /**
     * Show dead jobs, the first to die first, from the @from-th on, at most @max.
     *
     * Answers:  how many were shown
     * Errors:   as find()
     */
    int (*dead)(due_store *s, size_t from, size_t max, due_store_visit *visit, void *ctx,
                int64_t until_ns);

    /**
     * Show at most @max jobs of a topic that nobody holds, or dead ones, by time and then by id:
     * those behind @at, which moves behind the last one looked at.  So one that stays as it is
     * during all pages is shown once, whatever comes and goes beside it.  One that changes during
     * the call may be shown as it was, as it is, or not at all.
     *
     * Answers:  1: there may be more; 0: that was the end
     * Errors:   as find(); what @visit answered: @at is as it was
     */
    int (*page)(due_store *s, struct due_page *at, size_t max, due_store_visit *visit, void *ctx,
                int64_t until_ns);

    /**
     * Count.  @visit is called for each topic.
     *
     * Errors:   as find()
     */
    int (*census)(due_store *s, struct due_census_all *all,
                  int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                  int64_t until_ns);

    /**
     * Show who has joined.
     *
     * Errors:   as find()
     */
    int (*processes)(due_store *s, int (*visit)(void *ctx, const struct due_process_seen *process),
                     void *ctx, int64_t until_ns);

    /**
     * Live, and see whether a ring was lost.  To be called every info.renew_ns, or as the last one
     * has answered, and DUE_RING_NS after an exchange that rang somebody and of which nothing newer
     * was heard; and by who waits for room, is rung for it, or does not wait for it any more.
     *
     * Answers:  of these some: DUE_BEAT_RANG: somebody was rung who should have come before, or
     *           for room: look again after DUE_RING_NS; DUE_BEAT_TURN: the turn is ours
     * Errors:   as exchange()
     */
    int (*beat)(due_store *s, struct due_beat *beat, int64_t until_ns);

    /**
     * Until we are rung, or told when to claim, or @until_ns, or wake().
     *
     * Answers:  1: *heard says what; or a ring may have been missed, which is as one; 0: nothing
     * Errors:   DUE_EAGAIN: it cannot hear, as things are; call again
     */
    int (*listen)(due_store *s, struct due_heard *heard, int64_t until_ns);

    /* listen() returns; if nobody is in it, the next one does. */
    void (*wake)(due_store *s);

    /**
     * Go.  What is held stays so until its lease ends.
     *
     * Errors:   none that matter
     */
    int (*leave)(due_store *s, int64_t until_ns);

    /**
     * Whose is that key?
     *
     * Answers:  0: it is that of the live job *@id; 1: that job is gone, and the key kept for it
     * Errors:   DUE_ENOENT: it is nobody's; as find()
     */
    int (*holder)(due_store *s, const void *key, size_t len, due_id *id, int64_t until_ns);
};

#define DUE_RING_NS DUE_MS(20)

#define DUE_BEAT_RANG 1
#define DUE_BEAT_TURN 2

#ifdef __cplusplus
}
#endif

#endif
