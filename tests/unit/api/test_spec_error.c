/* What is wrong with a spec, in words.  Those of an enqueue and of due_spec_error() are two lists:
 * thousands of specs are shown to both. */
#include "lab/lab.h"
#include "lab/shop.h"

static const due_retry bad_kind = { .kind = (enum due_retry_kind)9 };
static const due_retry bad_delay = { .kind = DUE_RETRY_FIXED, .delay_ns = -1 };
static const due_retry no_rungs = { .kind = DUE_RETRY_LADDER };
static const due_retry bad_rung = { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 1, -1 } };
static const char bytes[DUE_KEY_MAX + 2];

#define expect_named(lab, word, ...) \
    expect_word((lab), (word), &(due_spec){ DUE_SPEC_INIT, __VA_ARGS__ })

static void expect_word(struct lab *lab, const char *word, const due_spec *spec)
{
    const char *text = due_spec_error(lab->q, spec);

    cr_assert_not_null(text, "%s", word);
    cr_expect_not_null(strstr(text, word), "\"%s\" has no %s", text, word);
}

LAB_TEST(spec_error, names_the_field)
{
    struct lab lab = lab_open();

    expect_named(&lab, "flag", .flags = 2);
    expect_named(&lab, "delay_ns", .delay_ns = -1);
    expect_named(&lab, "at_ns", .at_ns = -1);
    expect_named(&lab, "both delay_ns and at_ns", .delay_ns = 1, .at_ns = 1);
    expect_named(&lab, "both delay_ns and at_ns", .delay_ns = 1, .flags = DUE_SPEC_AT);
    expect_named(&lab, "priority", .priority = 256);
    expect_named(&lab, "topic", .topic = 1);
    expect_named(&lab, "len", .len = 1);
    expect_named(&lab, "both data and ptr", .data = "", .ptr = &lab);
    expect_named(&lab, "payload", .data = "", .len = (size_t)DUE_PAYLOAD_MAX + 1);
    expect_named(&lab, "headers", .more = EXTRA(.headers_len = 1));
    expect_named(&lab, "group", .more = EXTRA(.group = bytes));
    expect_named(&lab, "ttl_ns", .more = EXTRA(.ttl_ns = -1));
    expect_named(&lab, "both ttl_ns and expires_ns", .more = EXTRA(.ttl_ns = 1, .expires_ns = 1));
    expect_named(&lab, "key_len", .more = EXTRA(.key = bytes, .key_len = DUE_KEY_MAX + 1));
    expect_named(&lab, "keep_key_ns", .more = EXTRA(.keep_key_ns = -1));
    expect_named(&lab, "on_key", .more = EXTRA(.on_key = (enum due_key_policy)4));
    expect_named(&lab, "every_ns", .more = EXTRA(.every_ns = -1));
    expect_named(&lab, "repeat", .more = EXTRA(.every_ns = 1, .repeat = (enum due_repeat)3));
    expect_named(&lab, "repeat without every_ns", .more = EXTRA(.repeat = DUE_REPEAT_ONCE));
    expect_named(&lab, "kind", .more = EXTRA(.retry = &bad_kind));
    expect_named(&lab, "delay_ns", .more = EXTRA(.retry = &bad_delay));
    expect_named(&lab, "rungs", .more = EXTRA(.retry = &no_rungs));
    expect_named(&lab, "rung_ns", .more = EXTRA(.retry = &bad_rung));
    expect_word(&lab, "DUE_SPEC_INIT", &(due_spec){ .delay_ns = 1 });
    expect_named(&lab, "DUE_EXTRA_INIT", .more = &(due_extra){ .ttl_ns = 1 });
    lab_close(&lab);
}

/* ---- Beside an enqueue ---- */

/* One of what is allowed, often, or not. */
#define DRAW(random, ...)                             \
    ((const int64_t[]){                               \
        0, 0, 0, __VA_ARGS__ })[crew_random(random) % \
                                (3 + sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))]

static due_extra draw_extra(uint64_t *random)
{
    static const due_retry good = { .kind = DUE_RETRY_FIXED };
    const due_retry *const retries[] = { NULL,      NULL,       NULL,      &good,
                                         &bad_kind, &bad_delay, &no_rungs, &bad_rung };

    return (due_extra){
        DUE_EXTRA_INIT,
        .headers = crew_random(random) % 8 == 0 ? bytes : NULL,
        .headers_len = (size_t)DRAW(random, 0, 0, 0, 0, DUE_HEADERS_MAX + 1),
        .retry = retries[crew_random(random) % 8],
        .ttl_ns = DRAW(random, 1, -1),
        .expires_ns = DRAW(random, 0, 0, 5, -1),
        .key = crew_random(random) % 8 == 0 ? bytes : NULL,
        .key_len = (size_t)DRAW(random, 0, 0, 0, 1, DUE_KEY_MAX + 1),
        .keep_key_ns = DRAW(random, 1, 1, 1, -1),
        .on_key = (enum due_key_policy)DRAW(random, 3, 3, 3, 4),
        .repeat = (enum due_repeat)DRAW(random, 0, 0, 2, 3),
        .every_ns = DRAW(random, 5, -1),
        .group = crew_random(random) % 8 == 0 ? bytes : NULL,
        .group_len = (size_t)DRAW(random, 0, 0, 0, 1, DUE_KEY_MAX + 1),
    };
}

static due_spec draw_spec(uint64_t *random, due_extra *more)
{
    *more = draw_extra(random);
    return (due_spec){ DUE_SPEC_INIT,
                       .delay_ns = DRAW(random, 1, 1, -1),
                       .at_ns = DRAW(random, 0, 0, 1, -1),
                       .data = crew_random(random) % 4 == 0 ? bytes : NULL,
                       .len = (size_t)DRAW(random, 0, 0, 1),
                       .ptr = crew_random(random) % 8 == 0 ? more : NULL,
                       .topic = (int)DRAW(random, 0, 0, 0, 1, -1),
                       .priority = (int)DRAW(random, 255, 255, 256, -1),
                       .flags = (unsigned)DRAW(random, 0, 0, 1, 2),
                       .more = crew_random(random) % 2 == 0 ? more : NULL };
}

static void compare(due_queue *q, uint64_t random)
{
    unsigned right = 0;
    unsigned wrong = 0;

    for (unsigned i = 0; i < 4000; i++) {
        due_extra more;
        due_spec s = draw_spec(&random, &more);
        const char *text = due_spec_error(q, &s);
        int rc = due_enqueue(q, &s, 0, NULL);

        cr_assert_eq(rc == DUE_EINVAL, text != NULL, "%u: %s, %s", i, due_error_name(rc),
                     text != NULL ? text : "nothing is wrong");
        right += text == NULL;
        wrong += text != NULL;
    }
    cr_expect_gt(right, 100u);
    cr_expect_gt(wrong, 100u);
}

LAB_TEST(spec_error, says_something_exactly_when_an_enqueue_refuses)
{
    struct lab lab = lab_open();

    compare(lab.q, 1);
    due_clear(lab.q, DUE_ALL_TOPICS, NULL);
    lab_close(&lab);
}

Test(spec_error, says_it_of_a_queue_with_a_store_too, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    int stack;

    cr_expect_not_null(
        strstr(due_spec_error(s.lab.q, &(due_spec){ DUE_SPEC_INIT, .ptr = &stack }), "store"));
    compare(s.lab.q, 2);
    shop_close(&s);
}
