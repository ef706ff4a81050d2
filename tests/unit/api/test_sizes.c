/* Calls of many jobs, and of many bytes, just under, at and over the sizes of their pieces: the
 * same for each number, with and without a store. */
#include "lab/shop.h"
#include "lab/take.h"

#define MOST 514

static const size_t numbers[] = { 1,  2,  15,  16,  17,  31,  32,  33,  63,      64,
                                  65, 96, 127, 128, 129, 255, 256, 257, MOST - 1 };
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static const due_retry never = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

/* Of each kind of queue: plain; counted by topic; with room; with a store. */
static void in_each_queue(void (*expect)(struct lab *lab, size_t n))
{
    for (int kind = 0; kind < 3 + (lab_proxies != DUE_PROXIES_NEVER); kind++) {
        struct lab_options how = { .start_ns = 1, .with.size = sizeof(due_options) };
        struct shop s = { .disk = NULL };

        how.with.metrics = kind == 1;
        how.with.capacity = kind == 2 ? 2 * MOST : 0;
        if (kind == 3)
            s = shop_new(NULL, how);
        else
            s.lab = lab_open_with(&how);
        for (size_t i = 0; i < NUMBERS; i++)
            expect(&s.lab, numbers[i]);
        if (kind == 3)
            shop_close(&s);
        else
            lab_close(&s.lab);
    }
}

static void put(struct lab *lab, size_t n, const due_extra *more)
{
    for (size_t i = 0; i < n; i++)
        lab_enqueue(lab, "tea", .at_ns = 1, .more = more);
}

/* ---- Enqueue ---- */

static uint32_t texts[MOST];
static char keys[MOST][24];

/* Each tenth has a key; all are told, found, and come in their order. */
static void expect_enqueued(struct lab *lab, size_t n)
{
    static due_spec specs[MOST];
    static due_extra extras[MOST];
    static due_id ids[MOST + 1];
    due_id mark;
    due_info info;
    due_job job;

    memset(&mark, 0xa5, sizeof mark);
    for (size_t i = 0; i < n; i++) {
        snprintf(keys[i], sizeof keys[i], "%zu", i);
        texts[i] = (uint32_t)i;
        extras[i] = (due_extra){ DUE_EXTRA_INIT, .key = keys[i], .key_len = strlen(keys[i]) };
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &texts[i], .len = sizeof texts[i], .at_ns = 1,
                               .more = i % 10 == 9 ? &extras[i] : NULL };
    }
    ids[n] = mark;
    cr_assert_eq(due_enqueue_batch(lab->q, specs, n, DUE_S(20), ids), (int)n, "%zu", n);
    cr_expect_eq(memcmp(&ids[n], &mark, sizeof mark), 0, "%zu", n);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(due_find(lab->q, ids[i], &info), 0, "%zu of %zu", i, n);
        cr_expect_eq(due_id_of_key(lab->q, keys[i], strlen(keys[i]), &mark),
                     i % 10 == 9 ? 0 : DUE_ENOENT);
    }
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(due_dequeue(lab->q, &job, DUE_S(20)), 0, "%zu of %zu", i, n);
        cr_expect_eq(memcmp(job.data, &texts[i], sizeof texts[i]), 0, "%zu of %zu", i, n);
        cr_expect(due_id_equal(job.id, ids[i]), "%zu of %zu", i, n);
        due_job_done(&job);
    }
}

LAB_TEST(sizes, of_what_is_put_in_together)
{
    in_each_queue(expect_enqueued);
}

/* ---- Take ---- */

static void expect_taken(struct lab *lab, size_t n)
{
    static due_job jobs[MOST + 1];
    due_job mark;

    memset(&mark, 0xa5, sizeof mark);
    for (int leased = 0; leased < 2; leased++) {
        due_take_options how = { DUE_TAKE_INIT, .lease_ns = leased ? 1000 : 0 };
        size_t got = 0;

        put(lab, n + 3, NULL);
        while (got < n) { /* with a store it may be in several pieces */
            jobs[n] = mark;
            int rc = due_take(lab->q, &how, jobs + got, n - got, DUE_S(20));
            cr_assert_gt(rc, 0, "%zu", n);
            got += (size_t)rc;
            cr_assert_leq(got, n);
        }
        cr_expect_eq(memcmp(&jobs[n], &mark, sizeof mark), 0, "%zu", n);
        for (size_t i = 0; i < n; i++) {
            cr_expect_eq(jobs[i].attempts, (unsigned)leased, "%zu of %zu", i, n);
            cr_expect_eq(jobs[i].token != 0, leased);
        }
        cr_expect_eq(lab_stats(lab).lent, n);
        cr_expect_eq(lab_stats(lab).waiting, 3u, "%zu", n);
        if (leased)
            cr_expect_eq(due_ack_batch(jobs, n, NULL), (int)n);
        due_jobs_done(jobs, n);
        cr_expect_eq(due_clear(lab->q, 0, NULL), 0);
    }
}

LAB_TEST(sizes, of_what_is_taken_together)
{
    in_each_queue(expect_taken);
}

/* ---- Ack ---- */

