/* client_put.c - jobs are put in. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"

/* ---- Payloads: the number, then bytes that follow from it ---- */

#define LARGE_BYTES CLIENT_BYTES

static size_t payload(uint64_t number, size_t len, unsigned char *bytes)
{
    memcpy(bytes, &number, 8);
    for (size_t i = 8; i < len; i++)
        bytes[i] = (unsigned char)(number * 31 + i);
    return len;
}

static size_t usual_bytes(uint64_t number)
{
    return number % 16 == 0 ? 3000 : 8 + number * 37 % 90;
}

/* One in four of those that may be large is. */
static bool large(uint64_t number)
{
    return number % 4 == 1;
}

unsigned char *client_payload(const struct plan *p, uint64_t number, size_t *len)
{
    unsigned char *bytes;

    *len = plan_has(p, KIND_LARGE) && large(number) ? LARGE_BYTES : usual_bytes(number);
    bytes = memory_new(*len);
    payload(number, *len, bytes);
    return bytes;
}

uint64_t client_number(const due_job *job)
{
    static unsigned char bytes[LARGE_BYTES];
    uint64_t number = 0;

    if (job->ptr != NULL)
        return (uint64_t)(uintptr_t)job->ptr;
    if (job->len < 8)
        return 0;
    memcpy(&number, job->data, 8);
    if (job->len != usual_bytes(number) && (job->len != LARGE_BYTES || !large(number)))
        return 0;
    if (memcmp(bytes, job->data, payload(number, job->len, bytes)) != 0)
        return 0;
    return number;
}

/* ---- One ---- */

/* A job to be put, and the memory that it points to. */
struct put {
    uint64_t number;
    unsigned key; /* 0: none */
    int topic;    /* of the plan */
    due_spec spec;
    char name[16];
    char group[16];
    unsigned char *bytes; /* or NULL */
};

static int64_t draw_time(struct client *c, due_spec *spec)
{
    const struct plan *p = c->program->plan;
    int64_t now = due_now(c->program->q);
    int64_t ahead = (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1);

    if (model_below(&c->random, 6) == 0)
        ahead = -ahead;
    int64_t at = (now + ahead) / p->grain_ns * p->grain_ns;
    if (model_below(&c->random, 8) != 0 || program_orderly(p)) { /* else it is not quite known */
        spec->at_ns = at > 0 ? at : 1;
        return spec->at_ns;
    }
    spec->delay_ns = ahead > 0 ? ahead : 0;
    return now + spec->delay_ns - 2 * p->machine.clock_step_max_ns;
}

/* When it dies by itself. */
static void draw_limits(struct client *c, struct put *it)
{
    const struct plan *p = c->program->plan;
    struct death_facts *d = &books_job(it->number)->death;
    int64_t span = 1 + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns + 1);

    d->vague = it->key != 0 && (plan_has(p, KIND_ATTEMPTS) || plan_has(p, KIND_EXPIRY));
    if (plan_has(p, KIND_ATTEMPTS) && model_below(&c->random, 2) == 0) {
        d->retry = (uint8_t)model_below(&c->random, PLAN_RETRIES);
        it->spec.retry = &p->retry[d->retry];
    }
    if (!plan_has(p, KIND_EXPIRY) || model_below(&c->random, 2) == 0)
        return;
    if (model_below(&c->random, 2) == 0)
        d->ttl_ns = it->spec.ttl_ns = span;
    else
        d->expires_ns = it->spec.expires_ns = due_now(c->program->q) + span;
}

/* One in four comes again. */
static void draw_rounds(struct client *c, struct put *it)
{
    const struct plan *p = c->program->plan;
    struct round_facts *r = &books_job(it->number)->round;

    if (!plan_has(p, KIND_ROUNDS) || it->key != 0 || model_below(&c->random, 4) != 0)
        return;
    r->every_ns = 1 + (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns / 2 + 100);
    if (plan_has(p, KIND_WORKERS)) /* a pool never rests */
        r->every_ns += DUE_MS(1);
    r->kind = (enum due_repeat)model_below(&c->random, 3);
    it->spec.every_ns = r->every_ns;
    it->spec.repeat = r->kind;
}

/* One in three has a key, and its topic and priority follow from that: one that is replaced keeps
 * them. */
static void put_make(struct client *c, struct put *it, bool may_have_key)
{
    const struct plan *p = c->program->plan;
    uint64_t random = model_random(&c->random);
    bool keys = may_have_key && plan_has(p, KIND_KEYS) && random % 3 == 0;

    it->number = books_new();
    it->key = keys ? 1 + (unsigned)model_below(&c->random, PLAN_KEYS) : 0;
    uint64_t kind = it->key != 0 ? it->key : model_below(&c->random, PLAN_TOPICS * 3);
    it->topic = plan_has(p, KIND_TOPICS) ? (int)(kind % PLAN_TOPICS) : 0;
    it->bytes = NULL;
    it->spec = (due_spec){ DUE_SPEC_INIT };
    it->spec.topic = c->program->topic[it->topic];
    it->spec.priority = plan_has(p, KIND_PRIORITIES) ? (int)(kind / PLAN_TOPICS % 3) * 100 : 0;
    it->spec.on_key = random / 3 % 2 == 0 ? DUE_KEY_REPLACE : DUE_KEY_REFUSE;
    if (it->key == 0 && random % 7 == 0 && !plan_has(p, KIND_STORED)) {
        it->spec.ptr = (void *)(uintptr_t)it->number;
    } else {
        it->bytes = client_payload(p, it->number, &it->spec.len);
        it->spec.data = it->bytes;
    }
    if (it->key != 0) {
        it->spec.key = it->name;
        it->spec.key_len = (size_t)snprintf(it->name, sizeof it->name, "key-%u", it->key);
    }
    if (plan_has(p, KIND_GROUPS) && random / 7 % 2 == 0) {
        int group = 1 + (int)model_below(&c->random, PLAN_GROUPS);

        it->spec.group = it->group;
        it->spec.group_len = (size_t)snprintf(it->group, sizeof it->group, "g%d", group);
        books_job(it->number)->rule.group = group;
    }
    books_job(it->number)->topic = it->topic;
    books_job(it->number)->keyed = it->key != 0;
    draw_limits(c, it);
    draw_rounds(c, it);
}

