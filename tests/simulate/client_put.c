/* client_put.c - jobs are put in. */
#include <inttypes.h>
#include <stdio.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"

/* ---- One ---- */

/* A job to be put, and the memory that it points to. */
struct put {
    uint64_t number;
    unsigned key; /* 0: none */
    int64_t keep_ns;
    int topic; /* of the plan */
    due_spec spec;
    due_extra more;
    char name[16];
    char group[16];
    unsigned char *bytes; /* or NULL */
    unsigned char headers[CLIENT_HEADERS];
    struct content brought;
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
        it->more.retry = &p->retry[d->retry];
    }
    if (!plan_has(p, KIND_EXPIRY) || model_below(&c->random, 2) == 0)
        return;
    if (model_below(&c->random, 2) == 0)
        d->ttl_ns = it->more.ttl_ns = span;
    else
        d->expires_ns = it->more.expires_ns = due_now(c->program->q) + span;
}

/* One in four comes again. */
static void draw_rounds(struct client *c, struct put *it)
{
    const struct plan *p = c->program->plan;
    struct round_facts *r = &books_job(it->number)->round;

    if (!plan_has(p, KIND_ROUNDS) || it->key != 0 || model_below(&c->random, 4) != 0)
        return;
    r->every_ns = 1 + p->horizon_ns / 1000; /* else there are too many of them until a close */
    r->every_ns += (int64_t)model_below(&c->random, (uint64_t)p->horizon_ns / 2 + 100);
    if (plan_has(p, KIND_WORKERS)) /* a pool never rests */
        r->every_ns += DUE_MS(1);
    r->kind = (enum due_repeat)model_below(&c->random, 3);
    it->more.every_ns = r->every_ns;
    it->more.repeat = r->kind;
}

/* How long a key stays taken when its job is done: always the same. */
static int64_t draw_keep(const struct plan *p, unsigned key)
{
    return plan_has(p, KIND_RETAIN) && key % 3 != 0 ? (int64_t)(key % 4) * (p->horizon_ns / 3 + 10)
                                                    : 0;
}

static enum due_key_policy draw_policy(const struct plan *p, uint64_t drawn)
{
    if (plan_has(p, KIND_POLICIES))
        return (enum due_key_policy)(drawn % 4);
    return drawn % 2 == 0 ? DUE_KEY_REPLACE : DUE_KEY_REFUSE;
}

/* Half of them have some. */
static void draw_headers(struct client *c, struct put *it)
{
    if (!plan_has(c->program->plan, KIND_HEADERS) || model_below(&c->random, 2) == 0)
        return;
    it->more.headers = it->headers;
    it->more.headers_len = client_headers(it->number, it->headers);
}

/* One in three has a key, and its topic and priority follow from that: one that is replaced keeps
 * them. */
static void put_make(struct client *c, struct put *it, bool may_have_key)
{
    const struct plan *p = c->program->plan;
    uint64_t random = model_random(&c->random);
    bool keys = may_have_key && plan_has(p, KIND_KEYS) && random % 3 == 0;

    it->number = books_new();
    it->keep_ns = 0;
    it->key = keys ? 1 + (unsigned)model_below(&c->random, c->program->plan->keys) : 0;
    uint64_t kind = it->key != 0 ? it->key : model_below(&c->random, PLAN_TOPICS * 3);
    it->topic = plan_has(p, KIND_TOPICS) ? (int)(kind % PLAN_TOPICS) : 0;
    it->bytes = NULL;
    it->more = (due_extra){ DUE_EXTRA_INIT };
    it->spec = (due_spec){ DUE_SPEC_INIT, .more = &it->more };
    it->spec.topic = c->program->topic[it->topic];
    it->spec.priority = plan_has(p, KIND_PRIORITIES) ? (int)(kind / PLAN_TOPICS % 3) * 100 : 0;
    it->more.on_key = draw_policy(p, random / 3);
    if (it->key == 0 && random % 7 == 0 && !plan_has(p, KIND_STORED)) {
        it->spec.ptr = (void *)(uintptr_t)it->number;
        books_job(it->number)->carried = true;
    } else {
        it->bytes = client_payload(p, it->number, &it->spec.len);
        it->spec.data = it->bytes;
    }
    if (it->key != 0) {
        it->keep_ns = draw_keep(p, it->key);
        it->more.keep_key_ns = it->keep_ns;
        it->more.key = it->name;
        it->more.key_len = (size_t)snprintf(it->name, sizeof it->name, "key-%u", it->key);
    }
    if (plan_has(p, KIND_GROUPS) && random / 7 % 2 == 0) {
        int group = 1 + (int)model_below(&c->random, c->program->plan->groups);

        it->more.group = it->group;
        it->more.group_len = (size_t)snprintf(it->group, sizeof it->group, "g%d", group);
        books_job(it->number)->rule.group = group;
    }
    books_job(it->number)->topic = it->topic;
    rules_new(books_job(it->number));
    books_job(it->number)->keyed = it->key != 0;
    books_job(it->number)->content.key = it->key;
    draw_headers(c, it);
    draw_limits(c, it);
    draw_rounds(c, it);
}

