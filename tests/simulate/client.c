/* client.c - a thread that does one verb after the other. */
#include "client.h"

#include <string.h>

#include "books.h"
#include "history.h"
#include "machine.h"
#include "meet.h"

int client_topic(const struct program *p, int topic)
{
    for (int i = 0; i < (int)PLAN_TOPICS; i++)
        if (p->topic[i] == topic)
            return i;
    return -1;
}

void client_know(struct client *c, struct book *b)
{
    size_t at = c->n_known < CLIENT_KNOWN ? c->n_known++ : model_below(&c->random, CLIENT_KNOWN);

    c->known[at] = c->known[c->n_known - 1];
    c->known[c->n_known - 1] = b;
}

/* Another thread knows it too: two that change one job meet. */
void client_remember(struct client *c, struct book *b)
{
    struct program *p = c->program;
    uint64_t drawn = model_below(&c->random, 2 * PLAN_THREADS_MAX);

    client_know(c, b);
    if (drawn < p->threads)
        client_know(&p->client[drawn], b);
    p->hot = b;
}

const char *client_id(due_id id, char text[DUE_ID_TEXT])
{
    return due_id_equal(id, (due_id){ { 0 } }) ? "-" : due_id_format(id, text);
}

int64_t client_timeout(struct client *c)
{
    const struct plan *p = c->program->plan;
    uint64_t dice = model_below(&c->random, 8);

    if (!plan_has(p, KIND_WAITS) || dice < 2)
        return 0;
    if (p->close == CLOSE_DISCARD && (dice == 2 || (dice < 6 && plan_has(p, KIND_FREES))))
        return DUE_FOREVER;
    return (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1000);
}

/* Others may have turned it further. */
static void turn_to(due_clock *clock, int64_t to_ns)
{
    int rc = due_clock_turn_to(clock, to_ns);

    if (rc != 0 && (rc != DUE_EINVAL || due_clock_now(clock) <= to_ns))
        machine_fail("the clock cannot be turned to a time");
    if (due_clock_now(clock) < to_ns)
        machine_fail("the clock was turned, and shows less");
}

static void client_sleep(struct client *c)
{
    struct program *p = c->program;
    int64_t ns = (int64_t)model_below(&c->random, (uint64_t)p->plan->horizon_ns / 4 + 100);

    if (p->manual == NULL) {
        machine_sleep(ns);
        return;
    }
    history_note(c->thread, "turn? %lld", (long long)ns);
    if (plan_has(p->plan, KIND_SHORT))
        turn_to(p->manual, due_clock_now(p->manual) + ns);
    else if (due_clock_advance(p->manual, ns) != 0)
        machine_fail("the clock cannot be turned");
    history_note(c->thread, "turn!");
}

struct verb {
    void (*run)(struct client *c);
    unsigned weight;
    enum plan_kind kind; /* KINDS: always there */
};

static const struct verb verbs[] = {
    { client_put, 30, KINDS },
    { client_put_batch, 6, KIND_BATCHES },
    { client_put_timer, 12, KIND_SHORT },
    { client_take_some, 24, KINDS },
    { client_take_batch, 6, KIND_BATCHES },
    { client_take_readable, 6, KIND_READABLE },
    { client_cancel, 8, KIND_CANCEL },
    { client_cancel_batch, 3, KIND_CANCEL },
    { client_cancel_key, 2, KIND_KEYS },
    { client_find_key, 3, KIND_KEYS },
    { client_move, 8, KIND_MOVE },
    { client_update, 6, KIND_UPDATE },
    { client_amend, 6, KIND_AMEND },
    { client_read, 4, KIND_LOOKS },
    { client_find, 4, KIND_LOOKS },
    { client_kick_one, 4, KIND_BURY },
    { client_kick_one, 4, KIND_ATTEMPTS },
    { client_kick_one, 4, KIND_EXPIRY },
    { client_look, 6, KIND_LOOKS },
    { client_measure, 3, KIND_METRICS },
    { client_pause, 3, KIND_PAUSES },
    { client_limit, 3, KIND_RELIMITS },
    { client_flush, 3, KIND_FLUSHES },
    { client_clear, 1, KIND_CLEARS },
    { client_clear_dead, 1, KIND_CLEARS },
    { client_kick_topic, 2, KIND_KICKS },
    { client_sleep, 8, KINDS },
};
#define VERBS (sizeof verbs / sizeof verbs[0])

/* Of those that the seed favours the most are done, and in small ones hardly any others. */
static unsigned weight(const struct client *c, const struct verb *v)
{
    const struct plan *p = c->program->plan;
    bool favoured = p->favoured >> (v - verbs) & 1;

    if (v->kind != KINDS && !(p->drawn >> v->kind & 1))
        return 0;
    if (favoured)
        return 8 * v->weight + 20;
    return p->small && v->run != client_put ? (v->weight + 3) / 4 : v->weight;
}

/* Again if it is one that was left out by hand, a few times; NULL: nothing is done, then. */
static const struct verb *draw_verb(struct client *c)
{
    unsigned sum = 0;

    for (size_t i = 0; i < VERBS; i++)
        sum += weight(c, &verbs[i]);
    for (int tries = 0; tries < 4; tries++) {
        unsigned n = (unsigned)model_below(&c->random, sum);
        const struct verb *v = verbs;

        while (n >= weight(c, v))
            n -= weight(c, v++);
        if (v->kind == KINDS || plan_has(c->program->plan, v->kind))
            return v;
    }
    return NULL;
}

/* Everything is delivered before a queue is closed so: somebody has to take it. */
static void take_until_closed(struct client *c)
{
    while (!c->stopped && !c->program->closed)
        client_reserve(c, DUE_FOREVER, true);
}

void client_run(void *arg)
{
    struct client *c = arg;
    const struct plan *p = c->program->plan;

    unsigned number = client_number_of(c);

    for (unsigned n = 0; n < p->verbs && !c->stopped && !c->program->closed; n++) {
        if (p->skip != NULL && p->skip[(number - 1) * PLAN_VERBS_MAX + n])
            continue;
        meet_verb(c, n);
        c->random = plan_stream(p, c->program->life, number, n);
        const struct verb *v = draw_verb(c);
        if (v != NULL)
            v->run(c);
    }
    meet_leave(c);
    if (p->close == CLOSE_DRAIN)
        take_until_closed(c);
}
