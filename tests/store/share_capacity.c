/* share_capacity.c - the capacity of a shared queue, and who waits for room. */
#include "store/share_frame.h"

/* Nobody has rung, as far as can be told in that time. */
#define QUIET_NS DUE_MS(30)

static int listen_for(struct sharing *t, int s, int64_t ns)
{
    int64_t end_ns = suite_now_ns() + ns;
    struct due_heard heard = { .alarm_ns = 0 };
    int rc;

    do
        rc = sharing_verbs(t, s)->listen(t->base.stores[s], &heard, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc == 1 && heard.alarm_ns != 0 ? 0 : rc; /* what it was told is not meant */
}

static bool rung(struct sharing *t, int s)
{
    return listen_for(t, s, SUITE_SOON_NS) == 1;
}

static bool quiet(struct sharing *t, int s)
{
    return listen_for(t, s, QUIET_NS) == 0;
}

/* So many share a queue of that capacity, and hear. */
static bool share(struct sharing *t, int n, uint64_t capacity)
{
    t->capacity = capacity;
    if (!sharing_all_join(t, n))
        return false;
    t->capacity = 0;
    for (int s = 0; s < n; s++)
        for (int i = 0; i < 100 && listen_for(t, s, QUIET_NS) != 0; i++)
            ;
    return true;
}

/* So many are put by process @s in one exchange, of these topics in turn; the first @in get in. */
static bool put_of(struct sharing *t, int s, const char *const *topics, size_t n_topics, size_t n,
                   size_t in)
{
    for (size_t i = 0; i < n; i++)
        sharing_put(t, sharing_job(t, topics[i % n_topics], -DUE_MS(50) + (int64_t)i * DUE_MS(1)));
    if (!suite_answers(&t->base, sharing_send(t, s), 0, __FILE__, __LINE__, "put"))
        return false;
    for (size_t i = 0; i < n; i++) {
        int rc = i < in ? 0 : DUE_EAGAIN;

        if (!suite_check(&t->base, t->results[i] == rc, __FILE__, __LINE__, "put %zu of %zu: %s", i,
                         n, due_error_name(t->results[i])))
            return false;
    }
    return true;
}

static bool put_some(struct sharing *t, int s, size_t n, size_t in)
{
    static const char *const topics[] = { "a", "b" };

    return put_of(t, s, topics, 2, n, in);
}

/* One that is due, of those that nobody holds. */
static bool claims(struct sharing *t, int s, struct sharing_held *h)
{
    for (int i = 0; i < 20; i++) {
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        if (!sharing_sent(t, s))
            return false;
        if (t->n_held > 0)
            break;
    }
    *h = t->held[0];
    return suite_check(&t->base, t->n_held == 1, __FILE__, __LINE__, "%zu came", t->n_held);
}

static bool ends(struct sharing *t, int s, struct sharing_held h)
{
    sharing_done(t, h);
    return sharing_sent(t, s);
}

/* Process @s says whether it waits; for so many there is room. */
static bool asks(struct sharing *t, int s, int waits, uint64_t room)
{
    struct due_beat beat = { .waits_room = waits };
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = sharing_verbs(t, s)->beat(t->base.stores[s], &beat, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return suite_check(&t->base, rc >= 0 && beat.room == room, __FILE__, __LINE__,
                       "%s, and room for %llu", rc < 0 ? due_error_name(rc) : "0",
                       (unsigned long long)beat.room);
}

/* The same within the grace, in which who was rung has the first call: that can only be told on a
 * clock that is turned by hand. */
static bool asks_in_time(struct sharing *t, int s, int waits, uint64_t room)
{
    return t->maker->now == NULL || asks(t, s, waits, room);
}

/* It beats and says that it has rung somebody: to be looked after. */
static bool rang(struct sharing *t, int s)
{
    struct due_beat beat = { .waits_room = 0 };
    int rc = sharing_verbs(t, s)->beat(t->base.stores[s], &beat, suite_soon());

    return rc > 0 && (rc & DUE_BEAT_RANG);
}

static uint64_t capacity_of(struct sharing *t, int s)
{
    struct due_beat beat = { .now_ns = 0 };

    (void)sharing_verbs(t, s)->beat(t->base.stores[s], &beat, suite_soon());
    return beat.capacity;
}

static void counts_all_but_the_dead(struct sharing *t)
{
    struct sharing_held h[2];

    if (!share(t, 2, 3) || !put_some(t, 0, 3, 3) || !put_some(t, 1, 1, 0))
        return;
    SHARE_CHECK(t, claims(t, 1, &h[0]) && claims(t, 0, &h[1]), "two are held");
    SHARE_CHECK(t, put_some(t, 0, 1, 0), "and keep their room");
    sharing_back(t, h[1], sharing_now(t) - DUE_S(60));
    SHARE_CHECK(t, sharing_sent(t, 0), "one waits again, in a full queue");
    SHARE_CHECK(t, put_some(t, 0, 1, 0), "as before");
    sharing_bury(t, h[0], "no good");
    SHARE_CHECK(t, sharing_sent(t, 1) && put_some(t, 0, 2, 1), "the dead take none");
    sharing_kick(t, h[0].job, sharing_now(t) - DUE_S(60));
    SHARE_CHECK(t, sharing_sent(t, 0), "one that is kicked comes into a full queue");
    SHARE_CHECK(t, claims(t, 0, &h[0]) && ends(t, 0, h[0]) && put_some(t, 0, 1, 0), "of four");
    SHARE_CHECK(t, claims(t, 1, &h[0]) && ends(t, 1, h[0]) && put_some(t, 1, 1, 1), "of three");
    SHARE_CHECK(t, sharing_drain(t, 0, 3), "and no other is there");
}

static void counts_what_is_cancelled_out(struct sharing *t)
{
    if (!share(t, 2, 2) || !put_some(t, 0, 2, 2))
        return;
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 1) && put_some(t, 0, 2, 1), "one more");
    SHARE_CHECK(t, sharing_drain(t, 0, 2), "two are there");
}

