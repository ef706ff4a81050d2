/* share_amend.c - a job of a shared queue that is not here gets other content.
 *
 * It is looked at, and what it is to be is made of that; the store takes it only if the job is
 * still what it was.  If it is not, it is looked at anew.  So nobody waits for anybody: whoever was
 * too late, another was not.  All that the change points to is kept here, since an exchange that is
 * in doubt is sent again when its caller has gone.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 */
#include <string.h>

#include "queue/queue.h"
#include "store/share.h"

#define LOOKS 8 /* at a job that changes each time */

struct amending {
    struct due_queue *q;        /* O */
    const struct due__ask *ask; /* O */
};

/* ---- What it is to be ---- */

/* What is named in what, of its content. */
static void change_content(const struct due__ask *ask, due_record *r)
{
    const due_extra none = { DUE_EXTRA_INIT };
    const due_extra *x = ask->spec->more != NULL ? ask->spec->more : &none;

    if (ask->what & DUE_SET_DATA) {
        r->data = ask->spec->data;
        r->len = ask->spec->len;
    }
    if (ask->what & DUE_SET_HEADERS) {
        r->headers = x->headers;
        r->headers_len = x->headers_len;
    }
    if (ask->what & DUE_SET_RETRY)
        r->retry = x->retry;
    if (ask->what & DUE_SET_LIMIT) {
        r->ttl_ns = x->ttl_ns;
        r->expires_ns = x->expires_ns;
    }
    if (ask->what & DUE_SET_TIME)
        r->deadline_ns = r->until_ns = ask->at_ns;
}

/* It waits again, as if it had never been handed out. */
static void kick(const struct due__ask *ask, due_record *r)
{
    r->until_ns = ask->at_ns;
    r->attempts = r->failures = 0;
    r->ttl_ns = r->expires_ns = 0;
    r->cause = 0;
    r->died_ns = 0;
    r->reason = NULL;
}

/* ---- Keeping it ---- */

static const void *keep(struct due__sharing *sh, size_t *at, const void *bytes, size_t len)
{
    unsigned char *to = sh->edit_bytes + *at;

    if (len == 0)
        return NULL;
    memcpy(to, bytes, len);
    *at += len;
    return to;
}

/* A dead one's reason is not looked at. */
bool due__sharing_edit_keep(struct due_queue *q, due_record *r)
{
    struct due__sharing *sh = q->commits->share;
    size_t at = 0;

    due__sharing_edit_forget(q);
    sh->edit_size = r->len + r->headers_len + r->mark_len + r->key_len + r->group_len;
    sh->edit_bytes = sh->edit_size > 0 ? due__alloc_new(&q->alloc, sh->edit_size) : NULL;
    if (sh->edit_size > 0 && sh->edit_bytes == NULL)
        return false;
    r->data = keep(sh, &at, r->data, r->len);
    r->headers = keep(sh, &at, r->headers, r->headers_len);
    r->mark = keep(sh, &at, r->mark, r->mark_len);
    r->key = keep(sh, &at, r->key, r->key_len);
    r->group = keep(sh, &at, r->group, r->group_len);
    if (r->retry != NULL) {
        sh->edit_retry = *r->retry;
        r->retry = &sh->edit_retry;
    }
    r->reason = NULL;
    return true;
}

/* ---- Looking, and changing ---- */

static int make(void *ctx, const due_record *was)
{
    struct amending *a = ctx;
    struct due__sharing *sh = a->q->commits->share;
    bool kicks = a->ask->kind == DUE__ASK_KICK;
    int topic = due__topic_named(a->q, was->topic);
    due_change *ch = &sh->edit;

    if (topic < 0)
        return topic;
    if (kicks ? was->cause == 0
              : was->cause != 0 && (a->ask->what & (DUE_SET_TIME | DUE_SET_LIMIT)) != 0)
        return DUE_ENOENT;
    *ch = (due_change){ .kind = DUE_CHANGE_AMEND,
                        .was_ns = was->cause != 0 ? was->died_ns : was->until_ns,
                        .was_dead = was->cause != 0,
                        .record = *was };
    if (kicks)
        kick(a->ask, &ch->record);
    else
        change_content(a->ask, &ch->record);
    ch->record.topic = due_topic_name(a->q, topic);
    return due__sharing_edit_keep(a->q, &ch->record) ? 0 : DUE_ENOMEM;
}

int due__sharing_amend(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    struct amending a = { .q = q, .ask = ask };
    bool again = true;
    int rc = DUE_EAGAIN;

    for (int looks = 0; again && looks < LOOKS; looks++) {
        rc = due__sharing_find(q, ask->id, make, &a, until_ns);
        again = rc == DUE_EAGAIN;
        if (rc != 0)
            continue;
        rc = due__sharing_ask_edit(q, until_ns);
        again = due__sharing_look_again(rc);
    }
    return rc;
}
