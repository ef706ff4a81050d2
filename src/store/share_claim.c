/* share_claim.c - a shared queue claims what its callers wait for.
 *
 * Who waits for a job is parked in the queue, as in any other, and whatever lies in a line that he
 * takes he has been called for.  So those who are parked are those for whom something is to be
 * claimed: as many jobs as there are of them, of their topics.  Who parks says so after the release
 * of the lock; the proxy looks at all of them under it.  A call that does not wait leaves a wish.
 *
 * A claim that comes back short is written down by the store as one that waits: it names the time
 * when to claim again, or rings, or tells us that time later.  Until then nothing is claimed,
 * unless somebody wants another topic.  Any other exchange of work ends that, so it takes the claim
 * with it.
 *
 * Besides what is needed a claim takes as much as the queue has taken lately in a few milliseconds,
 * and no more than it would in an eighth of the lease.  What lies untaken for long goes back.
 *
 * Guards     K  the key (sender.c)      T  the timeline lock      D  the calls' lock
 *            A  atomic, see Edges       O  its owner's alone
 *
 * Edges      X3  who parks does so under T, then calls the proxy; the proxy is called, and then
 *                looks under T.  A call wakes listen(), or the next one.
 *            described elsewhere: E3 tenure.c, G1 G2 sender.c, J1 slab.h, X2 share.c
 */
#include <string.h>

#include "job/claim.h"
#include "job/request.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/waiter.h"
#include "store/share.h"

#define LOOKS        1024u      /* at those who wait */
#define WINDOW_NS    DUE_MS(10) /* so much work is claimed ahead */
#define LOOK_NS      DUE_MS(5)  /* for who was called to come */
#define AGAIN_NS     DUE_MS(50) /* claims in turn, where more topics are wanted than fit into one */
#define UNTAKEN_NS   DUE_S(2)   /* what lies so long goes back; or a part of the lease: */
#define UNTAKEN      4
#define LISTEN_AGAIN DUE_MS(200) /* when the store cannot hear */

/* ---- What is wanted ---- */

static void want_topic(struct due__sharing_topics *w, uint32_t topic)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->number[i] == topic)
            return;
    }
    if (w->count < DUE_CLAIM_TOPICS)
        w->number[w->count++] = topic;
    else
        w->more = true;
}

/* These too; NULL and 0: any. */
static void want_topics(struct due__sharing_topics *w, const int *topics, size_t n)
{
    w->any |= topics == NULL;
    for (size_t i = 0; topics != NULL && i < n; i++)
        want_topic(w, (uint32_t)topics[i]);
}

/* Those who are parked, from another one on each time: how many of them nothing lies there for. */
static size_t want_parked(struct due_queue *q, struct due__sharing_topics *w)
{
    struct due__sharing *sh = q->commits->share;
    uint32_t skip = sh->turn;
    struct due__tenure t;
    size_t need = 0;

    due__enter(q, &t); /* X3 */
    const struct due__waiter *first = q->all;
    for (; skip > 0 && first != NULL; skip--)
        first = first->all_next;
    if (first == NULL) {
        first = q->all;
        sh->turn = 0;
    }
    for (const struct due__waiter *it = first; it != NULL && need < LOOKS;
         it = it->all_next, need++)
        want_topics(w, it->topics, it->topic_count);
    for (const struct due__waiter *it = q->all; it != first && need < LOOKS;
         it = it->all_next, need++)
        want_topics(w, it->topics, it->topic_count);
    size_t lies = need > 0 ? due__lies_for_parked(q) : 0;
    due__tenure_end(q, &t);
    if (lies > 0 && sh->look_ns == DUE_FOREVER)
        sh->look_ns = due__time_add(due__monotonic_now(), LOOK_NS);
    return need > lies ? need - lies : 0;
}

