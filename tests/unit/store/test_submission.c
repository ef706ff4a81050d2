/* Calls that wait for the store, by hand: which of them are known, when each is over, who is rung,
 * and what they are told; and the states of what is sent and read. */
#include "lab/shop.h"
#include "os/atomic.h"
#include "os/clock.h"
#include "queue/queue.h"
#include "store/sender.h"

static struct due__commits *commits_of(struct shop *s)
{
    return s->lab.q->commits;
}

static void begin(struct shop *s, struct due__submission *a, uint32_t changes)
{
    cr_assert(due__submission_begin(s->lab.q, a, changes));
    (void)due__bell_take(&a->waiter->bell);
}

static bool is_rung(struct due__submission *a)
{
    return due__bell_take(&a->waiter->bell);
}

/* ---- Which are known ---- */

static void expect_known(struct shop *s, struct due__submission *const *calls, size_t n)
{
    const struct due__submission *before = NULL;
    const struct due__submission *a = commits_of(s)->first;

    for (size_t i = 0; i < n; i++, before = a, a = a->next) {
        cr_assert_eq(a, calls[i], "%zu of %zu", i, n);
        cr_expect_eq(a->prev, before);
    }
    cr_expect_null(a);
}

Test(submission, is_known_from_its_beginning_to_its_end, .timeout = 10)
{
    for (int first = 0; first < 3; first++) {
        struct shop s = shop_make(.start_ns = 1);
        struct due__submission a[3];
        int second = (first + 1) % 3;
        int third = (first + 2) % 3;

        for (int i = 0; i < 3; i++)
            begin(&s, &a[i], 1);
        expect_known(&s, (struct due__submission *const[]){ &a[2], &a[1], &a[0] }, 3);
        due__submission_end(s.lab.q, &a[first]);
        int late = second > third ? second : third;
        int early = second > third ? third : second;
        expect_known(&s, (struct due__submission *const[]){ &a[late], &a[early] }, 2);
        due__submission_end(s.lab.q, &a[second]);
        expect_known(&s, (struct due__submission *const[]){ &a[third] }, 1);
        due__submission_end(s.lab.q, &a[third]);
        expect_known(&s, NULL, 0);
        shop_close(&s);
    }
}

Test(submission, has_a_bell_of_its_own_that_is_used_again, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__submission a, b;

    begin(&s, &a, 1);
    begin(&s, &b, 1);
    struct due__waiter *one = a.waiter;
    struct due__waiter *two = b.waiter;
    cr_expect_neq(one, two);
    due__submission_end(s.lab.q, &a);
    due__submission_end(s.lab.q, &b);
    begin(&s, &a, 1);
    cr_expect_eq(a.waiter, two, "the last one first");
    cr_expect_null(a.waiter->after[0]);
    begin(&s, &b, 1);
    cr_expect_eq(b.waiter, one);
    cr_expect_null(b.waiter->after[0]);
    due__submission_end(s.lab.q, &a);
    due__submission_end(s.lab.q, &b);
    shop_close(&s);
}

/* ---- When it is over ---- */

Test(submission, is_over_when_nothing_is_left_of_it, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__commits *c = commits_of(&s);
    struct due__submission a;
    struct due__submission *of = &a;

    begin(&s, &a, 0);
    cr_expect(due__submission_over(c, &a));
    due__submission_end(s.lab.q, &a);
    begin(&s, &a, 6);
    cr_expect_not(due__submission_less(&a));
    due__submission_fewer(c, &a, 2);
    cr_expect_eq(a.left, 3u);
    cr_expect_not(due__submission_over(c, &a));
    due__submission_detach(&a, &of);
    cr_expect_null(of);
    of = &a;
    due__submission_detach(NULL, &of);
    cr_expect_null(of);
    cr_expect_eq(a.left, 2u);
    cr_expect_not(due__submission_less(&a));
    cr_expect_not(due__submission_over(c, &a));
    cr_expect(due__submission_less(&a));
    cr_expect(due__submission_over(c, &a));
    due__submission_end(s.lab.q, &a);
    begin(&s, &a, 2);
    due__submission_fewer(c, &a, 2);
    cr_expect(due__submission_over(c, &a));
    due__submission_end(s.lab.q, &a);
    shop_close(&s);
}

