/* share_revoke.c - a job that somebody holds is cancelled by another: it does not come again. */
#include "store/share_frame.h"

/* The result of the one change that was gathered. */
static int result(struct sharing *t, int s)
{
    int rc = sharing_send(t, s);

    return rc != 0 ? rc : t->results[0];
}

static int revoke(struct sharing *t, int s, size_t job)
{
    sharing_cancel(t, job);
    t->base.changes[0].revokes = 1;
    return result(t, s);
}

/* The first process has a job, and the second has cancelled it. */
static bool one_revoked(struct sharing *t, int64_t lease_ns, struct sharing_held *h)
{
    return sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), lease_ns, h) &&
           suite_answers(&t->base, revoke(t, 1, h->job), DUE_EBUSY, __FILE__, __LINE__, "revoke");
}

/* It is nowhere. */
static bool gone(struct sharing *t, size_t job)
{
    struct due_census_all all;

    return sharing_drain(t, 2, 0) &&
           suite_answers(&t->base, sharing_find(t, 2, job), DUE_ENOENT, __FILE__, __LINE__,
                         "find") &&
           suite_answers(&t->base, sharing_census(t, 2, &all), 0, __FILE__, __LINE__, "census") &&
           suite_check(&t->base, all.jobs == 0 && all.dead == 0, __FILE__, __LINE__,
                       "%llu are stored", (unsigned long long)all.jobs);
}

static void tells_who_holds_it(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) || !one_revoked(t, SHARE_LONG_NS, &h))
        return;
    for (int i = 0; i < 2; i++) {
        sharing_extend(t, h, SHARE_LONG_NS);
        SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
        sharing_start(t, h, 1);
        SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    }
    SHARE_ANSWERS(t, revoke(t, 2, h.job), DUE_EBUSY);
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "it is held still");
    sharing_done(t, h);
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED); /* who took it for another must not put it back */
    SHARE_CHECK(t, gone(t, h.job), "and done, as ever");
    sharing_done(t, h);
    SHARE_ANSWERS(t, result(t, 0), DUE_ESTALE);
}

typedef void end_it(struct sharing *t, struct sharing_held h);

static void give_back(struct sharing *t, struct sharing_held h)
{
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
}

static void let_wait(struct sharing *t, struct sharing_held h)
{
    sharing_round(t, h, sharing_now(t) + DUE_MS(1));
}

static void let_die(struct sharing *t, struct sharing_held h)
{
    sharing_bury(t, h, "no good");
}

static void keep_key(struct sharing *t, struct sharing_held h)
{
    sharing_done(t, h);
    t->base.changes[0].key_kept_ns = sharing_now(t) + SHARE_LATER_NS;
}

static void is_gone_whatever_ends_it(struct sharing *t)
{
    static end_it *const ends[] = { give_back,       let_wait, let_die,
                                    sharing_release, keep_key, sharing_done };
    struct sharing_held h;

    if (!sharing_all_join(t, 3))
        return;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!one_revoked(t, SHARE_LONG_NS, &h))
            return;
        ends[i](t, h);
        SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
        if (!gone(t, h.job))
            return;
        ends[i](t, h);
        SHARE_ANSWERS(t, result(t, 0), DUE_ESTALE);
    }
}

static void is_claimed_by_nobody(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) || !one_revoked(t, SHARE_SHORT_NS, &h))
        return;
    size_t other = sharing_job(t, "a", -DUE_MS(2));
    sharing_put(t, other);
    SHARE_CHECK(t, sharing_sent(t, 0), "another one is behind it");
    sharing_pass(t, SHARE_PASS_NS);
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "that one comes");
    SHARE_ANSWERS(t, sharing_find(t, 2, h.job), DUE_ENOENT);
    sharing_back(t, h, sharing_now(t));
    SHARE_ANSWERS(t, result(t, 0), DUE_ESTALE);
}

