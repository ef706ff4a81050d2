/* amend.c - a job that waits, or is dead, is changed, and stays in the queue.
 *
 * Guards     T  the timeline lock, for what is changed in one tenure
 *
 * Edges      described elsewhere: C1 inside.c, E3 tenure.c, J1 slab.h
 */
#include "job/amend.h"

#include "job/apply.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/draft.h"
#include "job/key_table.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/timed_wait.h"

/* ---- In one tenure ---- */

/* What keeps a job with word @w from being amended. */
static inline int amend_obstacle(const struct due__amendment *a, uint64_t w)
{
    if (!(a->of & DUE__IF_WAITING) && due__word_state(w) != DUE__DEAD)
        return due__not_dead(w, a->generation);
    if ((a->of & DUE__IF_DEAD) && due__word_state(w) == DUE__DEAD &&
        due__word_generation(w) == a->generation)
        return 0;
    return due__obstacle(w, a->generation);
}

/* Under the lock: it becomes the caller's own (MOVING), and *@w is its word before. */
static inline int amend_claim(struct due_queue *q, const struct due__amendment *a, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, a->number);
    struct due__key_shard *shard = NULL;
    int rc;

    if (a->name != NULL) {
        shard = due__key_enter_of(q, a->name, a->number, a->generation);
        if (shard == NULL)
            return DUE_ENOENT;
    }
    *w = due__load_acquire(&j->word); /* J1 */
    do {
        rc = amend_obstacle(a, *w);
    } while (rc == 0 && !due__word_claim(&j->word, w, DUE__MOVING)); /* J1 */
    if (shard != NULL)
        due__key_leave(q, shard);
    return rc;
}

/* *@c: what was applied. */
static inline int amend_locked(struct due_queue *q, struct due__amendment *a, int64_t now_ns,
                               struct due__change *c)
{
    uint64_t w;
    int rc = amend_claim(q, a, &w);

    if (rc != 0)
        return rc;
    rc = a->decide(q, a, w, now_ns);
    if (rc != 0 || a->purpose == DUE__NO_CHANGE) {
        due__word_set(&due__job_at(&q->slab, a->number)->word, w); /* J1: as it was */
        return rc;
    }
    *c = (struct due__change){ .at_ns = a->want_ns,
                               .draft = due__draft_wanted(a->purpose, a->want_ns),
                               .number = a->number,
                               .purpose = (uint8_t)a->purpose,
                               .waited = true };
    if (a->purpose == DUE__KICK || a->purpose == DUE__REVIVE)
        due__note_kicked(q, a->number, w);
    due__change_apply(q, c);
    return 0;
}

int due__amend_at_once(struct due_queue *q, struct due__amendment *a)
{
    struct due__change c = { .purpose = DUE__NO_CHANGE };
    struct due__tenure t;
    int rc = DUE_ECLOSED;

    due__enter(q, &t);
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now_ns = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now_ns);
        rc = amend_locked(q, a, now_ns, &c);
        due__move_due(q, now_ns);
    }
    due__tenure_end(q, &t);
    due__change_end(q, &c);
    return rc;
}

/* One of several has ended with @rc.  *@failed: the error of the last that was claimed. */
static void amend_count(int rc, uint64_t *done, int *failed)
{
    *done += rc == 0;
    if (rc != 0 && rc != DUE_ENOENT && rc != DUE_EBUSY)
        *failed = rc;
}

int due__amend_each(struct due_queue *q, const struct due__amendment *as,
                    const struct due__use *jobs, size_t n, uint64_t *done)
{
    int failed = 0;

    for (size_t i = 0; i < n; i++) {
        struct due__amendment a = *as;

        a.number = jobs[i].number;
        a.generation = jobs[i].generation;
        amend_count(due__amend_at_once(q, &a), done, &failed);
    }
    return failed;
}

/* ---- Claimed for it ---- */

