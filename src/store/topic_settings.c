/* topic_settings.c - pauses and limits of topics, to the store and back from it.
 *
 * A call (hold_back.c) stands in line, and whoever has the key tells the store: by a batch that has
 * nothing else, when none is under way.  So it waits for no job behind it, and the next batch is
 * not sent ahead of it.  When it has landed it takes effect, also if the call has left meanwhile;
 * if it is refused nothing has changed.
 *
 * The store is told of a topic as a whole: what the queue goes by, and what the call changes of it.
 * No two topics of a batch are one, and the next batch is filled when this one has taken effect.
 *
 * After a loss all topics are told again, before the jobs.  First the store shows its own, since it
 * may hold back what the queue does not know of any more.  While that fails the jobs are put again
 * nevertheless, and the proxy tries it again later.
 *
 * Guards     K  the key (sender.c)      D  the calls' lock      O  its owner's alone
 *
 * Edges      described elsewhere: G1 G2 sender.c, T1 topic.c
 */
#include "store/topic_settings.h"

#include <stddef.h>

#include "os/atomic.h"
#include "queue/limit.h"
#include "queue/queue.h"
#include "store/sender.h"

#define HELD_MOST  INT64_C(1000000000000) /* of a limit that is read: as good as any number */
#define KNOWN_MOST (DUE_TOPIC_MAX / 2)    /* topics that are named only as the store knows them */

void due__settings_init(struct due__commits *c)
{
    const struct due_store_verbs *verbs = c->store->verbs;
    struct due__settings *g = &c->settings;

    bool told = verbs->size >= offsetof(struct due_store_verbs, topics) + sizeof verbs->topics;

    g->kept = c->share == NULL && told && verbs->topics != NULL;
    g->again_at = DUE__NO_TOPIC;
}

/* ---- Reading ---- */

struct reading {
    struct due_queue *q; /* O */
    bool sets;           /* O  the queue is to go by what is shown */
    bool any;            /* O  something was */
};

static int set(struct due_queue *q, int topic, bool paused, int64_t held_max)
{
    struct due__limit_parts parts;
    int rc = due__limit_make(q, topic, (size_t)held_max, &parts);

    if (rc != 0)
        return rc;
    due__topic_pause(q, (uint32_t)topic, paused);
    due__limit_set(q, (uint32_t)topic, (size_t)held_max, &parts);
    return 0;
}

/* A topic is held back that cannot be one of the queue.  An opening fails; but a queue that is open
 * hands out none of its jobs, and goes on. */
static int nameless(const struct reading *r, int rc)
{
    if (r->sets)
        return rc == DUE_EINVAL ? DUE_ECORRUPT : rc;
    if (rc != DUE_EINVAL && rc != DUE_ELIMIT)
        return rc;
    due__log(r->q, DUE_LOG_WARNING,
             "%s: the store holds back a topic that the queue cannot have: %s", r->q->name,
             due_error_text(rc));
    return 0;
}

/* The store shows what holds back a topic, which is one of the queue from then on.  So is one that
 * it only knows, for calls about all topics, as long as those of jobs yet to be read have room. */
static int visit(void *ctx, const char *topic, int paused, int64_t held_max)
{
    struct reading *r = ctx;
    bool holds = paused != 0 || held_max > 0;

    if (!holds && due__load_acquire(&r->q->topic_count) >= KNOWN_MOST) /* T1 */
        return 0;
    int number = due__topic_named(r->q, topic);
    if (!holds)
        return 0;
    if (number < 0)
        return nameless(r, number);
    r->any = true;
    int64_t most = held_max < 0 ? 0 : held_max < HELD_MOST ? held_max : HELD_MOST;
    return r->sets ? set(r->q, number, paused != 0, most) : 0;
}

