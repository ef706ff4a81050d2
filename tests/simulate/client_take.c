/* client_take.c - jobs are taken out, for good or on a lease, and answered for. */
#include <inttypes.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"
#include "lab/take.h"

/* ---- What was had ---- */

/* The hand-over is told. */
static struct book *had(struct client *c, unsigned thread, const char *verb, const due_job *job)
{
    char text[DUE_ID_TEXT];
    uint64_t number = client_number(job);
    int topic = client_topic(c->program, job->topic);

    if (number == 0)
        machine_fail("a job is handed out whose bytes make no sense");
    struct book *b = books_meet(number, job->id);
    books_handed(c->thread, b, number, topic, job);
    books_seen(c->thread, b,
               &(struct content){ .fields = CONTENT_ALL,
                                  .least_ns = job->deadline_ns,
                                  .priority = job->priority,
                                  .bytes = number,
                                  .headers = client_headers_number(job) });
    if (job->lateness_ns < 0)
        machine_fail("job %" PRIu64 ": negative lateness", number);
    due_id_format(job->id, text);
    if (rounds_repeats(b)) {
        history_note(thread, "round! %" PRIu64 " %s %" PRId64 " %d", number, text, job->deadline_ns,
                     topic);
        history_tell(thread, "%s! DUE_EAGAIN", verb);
        if (job->token == 0)
            books_done(c->thread, b, job->deadline_ns, false);
    } else {
        history_tell(thread, "%s! DUE_OK %" PRIu64 " %s %d %d %d", verb, number, text,
                     job->priority, topic, 1);
    }
    return b;
}

static void in_doubt(unsigned thread, const due_job *job)
{
    char text[DUE_ID_TEXT];
    struct book *b = books_find(job->id);
    bool round = b != NULL && rounds_repeats(b);

    if (round)
        rounds_doubt(b);
    history_tell(thread, round ? "dequeue! DUE_EAGAIN" : "dequeue! DUE_EINDOUBT %s",
                 due_id_format(job->id, text));
}

/* A job that may be leaving the store is named by who tried to take it, or took others. */
static bool named(const struct client *c, unsigned thread, const due_job *job)
{
    if (!plan_has(c->program->plan, KIND_STORED) || due_id_equal(job->id, (due_id){ { 0 } }))
        return false;
    in_doubt(thread, job);
    return true;
}

/* It is taken for good. */
static void taken(struct client *c, struct book *b, due_job *job)
{
    if (!rounds_repeats(b))
        books_gone(b);
    due_job_done(job);
    books_let_go(b);
    if (c == &c->program->own && rounds_repeats(b)) /* who takes everything out */
        client_end(c, b);
}

/* Who does not wait for the store is in doubt only of what he began before somebody else came to
 * own it, or a close cut it off, and out of time only if it may be away, as which it is not taken
 * if it is slow.  What he has begun to take goes on by itself. */
static int polled(const struct client *c, int64_t timeout_ns, int rc)
{
    const struct plan *p = c->program->plan;
    bool away = plan_has(p, KIND_AWAY) || plan_has(p, KIND_DOUBT) || plan_has(p, KIND_FULL) ||
                plan_has(p, KIND_LOSSES) || plan_has(p, KIND_JUMPS); /* silent for long */

    if (timeout_ns != 0 || !plan_has(p, KIND_STORED))
        return rc;
    bool cut_off = plan_has(p, KIND_STANDBY) || plan_has(p, KIND_DISCARD);
    if ((rc == DUE_EINDOUBT && !cut_off) || ((rc == DUE_ETIMEDOUT || rc == DUE_ESTORE) && !away))
        machine_fail("thread %u: a poll is answered with %s", c->thread, due_error_name(rc));
    return rc;
}

static void missed(struct client *c, unsigned thread, const char *verb, int rc)
{
    history_tell(thread, "%s! %s", verb, due_error_name(rc));
    c->stopped |= rc == DUE_ECLOSED;
}

