/* share_pages.c - a call of a shared queue is about many jobs: those of a topic, or the dead.
 *
 * The store shows them page by page, by time and id, and what is to be changed of a page is one
 * exchange.  So no call keeps the store, or the key, for longer than a batch, however much there
 * is; the verbs ask for page after page (api/pages.c).  A job that somebody has, or that changes
 * while its page is looked at, is left as it is.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/share.h"

/* A page under way. */
struct page_turned {
    struct due_queue *q;  /* O */
    struct due__ask *ask; /* O */
    bool shows;           /* O  those that are gathered are shown once they have gone */
    size_t limited;       /* O  so many others are to be kicked by themselves */
};

/* ---- Topics ---- */

struct ready {
    struct due__ask *ask; /* O */
    int64_t oldest_ns;    /* O  of those that are due */
};

static int note_topic(void *ctx, const struct due_census_topic *t)
{
    struct ready *ready = ctx;
    int topic = due__topic_named(ready->ask->queue, t->topic);

    if (topic >= 0 && t->oldest_ns < ready->oldest_ns) {
        ready->oldest_ns = t->oldest_ns;
        ready->ask->topic = topic;
    }
    return topic < 0 ? topic : 0;
}

static int ask_topics(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct ready ready = { .ask = ask, .oldest_ns = DUE_FOREVER };
    struct due_census_all all;

    ask->queue = q;
    ask->topic = -1;
    return c->share->verbs->census(c->store, &all, note_topic, &ready, until_ns);
}

/* ---- One page ---- */

int due__sharing_page(struct due_queue *q, struct due__pages *pages, bool dead, size_t max,
                      due_store_visit *visit, void *ctx, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due_page at = { .topic = dead ? NULL : due_topic_name(q, pages->topic),
                           .from_ns = pages->from_ns,
                           .from = pages->from };
    int rc = c->share->verbs->page(c->store, &at, max, visit, ctx, until_ns);

    if (rc < 0)
        return rc;
    pages->from_ns = at.from_ns;
    pages->from = at.from;
    pages->over = rc == 0;
    return 0;
}

static int note_info(void *ctx, const due_record *r)
{
    struct page_turned *p = ctx;
    int topic = due__topic_named(p->q, r->topic);

    if (topic < 0)
        return topic;
    p->ask->info[p->ask->got++] = (due_info){ .id = r->id,
                                              .deadline_ns = r->until_ns,
                                              .len = r->len,
                                              .topic = topic,
                                              .priority = r->priority };
    return 0;
}

static int ask_page(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    size_t room = q->commits->share->room;
    struct page_turned p = { .q = q, .ask = ask };
    size_t most = ask->max < room ? ask->max : room;

    ask->got = 0;
    return due__sharing_page(q, ask->pages, false, most, note_info, &p, until_ns);
}

/* ---- Listing ---- */

/* The listing @cursor; 0: a new one, in place of the one that was used least lately. */
static struct due__listing *listing_of(struct due__sharing *sh, uint64_t cursor)
{
    struct due__listing *oldest = &sh->listings[0];

    for (size_t i = 0; i < DUE__LISTINGS; i++) {
        struct due__listing *l = &sh->listings[i];

        if (cursor != 0 && l->cursor == cursor)
            return l;
        if (l->used < oldest->used)
            oldest = l;
    }
    if (cursor != 0)
        return NULL;
    *oldest = (struct due__listing){ .cursor = ++sh->cursor, .pages = { .from_ns = INT64_MIN } };
    return oldest;
}

/* Pages until something was shown, or the time is up, or there are no more. */
static int ask_list(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    int rc = ask->cursor == 0 ? ask_topics(q, ask, until_ns) : 0;

    if (rc != 0)
        return rc;
    struct due__listing *l = listing_of(sh, ask->cursor);
    if (l == NULL)
        return DUE_EINVAL;
    l->used = ++sh->listing;
    ask->cursor = l->cursor;
    ask->got = 0;
    ask->more = !l->over;
    if (l->over)
        return 0;
    ask->pages = &l->pages;
    rc = ask_page(q, ask, until_ns);
    if (rc != 0 || !l->pages.over)
        return rc;
    l->over = due_topic_name(q, l->pages.topic + 1) == NULL;
    l->pages = (struct due__pages){ .topic = l->pages.topic + 1, .from_ns = INT64_MIN };
    return 0;
}

/* ---- Changing all of a page ---- */