static void put_ask(unsigned thread, const struct put *it, int64_t at_ns)
{
    if (it->spec.every_ns != 0) {
        history_note(thread, "enqueue? %" PRIu64 " %" PRId64 " %d every %" PRId64 " %d", it->number,
                     at_ns, it->topic, it->spec.every_ns, (int)it->spec.repeat);
        return;
    }
    history_ask(thread, "enqueue? %" PRIu64 " %" PRId64 " %d %d %u %s", it->number, at_ns,
                it->spec.priority, it->topic, it->key,
                it->key != 0 && it->spec.on_key == DUE_KEY_REPLACE ? "replace" : "refuse");
    if (deaths_mortal(books_job(it->number)))
        history_ask(thread, "mortal %" PRIu64, it->number);
}

static void put_tell(struct client *c, unsigned thread, struct put *it, int rc, due_id id)
{
    memory_free(it->bytes);
    char text[DUE_ID_TEXT];
    int64_t due_by_ns = it->spec.at_ns != 0 ? it->spec.at_ns : books_now() + it->spec.delay_ns;

    if (rc == 0 || rc == DUE_EINDOUBT) {
        struct book *b = books_meet(it->number, id);

        if (rc == 0)
            books_put(b, due_by_ns);
        client_remember(c, b);
    } else {
        books_put_refused();
    }
    (it->spec.every_ns != 0 ? history_note : history_tell)(
        thread, "enqueue! %" PRIu64 " %s %s", it->number, due_error_name(rc), client_id(id, text));
    /* Who does not wait for a confirmation may be told so after it was shown to be out. */
    if (rc == 0 && books_find(id)->shown && plan_has(c->program->plan, KIND_ASYNC))
        history_doubt(thread, text);
    c->stopped |= rc == DUE_ECLOSED && c->program->plan->close != CLOSE_DRAIN;
}

static int64_t room_timeout(struct client *c)
{
    return plan_has(c->program->plan, KIND_CAPACITY) ? client_timeout(c) : 0;
}

void client_put(struct client *c)
{
    struct put it;
    due_id id = { { 0 } };

    put_make(c, &it, true);
    books_put_asked();
    int64_t at_ns = draw_time(c, &it.spec);
    int64_t timeout = room_timeout(c);
    put_ask(c->thread, &it, at_ns);
    books_call(c->thread, WAIT_ROOM, 0, timeout);
    int rc = due_enqueue(c->program->q, &it.spec, timeout, &id);
    books_return(c->thread, rc);
    put_tell(c, c->thread, &it, rc, id);
}

/* ---- Several ---- */

/* Of job @i of @n, from what the whole call answers. */
static int answer_of(int rc, size_t i, due_id id, bool stored)
{
    if (rc < 0)
        return i == 0 || rc != DUE_EEXIST ? rc : DUE_EAGAIN;
    if (i < (size_t)rc)
        return 0;
    if (due_id_equal(id, (due_id){ { 0 } }))
        return DUE_EAGAIN;
    return stored ? DUE_EINDOUBT : DUE_EEXIST; /* they have no keys then */
}

void client_put_batch(struct client *c)
{
    static struct put put[PLAN_SEATS][PLAN_QUEUES][BOOKS_CALLERS][CLIENT_BATCH];
    struct put *it = put[c->program->seat][c->program->queue][client_number_of(c)];
    due_spec specs[CLIENT_BATCH];
    due_id ids[CLIENT_BATCH] = { { { 0 } } };
    size_t n = 1 + model_below(&c->random, CLIENT_BATCH);
    int64_t timeout = room_timeout(c);
    bool stored = plan_has(c->program->plan, KIND_STORED);

    for (unsigned i = 0; i < n; i++) {
        put_make(c, &it[i], !stored);
        books_put_asked();
        int64_t at_ns = draw_time(c, &it[i].spec);
        specs[i] = it[i].spec;
        put_ask(client_lane(c, i), &it[i], at_ns);
    }
    books_call(c->thread, WAIT_ROOM, 0, timeout);
    int rc = due_enqueue_batch(c->program->q, specs, n, timeout, ids);
    books_return(c->thread, rc < 0 ? rc : 0);
    for (unsigned i = 0; i < n; i++)
        put_tell(c, client_lane(c, i), &it[i], answer_of(rc, i, ids[i], stored), ids[i]);
}
