/* test_redis_format.c - what is sent for a batch: each kind of change, in each state of the store.
 *
 * What is expected stands here command by command, as docs/redis-layout.md says what the keys hold.
 * An id is shown as its sequence, the writer as W, bytes that are no text as ~.
 */
#include <ctype.h>

#include "redis/link/link_inside.h"
#include "lab/redis/redis_store_lab.h"

#define OLD 100 /* sequences up to here were put before */

static char written[16384];

static bool is(const char *word, const char *at, size_t len)
{
    return len == strlen(word) && memcmp(word, at, len) == 0;
}

static void show(const struct due__redis *s, const char *at, size_t len)
{
    char writer[24];
    static const char prefix[] = "due:{q}:";
    size_t end = strlen(written);
    size_t room = sizeof written - end;
    bool text = true;

    for (size_t i = 0; i < len; i++)
        text = text && isgraph((unsigned char)at[i]);
    if (len > sizeof prefix - 1 && memcmp(at, prefix, sizeof prefix - 1) == 0) {
        at += sizeof prefix - 1;
        len -= sizeof prefix - 1;
    }
    snprintf(writer, sizeof writer, "%llu", (unsigned long long)s->writer);
    if (is(writer, at, len))
        snprintf(written + end, room, " W");
    else if (is(s->fence, at, len))
        snprintf(written + end, room, " FENCE");
    else if (len == DUE_STORE_ID_BYTES && !text)
        snprintf(written + end, room, " #%d", at[13]);
    else
        snprintf(written + end, room, " %.*s", text ? (int)len : 1, text ? at : "~");
}

/* The commands in the link's buffer, a line each; then it is forgotten. */
static const char *output(due_store *store)
{
    struct due__link *link = inside(store)->link;
    const char *at = link->output.at;
    const char *end = at + link->output.len;

    written[0] = '\0';
    while (at < end) {
        char *next;
        cr_assert_eq(*at, '*');
        long n = strtol(at + 1, &next, 10);
        for (at = next + 2; n > 0; n--) {
            cr_assert_eq(*at, '$');
            size_t len = (size_t)strtol(at + 1, &next, 10);
            show(inside(store), next + 2, len);
            at = next + 2 + len + 2;
        }
        strcat(written, "\n");
    }
    due__link_forget(link);
    return written;
}

static due_change of(due_change c, const char *topic, const char *key)
{
    c.record.topic = topic;
    c.record.key = key;
    c.record.key_len = key != NULL ? strlen(key) : 0;
    return c;
}

static due_change bury(uint64_t sequence, int64_t died_ns)
{
    due_change c = dead(sequence, died_ns);

    c.kind = DUE_CHANGE_BURY;
    return c;
}

static due_change was_dead(due_change c)
{
    c.was_dead = 1;
    return c;
}

static due_change keeps(due_change c, int64_t until_ns)
{
    c.key_kept_ns = until_ns;
    return c;
}

static due_change retried(due_change c)
{
    c.record.attempts = 1;
    return c;
}

/* Opened, with a job of the sequence OLD. */
static due_store *begun(void)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(store, put(OLD, 1), 1), 0);
    return store;
}

static const char *format(due_store *store, const due_change *changes, size_t n)
{
    cr_assert_eq(due__format_batch(inside(store), changes, n, 2), 0);
    return output(store);
}

#define ALL    16
#define MOVES  7
#define LEAVES 10 /* from here on all leave */

static void all(due_change *c)
{
    const due_change them[ALL] = {
        of(put(101, 1000), "a", NULL),
        of(put(1, 1001), "a", NULL),
        of(retried(put(102, 5)), "b", "new"),
        of(put(2, 6), "b", "old"),
        of(dead(3, 7000), "a", NULL),
        of(dead(103, 8000), "b", "dead"),
        of(move(4, 5000, 9000), "a", NULL),
        of(move(5, 9000, 9000), "b", NULL),
        of(was_dead(move(6, 9000, 9000)), "a", NULL),
        of(bury(7, 9000), "b", NULL),
        of(drop(8, 1), "a", NULL),
        of(was_dead(drop(9, 1)), "c", NULL),
        of(drop(10, 1), "a", "freed"),
        of(keeps(drop(11, 1), 50000), "b", "kept"),
        of(keeps((due_change){ .kind = DUE_CHANGE_KEEP, .record.id = id_of(0, 12) }, 60000), NULL,
           "more"),
        of((due_change){ .kind = DUE_CHANGE_FORGET, .record.id = id_of(0, 13) }, NULL, "less"),
    };

    memcpy(c, them, sizeof them);
    c[3].was_kept = 1;
}

