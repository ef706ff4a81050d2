/* A queue with a store that has nothing to do, and nobody who calls it, leaves the processor to
 * others. */
#include <time.h>

#include "lab/mall.h"
#include "lab/shop.h"

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * DUE_S(1) + t.tv_nsec;
}

/* A proxy that sleeps takes thousands of times less. */
static void rests(const char *what)
{
    int64_t before = cpu_ns();

    crew_sleep(DUE_MS(400));
    cr_expect_lt(cpu_ns() - before, DUE_MS(150), "%s", what);
}

Test(stored_idle, an_owned_queue_rests, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct lab_options with = { .start_ns = 5, .with = { .proxies = (enum due_proxies)mode } };
        struct shop s = { .disk = memory_disk_new(NULL) };

        shop_begin(&s, with, NULL);
        shop_wait_loaded(&s);
        rests("it was opened");
        lab_enqueue(&s.lab, "tea", .at_ns = 100);
        rests("a job waits");
        shop_close(&s);
    }
}

/* Their proxies listen, and hear nothing. */
MALL_TEST(stored_idle, processes_that_share_a_queue_rest)
{
    struct mall m = mall_make(2);
    uint64_t before[2];

    lab_enqueue(&m.lab[0], "tea", .at_ns = 100);
    for (size_t i = 0; i < m.n; i++) {
        memory_store_until(m.store[i], MEMORY_LISTEN, 1);
        before[i] = memory_store_calls(m.store[i], MEMORY_LISTEN);
    }
    rests("a job waits");
    for (size_t i = 0; i < m.n; i++)
        cr_expect_lt(memory_store_calls(m.store[i], MEMORY_LISTEN) - before[i], 50u, "%zu", i);
    mall_close(&m);
}
