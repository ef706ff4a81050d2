/* orders.c - scenarios of one job, perhaps with a unique key, and several who have to do with it.
 *
 * What came of them must be what comes of one after the other, in some order: the same answers and
 * ids, the same contents and deadlines, the key with the same job.  What that is, sequence.c says.
 */
#include "orders.h"

#include "acts.h"
#include "os/atomic.h"
#include "engine.h"
#include "lab/take.h"

#include <stdio.h>
#include <string.h>

#define LEASE DUE_S(1000000)
#define KEEP  DUE_S(5000)

struct ledger *ledger;

/* ---- What came of it ---- */

static unsigned number_of(due_id id)
{
    static const due_id none;

    if (due_id_equal(id, none))
        return NONE;
    if (due_id_equal(id, ledger->x))
        return X;
    for (unsigned n = 0; n < 2; n++) {
        if (due_id_equal(id, ledger->id[n]))
            return BY_FIRST + n;
    }
    explore_fail("a job that nobody has put in");
    return NONE;
}

static struct item item_of(const due_job *job, enum place place)
{
    const char *text = job->data;

    for (size_t i = 1; i < job->len; i++)
        explore_check(text[i] == text[0], "torn");
    explore_check(job->len > 0 && text[0] == (char)('a' + job->len % 26), "another text");
    return (struct item){ place, job->len, job->headers_len, job->deadline_ns };
}

/* Everything that waits is had; if X is dead, it is kicked for that. */
static void empty(struct outcome *o)
{
    bool dead = ledger->plan.x == DEAD && due_kick(ledger->q, ledger->x) == 0;
    due_job job;

    if (ledger->clock == NULL)
        world->now_ns += DUE_S(1000);
    else
        explore_check(due_clock_advance(ledger->clock, DUE_S(1000)) == 0, "advance");
    while (!engine.failed && due_dequeue(ledger->q, &job, 0) == 0) {
        unsigned n = number_of(job.id);

        explore_check(o->job[n].place == NOWHERE, "it comes again");
        o->job[n] = item_of(&job, n == X && dead ? DEAD : WAITS);
        due_job_done(&job);
    }
}

static bool answered(enum verb verb, int rc)
{
    for (unsigned i = 0; i < ledger->plan.verbs; i++) {
        if (ledger->plan.verb[i] == verb && ledger->rc[i] == rc)
            return true;
    }
    return false;
}

/* What RESERVE got is not its thread's any more. */
static bool gave_back(void)
{
    return answered(GIVE_BACK, 0) || answered(GIVE_BACK, DUE_EINDOUBT);
}

/* Where X is, if nobody has got it at the end. */
static enum place x_is(const struct plan *p)
{
    due_info info;

    if (answered(ACK, DUE_EINDOUBT))
        return due_find(ledger->q, ledger->x, &info) == DUE_EBUSY ? RESERVED : NOWHERE;
    if (answered(TAKE, 0))
        return TAKEN;
    if ((answered(RESERVE, 0) && !gave_back()) ||
        (p->x == RESERVED && !answered(ACK, 0) && !answered(NACK, 0)))
        return RESERVED;
    return NOWHERE;
}

static struct outcome seen(void)
{
    struct outcome o = { .owner = NONE, .named = { NONE, NONE } };
    due_spec probe = { DUE_SPEC_INIT,
                       .more = EXTRA(.key = ORDERS_KEY, .key_len = sizeof ORDERS_KEY),
                       .at_ns = DUE_S(1000000) };
    due_id id;

    memcpy(o.rc, ledger->rc, sizeof o.rc);
    for (unsigned n = 0; n < 2; n++)
        o.named[n] = number_of(ledger->id[n]);
    if (due_id_of_key(ledger->q, ORDERS_KEY, sizeof ORDERS_KEY, &id) == 0)
        o.owner = number_of(id);
    else
        o.kept = due_enqueue(ledger->q, &probe, 0, NULL) == DUE_EEXIST;
    o.got = ledger->got;
    empty(&o);
    if (o.job[X].place == NOWHERE)
        o.job[X].place = x_is(&ledger->plan);
    return o;
}

