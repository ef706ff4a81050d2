/* counter.c - when the processor's counter tells the time, and how fast it counts.
 *
 * Guards     T  the timeline lock of the queue that it belongs to
 */
#include "os/counter.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define GOOD_NS     INT64_C(25000)     /* an anchor is good for so long */
#define APART_NS    UINT64_C(1000)     /* its two looks at the counter are no farther apart */
#define MEASURE_NS  INT64_C(10000000)  /* a measurement takes at least so long, */
#define MEASURE_MAX INT64_C(100000000) /* and at most */

#if defined __x86_64__ && !defined DUE__EXPLORE

bool due__counter_trusted(void)
{
    char name[8] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    return n == 4 && memcmp(name, "tsc\n", 4) == 0;
}

#else

bool due__counter_trusted(void)
{
    return false;
}

#endif

/* How fast it has counted since the base, which is now here. */
static void measure(struct due__counter *c, int64_t now_ns, uint64_t count)
{
    int64_t ns = now_ns - c->base_ns;
    uint64_t counts = count - c->base;
    uint64_t last = c->rate;

    if (c->base_ns != 0 && ns < MEASURE_NS)
        return;
    c->rate = 0;
    if (c->base_ns != 0 && ns <= MEASURE_MAX && counts > (uint64_t)ns / 16 &&
        counts < (uint64_t)ns * 16)
        c->rate = ((uint64_t)ns << 32) / counts;
    uint64_t apart = c->rate > last ? c->rate - last : last - c->rate;
    c->agreed = c->rate > 0 && apart <= last / 1024;
    c->base = count;
    c->base_ns = now_ns;
}

void due__counter_anchor(struct due__counter *c, uint64_t before, int64_t now_ns, uint64_t after)
{
    measure(c, now_ns, after);
    c->at = after;
    c->at_ns = now_ns;
    c->width = 0;
    if (!c->agreed || after - before > (APART_NS << 32) / c->rate)
        return;
    c->width = ((uint64_t)GOOD_NS << 32) / c->rate;
}
