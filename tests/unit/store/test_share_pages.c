/* One queue for many processes: what is asked of all of its jobs. */
#include <pthread.h>

#include "due/metrics.h"
#include "lab/mall.h"

#define MANY 40

/* Everything is listed once, by pages of @max; how many. */
static size_t list_all(struct lab *lab, size_t max, due_info *all)
{
    uint64_t at = 0;
    size_t n = 0;
    int got;

    while ((got = due_list(lab->q, &at, all + n, max)) > 0)
        n += (size_t)got;
    cr_expect_eq(got, 0);
    cr_expect_eq(due_list(lab->q, &at, all + n, max), 0, "the end stays the end");
    return n;
}

static size_t times(const due_info *all, size_t n, due_id id)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += due_id_equal(all[i].id, id) ? 1 : 0;
    return found;
}

MALL_TEST(share_pages, what_waits_in_all_topics_is_listed_by_any_process)
{
    struct mall m = mall_make(2);
    int tea = lab_topic(&m.lab[0], "tea");
    due_info all[MANY + 1];
    due_id ids[MANY];
    due_job job;

    lab_enqueue(&m.lab[0], "dead", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_bury(&job, "cold"), 0, "it does not wait");
    for (int i = 0; i < MANY; i++)
        ids[i] = lab_enqueue(&m.lab[0], "leaf", .at_ns = 50 + i / 3, .topic = i % 2 ? tea : 0);
    for (size_t max = 1; max <= MANY + 1; max += 5) {
        size_t n = list_all(&m.lab[1], max, all);

        cr_assert_eq(n, (size_t)MANY);
        for (int i = 0; i < MANY; i++)
            cr_expect_eq(times(all, n, ids[i]), 1u);
    }
    mall_turn_to(&m, 50);
    cr_assert_eq(list_all(&m.lab[1], 1, all), (size_t)MANY);
    for (int i = 0; i < MANY; i++) {
        cr_expect_eq(all[i].ready, all[i].deadline_ns <= 50);
        cr_expect_eq(all[i].len, 4u);
    }
    mall_close(&m);
}

MALL_TEST(share_pages, a_listing_goes_on_where_it_was_whatever_is_cancelled)
{
    struct mall m = mall_make(2);
    due_info info[3];
    due_id ids[6];
    uint64_t at = 0;

    for (int i = 0; i < 6; i++)
        ids[i] = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(due_list(m.lab[1].q, &at, info, 3), 3);
    cr_expect_eq(due_cancel(m.lab[0].q, ids[0], NULL), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, ids[2], NULL), 0);
    cr_assert_eq(due_list(m.lab[1].q, &at, info, 3), 3);
    for (int i = 0; i < 3; i++)
        cr_expect(due_id_equal(info[i].id, ids[3 + i]));
    cr_expect_eq(due_list(m.lab[1].q, &at, info, 3), 0);
    mall_close(&m);
}

static void begin_lists(struct mall *m, int n)
{
    due_info info;

    for (int i = 0; i < n; i++) {
        uint64_t at = 0;

        cr_assert_eq(due_list(m->lab[0].q, &at, &info, 1), 1);
    }
}

MALL_TEST(share_pages, a_listing_waits_for_the_store_as_long_as_any_call)
{
    struct mall m = mall_make(1);
    size_t i = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(50) });
    uint64_t at = 0;
    due_info info;

    lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    lab_enqueue(&m.lab[0], "jam", .at_ns = 60);
    for (int verb = 0; verb < 2; verb++) {
        memory_store_fault(m.store[i],
                           (struct memory_fault){ .verb = verb == 0 ? MEMORY_CENSUS : MEMORY_PAGE,
                                                  .times = MEMORY_ALWAYS,
                                                  .kind = MEMORY_AWAY });
        cr_expect_eq(due_list(m.lab[i].q, &at, &info, 1), DUE_ETIMEDOUT);
        memory_store_forgive(m.store[i]);
        while (due_list(m.lab[i].q, &at, &info, 1) != 1) /* on a machine that has much to do */
            continue;
        cr_expect_eq(info.deadline_ns, verb == 0 ? 50 : 60);
    }
    mall_close(&m);
}