/* It may take its time. */
static void handle(struct client *c)
{
    const struct plan *p = c->program->plan;

    if ((p->limit > 0 || plan_has(p, KIND_GROUPS)) && model_below(&c->random, 2) == 0)
        machine_sleep(1 + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns / 8 + 10));
}

/* Of which topics, at random: the bits, and the call's arguments. */
static uint32_t draw_topics(struct client *c, int topics[PLAN_TOPICS], size_t *n)
{
    uint32_t bits = 0;

    *n = 0;
    if (!plan_has(c->program->plan, KIND_TOPICS) || model_below(&c->random, 2) == 0)
        return BOOKS_ANY;
    bits = 1 + (uint32_t)model_below(&c->random, (1u << PLAN_TOPICS) - 1);
    for (unsigned i = 0; i < PLAN_TOPICS; i++)
        if (bits >> i & 1)
            topics[(*n)++] = c->program->topic[i];
    return bits;
}

/* ---- For good ---- */

static int dequeue(struct client *c, due_job *job, const int *topics, size_t n, int64_t timeout_ns)
{
    return n > 0 ? take_from(c->program->q, topics, n, job, timeout_ns)
                 : due_dequeue(c->program->q, job, timeout_ns);
}

bool client_take(struct client *c, int64_t timeout_ns)
{
    int topics[PLAN_TOPICS];
    due_job job;
    size_t n;
    uint32_t bits = draw_topics(c, topics, &n);

    history_ask(c->thread, "dequeue?");
    books_call(c->thread, WAIT_JOB, bits, timeout_ns);
    int rc = polled(c, timeout_ns, dequeue(c, &job, topics, n, timeout_ns));
    books_return(c->thread, rc);
    if (rc == DUE_EAGAIN && timeout_ns == 0 && plan_has(c->program->plan, KIND_STORED)) {
        history_tell(c->thread, "dequeue! DUE_EINDOUBT");
        return false;
    }
    if (rc == DUE_EINDOUBT) {
        in_doubt(c->thread, &job);
        return false;
    }
    if (rc != 0) {
        missed(c, c->thread, "dequeue", rc);
        return false;
    }
    struct book *b = had(c, c->thread, "dequeue", &job);
    handle(c);
    taken(c, b, &job);
    return true;
}

/* ---- On a lease ---- */

