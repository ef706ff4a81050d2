/* client_batch.c - calls that name several jobs, or all of a topic. */
#include <inttypes.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"

/* ---- Several ---- */

static void ack_told(struct client *c, unsigned lane, struct book *b, const char *id,
                     int64_t deadline_ns, int rc)
{
    if (rc == 0)
        books_done(c->thread, b, deadline_ns, true);
    else if (rc == DUE_EINDOUBT)
        rounds_doubt(b);
    c->program->acked += rc == 0;
    history_tell(lane, "ack! %s %s", id, due_error_name(rc));
}

void client_ack_batch(struct client *c, struct book **books, due_job *jobs, unsigned n)
{
    char ids[CLIENT_BATCH][DUE_ID_TEXT];
    int64_t deadlines[CLIENT_BATCH];
    int results[CLIENT_BATCH];
    int acked = 0;

    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    for (unsigned i = 0; i < n; i++) {
        deadlines[i] = jobs[i].deadline_ns;
        history_ask(client_lane(c, i), "ack? %s", due_id_format(jobs[i].id, ids[i]));
        rules_ends(books[i]);
        rounds_asked(books[i]);
        books_holder(books[i], 0);
    }
    int told = due_ack_batch(jobs, n, results);
    books_return(c->thread, told > 0 ? 0 : results[0]);
    for (unsigned i = 0; i < n; i++) {
        books_holder_told(books[i]);
        ack_told(c, client_lane(c, i), books[i], ids[i], deadlines[i], results[i]);
        acked += results[i] == 0;
        due_job_done(&jobs[i]);
        books_let_go(books[i]);
    }
    if (told != acked)
        machine_fail("due_ack_batch answers %d, and has acked %d", told, acked);
}

/* Some that this thread knows, none of them twice. */
static unsigned draw_some(struct client *c, struct book *some[CLIENT_BATCH])
{
    unsigned most = 1 + (unsigned)model_below(&c->random, CLIENT_BATCH);
    unsigned n = 0;
    size_t at;

    while (n < most && c->n_known > 0) {
        struct book *b = client_draw(c, &at);
        bool there = false;

        client_forget(c, at);
        for (unsigned i = 0; i < n; i++)
            there |= some[i] == b;
        if (!there)
            some[n++] = b;
    }
    return n;
}

void client_cancel_batch(struct client *c)
{
    struct book *some[CLIENT_BATCH];
    due_id ids[CLIENT_BATCH];
    int results[CLIENT_BATCH];
    char id[DUE_ID_TEXT];
    int cancelled = 0;
    unsigned n = draw_some(c, some);

    if (n == 0)
        return;
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    for (unsigned i = 0; i < n; i++) {
        ids[i] = some[i]->id;
        history_ask(client_lane(c, i), "cancel? %s", due_id_format(ids[i], id));
        rules_ends(some[i]);
        books_name_too(c->thread, some[i]);
    }
    int told = due_cancel_batch(c->program->q, ids, n, results);
    books_return(c->thread, told > 0 ? 0 : results[0]);
    for (unsigned i = 0; i < n; i++) {
        if (results[i] == DUE_ENOENT)
            books_not_there(some[i]);
        client_cancelled(some[i], results[i]);
        history_tell(client_lane(c, i), "cancel! %s %s", due_id_format(ids[i], id),
                     due_error_name(results[i]));
        cancelled += results[i] == 0;
    }
    if (told != cancelled)
        machine_fail("due_cancel_batch answers %d, and has cancelled %d", told, cancelled);
}

/* ---- All of a topic ---- */

/* A queue that closes leaves to its store what there is, and has not to ask it for that. */
static int confirmed(const struct client *c, int rc)
{
    return rc == 0 && c->program->closing ? 1 : rc;
}

static int draw_topic(struct client *c, int *number)
{
    unsigned n = (unsigned)model_below(&c->random, PLAN_TOPICS + 1);

    *number = n < PLAN_TOPICS ? (int)n : -1;
    return n < PLAN_TOPICS ? c->program->topic[n] : DUE_ALL_TOPICS;
}

/* Each was shown to on_discard, in this call; but for those that went because too many are dead.
 * With a store who sends shows them; and in a queue that closes jobs whose leases end go too. */