/* Of more who list at once than are known, it is the one that was here least lately. */
MALL_TEST(share_pages, a_listing_that_was_left_for_others_is_told_so)
{
    struct mall m = mall_make(1);
    uint64_t first = 0;
    due_info info;

    for (int i = 0; i < 3; i++)
        lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(due_list(m.lab[0].q, &first, &info, 1), 1);
    for (int i = 0; i < 2; i++) {
        begin_lists(&m, 15);
        cr_expect_eq(due_list(m.lab[0].q, &first, &info, 1), 1, "it is still known");
    }
    begin_lists(&m, 16);
    cr_expect_eq(due_list(m.lab[0].q, &first, &info, 1), DUE_EINVAL);
    first = 77777;
    cr_expect_eq(due_list(m.lab[0].q, &first, &info, 1), DUE_EINVAL, "nobody's cursor");
    mall_close(&m);
}

MALL_TEST(share_pages, the_next_job_of_all_is_seen)
{
    struct mall m = mall_make(2);
    int tea = lab_topic(&m.lab[0], "tea");
    due_info info;

    cr_expect_eq(due_peek(m.lab[1].q, &info), DUE_EAGAIN);
    lab_enqueue(&m.lab[0], "late", .at_ns = 90);
    due_id soon = lab_enqueue(&m.lab[0], "soon", .at_ns = 50, .topic = tea);
    cr_assert_eq(due_peek(m.lab[1].q, &info), 0);
    cr_expect(due_id_equal(info.id, soon));
    cr_expect_eq(info.ready, 0);
    cr_expect_str_eq(due_topic_name(m.lab[1].q, info.topic), "tea");
    mall_turn_to(&m, 60);
    cr_assert_eq(due_peek(m.lab[1].q, &info), 0);
    cr_expect(due_id_equal(info.id, soon));
    cr_expect_eq(info.ready, 1);
    due_id now = lab_enqueue(&m.lab[0], "now", .at_ns = 40);
    cr_assert_eq(due_peek(m.lab[1].q, &info), 0);
    cr_expect(due_id_equal(info.id, now));
    mall_close(&m);
}

MALL_TEST(share_pages, the_bytes_of_any_job_are_read)
{
    struct mall m = mall_make(2);
    char bytes[8] = "";
    due_job job;
    size_t len = 0;

    due_id id = lab_enqueue(&m.lab[0], "green tea", .at_ns = 50);
    cr_assert_eq(due_read(m.lab[1].q, id, bytes, 5, &len), 0);
    cr_expect_eq(len, 9u);
    cr_expect_str_eq(bytes, "green");
    cr_expect_eq(due_read(m.lab[1].q, id, NULL, 0, &len), 0);
    due_id one = lab_enqueue(&m.lab[0], "1", .at_ns = 70);
    cr_assert_eq(due_read(m.lab[1].q, one, bytes, 5, &len), 0);
    cr_expect(len == 1 && bytes[0] == '1' && bytes[1] == 'r', "no more than it has");
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    memset(bytes, 0, sizeof bytes);
    cr_expect_eq(due_read(m.lab[1].q, id, bytes, 5, NULL), 0);
    cr_expect_str_eq(bytes, "green", "dead");
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
    cr_expect_eq(due_read(m.lab[1].q, id, bytes, 5, NULL), DUE_ENOENT);
    mall_close(&m);
}

/* ---- Clearing ---- */

static void note_discard(void *ctx, const due_job *job)
{
    char *text = ctx;

    if (job->len > 0)
        strncat(text, job->data, job->len);
    if (job->headers_len > 0)
        strncat(text, job->headers, job->headers_len);
    cr_expect_null(job->queue);
}