static int ack(struct client *c, struct book *b, due_job *job)
{
    char id[DUE_ID_TEXT];

    int64_t deadline_ns = job->deadline_ns;

    history_ask(c->thread, "ack? %s", due_id_format(job->id, id));
    rules_ends(b);
    rounds_asked(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_holder(b, 0);
    int rc = due_ack(job);
    books_return(c->thread, rc);
    books_holder_told(b);
    if (rc == 0)
        books_done(c->thread, b, deadline_ns, true);
    else if (rc == DUE_EINDOUBT)
        rounds_doubt(b);
    c->program->acked += rc == 0;
    history_tell(c->thread, "ack! %s %s", id, due_error_name(rc));
    return rc;
}

/* By its policy, or for a time of its own: the least and the most that it then waits. */
static int64_t draw_delay(struct client *c, const struct book *b, const due_job *job,
                          int64_t *least_ns, int64_t *most_ns)
{
    const struct plan *p = c->program->plan;
    int64_t delay = (int64_t)model_below(&c->random, (uint64_t)p->lease_ns);

    *least_ns = *most_ns = delay;
    if (!plan_has(p, KIND_ATTEMPTS) || model_below(&c->random, 2) == 0)
        return delay;
    deaths_delay(b, job->failures + 1, least_ns, most_ns);
    return DUE_DELAY_POLICY;
}

/* A queue that closes leaves a job to its store as it is. */
static int written(const struct client *c, int rc)
{
    bool left = c->program->closing && plan_has(c->program->plan, KIND_STORED);

    return rc == 0 && left ? DUE_EINDOUBT : rc;
}

static void nack(struct client *c, struct book *b, due_job *job)
{
    int64_t least;
    int64_t most;
    int64_t delay = draw_delay(c, b, job, &least, &most);
    uint32_t attempts = job->attempts;
    bool last = deaths_last(b, attempts);
    char id[DUE_ID_TEXT];

    history_ask(c->thread, "nack? %s %" PRId64, due_id_format(job->id, id), least);
    if (last)
        rules_ends(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    int rc = written(c, due_nack(job, delay));
    books_return(c->thread, rc);
    if (rc == 0) {
        books_given_back(c->thread, attempts);
        if (!last)
            books_due_by(c->thread, books_now() + most);
    }
    history_tell(c->thread, "nack! %s %s", id, due_error_name(rc));
}

/* This attempt does not count. */
static void snooze(struct client *c, struct book *b, due_job *job)
{
    int64_t delay = (int64_t)model_below(&c->random, (uint64_t)c->program->plan->lease_ns);
    uint32_t attempts = job->attempts;
    char id[DUE_ID_TEXT];

    history_ask(c->thread, "nack? %s %" PRId64, due_id_format(job->id, id), delay);
    deaths_snooze(b, attempts);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    uint32_t serial = b->serial;
    int rc = written(c, due_snooze(job, delay));
    books_return(c->thread, rc);
    if (rc == 0) {
        if (b->serial == serial) /* else somebody has had it since */
            deaths_snoozed(b, attempts);
        books_due_by(c->thread, books_now() + delay);
    }
    history_tell(c->thread, "nack! %s %s", id, due_error_name(rc));
    history_note(c->thread, "snoozed");
}

static void bury(struct client *c, struct book *b, due_job *job)
{
    char id[DUE_ID_TEXT];

    history_ask(c->thread, "bury? %s", due_id_format(job->id, id));
    b->death.buried = true;
    rules_ends(b);
    books_call(c->thread, WAIT_OTHER, 0, DUE_FOREVER);
    books_name(c->thread, b);
    int rc = written(c, due_bury(job, id));
    books_return(c->thread, rc);
    if (rc == 0)
        books_ended(c->thread);
    history_tell(c->thread, "bury! %s %s", id, due_error_name(rc));
}

static int64_t draw_lease(struct client *c)
{
    return 1 + (int64_t)model_below(&c->random, (uint64_t)c->program->plan->lease_ns);
}

/* Who has a job that was cancelled is told to end. */
static void check_stopping(const struct client *c, const struct book *b, const due_job *job)
{
    bool revoked = b->revoked_event != 0 && !b->keyed && !plan_has(c->program->plan, KIND_STORED);

    if (plan_has(c->program->plan, KIND_SHORT) && due_job_stopping(job) == 0 && revoked)
        machine_fail("job %" PRIu64 " was cancelled, and who has it may go on", books_number(b));
}

/* What becomes of a job that is had on a lease. */
static void answer(struct client *c, struct book *b, due_job *job, bool acked)
{
    uint64_t fate = acked ? 0 : model_below(&c->random, 20);
    unsigned usual = c->program->plan->answer;

    if (!acked && usual < 20 && model_below(&c->random, 4) != 0)
        fate = usual;
    handle(c);
    if (fate == 1) {
        books_holder(b, 2 * c->program->plan->lease_ns);
        int rc = due_extend(job, 2 * c->program->plan->lease_ns); /* never shorter: the ledger */
        (void)rc; /* it may have ended, or a store may be away */
        books_holder_told(b);
    }
    check_stopping(c, b, job);
    if (fate < 12)
        while (ack(c, b, job) == DUE_ETIMEDOUT && acked)
            ;
    else if (fate < 14 && plan_has(c->program->plan, KIND_SNOOZE))
        snooze(c, b, job);
    else if (fate < 15)
        nack(c, b, job);
    else if (fate < 17 && plan_has(c->program->plan, KIND_BURY))
        bury(c, b, job);
    due_job_done(job); /* without an answer it comes back when the lease ends */
    books_let_go(b);
}

/* The ledger takes no lease for granted whose time the wall clock decides. */
static int64_t told_lease(const struct client *c, int64_t lease_ns)
{
    return c->program->plan->machine.clock_step_max_ns > 0 ? 0 : lease_ns;
}

bool client_reserve(struct client *c, int64_t timeout_ns, bool acked)
{
    int topics[PLAN_TOPICS];
    due_job job;
    size_t n = 0;
    bool plain =
        !acked && plan_has(c->program->plan, KIND_SHORT) && model_below(&c->random, 2) == 0;
    int64_t lease = acked ? DUE_S(100000) : plain ? c->program->plan->lease_ns : draw_lease(c);
    uint32_t bits = acked || plain ? BOOKS_ANY : draw_topics(c, topics, &n);

    history_ask(c->thread, "reserve? %" PRId64, told_lease(c, lease));
    books_call(c->thread, WAIT_JOB, bits, timeout_ns);
    books_lease(c->thread, lease);
    int rc = plain   ? due_reserve(c->program->q, &job, timeout_ns)
             : n > 0 ? take_leased_from(c->program->q, topics, n, &job, lease, timeout_ns)
                     : take_leased(c->program->q, &job, lease, timeout_ns);
    rc = polled(c, timeout_ns, rc);
    books_return(c->thread, rc);
    if (rc != 0) {
        missed(c, c->thread, "reserve", rc);
        return false;
    }
    struct book *b = had(c, c->thread, "reserve", &job);
    if (c == &c->program->own && rounds_repeats(b))
        client_end(c, b);
    answer(c, b, &job, acked);
    return true;
}

/* How long to wait.  With a store a call that polls leaves what it has begun for the next one, and
 * a kill may come between the two; so whoever does not wait waits for the store at least. */
static bool draw_patience(struct client *c, int64_t *timeout_ns)
{
    const struct plan *p = c->program->plan;

    *timeout_ns = client_timeout(c);
    if (!plan_has(p, KIND_STORED))
        return true;
    if (*timeout_ns == 0 && due_poll(c->program->q, NULL) == 0)
        return false;
    if (*timeout_ns == 0 && plan_has(p, KIND_POLLS))
        return true;
    if (*timeout_ns == 0)
        *timeout_ns = p->store_timeout_ns;
    return true;
}

void client_take_some(struct client *c)
{
    int64_t timeout_ns;

    if (!draw_patience(c, &timeout_ns))
        return;
    if (plan_has(c->program->plan, KIND_RESERVE) && model_below(&c->random, 3) != 0)
        client_reserve(c, timeout_ns, false);
    else
        client_take(c, timeout_ns);
}

/* Wait as an event loop does. */
void client_take_readable(struct client *c)
{
    int64_t timeout_ns;
    due_job job;
    int fd = due_fd(c->program->q);

    if (fd < 0 || !draw_patience(c, &timeout_ns))
        return;
    history_ask(c->thread, "dequeue?");
    books_call(c->thread, WAIT_JOB, BOOKS_ANY, timeout_ns);
    machine_wait_readable(fd,
                          timeout_ns == DUE_FOREVER ? DUE_FOREVER : machine.now_ns + timeout_ns);
    int rc = due_dequeue(c->program->q, &job, 0);
    books_return(c->thread, rc == DUE_EAGAIN ? 0 : rc); /* it has waited */
    if (rc != 0) {
        missed(c, c->thread, "dequeue", rc);
        return;
    }
    taken(c, had(c, c->thread, "dequeue", &job), &job);
}

/* ---- Several ---- */

static void taken_all(struct client *c, struct book **books, due_job *jobs, size_t n)
{
    handle(c);
    for (size_t i = 0; i < n; i++)
        if (!rounds_repeats(books[i]))
            books_gone(books[i]);
    due_jobs_done(jobs, n);
    for (size_t i = 0; i < n; i++)
        books_let_go(books[i]);
}

static void take_batch(struct client *c, int64_t lease, int64_t timeout)
{
    const char *verb = lease > 0 ? "reserve" : "dequeue";
    due_queue *q = c->program->q;
    int topics[PLAN_TOPICS];
    due_job jobs[CLIENT_BATCH] = { { .queue = NULL } };
    struct book *books[CLIENT_BATCH];
    size_t n;
    size_t max = 1 + model_below(&c->random, CLIENT_BATCH);
    uint32_t bits = draw_topics(c, topics, &n);

    for (unsigned i = 0; i < max; i++)
        history_ask(client_lane(c, i), "%s? %" PRId64, verb, told_lease(c, lease));
    books_call(c->thread, WAIT_JOB, bits, timeout);
    if (lease > 0)
        books_lease(c->thread, lease);
    int rc = lease > 0 ? take_leased_some(q, n > 0 ? topics : NULL, n, jobs, max, lease, timeout)
                       : take_some(q, n > 0 ? topics : NULL, n, jobs, max, timeout);
    books_return(c->thread, rc < 0 ? rc : 0);
    bool more = lease == 0 && (rc > 0 || rc == DUE_EINDOUBT); /* are named */
    for (unsigned i = 0; i < max; i++) {
        if ((int)i < rc)
            books[i] = had(c, client_lane(c, i), verb, &jobs[i]);
        else if (!more || !(more = named(c, client_lane(c, i), &jobs[i])))
            missed(c, client_lane(c, i), verb, rc < 0 ? rc : DUE_EAGAIN);
    }
    bool at_once = lease > 0 && rc > 0 && model_below(&c->random, 3) == 0;
    if (at_once)
        client_ack_batch(c, books, jobs, (unsigned)rc);
    if (lease == 0 && rc > 0 && plan_has(c->program->plan, KIND_SHORT)) {
        taken_all(c, books, jobs, (size_t)rc);
        return;
    }
    for (int i = 0; i < rc && !at_once; i++) {
        if (lease > 0) {
            answer(c, books[i], &jobs[i], false);
            continue;
        }
        handle(c);
        taken(c, books[i], &jobs[i]);
    }
}

void client_take_batch(struct client *c)
{
    bool leased = plan_has(c->program->plan, KIND_RESERVE) && model_below(&c->random, 2) == 0;

    int64_t timeout_ns;

    if (draw_patience(c, &timeout_ns) &&
        (timeout_ns != 0 || !plan_has(c->program->plan, KIND_STORED)))
        take_batch(c, leased ? draw_lease(c) : 0, timeout_ns);
}

/* ---- What nobody had ---- */

/* By whose call. */
static void count_shown(struct program *p)
{
    for (unsigned i = 0; i < p->threads; i++)
        p->client[i].n_shown += p->client[i].fiber == machine.me;
}

/* Shown by a store's queue, it may have left the store, or not. */
void client_discarded(struct program *p, const due_job *job)
{
    char id[DUE_ID_TEXT];
    uint64_t number = client_number(job);

    if (number == 0)
        machine_fail("a job is discarded whose bytes make no sense");
    due_id_format(job->id, id);
    count_shown(p);
    if (plan_has(p->plan, KIND_STORED)) {
        struct book *shown = books_meet(number, job->id);

        rounds_doubt(shown);
        shown->shown = true;
        shown->shown_event = rules_event();
        shown->shown_number = number;
        history_doubt(p->own.thread + CLIENT_HOOK, id);
        return;
    }
    struct book *b = books_meet(number, job->id);
    books_discarded(b);
    (rounds_repeats(b) ? history_note : history_tell)(0, "discarded %s %" PRIu64, id, number);
}