static void check_shown(const struct client *c, const char *verb, int rc, uint64_t told)
{
    const struct plan *p = c->program->plan;

    if (plan_has(p, KIND_STORED) || c->program->closing)
        return;
    if (told > c->n_shown || (rc == 0 && told != c->n_shown && !plan_has(p, KIND_CROWDS)))
        machine_fail("%s answers %" PRIu64 ", and %u were discarded", verb, told, c->n_shown);
}

/* What was shown since event @begun has left the store: so it says, if nobody else owns it now. */
static void tell_shown(struct client *c, int rc, uint64_t begun)
{
    const struct plan *p = c->program->plan;
    char id[DUE_ID_TEXT];
    struct book *b;

    if (rc != 0 || !plan_has(p, KIND_STORED) || plan_has(p, KIND_STANDBY) ||
        plan_has(p, KIND_ASYNC) || plan_has(p, KIND_ROUNDS) || c->program->closing)
        return;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++) {
        if (b->shown_event <= begun)
            continue;
        b->shown_event = 0;
        history_tell(c->thread, "discarded %s %" PRIu64, due_id_format(b->id, id), b->shown_number);
    }
}

void client_clear(struct client *c)
{
    uint64_t cleared = 0;
    int number;
    int topic = draw_topic(c, &number);

    history_ask(c->thread, "clear? %d", topic);
    c->n_shown = 0;
    uint64_t begun = rules_event();
    books_call(c->thread, WAIT_CLEAR, 0, DUE_FOREVER);
    books_clears(number);
    int rc = due_clear(c->program->q, topic, &cleared);
    if (rc == 0)
        books_cleared(c->thread, number);
    books_clears(number);
    books_return(c->thread, confirmed(c, rc));
    check_shown(c, "due_clear", rc, cleared);
    tell_shown(c, rc, begun);
    history_tell(c->thread, "clear! %s", due_error_name(rc));
    history_note(c->thread, "cleared %" PRIu64, cleared);
}

void client_clear_dead(struct client *c)
{
    uint64_t cleared = 0;
    int number;
    int topic = draw_topic(c, &number);

    history_ask(c->thread, "clear? dead %d", topic);
    c->n_shown = 0;
    uint64_t begun = rules_event();
    books_call(c->thread, WAIT_CLEAR, 0, DUE_FOREVER);
    int rc = due_clear_dead(c->program->q, topic, &cleared);
    books_return(c->thread, confirmed(c, rc));
    check_shown(c, "due_clear_dead", rc, cleared);
    tell_shown(c, rc, begun);
    history_tell(c->thread, "clear! %s", due_error_name(rc));
    history_note(c->thread, "cleared %" PRIu64, cleared);
}

/* How many are dead, if nobody else dies or comes back meanwhile but by a call. */
static uint64_t count_dead(const struct client *c)
{
    const struct plan *p = c->program->plan;
    struct due_stats s;
    bool sure = !plan_has(p, KIND_STORED) && !plan_has(p, KIND_WORKERS) &&
                !plan_has(p, KIND_EXPIRY) && !plan_has(p, KIND_ATTEMPTS) &&
                !plan_has(p, KIND_CROWDS);

    if (!sure || !books_alone(c->thread) || due_stats_read(c->program->q, &s) != 0)
        return UINT64_MAX;
    return s.dead;
}

void client_kick_topic(struct client *c)
{
    uint64_t kicked = 0;
    int number;
    int topic = draw_topic(c, &number);

    history_ask(c->thread, "revive?");
    deaths_kick_all(number);
    books_call(c->thread, WAIT_CLEAR, 0, DUE_FOREVER);
    uint64_t begun = rules_event();
    uint64_t dead = count_dead(c);
    int rc = due_kick_all(c->program->q, topic, &kicked);
    if (rules_event() == begun + 1 && rc == 0 && topic == DUE_ALL_TOPICS && dead != UINT64_MAX &&
        kicked != dead && !c->program->closing) /* a close takes what is left */
        machine_fail("due_kick_all answers %" PRIu64 ", and %" PRIu64 " were dead", kicked, dead);
    books_return(c->thread, confirmed(c, rc));
    deaths_kicked_all(number);
    history_tell(c->thread, "revive!");
    history_note(c->thread, "kick all! %s %" PRIu64, due_error_name(rc), kicked);
}