/* And those who did not wait. */
static size_t want_polled(struct due__commits *c, struct due__sharing_topics *w)
{
    const struct due__sharing *sh = c->share;

    due__lock_acquire(&c->calls);
    bool polls = sh->polls;
    w->any |= polls && sh->polled.any;
    for (size_t i = 0; polls && i < sh->polled.count; i++)
        want_topic(w, sh->polled.number[i]);
    due__lock_release(&c->calls);
    return polls;
}

/* Does the store wait for these topics already? */
static bool covered(const struct due__sharing *sh, const struct due__sharing_topics *w)
{
    if (!sh->waits || (w->any && !sh->wanted.any))
        return false;
    for (size_t i = 0; !sh->wanted.any && i < w->count; i++) {
        bool known = false;

        for (size_t j = 0; j < sh->wanted.count; j++)
            known |= sh->wanted.number[j] == w->number[i];
        if (!known)
            return false;
    }
    return true;
}

/* So many jobs more than are needed. */
static size_t ahead(struct due__sharing *sh, size_t need)
{
    uint64_t taken = due__load_relaxed(&sh->taken); /* no edge: a guess */
    int64_t since = due__monotonic_now() - sh->claimed_ns;
    int64_t window = sh->lease_ns / 8 < WINDOW_NS ? sh->lease_ns / 8 : WINDOW_NS;
    double rate = (double)(taken - sh->taken_then) / (double)(since > 1 ? since : 1);
    double extra = rate * (double)window;
    double most = sh->prefetch_max > need ? (double)(sh->prefetch_max - need) : 0;

    sh->taken_then = taken;
    return sh->prefetch_max <= 1 ? 0 : (size_t)(extra < most ? extra : most);
}

static int64_t lease_wanted(struct due__sharing *sh)
{
    int64_t asked = due__xchg_seq(&sh->asked_ns, 0); /* no edge: a guess */

    if (asked > 0)
        sh->lease_ns = asked;
    return sh->lease_ns;
}

static void write_claim(struct due_queue *q, const struct due__sharing_topics *w, size_t need)
{
    struct due__sharing *sh = q->commits->share;

    sh->wanted = *w;
    sh->claim = (struct due_claim){
        .need = need, .extra = ahead(sh, need), .lease_ns = lease_wanted(sh), .waits = 1
    };
    if (w->any)
        return;
    for (size_t i = 0; i < w->count; i++)
        sh->names[i] = due_topic_name(q, (int)w->number[i]);
    sh->claim.topics = sh->names;
    sh->claim.topic_count = w->count;
}

bool due__sharing_want(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;
    struct due__sharing_topics w = { .count = 0 };

    if (due__load_seq(&q->state) & DUE__REFUSING) /* E3: no more than it has */
        return false;
    size_t need = want_parked(q, &w);
    size_t polled = want_polled(c, &w);
    need += polled;
    bool known = need == 0 || covered(sh, &w);
    bool more = w.more && !w.any;
    if (known && (!more || sh->again_ns != DUE_FOREVER)) /* else others have come since */
        return false;
    sh->turn += more;
    sh->again_ns = more ? due__time_add(due__monotonic_now(), AGAIN_NS) : DUE_FOREVER;
    if (!known) {
        write_claim(q, &w, need);
        sh->claims_poll = polled > 0;
    }
    return !known;
}

/* ---- Its answer ---- */

/* Another process has said when we are to claim; but what has been answered since counts. */
static void follow(struct due__sharing *sh)
{
    if (sh->told.alarm_ns == 0)
        return;
    if (sh->told.stamp < sh->stamp)
        sh->told.alarm_ns = 0;
    else if (sh->counted && (sh->alarm_ns == 0 || sh->told.alarm_ns < sh->alarm_ns))
        sh->alarm_ns = sh->told.alarm_ns;
}

/* Two times that were told are one: the earlier, as of the later. */
static void add_told(struct due_heard *all, const struct due_heard *one)
{
    if (all->alarm_ns == 0 || one->alarm_ns < all->alarm_ns)
        all->alarm_ns = one->alarm_ns;
    if (one->stamp > all->stamp)
        all->stamp = one->stamp;
}