/* What is to become of a job that was shown.  False: nothing. */
static bool change_of(const struct page_turned *p, const due_record *r, int topic, due_change *ch)
{
    const struct due__ask *ask = p->ask;

    if (ask->pages->topic != DUE_ALL_TOPICS && ask->pages->topic != topic)
        return false;
    if (ask->kind != DUE__ASK_KICK_ALL) {
        *ch = (due_change){ .kind = DUE_CHANGE_DROP,
                            .was_dead = ask->kind == DUE__ASK_CLEAR_DEAD,
                            .record = { .id = r->id, .priority = r->priority } };
        return true;
    }
    return r->died_ns <= ask->at_ns && due__sharing_kick(r, ask->at_ns, ch);
}

/* To be kicked, and not in the exchange: the content of each has to be another. */
static bool is_limited(const struct due__ask *ask, const due_record *r, int topic)
{
    return ask->kind == DUE__ASK_KICK_ALL && r->died_ns <= ask->at_ns &&
           (r->ttl_ns != 0 || r->expires_ns != 0) &&
           (ask->pages->topic == DUE_ALL_TOPICS || ask->pages->topic == topic);
}

static int gather(void *ctx, const due_record *r)
{
    struct page_turned *p = ctx;
    struct due__sharing *sh = p->q->commits->share;
    int topic = due__topic_named(p->q, r->topic);
    due_change *ch = &sh->many[sh->n_edits];

    if (topic < 0)
        return topic;
    if (is_limited(p->ask, r, topic))
        sh->many[sh->room - ++p->limited].record.id = r->id; /* from the end on: there is room */
    if (!change_of(p, r, topic, ch))
        return 0;
    if (p->shows && !due__look_keep(p->q, r, topic, &sh->looks[sh->n_edits]))
        return DUE_ENOMEM;
    ch->record.topic = due_topic_name(p->q, topic);
    sh->n_edits++;
    return 0;
}

/* Those that are gathered: how many changed is in ask->got. */
static int change_gathered(struct page_turned *p, int64_t until_ns)
{
    struct due__sharing *sh = p->q->commits->share;

    sh->edits = sh->many;
    int rc = sh->n_edits > 0 ? due__sharing_ask_edits(p->q, until_ns) : 0;
    for (size_t i = 0; rc == 0 && i < sh->n_edits; i++)
        p->ask->got += sh->results[i] == 0;
    return rc;
}

static int kick_limited(const struct page_turned *p, int64_t until_ns)
{
    const struct due__sharing *sh = p->q->commits->share;
    int rc = 0;

    for (size_t i = 1; rc == 0 && i <= p->limited; i++) {
        struct due__ask ask = { .kind = DUE__ASK_KICK,
                                .id = sh->many[sh->room - i].record.id,
                                .at_ns = p->ask->at_ns };

        rc = due__sharing_amend(p->q, &ask, until_ns);
        p->ask->got += rc == 0;
        rc = rc == DUE_ENOENT || rc == DUE_EBUSY ? 0 : rc;
    }
    return rc;
}

static int ask_change(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    bool shows = ask->kind != DUE__ASK_KICK_ALL && q->hooks.on_discard != NULL;
    struct page_turned p = { .q = q, .ask = ask, .shows = shows };
    struct due__pages was = *ask->pages;
    size_t most = shows && sh->room > DUE__LOOKS_KEPT ? DUE__LOOKS_KEPT : sh->room;

    ask->got = 0;
    if (sh->many == NULL)
        sh->many = due__alloc_new(&q->alloc, sh->room * sizeof *sh->many);
    if (sh->many == NULL || !due__looks_make(q))
        return DUE_ENOMEM;
    sh->n_edits = 0;
    int rc =
        due__sharing_page(q, ask->pages, ask->kind != DUE__ASK_CLEAR, most, gather, &p, until_ns);
    if (rc == 0)
        rc = change_gathered(&p, until_ns);
    if (shows)
        due__sharing_cleared(q, rc);
    if (rc == 0)
        rc = kick_limited(&p, until_ns);
    if (rc != 0)
        *ask->pages = was;
    return rc;
}

int due__sharing_answer_many(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    switch (ask->kind) {
    case DUE__ASK_TOPICS:
        return ask_topics(q, ask, until_ns);
    case DUE__ASK_LIST:
        return ask_list(q, ask, until_ns);
    case DUE__ASK_PAGE:
        return ask_page(q, ask, until_ns);
    default:
        return ask_change(q, ask, until_ns);
    }
}
