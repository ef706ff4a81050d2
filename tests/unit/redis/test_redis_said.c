/* test_redis_said.c - what is said at the end of a load of what was found in it, and only once. */
#include "lab/redis/redis_store_lab.h"
#include "redis/read/read.h"

static char said[2048];

static void on_log(void *queue, enum due_log_level level, const char *text)
{
    size_t len = strlen(said);

    (void)queue;
    snprintf(said + len, sizeof said - len, "%d %s\n", (int)level, text);
}

/* It has found that, as if there had been such jobs, and reads on to the end. */
static const char *found(size_t set_aside, size_t newer, size_t put_back, size_t hidden)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = on_log };
    struct seen seen = { 0 };

    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    fill(store, 40, 1000, 700, 1);
    said[0] = '\0';
    cr_assert_eq(store->verbs->load(store, 1, 5, see, &seen, soon(LONG_NS)), 1);
    inside(store)->load->set_aside = set_aside;
    inside(store)->load->newer = newer;
    inside(store)->load->put_back = put_back;
    inside(store)->load->hidden = hidden;
    int rc = 1;
    while (rc == 1)
        rc = store->verbs->load(store, 0, 5, see, &seen, soon(LONG_NS));
    cr_expect_eq(rc, 0);
    cr_expect_eq(store->verbs->load(store, 0, 5, see, &seen, soon(LONG_NS)), 0, "nothing more");
    cr_expect_eq(seen.n, 40u);
    free(seen.data);
    finish(store);
    ASK("FLUSHALL");
    return said;
}

REDIS_TEST(redis_said, at_the_end_of_a_load_what_was_found)
{
    cr_expect_str_eq(found(0, 0, 0, 0), "");
    cr_expect_str_eq(found(0, 1, 0, 0), "", "one was named when it was met");
    cr_expect_str_eq(found(1, 0, 0, 0), "1 1 damaged records were set aside in due:{q}:q\n");
    cr_expect_str_eq(found(0, 2, 0, 0), "1 2 jobs of a newer version stay in the store\n");
    cr_expect_str_eq(found(0, 0, 1, 0),
                     "1 1 jobs stood in the wrong place, and were put where their "
                     "records say\n");
    cr_expect_str_eq(found(0, 0, 0, 1),
                     "1 1 jobs stood in topics that were missing in due:{q}:topics\n");
    cr_expect_str_eq(found(3, 4, 5, 6),
                     "1 3 damaged records were set aside in due:{q}:q\n"
                     "1 4 jobs of a newer version stay in the store\n"
                     "1 5 jobs stood in the wrong place, and were put where their records say\n"
                     "1 6 jobs stood in topics that were missing in due:{q}:topics\n");
}
