/* limit.c - limits of topics, and groups: who may run, and who waits until another has ended.
 *
 * A job that is due goes first through the limiter of its group, if it has one, then through that
 * of its topic, if that has a limit.  At an open limiter it gets a pass; at one that is shut it
 * waits, in the topic's order.  Past both it stands in its topic's line, and nothing tells it from
 * any other job.  A pass is kept while the job is handed out, and while it waits to be tried again;
 * it goes back when the job ends, dies, or is given another deadline.  The word says that a job has
 * one (DUE__PASSED), so that its end, which for other jobs needs no lock, takes the lock.
 *
 * While a store's jobs are being read the limiters of groups are shut.  Jobs come in the order in
 * which they are due, so one that had failed, and has its group's pass, may come after those that
 * must not overtake it.  Once a queue is closed all limiters are shut: who gives back a pass then
 * has not ended if there is a store, but stays in it, to be tried again before those that wait.
 * Whoever gives a pass back because of that has seen the queue closed before he took the lock, and
 * so does everybody who has the lock after him.
 *
 * Of a shared queue the store gives the passes of groups: a job that was claimed has its own, and
 * none is asked for here.
 *
 * Whoever gives a pass back leaves the limiter reopened: before the lock is released as many are
 * let through as there are passes, in pieces.
 *
 * Guards     T  the timeline lock      O  the job's owner's      I  set once
 *
 * Edges      described elsewhere: J1 slab.h, E3 tenure.c
 *
 * Always     N1  running is the number of jobs that have the limiter's pass; passed, of those that
 * (check)        have any
 *            N2  a limiter is in the list of those waited at exactly while its line has slots
 *            N3  at a release: a limiter that is open and waited at is reopened, and whoever
 *                released will come back for it
 *
 * Not here   Names of groups: group.c.
 */
#include "queue/limit.h"

#include <assert.h>
#include <string.h>

#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/queue.h"
#include "queue/stored.h"

#define HELD_MOST INT64_C(1000000000000) /* that is stored: as good as any number */

/* ---- Lists ---- */

static void link_in(struct due__limiters *all, struct due__limiter *g, enum due__limiter_list k)
{
    g->prev[k] = NULL;
    g->next[k] = all->first[k];
    if (g->next[k] != NULL)
        g->next[k]->prev[k] = g;
    all->first[k] = g;
}

static void unlink_from(struct due__limiters *all, struct due__limiter *g, enum due__limiter_list k)
{
    if (g->prev[k] != NULL)
        g->prev[k]->next[k] = g->next[k];
    else
        all->first[k] = g->next[k];
    if (g->next[k] != NULL)
        g->next[k]->prev[k] = g->prev[k];
}

static bool open_now(const struct due__limiter *g)
{
    if (g->len > 0 && g->queue->limiters.reading)
        return false;
    return (g->limit == 0 || g->running < g->limit) && !due__closed(g->queue);
}

static void shut(struct due_queue *q, struct due__limiter *g)
{
    if (g->reopened)
        unlink_from(&q->limiters, g, DUE__LIMITERS_REOPENED);
    g->reopened = false;
}

/* Its line has @before slots less, or more. */
static void counted(struct due_queue *q, struct due__limiter *g, size_t before)
{
    struct due__limiters *all = &q->limiters;

    q->in_lines += g->line.count - before;
    all->slots += g->line.count - before;
    if (before == 0 && g->line.count > 0)
        link_in(all, g, DUE__LIMITERS_WAITED_AT);
    if (before == 0 || g->line.count > 0)
        return;
    if (all->sweep == g)
        all->sweep = g->next[DUE__LIMITERS_WAITED_AT];
    unlink_from(all, g, DUE__LIMITERS_WAITED_AT);
    shut(q, g);
}

struct due__slot due__limiter_pop(struct due_queue *q, struct due__limiter *g)
{
    size_t before = g->line.count;
    struct due__slot s = due__line_pop(&g->line, &q->nodes);

    counted(q, g, before);
    return s;
}

/* Does anybody wait there?  Dead slots in front are dropped, or those who come would wait behind
 * them; of very many some are left, and passed over later. */
static bool waited_at(struct due_queue *q, struct due__limiter *g)
{
    struct due__slot s;

    for (uint32_t n = 0; n < DUE__MOVES_MAX && due__line_first(&g->line, &s); n++) {
        if (due__keep_live(q, &s, 1, true) == 1)
            return true;
        due__limiter_pop(q, g);
    }
    return g->line.count > 0;
}

