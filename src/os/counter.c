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
#define FIRST_NS    INT64_C(1000000)   /* a measurement takes at least so long until two agree, */
#define MEASURE_NS  INT64_C(10000000)  /* so long from then on, */
#define MEASURE_MAX INT64_C(100000000) /* and at most so long */
#define LOOK_SHARE  UINT64_C(4096)     /* of what was measured each of its looks may have taken */

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

bool due__counter_measuring(const struct due__counter *c, int64_t now_ns)
{
    return c->base_ns != 0 && now_ns - c->base_ns < (c->agreed ? MEASURE_NS : FIRST_NS);
}

/* How fast it has counted since the base, which is now here: at @count, or up to @apart before. */
static void measure(struct due__counter *c, int64_t now_ns, uint64_t count, uint64_t apart_now)
{
    int64_t ns = now_ns - c->base_ns;
    uint64_t counts = count - c->base;
    uint64_t last = c->rate;

    if (due__counter_measuring(c, now_ns))
        return;
    c->rate = 0;
    if (c->base_ns != 0 && ns <= MEASURE_MAX && counts > (uint64_t)ns / 16 &&
        counts < (uint64_t)ns * 16 && apart_now <= counts / LOOK_SHARE &&
        c->base_apart <= counts / LOOK_SHARE)
        c->rate = ((uint64_t)ns << 32) / counts;
    uint64_t apart = c->rate > last ? c->rate - last : last - c->rate;
    c->agreed = c->rate > 0 && apart <= last / 1024;
    c->base = count;
    c->base_apart = apart_now;
    c->base_ns = now_ns;
}

void due__counter_anchor(struct due__counter *c, uint64_t before, int64_t now_ns, uint64_t after)
{
    measure(c, now_ns, after, after - before);
    c->at = after;
    c->at_ns = now_ns;
    c->width = 0;
    if (!c->agreed || after - before > (APART_NS << 32) / c->rate)
        return;
    c->width = ((uint64_t)GOOD_NS << 32) / c->rate;
}
