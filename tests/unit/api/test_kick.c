/* Jobs that have died by the end of their last lease: every call about the dead finds them, also if
 * it is the first to look after that. */
#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 100
#define JOBS  3

static const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

/* Their leases have ended, and nobody has looked. */
static due_id lapse(struct lab *lab)
{
    due_id id = { { 0 } };

    for (int i = 0; i < JOBS; i++) {
        due_job job;

        id = lab_enqueue(lab, "tea", .at_ns = 1, .more = EXTRA(.retry = &once));
        cr_assert_eq(lab_reserve(lab, &job, LEASE), 0);
        due_job_done(&job);
    }
    lab_advance(lab, LEASE);
    return id;
}

static void kick_all(struct lab *lab)
{
    uint64_t n = 0;

    lapse(lab);
    cr_expect_eq(due_kick_all(lab->q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, (uint64_t)JOBS);
    cr_expect_str_eq(lab_dequeue_all(lab), "tea tea tea");
}

static void clear_dead(struct lab *lab)
{
    uint64_t n = 0;

    lapse(lab);
    cr_expect_eq(due_clear_dead(lab->q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, (uint64_t)JOBS);
    cr_expect_eq(lab_stats(lab).dead, 0u);
}

static void kick(struct lab *lab)
{
    due_id last = lapse(lab);

    cr_expect_eq(due_kick(lab->q, last), 0);
    cr_expect_str_eq(lab_dequeue(lab), "tea");
}

static void list(struct lab *lab)
{
    due_dead dead[JOBS + 1];
    uint64_t cursor = 0;
    int n = 0;

    lapse(lab);
    for (int got; (got = due_list_dead(lab->q, &cursor, dead, JOBS + 1)) > 0;)
        n += got;
    cr_expect_eq(n, JOBS);
}

typedef void asked(struct lab *lab);

static asked *const asks[] = { kick_all, clear_dead, kick, list };

LAB_TEST(kick, finds_what_has_died_just_now)
{
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        struct lab lab = lab_open(.start_ns = 10);

        asks[i](&lab);
        lab_close(&lab);
    }
}

LAB_TEST(kick, finds_what_has_died_just_now_of_a_stored_queue)
{
    if (lab_proxies == DUE_PROXIES_NEVER)
        return;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        struct shop s = shop_make(.start_ns = 10, .with.store_timeout_ns = DUE_S(30));

        asks[i](&s.lab);
        shop_close(&s);
    }
}
