/* acts.c - what the threads of scenarios do. */
#include "acts.h"

#include "os/atomic.h"

static unsigned number(void *arg)
{
    return (unsigned)(uintptr_t)arg;
}

void *as_arg(unsigned n)
{
    return (void *)(uintptr_t)n;
}

void act_put_now(void *arg)
{
    lab_put(number(arg), 0, 0, 0);
}

void act_put_two(void *arg)
{
    lab_put(number(arg), 0, 0, 0);
    lab_put(number(arg) + 1, 0, 0, 0);
}

/* Job n is due n + 1 ms after the start. */
void act_put_later(void *arg)
{
    lab_put(number(arg), 0, LAB_AT(DUE_MS(1 + number(arg))), 0);
}

void act_take_now(void *arg)
{
    (void)arg;
    lab_take(0, 0);
}

void act_take_one(void *arg)
{
    (void)arg;
    lab_take(0, DUE_FOREVER);
}

void act_take_two(void *arg)
{
    (void)arg;
    lab_take(0, DUE_FOREVER);
    lab_take(0, DUE_FOREVER);
}

/* With a timeout of so many ms. */
void act_take_within(void *arg)
{
    lab_take(0, DUE_MS(number(arg)));
}

void act_take_of_within(void *arg)
{
    lab_take((int)number(arg), DUE_MS(20));
}

void act_cancel(void *arg)
{
    lab_cancel(number(arg));
}

void act_move_later(void *arg)
{
    lab_move(number(arg), LAB_AT(DUE_MS(5)));
}

void act_move_sooner(void *arg)
{
    lab_move(number(arg), LAB_AT(0));
}

/* The enqueue proxy is called in, as a caller does that has helped for long enough. */
void act_call_proxy(void *arg)
{
    (void)arg;
    due__or_seq(&lab->q->state, DUE__ACTIVE);
    due__bell_ring(&lab->q->enqueue_bell);
}
