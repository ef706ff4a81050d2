/* share_retain.c - dead jobs of a shared queue that were kept for long enough, or that are too
 * many, go.
 *
 * Whoever has asked for that looks when it beats, and the store gives the turn to one of them at a
 * time.  He looks at the first to have died, and at more in each page as long as all of one have
 * gone: so a look at what is to stay costs one job.  A job is dropped if it died when it was seen
 * to have died, and of those that are too many only while they are; so one that was kicked stays,
 * and two who look at once do not drop more than one would.
 *
 * What it takes long to hear the end of is seen through like any change of what is not here.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 *
 * Edges      described elsewhere: G2 sender.c
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/share.h"

static bool is_over(const struct due_queue *q, const due_record *r)
{
    return q->dead_keep_ns > 0 && due__time_add(r->died_ns, q->dead_keep_ns) <= due__sharing_mid(q);
}

/* It goes, if it is to; behind one that is to stay are those that died later.  One whose topic can
 * have no number here is left to others. */
static int note_dead(void *ctx, const due_record *r)
{
    struct due_queue *q = ctx;
    struct due__sharing *sh = q->commits->share;
    struct due__retention *it = &sh->retention;
    int topic = due__topic_named(q, r->topic);
    bool over = is_over(q, r);

    if (topic < 0)
        return 0;
    it->last = it->last || (!over && q->dead_max == 0);
    if (it->last)
        return 0;
    if (sh->looks != NULL && !due__look_keep(q, r, topic, &sh->looks[sh->n_edits]))
        return DUE_ENOMEM;
    sh->many[sh->n_edits++] = (due_change){
        .kind = DUE_CHANGE_DROP,
        .was_ns = r->died_ns,
        .was_dead = 1,
        .dead_max = over ? 0 : q->dead_max,
        .record = { .id = r->id, .topic = due_topic_name(q, topic), .priority = r->priority }
    };
    return 0;
}

/* False: there is no memory. */
static bool prepare(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;

    if (sh->many == NULL)
        sh->many = due__alloc_new(&q->alloc, sh->room * sizeof *sh->many);
    return sh->many != NULL && due__looks_make(q);
}

static int gather(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    struct due__retention *it = &sh->retention;
    size_t room = sh->looks != NULL && sh->room > DUE__LOOKS_KEPT ? DUE__LOOKS_KEPT : sh->room;

    it->last = false;
    sh->n_edits = 0;
    sh->edits = sh->many;
    return due__sharing_page(q, &it->pages, true, it->most < room ? it->most : room, note_dead, q,
                             until_ns);
}

bool due__sharing_retain(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__retention *it = &c->share->retention;

    if (!it->turn || due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return false;
    if (!due__sharing_settle(q, until_ns) || due__sender_unsure(c) || !it->turn)
        return it->turn; /* one exchange at a time */
    int rc = prepare(q) ? gather(q, until_ns) : DUE_ENOMEM;
    if (rc != 0 || c->share->n_edits == 0) { /* or none that can be read, and more behind them */
        due__sharing_retained(q, rc);
        return it->turn;
    }
    rc = due__sharing_ask_edits(q, until_ns);
    it->sent = rc == DUE_EINDOUBT;
    if (!it->sent)
        due__sharing_retained(q, rc);
    return it->turn;
}