/* Who waits for its topic by name does not wait while another one there is due. */
static void hides_no_other_from_who_waits(struct sharing *t)
{
    static const char *const topics[] = { "a" };
    struct sharing_held revoked;
    struct sharing_held other;

    if (!sharing_all_join(t, 3) || !one_revoked(t, SHARE_SHORT_NS, &revoked) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_SHORT_NS, &other))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    for (int i = 0; i < 4; i++) {
        sharing_wait(t, 1, SHARE_LONG_NS);
        sharing_of(t, topics, 1);
        SHARE_CHECK(t, sharing_sent(t, 2), "it waits, or has it");
        if (t->n_held > 0)
            break;
        SHARE_CHECK(t, t->answer.more == 1 && t->answer.alarm_ns == -1, "alarm %lld",
                    (long long)t->answer.alarm_ns);
    }
    SHARE_CHECK(t, sharing_got(t, &other.job, 1), "the other one");
    sharing_done(t, t->held[0]);
    SHARE_ANSWERS(t, result(t, 2), 0);
    (void)gone(t, revoked.job);
}

/* Until a claim has met it, it is its holder's. */
static void is_late_in_its_holders_hands(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) || !one_revoked(t, SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    SHARE_CHECK(t, sharing_drain(t, 2, 0), "held again");
    sharing_release(t, h);
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    (void)gone(t, h.job);
}

/* Also where nobody claims any more. */
static void ends_at_once_when_its_lease_is_over(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3))
        return;
    for (int before = 0; before < 2; before++) {
        if (!sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_SHORT_NS, &h))
            return;
        if (before)
            SHARE_ANSWERS(t, revoke(t, 1, h.job), DUE_EBUSY);
        sharing_pass(t, SHARE_PASS_NS);
        if (!before) {
            sharing_cancel(t, h.job);
            SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
        }
        SHARE_ANSWERS(t, revoke(t, 1, h.job), 0);
        SHARE_ANSWERS(t, revoke(t, 1, h.job), DUE_ENOENT);
        if (!gone(t, h.job))
            return;
        sharing_done(t, h);
        SHARE_ANSWERS(t, result(t, 0), DUE_ESTALE);
    }
}

static void stays_his_if_nobody_says_so(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_cancel(t, h.job);
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "he is told of nothing");
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_drain(t, 1, 1), "and it comes again");
}

static void ends_what_nobody_holds(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3))
        return;
    size_t job = sharing_job(t, "a", SHARE_LATER_NS);
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "it waits");
    SHARE_ANSWERS(t, revoke(t, 1, job), 0);
    SHARE_ANSWERS(t, revoke(t, 1, job), DUE_ENOENT);
    if (!gone(t, job) || !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    let_die(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "it is dead");
    sharing_cancel(t, h.job);
    t->base.changes[0].was_dead = 0;
    t->base.changes[0].revokes = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
}

static void is_known_by_the_id_alone(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_cancel(t, h.job);
    t->base.changes[0].revokes = 1;
    t->base.changes[0].record.topic = NULL;
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    sharing_release(t, h);
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    (void)gone(t, h.job);
}

/* Who wants its bytes has seen it when it waited, or sees it now. */
static void is_revoked_by_who_wants_its_bytes(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h) ||
        !sharing_look(t, 1, h.job))
        return;
    sharing_lend(t, h.job);
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "that alone says nothing");
    sharing_lend(t, h.job);
    t->base.changes[0].revokes = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    sharing_back(t, h, sharing_now(t));
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    (void)gone(t, h.job);
}

static bool keyed(struct sharing *t, int s, const char *key, struct sharing_held *h)
{
    size_t job = sharing_job(t, "a", -DUE_MS(5));

    t->base.jobs[job].record.key = key;
    t->base.jobs[job].record.key_len = strlen(key);
    return sharing_have(t, s, job, SHARE_LONG_NS, h);
}

static int revoke_by_key(struct sharing *t, int s, size_t job, const char *key)
{
    sharing_cancel(t, job);
    t->base.changes[0].revokes = 1;
    t->base.changes[0].record.key = key;
    t->base.changes[0].record.key_len = strlen(key);
    return result(t, s);
}

