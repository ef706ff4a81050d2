/* One queue for many processes: what is claimed for those who wait, where nothing is to be claimed
 * ahead of them, is for those who wait. */
#include "api/ack.h"
#include "due/metrics.h"
#include "lab/mall.h"

#define WAIT  4
#define MANY  200 /* all of them were claimed once */
#define TIMES 20

/* Who is about to leave with his job may be taken for one who waits still: once. */
MALL_TEST(share_need, one_job_is_claimed_for_each_who_waits)
{
    for (int n = 0; n < TIMES; n++) {
        struct mall m = mall_make(2);
        struct due_queue_census there;
        struct crew_call c[WAIT];

        for (int i = 0; i < WAIT; i++) {
            crew_call_reserve(&c[i], m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
            crew_call_asleep(&c[i]);
        }
        for (int i = 0; i < MANY; i++)
            lab_enqueue(&m.lab[0], "tea", .at_ns = 10);
        mall_turn_to(&m, 10);
        for (int i = 0; i < WAIT; i++)
            cr_assert_eq(crew_call_answer(&c[i]), 0);
        cr_assert_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &there, DUE_S(20)), 0);
        cr_expect_leq(there.leased, 2u * WAIT, "%d", (int)there.leased);
        for (int i = 0; i < WAIT; i++)
            cr_expect_eq(due_ack(&c[i].job), 0);
        mall_close(&m);
    }
}
