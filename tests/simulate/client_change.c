/* client_change.c - what is done to jobs that wait, or are dead, and to topics; and looks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"

#define LISTED 8

/* One that this thread knows; NULL: it knows none. */
static struct book *draw_known(struct client *c, size_t *at)
{
    if (c->n_known == 0)
        return NULL;
    *at = model_below(&c->random, c->n_known);
    return c->known[*at];
}

static void forget(struct client *c, size_t at)
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
    history_tell(c->thread, "cancel! %s %s", id, due_error_name(rc));
    due_job_done(&job); /* a kill may come in it */
    return rc;
}

void client_cancel(struct client *c)
{
    size_t at;
    struct book *b = draw_known(c, &at);

    if (b == NULL)
        return;
    cancel(c, b, model_below(&c->random, 3) == 0);
    forget(c, at);
}

void client_end(struct client *c, struct book *b)
{
    bool there = b->told && !b->gone && !b->revoked && !b->round.doubt;

    if (cancel(c, b, false) == DUE_ENOENT && there && !b->ending)
        machine_fail("job %" PRIu64 " comes again and again, and is not there", books_number(b));
}

void client_end_rounds(struct client *c)
{
    struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (rounds_repeats(b) && b->met && !b->gone)
            client_end(c, b);
}

/* Of a job that somebody has on a lease it would not be known which one it has marked. */
void client_cancel_key(struct client *c)
{
    char name[16];
    char id[DUE_ID_TEXT];
    unsigned key = 1 + (unsigned)model_below(&c->random, PLAN_KEYS);
    due_job job = { .queue = NULL };
    int n = snprintf(name, sizeof name, "key-%u", key);

    if (plan_has(c->program->plan, KIND_RESERVE) || plan_has(c->program->plan, KIND_STORED))
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
    struct book *b = draw_known(c, &at);

    if (b == NULL)
        return;
    int64_t now = due_now(c->program->q);
    bool promote = model_below(&c->random, 5) == 0;
    int64_t to = promote ? now - 2 * p->machine.clock_step_max_ns
                         : now + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1);
    history_ask(c->thread, "move? %s %" PRId64, due_id_format(b->id, id), to);
    rules_ends(b);
    rounds_named(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    int rc = promote ? due_promote(c->program->q, b->id) : due_reschedule(c->program->q, b->id, to);

    books_return(c->thread, rc);
    rounds_named(b);
    if (rc == 0)
        books_ended(c->thread);
    if (rc == 0)
        books_due_by(c->thread, promote ? books_now() : to);
    history_tell(c->thread, "move! %s %s", id, due_error_name(rc));
    if (rc == DUE_ENOENT)
        forget(c, at);
}

void client_update(struct client *c)
{
    size_t at;
    size_t len;
    char id[DUE_ID_TEXT];
    struct book *b = draw_known(c, &at);

    if (b == NULL)
        return;
    uint64_t other = books_new();
    books_job(other)->round.of = books_number(b);
    unsigned char *bytes = client_payload(c->program->plan, other, &len);
    history_ask(c->thread, "update? %s %" PRIu64, due_id_format(b->id, id), other);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_looks_at(c->thread, b);
    int rc = due_update(c->program->q, b->id, bytes, len);
    memory_free(bytes);
    books_return(c->thread, rc);
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    if (rc == DUE_ENOENT)
        books_unknown(c->thread);
    history_tell(c->thread, "update! %s %s", id, due_error_name(rc));
    if (rc == DUE_ENOENT)
        forget(c, at);
}

/* Its bytes are those of one put or update, and of its own, unless a key has changed it. */
static void check_bytes(const struct book *b, const unsigned char *bytes, size_t len)
{
    due_job job = { .data = bytes, .len = len };
    uint64_t number = client_number(&job);
    const struct book *from = books_job(number);

    if (number == 0 || from == NULL)
        machine_fail("a job is read, and its bytes make no sense");
    if (!b->keyed && from != b && from->round.of != books_number(b))
        machine_fail("job %" PRIu64 " is read, and has the bytes of %" PRIu64, books_number(b),
                     number);
}