int due__settings_load(struct due_queue *q, struct due__commits *c, int64_t until_ns, bool *lost)
{
    struct reading r = { .q = q, .sets = true };
    int rc;

    *lost = false;
    if (!c->settings.kept)
        return 0;
    do {
        rc = c->store->verbs->topics(c->store, visit, &r, until_ns);
        *lost = *lost || rc == DUE_ELOST;
    } while ((rc == DUE_EAGAIN || rc == DUE_ELOST) && due__monotonic_now() < until_ns);
    return rc == DUE_EAGAIN || rc == DUE_ELOST ? DUE_ESTORE : rc;
}

/* ---- Telling ---- */

/* Under the timeline's lock for a moment: what the queue goes by. */
static due_change describe(struct due_queue *q, uint32_t number)
{
    const struct due__topic *t = due__topic_at(q, number);
    due_change ch = { .kind = DUE_CHANGE_TOPIC, .record = { .topic = t->name } };
    struct due__tenure tenure;

    due__enter(q, &tenure);
    ch.paused = t->paused;
    ch.held_max = t->limiter != NULL ? (int64_t)t->limiter->limit : 0;
    due__tenure_end(q, &tenure);
    return ch;
}

/* So many topics, from that one on, as the queue goes by them and as the call (NULL: none) wants
 * them. */
static void tell(struct due_queue *q, uint32_t from, uint32_t count, const struct due__setting *s)
{
    struct due__commits *c = q->commits;
    struct due__batch *b = c->now;
    uint32_t room = (uint32_t)c->info.batch_changes;

    b->send = 0;
    for (uint32_t i = 0; i < count && b->send < room; i++) {
        due_change ch = describe(q, from + i);

        if (s != NULL && s->paused >= 0)
            ch.paused = s->paused;
        if (s != NULL && s->held_max >= 0)
            ch.held_max = s->held_max;
        b->changes[b->send++] = ch;
    }
    c->settings.told = b->send;
    c->settings.tells_again = s == NULL;
    b->count = b->upto = 0;
    b->settings = b->written = b->complete = true;
}

static bool anything_set(struct due_queue *q)
{
    uint32_t count = due__load_acquire(&q->topic_count); /* T1 */

    for (uint32_t i = 0; i < count; i++) {
        due_change ch = describe(q, i);

        if (ch.paused != 0 || ch.held_max != 0)
            return true;
    }
    return false;
}

/* After a loss.  If nothing is held back, here or there, there is nothing to be told; but where a
 * store is only to be sure, it may show otherwise after its next start. */
static void read_again(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__settings *g = &c->settings;
    struct reading r = { .q = q };
    int rc = c->store->verbs->topics(c->store, visit, &r, until_ns);

    if (rc == DUE_ELOST)
        due__mirror_begin(q);
    if (rc != 0) {
        g->later = true;
        return;
    }
    g->read_again = false;
    if (r.any || c->info.put_again || anything_set(q))
        g->again_at = 0;
}

bool due__settings_any(const struct due__commits *c)
{
    const struct due__settings *g = &c->settings;
    bool again = g->read_again || g->again_at != DUE__NO_TOPIC;

    return due__load_seq(&g->left) > 0 || (again && !g->later); /* G1 */
}

/* The first in line, which a batch has begun with from now on; NULL: there is none. */
static const struct due__setting *begin_first(struct due__commits *c)
{
    struct due__settings *g = &c->settings;

    due__lock_acquire(&c->calls);
    const struct due__setting *s = g->first;
    g->begun = s != NULL;
    due__lock_release(&c->calls);
    return s;
}

bool due__settings_fill(struct due_queue *q, int rc, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__settings *g = &c->settings;

    if (rc == 0 && g->read_again && !g->later)
        read_again(q, until_ns);
    if (rc == 0 && g->again_at != DUE__NO_TOPIC && !g->later) {
        uint32_t count = due__load_acquire(&q->topic_count); /* T1 */

        tell(q, g->again_at, count - g->again_at, NULL);
        return true;
    }
    if (due__load_seq(&g->left) == 0) /* G1 */
        return false;
    const struct due__setting *s = begin_first(c);
    if (s == NULL)
        return false;
    tell(q, s->topic + g->landed, s->count - g->landed, s);
    return true;
}