/* Those behind the first that has no room have none, whatever their topics are. */
static void takes_the_first_of_an_exchange(struct sharing *t)
{
    static const char *const topics[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k" };

    if (!share(t, 2, 7))
        return;
    SHARE_CHECK(t, put_of(t, 0, topics, 3, 20, 7), "of three topics");
    SHARE_CHECK(t, sharing_drain(t, 1, 7), "they are there");
    for (size_t i = 0; i < 7; i++)
        sharing_done(t, t->held[i]);
    SHARE_CHECK(t, sharing_sent(t, 1), "they are done");
    SHARE_CHECK(t, put_of(t, 0, topics, 11, 40, 7), "of more than fit into a claim");
}

/* A process that does not know of the capacity yet: of what it puts the first ones get in, or none
 * does; and then it knows. */
static void takes_the_first_of_who_does_not_know_of_it(struct sharing *t)
{
    static const char *const topics[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    size_t in = 0;

    SHARE_ANSWERS(t, sharing_join(t, 0), 0);
    t->capacity = 9;
    SHARE_ANSWERS(t, sharing_join(t, 1), 0);
    for (int tries = 0; tries < 2 && in == 0; tries++) {
        for (size_t i = 0; i < 10; i++)
            sharing_put(t, sharing_job(t, topics[i % 9], -DUE_MS(50)));
        SHARE_ANSWERS(t, sharing_send(t, 0), 0);
        while (in < 10 && t->results[in] == 0)
            in++;
        for (size_t i = in; i < 10; i++)
            SHARE_CHECK(t, t->results[i] == DUE_EAGAIN, "put %zu: %s", i,
                        due_error_name(t->results[i]));
    }
    SHARE_CHECK(t, in == 9, "%zu are in", in);
    SHARE_CHECK(t, sharing_drain(t, 1, 9), "they are there");
}

static void puts_what_keeps_its_room(struct sharing *t)
{
    if (!share(t, 2, 1) || !put_some(t, 0, 1, 1))
        return;
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    sharing_put(t, sharing_job(t, "b", -DUE_MS(4)));
    sharing_put(t, sharing_job(t, "a", -DUE_MS(3)));
    t->base.changes[1].keeps_room = 1;
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_EAGAIN && t->results[1] == 0 && t->results[2] == DUE_EAGAIN,
                "only that one");
    SHARE_CHECK(t, sharing_drain(t, 1, 2), "both are there");
}

static void takes_no_key_without_room(struct sharing *t)
{
    static const char *const keys[] = { "k", "l", "l" };
    int rc[] = { DUE_EEXIST, DUE_EAGAIN, DUE_EAGAIN };
    due_id id;

    if (!share(t, 2, 1))
        return;
    size_t had = sharing_job(t, "a", -DUE_MS(5));
    t->base.jobs[had].record.key = "k";
    t->base.jobs[had].record.key_len = 1;
    sharing_put(t, had);
    SHARE_CHECK(t, sharing_sent(t, 0), "there is room");
    for (int i = 0; i < 3; i++) {
        size_t job = sharing_job(t, i == 2 ? "b" : "a", -DUE_MS(4));

        t->base.jobs[job].record.key = keys[i];
        t->base.jobs[job].record.key_len = 1;
        sharing_put(t, job);
    }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    for (int i = 0; i < 3; i++)
        SHARE_CHECK(t, t->results[i] == rc[i], "key %s: %s", keys[i],
                    due_error_name(t->results[i]));
    SHARE_ANSWERS(t, sharing_verbs(t, 0)->holder(t->base.stores[0], "l", 1, &id, suite_soon()),
                  DUE_ENOENT);
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "one is there");
}