/* Some come again, and the leases of some have ended. */
static void expect_acked(struct lab *lab, size_t n)
{
    static due_job jobs[MOST + 1];
    static int results[MOST + 1];
    due_job mark;
    size_t late = 0;
    size_t again = 0;

    memset(&mark, 0xa5, sizeof mark);
    for (size_t i = 0; i < n; i++) {
        lab_enqueue(lab, "tea", .at_ns = 1, .more = i % 7 == 3 ? EXTRA(.every_ns = 5000) : NULL);
        cr_assert_eq(take_leased(lab->q, &jobs[i], i % 7 == 5 ? 10 : 1000, DUE_S(20)), 0);
        late += i % 7 == 5;
        again += i % 7 == 3 || i % 7 == 5;
    }
    lab_advance(lab, 10);
    uint64_t acked = lab_stats(lab).acked;
    jobs[n] = mark;
    results[n] = 77;
    cr_expect_eq(due_ack_batch(jobs, n, results), (int)(n - late), "%zu", n);
    cr_expect_eq(results[n], 77);
    cr_expect_eq(memcmp(&jobs[n], &mark, sizeof mark), 0, "%zu", n);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(results[i], i % 7 == 5 ? DUE_ESTALE : 0, "%zu of %zu: %d", i, n, results[i]);
        cr_expect(jobs[i].queue == NULL && jobs[i].place == 0, "%zu of %zu", i, n);
    }
    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.acked - acked, n - again, "%zu", n);
    cr_expect_eq(s.leased, 0u);
    cr_expect_eq(s.lent, 0u);
    cr_expect_eq(s.waiting, again, "%zu", n);
    cr_expect_eq(due_clear(lab->q, 0, NULL), 0);
}

LAB_TEST(sizes, of_what_is_acked_together)
{
    in_each_queue(expect_acked);
}

/* ---- The dead ---- */

static void expect_revived(struct lab *lab, size_t n)
{
    static due_job jobs[MOST];
    int other = lab_topic(lab, "other");
    const due_extra once = { DUE_EXTRA_INIT, .retry = &never };
    uint64_t count = 7;

    for (int clears = 0; clears < 2; clears++) {
        put(lab, n, &once);
        lab_enqueue(lab, "other", .at_ns = 1, .topic = other, .more = &once);
        for (size_t i = 0; i < n + 1; i++) {
            cr_assert_eq(take_leased(lab->q, &jobs[0], 1000, DUE_S(20)), 0);
            cr_assert_eq(due_bury(&jobs[0], "so"), 0);
        }
        cr_expect_eq((clears ? due_clear_dead : due_kick_all)(lab->q, 0, &count), 0);
        cr_expect_eq(count, n);
        struct due_stats s = lab_stats(lab);
        cr_expect_eq(s.dead, 1u, "%zu", n);
        cr_expect_eq(s.ready, clears ? 0 : n, "%zu", n);
        cr_expect_eq(due_clear_dead(lab->q, DUE_ALL_TOPICS, &count), 0);
        cr_expect_eq(count, 1u);
        cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, NULL), 0);
    }
}

LAB_TEST(sizes, of_what_is_kicked_and_cleared_together)
{
    in_each_queue(expect_revived);
}

/* ---- Bytes ---- */

static const size_t lengths[] = { 0, 1, 31, 32, 33, 4095, 4096, 4097, 8192, 65535, 65536, 65537 };
#define LENGTHS (sizeof lengths / sizeof lengths[0])
#define BYTES   65537

static unsigned char bytes[BYTES + 1];

static void expect_read(struct lab *lab, due_id id, size_t len, const char *what)
{
    static unsigned char buffer[BYTES + 1];

    for (size_t k = 0; k < LENGTHS; k++) {
        size_t size = lengths[k];
        size_t is = 77;

        memset(buffer, 0xa5, sizeof buffer);
        cr_expect_eq(due_read(lab->q, id, buffer, size, &is), 0, "%s", what);
        cr_expect_eq(is, len, "%s: %zu", what, len);
        size_t copied = len < size ? len : size;
        cr_expect_eq(memcmp(buffer, bytes, copied), 0, "%s: %zu of %zu", what, copied, len);
        cr_expect_eq(buffer[copied], 0xa5, "%s: %zu of %zu", what, copied, len);
    }
}

static void expect_lengths(struct lab *lab)
{
    const due_extra headers = { DUE_EXTRA_INIT, .headers = "head", .headers_len = 4 };
    due_job job;

    for (size_t i = 0; i < LENGTHS * LENGTHS; i++) {
        size_t from = lengths[i / LENGTHS];
        size_t to = lengths[i % LENGTHS];
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .data = bytes, .len = from,
                          .more = i % 2 ? &headers : NULL };
        due_id id;

        cr_assert_eq(due_enqueue(lab->q, &spec, DUE_S(20), &id), 0);
        if (from == to)
            expect_read(lab, id, from, "as it was put in");
        cr_expect_eq(due_update(lab->q, id, bytes, to), 0, "%zu to %zu", from, to);
        spec.more = &headers;
        cr_expect_eq(due_amend(lab->q, id, &spec, DUE_SET_HEADERS), 0, "%zu", to);
        if (from == to)
            expect_read(lab, id, to, "as it was changed");
        cr_assert_eq(due_dequeue(lab->q, &job, DUE_S(20)), 0);
        cr_expect_eq(job.len, to);
        cr_expect(to == 0 || memcmp(job.data, bytes, to) == 0, "%zu to %zu", from, to);
        cr_expect(job.headers_len == 4 && memcmp(job.headers, "head", 4) == 0);
        due_job_done(&job);
    }
}

LAB_TEST(sizes, of_what_is_read_and_changed)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (int stored = 0; stored < 1 + (lab_proxies != DUE_PROXIES_NEVER); stored++) {
        struct shop s = { .disk = NULL };

        if (stored)
            s = shop_make(.start_ns = 1);
        else
            s.lab = lab_open(.start_ns = 1);
        expect_lengths(&s.lab);
        if (stored)
            shop_close(&s);
        else
            lab_close(&s.lab);
    }
}