static void describe(const struct outcome *o, char *text, size_t size)
{
    int n = snprintf(text, size, "answers");

    for (unsigned i = 0; i < ledger->plan.verbs; i++)
        n += snprintf(text + n, size - (size_t)n, " %d", o->rc[i]);
    n += snprintf(text + n, size - (size_t)n, "; named %u %u; key of %u%s; jobs", o->named[0],
                  o->named[1], o->owner, o->kept ? " kept" : "");
    for (unsigned i = 0; i < JOBS; i++)
        n += snprintf(text + n, size - (size_t)n, " %d/%zu/%zu/%lld", (int)o->job[i].place,
                      o->job[i].len, o->job[i].headers_len,
                      (long long)(o->job[i].at_ns - EXPLORE_START_NS) / 1000000);
    snprintf(text + n, size - (size_t)n, "; got %zu", o->got.len);
}

void orders_check(void)
{
    const struct plan *p = &ledger->plan;
    struct outcome is = seen();
    struct due_stats s;
    char text[300];

    describe(&is, text, sizeof text);
    explore_check(orders_explain(p, &is), "in no order: %s", text);
    due_job_done(&ledger->taken);
    if (p->x == RESERVED && is.job[X].place == RESERVED && !answered(ACK, DUE_EINDOUBT) &&
        !answered(NACK, 0) && !answered(NACK, DUE_EINDOUBT))
        due_job_done(&ledger->held);
    explore_check(due_stats_read(ledger->q, &s) == 0, "stats");
    explore_check(s.waiting == (is.owner == NONE && !is.kept) && s.dead + s.lent == 0,
                  "%llu wait, %llu dead, %llu lent: %s", (unsigned long long)s.waiting,
                  (unsigned long long)s.dead, (unsigned long long)s.lent, text);
}

