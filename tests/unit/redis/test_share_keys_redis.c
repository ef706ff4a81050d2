/* Unique keys of a shared queue in Redis: every policy, and several who put in at once. */
#include <pthread.h>

#include "lab/redis/redis_poke.h"
#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

#define LONG  DUE_S(30)
#define LATER DUE_S(1000)

static due_queue *share(void)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "mail", .share = DUE_SHARED, .prefetch_max = 1 };
    due_queue *q;
    due_error error;

    o.store = store_at(server.url, (due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    cr_assert_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    return q;
}

static void end(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, LONG), 0);
    cr_assert_eq(due_free(q), 0);
}

static int put(due_queue *q, int64_t delay_ns, const char *text, enum due_key_policy policy,
               due_id *id)
{
    due_extra more = { DUE_EXTRA_INIT, .key = "k\0y", .key_len = 3, .on_key = policy,
                       .keep_key_ns = DUE_S(1000) };
    due_spec spec = { DUE_SPEC_INIT, .data = text, .len = strlen(text), .delay_ns = delay_ns,
                      .more = &more };

    return due_enqueue(q, &spec, LONG, id);
}

static bool reads(due_queue *q, due_id id, const char *text)
{
    char bytes[32] = "";
    size_t len = 0;

    return due_read(q, id, bytes, sizeof bytes, &len) == 0 && len == strlen(text) &&
           memcmp(bytes, text, len) == 0;
}