/* Of one exchange: the first of these had no room, so the key is not its, but whose it was before,
 * or that of one that keeps its room. */
static void leaves_the_key_of_who_has_none(struct sharing *t)
{
    static const char *const keys[] = { "k", "k", "l", "l", "l" };
    int rc[] = { DUE_EAGAIN, DUE_EEXIST, DUE_EAGAIN, 0, DUE_EEXIST };
    size_t job = 0;
    due_id id;

    if (!share(t, 2, 1))
        return;
    size_t had = sharing_job(t, "a", -DUE_MS(5));
    t->base.jobs[had].record.key = "k";
    t->base.jobs[had].record.key_len = 1;
    sharing_put(t, had);
    SHARE_CHECK(t, sharing_sent(t, 0), "there is room");
    for (int i = 0; i < 5; i++) {
        job = sharing_job(t, "a", -DUE_MS(4));
        t->base.jobs[job].record.key = keys[i];
        t->base.jobs[job].record.key_len = 1;
        sharing_put(t, job);
    }
    t->base.changes[0].from = t->base.jobs[had].record.id;
    t->base.changes[3].keeps_room = 1;
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    for (int i = 0; i < 5; i++)
        SHARE_CHECK(t, t->results[i] == rc[i], "put %d: %s", i, due_error_name(t->results[i]));
    SHARE_ANSWERS(t, sharing_verbs(t, 0)->holder(t->base.stores[0], "l", 1, &id, suite_soon()), 0);
    SHARE_CHECK(t, due_id_equal(id, t->base.jobs[job - 1].record.id), "it has the key");
    SHARE_CHECK(t, sharing_drain(t, 1, 2), "both are there");
}

/* It was refused, and the capacity has gone before it says that it waits. */
static void is_none_for_who_was_refused_before(struct sharing *t)
{
    struct due_beat beat = { .waits_room = 1 };

    if (!share(t, 2, 2) || !put_some(t, 0, 3, 2))
        return;
    t->capacity = UINT64_MAX;
    SHARE_ANSWERS(t, sharing_join(t, 2), 0);
    SHARE_CHECK(t, sharing_verbs(t, 0)->beat(t->base.stores[0], &beat, suite_soon()) >= 0, "beat");
    SHARE_CHECK(t, beat.room > 0 && beat.capacity == 0, "room for %llu",
                (unsigned long long)beat.room);
    SHARE_CHECK(t, put_some(t, 0, 9, 9) && sharing_drain(t, 1, 11), "all");
}

/* Who was rung, and finds that another was faster, is rung first once more. */
static void keeps_the_place_of_who_was_too_late(struct sharing *t)
{
    if (!share(t, 3, 1) || !put_some(t, 0, 1, 1))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 0) && asks(t, 2, 1, 0), "both wait");
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 1) && quiet(t, 2), "one is rung");
    SHARE_CHECK(t, put_some(t, 0, 1, 1) && put_some(t, 1, 1, 0), "another one is faster");
    SHARE_CHECK(t, asks(t, 1, 1, 0), "it waits again");
    sharing_cancel(t, 1);
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 1) && quiet(t, 2), "and is rung");
}

/* Whoever joins last and says one. */
static void is_of_who_said_it_last(struct sharing *t)
{
    if (!share(t, 1, 2) || !put_some(t, 0, 3, 2))
        return;
    SHARE_CHECK(t, t->base.info[0].capacity == 2, "as said");
    SHARE_ANSWERS(t, sharing_join(t, 1), 0);
    SHARE_CHECK(t, t->base.info[1].capacity == 2 && put_some(t, 1, 1, 0), "one that says none");
    t->capacity = 4;
    SHARE_ANSWERS(t, sharing_join(t, 2), 0);
    SHARE_CHECK(t, t->base.info[2].capacity == 4 && capacity_of(t, 0) == 4, "another one");
    SHARE_CHECK(t, put_some(t, 0, 3, 2), "two more");
    t->capacity = 1;
    SHARE_ANSWERS(t, sharing_join(t, 3), 0);
    SHARE_CHECK(t, put_some(t, 0, 1, 0), "a lower one");
    sharing_leave(t, 3);
    t->capacity = UINT64_MAX;
    SHARE_ANSWERS(t, sharing_join(t, 3), 0);
    SHARE_CHECK(t, t->base.info[3].capacity == 0 && capacity_of(t, 0) == 0, "none any more");
    SHARE_CHECK(t, put_some(t, 1, 9, 9), "as many as one likes");
    SHARE_CHECK(t, sharing_drain(t, 0, 13), "all are there");
}