static void at_rest(void)
{
    explore_check(ledger->q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(ledger->q->dying == 0, "everybody rests, and a job is to be seen to");
}

/* ---- Threads ---- */

static char large[LARGE];
static char texts[TEXT_CHANGED + 1][TEXT_CHANGED + 1];

static const char *text_of(size_t len)
{
    return len == LARGE ? large : texts[len];
}

static int put(enum verb verb)
{
    unsigned n = verb == PUT_SECOND;
    due_spec spec = { DUE_SPEC_INIT, .data = text_of(TEXT_PUT + n), .len = TEXT_PUT + n,
                      .at_ns = order_at(&ledger->plan, verb),
                      .more = EXTRA(.key = ORDERS_KEY, .key_len = sizeof ORDERS_KEY,
                                    .on_key = ledger->plan.policy[n]) };

    return due_enqueue(ledger->q, &spec, 0, &ledger->id[n]);
}

static int change(void)
{
    due_spec spec = { DUE_SPEC_INIT, .data = text_of(TEXT_CHANGED), .len = TEXT_CHANGED,
                      .at_ns = order_at(&ledger->plan, CHANGE),
                      .more = EXTRA(.headers = "h", .headers_len = 1) };

    return due_amend(ledger->q, ledger->x, &spec, ledger->plan.what);
}

static int get(enum verb verb)
{
    int rc = verb == TAKE ? due_dequeue(ledger->q, &ledger->taken, 0)
                          : take_leased(ledger->q, &ledger->taken, LEASE, 0);

    if (rc != 0)
        return rc;
    explore_check(due_id_equal(ledger->taken.id, ledger->x), "it is not due");
    ledger->got = item_of(&ledger->taken, verb == TAKE ? TAKEN : RESERVED);
    return 0;
}

static int act(enum verb verb)
{
    due_job held = ledger->held;

    switch (verb) {
    case PUT_FIRST:
    case PUT_SECOND:
        return put(verb);
    case TAKE:
    case RESERVE:
        return get(verb);
    case GIVE_BACK:
        return due_nack(&ledger->taken, 0);
    case ACK:
        return due_ack(&held);
    case NACK:
        return due_nack(&held, 0);
    case CANCEL:
        return due_cancel(ledger->q, ledger->x, NULL);
    case CANCEL_KEY:
        return due_cancel_key(ledger->q, ORDERS_KEY, sizeof ORDERS_KEY, NULL);
    case KICK:
        return due_kick(ledger->q, ledger->x);
    case CHANGE:
        return change();
    case UPDATE:
        return due_update(ledger->q, ledger->x, text_of(TEXT_UPDATED), TEXT_UPDATED);
    }
    return DUE_EINVAL;
}

static void run(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;

    do {
        ledger->rc[i] = act(ledger->plan.verb[i]);
        explore_note("%u: %s", i, due_error_name(ledger->rc[i]));
        i++;
    } while (ledger->plan.two && i > 1 && i < ledger->plan.verbs);
}

/* ---- Setup ---- */

static void write_texts(void)
{
    memset(large, (int)('a' + LARGE % 26), LARGE);
    for (size_t len = 0; len <= TEXT_CHANGED; len++)
        memset(texts[len], (int)('a' + len % 26), len);
}

static void make_x(const struct plan *p)
{
    size_t len = p->large ? LARGE : TEXT_X;
    due_spec spec = { DUE_SPEC_INIT, .data = text_of(len), .len = len, .at_ns = EXPLORE_START_NS,
                      .more = EXTRA(.key = p->plain ? NULL : ORDERS_KEY,
                                    .key_len = p->plain ? 0 : sizeof ORDERS_KEY,
                                    .keep_key_ns = p->keep ? KEEP : 0) };
    due_info info;

    explore_check(due_enqueue(ledger->q, &spec, 0, &ledger->x) == 0, "enqueue");
    explore_check(!p->stored || due_flush(ledger->q, DUE_S(1)) == 0, "flush");
    explore_check(due_peek(ledger->q, &info) == 0, "nothing to show");
    if (p->x == WAITS)
        return;
    explore_check(take_leased(ledger->q, &ledger->held, LEASE, 0) == 0, "reserve");
    if (p->x == DEAD)
        explore_check(due_bury(&ledger->held, NULL) == 0, "bury");
}

void orders_open(struct plan plan, due_options o)
{
    write_texts();
    ledger = explore_new(sizeof *ledger);
    ledger->plan = plan;
    o.size = sizeof(due_options);
    o.allocator = &explore_allocator;
    o.reserve = 1;
    if (plan.stored) {
        shelf_make(&ledger->shelf, 4);
        ledger->clock = o.manual = due_clock_manual(EXPLORE_START_NS);
        o.store = &ledger->shelf.head;
    }
    explore_check(due_open(&ledger->q, &o, NULL) == 0, "open");
}

void orders_begin(void)
{
    static const char *const names[] = { "first", "second", "third" };

    if (ledger->plan.x != NOWHERE)
        make_x(&ledger->plan);
    for (unsigned i = 0; i < (ledger->plan.two ? 2 : ledger->plan.verbs); i++)
        explore_thread(names[i], run, as_arg(i));
}

static void open_ledger(struct plan plan)
{
    orders_open(plan, (due_options){ .proxies = DUE_PROXIES_NEVER });
    orders_begin();
}

#define ORDER(setup_, ...)                         \
    static void setup_(void)                       \
    {                                              \
        open_ledger((struct plan){ __VA_ARGS__ }); \
    }
#define TWO(a, b)      .verbs = 2, .verb = { (a), (b) }
#define THREE(a, b, c) .verbs = 3, .verb = { (a), (b), (c) }
#define BACK(a)        .two = true, .verbs = 4, .verb = { (a), RESERVE, PUT_SECOND, GIVE_BACK }

/* Nobody has the key yet; the table of keys is made as well. */
ORDER(refuse_two_setup, TWO(PUT_FIRST, PUT_SECOND))
ORDER(replace_two_setup, .policy = { DUE_KEY_REPLACE, DUE_KEY_REPLACE }, TWO(PUT_FIRST, PUT_SECOND))
ORDER(refuse_replace_setup, .policy = { DUE_KEY_REFUSE, DUE_KEY_REPLACE },
      TWO(PUT_FIRST, PUT_SECOND))
ORDER(earliest_two_setup, .policy = { DUE_KEY_EARLIEST, DUE_KEY_EARLIEST },
      TWO(PUT_FIRST, PUT_SECOND))
ORDER(earliest_debounce_setup, .policy = { DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE },
      TWO(PUT_FIRST, PUT_SECOND))

/* X has it. */
ORDER(debounce_two_setup, .x = WAITS, .policy = { DUE_KEY_DEBOUNCE, DUE_KEY_DEBOUNCE },
      TWO(PUT_FIRST, PUT_SECOND))
ORDER(refuse_cancel_setup, .x = WAITS, TWO(PUT_FIRST, CANCEL))
ORDER(refuse_take_setup, .x = WAITS, .keep = true, TWO(PUT_FIRST, TAKE))
ORDER(refuse_ack_setup, .x = RESERVED, .keep = true, TWO(PUT_FIRST, ACK))
ORDER(replace_take_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE }, TWO(PUT_FIRST, TAKE))
ORDER(replace_reserve_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE }, TWO(PUT_FIRST, RESERVE))
ORDER(replace_cancel_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE }, TWO(PUT_FIRST, CANCEL))
ORDER(replace_cancel_key_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE },
      THREE(PUT_FIRST, CANCEL_KEY, TAKE))
