/* shelf.c - the store of scenarios: a few words, and no more than one key. */
#include "shelf.h"

#include <string.h>

#include "store/sender.h"
#include "queue/queue.h"

static struct shelf *shelf_of(due_store *s)
{
    return (struct shelf *)(void *)s;
}

static int shelf_open(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                      due_error *error)
{
    const struct shelf *it = shelf_of(s);

    (void)how, (void)error;
    *info = (struct due_store_info){
        .writer = 1, .batch_changes = it->batch_max, .batch_bytes = 1000, .renew_ns = DUE_FOREVER
    };
    return 0;
}

static int shelf_ready(due_store *s, int64_t until_ns)
{
    struct shelf *it = shelf_of(s);

    (void)until_ns;
    explore_check(!it->closed, "used after close");
    if (it->fenced)
        return DUE_EFENCED;
    if (it->away == 0)
        return 0;
    it->away--;
    return DUE_EAGAIN;
}

static void land_key(struct shelf *it, const due_change *ch)
{
    bool same = it->key != SHELF_KEY_FREE && due_id_equal(it->key_id, ch->record.id);

    switch (ch->kind) {
    case DUE_CHANGE_PUT:
        explore_check(it->key != SHELF_KEY_KEPT || ch->was_kept, "it is kept, unseen");
        it->key = SHELF_KEY_OF_JOB;
        break;
    case DUE_CHANGE_DROP:
        explore_check(same && it->key == SHELF_KEY_OF_JOB, "a DROP with another job's key");
        it->key = ch->key_kept_ns > 0 ? SHELF_KEY_KEPT : SHELF_KEY_FREE;
        break;
    case DUE_CHANGE_KEEP:
        explore_check(it->key != SHELF_KEY_OF_JOB, "a KEEP of a job's key");
        it->key = SHELF_KEY_KEPT;
        break;
    case DUE_CHANGE_FORGET:
        explore_check(same && it->key == SHELF_KEY_KEPT, "a FORGET of what is not kept");
        it->key = SHELF_KEY_FREE;
        break;
    default:
        return;
    }
    it->key_id = ch->record.id;
}

static void land(struct shelf *it, const due_change *ch)
{
    struct shelf_job *job = (struct shelf_job *)(uintptr_t)shelf_get(it, ch->record.id);

    if (ch->kind == DUE_CHANGE_TOPIC) {
        it->paused = ch->paused > 0;
        return;
    }
    if (ch->record.key_len > 0)
        land_key(it, ch);
    if (ch->kind == DUE_CHANGE_KEEP || ch->kind == DUE_CHANGE_FORGET)
        return;
    explore_check(ch->kind == DUE_CHANGE_PUT || job != NULL, "dropped unseen");
    if (ch->kind == DUE_CHANGE_DROP) {
        job->there = false;
        it->dropped++;
        return;
    }
    for (job = job != NULL ? job : it->job; job->there && !due_id_equal(job->id, ch->record.id);
         job++)
        explore_check(job != &it->job[SHELF_JOBS - 1], "put twice");
    job->id = ch->record.id;
    job->there = true;
    job->until_ns = ch->record.until_ns;
    if (ch->kind != DUE_CHANGE_PUT)
        return;
    job->len = ch->record.len;
    job->headers_len = ch->record.headers_len;
}

/* They land, all of them. */
static void land_all(struct shelf *it, const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        land(it, &changes[i]);
    explore_check(it->key != SHELF_KEY_OF_JOB || shelf_get(it, it->key_id) != NULL,
                  "a DROP leaves its key");
}

static bool removals(const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (changes[i].kind != DUE_CHANGE_DROP && changes[i].kind != DUE_CHANGE_FORGET)
            return false;
    }
    return true;
}

/* The changes of one batch are under way together. */
static void weigh(const struct shelf *it, const due_change *changes, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += changes[i].kind == DUE_CHANGE_PUT ? changes[i].record.len : 0;
    explore_check(it->room == 0 || bytes <= it->room, "%zu bytes are on their way", bytes);
}

static int shelf_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                        int64_t until_ns)
{
    struct shelf *it = shelf_of(s);

    (void)until_ns;
    explore_check(!it->closed, "a batch after close");
    explore_check(n <= it->batch_max, "a batch of %zu", n);
    weigh(it, changes, n);
    if (it->deaf > 0) {
        it->deaf--;
        return DUE_EAGAIN;
    }
    if (number > it->number && it->full > 0 && !removals(changes, n)) {
        it->full--;
        return DUE_ENOSPC;
    }
    if (number > it->number && it->refuses > 0) {
        it->refuses--;
        return DUE_EACCES;
    }
    if (number > it->number)
        land_all(it, changes, n);
    it->number = number;
    if (it->doubt == 0) {
        it->answered = number;
        return 0;
    }
    it->doubt--;
    return DUE_EINDOUBT;
}

