/* takings_left.c - takings that were left by their takers: the list of them, and what becomes of
 * those that nobody comes back for (takings.c).
 *
 * Guards     D  the calls' lock (sender.c)      A  atomic, see Edges
 *
 * Edges      described elsewhere: C1 inside.c, Q7 takings.c
 */
#include <pthread.h>

#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/taking_inside.h"

/* ---- The list ---- */

void due__takings_add(struct due__commits *c, struct due__taking *t)
{
    bool done = t->submission.left == 0;

    t->submission.in_list = true;
    t->next = c->takings;
    c->takings = t;
    due__store_seq(&c->takings_ready, c->takings_ready + done);          /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way + !done); /* Q7 */
}

struct due__taking *due__takings_take(struct due__commits *c, struct due__taking **at)
{
    struct due__taking *t = *at;
    bool done = t->submission.left == 0;

    *at = t->next;
    t->next = NULL;
    t->submission.in_list = false;
    t->was_left = true;
    due__store_seq(&c->takings_ready, c->takings_ready - done);          /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way - !done); /* Q7 */
    return t;
}

void due__taking_told(struct due__commits *c)
{
    due__store_seq(&c->takings_ready, c->takings_ready + 1);         /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way - 1); /* Q7 */
    c->told = true;
}

void due__takings_call(struct due_queue *q)
{
    due__add_seq(&q->commits->landed, 1); /* Q7 */
    due__wake_consumers(q);
}

/* ---- What nobody comes back for ---- */

/* A round that nobody has had. */
static void discard_round(struct due_queue *q, struct due__taking *t, size_t i)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (q->hooks.on_discard != NULL)
        q->hooks.on_discard(q->hooks.discard_ctx, &t->jobs[i]);
    pthread_setcancelstate(cancel, NULL);
    due__rounds_end(q, 1);
    due_job_done(&t->jobs[i]);
}

bool due__taking_give_plain(struct due_queue *q, struct due__taking *t)
{
    bool back = false;

    (void)due__taking_sort_out(q, t);
    for (size_t i = 0; i < t->n; i++) {
        if (due__taking_is_round(t, i) || !due__taking_landed(q->commits, t, i))
            continue;
        due__taking_had(q->commits, t, i);
        due__taking_give_back(q, t, i);
        back = true;
    }
    t->submission.keeps = false;
    t->submission.polls = true;
    return back;
}

bool due__taking_return(struct due_queue *q, struct due__taking *t)
{
    bool back = false;

    (void)due__taking_sort_out(q, t);
    for (size_t i = 0; i < t->n; i++) {
        if (!due__taking_landed(q->commits, t, i))
            continue;
        due__taking_had(q->commits, t, i);
        if (due__taking_is_round(t, i)) {
            discard_round(q, t, i);
            continue;
        }
        due__taking_give_back(q, t, i);
        back = true;
    }
    due__taking_end(q, t);
    return back;
}

/* One that has landed: any, or one that nobody comes back for. */
static struct due__taking *list_landed(struct due__commits *c, bool any)
{
    struct due__taking **at = &c->takings;
    struct due__taking *t = NULL;

    due__lock_acquire(&c->calls);
    while (*at != NULL && ((*at)->submission.left > 0 || ((*at)->submission.polls && !any)))
        at = &(*at)->next;
    if (*at != NULL)
        t = due__takings_take(c, at);
    due__lock_release(&c->calls);
    return t;
}

/* Its rounds stay, if any has landed, unless the queue ends. */
static bool keep_rounds(struct due_queue *q, struct due__taking *t)
{
    struct due__commits *c = q->commits;

    (void)due__taking_give_plain(q, t);
    due__lock_acquire(&c->calls);
    bool may = !c->takings_ended && !due__taking_empty(t);
    if (may)
        due__takings_add(c, t);
    due__lock_release(&c->calls);
    return may;
}

static bool return_one(struct due_queue *q, struct due__taking *t)
{
    due__inside_enter(q); /* C1 of inside.c */
    return due__taking_return(q, t);
}

void due__takings_landed(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__taking *t;

    if (!c->told)
        return;
    c->told = false;
    while ((t = list_landed(c, false)) != NULL) {
        due__inside_enter(q); /* C1 of inside.c */
        if (t->submission.keeps && keep_rounds(q, t))
            due__inside_leave(q); /* likewise */
        else
            (void)due__taking_return(q, t);
    }
    due__takings_call(q);
}

bool due__takings_return(struct due_queue *q)
{
    struct due__taking *t;
    bool any = false;

    while ((t = list_landed(q->commits, true)) != NULL) {
        return_one(q, t);
        any = true;
    }
    return any;
}

/* One that is under way. */
static struct due__taking *list_first(struct due__commits *c)
{
    struct due__taking *t = NULL;

    due__lock_acquire(&c->calls);
    c->takings_ended = true;
    if (c->takings != NULL)
        t = due__takings_take(c, &c->takings);
    due__lock_release(&c->calls);
    return t;
}

bool due__takings_end(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__taking *t;
    bool back = false;

    while ((t = list_first(c)) != NULL) {
        due__submission_settle(c, &t->submission);
        back |= return_one(q, t);
    }
    return back;
}

void due__takings_free(struct due_queue *q)
{
    due__taking_drop_all(q, q->commits->takings);
    due__taking_drop_all(q, q->commits->spare_taking);
}
