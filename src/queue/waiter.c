/* waiter.c - who waits, who is called, and who owns the timer.
 *
 * A consumer that finds nothing parks: under the timeline lock it looks once more, then stands in
 * line and sleeps on its own bell.  Jobs become due under the same lock, so whoever shows one sees
 * everybody who is parked, takes the first that fits out of line, and rings it after the release.
 *
 * Of several jobs of a topic that come at once only one is called for.  Whoever was called is under
 * way until it has had a job, or has come to the lock.  What is shown meanwhile is not called for;
 * instead the one under way is awaited: before it returns to its caller it comes to the lock and
 * calls the next, if anything is left.  So a burst costs who puts it in one ring.
 *
 * One of the parked consumers leads: it sleeps only until the timeline's head is due.  Whoever puts
 * an earlier head in rings it.  A leader that leaves passes the lead on; it is the owner of the
 * timer until it has done so.  Another, the deputy, sleeps until the second job is due: when the
 * leader leaves with the head, the deputy takes over without being woken for it.
 *
 * Guards     T  the timeline lock      A  atomic, see Edges      I  set at open
 *
 * Edges      W1  put leaves a waiter in the shard's spare place -> get takes it from there
 *            W2  call writes the topic, then rings -> the waiter wakes, then reads the topic
 *            W4  the mark of who is under way for a topic.  Call sets it under the lock, before W2.
 *                A holder that has shown a job swaps UNDER_WAY for AWAITED; who has had one without
 *                the lock swaps UNDER_WAY for NOBODY.  It is one word, so one of the two fails: the
 *                holder finds NOBODY, and calls, or the other finds AWAITED, and comes to the lock.
 *                AWAITED ends under the lock only, and then the topic is looked at.
 *            described elsewhere: K2 clock.c
 *
 * Always     N1  a waiter is in line exactly while linked; the lead is linked or awake
 * (check)    N2  while anybody is linked on a kernel clock, somebody leads; the deputy is linked
 *            N3  the lead is awake (armed DUE__AWAKE), or sleeps until armed at the latest, and the
 *                timeline's head is not earlier
 *            N4  at each release, for each topic that is not paused: something waits in it, and
 *                somebody is parked who takes it: then one is under way for it, and AWAITED unless
 *                no more waits than the one slot it may take
 */
#include "os/atomic.h"
#include "queue/queue.h"

/* ---- Waiters are made once and used again ---- */

struct due__waiter *due__waiter_get(struct due_queue *q)
{
    struct due__shard *mine = due__shard_mine(&q->slab);
    struct due__waiter *w = due__xchg_seq(&mine->spare_waiter, NULL); /* W1 */
    struct due__tenure t;

    if (w != NULL)
        return w;
    due__enter(q, &t);
    w = q->free;
    if (w != NULL)
        q->free = w->line_next;
    due__tenure_end(q, &t);
    if (w != NULL)
        return w;

    due__listener_hear(&q->turns); /* K2: before it is used, and once is enough */
    w = due__alloc_new(&q->alloc, sizeof *w);
    if (w == NULL)
        return NULL;
    if (due__bell_init(&w->bell) != 0) {
        due__alloc_free(&q->alloc, w, sizeof *w);
        return NULL;
    }
    w->hand = DUE__NO_JOB;
    due__enter(q, &t);
    w->made_next = q->made;
    q->made = w;
    due__tenure_end(q, &t);
    return w;
}

void due__waiter_put(struct due_queue *q, struct due__waiter *w)
{
    struct due__shard *mine = due__shard_mine(&q->slab);
    struct due__tenure t;

    due__store_relaxed(&w->called, 0);         /* W2: it is out of line */
    w->quit = NULL;                            /* it may be gone before @w is used again */
    w = due__xchg_seq(&mine->spare_waiter, w); /* W1 */
    if (w == NULL)
        return;
    due__enter(q, &t);
    due__waiter_free(q, w);
    due__tenure_end(q, &t);
}

/* ---- Lines ---- */

void due__waiters_add(struct due__waiters *list, struct due__waiter *w)
{
    w->line_next = NULL;
    w->line_prev = list->last;
    if (list->last != NULL)
        list->last->line_next = w;
    else
        list->first = w;
    list->last = w;
}

void due__waiters_add_first(struct due__waiters *list, struct due__waiter *w)
{
    w->line_prev = NULL;
    w->line_next = list->first;
    if (list->first != NULL)
        list->first->line_prev = w;
    else
        list->last = w;
    list->first = w;
}