void client_read(struct client *c)
{
    static unsigned char buffers[PLAN_SEATS][PLAN_QUEUES][BOOKS_CALLERS][CLIENT_BYTES];
    unsigned char *bytes = buffers[c->program->seat][c->program->queue][client_number_of(c)];
    size_t at;
    size_t len = 0;
    char id[DUE_ID_TEXT];
    struct book *b = draw_known(c, &at);

    if (b == NULL)
        return;
    history_note(c->thread, "read? %s", due_id_format(b->id, id));
    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    books_looks_at(c->thread, b);
    int rc = due_read(c->program->q, b->id, bytes, CLIENT_BYTES, &len);
    books_return(c->thread, rc);
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    if (rc == DUE_ENOENT)
        books_unknown(c->thread);
    if (rc == 0 && len > 0) /* else it has a pointer */
        check_bytes(b, bytes, len);
    history_note(c->thread, "read! %s %zu", due_error_name(rc), len);
    if (rc == DUE_ENOENT)
        forget(c, at);
}

void client_find_key(struct client *c)
{
    char name[16];
    char text[DUE_ID_TEXT];
    unsigned key = 1 + (unsigned)model_below(&c->random, PLAN_KEYS);
    int n = snprintf(name, sizeof name, "key-%u", key);
    due_id id = { { 0 } };

    history_ask(c->thread, "find? %u", key);
    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    int rc = due_id_of_key(c->program->q, name, (size_t)n, &id);
    books_return(c->thread, rc);
    history_tell(c->thread, "find! %u %s %s", key, due_error_name(rc), client_id(id, text));
}

/* ---- The dead ---- */

static void kick(struct client *c, due_id dead)
{
    char id[DUE_ID_TEXT];

    history_ask(c->thread, "kick? %s", due_id_format(dead, id));
    deaths_kick(books_find(dead));
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    struct book *b = books_find(dead);
    if (b != NULL)
        books_holder(b, 0);
    int rc = due_kick(c->program->q, dead);
    books_return(c->thread, rc);
    if (b != NULL)
        books_holder_told(b);
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

void client_pause(struct client *c)
{
    int n = (int)model_below(&c->random, PLAN_TOPICS);
    int topic = c->program->topic[n];
    bool pause = model_below(&c->random, 2) == 0;

    history_note(c->thread, "%s? %d", pause ? "pause" : "resume", topic);
    rules_pause_begins(n);
    int rc = pause ? due_pause(c->program->q, topic) : due_resume(c->program->q, topic);
    rules_pause_ends(n, pause && rc == 0);
    history_note(c->thread, "%s! %s", pause ? "pause" : "resume", due_error_name(rc));
}

void client_clear(struct client *c)
{
    uint64_t cleared = 0;
    int topic = c->program->topic[model_below(&c->random, PLAN_TOPICS)];

    history_note(c->thread, "clear? %d", topic);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    int rc = due_clear(c->program->q, topic, &cleared);
    books_return(c->thread, rc);
    history_note(c->thread, "clear! %s %" PRIu64, due_error_name(rc), cleared);
}

/* ---- Looks ---- */

static uint64_t look_at_stats(const struct client *c)
{
    const struct plan *p = c->program->plan;
    struct due_stats s;
    uint64_t left = books_left();

    if (due_stats_read(c->program->q, &s) != 0)
        machine_fail("due_stats_read fails");
    if (s.ready > s.waiting || s.mended > 0)
        machine_fail("stats: %" PRIu64 " ready of %" PRIu64 " waiting, %" PRIu64 " mended", s.ready,
                     s.waiting, s.mended);
    /* Who buries a job counts it among the dead before it is no other any more; and so it may be
     * kicked before that. */
    bool exact = !plan_has(p, KIND_STORED) && !plan_has(p, KIND_BURY) &&
                 !plan_has(p, KIND_ATTEMPTS) && !plan_has(p, KIND_EXPIRY);
    if (exact && s.waiting + s.leased > books_inside_most(left))
        machine_fail("stats: %" PRIu64 " waiting and %" PRIu64 " leased, and no more than %" PRIu64
                     " can be inside",
                     s.waiting, s.leased, books_inside_most(left));
    return s.waiting;
}

void client_look(struct client *c)
{
    due_queue *q = c->program->q;
    due_info infos[LISTED];
    uint64_t cursor = 0;
    int64_t next_ns = 0;
    int rc = 0;
    uint64_t n = 0;

    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    switch (model_below(&c->random, 6)) {
    case 0:
        n = look_at_stats(c);
        break;
    case 1:
        rc = due_peek(q, infos);
        break;
    case 2:
        while ((rc = due_list(q, &cursor, infos, LISTED)) > 0)
            n += (uint64_t)rc;
        break;
    case 3:
        rc = due_poll(q, &next_ns);
        break;
    case 4:
        rc = due_trim(q);
        break;
    default:
        n = (uint64_t)due_next_deadline(q);
        break;
    }
    books_return(c->thread, 0);
    history_note(c->thread, "look %d %" PRIu64, rc, n);
}
