/* Where the kernel does not let all threads pass a fence, or does not any more: no lock is biased,
 * or its bias is taken away all the same. */
#include "lab/lab.h"

#include <errno.h>
#include <sys/syscall.h>

#include "lab/forbid.h"
#include "os/futex.h"
#include "queue/queue.h"

#define ALONE 1000 /* tenures in a row, more than a bias takes */

static void put_many(due_queue *q)
{
    for (int i = 0; i < ALONE; i++)
        cr_assert_eq(due_enqueue_after(q, 0, q, NULL), 0);
}

static int take_many(void *q)
{
    due_job job;

    for (int i = 0; i < ALONE; i++) {
        if (due_dequeue(q, &job, DUE_S(30)) != 0)
            return 1;
        due_job_done(&job);
    }
    return 0;
}

static void expect_all_taken(struct lab *lab)
{
    struct crew_thread other;

    crew_go(&other, take_many, lab->q);
    cr_expect_eq(crew_join(&other), 0);
    cr_expect_eq(lab_stats(lab).waiting, 0u);
}

Test(fence, that_is_forbidden_leaves_all_locks_without_a_bias, .timeout = 60)
{
    if (!forbid(SYS_membarrier, EPERM))
        cr_skip_test("no filters");
    struct lab lab = lab_open(.kernel = true);

    cr_expect_not(due__threads_fence_ready());
    put_many(lab.q);
#ifndef DUE_BELL_COND
    cr_expect_eq(lab.q->lock.owner, DUE__NO_THREAD);
#endif
    expect_all_taken(&lab);
    lab_close(&lab);
}

Test(fence, that_is_forbidden_later_is_waited_for, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    bool ready = due__threads_fence_ready();

    put_many(lab.q);
#ifndef DUE_BELL_COND
    cr_expect_eq(lab.q->lock.owner != DUE__NO_THREAD, ready);
#endif
    if (!forbid(SYS_membarrier, EPERM))
        cr_skip_test("no filters");
    expect_all_taken(&lab);
    lab_close(&lab);
}