ORDER(replace_ack_setup, .x = RESERVED, .keep = true, .policy = { DUE_KEY_REPLACE },
      TWO(PUT_FIRST, ACK))
ORDER(debounce_nack_setup, .x = RESERVED, .policy = { DUE_KEY_DEBOUNCE }, TWO(PUT_FIRST, NACK))
ORDER(replace_kick_setup, .x = DEAD, .policy = { DUE_KEY_REPLACE }, TWO(PUT_FIRST, KICK))
ORDER(earliest_dead_setup, .x = DEAD, .policy = { DUE_KEY_EARLIEST, DUE_KEY_REPLACE },
      THREE(PUT_FIRST, PUT_SECOND, CANCEL))
ORDER(refuse_two_cancel_setup, .x = WAITS, THREE(PUT_FIRST, PUT_SECOND, CANCEL))
ORDER(two_replaced_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE, DUE_KEY_REPLACE },
      THREE(PUT_FIRST, PUT_SECOND, CANCEL))
ORDER(two_take_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE, DUE_KEY_DEBOUNCE },
      THREE(PUT_FIRST, PUT_SECOND, TAKE))
ORDER(two_ack_setup, .x = RESERVED, .keep = true, .policy = { DUE_KEY_REPLACE, DUE_KEY_REFUSE },
      THREE(PUT_FIRST, PUT_SECOND, ACK))
ORDER(replace_back_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE, DUE_KEY_REPLACE },
      BACK(PUT_FIRST))
ORDER(earliest_back_setup, .x = WAITS, .early = true,
      .policy = { DUE_KEY_EARLIEST, DUE_KEY_EARLIEST }, BACK(PUT_FIRST))
ORDER(debounce_back_setup, .x = WAITS, .policy = { DUE_KEY_DEBOUNCE, DUE_KEY_DEBOUNCE },
      BACK(PUT_FIRST))
ORDER(cancel_key_back_setup, .x = WAITS, .policy = { DUE_KEY_REPLACE, DUE_KEY_REPLACE },
      BACK(CANCEL_KEY))
ORDER(replace_update_setup, .x = WAITS, .what = DUE_SET_DATA, .policy = { DUE_KEY_REPLACE },
      TWO(PUT_FIRST, CHANGE))
ORDER(earliest_amend_setup, .x = WAITS, .what = DUE_SET_DATA | DUE_SET_TIME,
      .policy = { DUE_KEY_EARLIEST }, TWO(PUT_FIRST, CHANGE))

/* A change that does not fit under the lock. */
ORDER(large_replace_setup, .x = WAITS, .large = true, .what = DUE_SET_HEADERS,
      .policy = { DUE_KEY_REPLACE }, TWO(CHANGE, PUT_FIRST))
ORDER(large_alone_setup, .x = WAITS, .large = true, .plain = true, .what = DUE_SET_HEADERS,
      TWO(CHANGE, CANCEL))
ORDER(large_cancel_setup, .x = WAITS, .large = true, .what = DUE_SET_HEADERS,
      .policy = { DUE_KEY_REPLACE }, THREE(CHANGE, PUT_FIRST, CANCEL))

/* Changes against delivery. */
ORDER(update_reserve_setup, .x = WAITS, .plain = true, .what = DUE_SET_DATA, TWO(CHANGE, RESERVE))
ORDER(amend_reserve_setup, .x = WAITS, .plain = true, .what = DUE_SET_DATA | DUE_SET_TIME,
      TWO(CHANGE, RESERVE))
ORDER(amend_two_setup, .x = WAITS, .plain = true, .what = DUE_SET_HEADERS | DUE_SET_TIME,
      THREE(CHANGE, UPDATE, RESERVE))
ORDER(headers_take_setup, .x = WAITS, .plain = true, .what = DUE_SET_HEADERS, TWO(CHANGE, TAKE))
ORDER(update_again_setup, .x = RESERVED, .plain = true, .what = DUE_SET_DATA,
      THREE(CHANGE, NACK, RESERVE))
ORDER(update_ack_setup, .x = RESERVED, .plain = true, .what = DUE_SET_DATA, TWO(CHANGE, ACK))
ORDER(amend_reserve_cancel_setup, .x = WAITS, .plain = true, .what = DUE_SET_DATA | DUE_SET_TIME,
      THREE(CHANGE, RESERVE, CANCEL))