STORED_TEST(share_keys_redis, a_job_that_waits_is_changed_by_the_policy)
{
    due_queue *one = share();
    due_queue *two = share();
    due_id first;
    due_id id;

    cr_assert_eq(put(one, LATER, "tea", DUE_KEY_REFUSE, &first), 0);
    cr_expect_eq(put(two, 0, "pie", DUE_KEY_REFUSE, &id), DUE_EEXIST);
    cr_expect(due_id_equal(first, id));
    cr_expect_eq(put(two, LATER / 2, "pie", DUE_KEY_EARLIEST, &id), 0);
    cr_expect(due_id_equal(first, id) && reads(one, id, "tea"));
    int64_t left = 0;
    cr_assert_eq(due_remaining(one, id, &left), 0);
    cr_expect(left <= LATER / 2);
    cr_expect_eq(put(two, LATER, "cake", DUE_KEY_DEBOUNCE, &id), 0);
    cr_expect(due_id_equal(first, id) && reads(one, id, "cake"));
    cr_expect_eq(put(one, 0, "soup", DUE_KEY_REPLACE, &id), 0);
    cr_expect(due_id_equal(first, id));
    due_job job;
    cr_assert_eq(take_leased(two, &job, LONG, LONG), 0);
    cr_expect(due_id_equal(first, job.id));
    cr_expect_eq(put(one, LATER, "next", DUE_KEY_DEBOUNCE, &id), 0);
    cr_expect_not(due_id_equal(first, id), "the key was taken over");
    cr_expect_eq(due_ack(&job), 0);
    due_id who;
    cr_assert_eq(due_id_of_key(two, "k\0y", 3, &who), 0);
    cr_expect(due_id_equal(id, who));
    cr_expect_eq(due_promote(two, id), 0);
    cr_assert_eq(take_leased(one, &job, LONG, LONG), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(put(two, 0, "pie", DUE_KEY_REPLACE, &who), DUE_EEXIST, "it is kept");
    cr_expect(due_id_equal(id, who));
    cr_expect_eq(due_cancel_key(one, "k\0y", 3, NULL), DUE_ENOENT);
    end(one);
    end(two);
}

/* Its record names the key no more, so who ends it does not look for what is known of that. */
STORED_TEST(share_keys_redis, one_that_lost_its_key_and_got_other_content_leaves_nothing)
{
    due_queue *one = share();
    due_queue *two = share();
    due_job job;
    due_id first;
    due_id id;

    cr_assert_eq(put(one, 0, "tea", DUE_KEY_REFUSE, &first), 0);
    cr_assert_eq(take_leased(two, &job, LONG, LONG), 0);
    cr_assert_eq(put(one, LATER, "next", DUE_KEY_DEBOUNCE, &id), 0);
    cr_assert_not(due_id_equal(first, id), "the key was taken over");
    cr_assert_eq(due_nack(&job, LATER), 0);
    cr_assert_eq(due_update(one, first, "cake", 4), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{mail}:jk"), ":1\r\n");
    cr_assert_eq(due_promote(one, first), 0);
    cr_assert_eq(take_leased(one, &job, LONG, LONG), 0);
    cr_expect(due_id_equal(first, job.id));
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{mail}:jk"), ":1\r\n");
    due_id who;
    cr_assert_eq(due_id_of_key(two, "k\0y", 3, &who), 0);
    cr_expect(due_id_equal(id, who));
    end(one);
    end(two);
}

STORED_TEST(share_keys_redis, a_dead_job_waits_again)
{
    due_queue *one = share();
    due_queue *two = share();
    due_job job;
    due_id first;
    due_id id;

    cr_assert_eq(put(one, 0, "tea", DUE_KEY_REFUSE, &first), 0);
    cr_assert_eq(take_leased(two, &job, LONG, LONG), 0);
    cr_assert_eq(due_bury(&job, "cold"), 0);
    cr_expect_eq(put(one, 0, "hot", DUE_KEY_REPLACE, &id), 0);
    cr_expect(due_id_equal(first, id));
    cr_assert_eq(take_leased(one, &job, LONG, LONG), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_nack(&job, LATER), 0);
    cr_expect_eq(put(two, 0, "hotter", DUE_KEY_REPLACE, &id), 0);
    cr_expect(due_id_equal(first, id));
    cr_assert_eq(take_leased(one, &job, LONG, LONG), 0);
    cr_expect(job.attempts == 1 && job.failures == 0);
    cr_expect_eq(due_ack(&job), 0);
    end(one);
    end(two);
}

/* Whoever names it by its key is told, and does not look for ever. */
STORED_TEST(share_keys_redis, of_a_job_that_cannot_be_read_are_not_cancelled)
{
    static const char jobs[] = "due:{mail}:j";
    due_queue *q = share();
    due_extra more = { DUE_EXTRA_INIT, .key = "k\0y", .key_len = 3 };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = LATER, .topic = due_topic(q, "b"), .more = &more };
    due_id id;

    cr_assert_eq(due_enqueue(q, &spec, LONG, &id), 0);
    poke_newer(server.socket, jobs, id);
    cr_expect_eq(due_cancel_key(q, "k\0y", 3, NULL), DUE_EVERSION);
    cr_expect_eq(put(q, 0, "pie", DUE_KEY_REPLACE, NULL), DUE_EVERSION);
    poke_set(server.socket, jobs, id, (const unsigned char *)"nonsense", 8);
    cr_expect_eq(due_cancel_key(q, "k\0y", 3, NULL), DUE_ECORRUPT);
    cr_expect_eq(put(q, 0, "pie", DUE_KEY_REPLACE, NULL), DUE_ECORRUPT);
    end(q);
}

/* ---- At once ---- */

#define RACERS 4
#define ROUNDS 25

struct racer {
    pthread_barrier_t *line;
    due_queue *q;
    int *won;
};

static void *run(void *arg)
{
    struct racer *r = arg;
    due_id id;
    due_id who;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(r->line);
        int rc = put(r->q, LATER, "tea", DUE_KEY_REFUSE, &id);
        cr_expect(rc == 0 || rc == DUE_EEXIST, "%s", due_error_name(rc));
        if (rc == 0)
            __atomic_add_fetch(&r->won[i], 1, __ATOMIC_RELAXED);
        cr_expect_eq(due_id_of_key(r->q, "k\0y", 3, &who), 0);
        cr_expect(due_id_equal(id, who));
        pthread_barrier_wait(r->line);
        if (rc == 0)
            cr_expect_eq(due_cancel_key(r->q, "k\0y", 3, NULL), 0);
    }
    return NULL;
}

STORED_TEST(share_keys_redis, of_several_at_once_exactly_one_has_it)
{
    pthread_barrier_t line;
    pthread_t threads[RACERS];
    struct racer racers[RACERS];
    int won[ROUNDS] = { 0 };

    pthread_barrier_init(&line, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ &line, share(), won };
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        cr_expect_eq(won[i], 1, "round %d: %d", i, won[i]);
    for (int i = 0; i < RACERS; i++)
        end(racers[i].q);
    pthread_barrier_destroy(&line);
}
