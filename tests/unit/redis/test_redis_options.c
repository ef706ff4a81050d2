/* Options of a Redis: what a later version may mean is refused by this one, what is given is taken
 * as it is, and what is not given has the default that the header names. */
#include "lab/redis/redis_store_lab.h"

#include "redis/link/link_inside.h"

#define NOWHERE "unix:///nowhere/redis.sock"

Test(redis_options, set_nothing_that_is_reserved)
{
    due_redis_options o = { .size = sizeof o };

    for (size_t i = 0; i < sizeof o.reserved / sizeof *o.reserved; i++) {
        due_store *store = NULL;

        o.reserved[i] = 1 + i % 2;
        cr_expect_eq(due_redis_open(&store, NOWHERE, &o, &error), DUE_EINVAL);
        cr_expect_null(store);
        cr_expect_str_eq(error.text, "reserved fields must be zero", "%zu", i);
        o.reserved[i] = 0;
    }
    due_store *store = NULL;
    cr_assert_eq(due_redis_open(&store, NOWHERE, &o, NULL), 0);
    due_redis_free(store);
}

static int tried(due_redis_options o)
{
    due_store *store = NULL;

    memset(&error, 'x', sizeof error);
    int rc = due_redis_open(&store, NOWHERE, &o, &error);
    due_redis_free(store);
    return rc;
}

/* Each by itself: a time that is wrong is not made good by others. */
Test(redis_options, that_are_times_are_no_less_than_nothing_and_no_more_than_a_year)
{
    due_redis_options o = { DUE_REDIS_OPTIONS_INIT };
    int64_t *const times[] = { &o.connect_ns,      &o.answer_ns,      &o.spin_ns,
                               &o.backoff_min_ns,  &o.backoff_max_ns, &o.lease_ns,
                               &o.wait_replicas_ns };

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        *times[i] = -1;
        cr_expect_eq(tried(o), DUE_EINVAL, "%zu", i);
        cr_expect_str_eq(error.text, "a time is negative, or longer than a year");
        cr_expect_str_empty(error.hint);
        *times[i] = DUE_S(86400 * 365) + 1;
        cr_expect_eq(tried(o), DUE_EINVAL, "%zu", i);
        *times[i] = DUE_S(86400 * 365);
        cr_expect_eq(tried(o), 0, "%zu", i);
        *times[i] = 0;
    }
    o.lease_ns = 1;
    cr_expect_eq(tried(o), DUE_EINVAL);
    cr_expect_eq(due_redis_open(&(due_store *){ NULL }, NOWHERE, &o, NULL), DUE_EINVAL,
                 "who wants to know no more is told no more");
}

Test(redis_options, name_a_client_in_letters_that_are_seen)
{
    static const struct {
        const char *name;
        int rc;
    } names[] = { { "a", 0 },           { "!~", 0 },
                  { "", DUE_EINVAL },   { "a b", DUE_EINVAL },
                  { " ", DUE_EINVAL },  { "\x7f", DUE_EINVAL },
                  { "\t", DUE_EINVAL }, { "b\xc3\xa4r", DUE_EINVAL } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(
            tried((due_redis_options){ DUE_REDIS_OPTIONS_INIT, .client_name = names[i].name }),
            names[i].rc, "%zu", i);
}

/* It is longer than ours, and says something behind what we know. */
Test(redis_options, of_a_later_version_are_refused_if_they_are_set)
{
    struct {
        due_redis_options known;
        uint64_t later;
    } o = { .known.size = sizeof o };

    due_store *store = NULL;

    cr_assert_eq(due_redis_open(&store, NOWHERE, &o.known, &error), 0, "%s", error.text);
    due_redis_free(store);
    o.later = 1;
    cr_expect_lt(due_redis_open(&store, NOWHERE, &o.known, &error), 0);
    cr_expect_str_eq(error.text, "an option is set that this version does not know");
    o.known.size = 1;
    cr_expect_eq(due_redis_open(&store, NOWHERE, &o.known, &error), DUE_EINVAL);
    cr_expect_str_eq(error.text, "options were not begun with DUE_REDIS_OPTIONS_INIT");
}

static due_store *made(due_redis_options o)
{
    due_store *store = NULL;

    cr_assert_eq(due_redis_open(&store, NOWHERE, &o, &error), 0, "%s", error.text);
    return store;
}

Test(redis_options, have_the_defaults_of_the_header)
{
    due_store *store = made((due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    const due_redis_options *set = &inside(store)->set;

    cr_expect_str_eq(set->prefix, "due");
    cr_expect_eq(set->connect_ns, DUE_S(5));
    cr_expect_eq(set->answer_ns, DUE_S(5));
    cr_expect_eq(set->spin_ns, 0);
    cr_expect_eq(set->backoff_min_ns, DUE_MS(50));
    cr_expect_eq(set->backoff_max_ns, DUE_S(5));
    cr_expect_eq(set->lease_ns, DUE_S(10));
    cr_expect_eq(set->wait_replicas_ns, DUE_S(1));
    cr_expect_eq(set->batch_bytes, (size_t)16 << 20);
    due_redis_free(store);
}

Test(redis_options, are_what_was_given_down_to_a_nanosecond_and_a_byte)
{
    due_store *store = made(
        (due_redis_options){ DUE_REDIS_OPTIONS_INIT, .prefix = "p", .connect_ns = 1, .answer_ns = 1,
                             .spin_ns = 1, .backoff_min_ns = 1, .backoff_max_ns = 1,
                             .lease_ns = DUE_MS(20), .wait_replicas_ns = 1, .batch_bytes = 1 });
    const due_redis_options *set = &inside(store)->set;
    const struct due__link_limits *limits = &inside(store)->link->limits;

    cr_expect_str_eq(set->prefix, "p");
    cr_expect(set->wait_replicas_ns == 1 && set->lease_ns == DUE_MS(20) && set->batch_bytes == 1);
    cr_expect(limits->connect_ns == 1 && limits->answer_ns == 1 && limits->spin_ns == 1);
    cr_expect(limits->backoff_min_ns == 1 && limits->backoff_max_ns == 1);
    due_redis_free(store);
}

/* A server that waits for replicas answers later than others; one replica is enough for that. */
Test(redis_options, give_an_answer_more_time_if_replicas_are_waited_for)
{
    due_store *store = made((due_redis_options){ DUE_REDIS_OPTIONS_INIT, .wait_replicas = 1 });

    cr_expect_eq(inside(store)->link->limits.answer_ns, DUE_S(6));
    due_redis_free(store);
}

/* The largest record with what stands around it, and as many topics with their fields as may be. */
Test(redis_options, let_the_largest_answer_in_and_little_more)
{
    due_store *store = made((due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    const struct due__link_limits *limits = &inside(store)->link->limits;

    cr_expect_eq(limits->reply_bytes, ((size_t)512 << 20) + ((size_t)1 << 20));
    cr_expect_eq(limits->reply_elements, (size_t)2 * 131072);
    due_redis_free(store);
}

REDIS_TEST(redis_options, say_who_the_server_sees_and_where_the_keys_lie)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_expect_not_null(strstr(ASK("CLIENT", "LIST"), " name=due "));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:meta"), ":1\r\n");
    finish(store);
    store = opened((due_redis_options){ .client_name = "x", .prefix = "other" });
    cr_expect_not_null(strstr(ASK("CLIENT", "LIST"), " name=x "));
    cr_expect_str_eq(ASK("EXISTS", "other:{q}:meta"), ":1\r\n");
    finish(store);
}
