/* topic.c - named lines of due jobs, and whose turn it is.
 *
 * Guards     T  the timeline lock      N  the names' lock      I  set once      A  atomic
 *            O  its owner's alone
 * Lock order as in queue.h
 *
 * Edges      T1  due_topic fills the topic in, writes its pointer, then the count -> whoever reads
 *                the count sees the pointer
 *            W3  sole names the only topic in the ring: a hint for takers without the lock.  They
 *                take from its window, whose own edges (ready_line.c) make that right.  If there
 *                are several topics sole_until says until when: never later than the timeline's
 *                head is due.  A holder writes sole before it raises that; a taker reads it, then
 *                sole, then the clock.  If it was raised, the taker sees which topics have got what
 *                was due; if not, and the time has come, it goes by the lock.  If no topic is in
 *                the ring, and so nothing is shown, there is nothing to take until then: who
 *                has found the inbox quiet (I2) before it reads when sees whatever was put before,
 *                and need not come to the lock.  Of one topic that is noted by who looks in vain,
 *                until something is ready, or an earlier job comes.  What ends it is stored
 *                sequentially consistent, and so read: who puts a job in and then looks whether
 *                somebody sleeps, and who says that he sleeps and then looks in vain, do not miss
 *                each other, as they would not if both took the lock.
 *            described elsewhere: K2 clock.c
 *
 * Always     N1  a topic that is not paused and has anything shown or waiting is in the ring
 * (check)    N2  nothing is shown of a paused topic
 *            N3  what is shown stands before everything in the line
 */
#include <assert.h>
#include <string.h>

#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* Debts of those who look whether there is something. */
#define LOOKS (DUE__DEBT_FD | DUE__DEBT_TURN)

/* ---- The ring of turns ---- */

void due__sole_until(struct due_queue *q)
{
    int64_t until = q->several ? due__timeline_bound(&q->timeline) : -1;
    int64_t was = due__load_relaxed(&q->sole_until); /* W3: under the lock */

    if (until < was)
        due__store_seq(&q->sole_until, until); /* W3 */
    else if (until > was)
        due__store_release(&q->sole_until, until); /* W3 */
}

static void hint(struct due_queue *q)
{
    uint32_t sole = q->ring == NULL            ? DUE__NO_TOPIC
                    : q->ring->next == q->ring ? q->ring->number + 1u
                                               : 0;

    bool ends = sole != DUE__NO_TOPIC && due__load_relaxed(&q->sole) == DUE__NO_TOPIC && /* W3 */
                due__load_relaxed(&q->sole_until) >= 0; /* W3: both under the lock */
    if (ends)
        due__store_seq(&q->sole, sole); /* W3 */
    else
        due__store_release(&q->sole, sole); /* W3 */
    due__sole_until(q);
}

void due__sole_none(struct due_queue *q)
{
    if (due__topics_ready(q) || (q->debts & ~LOOKS) != 0 || q->pool.near)
        return;
    due__store_release(&q->sole, DUE__NO_TOPIC);                           /* W3 */
    due__store_release(&q->sole_until, due__timeline_bound(&q->timeline)); /* W3 */
}

void due__topic_list(struct due_queue *q, struct due__topic *t)
{
    if (t->listed || t->paused)
        return;
    t->listed = true;
    if (q->ring == NULL) {
        t->next = t->prev = t;
        q->ring = t;
    } else { /* last in turn: before the next one */
        t->next = q->ring;
        t->prev = q->ring->prev;
        t->prev->next = t;
        t->next->prev = t;
    }
    hint(q);
}

void due__topic_unlist(struct due_queue *q, struct due__topic *t)
{
    if (!t->listed)
        return;
    t->listed = false;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    if (q->ring == t)
        q->ring = t->next == t ? NULL : t->next;
    hint(q);
}

void due__topic_last(struct due_queue *q, struct due__topic *t)
{
    if (!t->listed || t->next == t)
        return;
    if (q->ring == t) {
        q->ring = t->next;
        return;
    }
    due__topic_unlist(q, t);
    due__topic_list(q, t);
}

/* ---- Showing ---- */

bool due__topic_recall(struct due_queue *q, struct due__topic *t)
{
    struct due__slot back[DUE__WINDOW_SLOTS];

    if (due__window_count(&t->window) == 0)
        return true;
    if (q->pool.free_count < 4) /* what is taken back must find room */
        return false;
    for (uint32_t n = due__window_recall(&t->window, back); n-- > 0;) {
        bool kept = due__line_unpop(&t->line, &q->nodes, back[n]);

        assert(kept);
        (void)kept;
        q->in_lines++;
    }
    return true;
}

void due__topic_refill(struct due_queue *q, struct due__topic *t)
{
    struct due__slot next[DUE__WINDOW_SLOTS];
    uint32_t n = 0;

    if (t->line.count == 0 || t->paused || !q->shows)
        return;
    uint32_t room = DUE__WINDOW_SLOTS - due__window_count(&t->window);
    if (room < DUE__WINDOW_SLOTS / 2)
        return; /* many at a time: each showing takes the window from those who take */
    while (t->line.count > 0 && n < room)
        next[n++] = due__line_pop(&t->line, &q->nodes);
    for (uint32_t i = 0; i < n && i <= DUE__PREFETCH_TAKES; i++)
        due__job_prefetch(&q->slab, due__slot_job(next[i]));
    due__window_publish(&t->window, next, n);
    t->shown = next[n - 1];
    q->in_lines -= n;
}