static void is_revoked_only_by_its_own_key(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3) || !keyed(t, 0, "k", &h))
        return;
    SHARE_ANSWERS(t, revoke_by_key(t, 1, h.job, "other"), DUE_EAGAIN);
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "it was not meant");
    SHARE_ANSWERS(t, revoke_by_key(t, 1, h.job, "k"), DUE_EBUSY);
    sharing_back(t, h, sharing_now(t));
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    if (!gone(t, h.job) || !keyed(t, 1, "k", &h)) /* its key is free */
        return;
    sharing_extend(t, h, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 1), "a short lease");
    SHARE_ANSWERS(t, revoke(t, 0, h.job), DUE_EBUSY);
    sharing_pass(t, SHARE_PASS_NS);
    (void)(gone(t, h.job) && keyed(t, 2, "k", &h));
}

static int put_with_key(struct sharing *t, int s, const char *key)
{
    size_t job = sharing_job(t, "a", SHARE_LATER_NS);

    t->base.jobs[job].record.key = key;
    t->base.jobs[job].record.key_len = strlen(key);
    sharing_put(t, job);
    return result(t, s);
}

/* A round that is the last one keeps the key as an ack does; one that is not keeps it by itself. */
static void keeps_the_key_of_its_last_round(struct sharing *t)
{
    struct sharing_held h[3];

    if (!sharing_all_join(t, 3) || !keyed(t, 0, "last", &h[0]) || !keyed(t, 0, "other", &h[1]) ||
        !keyed(t, 0, "free", &h[2]))
        return;
    for (int i = 0; i < 3; i += 2)
        SHARE_ANSWERS(t, revoke(t, 1, h[i].job), DUE_EBUSY);
    int64_t now_ns = sharing_now(t);
    for (size_t i = 0; i < 3; i++) {
        sharing_round(t, h[i], now_ns - DUE_MS(1));
        t->base.changes[i].key_kept_ns = i < 2 ? now_ns + SHARE_SHORT_NS : 0;
    }
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    for (int i = 0; i < 3; i++)
        SHARE_ANSWERS(t, t->results[i], i == 1 ? 0 : DUE_REVOKED);
    SHARE_ANSWERS(t, put_with_key(t, 1, "last"), DUE_EEXIST);
    SHARE_ANSWERS(t, put_with_key(t, 1, "other"), DUE_EEXIST);
    SHARE_ANSWERS(t, put_with_key(t, 1, "free"), 0);
    sharing_pass(t, SHARE_PASS_NS);
    SHARE_ANSWERS(t, put_with_key(t, 1, "last"), 0);
    SHARE_ANSWERS(t, put_with_key(t, 1, "other"), DUE_EEXIST);
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "the other one comes again");
}

/* One of a group is held, another waits behind it. */
static bool two_of_a_group(struct sharing *t, int64_t lease_ns, struct sharing_held *h,
                           size_t *behind)
{
    size_t job = sharing_grouped(t, "a", -DUE_MS(5), "g");

    *behind = sharing_grouped(t, "a", -DUE_MS(3), "g");
    if (!sharing_have(t, 0, job, lease_ns, h))
        return false;
    sharing_put(t, *behind);
    return sharing_sent(t, 1) &&
           suite_answers(&t->base, revoke(t, 1, job), DUE_EBUSY, __FILE__, __LINE__, "revoke");
}

/* Of one that has a key, too, and whose round would keep it. */
static void lets_the_next_come_by_its_last_round(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 3))
        return;
    for (int last = 0; last < 2; last++) {
        size_t job = sharing_grouped(t, "a", -DUE_MS(5), "g");
        size_t behind = sharing_grouped(t, "a", -DUE_MS(3), "g");

        t->base.jobs[job].record.key = "k";
        t->base.jobs[job].record.key_len = 1;
        if (!sharing_have(t, 0, job, SHARE_LONG_NS, &h))
            return;
        sharing_put(t, behind);
        SHARE_CHECK(t, sharing_sent(t, 1), "the next one waits");
        if (last)
            SHARE_ANSWERS(t, revoke(t, 1, job), DUE_EBUSY);
        sharing_round(t, h, sharing_now(t) + SHARE_LATER_NS);
        t->base.changes[0].key_kept_ns = sharing_now(t) + SHARE_LATER_NS;
        SHARE_ANSWERS(t, result(t, 0), last ? DUE_REVOKED : 0);
        sharing_claim(t, 2, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 2) && sharing_got(t, &behind, 1), "it comes");
        sharing_done(t, t->held[0]);
        SHARE_CHECK(t, sharing_sent(t, 2), "done");
        if (!last) {
            sharing_cancel(t, job);
            SHARE_CHECK(t, sharing_sent(t, 2), "and the first one was there");
        }
    }
}