/* When to look at what has come, unless that is known. */
static void tidy_then(struct due__sharing *sh)
{
    int64_t patience = sh->lease_ns / UNTAKEN < UNTAKEN_NS ? sh->lease_ns / UNTAKEN : UNTAKEN_NS;
    int64_t at = due__time_add(due__monotonic_now(), patience);

    if (at < sh->tidy_ns)
        sh->tidy_ns = at;
}

void due__sharing_claimed(struct due_queue *q, const struct due_exchange *answer)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;

    sh->claimed_ns = due__monotonic_now();
    sh->waits = sh->counted = answer->alarm_ns >= 0;
    sh->alarm_ns = answer->alarm_ns;
    follow(sh);
    if (sh->placed == 0)
        return;
    tidy_then(sh);
    due__lock_acquire(&c->calls);
    sh->polls = false; /* if it came for nothing it will ask again */
    due__lock_release(&c->calls);
}

/* ---- Claiming, with the key ---- */

bool due__sharing_settled(const struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;

    return !sh->claiming && !sh->asking;
}

bool due__sharing_settle(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;

    if (sh->asking) {
        int rc = due__sharing_edit(q, until_ns);

        sh->asking = rc == DUE_EINDOUBT || rc == DUE_EAGAIN;
        if (sh->asking)
            return false;
        due__sharing_edit_forget(q);
        if (sh->retention.sent)
            due__sharing_retained(q, rc);
        if (sh->clears)
            due__sharing_cleared(q, rc);
    }
    if (!sh->claiming)
        return true;
    int rc = due__sharing_claim(q, until_ns);
    sh->claiming = rc == DUE_EINDOUBT || (rc == DUE_EAGAIN && sh->claiming);
    return !sh->claiming;
}

/* Is the alarm over?  By the middle of what its time may be. */
static bool alarm_over(const struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;

    return sh->counted && sh->alarm_ns > 0 && due__sharing_mid(q) >= sh->alarm_ns;
}

/* It was rung, or it is time: the store does not wait for it any more, but counts on it until it
 * has come. */
static void heard(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;

    if (sh->heard.alarm_ns != 0)
        add_told(&sh->told, &sh->heard);
    sh->heard.alarm_ns = 0;
    if (sh->heard_at_ns != 0)
        due__sharing_at_least(sh, sh->heard_ahead_ns);
    sh->heard_at_ns = 0;
    follow(sh);
    bool again = due__monotonic_now() >= sh->again_ns;
    sh->called = sh->called || (sh->counted && (sh->rung || alarm_over(q)));
    if (sh->called || again)
        sh->waits = false;
    if (again)
        sh->again_ns = DUE_FOREVER; /* unless it is said anew */
    sh->rung = false;
}

/* It was counted on for somebody who has gone: another one is to see to it. */
static bool pass_on(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;

    sh->wanted = (struct due__sharing_topics){ .any = true };
    sh->claim = (struct due_claim){ .waits = 0 };
    int rc = due__sharing_claim(q, until_ns);
    sh->claiming = rc == DUE_EINDOUBT;
    return rc == 0 || rc == DUE_EFENCED || rc == DUE_ELOST;
}

bool due__sharing_turn(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;

    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return false;
    sh->look_ns = DUE_FOREVER; /* unless it is said anew */
    if (!due__sharing_settle(q, until_ns))
        return true;
    due__sharing_tidy(q);
    heard(q);
    for (;;) {
        if (c->sender != DUE__SENDER_IDLE)
            return true;
        if (!due__sharing_want(q))
            break;
        int rc = due__sharing_claim(q, until_ns);
        sh->claiming = rc == DUE_EINDOUBT;
        if (rc != 0)
            return rc != DUE_EFENCED && rc != DUE_ELOST;
        if (sh->placed == 0 || due__monotonic_now() >= until_ns)
            return !sh->waits && sh->placed == 0; /* there was no memory for what came */
    }
    if (sh->called)
        return !pass_on(q, until_ns);
    return false;
}