/* If the limiter is open and somebody waits there: before the release it is seen to. */
static void look_at(struct due_queue *q, struct due__limiter *g)
{
    if (g->reopened || !open_now(g) || !waited_at(q, g))
        return;
    g->reopened = true;
    link_in(&q->limiters, g, DUE__LIMITERS_REOPENED);
    q->debts |= DUE__DEBT_LIMITERS;
}

/* There may be very many groups, so they have no chunks of their own for a run. */
static void push(struct due_queue *q, struct due__limiter *g, struct due__slot s)
{
    size_t before = g->line.count;

    if (q->order == DUE_ORDER_PRIORITY)
        s = due__slot_by_priority(s);
    while (g->len > 0 ? !due__line_push_aside(&g->line, &q->nodes, s)
                      : !due__line_push(&g->line, &q->nodes, s)) {
        due__make_room(q);
        before = g->line.count; /* the sweep has counted */
    }
    counted(q, g, before);
    look_at(q, g);
}

/* ---- Passes ---- */

/* The passes of a job that nobody else has; *front, unless it has no group. */
static unsigned passes_of(struct due__job *j, uint64_t w, struct due__extras **extras)
{
    if (!(due__facts_load(j).payload & DUE__GROUPED)) {
        *extras = NULL;
        return (w & DUE__PASSED) ? DUE__PASS_TOPIC : 0;
    }
    *extras = due__extras_at(j);
    return (*extras)->passes;
}

/* A job on its way, if it comes first: behind those who wait, unless it is one of them. */
static bool let_through(struct due_queue *q, struct due__limiter *g,
                        const struct due__limiter *from)
{
    if (!open_now(g) || (g != from && waited_at(q, g)))
        return false;
    g->running++;
    return true;
}

/* A job that is MOVING gets what passes it needs, as far as there are any.  Answers the limiter at
 * which it has to wait, or NULL; *passes: what it has then. */
static struct due__limiter *go_through(struct due_queue *q, struct due__limiter *group,
                                       struct due__limiter *topic, const struct due__limiter *from,
                                       unsigned *passes)
{
    if (group != NULL && !(*passes & DUE__PASS_GROUP)) {
        if (!let_through(q, group, from))
            return group;
        *passes |= DUE__PASS_GROUP;
    }
    if (topic != NULL && !(*passes & DUE__PASS_TOPIC)) {
        if (!let_through(q, topic, from))
            return topic;
        *passes |= DUE__PASS_TOPIC;
    }
    return NULL;
}

/* The job of slot @s goes as far as it can; it may have waited at @from.  It stands still (MOVING)
 * meanwhile, or somebody who cancels it would take its front away. */
static void go_on(struct due_queue *q, struct due__slot s, const struct due__limiter *from)
{
    struct due__job *j = due__job_at(&q->slab, due__slot_job(s));
    struct due__extras *extras;
    uint64_t w;

    do {
        if (!due__slot_alive(&q->slab, s, &w) || due__word_state(w) != DUE__WAITING ||
            !(w & DUE__READY))
            return;
    } while (!due__word_claim(&j->word, &w, DUE__MOVING)); /* J1 */

    struct due__topic *topic = due__topic_at(q, due__facts_load(j).topic);
    unsigned passes = passes_of(j, w, &extras);
    struct due__limiter *group = extras != NULL && !q->shared ? extras->limiter : NULL;
    struct due__limiter *waits = go_through(q, group, topic->limiter, from, &passes);

    if (extras != NULL)
        extras->passes = (uint8_t)passes;
    if (passes != 0 && !(w & DUE__PASSED)) {
        w |= DUE__PASSED;
        q->limiters.passed++;
    }
    due__word_set(&j->word, w); /* J1 */
    if (waits != NULL) {
        push(q, waits, s);
        return;
    }
    while (!due__topic_push(q, topic, s))
        due__make_room(q);
}

void due__limiter_arrive(struct due_queue *q, struct due__slot s)
{
    go_on(q, s, NULL);
}

bool due__limiters_admit(struct due_queue *q)
{
    struct due__limiter *g;

    for (uint32_t looked = 0; (g = q->limiters.first[DUE__LIMITERS_REOPENED]) != NULL;) {
        if (!open_now(g)) {
            shut(q, g);
        } else if (looked++ == DUE__MOVES_MAX) {
            return false;
        } else {
            go_on(q, due__slot_plain(q, due__limiter_pop(q, g)), g); /* waited at: see look_at() */
        }
    }
    return true;
}