static void lets_the_next_of_its_group_come(struct sharing *t)
{
    struct sharing_held h;
    size_t behind;

    if (!sharing_all_join(t, 3) || !two_of_a_group(t, SHARE_LONG_NS, &h, &behind))
        return;
    SHARE_CHECK(t, sharing_drain(t, 2, 0), "it is kept back");
    give_back(t, h);
    SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
    SHARE_ANSWERS(t, sharing_find(t, 2, h.job), DUE_ENOENT);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 2) && sharing_got(t, &behind, 1), "it comes");
    sharing_done(t, t->held[0]);
    SHARE_CHECK(t, sharing_sent(t, 2), "done");
    for (int claims = 0; claims < 2; claims++) {
        if (!two_of_a_group(t, SHARE_SHORT_NS, &h, &behind))
            return;
        sharing_pass(t, SHARE_PASS_NS);
        if (!claims)
            SHARE_ANSWERS(t, revoke(t, 1, h.job), 0);
        SHARE_CHECK(t, sharing_drain(t, 2, 1), "it comes when the lease is over");
        SHARE_ANSWERS(t, sharing_find(t, 2, h.job), DUE_ENOENT);
        SHARE_ANSWERS(t, revoke(t, 1, behind), DUE_EBUSY);
        sharing_done(t, (struct sharing_held){ .job = behind, .held = t->held[0].held });
        (void)sharing_send(t, 2);
    }
}

static void makes_room(struct sharing *t)
{
    struct sharing_held h;

    t->capacity = 2;
    if (!sharing_all_join(t, 3) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_SHORT_NS, &h))
        return;
    size_t next = sharing_job(t, "a", -DUE_MS(3));
    size_t third = sharing_job(t, "a", -DUE_MS(2));
    sharing_put(t, next);
    SHARE_CHECK(t, sharing_sent(t, 1), "the last one that has room");
    sharing_hold_back(t, "a", -1, 1);
    SHARE_CHECK(t, sharing_sent(t, 1), "one may be held");
    SHARE_ANSWERS(t, revoke(t, 1, h.job), DUE_EBUSY);
    SHARE_CHECK(t, sharing_drain(t, 2, 0), "it is held still");
    sharing_put(t, third);
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 2), "claimed");
    for (int i = 0; i < 3 && t->n_held == 0; i++) {
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 2), "claimed, behind what was ended");
    }
    SHARE_CHECK(t, sharing_got(t, &next, 1), "the next one");
    sharing_put(t, third);
    SHARE_CHECK(t, sharing_sent(t, 1), "there is room again");
}

/* Of one topic and kind, in one exchange: some are another's by now, some were cancelled. */
static void answers_each_by_itself(struct sharing *t)
{
    enum { N = 100 };
    struct sharing_held held[N];
    static const int want[] = { 0, DUE_REVOKED, DUE_ESTALE, 0, DUE_REVOKED };

    if (!sharing_all_join(t, 3))
        return;
    for (int i = 0; i < N; i++)
        sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, N, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->n_held == N, "%zu are held", t->n_held);
    memcpy(held, t->held, sizeof held);
    for (int i = 0; i < N; i++) {
        if (want[i % 5] == DUE_REVOKED) {
            sharing_cancel(t, held[i].job);
            t->base.changes[t->base.n_changes - 1].revokes = 1;
        }
        if (want[i % 5] == DUE_ESTALE)
            held[i].held++;
    }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    for (int i = 0; i < N / 5 * 2; i++)
        SHARE_CHECK(t, t->results[i] == DUE_EBUSY, "change %d", i);
    int64_t now_ns = sharing_now(t);
    for (int i = 0; i < N; i++)
        sharing_back(t, held[i], now_ns - DUE_MS(1));
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    for (int i = 0; i < N; i++)
        SHARE_ANSWERS(t, t->results[i], want[i % 5]);
    SHARE_CHECK(t, sharing_drain(t, 2, N / 5 * 2), "those that may come again");
}