void due__waiters_remove(struct due__waiters *list, struct due__waiter *w)
{
    if (w->line_prev != NULL)
        w->line_prev->line_next = w->line_next;
    else
        list->first = w->line_next;
    if (w->line_next != NULL)
        w->line_next->line_prev = w->line_prev;
    else
        list->last = w->line_prev;
}

static struct due__waiters *line_of(struct due_queue *q, const struct due__waiter *w)
{
    return w->topic_count == 1 ? &due__topic_at(q, (uint32_t)w->topics[0])->waiters : &q->waiters;
}

static void link_in(struct due_queue *q, struct due__waiter *w)
{
    due__waiters_add(line_of(q, w), w);
    w->all_next = NULL;
    w->all_prev = q->all_last;
    if (q->all_last != NULL)
        q->all_last->all_next = w;
    else
        q->all = w;
    q->all_last = w;
    w->linked = true;
}

static void unlink_from(struct due_queue *q, struct due__waiter *w)
{
    due__waiters_remove(line_of(q, w), w);
    if (w->all_prev != NULL)
        w->all_prev->all_next = w->all_next;
    else
        q->all = w->all_next;
    if (w->all_next != NULL)
        w->all_next->all_prev = w->all_prev;
    else
        q->all_last = w->all_prev;
    w->linked = false;
    if (q->deputy == w)
        q->deputy = NULL;
}

static bool takes(const struct due__waiter *w, uint32_t topic)
{
    if (w->topics == NULL)
        return true;
    for (size_t i = 0; i < w->topic_count; i++) {
        if (w->topics[i] == (int)topic)
            return true;
    }
    return false;
}

/* The first parked of those who take @t. */
struct due__waiter *due__waiter_for(const struct due_queue *q, const struct due__topic *t)
{
    struct due__waiter *own = t->waiters.first;
    struct due__waiter *w = q->waiters.first;

    while (w != NULL && !takes(w, t->number))
        w = w->line_next;
    if (w == NULL || (own != NULL && own->ticket < w->ticket))
        return own;
    return w;
}

/* ---- The timer ---- */

/* Its bell, or the queue's alarm if that is what it sleeps on. */
struct due__bell *due__lead_bell(struct due_queue *q)
{
    return q->lead->on_alarm ? &q->alarm : &q->lead->bell;
}

/* Until when the timer's owner may sleep: dead heads are dropped on the way.  If the head is not
 * exact yet it may be too early, never too late. */
static int64_t next_head(struct due_queue *q)
{
    struct due__timeline *tl = &q->timeline;
    struct due__slot s;
    uint64_t w;

    for (uint32_t dropped = 0; dropped < DUE__MOVES_MAX; dropped++) {
        if (!due__head_ready(q))
            break;
        if (!due__timeline_head(tl, &s) || due__slot_alive(&q->slab, s, &w))
            break;
        due__timeline_pop(tl);
    }
    return due__timeline_bound(tl);
}

static bool callers_lead(const struct due_queue *q)
{
    return q->clock.manual == NULL && q->proxies != DUE_PROXIES_ALWAYS;
}

/* When the second job will be due, as far as can be told at once; DUE_FOREVER: it cannot.  A guess:
 * whoever takes over the lead is asked again. */
static int64_t second_due(const struct due_queue *q)
{
    struct due__slot s;
    uint64_t w;

    if (!due__timeline_second(&q->timeline, &s) || !due__slot_alive(&q->slab, s, &w))
        return DUE_FOREVER;
    return due__slot_deadline(s);
}

/* The timer's owner, or who is to own it next, sleeps until a job is due. */
static void arm(struct due_queue *q, struct due__waiter *w)
{
    w->wakes_ns = w->until_ns;
    if (!callers_lead(q))
        return;
    if (q->lead == NULL)
        q->lead = w;
    if (q->lead == w) {
        q->armed = next_head(q);
        w->on_alarm = q->alarm.fd >= 0;
        if (q->armed < w->wakes_ns)
            w->wakes_ns = q->armed;
    } else if (q->deputy == NULL && q->alarm.fd < 0) {
        int64_t second = second_due(q);

        if (second < w->wakes_ns) {
            q->deputy = w;
            w->wakes_ns = second;
        }
    }
}