/* What all of them say, as it is done once everything is known. */
#define ALL_SAID                                            \
    " HDEL k freed less\n"                                  \
    " ZREM kx old less\n"                                   \
    " HSET j #101 ~ #1 ~ #102 ~ #2 ~ #3 ~ #103 ~\n"         \
    " HSET a #102 ~ #3 ~ #103 ~ #4 ~ #5 ~ #6 ~ #7 ~\n"      \
    " ZADD dead 7 #3 8 #103 9 #7\n"                         \
    " ZADD kx 50 kept 60 more\n"                            \
    " HSET k new #102 old #2 dead #103 kept #11 more #12\n" \
    " HSETNX topics a 0\n"                                  \
    " ZADD t:a 1 #101 2 #1 9 #4 9 #6\n"                     \
    " HSETNX topics b 0\n"                                  \
    " ZADD t:b 1 #102 1 #2 9 #5\n"                          \
    " ZREM t:a #3 #8 #10\n"                                 \
    " ZREM t:b #7 #11\n"                                    \
    " ZREM dead #6 #9\n"                                    \
    " HDEL j #8 #9 #10 #11\n"

#define END " HSET writers W 2\n EXEC\n WATCH fence writers\n GET fence\n"

REDIS_TEST(redis_format, of_new_jobs_is_a_record_and_a_place)
{
    due_store *store = begun();
    due_change c[ALL];

    all(c);
    cr_expect_str_eq(format(store, c, 2), " MULTI\n"
                                          " HSET j #101 ~ #1 ~\n"
                                          " HSETNX topics a 0\n"
                                          " ZADD t:a 1 #101 2 #1\n" END);
    finish(store);
}

/* Until all was read, a job may stand where the queue does not know of it. */
REDIS_TEST(redis_format, of_each_change_is_what_it_does)
{
    due_store *store = begun();
    due_change c[ALL];

    all(c);
    cr_expect_str_eq(format(store, c, ALL), " MULTI\n" ALL_SAID END);
    cr_expect(inside(store)->has_dead, "what was written is known from now on");
    cr_expect(inside(store)->has_entries);
    cr_expect_eq(inside(store)->sequence_high, 103u);
    finish(store);
}

/* An attempt that is counted leaves the job where it is. */
REDIS_TEST(redis_format, of_a_job_that_stays_is_its_entry_alone)
{
    due_store *store = begun();
    struct due__redis *s = inside(store);
    due_change c[ALL];

    all(c);
    s->read_once = true;
    cr_expect_str_eq(format(store, c + MOVES, 1), " MULTI\n HSET a #5 ~\n" END);
    bool *unlike[] = { &s->lossy, &s->unsure, &s->read_once };
    for (size_t i = 0; i < 3; i++) {
        *unlike[i] = !*unlike[i];
        cr_expect_not_null(strstr(format(store, c + MOVES, 1), " ZADD t:b 9 #5\n"), "%zu", i);
        *unlike[i] = !*unlike[i];
    }
    c[MOVES].was_ns -= 1000;
    cr_expect_not_null(strstr(format(store, c + MOVES, 1), " ZADD t:b 9 #5\n"));
    finish(store);
}

/* Entries and the dead are taken back only where there may be some. */
REDIS_TEST(redis_format, of_a_job_that_may_be_there_takes_back_what_it_had)
{
    due_store *store = begun();
    due_change c[ALL];

    all(c);
    inside(store)->has_entries = inside(store)->has_dead = true;
    cr_expect_str_eq(format(store, c, 4), " MULTI\n"
                                          " ZREM kx old\n"
                                          " HSET j #101 ~ #1 ~ #102 ~ #2 ~\n"
                                          " HSET a #102 ~\n"
                                          " HSET k new #102 old #2\n"
                                          " HSETNX topics a 0\n"
                                          " ZADD t:a 1 #101 2 #1\n"
                                          " HSETNX topics b 0\n"
                                          " ZADD t:b 1 #102 1 #2\n"
                                          " ZREM dead #1 #2\n"
                                          " HDEL a #1 #2\n" END);
    finish(store);
}

REDIS_TEST(redis_format, after_a_loss_takes_jobs_out_of_wherever_they_may_be)
{
    due_store *store = begun();
    struct due__redis *s = inside(store);
    due_change c[ALL];

    all(c);
    s->lossy = s->has_dead = s->has_entries = s->read_once = true;
    cr_expect_str_eq(format(store, c, ALL), " MULTI\n"
                                            " HDEL k freed less\n"
                                            " ZREM kx new old dead freed less\n"
                                            " HSET j #101 ~ #1 ~ #102 ~ #2 ~ #3 ~ #103 ~\n"
                                            " HSET a #102 ~ #3 ~ #103 ~ #4 ~ #5 ~ #6 ~ #7 ~\n"
                                            " ZADD dead 7 #3 8 #103 9 #7\n"
                                            " ZADD kx 50 kept 60 more\n"
                                            " HSET k new #102 old #2 dead #103 kept #11 more #12\n"
                                            " HSETNX topics a 0\n"
                                            " ZADD t:a 1 #101 2 #1 9 #4 9 #6\n"
                                            " HSETNX topics b 0\n"
                                            " ZADD t:b 1 #102 1 #2 9 #5\n"
                                            " ZREM t:c #9\n"
                                            " ZREM t:a #3 #8 #10\n"
                                            " ZREM t:b #7 #11\n"
                                            " ZREM dead #1 #2 #6 #8 #9 #10 #11\n"
                                            " HDEL j #8 #9 #10 #11\n"
                                            " HDEL a #1 #2 #8 #9 #10 #11\n" END);
    finish(store);
}