int due__sharing_claim_now(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;

    if (c->sender != DUE__SENDER_IDLE)
        return DUE_EAGAIN;
    if (!due__sharing_want(q))
        return 0;
    int rc = due__sharing_claim(q, until_ns);
    sh->claiming = rc == DUE_EINDOUBT;
    return rc;
}

/* ---- When ---- */

/* The alarm, monotonic: not later, if this thread is stopped between two looks at clocks. */
static int64_t alarm_at(const struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;
    int64_t now = due__monotonic_now();

    if (!sh->counted || sh->called || sh->alarm_ns <= 0 || q->clock.manual != NULL)
        return DUE_FOREVER;
    int64_t left = sh->alarm_ns - due__sharing_mid(q);
    return due__time_add(now, left > 0 ? left : 0);
}

int64_t due__sharing_next(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;
    int64_t alarm = alarm_at(q);
    int64_t next = alarm < sh->guard_ns ? alarm : sh->guard_ns;

    next = sh->again_ns < next ? sh->again_ns : next;
    next = sh->look_ns < next ? sh->look_ns : next;
    return sh->tidy_ns < next ? sh->tidy_ns : next;
}

/* It was that time on the store's clock, or later. */
static void note_time(struct due__sharing *sh, int64_t now_ns, int64_t at_ns)
{
    if (sh->heard_at_ns == 0 || now_ns - at_ns > sh->heard_ahead_ns)
        sh->heard_ahead_ns = now_ns - at_ns;
    sh->heard_at_ns = at_ns;
}

void due__sharing_sleep(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;
    int64_t begun = due__monotonic_now();
    struct due_heard heard = { .alarm_ns = 0 };
    int rc = sh->verbs->listen(c->store, &heard, until_ns);

    sh->rung |= rc == 1 && heard.alarm_ns == 0; /* what was heard before may not be looked at yet */
    sh->room_rung |= rc == 1 && heard.alarm_ns == 0;
    if (rc == 1 && heard.alarm_ns != 0)
        add_told(&sh->heard, &heard);
    if (rc == 1 && heard.now_ns != 0 && q->clock.manual == NULL)
        note_time(sh, heard.now_ns, due__sharing_clock(q));
    if (rc < 0 && due__monotonic_now() - begun < LISTEN_AGAIN)
        due__bell_wait(&q->enqueue_bell, due__time_add(begun, LISTEN_AGAIN), false);
}

/* ---- Calls ---- */

void due__sharing_asked(struct due_queue *q, const struct due__request *r)
{
    struct due__sharing *sh = q->commits->share;
    int64_t lease = r->lease_ns > 0 ? r->lease_ns : r->lease_ns < 0 ? -r->lease_ns : q->lease_ns;

    lease = due__sharing_lease_fit(lease);
    if (due__load_relaxed(&sh->asked_ns) < lease) /* no edge: a guess */
        due__store_relaxed(&sh->asked_ns, lease); /* no edge: likewise */
}

static bool same_topics(const struct due__sharing_topics *a, const struct due__sharing_topics *b)
{
    return a->any == b->any && a->count == b->count &&
           memcmp(a->number, b->number, a->count * sizeof a->number[0]) == 0;
}

bool due__sharing_polled(struct due_queue *q, const struct due__request *r, bool again)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;
    struct due__sharing_topics none = { .count = 0 };

    due__lock_acquire(&c->calls);
    struct due__sharing_topics w = sh->polls ? sh->polled : none;
    want_topics(&w, r->wanted.topics, r->wanted.count); /* and what others ask for */
    if (w.more && !w.any) {
        w = none; /* more than one claim can name: the last one counts */
        want_topics(&w, r->wanted.topics, r->wanted.count);
    }
    bool known = sh->polls && same_topics(&sh->polled, &w);
    sh->polled = w;
    sh->missed = sh->missed && !again;
    bool missed = sh->missed;
    sh->polls = true;
    due__lock_release(&c->calls);
    if (known)
        return missed;
    due__proxy_call(q);
    if (due__load_relaxed(&q->fd) < 0) /* P1: who makes one looks at it in a tenure of its own */
        return missed;
    struct due__tenure t; /* whose end makes it quiet */
    due__enter(q, &t);
    due__fd_again(q);
    due__tenure_end(q, &t);
    return missed;
}

