/* kick.c - the calls that take dead jobs back, or clear them.
 *
 * Those that are cleared become the caller's own, some hundred at a time, and the journal is told
 * of all of them together; so it is of those that are kicked, if it has to be told at all.
 *
 * Edges      described elsewhere: J1 slab.h, E3 tenure.c
 */
#include "api/pages.h"
#include "job/amend.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

static int kick_decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    (void)q;
    (void)w;
    a->purpose = DUE__KICK;
    a->want_ns = now_ns;
    return 0;
}

static const struct due__amendment kick = { .of = DUE__IF_DEAD, .decide = kick_decide };

/* May dead jobs wait again? */
static int kickable(struct due_queue *q)
{
    return due__load_seq(&q->state) & DUE__CLOSING ? DUE_ECLOSED : 0; /* E3 */
}

int due_kick(due_queue *q, due_id id)
{
    struct due__amendment a = kick;
    struct due__deadline by = { 0 };

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__id_find(q, id, &by, &a.number, &a.generation);
    if (rc == 0)
        rc = kickable(q);
    if (rc == 0) {
        due__lapse(q, a.number, &by); /* it may be dead */
        rc = q->journal->amend(q, &a, &by);
    }
    if (due__is_elsewhere(q, rc)) {
        struct due__ask ask = { .kind = DUE__ASK_KICK, .id = id, .at_ns = due__jobs_now(q) };

        rc = q->journal->ask(q, &ask, &by);
    }
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

/* Of a topic, the next jobs that may be dead, from place *@at on. */
static size_t dead_some(struct due_queue *q, int topic, uint32_t *at, struct due__use *jobs)
{
    size_t n = 0;

    for (; n < DUE__AMEND_MOST && *at < due__slab_end(&q->slab); ++*at) {
        const struct due__job *j = due__job_at(&q->slab, *at);
        uint64_t w = due__load_acquire(&j->word); /* J1 */

        jobs[n] = (struct due__use){ .number = *at, .generation = due__word_generation(w) };
        n += due__may_be_dead(w) && (topic == DUE_ALL_TOPICS || due__facts_load(j).topic == topic);
    }
    return n;
}

/* The dead ones of them are discarded. */
static int clear_some(struct due_queue *q, const struct due__use *jobs, size_t n,
                      struct due__deadline *by, uint64_t *ended)
{
    uint32_t numbers[DUE__AMEND_MOST];
    int results[DUE__AMEND_MOST];
    size_t own = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        numbers[own] = jobs[i].number;
        own += due__dead_claim_one(q, jobs[i].number, jobs[i].generation, NULL, DUE__CLAIMED) == 0;
    }
    bool closed = due__closed(q); /* then nobody writes that down any more */
    for (size_t i = 0; closed && i < own; i++)
        due__keep_stored(q, numbers[i]);
    if (closed)
        *ended += own;
    if (closed || own == 0)
        return 0;
    q->journal->change_all(q, numbers, own, DUE__CLEAR, 0, by, results);
    for (size_t i = 0; i < own; i++) {
        *ended += results[i] == 0;
        rc = results[i] != 0 ? results[i] : rc;
        if (results[i] != 0 && results[i] != DUE_EINDOUBT)
            due__bury_again(q, numbers[i]);
    }
    return rc;
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
    struct due__use jobs[DUE__AMEND_MOST];
    struct due__deadline by = { 0 };
    uint32_t at = 0;
    uint64_t ended = 0;
    size_t n = 1;

    if (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = q->journal->whole(q, &by);
    if (rc == 0)
        due__lapse_all(q, &by);
    if (rc == 0 && due__in_store(q)) {
        rc = clear ? due__pages_clear_dead(q, topic, &ended) : due__pages_kick(q, topic, &ended);
        n = 0;
    }
    while (rc == 0 && n > 0 && any_dead(q)) {
        n = dead_some(q, topic, &at, jobs);
        rc = clear ? clear_some(q, jobs, n, &by, &ended)
                   : q->journal->amend_all(q, &kick, jobs, n, &by, &ended);
    }
    due__inside_end(q, inside);
    if (count != NULL && (rc == 0 || ended > 0))
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
    if (due__forked(q))
        return DUE_EFORK;
    return end_all(q, topic, true, cleared);
}
