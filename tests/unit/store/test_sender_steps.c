/* Who sends, one step at a time: the test has the key, and each call of the store is written down.
 *
 *   r    is it ready?              p3   these three changes are prepared
 *   s    the batch is sent         c3   what came of these three?
 */
#include <stdio.h>

#include "lab/shop.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define FULL 8 /* changes of a batch, but where it is said */

static const struct due_store_verbs *real;
static char said[200]; /* to the store */
static due_queue *queue;
static unsigned come; /* jobs that are put while the store is asked what came of a batch */
static int ready_is;  /* its answers, if they are not its own */
static int send_is;
static int commit_is;
static int prepare_is;

static void say(char what, size_t n)
{
    size_t len = strlen(said);

    if (n > 0)
        snprintf(said + len, sizeof said - len, "%c%zu ", what, n);
    else
        snprintf(said + len, sizeof said - len, "%c ", what);
}

static void put(unsigned n)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 1000, .flags = DUE_SPEC_AT };

    for (; n > 0; n--)
        cr_assert_eq(due_enqueue(queue, &spec, 0, NULL), 0);
}

static int say_ready(due_store *s, int64_t until_ns)
{
    say('r', 0);
    return ready_is != 0 ? ready_is : real->ready(s, until_ns);
}

static int say_prepare(due_store *s, const due_change *changes, size_t n, uint64_t number)
{
    say('p', n);
    return prepare_is != 0 ? prepare_is : real->prepare(s, changes, n, number);
}

static int say_send(due_store *s, uint64_t number, int64_t until_ns)
{
    say('s', 0);
    return send_is != 0 ? send_is : real->send(s, number, until_ns);
}

static int say_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                      int64_t until_ns)
{
    say('c', n);
    put(come);
    come = 0;
    return commit_is != 0 ? commit_is : real->commit(s, changes, n, number, until_ns);
}

struct desk {
    struct shop s;
    struct due_store_verbs verbs;
    struct due__commits *c;
};

/* The proxy sleeps, and is not called while the test has the key. */
static void desk_open(struct desk *d, size_t batch)
{
    *d = (struct desk){ .s.disk = memory_disk_new(
                            &(struct memory_disk_options){ .batch_changes = batch }) };
    due_store *store = memory_store_new(d->s.disk);

    real = store->verbs;
    d->verbs = *real;
    store->verbs->free(store);
    d->verbs.ready = say_ready;
    d->verbs.prepare = say_prepare;
    d->verbs.send = say_send;
    d->verbs.commit = say_commit;
    shop_begin(&d->s, (struct lab_options){ .start_ns = 1, .with.confirm = DUE_CONFIRM_ASYNC },
               &d->verbs);
    shop_wait_loaded(&d->s);
    queue = d->s.lab.q;
    d->c = queue->commits;
    due__lock_acquire(&d->c->key);
    said[0] = '\0';
}

static void desk_close(struct desk *d)
{
    ready_is = send_is = commit_is = prepare_is = 0;
    due__commit_leave(queue, true);
    cr_expect_eq(due_flush(queue, DUE_S(20)), 0);
    shop_close(&d->s);
}

static void expect(struct desk *d, const char *calls, enum due__sender sender, const char *where)
{
    size_t len = strlen(said);

    if (len > 0)
        said[len - 1] = '\0';
    cr_expect_str_eq(said, calls, "%s: %s", where, said);
    cr_expect_eq(d->c->sender, sender, "%s: it is %d", where, (int)d->c->sender);
    said[0] = '\0';
}

static void step(void)
{
    due__commit_step(queue, DUE_FOREVER);
}

/* ---- One batch ---- */

Test(sender_steps, send_what_waits_and_then_ask_what_came_of_it, .timeout = 30)
{
    struct desk d;

    for (unsigned n = 1; n <= FULL + 2; n++) {
        char first[20], second[20];
        unsigned in = n < FULL ? n : FULL;

        desk_open(&d, FULL);
        step();
        expect(&d, "", DUE__SENDER_IDLE, "nothing is there");
        put(n);
        snprintf(first, sizeof first, "r p%u s", in);
        step();
        expect(&d, first, DUE__SENDER_SENT, "sent");
        snprintf(second, sizeof second,
                 n == in       ? "c%u"
                 : n == in + 1 ? "c%u p1 s" /* that is little */
                               : "p2 c%u s",
                 in);
        step();
        expect(&d, second, n > in ? DUE__SENDER_SENT : DUE__SENDER_IDLE, "asked");
        cr_expect_eq(d.c->settled, in);
        desk_close(&d);
    }
}

Test(sender_steps, do_nothing_where_the_store_cannot_be_sent_to_ahead, .timeout = 30)
{
    struct desk d;

    desk_open(&d, FULL);
    d.verbs.send = NULL;
    put(1);
    step();
    expect(&d, "", DUE__SENDER_IDLE, "no send");
    d.verbs.send = say_send;
    due__store_seq(&d.c->stopping, 1);
    step();
    expect(&d, "", DUE__SENDER_IDLE, "the queue stops");
    due__store_seq(&d.c->stopping, 0);
    desk_close(&d);
}

/* ---- The next one ---- */

