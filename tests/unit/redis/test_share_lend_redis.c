/* A job of a shared queue in Redis is cancelled by who wants its bytes. */
#include <pthread.h>

#include "lab/redis/redis_poke.h"
#include "lab/redis/stored_proxy_lab.h"
#include "lab/take.h"

#define LONG  DUE_S(30)
#define LATER DUE_S(1000)

static due_queue *share_at(const char *at, enum due_order order)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "mail", .share = DUE_SHARED, .order = order,
                      .prefetch_max = 1 };
    due_queue *q;
    due_error error;

    o.store = store_at(at, (due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    cr_assert_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    return q;
}

static due_queue *share_by(enum due_order order)
{
    return share_at(server.url, order);
}

static void end(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, LONG), 0);
    cr_assert_eq(due_free(q), 0);
}

static due_id put(due_queue *q, const void *data, size_t len, int64_t delay_ns,
                  const due_extra *more)
{
    due_spec spec = { DUE_SPEC_INIT,        .data = data,  .len = len,
                      .delay_ns = delay_ns, .priority = 7, .topic = due_topic(q, "hot"),
                      .more = more };
    due_id id;

    cr_assert_eq(due_enqueue(q, &spec, LONG, &id), 0);
    return id;
}

static void expect_lent(due_job *job, due_id id, const void *data, size_t len)
{
    cr_expect(due_id_equal(job->id, id));
    cr_expect_eq(job->priority, 7);
    cr_expect_str_eq(due_topic_name(job->queue, job->topic), "hot");
    cr_assert_eq(job->len, len);
    cr_expect(len == 0 || memcmp(job->data, data, len) == 0);
    due_job_done(job);
}

/* Of each length, with whatever else it has, and in whatever state. */
static void lends_all(enum due_order order)
{
    static unsigned char bytes[1 << 20];
    const size_t lens[] = { 0, 5, 40, 20000, sizeof bytes };
    due_extra more = { DUE_EXTRA_INIT, .headers = "a=b", .headers_len = 3, .key = "k",
                       .key_len = 1,   .group = "g",     .group_len = 1 };
    due_queue *one = share_by(order);
    due_queue *two = share_by(order);
    due_job job;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 251);
    for (size_t l = 0; l < 5; l++)
        for (int state = 0; state < 3; state++) {
            due_id id = put(one, bytes, lens[l], state == 0 ? LATER : 0, &more);

            if (state > 0)
                cr_assert_eq(take_leased(one, &job, LONG, LONG), 0);
            if (state == 1)
                cr_assert_eq(due_nack(&job, LATER), 0);
            if (state == 2)
                cr_assert_eq(due_bury(&job, "cold"), 0);
            cr_assert_eq(due_cancel(two, id, &job), 0);
            cr_expect_eq(job.attempts, state > 0 ? 1u : 0u);
            cr_expect_eq(job.failures, state == 1 ? 1u : 0u);
            cr_assert_eq(job.headers_len, 3u);
            cr_expect_arr_eq(job.headers, "a=b", 3);
            expect_lent(&job, id, bytes, lens[l]);
            cr_expect_eq(due_cancel(one, id, &job), DUE_ENOENT);
        }
    cr_expect_str_eq(ASK("EXISTS", "due:{mail}:j", "due:{mail}:a", "due:{mail}:dead",
                         "due:{mail}:b", "due:{mail}:k", "due:{mail}:jk", "due:{mail}:jg",
                         "due:{mail}:gh", "due:{mail}:t:hot", "due:{mail}:o:hot"),
                     ":0\r\n", "nothing of them is left");
    end(one);
    end(two);
}

STORED_TEST(share_lend_redis, a_job_is_lent_whatever_it_has)
{
    lends_all(DUE_ORDER_DEADLINE);
}

STORED_TEST(share_lend_redis, a_job_is_lent_from_a_queue_by_priority)
{
    lends_all(DUE_ORDER_PRIORITY);
}

STORED_TEST(share_lend_redis, what_cannot_be_read_is_not_lent_and_stays)
{
    static const char jobs[] = "due:{mail}:j";
    due_queue *q = share_by(DUE_ORDER_DEADLINE);
    due_job job;

    due_id id = put(q, "tea", 3, LATER, NULL);
    poke_newer(server.socket, jobs, id);
    cr_expect_eq(due_cancel(q, id, &job), DUE_EVERSION);
    poke_set(server.socket, jobs, id, (const unsigned char *)"nonsense", 8);
    cr_expect_eq(due_cancel(q, id, &job), DUE_ECORRUPT);
    cr_expect_null(job.queue);
    cr_expect_str_eq(ASK("ZCARD", "due:{mail}:t:hot"), ":1\r\n");
    cr_expect_eq(due_cancel(q, id, NULL), DUE_ECORRUPT, "nor is it said to be gone");
    end(q);
}

