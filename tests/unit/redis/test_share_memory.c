/* test_share_memory.c - the shared face of the Redis store: what is done again and again, and what
 * is refused again and again, takes no more memory than once.
 */
#include <malloc.h>

#include "lab/redis/share_store_lab.h"
#include "record/scratch.h"

#define TIMES 200

/* Bytes that are out after many times of it, behind those after the first ones.  Where a sanitizer
 * has the memory nothing is counted: it looks for leaks itself. */
static long grown(void (*once)(struct sharer *s), struct sharer *s)
{
    for (int i = 0; i < 50; i++)
        once(s);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < TIMES; i++)
        once(s);
    return (long)(mallinfo2().uordblks - before);
}

#define EXPECT_SAME(once, s)                                                            \
    do {                                                                                \
        long bytes = grown(once, s);                                                    \
        cr_expect_lt(bytes, 50 * TIMES, "%s: %ld bytes did not go back", #once, bytes); \
    } while (0)

/* ---- Refused --------------------------------------------------------------------------------- */

static void beat_in_vain(struct sharer *s)
{
    struct fault_cell cell = { .command = 1,
                               .name = "EVALSHA",
                               .where = FAULT_SENT,
                               .what = FAULT_REPLACE,
                               .text = "-NOPERM this user has no permissions to run the command" };

    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_lt(s->verbs->beat(s->store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
}

static void say_in_vain(struct sharer *s)
{
    struct fault_cell cell = { .command = 1,
                               .name = "EVALSHA",
                               .where = FAULT_BEFORE,
                               .what = FAULT_REPLACE,
                               .text = "-NOPERM this user has no permissions to run the command" };

    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_lt(say(s, put(1, 5)), 0);
}

static int see_process(void *ctx, const struct due_process_seen *seen)
{
    (void)ctx, (void)seen;
    return 0;
}

static void see_topic_in_vain(struct sharer *s)
{
    struct fault_cell cell = { .command = 2, .where = FAULT_SENT, .what = FAULT_REPLACE };
    struct due_census_all all;

    cell.text = ":7";
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_lt(s->verbs->census(s->store, &all, NULL, NULL, soon(LONG_NS)), 0);
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_lt(s->verbs->processes(s->store, see_process, NULL, soon(LONG_NS)), 0);
}

REDIS_PROXY_TEST(share_memory, of_calls_that_are_refused_is_given_back)
{
    struct sharer s = joined_by_proxy();

    cr_expect_eq(say(&s, put(9, INT64_MAX / 2)), 0);
    EXPECT_SAME(beat_in_vain, &s);
    EXPECT_SAME(say_in_vain, &s);
    EXPECT_SAME(see_topic_in_vain, &s);
    fault_proxy_plan(proxy, NULL, 0);
    go(&s);
}

static due_store *late;
static unsigned busy;

static void open_in_vain(struct sharer *s)
{
    (void)s;
    int rc = take(late, DUE_MS(5), &info, &error);
    cr_expect_lt(rc, 0);
    busy += rc == DUE_EBUSY;
}

SHARE_TEST(share_memory, of_an_owner_who_is_kept_away_is_given_back)
{
    struct sharer s = joined();

    late = make((due_redis_options){ 0 }, NULL);
    EXPECT_SAME(open_in_vain, &s);
    cr_expect_gt(busy, 0u);
    due_redis_free(late);
    go(&s);
}

/* ---- Done ------------------------------------------------------------------------------------ */

static void move_by_id(struct sharer *s)
{
    due_change moves[] = { move(1, 5, 5), drop(3, 0) };

    moves[0].record.topic = moves[1].record.topic = NULL;
    cr_expect_eq(exchange(s, moves, 2, NULL), 0);
    cr_expect(s->results[0] == 0 && s->results[1] == DUE_ENOENT);
}

static void live(struct sharer *s)
{
    struct due_census_all all;
    struct seen seen = { .n = 0 };

    cr_expect_eq(claim(s, 9), 0);
    for (size_t n = s->n_held, i = 0; i < n; i++)
        cr_expect_eq(say(s, of_held(s, i, DUE_CHANGE_MOVE)), 0);
    cr_expect_eq(s->verbs->census(s->store, &all, NULL, NULL, soon(LONG_NS)), 0);
    cr_expect_eq(s->verbs->processes(s->store, see_process, NULL, soon(LONG_NS)), 0);
    cr_expect_eq(s->store->verbs->find(s->store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    free(seen.data);
}

static void come_and_go(struct sharer *s)
{
    struct sharer other = joined();

    (void)s;
    go(&other);
}

SHARE_TEST(share_memory, of_calls_that_are_done_is_given_back)
{
    struct sharer s = joined();

    cr_expect_eq(say(&s, put(1, 5)), 0);
    EXPECT_SAME(move_by_id, &s);
    EXPECT_SAME(live, &s);
    EXPECT_SAME(come_and_go, &s);
    go(&s);
}

/* Owned and shared by turns, with jobs of which something is written down. */
static void convert(struct sharer *s)
{
    finish(opened((due_redis_options){ 0 }));
    come_and_go(s);
}

SHARE_TEST(share_memory, of_conversions_is_given_back)
{
    due_store *owner = opened((due_redis_options){ 0 });
    char keys[20][8];

    for (uint64_t i = 0; i < 20; i++) {
        due_change c = put(i + 1, 5);

        snprintf(keys[i], sizeof keys[i], "k%d", (int)i);
        c.record.key = keys[i];
        c.record.key_len = strlen(keys[i]);
        cr_assert_eq(commit_one(owner, c, i + 1), 0);
    }
    finish(owner);
    EXPECT_SAME(convert, NULL);
}

static void write_record(struct sharer *s)
{
    struct due__scratch scratch = { 0 };
    due_change c = put(1, 5);
    size_t front;
    size_t len;

    (void)s;
    cr_expect_eq(due__scratch_record(&scratch, &c.record, &front, &len), 0);
    due__scratch_free(&scratch);
}

Test(share_memory, of_a_record_is_given_back)
{
    EXPECT_SAME(write_record, NULL);
}