static void gives_a_repeated_number_the_same_answer(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->doubt != NULL, "doubt"))
        return;
    if (!share(t, 2, 2))
        return;
    for (int lands = 0; lands < 2; lands++) {
        t->maker->doubt(t->maker->store.ctx, t->base.stores[0], false, lands);
        SHARE_CHECK(t, put_some(t, 0, 3, lands == 0 ? 2 : 0), "once");
    }
    SHARE_CHECK(t, sharing_drain(t, 1, 2), "two are there");
}

static void rings_who_waits_for_room(struct sharing *t)
{
    struct sharing_held h;

    if (!share(t, 3, 2) || !put_some(t, 0, 2, 2))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 0) && asks(t, 2, 1, 0), "both wait");
    SHARE_CHECK(t, claims(t, 0, &h) && t->answer.rang == 0, "a claim makes no room");
    SHARE_CHECK(t, quiet(t, 1), "nobody is rung");
    SHARE_CHECK(t, ends(t, 0, h) && t->answer.rang == 1, "there is room: rang %u", t->answer.rang);
    SHARE_CHECK(t, rung(t, 1) && quiet(t, 2), "for who has waited longest");
    SHARE_CHECK(t, asks(t, 1, 1, 1), "for one");
    SHARE_CHECK(t, asks_in_time(t, 2, 1, 0), "which the other one does not get");
    SHARE_CHECK(t, put_some(t, 1, 1, 1) && t->answer.rang == 0, "it is taken");
    SHARE_CHECK(t, asks(t, 1, 0, 0), "it does not wait any more");
    SHARE_CHECK(t, asks(t, 2, 1, 0), "the other one does");
    sharing_cancel(t, h.job == 0 ? 1 : 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1, "a cancel makes room");
    SHARE_CHECK(t, rung(t, 2) && quiet(t, 1), "for the other one");
}

static void tells_at_once_of_room_that_is_there(struct sharing *t)
{
    if (!share(t, 2, 5) || !put_some(t, 0, 2, 2))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 3), "for three");
    SHARE_CHECK(t, put_some(t, 0, 4, 3) && t->answer.rang == 0, "it was not written down");
    SHARE_CHECK(t, asks(t, 1, 1, 0), "gone");
    SHARE_CHECK(t, asks(t, 1, 0, 0), "and not waited for");
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 0, "nobody does");
}

static void rings_as_many_as_have_room(struct sharing *t)
{
    struct sharing_held h[2];

    if (!share(t, 4, 3) || !put_some(t, 0, 3, 3))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, asks(t, s, 1, 0), "%d waits", s);
    SHARE_CHECK(t, claims(t, 0, &h[0]) && claims(t, 0, &h[1]), "two are held");
    sharing_done(t, h[0]);
    sharing_bury(t, h[1], "no good");
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 2, "rang %u", t->answer.rang);
    SHARE_CHECK(t, rung(t, 1) && rung(t, 2) && (t->maker->now == NULL || quiet(t, 3)), "two");
    SHARE_CHECK(t, asks_in_time(t, 1, 1, 1) && asks_in_time(t, 2, 1, 1), "one each");
    SHARE_CHECK(t, put_some(t, 1, 1, 1), "the first");
    SHARE_CHECK(t, asks(t, 2, 0, 0), "the second goes without");
    SHARE_CHECK(t, rung(t, 3), "so the third has it");
    SHARE_CHECK(t, put_some(t, 3, 2, 1), "one");
}

/* Whoever was rung is stopped: a look after the grace rings the next one. */
static void rings_another_if_one_does_not_come(struct sharing *t)
{
    if (!share(t, 3, 1) || !put_some(t, 0, 1, 1))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 0) && asks(t, 2, 1, 0), "both wait");
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 1) && quiet(t, 2), "one is rung");
    sharing_pass(t, 2 * DUE_RING_NS);
    SHARE_CHECK(t, asks(t, 0, 0, 0) && rung(t, 2), "then the other one");
    SHARE_CHECK(t, asks(t, 2, 1, 1) && put_some(t, 2, 1, 1), "which gets in");
    SHARE_CHECK(t, asks(t, 1, 1, 0), "and the first waits anew");
}