/* @w goes on waiting, or begins to: stand in line, lead if nobody does, arm. */
void due__park_job(struct due_queue *q, struct due__tenure *t, struct due__waiter *w)
{
    due__store_relaxed(&w->called, 0); /* W2: nobody can call it before it is linked */
    w->timed_out = false;
    w->ticket = q->tickets++;
    link_in(q, w);
    if (q->clock.manual != NULL)
        q->debts |= DUE__DEBT_TURN;
    arm(q, w);
    if (q->proxies == DUE_PROXIES_ALWAYS && due__tenure_room(t))
        due__tenure_ring(t, &q->dequeue_bell);
    if (!q->beating && DUE_HEARTBEAT) {
        q->beating = true;
        q->debts |= DUE__DEBT_WORKER;
    }
}

/* Under the lock: if @w was called it is under way no more.  What it does not take is for another,
 * so before the release the topic is looked at. */
static void come(struct due_queue *q, struct due__waiter *w)
{
    uint32_t called = due__load_acquire(&w->called) & ~DUE__CALLED_LEAD; /* W2 */

    due__store_relaxed(&w->called, 0); /* W2: it is out of line, nobody else writes this */
    if (called == 0)
        return;
    struct due__topic *t = due__topic_at(q, called - 1);
    due__store_relaxed(&t->under_way, DUE__NOBODY); /* W4: under the lock */
    due__topic_fresh(q, t);
}

/* @w is awake: out of line if it was not called, no more under way if it was; as the leader it owns
 * the timer still. */
void due__unpark_job(struct due_queue *q, struct due__waiter *w)
{
    if (w->linked)
        unlink_from(q, w);
    if (q->lead == w)
        q->armed = DUE__AWAKE;
    w->on_alarm = false;
    come(q, w);
}

/* Who is to lead next: the deputy, or who is first in line. */
static struct due__waiter *successor(const struct due_queue *q)
{
    return q->deputy != NULL ? q->deputy : q->all;
}

/* Need @w, who is to lead, not be disturbed: does it wake by itself before the head is due?  Then
 * *@armed is when. */
static bool wakes_in_time(struct due_queue *q, const struct due__waiter *w, int64_t *armed)
{
    int64_t head = next_head(q);

    *armed = q->alarm.fd < 0 ? w->wakes_ns : DUE_FOREVER;
    return head >= *armed;
}

static void set_lead(struct due_queue *q, struct due__waiter *w, int64_t armed)
{
    q->lead = w;
    q->armed = armed;
    if (q->deputy == w)
        q->deputy = NULL;
}

/* ---- Calling ---- */

/* @w was called for a topic and has had a job of it without the lock.  Nobody need know, unless
 * somebody relies on its calling the next. */
void due__arrive(struct due_queue *q, struct due__waiter *w)
{
    struct due__topic *t = due__topic_at(q, due__load_acquire(&w->called) - 1); /* W2 */
    uint32_t under_way = DUE__UNDER_WAY;
    struct due__tenure tenure;

    if (due__cas_acq_rel(&t->under_way, &under_way, DUE__NOBODY)) /* W4 */
        return;
    due__enter(q, &tenure);
    due__unpark_job(q, w);
    due__tenure_end(q, &tenure);
}

/* Slots that wait in @t, dead ones included: takers without the lock may lower it meanwhile. */
static size_t waiting_in(const struct due__topic *t)
{
    return t->line.count + due__window_count(&t->window);
}

bool due__called_for(const struct due_queue *q, const struct due__topic *t)
{
    uint32_t under_way = due__load_acquire(&t->under_way); /* W4: before what it took is missed */
    size_t n = waiting_in(t);

    return under_way == DUE__AWAITED || n == 0 || t->paused || due__waiter_for(q, t) == NULL ||
           (under_way == DUE__UNDER_WAY && n == 1);
}

/* What lies in lines for somebody who is parked, and will be called; not what one who was called
 * comes for. */
size_t due__lies_for_parked(const struct due_queue *q)
{
    const struct due__topic *t = q->ring;
    size_t n = 0;

    while (t != NULL) {
        bool comes = due__load_acquire(&t->under_way) != 0; /* W4: a guess */
        size_t lies = waiting_in(t);

        if (!t->paused && due__waiter_for(q, t) != NULL)
            n += lies - (comes && lies > 0);
        t = t->next != q->ring ? t->next : NULL;
    }
    return n;
}

