/* counter.h - the time between two looks at the kernel's clock, by the processor's counter.
 *
 * A look at the kernel's clock takes 22 ns, one at the counter 10.  Where the kernel itself tells
 * the time by the counter, it tells us what has passed since we looked at both (the anchor).  What
 * we say so is not later than CLOCK_MONOTONIC, and at most DUE__COUNTER_LAG_NS earlier, unless
 * somebody changes the clock's rate by over a thousandth at that moment; so it must not tell
 * whether a job is due:
 *
 *   - the counter of an anchor is read after the clock, and soon after it, or it is none: who lost
 *     the processor in between would lag for as long
 *   - it is good for 25 us, so a counter that jumps, or begins anew, is found at once
 *   - the rate is a 512th low, four times what the kernel may be slewing the clock by
 *   - the rate is measured for a millisecond, and every 10 ms once it is used: if two measurements
 *     in a row agree within a thousandth, so it is not where the clock stands still while the
 *     counter goes on; neither is off by more than a 4096th for what a look took
 *
 * Guards     I  set at open      T  the timeline lock of the queue that it belongs to
 *
 * Not here   The clock itself: clock.c.
 */
#ifndef DUE__COUNTER_H
#define DUE__COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#define DUE__COUNTER_LAG_NS INT64_C(2000)

struct due__counter {
    bool trusted;   /* I */
    uint64_t at;    /* T  the anchor: the counter, and */
    int64_t at_ns;  /* T  the clock as it was looked at last, whether that made an anchor or not */
    uint64_t width; /* T  the anchor is good for so many counts; 0: there is none */
    uint64_t rate;  /* T  nanoseconds of 2^32 counts, as last measured; 0: not yet */
    bool agreed;    /* T  the last two measurements did */
    uint64_t base;  /* T  from here the next is made: the counter, */
    uint64_t base_apart; /* T  which may have been looked at so much after */
    int64_t base_ns;     /* T  the clock; 0: not yet */
};

/* Does the kernel tell the time by the counter? */
bool due__counter_trusted(void);

/* Is a measurement under way that does not end at @now_ns? */
bool due__counter_measuring(const struct due__counter *c, int64_t now_ns);

/* The clock showed @now_ns, between two looks at the counter. */
void due__counter_anchor(struct due__counter *c, uint64_t before, int64_t now_ns, uint64_t after);

/* Not earlier in the program than what stands before it. */
static inline uint64_t due__counter_read_after(void)
{
#if defined __x86_64__ && !defined DUE__EXPLORE
    __builtin_ia32_lfence();
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* Perhaps earlier. */
static inline uint64_t due__counter_read(void)
{
#if defined __x86_64__ && !defined DUE__EXPLORE
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* The time when the counter is @count.  False: that cannot be told. */
static inline bool due__counter_ns(const struct due__counter *c, uint64_t count, int64_t *ns)
{
    uint64_t passed = count - c->at;

    if (passed >= c->width)
        return false;
    *ns = c->at_ns + (int64_t)(passed * (c->rate - c->rate / 512) >> 32);
    return true;
}

#endif
