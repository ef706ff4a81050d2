/* batch.c - one batch of a stored queue: what goes into it, and how it is written down.
 *
 * Guards     K  the key      D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c, J1 slab.h, R1 R4 lease.c
 */
#include "job/draft.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/retained_keys.h"
#include "store/sender.h"
#include "store/share.h"

/* ---- Filling a batch: with the key ---- */

static bool in_batch(const struct due__batch *b, uint32_t entries, uint32_t number)
{
    for (uint32_t i = entries; i-- > 0;) {
        if (b->entries[i].number == number)
            return true;
    }
    return false;
}

/* A waiting job whose node is in the inbox: its PUT begins.  False: it was claimed before. */
static bool begin_put(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (due__word_state(w) == DUE__WAITING && (w & DUE__LINKED)) {
        if (due__word_send(&j->word, &w)) /* J1 */
            return true;
    }
    return false;
}

static bool fits(const struct due_queue *q, struct due__batch *b, uint32_t number,
                 const struct due__draft *draft)
{
    size_t len = due__facts_load(due__content_of(q, number, draft)).len;

    if (b->count > 0 && b->filled_bytes + len > q->commits->info.batch_bytes)
        return false;
    b->filled_bytes += len;
    return true;
}

/* A PUT was taken from the inbox.  False: it does not fit into the batch. */
static bool add_put(struct due_queue *q, struct due__batch *b, uint32_t number)
{
    const struct due__submission *a = due__stored_at(q->commits, number)->put_submission;
    int refused = due__refusal(q, a);

    if (refused == 0 && !fits(q, b, number, NULL))
        return false;
    bool begun = begin_put(q, number);
    if (!begun && a == NULL) { /* it was cancelled: as if it had never been */
        b->aside++;
        due__unlink_cancelled(q, number);
        return true;
    }
    uint8_t purpose = begun ? DUE__PUT : DUE__UNSENT;
    uint32_t bytes = begun ? due__unsettled_of(q, number) : 0;
    b->entries[b->count++] = (struct due__entry){ .number = number,
                                                  .purpose = purpose,
                                                  .sent = begun && refused == 0,
                                                  .known = refused != 0,
                                                  .rc = (int16_t)refused,
                                                  .bytes = bytes };
    b->refused |= refused != 0;
    return true;
}

/* What the change of job @number is for by now. */
static enum due__purpose purpose_of(const struct due_queue *q, uint32_t number)
{
    enum due__purpose purpose =
        (enum due__purpose)(due__stored_at(q->commits, number)->purpose & ~DUE__QUEUED);
    bool over = q->shared && purpose == DUE__REPEAT && due__revoked(q, number); /* R4 */

    return over ? DUE__ACK : purpose;
}

/* The same of any other change. */
static bool add_change(struct due_queue *q, struct due__batch *b, uint32_t number)
{
    struct due__stored *s = due__stored_at(q->commits, number);
    enum due__purpose purpose = purpose_of(q, number);
    struct due__draft *draft = due__draft_wanted(purpose, s->want_ns);
    bool whole = !due__removes(purpose) && (s->stored != DUE__IS_STORED || draft != NULL);

    if (purpose != DUE__NO_CHANGE && whole && !fits(q, b, number, draft))
        return false;
    s->purpose = DUE__NO_CHANGE;
    if (purpose == DUE__NO_CHANGE) { /* its caller has left */
        b->aside++;
        return true;
    }
    b->entries[b->count++] =
        (struct due__entry){ .number = number,
                             .purpose = (uint8_t)purpose,
                             .sent = true,
                             .draft = draft,
                             .bytes = draft != NULL ? due__draft_bytes(draft) : 0 };
    return true;
}

/* The node of @number was taken, under the calls' lock.  False: it does not fit. */
static bool add(struct due_queue *q, struct due__batch *b, uint32_t number)
{
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    return (w & DUE__LINKED) ? add_put(q, b, number) : add_change(q, b, number);
}

static bool full(const struct due__commits *c, const struct due__batch *b)
{
    return b->count >= c->info.batch_changes;
}

/* Jobs that are to be put again, behind what is in the batch already. */
static void add_mirrored(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;
    uint32_t changes = b->count;

    while (c->mirror_at != DUE__NO_JOB && !full(c, b)) {
        uint32_t number = due__mirror_next(q);

        if (number == DUE__NO_JOB)
            return;
        if (in_batch(b, changes, number))
            continue; /* it is put whole, or removed */
        if (!fits(q, b, number, NULL)) {
            c->mirror_at = number;
            return;
        }
        b->entries[b->count++] =
            (struct due__entry){ .number = number, .purpose = DUE__NO_CHANGE, .sent = true };
    }
}

