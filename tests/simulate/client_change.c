/* client_change.c - what is done to jobs that wait, or are dead, and to topics; and looks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"

#define LISTED 8

/* One of three is that which all have named last, and most are where threads meet: so several name
 * it at a time. */
struct book *client_draw(struct client *c, size_t *at)
{
    struct program *p = c->program;
    uint64_t dice = model_below(&c->random, p->plan->meet_every != 0 ? 9 : 3);

    if ((dice == 0 || dice >= 3) && p->hot != NULL && (dice == 0 || !p->hot->gone)) {
        client_know(c, p->hot);
        dice = 0;
    }
    dice %= 3;
    if (c->n_known == 0)
        return NULL;
    *at = dice < 2 ? c->n_known - 1 : model_below(&c->random, c->n_known);
    p->hot = c->known[*at];
    return p->hot;
}

void client_forget(struct client *c, size_t at)
{
    c->known[at] = c->known[--c->n_known];
}

void client_cancelled(struct book *b, int rc)
{
    if (rc == 0)
        books_gone(b);
    if (rc == DUE_EBUSY)
        books_revoked(b);
    if (rc == 0 || rc == DUE_EBUSY)
        rounds_ended(b);
    else if (rc != DUE_ENOENT)
        rounds_doubt(b);
}

static int cancel(struct client *c, struct book *b, bool back)
{
    char id[DUE_ID_TEXT];
    due_job job = { .queue = NULL };

    history_ask(c->thread, "cancel? %s", due_id_format(b->id, id));
    rules_ends(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    int rc = due_cancel(c->program->q, b->id, back ? &job : NULL);
    books_return(c->thread, rc);
    if (rc == 0 && back && client_number(&job) == 0)
        machine_fail("a job is cancelled, and its bytes make no sense");
    if (rc == DUE_ENOENT)
        books_denied(c->thread);
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    client_cancelled(b, rc);
    b->lent = (uint8_t)(b->lent + (rc == 0)); /* to who has cancelled it */
    history_tell(c->thread, "cancel! %s %s", id, due_error_name(rc));
    due_job_done(&job); /* a kill may come in it */
    if (rc == 0)
        books_let_go(b);
    return rc;
}

void client_cancel(struct client *c)
{
    size_t at;
    struct book *b = client_draw(c, &at);

    if (b == NULL)
        return;
    cancel(c, b, model_below(&c->random, 3) == 0);
    client_forget(c, at);
}

void client_end(struct client *c, struct book *b)
{
    bool there = b->told && !b->gone && !b->revoked && !b->round.doubt;

    /* Or a clear that was in doubt has it meanwhile, and it is shown. */
    if (cancel(c, b, false) == DUE_ENOENT && there && !b->shown && !b->ending &&
        !deaths_crowded_out(b))
        machine_fail("job %" PRIu64 " comes again and again, and is not there", books_number(b));
}

void client_end_rounds(struct client *c)
{
    struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (rounds_repeats(b) && b->met && !b->gone)
            client_end(c, b);
}

/* May somebody have a job for longer than a call takes it out?  Of such a one it would not be known
 * that a cancel by its key has marked it. */
static bool may_be_had(const struct plan *p)
{
    static const enum plan_kind by[] = { KIND_RESERVE, KIND_STORED, KIND_ATTEMPTS, KIND_EXPIRY,
                                         KIND_LARGE,   KIND_CLEARS, KIND_CROWDS };

    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
        if (plan_has(p, by[i]))
            return true;
    return false;
}

void client_cancel_key(struct client *c)
{
    char name[16];
    char id[DUE_ID_TEXT];
    unsigned key = 1 + (unsigned)model_below(&c->random, c->program->plan->keys);
    due_job job = { .queue = NULL };
    int n = snprintf(name, sizeof name, "key-%u", key);

    if (may_be_had(c->program->plan))
        return;
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    int rc = due_cancel_key(c->program->q, name, (size_t)n, &job);
    books_return(c->thread, rc);
    if (rc != 0)
        return;
    uint64_t number = client_number(&job);
    books_gone(books_meet(number, job.id));
    history_tell(c->thread, "discarded %s %" PRIu64, due_id_format(job.id, id), number);
    due_job_done(&job);
}

void client_move(struct client *c)
{
    const struct plan *p = c->program->plan;
    size_t at;
    char id[DUE_ID_TEXT];
    struct book *b = client_draw(c, &at);

    if (b == NULL)
        return;
    int64_t now = due_now(c->program->q);
    bool promote = model_below(&c->random, 5) == 0;
    struct content change = { .fields = CONTENT_TIME };
    int64_t to = promote ? now - 2 * p->machine.clock_step_max_ns
                         : now + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1);
    history_ask(c->thread, "move? %s %" PRId64, due_id_format(b->id, id), to);
    rules_ends(b);
    rounds_named(b);
    contents_ask(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    int rc = promote ? due_promote(c->program->q, b->id) : due_reschedule(c->program->q, b->id, to);

    books_return(c->thread, rc);
    rounds_named(b);
    change.most_ns = promote ? books_now() : to;
    change.least_ns = promote ? now : to;
    change.timed = !promote;
    contents_told(b, rc, &change);
    if (rc == 0)
        books_ended(c->thread);
    if (rc == 0)
        books_due_by(c->thread, promote ? books_now() : to);
    history_tell(c->thread, "move! %s %s", id, due_error_name(rc));
    if (rc == DUE_ENOENT)
        client_forget(c, at);
}

void client_update(struct client *c)
{
    size_t at;
    size_t len;
    char id[DUE_ID_TEXT];
    struct book *b = client_draw(c, &at);

    if (b == NULL)
        return;
    uint64_t other = books_new();
    books_job(other)->round.of = books_number(b);
    books_job(other)->content.never = true;
    unsigned char *bytes = client_payload(c->program->plan, other, &len);
    history_ask(c->thread, "update? %s %" PRIu64, due_id_format(b->id, id), other);
    contents_ask(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_looks_at(c->thread, b);
    int rc = due_update(c->program->q, b->id, bytes, len);
    memory_free(bytes);
    books_return(c->thread, rc);
    contents_told(b, rc, &(struct content){ .fields = CONTENT_BYTES, .bytes = other });
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    if (rc == DUE_ENOENT)
        books_unknown(c->thread);
    history_tell(c->thread, "update! %s %s", id, due_error_name(rc));
    if (rc == DUE_ENOENT)
        client_forget(c, at);
}

/* ---- Several fields at once ---- */

/* What a job is to become, and the memory that is pointed to. */
struct amendment {
    struct book *b;
    char id[DUE_ID_TEXT];
    unsigned what;
    uint64_t number; /* of its new bytes and headers */
    due_spec spec;
    due_extra more;
    unsigned char *bytes;
    unsigned char headers[CLIENT_HEADERS];
    unsigned retry;
    bool vague; /* it was not known how it dies */
};

static unsigned draw_fields(struct client *c)
{
    const struct plan *p = c->program->plan;
    unsigned what = 1 + (unsigned)model_below(&c->random, 63);

    if (plan_has(p, KIND_STORED) || !plan_has(p, KIND_PRIORITIES))
        what &= ~(unsigned)DUE_SET_PRIORITY;
    if (!plan_has(p, KIND_HEADERS))
        what &= ~(unsigned)DUE_SET_HEADERS;
    if (!plan_has(p, KIND_ATTEMPTS))
        what &= ~(unsigned)DUE_SET_RETRY;
    if (!plan_has(p, KIND_EXPIRY))
        what &= ~(unsigned)DUE_SET_LIMIT;
    return what;
}

static void draw_amendment(struct client *c, struct amendment *a)
{
    const struct plan *p = c->program->plan;
    int64_t now = due_now(c->program->q);

    a->number = books_new();
    books_job(a->number)->round.of = books_number(a->b);
    books_job(a->number)->content.never = true;
    a->bytes = client_payload(p, a->number, &a->spec.len);
    a->spec.data = a->bytes;
    a->more.headers = a->headers;
    a->more.headers_len = client_headers(a->number, a->headers);
    a->spec.at_ns = now + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1);
    a->spec.priority = (int)model_below(&c->random, 256);
    a->retry = (unsigned)model_below(&c->random, PLAN_RETRIES);
    a->more.retry = &p->retry[a->retry];
    a->more.ttl_ns = (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 2);
}

static void amend_ask(struct client *c, struct amendment *a)
{
    due_id_format(a->b->id, a->id);
    a->vague = a->b->death.vague;
    if (a->what & (DUE_SET_RETRY | DUE_SET_LIMIT)) {
        deaths_amend(a->b);
        history_ask(c->thread, "mortal %" PRIu64, books_number(a->b));
    }
    if (a->what & DUE_SET_PRIORITY)
        history_ask(c->thread, "ranked %" PRIu64, books_number(a->b));
    if (a->what & DUE_SET_TIME) {
        rounds_named(a->b);
        history_ask(client_lane(c, 0), "move? %s %" PRId64, a->id, a->spec.at_ns);
    }
    if (a->what & DUE_SET_DATA)
        history_ask(client_lane(c, 1), "update? %s %" PRIu64, a->id, a->number);
    if (a->what & (DUE_SET_TIME | DUE_SET_RETRY | DUE_SET_LIMIT))
        rules_ends(a->b);
    contents_ask(a->b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, a->b);
}

static void amend_tell(struct client *c, const struct amendment *a, int rc)
{
    struct content change = { .least_ns = a->spec.at_ns,
                              .most_ns = a->spec.at_ns,
                              .timed = true,
                              .priority = a->spec.priority,
                              .bytes = a->number,
                              .headers = a->number };

    books_return(c->thread, rc);
    change.fields = (a->what & DUE_SET_TIME ? CONTENT_TIME : 0u) |
                    (a->what & DUE_SET_DATA ? CONTENT_BYTES : 0u) |
                    (a->what & DUE_SET_HEADERS ? CONTENT_HEADERS : 0u) |
                    (a->what & DUE_SET_PRIORITY ? CONTENT_PRIORITY : 0u);
    bool alone = contents_told(a->b, rc, &change);
    if (rc == 0 && alone && !a->vague)
        deaths_amended(c->thread, a->b, a->what, a->retry, a->more.ttl_ns);
    if (a->what & DUE_SET_TIME) {
        rounds_named(a->b);
        if (rc == 0) {
            books_ended(c->thread);
            books_due_by(c->thread, a->spec.at_ns);
        }
        history_tell(client_lane(c, 0), "move! %s %s", a->id, due_error_name(rc));
    }
    if (rc == DUE_ENOENT && !(a->what & (DUE_SET_TIME | DUE_SET_LIMIT)))
        books_unknown(c->thread);
    if (a->what & DUE_SET_DATA)
        history_tell(client_lane(c, 1), "update! %s %s", a->id, due_error_name(rc));
    history_note(c->thread, "amend! %s %s", a->id, due_error_name(rc));
}

void client_amend(struct client *c)
{
    struct amendment a = { .spec = { DUE_SPEC_INIT, .more = &a.more }, .more = { DUE_EXTRA_INIT } };
    size_t at = 0;

    a.b = client_draw(c, &at);
    a.what = draw_fields(c);
    if (a.b == NULL || a.what == 0)
        return;
    draw_amendment(c, &a);
    history_note(c->thread, "amend? %u", a.what);
    amend_ask(c, &a);
    int rc = due_amend(c->program->q, a.b->id, &a.spec, a.what);
    memory_free(a.bytes);
    amend_tell(c, &a, rc);
    if (rc == DUE_ENOENT)
        client_forget(c, at);
}

/* ---- The dead ---- */

static void kick_begins(struct book *b)
{
    books_holder(b, 0);
    contents_ask(b);
}

/* It is due at once. */
static void kick_ends(struct book *b, int rc)
{
    books_holder_told(b);
    contents_told(b, rc, &(struct content){ .fields = 0 });
    contents_moved(b);
}

static void kick(struct client *c, due_id dead)
{
    char id[DUE_ID_TEXT];

    history_ask(c->thread, "kick? %s", due_id_format(dead, id));
    deaths_kick(books_find(dead));
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    struct book *b = books_find(dead);
    if (b != NULL)
        kick_begins(b);
    int rc = due_kick(c->program->q, dead);
    books_return(c->thread, rc);
    if (b != NULL)
        kick_ends(b, rc);
    deaths_kicked(books_find(dead));
    history_tell(c->thread, "kick! %s %s", id, due_error_name(rc));
}

static int list_dead(struct client *c, uint64_t *cursor, due_dead *dead)
{
    char id[DUE_ID_TEXT];

    uint64_t begun = rules_event();
    history_ask(c->thread, "list?");
    int n = due_list_dead(c->program->q, cursor, dead, LISTED);
    for (int i = 0; i < n; i++) {
        const struct book *b = books_find(dead[i].id);

        deaths_listed(b, &dead[i], begun);
        (rounds_maybe(b) ? history_note : history_tell)(c->thread, "dead %s",
                                                        due_id_format(dead[i].id, id));
    }
    history_tell(c->thread, "list! %s", due_error_name(n < 0 ? n : 0));
    return n;
}

void client_kick_one(struct client *c)
{
    due_dead dead[LISTED];
    uint64_t cursor = 0;
    int n = list_dead(c, &cursor, dead);

    if (n > 0)
        kick(c, dead[model_below(&c->random, (uint64_t)n)].id);
}

int client_kick_all(struct client *c)
{
    due_dead dead[LISTED];
    uint64_t cursor = 0;
    int kicked = 0;
    int n;

    while ((n = list_dead(c, &cursor, dead)) > 0)
        for (int i = 0; i < n; i++, kicked++)
            kick(c, dead[i].id);
    return kicked;
}

/* ---- All of a topic ---- */

/* What is confirmed later is so from then on. */
void client_flush(struct client *c)
{
    int64_t timeout_ns = client_timeout(c);

    history_ask(c->thread, "flush?");
    books_call(c->thread, WAIT_LOOK, 0, timeout_ns);
    int rc = due_flush(c->program->q, timeout_ns);
    books_return(c->thread, rc == DUE_ETIMEDOUT ? 0 : rc);
    history_tell(c->thread, "flush! %s", due_error_name(rc));
}