void due__topic_fresh(struct due_queue *q, struct due__topic *t)
{
    if (t->fresh || t->paused || !due__anybody_to_call(q))
        return;
    if (due__load_relaxed(&t->under_way) == DUE__AWAITED) /* W4: until it has the lock */
        return;
    t->fresh = true;
    t->fresh_next = q->fresh;
    q->fresh = t;
    q->debts |= DUE__DEBT_CALLS;
}

bool due__topics_ready(struct due_queue *q)
{
    for (uint32_t looked = 0; q->ring != NULL && looked < DUE__MOVES_MAX; looked++) {
        if (q->ring->line.count > 0 || due__window_count(&q->ring->window) > 0)
            return true;
        due__topic_unlist(q, q->ring);
    }
    return q->ring != NULL;
}

static bool topic_known(const struct due_queue *q, int topic)
{
    return topic >= 0 && (uint32_t)topic < due__load_acquire(&q->topic_count); /* T1 */
}

void due__topic_pause(struct due_queue *q, uint32_t number, bool paused)
{
    struct due__topic *it = due__topic_at(q, number);
    struct due__tenure t;

    due__enter(q, &t);
    if (paused && !it->paused) {
        while (!due__topic_recall(q, it))
            due__make_room(q);
        due__topic_unlist(q, it);
    }
    bool resumed = it->paused && !paused;
    it->paused = paused;
    if (resumed && it->line.count > 0) {
        due__topic_list(q, it);
        due__topic_fresh(q, it);
    }
    due__tenure_end(q, &t);
}

static int set_paused(struct due_queue *q, int topic, bool paused)
{
    uint32_t i = topic == DUE_ALL_TOPICS ? 0 : (uint32_t)topic;

    if (due__forked(q))
        return DUE_EFORK;
    if (due__holds_back_stored(q))
        return q->journal->hold_back(q, topic, paused, -1);
    if (topic != DUE_ALL_TOPICS && !topic_known(q, topic))
        return DUE_EINVAL;
    do
        due__topic_pause(q, i, paused);
    while (topic == DUE_ALL_TOPICS && topic_known(q, (int)++i));
    return 0;
}

int due_pause(due_queue *q, int topic)
{
    return set_paused(q, topic, true);
}

int due_resume(due_queue *q, int topic)
{
    return set_paused(q, topic, false);
}

/* ---- Names ---- */

/* Where @name is, or the empty place where it would be. */
static size_t find(const struct due_queue *q, const uint16_t *table, size_t room, const char *name)
{
    size_t at = (size_t)due__siphash(q->seed, name, strlen(name)) & (room - 1);

    while (table[at] != 0 && strcmp(due__topic_at(q, table[at])->name, name) != 0)
        at = (at + 1) & (room - 1);
    return at;
}

static size_t topic_bytes(size_t length)
{
    return sizeof(struct due__topic) + length + 1;
}

/* A new topic, its page, a larger table: made outside the lock. */
struct parts {
    struct due__topic *topic; /* O */
    struct due__topic **page; /* O */
    uint16_t *table;          /* O */
    size_t room;              /* O */
    bool no_memory;           /* O */
};

#define TOPICS_PER_REGION 64u

/* Chunks for the lines of the next topics.  They are the pool's from now on. */
static bool chunks_supply(struct due_queue *q)
{
    struct due__tenure t;
    struct due__region *chunks = due__region_new(&q->alloc, 4 * TOPICS_PER_REGION);

    if (chunks == NULL)
        return false;
    due__enter(q, &t);
    due__pool_adopt(&q->pool, chunks);
    due__tenure_end(q, &t);
    return true;
}

/* The second topic is about to be there. */
static void several_begin(struct due_queue *q)
{
    struct due__tenure t;

    due__listener_hear(&q->turns); /* K2: whose turn it is depends on what is due */
    due__enter(q, &t);
    q->several = true;
    due__sole_until(q);
    due__tenure_end(q, &t);
}

static void parts_make(struct due_queue *q, struct parts *p, const char *name, uint32_t number,
                       size_t room)
{
    size_t length = strlen(name);

    *p = (struct parts){ .topic = due__alloc_new(&q->alloc, topic_bytes(length)) };
    p->no_memory = p->topic == NULL;
    if (p->topic != NULL)
        memcpy(p->topic->name, name, length + 1);
    if (p->topic != NULL && q->events != NULL && q->events->counts) {
        p->topic->tallies = due__tallies_new(q);
        p->no_memory |= p->topic->tallies == NULL;
    }
    if (number % DUE__TOPIC_PAGE == 0) {
        p->page = due__alloc_new(&q->alloc, DUE__TOPIC_PAGE * sizeof *p->page);
        p->no_memory |= p->page == NULL;
    }
    if (number % TOPICS_PER_REGION == 0 && !chunks_supply(q))
        p->no_memory = true;
    if (number == 1)
        several_begin(q);
    if (2 * ((size_t)number + 1) > room) {
        p->room = room == 0 ? 16 : 2 * room;
        p->table = due__alloc_new(&q->alloc, p->room * sizeof *p->table);
        p->no_memory |= p->table == NULL;
    }
}