static int shelf_prepare(due_store *s, const due_change *changes, size_t n, uint64_t number)
{
    struct shelf *it = shelf_of(s);

    explore_check(number == it->answered + 1 || number == it->answered + 2, "not the next batch");
    it->prepared = changes;
    it->n_prepared = n;
    return it->ahead ? 0 : DUE_ENOTSUP;
}

/* It lands at once; that is heard of with commit only. */
static int shelf_send(due_store *s, uint64_t number, int64_t until_ns)
{
    struct shelf *it = shelf_of(s);

    (void)until_ns;
    explore_check(!it->closed, "a batch after close");
    explore_check(number == it->answered + 1, "sent before the last was answered");
    if (number > it->number)
        land_all(it, it->prepared, it->n_prepared);
    it->number = number;
    return 0;
}

static int shelf_load(due_store *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                      int64_t until_ns)
{
    const struct shelf *it = shelf_of(s);

    (void)rewind, (void)max, (void)until_ns;
    for (size_t i = 0; i < it->n_shown; i++) {
        due_record r = it->shown[i];

        memset(&r.id, 1 + (int)i, sizeof r.id);
        int rc = visit(ctx, &r);
        explore_check(rc == 0, "what is shown is refused: %d", rc);
    }
    return 0;
}

static int shelf_keys(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                      int64_t until_ns)
{
    (void)s, (void)rewind, (void)max, (void)visit, (void)ctx, (void)until_ns;
    return 0;
}

static int shelf_find(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    (void)s, (void)id, (void)visit, (void)ctx, (void)until_ns;
    return DUE_ENOENT;
}

static int shelf_renew(due_store *s, int64_t *held_ns, int64_t until_ns)
{
    (void)s, (void)until_ns;
    *held_ns = DUE_FOREVER;
    return 0;
}

static int shelf_close(due_store *s, int64_t until_ns)
{
    (void)until_ns;
    shelf_of(s)->closed = true;
    return 0;
}

static int shelf_topics(due_store *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    (void)until_ns;
    return shelf_of(s)->paused ? visit(ctx, "", 1, 0) : 0;
}

static void shelf_nothing(due_store *s)
{
    (void)s;
}

static const struct due_store_verbs verbs = {
    .size = sizeof(struct due_store_verbs),
    .open = shelf_open,
    .ready = shelf_ready,
    .commit = shelf_commit,
    .prepare = shelf_prepare,
    .send = shelf_send,
    .load = shelf_load,
    .keys = shelf_keys,
    .find = shelf_find,
    .renew = shelf_renew,
    .close = shelf_close,
    .interrupt = shelf_nothing,
    .free = shelf_nothing,
    .change_size = sizeof(due_change),
    .topics = shelf_topics,
};

void shelf_make(struct shelf *it, size_t batch_max)
{
    it->head.verbs = &verbs;
    it->batch_max = batch_max;
}

void shelf_mend(struct shelf *it)
{
    it->away = it->doubt = it->deaf = it->full = it->refuses = 0;
}

unsigned shelf_count(const struct shelf *it)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SHELF_JOBS; i++)
        n += it->job[i].there;
    return n;
}

const struct shelf_job *shelf_get(const struct shelf *it, due_id id)
{
    for (unsigned i = 0; i < SHELF_JOBS; i++) {
        if (it->job[i].there && due_id_equal(it->job[i].id, id))
            return &it->job[i];
    }
    return NULL;
}

void shelf_loaded(due_queue *q)
{
    struct due__commits *c = q->commits;

    c->reader = DUE__READER_SERVING;
    c->held_ns = c->renew_at_ns = DUE_FOREVER;
}

/* Is there room for who stands in line for it?  A call of more bytes than the bound is alone. */
static bool room_for(const struct due__commits *c, const struct due__submission *a)
{
    uint64_t owed = c->submitted_bytes - c->settled_bytes;

    return owed == 0 || owed + a->bytes <= c->unsettled_bytes_max;
}

void shelf_at_rest(const due_queue *q)
{
    const struct due__commits *c = q->commits;

    explore_check(c->key.word == 0 && c->calls.word == 0, "everybody rests, and a lock is held");
    explore_check(c->inbox.tail.p == &c->inbox.head.node || c->retry_at_ns != 0,
                  "a change is forgotten in the inbox");
    explore_check(c->settings.first == NULL || c->retry_at_ns != 0,
                  "what holds back a topic is forgotten");
    explore_check(c->sender == DUE__SENDER_IDLE || c->retry_at_ns != 0, "a batch is forgotten");
    for (const struct due__submission *a = c->first; a != NULL; a = a->next)
        explore_check(a->reached != NULL ? a->goal == 0 || c->settled < a->goal
                                         : a->left > 0 || (a->in_list && a->polls),
                      "a call is over, and its caller sleeps");
    explore_check(c->line == NULL || !room_for(c, c->line), "there is room, and somebody waits");
}
