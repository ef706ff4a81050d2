/* Options of a Redis: what a later version may mean is refused by this one. */
#include <criterion/criterion.h>

#include "due/redis.h"

Test(redis_options, set_nothing_that_is_reserved)
{
    due_redis_options o = { .size = sizeof o };

    for (size_t i = 0; i < sizeof o.reserved / sizeof *o.reserved; i++) {
        due_store *store = NULL;
        due_error error = { "", "" };

        o.reserved[i] = 1;
        cr_expect_eq(due_redis_open(&store, "unix:///nowhere/redis.sock", &o, &error), DUE_EINVAL);
        cr_expect_null(store);
        cr_expect_str_eq(error.text, "reserved fields must be zero", "%zu", i);
        o.reserved[i] = 0;
    }
    due_store *store = NULL;
    cr_assert_eq(due_redis_open(&store, "unix:///nowhere/redis.sock", &o, NULL), 0);
    due_redis_free(store);
}