/* What it would be. */
static struct content content_of(const struct put *it, int64_t at_ns)
{
    bool timed = it->spec.at_ns != 0;

    return (struct content){ .fields = CONTENT_ALL,
                             .least_ns = at_ns,
                             .most_ns = at_ns,
                             .timed = timed,
                             .priority = it->spec.priority,
                             .bytes = it->number,
                             .headers = it->more.headers_len > 0 ? it->number : 0 };
}

static void put_ask(unsigned thread, struct put *it, int64_t at_ns)
{
    static const char *const policies[] = { [DUE_KEY_REFUSE] = "refuse",
                                            [DUE_KEY_REPLACE] = "replace",
                                            [DUE_KEY_EARLIEST] = "earliest",
                                            [DUE_KEY_DEBOUNCE] = "debounce" };

    it->brought = content_of(it, at_ns);
    contents_ask(books_job(it->number));
    if (it->more.every_ns != 0) {
        history_note(thread, "enqueue? %" PRIu64 " %" PRId64 " %d every %" PRId64 " %d", it->number,
                     at_ns, it->topic, it->more.every_ns, (int)it->more.repeat);
        return;
    }
    history_ask(thread, "enqueue? %" PRIu64 " %" PRId64 " %d %d %u %s %" PRId64, it->number, at_ns,
                it->spec.priority, it->topic, it->key,
                policies[it->key != 0 ? it->more.on_key : DUE_KEY_REFUSE], it->keep_ns);
    if (deaths_mortal(books_job(it->number)))
        history_ask(thread, "mortal %" PRIu64, it->number);
}

/* What the job @b, whose id was told, is now. */
static void put_known(const struct client *c, struct put *it, struct book *b, int rc)
{
    struct book *own = books_job(it->number);

    if (!it->brought.timed)
        it->brought.most_ns = books_now() + it->spec.delay_ns;
    if (rc == 0) {
        contents_enqueued(own, b, it->more.on_key, &it->brought);
        return;
    }
    bool alone = contents_told(own, rc, &it->brought);
    own->content.never = rc != DUE_EINDOUBT;
    if (alone && rc == DUE_EEXIST && it->more.on_key == DUE_KEY_REFUSE && it->keep_ns == 0)
        books_key_taken(c->thread, own);
}

static bool shown(due_id id)
{
    const struct book *b = books_find(id);

    return b != NULL && b->shown;
}

