/* limiter_lab.h - what the tests of limits and groups have in common. */
#ifndef GATE_LAB_H
#define GATE_LAB_H

#include "queue/limit.h"
#include "lab/lab.h"
#include "lab/take.h"

#define OF(name) .group = (name), .group_len = sizeof(name) - 1

#define LEASE 1000

/* Everything adds up, as the inside sees it. */
#define limiter_right(lab) \
    cr_expect(due__limiters_check((lab)->q), "passes, lists or counts are wrong")

static inline due_job limiter_reserve(struct lab *lab)
{
    due_job job = { 0 };
    int rc = lab_reserve(lab, &job, LEASE);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

/* What cannot be had now is kept back. */
static inline void limiter_nothing(struct lab *lab)
{
    due_job job;

    cr_expect_eq(take_leased(lab->q, &job, LEASE, 0), DUE_EAGAIN);
}

/* At the end of a test: if nothing runs or waits, every pass is back. */
static inline void limiter_lost_nothing(struct lab *lab)
{
    limiter_right(lab);
    struct due_stats s = lab_stats(lab);
    if (s.waiting + s.leased + s.dead == 0)
        cr_expect_eq(s.passed, 0u, "%ju passes are lost", (uintmax_t)s.passed);
}

static inline void limiter_close(struct lab *lab)
{
    limiter_lost_nothing(lab);
    lab_close(lab);
}

#endif