#define ORDERS(name_, about_, setup_, quick_, deep_)                                         \
    {                                                                                        \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest,              \
        .check = orders_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = 4,                                                                          \
    }

const struct explore_scenario explore_scenarios_orders[] = {
    ORDERS("key_refuse_two", "a new key twice: the second is refused", refuse_two_setup,
           (2, 0, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_replace_two", "a new key twice: the second replaces", replace_two_setup,
           (2, 0, 0, 0), (4, 1, 0, 0)),
    ORDERS("key_refuse_replace", "a new key twice: refuse and replace", refuse_replace_setup,
           (2, 0, 0, 0), (4, 1, 0, 0)),
    ORDERS("key_earliest_two", "a new key twice: the earlier deadline", earliest_two_setup,
           (2, 0, 0, 0), (4, 1, 0, 0)),
    ORDERS("key_earliest_debounce", "a new key twice: the earlier, and the later deadline",
           earliest_debounce_setup, (2, 0, 0, 0), (4, 1, 0, 0)),
    ORDERS("key_debounce_two", "a job is pushed back twice", debounce_two_setup, (2, 0, 0, 0),
           (4, 1, 0, 0)),
    ORDERS("key_refuse_cancel", "a key, and the cancel of its job", refuse_cancel_setup,
           (3, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_refuse_take", "a key that will be kept, and its job is taken", refuse_take_setup,
           (3, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_refuse_ack", "a key that will be kept, and its job is acked", refuse_ack_setup,
           (3, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_replace_take", "a job is replaced and taken", replace_take_setup, (2, 1, 0, 0),
           (4, 2, 0, 0)),
    ORDERS("key_replace_reserve", "a job is replaced and reserved", replace_reserve_setup,
           (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_replace_cancel", "a job is replaced and cancelled", replace_cancel_setup,
           (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_replace_cancel_key", "a job is replaced, cancelled by its key and taken",
           replace_cancel_key_setup, (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_replace_ack", "a key is taken over, and its job is acked", replace_ack_setup,
           (3, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_debounce_nack", "a job is pushed back and given back", debounce_nack_setup,
           (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_replace_kick", "a dead job is replaced and kicked", replace_kick_setup,
           (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_dead_cancel", "a dead job is revived twice and cancelled", earliest_dead_setup,
           (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_two_cancel", "a key twice, and the cancel of its job", refuse_two_cancel_setup,
           (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_two_replaced", "a job is replaced twice and cancelled", two_replaced_setup,
           (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_two_take", "a job is replaced, pushed back and taken", two_take_setup, (1, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("key_two_ack", "a kept key is taken over and refused, and its job acked", two_ack_setup,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_back_replace", "a key is taken over from a job that is given back, and replaced",
           replace_back_setup, (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_back_earliest", "the same, for the earlier deadline", earliest_back_setup,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("key_back_debounce", "the same, pushed back", debounce_back_setup, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("key_back_cancel", "the same, cancelled by the key", cancel_key_back_setup, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("key_replace_update", "a job is replaced and updated", replace_update_setup,
           (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_earliest_amend", "a job gets an earlier deadline, and content and time",
           earliest_amend_setup, (2, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("key_large_replace", "a long change, and a replacement that waits for it",
           large_replace_setup, (2, 0, 0, 0), (4, 1, 0, 0)),
    ORDERS("update_large_cancel", "a long change, and a cancel", large_alone_setup, (2, 0, 0, 0),
           (4, 2, 0, 0)),
    ORDERS("key_large_cancel", "all three", large_cancel_setup, (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("update_reserve", "a job is updated and reserved", update_reserve_setup, (3, 1, 0, 0),
           (4, 2, 0, 0)),
    ORDERS("amend_reserve", "content and time are changed, and it is reserved", amend_reserve_setup,
           (3, 1, 0, 0), (4, 2, 0, 0)),
    ORDERS("amend_two", "a job gets headers and other content, and is reserved", amend_two_setup,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("headers_take", "a job gets headers and is taken", headers_take_setup, (3, 1, 0, 0),
           (4, 2, 0, 0)),
    ORDERS("update_again", "a job is given back, updated and reserved again", update_again_setup,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("update_ack", "a job is updated and acked", update_ack_setup, (3, 1, 0, 0),
           (4, 2, 0, 0)),
    ORDERS("amend_reserve_cancel", "content and time are changed, it is reserved and cancelled",
           amend_reserve_cancel_setup, (2, 0, 0, 0), (3, 1, 0, 0)),
    { .name = NULL },
};
