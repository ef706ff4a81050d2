/* kick.c - the calls that take dead jobs back, or clear them.
 *
 * With a store they become the caller's own, some hundred at a time, and the store is told of all
 * of them together; without one each is kicked under the lock.
 *
 * Edges      described elsewhere: J1 slab.h, E3 tenure.c
 */
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"

#define DEAD_AT_ONCE 256u /* sent to a store together */

/* Jobs of the caller's own that were dead wait again (with a store), or are discarded. */
static int end_many(struct due_queue *q, const uint32_t *numbers, size_t n, bool clear,
                    struct due__deadline *by, uint64_t *ended)
{
    int64_t now = due__clock_now(&q->clock);
    int results[DEAD_AT_ONCE];
    int rc = 0;

    if (clear && due__closed(q)) { /* nobody writes that down any more */
        for (size_t i = 0; i < n; i++)
            due__keep_stored(q, numbers[i]);
        *ended += n;
        return 0;
    }
    q->journal->change_all(q, numbers, n, clear ? DUE__CLEAR : DUE__KICK, now, by, results);
    for (size_t i = 0; i < n; i++) {
        *ended += results[i] == 0;
        rc = results[i] != 0 ? results[i] : rc;
        if (results[i] != 0 && results[i] != DUE_EINDOUBT)
            due__bury_again(q, numbers[i]);
    }
    return rc;
}

/* Without a store: in one tenure, so that nobody sees it as somebody else's. */
static int kick_now(struct due_queue *q, uint32_t number, uint32_t generation)
{
    struct due__tenure t;
    int rc;

    due__enter(q, &t);
    int64_t now = due__clock_now(&q->clock);
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    due__catch_up(q, DUE__FOREIGN_MAX);
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: whoever closes takes the lock after */
        rc = DUE_ECLOSED;
    else if (due__word_generation(w) == generation && due__dead_claim(q, number, &w, DUE__MOVING)) {
        due__note_kicked(q, number, w);
        due__kick_locked(q, number, now);
        rc = 0;
    } else {
        rc = due__not_dead(w, generation);
    }
    due__tenure_end(q, &t);
    return rc;
}

/* May dead jobs wait again? */
static int kickable(struct due_queue *q)
{
    return due__load_seq(&q->state) & DUE__CLOSING ? DUE_ECLOSED : 0; /* E3 */
}

int due_kick(due_queue *q, due_id id)
{
    struct due__deadline by = { 0 };
    uint64_t kicked = 0;
    uint32_t number;
    uint32_t generation;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc == 0)
        rc = kickable(q);
    if (rc == 0)
        due__lapse(q, number, &by); /* it may be dead */
    if (rc == 0 && q->commits == NULL)
        return kick_now(q, number, generation);
    if (rc == 0)
        rc = due__dead_claim_one(q, number, generation, NULL, DUE__CHANGING);
    if (rc == 0)
        rc = end_many(q, &number, 1, false, &by, &kicked);
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

/* The next job of a topic that may be dead, from place *@at on.  False: there is none. */
static bool next_dead(struct due_queue *q, int topic, uint32_t *at, uint32_t *generation)
{
    for (; *at < due__slab_end(&q->slab); ++*at) {
        const struct due__job *j = due__job_at(&q->slab, *at);
        uint64_t w = due__load_acquire(&j->word); /* J1 */

        *generation = due__word_generation(w);
        if (due__may_be_dead(w) && (topic == DUE_ALL_TOPICS || due__facts_load(j).topic == topic))
            return true;
    }
    return false;
}

/* Up to DEAD_AT_ONCE of them, become the caller's own. */
static size_t dead_claim_some(struct due_queue *q, int topic, enum due__state as, uint32_t *at,
                              uint32_t *numbers)
{
    size_t n = 0;
    uint32_t generation;

    for (; n < DEAD_AT_ONCE && next_dead(q, topic, at, &generation); ++*at) {
        numbers[n] = *at;
        n += due__dead_claim_one(q, *at, generation, NULL, as) == 0;
    }
    return n;
}

static void kick_all_now(struct due_queue *q, int topic, uint64_t *kicked)
{
    uint32_t generation;

    for (uint32_t at = 0; next_dead(q, topic, &at, &generation); at++)
        *kicked += kick_now(q, at, generation) == 0;
}

static bool any_dead(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool any = q->dead_count > 0;
    due__tenure_end(q, &t);
    return any;
}

static int end_all(struct due_queue *q, int topic, bool clear, uint64_t *count)
{
    enum due__state as = clear ? DUE__CLAIMED : DUE__CHANGING;
    uint32_t numbers[DEAD_AT_ONCE];
    struct due__deadline by = { 0 };
    uint32_t at = 0;
    uint64_t ended = 0;
    int rc = 0;

    if (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    rc = q->journal->whole(q, &by);
    if (rc == 0)
        due__lapse_all(q, &by);
    if (!clear && q->commits == NULL && any_dead(q))
        kick_all_now(q, topic, &ended);
    while (rc == 0 && any_dead(q)) {
        size_t n = !clear && q->commits == NULL ? 0 : dead_claim_some(q, topic, as, &at, numbers);

        if (n == 0)
            break;
        rc = end_many(q, numbers, n, clear, &by, &ended);
    }
    due__inside_end(q, inside);
    if (count != NULL)
        *count = ended;
    return rc;
}

int due_kick_all(due_queue *q, int topic, uint64_t *kicked)
{
    if (due__forked(q))
        return DUE_EFORK;
    int rc = kickable(q);
    return rc == 0 ? end_all(q, topic, false, kicked) : rc;
}

int due_clear_dead(due_queue *q, int topic, uint64_t *cleared)
{
    return due__forked(q) ? DUE_EFORK : end_all(q, topic, true, cleared);
}
