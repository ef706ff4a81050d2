/* shared_books.c - what must hold of a shared queue whenever everybody rests. */
#include "shared_books.h"

#include "engine.h"
#include "os/atomic.h"
#include "store/share.h"

/* The store holds the job at the place @number for this queue, as long as the queue thinks so. */
static void check_held(const due_queue *q, const struct shared_shelf *it, uint32_t number)
{
    const struct due__hold *h = due__hold_at(q, number);
    due_id id = due__stored_id(due__stored_at(q->commits, number));
    const struct shared_job *job = NULL;

    for (unsigned i = 0; i < SHARED_JOBS; i++) {
        if (it->job[i].state != SHARED_NONE && due_id_equal(it->job[i].id, id))
            job = &it->job[i];
    }
    explore_check(job != NULL, "a job is here that the store does not know");
    explore_check(job->state == SHARED_HELD && job->held == h->held && job->by == it,
                  "job %u lies here, and is not held by this queue in the store",
                  shared_number(it, job));
    explore_check(h->until_ns <= job->until_ns, "job %u is held here for longer than in the store",
                  shared_number(it, job));
}

/* Does its holder, or who takes it, think that it is his? */
static bool believed(const due_queue *q, uint32_t number)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    const struct due__hold *h = due__hold_at(q, number);
    enum due__state state = due__word_state(j->word);
    bool here = (state == DUE__WAITING && !(j->word & DUE__LINKED)) || state == DUE__LEASED;

    return here && h->held != 0 && h->until_ns > explore_now();
}

/* Has everybody who could still do something given up? */
static bool ends(const due_queue *q)
{
    const struct due__commits *c = q->commits;

    return q->state != 0 || c->retry_at_ns != 0 || c->fenced != 0;
}

void shared_held(const due_queue *q, const struct shared_shelf *it)
{
    bool running = engine.running;

    engine.running = false; /* no steps */
    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        if (due__records_has(&q->commits->share->holds, i) && believed(q, i))
            check_held(q, it, i);
    }
    engine.running = running;
}

/* What one was called for may have gone back before he came, and counts as lying here until he
 * does; then nothing may lie here any more. */
bool shared_looks_again(const due_queue *q)
{
    bool running = engine.running;
    bool comes = false;

    for (const struct due__topic *t = q->ring; t != NULL && !comes;
         t = t->next != q->ring ? t->next : NULL)
        comes = t->under_way != 0;
    engine.running = false; /* no steps */
    bool right = comes || due__lies_for_parked(q) == 0;
    engine.running = running;
    return right && q->commits->share->look_ns != DUE_FOREVER;
}

void shared_rest(const due_queue *q, const struct shared_shelf *it, bool skewed)
{
    const struct due__commits *c = q->commits;

    explore_check(c->key.word == 0 && c->calls.word == 0 && q->lock.word == 0,
                  "everybody rests, and a lock is held");
    if (!skewed)
        shared_held(q, it);
    if (ends(q))
        return;
    explore_check(!shared_owes(it), "the store counts on us, and nobody comes");
    explore_check(q->all == NULL || it->waits || shared_looks_again(q),
                  "somebody waits, and the store does not know");
}

void shared_sums(due_queue *q)
{
    uint64_t leased = 0;
    uint64_t all = 0;
    struct due_stats s;

    explore_check(due_stats_read(q, &s) == 0, "stats"); /* first: leases that are over end by it */
    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        enum due__state state = due__word_state(due__job_at(&q->slab, i)->word);

        leased += state == DUE__LEASED;
        all += state != DUE__FREE && state != DUE__DONE;
    }
    explore_check(s.enqueued == s.waiting + s.leased + s.dead + s.dequeued + s.acked + s.cancelled +
                                    s.discarded + s.kept,
                  "the stats do not add up");
    explore_check(s.leased == leased, "%llu are leased, and %llu are said to be",
                  (unsigned long long)leased, (unsigned long long)s.leased);
    explore_check(s.leased + s.waiting == all, "%llu are here, and %llu are said to be",
                  (unsigned long long)all, (unsigned long long)(s.leased + s.waiting));
}