/* Who was rung comes when another was rung instead: it is there, and that one is not. */
static void tells_who_was_rung_and_is_late(struct sharing *t)
{
    if (!share(t, 3, 1) || !put_some(t, 0, 1, 1))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 0) && asks(t, 2, 1, 0), "both wait");
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 1), "one is rung");
    sharing_pass(t, 2 * DUE_RING_NS);
    SHARE_CHECK(t, asks(t, 0, 0, 0) && rung(t, 2), "then the other one");
    SHARE_CHECK(t, asks(t, 1, 1, 1) && put_some(t, 1, 1, 1), "the first gets in");
    SHARE_CHECK(t, asks(t, 2, 1, 0), "and the other one waits");
}

/* Who rings itself and is killed then looks after nobody. */
static void rings_another_besides_itself(struct sharing *t)
{
    if (!share(t, 4, 2) || !put_some(t, 0, 2, 2))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, asks(t, s, 1, 0), "%d waits", s);
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.rang == 2, "rang %u", t->answer.rang);
    sharing_cancel(t, 1);
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 3), "nor does it count as coming");
    SHARE_CHECK(t, rung(t, 1) && rung(t, 2), "both were");
    SHARE_CHECK(t, put_some(t, 2, 1, 1) && put_some(t, 3, 1, 1), "the others get in");
    SHARE_CHECK(t, put_some(t, 1, 1, 0) && asks(t, 1, 1, 0), "and the first waits anew");
}

static void rings_past_who_has_gone(struct sharing *t)
{
    if (!share(t, 4, 1) || !put_some(t, 0, 1, 1))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, asks(t, s, 1, 0), "%d waits", s);
    sharing_leave(t, 1);
    sharing_cancel(t, 0);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1 && rung(t, 2), "the next one");
    sharing_leave(t, 2);
    SHARE_CHECK(t, rung(t, 3), "which goes, too");
}

static void rings_when_the_capacity_grows(struct sharing *t)
{
    if (!share(t, 3, 1) || !put_some(t, 0, 1, 1))
        return;
    SHARE_CHECK(t, asks(t, 1, 1, 0) && asks(t, 2, 1, 0), "both wait");
    t->capacity = 2;
    SHARE_ANSWERS(t, sharing_join(t, 3), 0);
    SHARE_CHECK(t, asks(t, 3, 0, 0) && rung(t, 1) && quiet(t, 2), "for one more");
    SHARE_CHECK(t, put_some(t, 1, 2, 1) && asks(t, 1, 1, 0), "it comes, and waits again");
    sharing_leave(t, 3);
    t->capacity = UINT64_MAX;
    SHARE_ANSWERS(t, sharing_join(t, 3), 0);
    SHARE_CHECK(t, rang(t, 3) && rung(t, 1) && rung(t, 2), "for all");
    SHARE_CHECK(t, !rang(t, 3), "once");
}

const struct suite_test_shared share_capacity_tests[] = {
    { "capacity: counts all but the dead", counts_all_but_the_dead },
    { "capacity: counts what is cancelled out", counts_what_is_cancelled_out },
    { "capacity: takes the first of an exchange", takes_the_first_of_an_exchange },
    { "capacity: takes the first of who does not know of it",
      takes_the_first_of_who_does_not_know_of_it },
    { "capacity: puts what keeps its room", puts_what_keeps_its_room },
    { "capacity: takes no key without room", takes_no_key_without_room },
    { "capacity: leaves the key of who has none", leaves_the_key_of_who_has_none },
    { "capacity: is of who said it last", is_of_who_said_it_last },
    { "capacity: is none for who was refused before", is_none_for_who_was_refused_before },
    { "capacity: keeps the place of who was too late", keeps_the_place_of_who_was_too_late },
    { "capacity: gives a repeated number the same answer",
      gives_a_repeated_number_the_same_answer },
    { "capacity: rings who waits for room", rings_who_waits_for_room },
    { "capacity: tells at once of room that is there", tells_at_once_of_room_that_is_there },
    { "capacity: rings as many as have room", rings_as_many_as_have_room },
    { "capacity: rings another if one does not come", rings_another_if_one_does_not_come },
    { "capacity: tells who was rung and is late", tells_who_was_rung_and_is_late },
    { "capacity: rings another besides itself", rings_another_besides_itself },
    { "capacity: rings past who has gone", rings_past_who_has_gone },
    { "capacity: rings when the capacity grows", rings_when_the_capacity_grows },
    { NULL, NULL },
};