static uint64_t reached_goal; /* of a call that waits for as much */

static bool has_reached(const struct due__commits *c, const struct due__submission *a)
{
    (void)c;
    return reached_goal >= a->goal;
}

Test(submission, that_waits_for_something_is_over_when_it_is_so_and_rung_then, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__commits *c = commits_of(&s);
    struct due__submission changes, few, many;

    reached_goal = 4;
    begin(&s, &changes, 1);
    cr_assert(due__submission_begin_until(s.lab.q, &few, has_reached, 5));
    cr_assert(due__submission_begin_until(s.lab.q, &many, has_reached, 6));
    (void)is_rung(&few);
    (void)is_rung(&many);
    cr_expect_not(due__submission_over(c, &few));
    due__lock_acquire(&c->calls);
    due__submission_ring_reached(c);
    cr_expect_not(is_rung(&few));
    reached_goal = 5;
    due__submission_ring_reached(c);
    due__lock_release(&c->calls);
    cr_expect_not(is_rung(&changes));
    cr_expect(is_rung(&few));
    cr_expect_not(is_rung(&many));
    cr_expect(due__submission_over(c, &few));
    cr_expect_not(due__submission_over(c, &many));
    due__submission_ring(c);
    cr_expect(is_rung(&changes));
    cr_expect(is_rung(&few));
    cr_expect(is_rung(&many));
    due__submission_end(s.lab.q, &few);
    due__submission_end(s.lab.q, &changes);
    due__submission_end(s.lab.q, &many);
    shop_close(&s);
}

/* Of many who are to be rung each rings two others when it ends. */
Test(submission, rings_those_behind_it_when_it_ends, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__submission a, b, d, e;

    begin(&s, &a, 1);
    begin(&s, &b, 1);
    begin(&s, &d, 1);
    begin(&s, &e, 1);
    a.waiter->after[0] = b.waiter;
    a.waiter->after[1] = d.waiter;
    due__submission_end(s.lab.q, &a);
    cr_expect(is_rung(&b));
    cr_expect(is_rung(&d));
    cr_expect_not(is_rung(&e));
    b.waiter->after[1] = e.waiter;
    due__submission_end(s.lab.q, &b);
    cr_expect(is_rung(&e));
    cr_expect_not(is_rung(&d));
    due__submission_end(s.lab.q, &d);
    due__submission_end(s.lab.q, &e);
    shop_close(&s);
}

/* ---- How long it waits, and what it is told ---- */

Test(submission, waits_no_longer_than_it_may_nor_when_nobody_is_to, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__commits *c = commits_of(&s);
    struct due__submission a;

    begin(&s, &a, 1);
    cr_expect_not(due__submission_wait(c, &a, due__monotonic_now()));
    due__store_seq(&c->fenced, 1);
    cr_expect_not(due__submission_wait(c, &a, DUE_FOREVER));
    due__store_seq(&c->fenced, 0);
    due__store_seq(&c->stopping, 1);
    cr_expect_not(due__submission_wait(c, &a, DUE_FOREVER));
    cr_expect(due__submission_less(&a));
    cr_expect(due__submission_wait(c, &a, 0), "it is over");
    due__submission_settle(c, &a);
    due__submission_settle(c, NULL);
    due__store_seq(&c->stopping, 0);
    due__submission_end(s.lab.q, &a);
    shop_close(&s);
}

