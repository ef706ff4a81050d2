/* A job of a shared queue in Redis is cancelled while another process has it: what is left. */
#include "lab/redis/stored_proxy_lab.h"
#include "lab/take.h"

#define LONG  DUE_S(30)
#define SHORT DUE_MS(60)
#define LATER DUE_S(1000)

static due_queue *open_as(enum due_share share, enum due_order order)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "mail", .share = share, .order = order };
    due_queue *q;
    due_error error;

    o.prefetch_max = share == DUE_SHARED ? 1 : 0;
    o.store = store_at(server.url, (due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    cr_assert_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    return q;
}

static void end(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, LONG), 0);
    cr_assert_eq(due_free(q), 0);
}

/* It has all that a job can have. */
static due_spec spec_of(due_queue *q, bool plain)
{
    static const unsigned char bytes[20000];
    static const due_extra more = { DUE_EXTRA_INIT, .headers = "a=b", .headers_len = 3, .key = "k",
                                    .key_len = 1,   .group = "g",     .group_len = 1 };

    return (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = plain ? 5 : sizeof bytes,
                       .topic = due_topic(q, "hot"), .more = plain ? NULL : &more };
}

static due_id put(due_queue *q, bool plain)
{
    due_spec spec = spec_of(q, plain);
    due_id id;

    cr_assert_eq(due_enqueue(q, &spec, LONG, &id), 0);
    return id;
}

static void expect_nothing_left(const char *what)
{
    cr_expect_str_eq(ASK("EXISTS", "due:{mail}:j", "due:{mail}:a", "due:{mail}:dead",
                         "due:{mail}:b", "due:{mail}:t:hot", "due:{mail}:o:hot", "due:{mail}:l:hot",
                         "due:{mail}:k", "due:{mail}:jk", "due:{mail}:jg", "due:{mail}:gh",
                         "due:{mail}:g", "due:{mail}:g:hot", "due:{mail}:x"),
                     ":0\r\n", "%s", what);
}

/* A job that @one has, and @two has cancelled meanwhile.  With a short lease it is tried until the
 * machine lets them do both before that ends. */
static due_id marked(due_queue *one, due_queue *two, const due_spec *spec, int64_t lease_ns,
                     due_job *job)
{
    for (;;) {
        due_id id;

        cr_assert_eq(due_enqueue(one, spec, LONG, &id), 0);
        cr_assert_eq(take_leased(one, job, lease_ns, LONG), 0);
        int rc = due_cancel(two, id, NULL);
        cr_assert(rc == DUE_EBUSY || (rc == 0 && lease_ns == SHORT), "%s", due_error_name(rc));
        if (rc == DUE_EBUSY)
            return id;
        due_job_done(job);
    }
}

enum way { ACK, NACK, BURY, CLAIM, CANCEL, WAYS };

static void one_way(due_queue *one, due_queue *two, enum way way, bool plain)
{
    static const char *const names[] = { "ack", "nack", "bury", "claim", "cancel" };
    bool lapses = way == CLAIM || way == CANCEL;
    due_job job;
    due_job other;
    due_spec spec = spec_of(one, plain);

    due_id id = marked(one, two, &spec, lapses ? SHORT : LONG, &job);
    cr_expect_str_eq(ASK("HLEN", "due:{mail}:x"), ":1\r\n");
    if (lapses) {
        crew_sleep(SHORT + DUE_MS(20));
        cr_expect_eq(way == CLAIM ? take_leased(two, &other, LONG, DUE_MS(50))
                                  : due_cancel(two, id, NULL),
                     way == CLAIM ? DUE_ETIMEDOUT : 0);
        due_job_done(&job);
    } else {
        cr_expect_eq(way == ACK    ? due_ack(&job)
                     : way == NACK ? due_nack(&job, 0)
                                   : due_bury(&job, "cold"),
                     0);
    }
    expect_nothing_left(names[way]);
}

static void all_ways(enum due_order order)
{
    due_queue *one = open_as(DUE_SHARED, order);
    due_queue *two = open_as(DUE_SHARED, order);

    for (int plain = 0; plain < 2; plain++)
        for (enum way way = ACK; way < WAYS; way++)
            one_way(one, two, way, plain);
    end(one);
    end(two);
}

STORED_TEST(share_revoke_redis, nothing_is_left_of_it)
{
    all_ways(DUE_ORDER_DEADLINE);
    (void)ASK("FLUSHALL");
    all_ways(DUE_ORDER_PRIORITY);
}

/* Whoever claims does not know whether it has a key, and here no group says that to ask. */
STORED_TEST(share_revoke_redis, its_key_is_free_though_no_job_has_a_group)
{
    due_queue *one = open_as(DUE_SHARED, DUE_ORDER_DEADLINE);
    due_queue *two = open_as(DUE_SHARED, DUE_ORDER_DEADLINE);
    due_extra more = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = &more };
    due_job job;
    due_job other;

    marked(one, two, &spec, SHORT, &job);
    crew_sleep(SHORT + DUE_MS(20));
    cr_expect_eq(take_leased(two, &other, LONG, DUE_MS(50)), DUE_ETIMEDOUT);
    due_job_done(&job);
    expect_nothing_left("a claim");
    end(one);
    end(two);
}

/* Whoever owns the queue from then on knows of no such marks: so what is marked goes before that,
 * and nothing else does. */
static void own_after(enum due_order order, bool plain)
{
    due_queue *one = open_as(DUE_SHARED, order);
    due_queue *two = open_as(DUE_SHARED, order);
    due_job jobs[2];
    due_job job;

    due_id id = put(one, plain);
    cr_assert_eq(take_leased(one, &jobs[0], LONG, LONG), 0);
    due_id other = put(one, true);
    cr_assert_eq(take_leased(one, &jobs[1], LONG, LONG), 0);
    cr_assert_eq(due_cancel(two, id, NULL), DUE_EBUSY);
    for (int i = 0; i < 2; i++)
        due_job_done(&jobs[i]);
    end(one);
    end(two);
    due_queue *owner = open_as(DUE_OWNED, order);
    cr_expect_str_eq(ASK("EXISTS", "due:{mail}:x", "due:{mail}:l:hot", "due:{mail}:k"), ":0\r\n");
    cr_assert_eq(take_leased(owner, &job, LONG, LONG), 0);
    cr_expect(due_id_equal(job.id, other));
    cr_expect_eq(due_cancel(owner, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_ack(&job), 0);
    end(owner);
    expect_nothing_left("an owner");
}

STORED_TEST(share_revoke_redis, an_owner_does_not_have_it_again)
{
    for (int plain = 0; plain < 2; plain++) {
        own_after(DUE_ORDER_DEADLINE, plain);
        (void)ASK("FLUSHALL");
        own_after(DUE_ORDER_PRIORITY, plain);
        (void)ASK("FLUSHALL");
    }
}
