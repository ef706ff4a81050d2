/* test_redis_settings.c - what holds back topics, as a store of an owned queue shows it. */
#include "lab/redis/redis_proxy_lab.h"

#define TOPICS 2500 /* more than two pages of them */

static char names[TOPICS][16];

struct told {
    unsigned times[TOPICS];
    unsigned others; /* shown as neither */
    unsigned wrong;
    int answer; /* to each, if it is not 0 */
};

static int paused_of(int i)
{
    return i % 3 == 0;
}

static int64_t held_of(int i)
{
    return i % 3 == 1 ? 0 : i + 1;
}

static int hear(void *ctx, const char *topic, int paused, int64_t held_max)
{
    struct told *told = ctx;
    int i = 0;

    if (told->answer != 0)
        return told->answer;
    if (paused == 0 && held_max == 0) {
        told->others++;
        return 0;
    }
    if (sscanf(topic, "t%d", &i) != 1 || i < 0 || i >= TOPICS || paused != paused_of(i) ||
        held_max != held_of(i))
        told->wrong++;
    else
        told->times[i]++;
    return 0;
}

/* Of three topics one is only limited, one neither, one both; the next number. */
static uint64_t hold_back(due_store *store, int n)
{
    uint64_t number = 1;
    due_change changes[100];

    for (int i = 0; i < n; number++) {
        size_t k = 0;

        for (; k < 100 && i < n; k++, i++) {
            snprintf(names[i], sizeof names[i], "t%d", i);
            changes[k] = (due_change){ .kind = DUE_CHANGE_TOPIC,
                                       .paused = paused_of(i),
                                       .held_max = held_of(i),
                                       .record = { .topic = names[i] } };
        }
        cr_assert_eq(commit(store, changes, k, number), 0);
    }
    return number;
}

static void expect_told(const struct told *told, int n)
{
    cr_expect_eq(told->wrong, 0u);
    for (int i = 0; i < n; i++)
        cr_expect_eq(told->times[i], paused_of(i) || held_of(i) > 0, "%d: %u times", i,
                     told->times[i]);
}

/* And they are by who opens the queue after that. */
REDIS_TEST(redis_settings, of_all_topics_are_shown_once)
{
    static const int many[] = { 0, 1, 999, 1000, 1001, TOPICS };

    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        due_store *store = opened((due_redis_options){ 0 });

        hold_back(store, many[i]);
        for (int times = 0; times < 2; times++) {
            struct told told = { .wrong = 0 };

            cr_expect_eq(store->verbs->topics(store, hear, &told, soon(LONG_NS)), 0);
            expect_told(&told, many[i]);
            finish(store);
            store = opened((due_redis_options){ 0 });
        }
        finish(store);
        ASK("FLUSHALL");
    }
}

struct one {
    unsigned n;
    int paused;
    int64_t held_max;
};

static int hear_one(void *ctx, const char *topic, int paused, int64_t held_max)
{
    struct one *one = ctx;

    cr_expect_str_eq(topic, "t1");
    *one = (struct one){ .n = one->n + 1, .paused = paused, .held_max = held_max };
    return 0;
}

/* Paused: 1, and nothing else; a limit is a number; what is neither holds nothing back. */
REDIS_TEST(redis_settings, that_make_no_sense_hold_nothing_back)
{
    static const char *const none[] = { "",    "0",    "1",     " ",     "1 ",  " 1",   "x 1",
                                        "1 x", "-1 1", "1 1 1", "2 0",   "0 0", "1  1", "1 -1",
                                        "01x", "1\n1", "a b",   "0x1 1", "+1 1" };
    static const struct {
        const char *text;
        int paused;
        int64_t held_max;
    } some[] = { { "1 0", 1, 0 },
                 { "0 4", 0, 4 },
                 { "1 4", 1, 4 },
                 { "2 4", 0, 4 },
                 { "0 9223372036854775807", 0, INT64_MAX },
                 { "0 9223372036854775808", 0, INT64_MAX } };
    due_store *store = opened((due_redis_options){ 0 });

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct told told = { .wrong = 0 };

        ASK("HSET", "due:{q}:topics", "t1", none[i]);
        cr_expect_eq(store->verbs->topics(store, hear, &told, soon(LONG_NS)), 0);
        cr_expect_eq(told.others, 1u, "'%s'", none[i]);
    }
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct one one = { .n = 0 };

        ASK("HSET", "due:{q}:topics", "t1", some[i].text);
        cr_expect_eq(store->verbs->topics(store, hear_one, &one, soon(LONG_NS)), 0);
        cr_expect_eq(one.n, 1u, "'%s'", some[i].text);
        cr_expect_eq(one.paused, some[i].paused, "'%s'", some[i].text);
        cr_expect_eq(one.held_max, some[i].held_max, "'%s'", some[i].text);
    }
    finish(store);
}

/* What ends the call is what is answered, and the next one begins anew. */
REDIS_PROXY_TEST(redis_settings, are_shown_anew_after_a_call_that_was_ended)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct told *told = calloc(1, sizeof *told);
    const struct fault_cell cut = {
        .command = 2, .name = "HMGET", .where = FAULT_SENT, .what = FAULT_CLOSE
    };

    hold_back(store, TOPICS);
    told->answer = DUE_ENOMEM;
    cr_expect_eq(store->verbs->topics(store, hear, told, soon(LONG_NS)), DUE_ENOMEM);
    told->answer = 0;
    fault_proxy_plan(proxy, &cut, 1);
    cr_expect_eq(store->verbs->topics(store, hear, told, soon(LONG_NS)), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_eq(told->wrong, 0u);
    for (int i = 0; i < TOPICS; i++)
        cr_expect_geq(told->times[i], (unsigned)(paused_of(i) || held_of(i) > 0), "%d", i);
    free(told);
    finish(store);
}

/* By whoever has put something else there: it is told, once, and nothing else is lost by it. */
REDIS_TEST(redis_settings, that_cannot_be_read_are_said_to_be_so)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct told told = { .wrong = 0 };

    ASK("SET", "due:{q}:topics", "no hash");
    logged[0] = '\0';
    cr_expect_eq(store->verbs->topics(store, hear, &told, soon(LONG_NS)), DUE_ECORRUPT);
    cr_expect_not_null(strstr(logged, "due:{q}:topics"), "%s", logged);
    ASK("DEL", "due:{q}:topics");
    cr_expect_eq(store->verbs->topics(store, hear, &told, soon(LONG_NS)), 0);
    finish(store);
}