static void put_tell(struct client *c, unsigned thread, struct put *it, int rc, due_id id)
{
    memory_free(it->bytes);
    char text[DUE_ID_TEXT];
    int64_t due_by_ns = it->spec.at_ns != 0 ? it->spec.at_ns : books_now() + it->spec.delay_ns;

    if (rc == 0 || rc == DUE_EINDOUBT) {
        struct book *b = books_meet(it->number, id);

        if (rc == 0 && !due_id_equal(b->id, id))
            machine_fail("job %" PRIu64 " is told to have another id", books_number(b));
        if (rc == 0)
            books_put(b, due_by_ns);
        put_known(c, it, b, rc);
        client_remember(c, b);
    } else {
        books_put_refused();
        put_known(c, it, NULL, rc);
    }
    /* It may be told so after it was shown to be out: if it was not confirmed, or cleared before it
     * was sent.  Then the store knows nothing of it, and its key is whose it was. */
    bool out = rc == 0 && shown(id);
    (it->more.every_ns != 0 ? history_note : history_tell)(
        thread, "enqueue! %" PRIu64 " %s %s", it->number, due_error_name(out ? DUE_EINDOUBT : rc),
        client_id(id, text));
    if (out)
        history_doubt(thread, text);
    c->stopped |= rc == DUE_ECLOSED && c->program->plan->close != CLOSE_DRAIN;
}

/* What was cleared before it was sent asks the store for nothing. */
static int confirmed(int rc, const due_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rc == 0 && shown(ids[i]))
            return 1;
    return rc;
}

static int64_t room_timeout(struct client *c)
{
    return plan_has(c->program->plan, KIND_CAPACITY) ? client_timeout(c) : 0;
}

/* Of what is on its way to a store: at a moment, and what had come to its end by then. */
struct crowd {
    uint64_t settled;
    uint64_t unsettled;
};

static struct crowd crowd_now(const struct client *c)
{
    struct due_stats s;

    if (due_stats_read(c->program->q, &s) != 0)
        machine_fail("due_stats_read fails");
    return (struct crowd){ .settled = s.settled, .unsettled = s.unsettled };
}

/* It was told that it is in: was more on its way than may be, all the while? */
static void crowd_check(const struct client *c, struct crowd first, struct crowd before)
{
    struct crowd after = crowd_now(c);

    if (before.unsettled > c->program->plan->unsettled_max && first.settled == after.settled)
        machine_fail("%" PRIu64 " changes are on their way to the store, and one more is let in",
                     before.unsettled);
}

/* A call that puts one, where much may be on its way. */
static int put_beside_many(struct client *c, const struct put *it, int64_t timeout_ns, due_id *id)
{
    struct crowd first = crowd_now(c);
    struct crowd before = crowd_now(c); /* with what had settled when @first was read, or more */
    int rc = due_enqueue(c->program->q, &it->spec, timeout_ns, id);

    if (rc == 0 && !books_waits(c->thread)) /* else the queue may be gone */
        crowd_check(c, first, before);
    return rc;
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
    bool plain = it.key == 0; /* by a key it may be a change of another, which asks for no room */
    int rc = plan_has(c->program->plan, KIND_ASYNC) && plain && it.number % 4 == 0
                 ? put_beside_many(c, &it, timeout, &id)
                 : due_enqueue(c->program->q, &it.spec, timeout, &id);
    books_return(c->thread, confirmed(rc, &id, 1));
    put_tell(c, c->thread, &it, rc, id);
}

/* A pointer and a time, and nothing else. */
void client_put_timer(struct client *c)
{
    struct put it = { .spec = { DUE_SPEC_INIT }, .more = { DUE_EXTRA_INIT } };
    due_queue *q = c->program->q;
    due_id id = { { 0 } };

    if (plan_has(c->program->plan, KIND_STORED))
        return;
    it.number = books_new();
    it.spec.ptr = (void *)(uintptr_t)it.number;
    books_job(it.number)->carried = true;
    rules_new(books_job(it.number));
    books_put_asked();
    int64_t at_ns = draw_time(c, &it.spec);
    put_ask(c->thread, &it, at_ns);
    books_call(c->thread, WAIT_ROOM, 0, 0);
    int rc = it.spec.at_ns != 0 ? due_enqueue_at(q, it.spec.at_ns, it.spec.ptr, &id)
                                : due_enqueue_after(q, it.spec.delay_ns, it.spec.ptr, &id);
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
    books_return(c->thread, rc < 0 ? rc : confirmed(0, ids, (size_t)rc));
    for (unsigned i = 0; i < n; i++)
        put_tell(c, client_lane(c, i), &it[i], answer_of(rc, i, ids[i], stored), ids[i]);
}