static void take_back(struct due_queue *q, struct due__limiter *g)
{
    assert(g->running > 0);
    g->running--;
    look_at(q, g);
}

uint64_t due__limiter_return(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__extras *extras;
    unsigned passes = passes_of(j, w, &extras);

    if (passes & DUE__PASS_GROUP)
        take_back(q, extras->limiter);
    if (passes & DUE__PASS_TOPIC)
        take_back(q, due__topic_at(q, due__facts_load(j).topic)->limiter);
    if (extras != NULL)
        extras->passes = 0;
    q->limiters.passed--;
    return w & ~DUE__PASSED;
}

void due__limiter_leave(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t w = due__load_relaxed(&j->word);                    /* J1: the caller's own */
    due__word_keep(&j->word, due__limiter_return(q, number, w)); /* J1 */
    due__tenure_end(q, &t);
}

/* ---- Back from a store ---- */

void due__limiters_hold(struct due_queue *q)
{
    q->limiters.reading = true;
}

/* A bucket that is split meanwhile has its new part at the end. */
void due__limiters_open(struct due_queue *q)
{
    uint32_t at = 0;
    bool more;

    do {
        struct due__tenure t;

        due__enter(q, &t);
        q->limiters.reading = false;
        for (uint32_t n = 0; n < DUE__MOVES_MAX && at < q->limiters.buckets; n++, at++) {
            for (struct due__limiter *g = due__group_first(q, at); g != NULL; g = g->chain)
                look_at(q, g);
        }
        more = at < q->limiters.buckets;
        due__tenure_end(q, &t);
    } while (more);
}

uint64_t due__limiter_resume(struct due_queue *q, struct due__job *j, struct due__facts f)
{
    struct due__extras *extras = (f.payload & DUE__GROUPED) ? due__extras_at(j) : NULL;

    if (extras == NULL || q->shared || extras->limiter->running > 0)
        return 0;
    extras->limiter->running++;
    extras->passes = DUE__PASS_GROUP;
    q->limiters.passed++;
    return DUE__PASSED;
}

/* ---- All limiters ---- */

bool due__limiters_pop(struct due_queue *q, struct due__slot *s)
{
    struct due__limiter *g = q->limiters.first[DUE__LIMITERS_WAITED_AT];

    if (g == NULL)
        return false;
    *s = due__limiter_pop(q, g);
    return true;
}

void due__limiters_sweep_begin(struct due_queue *q)
{
    q->limiters.sweep = q->limiters.first[DUE__LIMITERS_WAITED_AT];
}

bool due__limiters_sweep(struct due_queue *q, due__keep_fn *keep, size_t budget)
{
    for (size_t looked = 0; looked < budget && q->limiters.sweep != NULL;) {
        struct due__limiter *g = q->limiters.sweep;
        size_t before = g->line.count;

        looked += 4 * before + 4; /* a heap's slots cost more than those in a row */
        if (due__line_sweep(&g->line, &q->nodes, keep, q, budget))
            q->limiters.sweep = g->next[DUE__LIMITERS_WAITED_AT];
        counted(q, g, before);
    }
    return q->limiters.sweep == NULL;
}

/* ---- Limits of topics ---- */

/* Its first limit: whoever is ready waits at the limiter from now on, shown or not. */
static void put_up(struct due_queue *q, struct due__topic *t, struct due__limiter *g)
{
    while (!due__topic_recall(q, t))
        due__make_room(q);
    due__topic_unlist(q, t);
    q->in_lines -= t->line.count; /* counted again as the limiter's */
    g->line = t->line;
    t->line = (struct due__line){ .count = 0 };
    counted(q, g, 0);
    t->limiter = g;
    q->limiters.any = true;
}

static size_t bytes_of(const struct due__limiter *g)
{
    return sizeof *g + g->len;
}

void due__limiter_free(struct due_queue *q, struct due__limiter *g)
{
    due__alloc_free(&q->alloc, g, bytes_of(g));
}

int due__limit_make(struct due_queue *q, int topic, size_t max_running,
                    struct due__limit_parts *parts)
{
    *parts = (struct due__limit_parts){ NULL, NULL };
    if (max_running == 0)
        return 0;
    struct due__limiter *g = due__alloc_new(&q->alloc, sizeof *g);
    if (g == NULL)
        return DUE_ENOMEM;
    parts->chunks = due__region_new(&q->alloc, 1);
    if (parts->chunks == NULL) {
        due__limiter_free(q, g);
        return DUE_ENOMEM;
    }
    g->queue = q;
    g->topic = (uint16_t)topic;
    parts->limiter = g;
    return 0;
}

