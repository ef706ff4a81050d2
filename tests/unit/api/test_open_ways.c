/* Which short ways a queue has by its options, and what it begins with: none of it shows in what a
 * call answers, only in what that costs. */
#include "os/counter.h"
#include "queue/queue.h"
#include "lab/lab.h"

enum { MANUAL = -1 };

struct choice {
    int clock; /* of the kernel, or MANUAL */
    enum due_proxies proxies;
    enum due_order order;
    uint32_t capacity;
    int metrics;
};

static void expect_ways(const struct choice *c)
{
    struct lab lab = lab_open(.kernel = c->clock != MANUAL,
                              .with.clock = c->clock != MANUAL ? (enum due_clock_kind)c->clock : 0,
                              .with.proxies = c->proxies, .with.order = c->order,
                              .with.capacity = c->capacity, .with.metrics = c->metrics);
    const struct due_queue *q = lab.q;
    bool steps = c->clock == DUE_CLOCK_REALTIME;
    bool plain = c->metrics == 0;
    bool direct = c->proxies != DUE_PROXIES_ALWAYS;
    bool takes = plain && direct && c->order == DUE_ORDER_DEADLINE && !steps;

    cr_expect_eq(q->shows, direct && c->order == DUE_ORDER_DEADLINE);
    cr_expect_eq(q->short_ways, plain);
    cr_expect_eq(q->short_puts, plain && c->capacity == 0);
    cr_expect_eq(q->short_takes, takes, "clock %d, proxies %d", c->clock, (int)c->proxies);
    cr_expect_eq(q->quick == q->mark, plain && direct && c->capacity == 0 && !steps);
    cr_expect_eq(q->counter.trusted,
                 takes && c->clock == DUE_CLOCK_MONOTONIC && due__counter_trusted());
    lab_close(&lab);
}

Test(open, has_each_short_way_unless_something_is_in_it, .timeout = 60)
{
    static const int clocks[] = { MANUAL, DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                  DUE_CLOCK_REALTIME };

    for (size_t clock = 0; clock < sizeof clocks / sizeof clocks[0]; clock++)
        for (int proxies = DUE_PROXIES_ADAPTIVE; proxies <= DUE_PROXIES_NEVER; proxies++)
            for (int more = 0; more < 8; more++)
                expect_ways(
                    &(struct choice){ .clock = clocks[clock],
                                      .proxies = (enum due_proxies)proxies,
                                      .capacity = more & 1 ? 5 : 0,
                                      .order = more & 2 ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE,
                                      .metrics = more >> 2 });
}