/* Many leases end together; of those that were cancelled none comes, however few are claimed. */
static void ends_many_at_once(struct sharing *t)
{
    enum { N = 200 };
    static struct sharing_held held[N];

    if (!sharing_all_join(t, 3))
        return;
    for (int i = 0; i < N; i++)
        sharing_put(t, sharing_job(t, i % 2 ? "a" : "b", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, N, 0, 5 * SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->n_held == N, "%zu are held", t->n_held);
    memcpy(held, t->held, sizeof held);
    for (int i = 0; i < N; i++)
        if (i % 4 != 3) {
            sharing_cancel(t, held[i].job);
            t->base.changes[t->base.n_changes - 1].revokes = 1;
        }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    sharing_pass(t, 5 * SHARE_PASS_NS);
    size_t got = 0;
    for (int i = 0; i < 10 * N && got < N / 4; i++) {
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 2), "claimed");
        got += t->n_held;
    }
    SHARE_CHECK(t, got == N / 4 && sharing_drain(t, 2, 0), "%zu come", got);
    struct due_census_all all;
    SHARE_ANSWERS(t, sharing_census(t, 2, &all), 0);
    SHARE_CHECK(t, all.jobs == N / 4, "%llu are left", (unsigned long long)all.jobs);
}

/* Both the cancel and what its holder says are sent again. */
static void has_one_effect(struct sharing *t)
{
    struct sharing_held h;

    if (!suite_has(&t->base, t->maker->doubt != NULL, "no answer can be lost") ||
        !sharing_all_join(t, 3))
        return;
    for (unsigned landed = 0; landed < 2; landed++) {
        if (!sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
            return;
        t->maker->doubt(t->maker->store.ctx, t->base.stores[1], false, landed);
        SHARE_ANSWERS(t, revoke(t, 1, h.job), DUE_EBUSY);
        t->maker->doubt(t->maker->store.ctx, t->base.stores[0], true, landed);
        sharing_extend(t, h, SHARE_LONG_NS);
        SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
        t->maker->doubt(t->maker->store.ctx, t->base.stores[0], true, landed);
        sharing_release(t, h);
        SHARE_ANSWERS(t, result(t, 0), DUE_REVOKED);
        if (!gone(t, h.job))
            return;
    }
}

const struct suite_test_shared share_revoke_tests[] = {
    { "revoke: tells who holds it", tells_who_holds_it },
    { "revoke: is gone, whatever ends it", is_gone_whatever_ends_it },
    { "revoke: is claimed by nobody when its lease is over", is_claimed_by_nobody },
    { "revoke: hides no other from who waits", hides_no_other_from_who_waits },
    { "revoke: is late in its holder's hands", is_late_in_its_holders_hands },
    { "revoke: ends at once when its lease is over", ends_at_once_when_its_lease_is_over },
    { "revoke: stays his if nobody says so", stays_his_if_nobody_says_so },
    { "revoke: ends what nobody holds", ends_what_nobody_holds },
    { "revoke: is known by the id alone", is_known_by_the_id_alone },
    { "revoke: by who wants its bytes", is_revoked_by_who_wants_its_bytes },
    { "revoke: only by its own key", is_revoked_only_by_its_own_key },
    { "revoke: keeps the key of its last round", keeps_the_key_of_its_last_round },
    { "revoke: lets the next of its group come", lets_the_next_of_its_group_come },
    { "revoke: lets the next come by its last round", lets_the_next_come_by_its_last_round },
    { "revoke: makes room in its topic and in the queue", makes_room },
    { "revoke: answers each by itself", answers_each_by_itself },
    { "revoke: ends many at once", ends_many_at_once },
    { "revoke: has one effect", has_one_effect },
    { NULL, NULL },
};