MALL_TEST(share_pages, what_waits_in_a_topic_is_cleared_and_shown)
{
    struct mall m = mall_make(1);
    char text[64] = "";
    size_t clears = mall_join(
        &m, (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    int tea = lab_topic(&m.lab[0], "tea");
    due_extra more = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    uint64_t cleared = 7;
    due_job job;

    due_id held = lab_enqueue(&m.lab[0], "held", .delay_ns = 0, .topic = tea);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    lab_enqueue(&m.lab[0], "x", .at_ns = 50);
    lab_enqueue(&m.lab[0], "a", .at_ns = 50, .topic = tea);
    lab_enqueue(&m.lab[0], "b", .at_ns = 60, .topic = tea, .more = &more);
    lab_enqueue(&m.lab[0], "", .at_ns = 70, .topic = tea);
    cr_assert_eq(due_clear(m.lab[clears].q, lab_topic(&m.lab[clears], "tea"), &cleared), 0);
    cr_expect_eq(cleared, 3u);
    cr_expect_str_eq(text, "abhot");
    cr_expect_eq(memory_disk_jobs(m.disk), 2u);
    cr_assert_eq(due_clear(m.lab[clears].q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 1u);
    cr_expect_str_eq(text, "abhotx");
    cr_expect(memory_disk_find(m.disk, held, &(due_record){ .len = 0 }), "somebody has it");
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

/* A process without on_discard. */
static due_queue *open_silent(struct mall *m)
{
    due_options o = { DUE_OPTIONS_INIT, .store = memory_store_new(m->disk), .share = DUE_SHARED,
                      .manual = m->clock };
    due_queue *q;

    cr_assert_eq(due_open(&q, &o, NULL), 0);
    return q;
}

/* More than one page with nothing to be shown, and than one with. */
MALL_TEST(share_pages, many_pages_are_cleared)
{
    struct mall m = mall_make(1);
    char text[1024] = "";
    uint64_t cleared = 0;
    size_t shows = mall_join(
        &m, (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    due_queue *silent = open_silent(&m);

    for (size_t who = 0; who < 2; who++) {
        due_queue *q = who == 0 ? silent : m.lab[shows].q;

        for (int i = 0; i < 600; i++)
            lab_enqueue(&m.lab[0], "x", .at_ns = 50 + i / 7);
        cr_assert_eq(due_clear(q, DUE_ALL_TOPICS, &cleared), 0);
        cr_expect_eq(cleared, 600u);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    }
    cr_expect_eq(strlen(text), 600u);
    cr_expect_eq(due_close(silent, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(silent), 0);
    mall_close(&m);
}

struct clearing {
    due_queue *q;
    uint64_t cleared;
    int rc;
};

static void *clear_main(void *arg)
{
    struct clearing *c = arg;

    c->rc = due_clear(c->q, DUE_ALL_TOPICS, &c->cleared);
    return NULL;
}

/* Between the look at the page and the change of it. */
MALL_TEST(share_pages, what_goes_before_it_is_cleared_is_neither_counted_nor_shown)
{
    struct mall m = mall_make(1);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    char text[64] = "";
    size_t clears = mall_join(
        &m, (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    struct clearing c = { .q = m.lab[clears].q };
    pthread_t thread;

    lab_enqueue(&m.lab[0], "a", .at_ns = 50);
    due_id id = lab_enqueue(&m.lab[0], "b", .at_ns = 60);
    lab_enqueue(&m.lab[0], "c", .at_ns = 70);
    memory_store_fault(
        m.store[clears],
        (struct memory_fault){ .verb = MEMORY_PUT, .kind = MEMORY_BLOCK, .limiter = gate });
    cr_assert_eq(pthread_create(&thread, NULL, clear_main, &c), 0);
    memory_limiter_reached(gate, 1);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    memory_limiter_open(gate);
    pthread_join(thread, NULL);
    cr_expect_eq(c.rc, 0);
    cr_expect_eq(c.cleared, 2u);
    cr_expect_str_eq(text, "ac");
    memory_limiter_free(gate);
    mall_close(&m);
}

static due_id put_dead(struct mall *m, const char *text, int topic)
{
    due_job job;

    due_id id = lab_enqueue(&m->lab[0], text, .delay_ns = 0, .topic = topic);
    cr_assert_eq(take_leased_from(m->lab[0].q, &topic, 1, &job, 100, DUE_FOREVER), 0);
    cr_assert(due_id_equal(job.id, id));
    cr_assert_eq(due_bury(&job, "cold"), 0);
    return id;
}

MALL_TEST(share_pages, the_dead_of_a_topic_are_cleared_or_kicked)
{
    struct mall m = mall_make(1);
    char text[64] = "";
    mall_join(&m,
              (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    int tea = lab_topic(&m.lab[0], "tea");
    int there = lab_topic(&m.lab[1], "tea");
    uint64_t n = 0;
    due_info info;
    due_id id[6];

    for (int i = 0; i < 6; i++)
        id[i] = put_dead(&m, "x", i % 2 ? tea : 0);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_PUT);
    cr_assert_eq(due_kick_all(m.lab[1].q, there, &n), 0);
    cr_expect_eq(n, 3u);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_PUT) - before, 1u, "together");
    for (int i = 0; i < 6; i++)
        cr_expect_eq(due_find(m.lab[1].q, id[i], &info), i % 2 ? 0 : DUE_ENOENT);
    cr_assert_eq(due_clear_dead(m.lab[1].q, there, &n), 0);
    cr_expect_eq(n, 0u, "none of them is dead");
    cr_assert_eq(due_clear_dead(m.lab[1].q, 0, &n), 0);
    cr_expect_eq(n, 3u);
    cr_expect_str_eq(text, "xxx", "they are shown");
    cr_expect_eq(memory_disk_jobs(m.disk), 3u);
    put_dead(&m, "y", 0);
    cr_assert_eq(due_kick_all(m.lab[1].q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 1u);
    cr_expect_eq(due_kick_all(m.lab[1].q, 99, &n), DUE_EINVAL);
    cr_expect_eq(due_clear_dead(m.lab[1].q, 99, &n), DUE_EINVAL);
    cr_expect_eq(due_clear(m.lab[1].q, 99, &n), DUE_EINVAL);
    mall_close(&m);
}

MALL_TEST(share_pages, a_job_of_a_topic_that_was_not_heard_of_is_listed)
{
    struct mall m = mall_make(2);
    uint64_t cursor = 0;
    due_info info[4];

    due_id id = lab_enqueue(&m.lab[0], "x", .at_ns = 50, .topic = lab_topic(&m.lab[0], "new"));
    cr_assert_eq(due_list(m.lab[1].q, &cursor, info, 4), 1);
    cr_expect(due_id_equal(info[0].id, id));
    cr_expect_str_eq(due_topic_name(m.lab[1].q, info[0].topic), "new");
    mall_close(&m);
}

/* Each by itself, since it is to have other content. */
MALL_TEST(share_pages, of_the_dead_whose_time_was_limited_those_of_a_topic_are_kicked)
{
    struct mall m = mall_make(2);
    due_extra limit = { DUE_EXTRA_INIT, .ttl_ns = 30 };
    int tea = lab_topic(&m.lab[0], "tea");
    due_id id[2];
    due_info info;
    due_job job;
    uint64_t n = 0;

    for (int i = 0; i < 2; i++) {
        id[i] = lab_enqueue(&m.lab[0], "x", .delay_ns = 0, .topic = i ? tea : 0, .more = &limit);
        cr_assert_eq(mall_reserve(&m, 0, &job, 10), 0);
        cr_assert_eq(due_bury(&job, "cold"), 0);
    }
    mall_turn_to(&m, 1000);
    cr_assert_eq(due_kick_all(m.lab[1].q, lab_topic(&m.lab[1], "tea"), &n), 0);
    cr_expect_eq(n, 1u);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_find(m.lab[1].q, id[i], &info), i ? 0 : DUE_ENOENT);
    mall_close(&m);
}

/* More than half of what one exchange has room for. */
MALL_TEST(share_pages, many_dead_jobs_are_kicked_together)
{
    struct mall m = mall_make(2);
    uint64_t n = 0;

    for (int i = 0; i < 200; i++)
        put_dead(&m, "x", 0);
    uint64_t before = memory_disk_batches(m.disk);
    cr_assert_eq(due_kick_all(m.lab[1].q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 200u);
    cr_expect_eq(memory_disk_batches(m.disk) - before, 1u);
    mall_close(&m);
}

/* Somebody else has kicked one of them since they were looked at. */
MALL_TEST(share_pages, one_of_the_dead_whose_time_was_limited_and_that_has_gone_is_passed_over)
{
    struct mall m = mall_make(2);
    due_extra limit = { DUE_EXTRA_INIT, .ttl_ns = 30 };
    due_job job;
    uint64_t n = 0;

    for (int i = 0; i < 2; i++) {
        lab_enqueue(&m.lab[0], "x", .delay_ns = 0, .more = &limit);
        cr_assert_eq(mall_reserve(&m, 0, &job, 10), 0);
        cr_assert_eq(due_bury(&job, "cold"), 0);
    }
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_FIND, .kind = MEMORY_ANSWER, .answer = DUE_ENOENT });
    cr_assert_eq(due_kick_all(m.lab[1].q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 1u);
    mall_close(&m);
}

/* An answer gets lost: the exchange is made once, and what comes after it, too. */
MALL_TEST(share_pages, a_clear_in_doubt_is_seen_through)
{
    struct mall m = mall_make(1);
    char text[64] = "";
    uint64_t n = 0;

    mall_join(&m,
              (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    for (int i = 0; i < 5; i++)
        lab_enqueue(&m.lab[0], "x", .at_ns = 50);
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = 2, .kind = MEMORY_DOUBT_LANDED });
    int rc = due_clear(m.lab[1].q, DUE_ALL_TOPICS, &n);
    cr_expect(rc == 0 ? n == 5 : rc == DUE_EINDOUBT, "%d, %llu", rc, (unsigned long long)n);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    lab_enqueue(&m.lab[1], "cake", .at_ns = 50);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    cr_expect_str_eq(text, "xxxxx");
    mall_close(&m);
}

/* A process that shows what it drops, whose calls have little time, and a clear of five jobs, dead
 * or not, whose end it does not hear. */
static struct mall in_doubt(bool dead, enum memory_fault_kind kind, due_id *ids, char *text)
{
    struct mall m = mall_make(1);
    uint64_t n = 0;
    int rc;

    mall_join(&m, (struct lab_options){ .with.on_discard = note_discard,
                                        .with.discard_ctx = text,
                                        .with.store_timeout_ns = DUE_MS(50) });
    for (int i = 0; i < 5; i++)
        ids[i] = dead ? put_dead(&m, "x", 0) : lab_enqueue(&m.lab[0], "x", .at_ns = 50);
    due_id gone = lab_enqueue(&m.lab[0], "y", .at_ns = 50);
    cr_expect_eq(due_cancel(m.lab[0].q, gone, NULL), 0);
    while ((rc = due_cancel(m.lab[1].q, gone, NULL)) == DUE_ETIMEDOUT) /* a busy machine */
        ;
    cr_expect_eq(rc, DUE_ENOENT, "an answer that is no clear's");
    memory_store_fault(m.store[1], (struct memory_fault){
                                       .verb = MEMORY_PUT, .times = MEMORY_ALWAYS, .kind = kind });
    do { /* again, if it was out of time before it had begun */
        rc = dead ? due_clear_dead(m.lab[1].q, DUE_ALL_TOPICS, &n)
                  : due_clear(m.lab[1].q, DUE_ALL_TOPICS, &n);
    } while (rc == DUE_ETIMEDOUT);
    cr_expect_eq(rc, DUE_EINDOUBT);
    cr_expect_eq(n, 0u);
    cr_expect_str_empty(text, "it is not known whether they have gone");
    return m;
}

/* When it is known those that have gone are shown, though nobody waits for that any more. */
MALL_TEST(share_pages, what_was_cleared_in_doubt_is_shown_when_its_end_is_known)
{
    for (int way = 0; way < 4; way++) {
        bool landed = way < 2;
        char text[64] = "";
        due_id ids[5];
        struct mall m =
            in_doubt(way % 2 == 1, landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT, ids, text);

        cr_expect_eq(due_cancel(m.lab[0].q, ids[2], NULL), landed ? DUE_ENOENT : 0);
        memory_store_forgive(m.store[1]);
        lab_enqueue(&m.lab[1], "cake", .at_ns = 50); /* one exchange at a time */
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        cr_expect_str_eq(text, landed ? "xxxxx" : "xxxx", "way %d", way);
        mall_close(&m);
        cr_expect_str_eq(text, landed ? "xxxxx" : "xxxx", "once, way %d", way);
    }
}

/* Nor is it known ever: else they might vanish in silence. */
MALL_TEST(share_pages, what_was_cleared_in_doubt_for_good_is_shown)
{
    for (int way = 0; way < 8; way++) {
        bool landed = way < 4;
        char text[64] = "";
        due_id ids[5];
        struct mall m =
            in_doubt(way % 2 == 1, landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT, ids, text);

        if (way % 4 < 2) {
            memory_store_evict(m.store[1]);
            memory_store_forgive(m.store[1]);
        }
        int rc = due_close(m.lab[1].q, DUE_CLOSE_DISCARD, 1);
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%d", rc);
        cr_expect_str_eq(text, "xxxxx", "way %d", way);
        mall_close(&m);
    }
}

/* The store shows them in any order. */
MALL_TEST(share_pages, of_all_processes_the_first_are_listed_and_then_the_next)
{
    struct mall m = mall_make(MALL_MOST);
    due_process p;
    uint64_t cursor = 0;
    uint64_t before = 0;
    size_t n = 0;

    while (due_processes(m.lab[0].q, &cursor, &p, 1, DUE_FOREVER) == 1) {
        cr_expect_gt(p.number, before);
        cr_expect_eq(p.self, n == 0, "who has joined first asks");
        before = p.number;
        n++;
    }
    cr_expect_eq(n, m.n);
    mall_close(&m);
}
