/* One queue for many processes: what is next, of all topics, wherever it was put in. */
#include "lab/mall.h"

static void expect_peek(struct lab *lab, const char *topic, int64_t deadline_ns)
{
    int64_t now = due_now(lab->q);
    due_info info = { .topic = -7 };

    cr_assert_eq(due_peek(lab->q, &info), 0);
    cr_expect_eq(info.deadline_ns, deadline_ns);
    cr_expect_str_eq(due_topic_name(lab->q, info.topic), topic);
    cr_expect_eq(info.len, 3u);
    cr_expect_eq(info.ready, deadline_ns <= now, "%d at %jd", info.ready, (intmax_t)now);
}

/* Each has named the topics in an order of its own. */
static struct mall mall_of_two(int topics[2][2])
{
    struct mall m = mall_make(2);

    for (int i = 0; i < 2; i++) {
        topics[i][i] = lab_topic(&m.lab[i], i ? "b" : "a");
        topics[i][!i] = lab_topic(&m.lab[i], i ? "a" : "b");
    }
    return m;
}

MALL_TEST(share_peek, shows_the_first_of_all_topics)
{
    static const char *const names[] = { "a", "b", "" };
    int topics[2][2];
    due_info info;
    due_job job;

    for (int first = 0; first < 3; first++) {
        struct mall m = mall_of_two(topics);

        cr_expect_eq(due_peek(m.lab[1].q, &info), DUE_EAGAIN);
        for (int i = 0; i < 3; i++) {
            int topic = i < 2 ? topics[0][i] : 0;

            lab_enqueue(&m.lab[0], "tea", .at_ns = 100 + 100 * ((i - first + 3) % 3),
                        .topic = topic);
        }
        for (int i = 0; i < 3; i++) {
            const char *name = names[(first + i) % 3];
            int64_t at = 100 + 100 * i;

            for (int k = 0; k < 2; k++)
                expect_peek(&m.lab[k], name, at);
            mall_turn_to(&m, at - 1);
            expect_peek(&m.lab[1], name, at);
            mall_turn_to(&m, at);
            expect_peek(&m.lab[1], name, at);
            mall_turn_to(&m, at + 50);
            expect_peek(&m.lab[1], name, at);
            cr_assert_eq(mall_reserve(&m, 0, &job, 1000), 0);
            cr_expect_eq(due_ack(&job), 0);
        }
        cr_expect_eq(due_peek(m.lab[1].q, &info), DUE_EAGAIN);
        mall_close(&m);
    }
}