bool due__sharing_is_asked(const struct due_queue *q)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    bool asked = c->share->polls;
    due__lock_release(&c->calls);
    return asked;
}

/* ---- What lies untaken ---- */

/* The place @number goes back, if it waits still. */
static void release(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (due__claim(q, number, due__word_generation(w), NULL, &w) == 0)
        due__commit_submit(q, number, DUE__RELEASE, 0, NULL);
}

/* Does a job that was claimed wait in the place, whose word is *w? */
static bool untaken(const struct due_queue *q, uint32_t number, uint64_t *w)
{
    *w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    return due__word_state(*w) == DUE__WAITING && !(*w & DUE__LINKED);
}

/* Somebody is about to have it, and may give it up: then it lies there again. */
static bool may_return(const struct due_queue *q, uint32_t number, uint64_t w)
{
    return due__word_state(w) == DUE__CLAIMED &&
           due__load_relaxed(&due__hold_at(q, number)->held) != 0; /* X2 */
}

/* Was it refused when it was to be put in again?  Then it goes once more, or is gone. */
static bool return_now(struct due_queue *q, uint32_t number)
{
    struct due__hold *h = due__hold_at(q, number);

    if (!h->returns)
        return false;
    h->returns = false;
    if (!due__sharing_dropped(q, number))
        due__commit_submit(q, number, DUE__RETURN, due__stored_at(q->commits, number)->want_ns,
                           NULL);
    return true;
}

void due__sharing_return_all(struct due_queue *q)
{
    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        if (due__records_has(&q->commits->share->holds, i))
            (void)return_now(q, i);
    }
}

/* It came for a call that did not wait, and was not made again in time: the next one asks the store
 * itself, or a program that looks now and then would never have a job. */
static void note_missed(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    c->share->missed = true;
    due__lock_release(&c->calls);
}

/* If it has lain there since @before_ns at least it goes back.  True: it stays, and is to be looked
 * at again.  Who closes the queue gives back what lies there, and waits for that: it is left to
 * him.  Of one that drains, what nobody takes goes back as ever, or that would not end. */
static bool tidy_one(struct due_queue *q, uint32_t number, int64_t before_ns)
{
    struct due__hold *h = due__hold_at(q, number);
    uint64_t w;

    if (return_now(q, number))
        return false;
    if (!untaken(q, number, &w))
        return may_return(q, number, w);
    if (h->since_ns > before_ns || (due__load_seq(&q->state) & DUE__CLOSING)) /* E3 */
        return true;
    if (h->polled)
        note_missed(q);
    release(q, number, w);
    return false;
}

void due__sharing_tidy(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;
    int64_t patience = sh->lease_ns / UNTAKEN < UNTAKEN_NS ? sh->lease_ns / UNTAKEN : UNTAKEN_NS;
    int64_t now = due__sharing_clock(q);
    bool more = false;

    if (sh->tidy_ns == DUE_FOREVER ||
        (q->clock.manual == NULL && sh->tidy_ns > due__monotonic_now()))
        return;
    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        if (due__records_has(&sh->holds, i))
            more |= tidy_one(q, i, now - patience);
    }
    sh->tidy_ns = DUE_FOREVER;
    if (more)
        tidy_then(sh);
}

void due__sharing_release_all(struct due_queue *q)
{
    uint64_t w;

    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        if (due__records_has(&q->commits->share->holds, i) && untaken(q, i, &w))
            release(q, i, w);
    }
}