void due__limit_unmake(struct due_queue *q, struct due__limit_parts *parts)
{
    if (parts->limiter == NULL)
        return;
    due__region_free(&q->alloc, parts->chunks);
    due__limiter_free(q, parts->limiter);
    *parts = (struct due__limit_parts){ NULL, NULL };
}

bool due__limit_set(struct due_queue *q, uint32_t topic, size_t max_running,
                    struct due__limit_parts *parts)
{
    struct due__topic *t = due__topic_at(q, topic);
    struct due__tenure tenure;

    due__enter(q, &tenure);
    if (t->limiter == NULL && parts->limiter != NULL) {
        due__pool_adopt(&q->pool, parts->chunks);
        put_up(q, t, parts->limiter);
        *parts = (struct due__limit_parts){ NULL, NULL };
    }
    bool there = t->limiter != NULL;
    if (there) {
        t->limiter->limit = max_running;
        look_at(q, t->limiter);
    }
    due__tenure_end(q, &tenure); /* in pieces, if many are let through */
    due__limit_unmake(q, parts); /* somebody else was quicker */
    return there;
}

int due_topic_limit(due_queue *q, int topic, size_t max_running)
{
    struct due__limit_parts parts = { NULL, NULL };
    uint64_t most = max_running;

    if (due__forked(q))
        return DUE_EFORK;
    if (due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    if (due__holds_back_stored(q))
        return q->journal->hold_back(q, topic, -1, most < HELD_MOST ? (int64_t)most : HELD_MOST);
    if (due__limit_set(q, (uint32_t)topic, max_running, &parts) || max_running == 0)
        return 0;
    int rc = due__limit_make(q, topic, max_running, &parts);
    if (rc == 0)
        due__limit_set(q, (uint32_t)topic, max_running, &parts);
    return rc;
}

/* ---- Checking ---- */

struct tally {
    size_t slots;    /* O */
    size_t running;  /* O */
    size_t limiters; /* O */
};

static bool limiter_right(const struct due__limiter *g, struct tally *sum)
{
    sum->slots += g->line.count;
    sum->running += g->running;
    sum->limiters += g->line.count > 0;
    return due__line_check(&g->line) && g->reopened == (open_now(g) && g->line.count > 0);
}

/* Passes by what the jobs say. */
static size_t passes_out(struct due_queue *q, size_t *passed)
{
    size_t out = 0;

    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        struct due__job *j = due__job_at(&q->slab, at);
        uint64_t w = due__load_acquire(&j->word); /* J1 */
        struct due__extras *extras;

        if (!(w & DUE__PASSED) || due__word_state(w) == DUE__FREE ||
            due__word_state(w) == DUE__DONE)
            continue;
        unsigned passes = passes_of(j, w, &extras);
        out += (passes & DUE__PASS_GROUP) != 0;
        out += (passes & DUE__PASS_TOPIC) != 0;
        ++*passed;
    }
    return out;
}

bool due__limiters_check(struct due_queue *q)
{
    struct tally sum = { 0 };
    struct due__tenure t;
    size_t passed = 0;
    size_t listed = 0;
    bool right = true;

    due__enter(q, &t);
    for (uint32_t i = 0; i < due__load_acquire(&q->topic_count); i++) { /* T1 of topic.c */
        const struct due__limiter *g = due__topic_at(q, i)->limiter;

        right = right && (g == NULL || limiter_right(g, &sum));
    }
    for (uint32_t i = 0; i < q->limiters.buckets; i++) {
        for (const struct due__limiter *g = due__group_first(q, i); g != NULL; g = g->chain)
            right = right && limiter_right(g, &sum);
    }
    for (const struct due__limiter *g = q->limiters.first[DUE__LIMITERS_WAITED_AT]; g != NULL;
         g = g->next[DUE__LIMITERS_WAITED_AT])
        listed++;
    right = right && sum.running == passes_out(q, &passed) && passed == q->limiters.passed; /* N1 */
    right = right && listed == sum.limiters && sum.slots == q->limiters.slots;              /* N2 */
    right = right && q->limiters.first[DUE__LIMITERS_REOPENED] == NULL;                     /* N3 */
    due__tenure_end(q, &t);
    return right;
}
