/* proxy.c - the enqueue proxy of a stored queue: it sends what nobody else sends, renews the
 * ownership, and reads what is stored.
 *
 * Guards     K  the key (sender.c)      O  the proxy's own      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c, E3 tenure.c
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

#define SLICE_NS DUE_S(1)    /* how long the proxy lets the store block at a time */
#define RETRY_NS DUE_MS(200) /* between two attempts while it refuses */
#define DOUBT_NS DUE_MS(20)  /* the same of a batch whose end it does not tell */

static void renew(struct due_queue *q, int64_t now_ns)
{
    struct due__commits *c = q->commits;
    int64_t held;

    if (c->renew_at_ns > now_ns || due__load_seq(&c->fenced)) /* G2 */
        return;
    int rc = c->store->verbs->renew(c->store, &held, due__time_add(now_ns, SLICE_NS));
    c->renew_at_ns = due__time_add(now_ns, RETRY_NS);
    if (rc == 0) {
        due__store_relaxed(&c->held_ns, held); /* no edge: it only grows */
        c->renew_at_ns = due__time_add(now_ns, c->info.renew_ns);
        due__submission_ring(c); /* who waits for it */
    } else if (rc == DUE_ELOST) {
        due__mirror_begin(q);
    } else if (rc == DUE_EFENCED) {
        due__commit_fence(q, DUE__OWNED_BY_ANOTHER);
    }
}

/* What came of a page.  What keeps the load from its end is said once, and whoever waits for that
 * is told; if the store is only away, it goes on. */
static void note_load(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;

    if (rc == DUE_EAGAIN || rc == DUE_ESTORE || rc == DUE_EFENCED)
        return;
    due__store_seq(&c->load_error, due__reader_loads(c) ? rc : 0); /* G2 */
    if (rc != 0 && rc != c->load_told) {
        c->load_told = rc;
        due__log(q, DUE_LOG_ERROR,
                 "%s: not all that is stored can be read (%s: %s); it is tried again and again",
                 q->name, due_error_name(rc), due_error_text(rc));
        due__submission_ring(c);
    }
    if (c->load_told != 0 && rc == 0 && !due__reader_reads(c)) {
        c->load_told = 0;
        due__log(q, DUE_LOG_INFO, "%s: all that is stored has been read after all", q->name);
    }
}

/* One more page of what is stored, if that is being read.  0, or what keeps the store from it. */
static int read_on(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return 0;
    if (!due__reader_reads(c) || (!due__reader_loads(c) && c->later)) {
        due__store_relaxed(&c->since_page, 0); /* no edge: a guess */
        return 0;
    }
    int64_t began_ns = due__monotonic_now();
    int rc = due__restore_page(q, until_ns);
    c->page_ns = due__monotonic_now() - began_ns;
    due__store_relaxed(&c->since_page, 0); /* no edge: likewise */
    if (rc == DUE_EFENCED)
        due__commit_fence(q, DUE__OWNED_BY_ANOTHER);
    note_load(q, rc);
    due__store_relaxed(&c->state, rc == DUE_EAGAIN ? DUE_ESTORE : rc); /* no edge: for stats */
    return rc;
}

/* One turn with the key.  True: another one at once. */
static bool turn(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int64_t now = due__monotonic_now();
    int64_t until = due__time_add(now, SLICE_NS);
    int64_t retry = 0;

    due__lock_acquire(&c->key); /* G1 */
    c->later = c->settings.later = false;
    if (c->share != NULL)
        c->share->sleeps_ns = INT64_MIN;
    due__commit_finds(q);
    if (!due__load_seq(&c->stopping) && c->share != NULL) /* G2 */
        due__sharing_beat(q, now, until);
    else if (!due__load_seq(&c->stopping)) /* G2 */
        renew(q, now);
    bool some = due__commit_any(c); /* else the store is not asked whether it is ready */
    bool more = due__commit_work(q, NULL, until);
    bool claims = c->share != NULL && due__sharing_turn(q, until);
    bool drops = c->share != NULL && due__sharing_retain(q, until);
    bool unsure = c->sender != DUE__SENDER_IDLE || claims;
    int rc = more && some ? due__load_relaxed(&c->state) : 0; /* no edge: ours, we have the key */
    if (rc == 0)
        rc = read_on(q, until);
    if (rc != 0 || c->later || (c->settings.later && !due__reader_reads(c)))
        retry = RETRY_NS;
    else if (unsure)
        retry = DOUBT_NS;
    if (due__monotonic_now() >= until - SLICE_NS / 2)
        retry = 0; /* it has waited */
    more = more || due__reader_reads(c) || unsure || drops;
    bool over = due__load_seq(&c->fenced) || due__load_seq(&c->stopping); /* G2 */
    if (c->share != NULL)
        c->share->sleeps_ns = due__sharing_next(q);
    if (due__load_seq(&c->stopping)) /* G2 */
        due__commit_leave(q, false);
    else
        due__lock_release(&c->key); /* G1 */
    c->retry_at_ns = retry > 0 && more ? due__time_add(now, retry) : 0;
    bool knocked = due__inbox_knocked(&c->inbox); /* G1 */
    if (over)
        return knocked; /* to be refused */
    if (c->retry_at_ns == 0)
        return more || knocked;
    return knocked && rc == 0 && !unsure; /* only what can wait was refused */
}

/* Until when the proxy sleeps, unless it is called. */
static int64_t next_turn(const struct due_queue *q)
{
    const struct due__commits *c = q->commits;

    if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping)) /* G2 */
        return DUE_FOREVER;
    bool retry = c->retry_at_ns != 0 && c->retry_at_ns < c->renew_at_ns;
    int64_t next = retry ? c->retry_at_ns : c->renew_at_ns;
    int64_t claim = c->share != NULL ? c->share->sleeps_ns : DUE_FOREVER; /* written by us alone */
    return claim < next ? claim : next;
}

void due__commit_proxy(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (;;) {
        while (!(due__load_seq(&q->state) & DUE__STOPPED) && turn(q)) /* no edge: rung after it */
            ;
        if (due__load_seq(&q->state) & DUE__STOPPED)
            return;
        if (c->share != NULL)
            due__sharing_sleep(q, next_turn(q));
        else
            due__bell_wait(&q->enqueue_bell, next_turn(q), false);
    }
}