Test(submission, is_told_why_nothing_has_changed, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1);
    struct due__commits *c = commits_of(&s);
    struct due__submission a = { .rc = 0 };

    for (int stopping = 0; stopping < 2; stopping++) {
        for (int fenced = 0; fenced < 2; fenced++) {
            int excuse = fenced ? DUE_EFENCED : stopping ? DUE_ECLOSED : DUE_ETIMEDOUT;

            due__store_seq(&c->stopping, (uint32_t)stopping);
            due__store_seq(&c->fenced, (uint32_t)fenced);
            cr_expect_eq(due__commit_excuse(s.lab.q), excuse);
            cr_expect_eq(due__refusal(s.lab.q, NULL), 0);
            a.rc = 0;
            cr_expect_eq(due__refusal(s.lab.q, &a), 0);
            a.rc = DUE_ENOSPC;
            cr_expect_eq(due__refusal(s.lab.q, &a), DUE_ENOSPC);
            a.rc = DUE_EINDOUBT;
            cr_expect_eq(due__refusal(s.lab.q, &a), excuse, "this one was not sent");
        }
    }
    due__store_seq(&c->stopping, 0);
    due__store_seq(&c->fenced, 0);
    shop_close(&s);
}

/* Until when, if it has @timeout_ns and the queue says DUE_S(50). */
static void expect_deadline(struct shop *s, int64_t timeout_ns, int64_t want_ns)
{
    struct due__deadline by = { .timeout_ns = timeout_ns };
    int64_t before = due__monotonic_now();
    int64_t at = due__deadline_at(s->lab.q, &by);

    cr_expect_geq(at, before + want_ns, "%jd", (intmax_t)timeout_ns);
    cr_expect_leq(at, due__monotonic_now() + want_ns);
    cr_expect_eq(by.at_ns, at);
    cr_expect_eq(due__deadline_at(s->lab.q, &by), at, "it is the same from then on");
    by.at_ns = 7;
    cr_expect_eq(due__deadline_at(s->lab.q, &by), 7);
}

Test(submission, has_the_queues_time_for_the_store_or_less, .timeout = 10)
{
    struct shop s = shop_make(.start_ns = 1, .with.store_timeout_ns = DUE_S(50));

    expect_deadline(&s, 0, DUE_S(50));
    expect_deadline(&s, 1, 1);
    expect_deadline(&s, DUE_S(49), DUE_S(49));
    expect_deadline(&s, DUE_S(50), DUE_S(50));
    expect_deadline(&s, DUE_S(51), DUE_S(50));
    expect_deadline(&s, -1, DUE_S(50));
    shop_close(&s);
}

/* ---- States ---- */

Test(sender, has_these_states_and_no_others, .timeout = 10)
{
    enum { I = DUE__SENDER_IDLE, F = DUE__SENDER_FILLED, S = DUE__SENDER_SENT };
    enum { D = DUE__SENDER_DOUBT };
    static const struct {
        enum due__sender_event event;
        int from, to;
    } steps[] = { { DUE__SENDER_FILL, I, F },         { DUE__SENDER_SEND, F, S },
                  { DUE__SENDER_UNANSWERED, F, D },   { DUE__SENDER_UNANSWERED, S, D },
                  { DUE__SENDER_UNANSWERED, D, D },   { DUE__SENDER_ANEW, I, I },
                  { DUE__SENDER_ANEW, F, F },         { DUE__SENDER_ANEW, S, F },
                  { DUE__SENDER_ANEW, D, F },         { DUE__SENDER_END, I, I },
                  { DUE__SENDER_END, F, I },          { DUE__SENDER_END, S, I },
                  { DUE__SENDER_END, D, I },          { DUE__SENDER_END_REST, F, F },
                  { DUE__SENDER_END_REST, S, F },     { DUE__SENDER_END_REST, D, F },
                  { DUE__SENDER_END_FOLLOWED, F, S }, { DUE__SENDER_END_FOLLOWED, S, S },
                  { DUE__SENDER_END_FOLLOWED, D, S } };
    static struct due__commits c;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        c.sender = (enum due__sender)steps[i].from;
        cr_expect_eq(due__sender_unsure(&c), steps[i].from == S || steps[i].from == D);
        due__sender_on(&c, steps[i].event);
        cr_expect_eq((int)c.sender, steps[i].to, "%zu: %d", i, (int)c.sender);
    }
}