/* One is called for @t.  If there is more than it may take, and somebody else who takes it, it has
 * to pass the call on. */
static void mark(const struct due_queue *q, struct due__topic *t)
{
    bool more = waiting_in(t) > 1 && due__waiter_for(q, t) != NULL;

    due__store_relaxed(&t->under_way, more ? DUE__AWAITED : DUE__UNDER_WAY); /* W4 */
}

/* Is one under way for @t?  Then it will pass the call on. */
static bool awaited(struct due__topic *t)
{
    uint32_t under_way = DUE__UNDER_WAY;

    return due__cas_acq_rel(&t->under_way, &under_way, DUE__AWAITED) || /* W4 */
           under_way == DUE__AWAITED;
}

bool due__call_for(struct due_queue *q, struct due__tenure *t, struct due__topic *topic)
{
    struct due__waiter *w;

    if (topic->paused || waiting_in(topic) == 0 || (w = due__waiter_for(q, topic)) == NULL ||
        awaited(topic))
        return true;
    if (!due__tenure_room(t))
        return false;
    due__topic_refill(q, topic); /* so that it finds its job without the lock */
    due__call(q, t, w, topic);
    return true;
}

/* Take @w out of line, to be rung after the release.  If it leads, it has to come and pass the lead
 * on, unless that can be done for it. */
void due__call(struct due_queue *q, struct due__tenure *t, struct due__waiter *w,
               struct due__topic *topic)
{
    struct due__bell *bell = &w->bell;
    uint32_t called = topic != NULL ? topic->number + 1u : DUE__CALLED_LEAD;

    unlink_from(q, w);
    if (topic != NULL)
        mark(q, topic); /* W4: before it can come */
    if (q->lead == w) {
        struct due__waiter *next = successor(q);
        int64_t armed = DUE__AWAKE;

        bell = due__lead_bell(q);
        if (!w->on_alarm && (next == NULL || wakes_in_time(q, next, &armed))) {
            set_lead(q, next, armed);
        } else {
            q->armed = DUE__AWAKE;
            called |= DUE__CALLED_LEAD;
        }
    }
    due__store_release(&w->called, called); /* W2 */
    due__tenure_ring(t, bell);
}

/* The worker proxy leads: always, when every operation goes through its proxy. */
void due__arm_worker(struct due_queue *q)
{
    q->lead = &q->worker;
    q->armed = next_head(q);
    q->worker.on_alarm = q->alarm.fd >= 0;
}

/* The lead leaves.  The next one is rung only if the head comes before it would wake by itself. */
void due__pass_lead(struct due_queue *q, struct due__tenure *t)
{
    struct due__waiter *next = successor(q);
    int64_t armed = DUE__AWAKE; /* also when there is nobody: then a new head owes nothing */

    if (next != NULL && !wakes_in_time(q, next, &armed)) {
        armed = DUE__AWAKE;
        due__tenure_ring(t, &next->bell);
    }
    set_lead(q, next, armed);
}

/* Spin until rung or @at_ns.  Answers the clock, or 0 if it was rung before. */
static int64_t spin(struct due__waiter *w, int64_t at_ns)
{
    int64_t now = due__monotonic_now();

    while (now < at_ns && !due__bell_take(&w->bell)) {
        due__spin_pause(true);
        now = due__monotonic_now();
    }
    return now >= at_ns ? now : 0;
}

/* Sleep until rung or it is time.  @lead and @at_ns, when it is to wake, as they were under the
 * lock.  Who is to spin wakes early, and looks at the queue before it spins: then all that it needs
 * is at hand when the job is due.  Answers the clock if it was read at last, or 0. */
int64_t due__sleep(struct due_queue *q, struct due__waiter *w, bool lead, int64_t at_ns,
                   int64_t until_ns)
{
    bool timed = at_ns < until_ns;

    if (q->clock.manual != NULL) {
        due__bell_wait(&w->bell, DUE_FOREVER, false);
    } else if (lead && q->alarm.fd >= 0) {
        due__alarm_wait(&q->alarm, at_ns, until_ns);
    } else if (!timed || q->spin_ns == 0) {
        due__bell_wait(&w->bell, at_ns, timed);
    } else if (due__monotonic_now() < at_ns - q->spin_ns) {
        due__bell_wait(&w->bell, at_ns - q->spin_ns, true);
    } else {
        return spin(w, at_ns);
    }
    return 0;
}
