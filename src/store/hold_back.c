/* hold_back.c - who pauses or limits topics of a stored queue waits until the store has it.
 *
 * The line is topic_settings.c's, whose part it is to tell the store.  Who enters it knocks, and
 * sees to it that somebody has the key.  Whoever waits no more takes his own out of it, unless that
 * has begun: then it is seen through, and the answer is DUE_EINDOUBT.
 *
 * Guards     D  the calls' lock
 *
 * Edges      described elsewhere: G1 sender.c, T1 topic.c
 */
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/limit.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/topic_settings.h"

static void enter_line(struct due__commits *c, struct due__setting *s)
{
    struct due__settings *g = &c->settings;

    due__lock_acquire(&c->calls);
    if (g->last != NULL)
        g->last->next = s;
    else
        g->first = s;
    g->last = s;
    uint32_t left = due__load_relaxed(&g->left); /* G1: under the lock */
    due__store_seq(&g->left, left + 1);          /* G1 */
    due__lock_release(&c->calls);
    due__inbox_knock(&c->inbox); /* G1 */
}

/* Under the calls' lock: it leaves the line, in which it stands. */
static void leave_line(struct due__settings *g, struct due__setting *s)
{
    struct due__setting **at = &g->first;
    struct due__setting *before = NULL;

    while (*at != s) {
        before = *at;
        at = &before->next;
    }
    *at = s->next;
    if (g->last == s)
        g->last = before;
    uint32_t left = due__load_relaxed(&g->left); /* G1: under the lock */
    due__store_seq(&g->left, left - 1);          /* G1 */
}

/* The call waits no more.  True: it was not over, nor begun, and is as if it had not been.
 * *@doubt: it was begun, and will be seen to. */
static bool give_up(struct due__commits *c, struct due__setting *s, struct due__submission *a,
                    bool *doubt)
{
    struct due__settings *g = &c->settings;
    bool back = false;

    due__lock_acquire(&c->calls);
    *doubt = a->left > 0 && g->begun && g->first == s;
    back = a->left > 0 && !*doubt;
    if (back)
        leave_line(g, s);
    if (*doubt)
        s->a = NULL;
    if (a->left > 0)
        due__submission_less(a);
    due__lock_release(&c->calls);
    return back;
}

static int submit(struct due_queue *q, const struct due__setting *wanted, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__setting *s = due__alloc_new(&q->alloc, sizeof *s);
    struct due__submission a;
    bool doubt;

    if (s == NULL)
        return DUE_ENOMEM;
    *s = *wanted;
    int rc =
        due__limit_make(q, (int)s->topic, s->held_max > 0 ? (size_t)s->held_max : 0, &s->parts);
    if (rc == 0 && !due__submission_begin(q, &a, 1))
        rc = DUE_ENOMEM;
    if (rc != 0) {
        due__setting_free(q, s);
        return rc;
    }
    s->a = &a;
    enter_line(c, s);
    due__commit_go(q, &a, until_ns);
    due__submission_wait(c, &a, until_ns);
    bool back = give_up(c, s, &a, &doubt);
    rc = back ? due__commit_excuse(q) : doubt ? DUE_EINDOUBT : a.rc;
    if (back)
        due__setting_free(q, s);
    due__submission_end(q, &a);
    return rc;
}

int due__settings_hold_back(struct due_queue *q, int topic, int64_t paused, int64_t held_max)
{
    struct due__deadline by = { 0 };
    bool all = topic == DUE_ALL_TOPICS;

    if (!all && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = 0;
    if (all) /* there may be topics that are known by their jobs only */
        rc = q->journal->loaded(q, &by);
    struct due__setting wanted = {
        .topic = all ? 0 : (uint32_t)topic, .count = 1, .paused = paused, .held_max = held_max
    };
    if (all)
        wanted.count = due__load_acquire(&q->topic_count); /* T1 */
    if (rc == 0)
        rc = submit(q, &wanted, due__deadline_at(q, &by));
    due__inside_end(q, inside);
    return rc;
}
