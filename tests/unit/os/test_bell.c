/* What one thread waits for: a bell, an alarm on another clock, and the lock beside them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "lab/crew.h"
#include "os/bell.h"
#include "os/clock.h"
#include "os/lock.h"

#define SOON_NS DUE_MS(3)

static struct due__bell alarm_on(clockid_t clock)
{
    struct due__bell b;

    cr_assert_eq(due__alarm_init(&b, clock), 0);
    return b;
}

Test(bell, remembers_a_ring_once, .timeout = 30)
{
    struct due__bell b;

    cr_assert_eq(due__bell_init(&b), 0);
    cr_expect_not(due__bell_take(&b));
    cr_expect_not(due__bell_ring(&b), "nobody slept");
    cr_expect(due__bell_wait(&b, DUE_FOREVER, false));
    cr_expect_not(due__bell_take(&b), "it is used up");
    cr_expect_not(due__bell_ring(&b), "nobody slept");
    cr_expect(due__bell_take(&b));
    cr_expect_not(due__bell_take(&b), "it is used up");
    int64_t until = due__monotonic_now() + SOON_NS;
    cr_expect_not(due__bell_wait(&b, until, true));
    cr_expect_geq(due__monotonic_now(), until);
    due__bell_destroy(&b, false);
}

/* Whatever the call before has left in errno. */
Test(bell, as_an_alarm_ends_at_its_limit, .timeout = 30)
{
    struct due__bell b = alarm_on(CLOCK_BOOTTIME);
    int64_t until = due__monotonic_now() + SOON_NS;

    errno = EINTR;
    cr_expect_not(due__alarm_wait(&b, DUE_FOREVER, until));
    cr_expect_geq(due__monotonic_now(), until);
    due__bell_destroy(&b, false);
}

Test(bell, as_an_alarm_ends_at_its_time_and_when_it_is_rung, .timeout = 30)
{
    struct due__bell b = alarm_on(CLOCK_REALTIME);
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t at = DUE_S(now.tv_sec) + now.tv_nsec + SOON_NS;
    cr_expect_not(due__alarm_wait(&b, at, DUE_FOREVER), "it was not rung");
    clock_gettime(CLOCK_REALTIME, &now);
    cr_expect_geq(DUE_S(now.tv_sec) + now.tv_nsec, at);
    due__bell_ring(&b);
    cr_expect(due__alarm_wait(&b, DUE_FOREVER, DUE_FOREVER), "it was rung before");
    cr_expect_not(due__alarm_wait(&b, DUE_FOREVER, due__monotonic_now() + SOON_NS));
    due__bell_destroy(&b, false);
}

/* Whoever has closed its standard input gets that one. */
Test(bell, as_an_alarm_may_have_the_descriptor_0, .timeout = 30)
{
    close(0);
    struct due__bell b = alarm_on(CLOCK_REALTIME);

    cr_assert_eq(b.fd, 0);
    cr_expect(due__bell_ring(&b), "it is an alarm");
    cr_expect(due__alarm_wait(&b, DUE_FOREVER, DUE_FOREVER));
    due__bell_destroy(&b, false);
    cr_expect_eq(fcntl(0, F_GETFD), -1);
}

static struct due__bell waited_for;

static int wait_for_it(void *arg)
{
    bool as_alarm = arg != NULL;

    return as_alarm ? due__alarm_wait(&waited_for, DUE_FOREVER, DUE_FOREVER)
                    : due__bell_wait(&waited_for, DUE_FOREVER, false);
}

Test(bell, wakes_whoever_sleeps, .timeout = 30)
{
    for (int as_alarm = 0; as_alarm < 2; as_alarm++) {
        struct crew_thread thread = { 0 };

        if (as_alarm)
            waited_for = alarm_on(CLOCK_REALTIME);
        else
            cr_assert_eq(due__bell_init(&waited_for), 0);
        crew_go(&thread, wait_for_it, as_alarm ? &waited_for : NULL);
        crew_until_asleep(&thread);
        cr_expect(due__bell_ring(&waited_for));
        cr_expect_eq(crew_join(&thread), 1);
        due__bell_destroy(&waited_for, false);
    }
}

/* ---- The lock ---- */

static struct due__lock lock;
static int guarded;

static int add_one(void *arg)
{
    (void)arg;
    due__lock_acquire(&lock);
    guarded++;
    due__lock_release(&lock);
    return 0;
}

Test(lock, has_one_holder_and_wakes_who_waits, .timeout = 30)
{
    struct crew_thread thread[3] = { { 0 } };

    due__lock_init(&lock);
    cr_expect(due__lock_try(&lock));
    cr_expect_not(due__lock_try(&lock));
    cr_expect(due__lock_held(&lock));
    for (int i = 0; i < 3; i++)
        crew_go(&thread[i], add_one, NULL);
    for (int i = 0; i < 3; i++)
        crew_until_asleep(&thread[i]);
    cr_expect_eq(guarded, 0);
    due__lock_release(&lock);
    for (int i = 0; i < 3; i++)
        crew_join(&thread[i]);
    cr_expect_eq(guarded, 3);
    cr_expect_not(due__lock_held(&lock));
    due__lock_destroy(&lock);
}

#ifndef DUE_BELL_COND
/* Who left out to take it has changed what others may be looking at. */
Test(lock, is_not_released_by_who_has_not_taken_it, .signal = SIGABRT)
{
    due__lock_init(&lock);
    due__lock_release(&lock);
}
#endif