/* All that changes something first, so that the log has it whatever the server remembers; and the
 * jobs never without their record: torn_log.c. */
REDIS_TEST(redis_format, while_unsure_says_all_as_if_it_were_not_so)
{
    due_store *store = begun();
    due_change c[ALL];

    all(c);
    inside(store)->unsure = inside(store)->has_entries = inside(store)->read_once = true;
    cr_expect_str_eq(format(store, c, ALL),
                     " MULTI\n"
                     " ZADD t:a 0 #3 0 #8 0 #10\n"
                     " ZREM t:a #3 #8 #10\n"
                     " ZREM t:a #101 #1 #4 #6\n"
                     " ZADD t:b 0 #7 0 #11\n"
                     " ZREM t:b #7 #11\n"
                     " ZREM t:b #102 #2 #5\n"
                     " ZADD dead 0 #101 0 #1 0 #102 0 #2 0 #8 0 #9 0 #10 0 #11\n"
                     " ZREM dead #101 #1 #102 #2 #8 #9 #10 #11\n"
                     " ZREM dead #3 #103 #7\n"
                     " ZREM kx kept more\n"
                     " ZADD kx 0 old 0 less\n"
                     " HSET a #1 ~ #2 ~\n" ALL_SAID " HSET a #8 ~ #9 ~ #10 ~ #11 ~\n"
                     " HDEL a #1 #2 #8 #9 #10 #11\n" END);
    finish(store);
}

/* How often jobs and keys are named. */
static size_t names(const char *text)
{
    static const char *const named[] = {
        " #", " new", " old", " kept", " more", " freed", " less"
    };
    size_t n = 0;

    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        for (const char *at = text; (at = strstr(at, named[i])) != NULL; at++)
            n++;
    return n;
}

REDIS_TEST(redis_format, of_many_changes_says_what_it_says_of_each_alone)
{
    due_store *store = begun();
    due_change c[ALL];
    size_t alone = 0;

    all(c);
    inside(store)->unsure = inside(store)->lossy = true;
    inside(store)->has_entries = inside(store)->has_dead = true;
    for (size_t i = 0; i < ALL; i++)
        alone += names(format(store, c + i, 1));
    cr_expect_eq(names(format(store, c, ALL)), alone);
    cr_expect_gt(alone, 2 * ALL);
    finish(store);
}

/* Members with the number of their zset; then keys, with whose they are and until when. */
REDIS_TEST(redis_format, of_removals_can_be_a_script)
{
    due_store *store = begun();
    due_change c[ALL];

    all(c);
    cr_assert_eq(due__format_script(inside(store), c + LEAVES, ALL - LEAVES, 2), 0);
    cr_expect_str_eq(output(store), " EVAL ~ 9 fence writers j a k kx dead t:a t:b FENCE W 2 4"
                                    " 7 #9 8 #8 8 #10 9 #11"
                                    " freed #10  kept #11 50 more #12 60 less #13 \n"
                                    " WATCH fence writers\n GET fence\n");
    cr_expect_eq(inside(store)->statuses, 0u);
    finish(store);
}

REDIS_TEST(redis_format, of_the_number_alone_is_no_more_than_that)
{
    due_store *store = begun();

    due__format_number(inside(store), 2);
    cr_expect_str_eq(output(store), " MULTI\n" END);
    finish(store);
}

/* Of many entries one is long, so that the server makes a table of them. */
REDIS_TEST(redis_format, of_many_entries_has_a_long_one)
{
    due_store *store = begun();
    due_change c[32];

    for (uint64_t i = 0; i < 32; i++)
        c[i] = retried(put(i + 1, 1));
    cr_expect_null(strstr(format(store, c, 31), DUE__REDIS_TABLE));
    cr_expect_not_null(strstr(format(store, c, 32), " HSET a table ~ #1 ~ #2 ~"));
    finish(store);
}

/* However many topics a queue has, each is met once. */
REDIS_TEST(redis_format, knows_each_of_many_topics_by_its_name)
{
    enum { TOPICS = 300 };
    due_store *store = begun();
    size_t before = inside(store)->topics.count;
    const struct due__redis_topic *met[TOPICS];
    char name[8];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TOPICS; i++) {
            int len = snprintf(name, sizeof name, "%d", i);
            const struct due__redis_topic *t = due__redis_topic(inside(store), name, (size_t)len);

            cr_assert_not_null(t);
            cr_assert(round == 0 || t == met[i], "%d", i);
            met[i] = t;
        }
    }
    cr_expect_eq(inside(store)->topics.count, before + TOPICS);
    finish(store);
}