Test(reader, has_these_states_and_no_others, .timeout = 10)
{
    enum { JOBS = DUE__READER_JOBS, KEYS = DUE__READER_KEYS, SERVING = DUE__READER_SERVING };
    enum { AGAIN = DUE__READER_REWRITING, DROPS = DUE__READER_DELETING_JOBS };
    enum { DROPS_KEYS = DUE__READER_DELETING_KEYS };
    static const struct {
        enum due__reading_event event;
        int from, to;
    } steps[] = {
        { DUE__READER_SHOWN, JOBS, KEYS },        { DUE__READER_SHOWN, KEYS, SERVING },
        { DUE__READER_SHOWN, DROPS, DROPS_KEYS }, { DUE__READER_SHOWN, DROPS_KEYS, SERVING },
        { DUE__READER_AGAIN, JOBS, JOBS },        { DUE__READER_AGAIN, KEYS, JOBS },
        { DUE__READER_AGAIN, SERVING, AGAIN },    { DUE__READER_AGAIN, AGAIN, AGAIN },
        { DUE__READER_AGAIN, DROPS, AGAIN },      { DUE__READER_AGAIN, DROPS_KEYS, AGAIN },
        { DUE__READER_REWRITTEN, AGAIN, DROPS }
    };
    static struct due__commits c;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int from = steps[i].from;

        c.reader = (uint32_t)from;
        c.rewind = false;
        cr_expect_eq(due__reader_loads(&c), from == JOBS || from == KEYS);
        cr_expect_eq(due__reader_resyncs(&c), from == AGAIN || from == DROPS || from == DROPS_KEYS);
        cr_expect_eq(due__reader_reads(&c), from != SERVING);
        due__reader_on(&c, steps[i].event);
        cr_expect_eq(c.reader, (uint32_t)steps[i].to, "%zu: %u", i, c.reader);
        cr_expect(c.rewind);
    }
}

/* ---- A batch that a full store refuses ---- */

static const enum due__purpose removals[] = { DUE__TAKE, DUE__CANCEL, DUE__LEND, DUE__ACK,
                                              DUE__CLEAR };

static bool is_removal(enum due__purpose purpose)
{
    for (size_t i = 0; i < sizeof removals / sizeof removals[0]; i++)
        if (removals[i] == purpose)
            return true;
    return false;
}

Test(batch, of_these_purposes_takes_jobs_out, .timeout = 10)
{
    for (int p = DUE__NO_CHANGE; p <= DUE__RELEASE; p++)
        cr_expect_eq(due__removes((enum due__purpose)p), is_removal((enum due__purpose)p), "%d", p);
}

/* What is to be sent of a put, of a removal, and of a removal that was not there. */
static void expect_shrunk(bool put, bool removal, bool gone)
{
    struct due__entry entries[3];
    struct due__batch b = {
        .entries = entries, .written = true, .complete = true, .prepared = true
    };

    if (put)
        entries[b.count++] = (struct due__entry){ .purpose = DUE__PUT, .sent = true };
    if (removal)
        entries[b.count++] = (struct due__entry){ .purpose = DUE__ACK, .sent = true };
    if (gone)
        entries[b.count++] = (struct due__entry){ .purpose = DUE__CANCEL, .sent = false };
    cr_expect_eq(due__batch_shrink(&b), put && removal);
    cr_expect_not(b.written || b.complete || b.prepared, "it is to be written anew");
    cr_expect(b.refused);
    for (uint32_t i = 0; i < b.count; i++) {
        cr_expect_eq(entries[i].sent, entries[i].purpose == DUE__ACK);
        cr_expect_eq(entries[i].rc, entries[i].purpose == DUE__PUT ? DUE_ENOSPC : 0);
    }
}

Test(batch, that_a_full_store_refuses_is_sent_again_with_its_removals_alone, .timeout = 10)
{
    for (int which = 0; which < 8; which++)
        expect_shrunk(which & 1, which & 2, which & 4);
}

Test(batch, is_in_pieces_of_half_a_full_one_but_not_of_too_few, .timeout = 10)
{
    static struct due__commits c;

    for (size_t changes = 1; changes < 600; changes++) {
        c.info.batch_changes = changes;
        cr_expect_eq(due__commit_piece(&c), changes / 2 > 64 ? changes / 2 : 64);
    }
}