/* What was not used. */
static void parts_free(struct due_queue *q, struct parts *p)
{
    if (p->topic != NULL)
        due__tallies_free(q, p->topic->tallies);
    if (p->topic != NULL)
        due__alloc_free(&q->alloc, p->topic, topic_bytes(strlen(p->topic->name)));
    if (p->page != NULL)
        due__alloc_free(&q->alloc, p->page, DUE__TOPIC_PAGE * sizeof *p->page);
    if (p->table != NULL)
        due__alloc_free(&q->alloc, p->table, p->room * sizeof *p->table);
}

/* Under the names' lock: a larger table takes the place of the old one, which @p gets. */
static void table_grow(struct due_queue *q, struct parts *p)
{
    uint16_t *old = q->names.table;
    size_t room = q->names.room;

    for (size_t i = 0; i < room; i++) {
        if (old[i] != 0)
            p->table[find(q, p->table, p->room, due__topic_at(q, old[i])->name)] = old[i];
    }
    q->names.table = p->table;
    q->names.room = p->room;
    p->table = old;
    p->room = room;
}

/* Under the names' lock: make topic @number of the parts. */
static void topic_add(struct due_queue *q, struct parts *p, uint32_t number)
{
    struct due__topic ***page = &q->topics[number / DUE__TOPIC_PAGE];

    if (p->page != NULL)
        due__store_release(page, p->page); /* T1 */
    p->topic->number = (uint16_t)number;
    due__store_release(&(*page)[number % DUE__TOPIC_PAGE], p->topic); /* T1 */
    due__store_release(&q->topic_count, number + 1);                  /* T1 */
    if (p->table != NULL)
        table_grow(q, p);
    if (number > 0)
        q->names.table[find(q, q->names.table, q->names.room, p->topic->name)] = (uint16_t)number;
    p->topic = NULL;
    p->page = NULL;
}

static int topic_find_or_add(struct due_queue *q, const char *name)
{
    struct parts p = { .topic = NULL };
    uint32_t planned = 0;
    int rc;

    for (;;) {
        due__lock_acquire(&q->names.lock);
        uint32_t count = q->topic_count;
        size_t room = q->names.room;
        uint32_t found = room > 0 ? q->names.table[find(q, q->names.table, room, name)] : 0;
        bool fits = p.topic != NULL && planned == count;

        rc = found != 0 ? (int)found : count > DUE_TOPIC_MAX - 1 ? DUE_ELIMIT : (int)count;
        if (found == 0 && fits && rc >= 0)
            topic_add(q, &p, count);
        due__lock_release(&q->names.lock);
        parts_free(q, &p);
        if (found != 0 || fits || rc < 0)
            return rc;
        planned = count;
        parts_make(q, &p, name, count, room);
        if (p.no_memory) {
            parts_free(q, &p);
            return DUE_ENOMEM;
        }
    }
}

bool due__topics_there(const struct due_queue *q, const int *topics, size_t n)
{
    if ((topics == NULL) != (n == 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (topics[i] < 0 || (uint32_t)topics[i] >= due__load_acquire(&q->topic_count)) /* T1 */
            return false;
    }
    return true;
}

int due__topics_init(struct due_queue *q)
{
    due__lock_init(&q->names.lock);
    int rc = topic_find_or_add(q, "");
    return rc < 0 ? rc : 0;
}

void due__topics_destroy(struct due_queue *q)
{
    for (uint32_t i = 0; i < q->topic_count; i++) {
        struct due__topic *t = due__topic_at(q, i);

        due__tallies_free(q, t->tallies);
        due__measured_free(q, t->times);
        due__alloc_free(&q->alloc, t, topic_bytes(strlen(t->name)));
    }
    for (size_t i = 0; i < sizeof q->topics / sizeof q->topics[0]; i++) {
        if (q->topics[i] != NULL)
            due__alloc_free(&q->alloc, q->topics[i], DUE__TOPIC_PAGE * sizeof *q->topics[i]);
    }
    if (q->names.table != NULL)
        due__alloc_free(&q->alloc, q->names.table, q->names.room * sizeof *q->names.table);
    due__lock_destroy(&q->names.lock);
}

int due__topic_named(struct due_queue *q, const char *name)
{
    if (strnlen(name, DUE_TOPIC_LENGTH + 1) > DUE_TOPIC_LENGTH)
        return DUE_EINVAL;
    return name[0] == '\0' ? 0 : topic_find_or_add(q, name);
}

int due_topic(due_queue *q, const char *name)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: nothing hangs on it */
        return DUE_ECLOSED;
    return due__topic_named(q, name);
}

const char *due_topic_name(due_queue *q, int topic)
{
    return topic_known(q, topic) ? due__topic_at(q, (uint32_t)topic)->name : NULL;
}