/* A quarter of a full batch is worth to be prepared before the answer is there. */
Test(sender_steps, prepare_the_next_batch_if_it_is_worth_it_and_send_it_in_any_case, .timeout = 60)
{
    static const unsigned batches[] = { 2, 4, 8, 12, 16 };
    struct desk d;

    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        for (unsigned next = 0; next <= batches[i]; next++) {
            char calls[40];

            desk_open(&d, batches[i]);
            put(1);
            step();
            expect(&d, "r p1 s", DUE__SENDER_SENT, "the first");
            put(next);
            if (next == 0)
                snprintf(calls, sizeof calls, "c1");
            else if (next < batches[i] / 4)
                snprintf(calls, sizeof calls, "c1 p%u s", next);
            else
                snprintf(calls, sizeof calls, "p%u c1 s", next);
            step();
            expect(&d, calls, next > 0 ? DUE__SENDER_SENT : DUE__SENDER_IDLE, calls);
            cr_expect_eq(d.c->now->count, next);
            desk_close(&d);
        }
    }
}

/* It is prepared once more if as much has come as it has, and is filled up if it was not yet. */
Test(sender_steps, take_in_what_comes_meanwhile_if_it_is_much, .timeout = 60)
{
    struct desk d;

    for (unsigned next = 0; next <= 5; next++) {
        for (unsigned more = 0; more <= 7; more++) {
            bool prepared = next >= FULL / 4;
            bool again = !prepared || more > next;
            unsigned all = again ? (next + more < FULL ? next + more : FULL) : next;
            char calls[60] = "";
            char *to = calls;

            desk_open(&d, FULL);
            put(1);
            step();
            expect(&d, "r p1 s", DUE__SENDER_SENT, "the first");
            put(next);
            come = more;
            if (prepared)
                to += sprintf(to, "p%u ", next);
            to += sprintf(to, "c1");
            if (all > 0 && (!prepared || all > next))
                to += sprintf(to, " p%u", all);
            if (all > 0)
                sprintf(to, " s");
            step();
            expect(&d, calls, all > 0 ? DUE__SENDER_SENT : DUE__SENDER_IDLE, calls);
            cr_expect_eq(d.c->now->count, all);
            cr_expect_eq(d.c->next->count, 0u);
            desk_close(&d);
        }
    }
}

/* Something is lacking in the store, or a topic is to be held back: that goes first. */
Test(sender_steps, leave_what_waits_alone_while_something_else_goes_first, .timeout = 30)
{
    struct desk d;

    for (int why = 0; why < 2; why++) {
        desk_open(&d, FULL);
        put(1);
        step();
        expect(&d, "r p1 s", DUE__SENDER_SENT, "the first");
        put(3);
        if (why == 0)
            due__store_seq(&d.c->lacking, 1);
        else
            due__add_seq(&d.c->settings.left, 1);
        step();
        expect(&d, "c1", DUE__SENDER_IDLE, why == 0 ? "lacking" : "held back");
        cr_expect_eq(d.c->next->count, 0u);
        cr_expect_eq(d.c->now->count, 0u);
        if (why == 0)
            due__store_seq(&d.c->lacking, 0);
        else
            due__sub_seq(&d.c->settings.left, 1);
        desk_close(&d);
    }
}

/* ---- What the store answers ---- */

Test(sender_steps, know_what_each_answer_means, .timeout = 30)
{
    static const struct {
        int ready, prepare, send, commit;
        const char *calls[3];
        enum due__sender sender[3];
        uint64_t settled;
    } rows[] = { { .calls = { "r p1 s", "c1", "" },
                   .sender = { DUE__SENDER_SENT, DUE__SENDER_IDLE, DUE__SENDER_IDLE },
                   .settled = 1 },
                 { .ready = DUE_EAGAIN,
                   .calls = { "r", "r", "r" },
                   .sender = { DUE__SENDER_IDLE, DUE__SENDER_IDLE, DUE__SENDER_IDLE } },
                 { .prepare = DUE_ENOMEM,
                   .calls = { "r p1", "r p1", "r p1" },
                   .sender = { DUE__SENDER_FILLED, DUE__SENDER_FILLED, DUE__SENDER_FILLED } },
                 { .send = DUE_EAGAIN,
                   .calls = { "r p1 s", "r p1 s", "r p1 s" },
                   .sender = { DUE__SENDER_FILLED, DUE__SENDER_FILLED, DUE__SENDER_FILLED } },
                 { .commit = DUE_EAGAIN,
                   .calls = { "r p1 s", "c1", "r" },
                   .sender = { DUE__SENDER_SENT, DUE__SENDER_DOUBT, DUE__SENDER_DOUBT } },
                 { .commit = DUE_EINDOUBT,
                   .calls = { "r p1 s", "c1", "r" },
                   .sender = { DUE__SENDER_SENT, DUE__SENDER_DOUBT, DUE__SENDER_DOUBT } },
                 { .ready = DUE_EACCES,
                   .calls = { "r", "", "" },
                   .sender = { DUE__SENDER_IDLE, DUE__SENDER_IDLE, DUE__SENDER_IDLE },
                   .settled = 1 },
                 { .commit = DUE_EACCES,
                   .calls = { "r p1 s", "c1", "" },
                   .sender = { DUE__SENDER_SENT, DUE__SENDER_IDLE, DUE__SENDER_IDLE },
                   .settled = 1 } };
    struct desk d;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        desk_open(&d, FULL);
        put(1);
        ready_is = rows[i].ready;
        prepare_is = rows[i].prepare;
        send_is = rows[i].send;
        commit_is = rows[i].commit;
        for (int k = 0; k < 3; k++) {
            char where[40];

            snprintf(where, sizeof where, "row %zu, step %d", i, k);
            step();
            expect(&d, rows[i].calls[k], rows[i].sender[k], where);
        }
        cr_expect_eq(d.c->settled, rows[i].settled, "row %zu", i);
        cr_expect_eq(d.c->unsure_ns != 0, rows[i].sender[2] == DUE__SENDER_DOUBT, "row %zu", i);
        desk_close(&d);
    }
}