/* What half of a torn script has left of a job is no job. */
STORED_TEST(share_lend_redis, what_is_nowhere_but_in_its_record_is_unknown)
{
    due_queue *q = share_by(DUE_ORDER_DEADLINE);
    due_job job;

    due_id id = put(q, "tea", 3, LATER, NULL);
    cr_expect_str_eq(ASK("DEL", "due:{mail}:t:hot"), ":1\r\n");
    cr_expect_eq(due_cancel(q, id, &job), DUE_ENOENT);
    cr_expect_eq(due_update(q, id, "x", 1), DUE_ENOENT);
    cr_expect_eq(due_cancel(q, id, NULL), DUE_ENOENT);
    end(q);
}

/* ---- Cut off ---- */

/* At whatever command, and whether the server has done it or not: a new connection is a matter of
 * milliseconds, and the call has time. */
Test(share_lend_redis, a_connection_that_is_cut_costs_no_bytes, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 100)
{
    static const enum fault_where where[] = { FAULT_BEFORE, FAULT_SENT, FAULT_MID_REPLY };
    due_queue *one = share_by(DUE_ORDER_DEADLINE);
    due_queue *two = share_at(url, DUE_ORDER_DEADLINE);
    due_job job;

    for (size_t w = 0; w < 3; w++) {
        unsigned struck = 1;

        for (uint64_t n = 1; struck == 1; n++) {
            struct fault_cell cell = { .command = n, .where = where[w], .what = FAULT_RESET };

            due_id id = put(one, "tea", 3, LATER, NULL);
            fault_proxy_plan(proxy, &cell, 1);
            int rc = due_cancel(two, id, &job);
            cr_assert_eq(rc, 0, "%d %d: %s", (int)w, (int)n, due_error_name(rc));
            expect_lent(&job, id, "tea", 3);
            struck = fault_proxy_struck(proxy);
            cr_assert(struck == 1 || n > 2, "a look, and a drop");
            cr_assert_lt(n, 20u);
        }
    }
    fault_proxy_plan(proxy, NULL, 0);
    end(one);
    end(two);
}

/* ---- At once ---- */

#define JOBS 200

struct at_once {
    pthread_t thread;
    due_queue *q;
    due_id *ids;
    unsigned had;
    bool wrong;
};

/* Bytes that are there in full: one letter, again and again. */
static bool is_whole(const due_job *job)
{
    const char *bytes = job->data;

    for (size_t i = 1; i < job->len; i++)
        if (bytes[i] != bytes[0])
            return false;
    return job->len > 0;
}

static void *cancel_all(void *arg)
{
    struct at_once *it = arg;
    due_job job;

    for (int i = 0; i < JOBS; i++) {
        int rc = due_cancel(it->q, it->ids[i], &job);

        it->wrong |= rc != 0 && rc != DUE_ENOENT;
        if (rc != 0)
            continue;
        it->had++;
        it->wrong |= !is_whole(&job) || !due_id_equal(job.id, it->ids[i]);
        due_job_done(&job);
    }
    return NULL;
}

static void *amend_all(void *arg)
{
    struct at_once *it = arg;
    char text[64];

    for (int i = 0; i < 4 * JOBS; i++) {
        size_t len = 1 + (size_t)i % sizeof text;

        memset(text, 'a' + i % 26, len);
        int rc = due_update(it->q, it->ids[i % JOBS], text, len);
        it->wrong |= rc != 0 && rc != DUE_ENOENT && rc != DUE_ETIMEDOUT;
    }
    return NULL;
}

STORED_TEST(share_lend_redis, of_many_who_cancel_and_amend_at_once_each_job_is_one_s)
{
    due_id ids[JOBS];
    struct at_once it[3] = { { .had = 0 } };
    unsigned had = 0;

    for (int i = 0; i < 3; i++)
        it[i] = (struct at_once){ .q = share_by(DUE_ORDER_DEADLINE), .ids = ids };
    for (int i = 0; i < JOBS; i++)
        ids[i] = put(it[0].q, "xxx", 3, LATER, NULL);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&it[i].thread, NULL, i < 2 ? cancel_all : amend_all, &it[i]),
                     0);
    for (int i = 0; i < 3; i++) {
        pthread_join(it[i].thread, NULL);
        cr_expect_not(it[i].wrong, "%d", i);
        had += it[i].had;
    }
    cr_expect_eq(had, (unsigned)JOBS);
    cr_expect_str_eq(ASK("EXISTS", "due:{mail}:j", "due:{mail}:t:hot"), ":0\r\n");
    for (int i = 0; i < 3; i++)
        end(it[i].q);
}