/* If another is between the two looks, it is looked at anew. */
static int amend_own(struct due_queue *q, const struct due__amendment *a, struct due__deadline *by)
{
    const struct due__job *j = due__job_at(&q->slab, a->number);
    uint64_t w;
    int rc = DUE_ENOENT;

    do {
        w = due__load_acquire(&j->word); /* J1 */
        if (a->of & DUE__IF_WAITING)
            rc = due__claim_sent(q, a->number, a->generation, a->name, by);
        if (rc == DUE_ENOENT && (a->of & DUE__IF_DEAD))
            rc = due__dead_claim_one(q, a->number, a->generation, a->name, DUE__CHANGING);
    } while (rc == DUE_ENOENT && (a->of & DUE__IF_WAITING) &&
             due__word_generation(w) == a->generation && due__load_acquire(&j->word) != w); /* J1 */
    return rc;
}

/* A job of the caller's own: what is to become of it. */
static int amend_decide(struct due_queue *q, struct due__amendment *a)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, a->number)->word); /* J1: the caller's */

    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: the one who closes will find it again */
        return DUE_ECLOSED;
    a->lengthy = true;
    return a->decide(q, a, w, due__jobs_now(q));
}

/* It was not changed, or is going to be: then whoever applies that sees to the rest. */
static void amend_end(struct due_queue *q, uint32_t number, int rc, enum due__purpose purpose)
{
    if ((rc != 0 && rc != DUE_EINDOUBT && rc != DUE_ESTALE) || purpose == DUE__NO_CHANGE)
        due__give_up(q, number);
}

int due__amend_claimed(struct due_queue *q, struct due__amendment *a, struct due__deadline *by)
{
    int rc = amend_own(q, a, by);

    if (rc != 0)
        return rc;
    rc = amend_decide(q, a);
    if (rc == 0 && a->purpose != DUE__NO_CHANGE)
        rc = q->journal->change(q, a->number, a->purpose, a->want_ns, by);
    amend_end(q, a->number, rc, a->purpose);
    return rc;
}

/* Each is to become the same. */
int due__amend_all_claimed(struct due_queue *q, const struct due__amendment *as,
                           const struct due__use *jobs, size_t n, struct due__deadline *by,
                           uint64_t *done)
{
    uint32_t own[DUE__AMEND_MOST];
    int results[DUE__AMEND_MOST];
    struct due__amendment a = *as;
    size_t count = 0;
    int failed = 0;

    for (size_t i = 0; i < n; i++) {
        a.number = jobs[i].number;
        a.generation = jobs[i].generation;
        if (amend_own(q, &a, by) != 0)
            continue;
        int rc = amend_decide(q, &a);
        own[count] = a.number;
        count += rc == 0;
        if (rc != 0)
            amend_end(q, a.number, rc, a.purpose);
        failed = rc != 0 ? rc : failed;
    }
    if (count == 0)
        return failed;
    q->journal->change_all(q, own, count, a.purpose, a.want_ns, by, results);
    for (size_t i = 0; i < count; i++) {
        amend_count(results[i], done, &failed);
        amend_end(q, own[i], results[i], a.purpose);
    }
    return failed;
}

/* ---- Waiting for one that is CHANGING ---- */

/* Under the lock: does the caller have to wait?  Then it stands in line. */
static bool wait_link(struct due_queue *q, uint32_t number, uint32_t generation,
                      struct due__waiter *w)
{
    uint64_t is = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    if (due__word_generation(is) != generation || due__word_state(is) != DUE__CHANGING)
        return false;
    w->quit = &q->changing;
    due__timed_wait_link(q, w, DUE_FOREVER);
    return true;
}

int due__amend_wait(struct due_queue *q, uint32_t number, uint32_t generation, bool *inside)
{
    struct due__waiter *w = due__waiter_get(q);
    struct due__tenure t;

    if (w == NULL)
        return DUE_ENOMEM;
    due__inside_once(q, inside); /* C1 of inside.c */
    due__enter(q, &t);
    bool waits = wait_link(q, number, generation, w);
    due__tenure_end(q, &t);
    if (waits) {
        due__bell_wait(&w->bell, DUE_FOREVER, false);
        due__enter(q, &t);
        due__timed_wait_unlink(q, w);
        due__tenure_end(q, &t);
    }
    due__waiter_put(q, w);
    return 0;
}