/* Changes of a batch, less some if the last one had no room for what is to be told of kept keys. */
static size_t changes_max(const struct due__commits *c)
{
    size_t most = c->info.batch_changes;

    return c->keys_late ? most - most / 4 - (most > 1 && most < 4) : most;
}

/* Under the calls' lock: what waits in the inbox. */
static void take_nodes(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;
    enum due__inbox_found found = DUE__INBOX_NODE;
    struct cds_wfcq_node *node;

    due__inbox_answer(&c->inbox); /* G1 */
    while (c->carry == 0 && b->count < changes_max(c)) {
        found = due__inbox_take(&c->inbox, &node);
        if (found != DUE__INBOX_NODE)
            break;
        const struct due__stored *s = caa_container_of(node, struct due__stored, node);
        uint32_t number = due__records_number(&c->stored, s);
        if (!add(q, b, number))
            c->carry = number + 1;
    }
    due__inbox_answered(&c->inbox, found); /* G1 */
}

/* What waits, of the carried one first. */
static void add_waiting(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    if (c->carry != 0 && b->count == 0) {
        add(q, b, c->carry - 1);
        c->carry = 0;
    }
    if (c->carry == 0 && b->count < changes_max(c))
        take_nodes(q, b);
    if (b->count == 0 && b == c->now) {
        due__settle(c, 0, 0);
    } else if (b->count == 0) { /* behind the batch under way: with that */
        c->now->aside += b->aside;
        b->aside = 0;
    }
    due__lock_release(&c->calls);
}

/* What waits goes first.  But there may always be a full batch of it, and then every other batch is
 * for the jobs that are to be put again alone. */
void due__batch_fill(struct due_queue *q, struct due__batch *b, bool mirror)
{
    struct due__commits *c = q->commits;

    mirror = mirror && !c->later;
    if (mirror && c->jobs_late)
        add_mirrored(q, b);
    c->jobs_late = false;
    if (b->count > 0 && mirror)
        return;
    add_waiting(q, b);
    uint32_t waiting = b->count;
    if (mirror && c->carry == 0)
        add_mirrored(q, b);
    c->jobs_late = mirror && c->mirror_at != DUE__NO_JOB && b->count == waiting;
}

/* ---- Sending it ---- */

/* The payload bytes of a change. */
static size_t bytes_of(const due_change *ch)
{
    return ch->kind == DUE_CHANGE_PUT ? ch->record.len : 0;
}

/* Of all entries, or of removals only.  After a loss more jobs are put whole than when it was
 * filled, so the last entries may have to be sent after the others. */
void due__batch_write(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;

    if (b->complete)
        return;
    if (!b->written) {
        due__retained_end(q, b, DUE_EAGAIN);
        b->send = b->upto = 0;
        b->send_bytes = 0;
    }
    for (; b->upto < b->count; b->upto++) {
        struct due__entry *e = &b->entries[b->upto];
        uint8_t stored = due__stored_at(c, e->number)->stored;

        if (due__removes((enum due__purpose)e->purpose) &&
            (stored == DUE__NOT_STORED || stored == DUE__TO_STORE))
            e->sent = false;
        if (e->sent && q->shared && due__sharing_lost(q, e)) {
            e->sent = false;
            e->rc = DUE_ESTALE;
            b->refused = true;
        }
        if (!e->sent)
            continue;
        due_change ch = due__describe(q, b, e);
        if (b->send > 0 && b->send_bytes + bytes_of(&ch) > c->info.batch_bytes)
            break;
        b->send_bytes += bytes_of(&ch);
        b->changes[b->send++] = ch;
    }
    b->written = true;
}

void due__batch_complete(struct due_queue *q, struct due__batch *b)
{
    uint32_t before = b->send;

    if (b->complete)
        return;
    due__retained_write(q, b);
    b->complete = true;
    if (b->send > before)
        b->prepared = false;
}

bool due__batch_shrink(struct due__batch *b)
{
    bool some = false;
    bool rest = false;

    for (uint32_t i = 0; i < b->count; i++) {
        struct due__entry *e = &b->entries[i];

        if (e->sent && !due__removes((enum due__purpose)e->purpose)) {
            e->sent = false;
            e->rc = DUE_ENOSPC;
            some = true;
        }
        rest |= e->sent;
    }
    due__batch_unwrite(b);
    b->refused = true;
    return some && rest;
}
