/* waiter.c - who waits, who is called, and who owns the timer.
 *
 * A consumer that finds nothing parks: under the timeline lock it looks once more, then stands in
 * line and sleeps on its own bell.  Jobs become due under the same lock, so whoever shows one sees
 * everybody who is parked, takes the first that fits out of line, and rings it after the release.
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
 *
 * Always     N1  a waiter is in line exactly while linked; the lead is linked or awake
 * (check)    N2  while anybody is linked on a kernel clock, somebody leads; the deputy is linked
 *            N3  the lead is awake (armed DUE__AWAKE), or sleeps until armed at the latest, and the
 *                timeline's head is not earlier
 */
#include "core.h"

#include "atomic.h"

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
    due__leave(q, &t);
    if (w != NULL)
        return w;

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
    due__leave(q, &t);
    return w;
}

void due__waiter_put(struct due_queue *q, struct due__waiter *w)
{
    struct due__shard *mine = due__shard_mine(&q->slab);
    struct due__tenure t;

    due__store_relaxed(&w->called, 0);         /* W2: it is out of line */
    w = due__xchg_seq(&mine->spare_waiter, w); /* W1 */
    if (w == NULL)
        return;
    due__enter(q, &t);
    w->line_next = q->free;
    q->free = w;
    due__leave(q, &t);
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
        q->owed |= DUE__OWED_TURN;
    arm(q, w);
    if (q->proxies == DUE_PROXIES_ALWAYS && due__tenure_room(t))
        due__tenure_ring(t, &q->dequeue_bell);
    if (!q->beating && DUE_HEARTBEAT) {
        q->beating = true;
        q->owed |= DUE__OWED_WORKER;
    }
}

/* @w is awake: out of line if it was not called; as the leader it owns the timer still. */
void due__unpark_job(struct due_queue *q, struct due__waiter *w)
{
    if (w->linked)
        unlink_from(q, w);
    if (q->lead == w)
        q->armed = DUE__AWAKE;
    w->on_alarm = false;
}

/* Who is to lead next: the deputy, or who is first in line. */
static struct due__waiter *heir(const struct due_queue *q)
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

/* Take @w out of line, to be rung after the release.  If it leads, it has to come and pass the lead
 * on, unless that can be done for it. */
void due__call(struct due_queue *q, struct due__tenure *t, struct due__waiter *w, uint32_t topic)
{
    struct due__bell *bell = &w->bell;
    uint32_t called = topic != DUE__NO_TOPIC ? topic + 1 : DUE__CALLED_LEAD;

    unlink_from(q, w);
    if (q->lead == w) {
        struct due__waiter *next = heir(q);
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
    struct due__waiter *next = heir(q);
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

    while (now < at_ns && !due__bell_rung(&w->bell)) {
        due__relax();
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