/* ---- What came of it ---- */

/* Under the calls' lock: the first in line is over, with that answer, and stands there no more. */
static void end_first(struct due__commits *c, int rc)
{
    struct due__settings *g = &c->settings;
    const struct due__setting *s = g->first;

    g->first = s->next;
    if (g->first == NULL)
        g->last = NULL;
    g->begun = false;
    g->landed = 0;
    uint32_t left = due__load_relaxed(&g->left); /* G1: under the lock */
    due__store_seq(&g->left, left - 1);          /* G1 */
    if (s->a == NULL)
        return;
    s->a->rc = rc;
    due__submission_less(s->a);
    due__bell_ring(&s->a->waiter->bell);
}

void due__setting_free(struct due_queue *q, struct due__setting *s)
{
    due__limit_unmake(q, &s->parts);
    due__alloc_free(&q->alloc, s, sizeof *s);
}

static void apply(struct due_queue *q, struct due__setting *s, uint32_t from, uint32_t n)
{
    for (uint32_t i = from; i < from + n; i++) {
        if (s->paused >= 0)
            due__topic_pause(q, s->topic + i, s->paused != 0);
        if (s->held_max >= 0)
            due__limit_set(q, s->topic + i, (size_t)s->held_max, &s->parts);
    }
}

static void again_ended(struct due_queue *q, int rc, uint32_t told)
{
    struct due__commits *c = q->commits;
    struct due__settings *g = &c->settings;

    if (rc != 0) {
        g->later = true;
        return;
    }
    if (g->again_at == DUE__NO_TOPIC) /* from the beginning, since then */
        return;
    g->again_at += told;
    if (g->again_at >= due__load_acquire(&q->topic_count)) /* T1 */
        g->again_at = DUE__NO_TOPIC;
}

static void first_ended(struct due_queue *q, int rc, uint32_t told)
{
    struct due__commits *c = q->commits;
    struct due__settings *g = &c->settings;
    struct due__setting *s = g->first; /* it stays the first, as it has begun */

    if (rc == 0) {
        apply(q, s, g->landed, told);
        g->landed += told;
        if (g->landed < s->count)
            return;
    }
    due__lock_acquire(&c->calls);
    end_first(c, rc);
    due__lock_release(&c->calls);
    due__setting_free(q, s);
}

void due__settings_end(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;
    struct due__settings *g = &c->settings;
    uint32_t told = g->told;

    c->now->settings = c->now->refused = false;
    g->told = 0;
    due__sender_on(c, DUE__SENDER_END);
    due__batch_unwrite(c->now);
    if (g->tells_again)
        again_ended(q, rc, told);
    else
        first_ended(q, rc, told);
    due__mirror_over(c);
}

void due__settings_back(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    if (!c->now->settings)
        return;
    c->now->settings = false;
    c->settings.told = 0;
    due__sender_on(c, DUE__SENDER_END);
    due__batch_unwrite(c->now);
}

void due__settings_refuse(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;
    struct due__setting *over;

    do {
        due__lock_acquire(&c->calls);
        over = c->settings.first;
        if (over != NULL)
            end_first(c, c->settings.begun ? DUE_EINDOUBT : rc);
        due__lock_release(&c->calls);
        if (over != NULL)
            due__setting_free(q, over);
    } while (over != NULL);
}

void due__settings_free(struct due_queue *q)
{
    struct due__setting *s = q->commits->settings.first;

    while (s != NULL) {
        struct due__setting *next = s->next;

        due__setting_free(q, s);
        s = next;
    }
}

void due__settings_again(struct due__commits *c)
{
    c->settings.read_again = c->settings.kept;
    c->settings.again_at = DUE__NO_TOPIC;
}

bool due__settings_mended(const struct due__commits *c)
{
    return !c->settings.read_again && c->settings.again_at == DUE__NO_TOPIC;
}
