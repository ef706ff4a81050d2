/* claim.c - a waiting job becomes the caller's: one swap of its word decides who gets it.
 *
 * Edges      described elsewhere: J1 slab.h
 */
#include "job/claim.h"

#include "job/discard.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/take.h"

/* The swap of a claim; with a name, if the job has that key still, in the same step: once it is
 * claimed another may take the key over.  DUE_ENOENT: it has not; DUE_EAGAIN: @w has changed. */
static inline __attribute__((always_inline)) int swap(struct due_queue *q, uint32_t number,
                                                      uint32_t generation,
                                                      const struct due__key_name *name,
                                                      enum due__state as, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__key_shard *shard = NULL;

    if (name != NULL) {
        shard = due__key_enter_of(q, name, number, generation);
        if (shard == NULL)
            return DUE_ENOENT;
    }
    bool ours = due__word_claim(&j->word, w, as); /* J1 */
    if (shard != NULL)
        due__key_leave(q, shard);
    return ours ? 0 : DUE_EAGAIN;
}

static int claim_as(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, enum due__state as, struct due__deadline *by,
                    uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    *w = due__load_acquire(&j->word); /* J1 */
    for (;;) {
        int rc = due__obstacle(*w, generation);

        if (rc == DUE_EBUSY && due__lapse_seen(q, number, *w, by)) {
            *w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (rc != 0)
            return rc;
        if (due__word_state(*w) == DUE__MOVING) {
            due__wait_moved(q);
            *w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (due__word_state(*w) == DUE__SENT)
            return DUE_EAGAIN;
        rc = swap(q, number, generation, name, as, w);
        if (rc != DUE_EAGAIN)
            return rc;
    }
}

int due__claim(struct due_queue *q, uint32_t number, uint32_t generation, struct due__deadline *by,
               uint64_t *w)
{
    return claim_as(q, number, generation, NULL, DUE__CLAIMED, by, w);
}

int due__claim_settled(struct due_queue *q, uint32_t number, uint32_t generation,
                       const struct due__key_name *name, struct due__deadline *by, uint64_t *w)
{
    int rc = claim_as(q, number, generation, name, DUE__CLAIMED, by, w);

    while (rc == DUE_EAGAIN) {
        rc = q->journal->flush(q, by);
        if (rc == 0)
            rc = claim_as(q, number, generation, name, DUE__CLAIMED, by, w);
    }
    return rc;
}

int due__claim_sent(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, struct due__deadline *by)
{
    struct due__job *j = due__job_at(&q->slab, number);

    for (;;) {
        uint64_t w = due__load_acquire(&j->word); /* J1 */
        int rc = due__obstacle(w, generation);

        if (rc != 0)
            return rc;
        if (due__word_state(w) == DUE__MOVING)
            due__wait_moved(q);
        else if ((w & q->journal->unsent) || due__word_state(w) == DUE__SENT)
            rc = q->journal->flush(q, by);
        else if ((rc = swap(q, number, generation, name, DUE__CHANGING, &w)) == 0)
            return 0;
        if (rc != 0 && rc != DUE_EAGAIN)
            return rc;
    }
}

/* Read again if the word has changed meanwhile. */
int due__info(struct due_queue *q, uint32_t number, const uint32_t *generation,
              struct due__deadline *by, due_info *info)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    for (;;) {
        int rc = due__obstacle(w, generation != NULL ? *generation : due__word_generation(w));

        if (rc == DUE_EBUSY && due__lapse_seen(q, number, w, by)) {
            w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (rc != 0)
            return rc;
        if (due__word_state(w) == DUE__MOVING) {
            due__wait_moved(q);
            w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        struct due__facts f = due__facts_load(j);
        *info = (due_info){
            .id = due__id(q, number, due__word_generation(w)),
            .deadline_ns = due__load_relaxed(&j->deadline_ns), /* J1 */
            .len = f.len,
            .topic = f.topic,
            .priority = f.priority,
        };
        if (due__word_unchanged(&j->word, &w)) /* J1: and so was what was read */
            return 0;
    }
}

bool due__clearable(struct due_queue *q, uint32_t number, int topic, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    *w = due__load_acquire(&j->word); /* J1 */
    return (due__obstacle(*w, due__word_generation(*w)) == 0 || due__lapsed(q, number, *w)) &&
           (topic == DUE_ALL_TOPICS || due__facts_load(j).topic == topic);
}

void due__unclaim(struct due_queue *q, uint32_t number, bool taken)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;

    due__enter(q, &t);
    /* Under the lock: before, its node may be in the inbox, and whoever takes that out says so in
     * the word.  A job that is said to be in it and is not would never be sorted in. */
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    due__wait_again(q, number, w | (taken ? DUE__READY : 0),
                    due__load_relaxed(&j->deadline_ns)); /* J1 */
    due__tenure_end(q, &t);
    if (due__word_state(w) == DUE__CHANGING)
        q->journal->given_up(q);
    due__keep_if_closed(q, number, due__word_generation(w));
}

void due__put_back(struct due_queue *q, const struct due__slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        due__unclaim(q, due__slot_job(slots[i]), true);
}
