/* What the system can refuse: threads, descriptors, pages.  Each made to fail in turn.
 *
 * This program stands between the library and the system: it has its own pthread_create(),
 * timerfd_create(), getrandom() and mmap(), which refuse on demand and otherwise pass the call on.
 */
#define _GNU_SOURCE
#include "queue/queue.h"
#include "due/workers.h"
#include "lab/shop.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct refusal {
    atomic_int calls;
    atomic_int at; /* the call to refuse, from 0; -1: none */
};

static struct refusal threads = { .at = -1 };
static struct refusal timers = { .at = -1 };
static struct refusal numbers = { .at = -1 };
static struct refusal maps = { .at = -1 };
static void (*_Atomic refuses_after)(void); /* a thread: what is waited for before, or NULL */

static bool refused(struct refusal *r)
{
    int at = atomic_load(&r->at);

    return at >= 0 && atomic_fetch_add(&r->calls, 1) == at;
}

static void refuse(struct refusal *r, int at)
{
    atomic_store(&r->calls, 0);
    atomic_store(&r->at, at);
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    create_fn *next;
    void *found = dlsym(RTLD_NEXT, "pthread_create");

    memcpy(&next, &found, sizeof next);
    if (!refused(&threads))
        return next(thread, attr, run, arg);
    void (*after)(void) = atomic_load(&refuses_after);
    if (after != NULL)
        after();
    return EAGAIN;
}

int timerfd_create(int clock, int flags)
{
    if (refused(&timers)) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_timerfd_create, clock, flags);
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    if (refused(&numbers)) {
        errno = EAGAIN;
        return -1;
    }
    return (ssize_t)syscall(SYS_getrandom, bytes, size, flags);
}

#ifndef __SANITIZE_ADDRESS__
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (refused(&maps)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
#ifdef SYS_mmap2 /* of 32 bits: it counts pages of 4 KiB */
    return (void *)syscall(SYS_mmap2, at, size, protection, flags, fd, offset / 4096);
#else
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
#endif
}
#endif

static void close_and_free(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_assert_eq(due_free(q), 0);
}

/* D6 */
LAB_TEST(refused, thread_makes_opening_fail_and_leaves_nothing_behind)
{
    unsigned before = crew_threads();

    for (int n = 0;; n++) {
        struct flaky memory;
        due_queue *q = NULL;
        due_error error = { .text = "" };

        flaky_init(&memory, FLAKY_NEVER);
        due_options options = { DUE_OPTIONS_INIT, .allocator = &memory.hooks,
                                .proxies = (enum due_proxies)lab_proxies };
        refuse(&threads, n);
        int rc = due_open(&q, &options, &error);
        refuse(&threads, -1);
        if (rc == 0) {
            static const int expected[] = { 2, 3, 0 };

            cr_expect_eq(n, expected[lab_proxies]);
            close_and_free(q);
            cr_expect_eq(atomic_load(&memory.live), 0u);
            return;
        }
        cr_assert_eq(rc, DUE_ESYS, "%s", due_error_name(rc));
        cr_assert_null(q);
        cr_expect_gt(strlen(error.text), 0u);
        cr_assert_eq(atomic_load(&memory.live), 0u, "thread %d", n);
        cr_assert_eq(crew_threads(), before, "thread %d", n);
    }
}

/* Early after the machine has started; then the clocks have to do. */
Test(refused, random_numbers_leave_each_queue_a_seed_of_its_own)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };

    for (int n = 0; n < 2; n++) { /* the tag's, and the seed's */
        due_queue *q[2];

        for (int i = 0; i < 2; i++) {
            refuse(&numbers, n);
            cr_assert_eq(due_open(&q[i], &options, NULL), 0);
            cr_expect_eq(atomic_load(&numbers.calls), 2);
            refuse(&numbers, -1);
        }
        for (int i = 0; i < 2; i++)
            cr_expect_neq(q[0]->seed[i], q[1]->seed[i]);
        cr_expect_neq(q[0]->seed[0], q[0]->seed[1]);
        cr_expect_neq(q[0]->tag, q[1]->tag);
        close_and_free(q[0]);
        close_and_free(q[1]);
    }
}

/* A disk with jobs that have all that a job can have. */
static struct memory_disk *written_disk(void)
{
    static const char large[1000];
    struct shop s = shop_make();

    for (int i = 0; i < 20; i++) {
        char key[] = { (char)('a' + i) };
        due_spec spec = { DUE_SPEC_INIT, .data = large, .len = sizeof large,
                          .more = EXTRA(.headers = "h", .headers_len = 1, .key = key, .key_len = 1,
                                        .group = "g", .group_len = 1, .every_ns = i % 2),
                          .at_ns = 1 + i };
        cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    }
    lab_close(&s.lab);
    return s.disk;
}

Test(refused, thread_leaves_nothing_behind_of_what_was_stored, .timeout = 60)
{
    struct memory_disk *disk = written_disk();
    unsigned before = crew_threads();

    for (int mode = DUE_PROXIES_ADAPTIVE; mode <= DUE_PROXIES_ALWAYS; mode++)
        for (int n = 0; n < (mode == DUE_PROXIES_ALWAYS ? 3 : 2); n++) {
            due_store *store = memory_store_new(disk);
            struct flaky memory;
            due_queue *q;

            flaky_init(&memory, FLAKY_NEVER);
            due_options options = { DUE_OPTIONS_INIT, .allocator = &memory.hooks, .store = store,
                                    .proxies = (enum due_proxies)mode };
            atomic_store(&refuses_after, crew_until_others_asleep);
            refuse(&threads, n);
            cr_assert_eq(due_open(&q, &options, NULL), DUE_ESYS);
            refuse(&threads, -1);
            atomic_store(&refuses_after, NULL);
            cr_expect_eq(atomic_load(&memory.live), 0u, "mode %d, thread %d", mode, n);
            cr_expect_eq(crew_threads(), before);
            store->verbs->free(store);
        }
    cr_expect_eq(memory_disk_jobs(disk), 20u);
    memory_disk_free(disk);
}

static void never_called(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    (void)job;
    (void)answer;
}

/* The keeper's, or a worker's: those that had begun have ended, also those that slept already, and
 * the queue can be freed. */
LAB_TEST(refused, thread_leaves_nothing_behind_of_a_pool)
{
    enum { WORKERS = 3 };

    for (int i = 0; i < 4; i++) {
        struct lab lab = lab_open(.kernel = i % 2);
        unsigned before = crew_threads();

        atomic_store(&refuses_after, i / 2 ? crew_until_others_asleep : NULL);
        for (int n = 0; n <= WORKERS; n++) {
            due_workers *w = (due_workers *)(void *)&lab;

            refuse(&threads, n);
            int rc = due_workers_start(&w, lab.q, NULL, 0, WORKERS, never_called, NULL, NULL);
            refuse(&threads, -1);
            cr_expect_eq(rc, DUE_ESYS, "thread %d: %s", n, due_error_name(rc));
            cr_expect_null(w);
            while (crew_threads() != before) /* who is joined is seen for a moment longer */
                sched_yield();
        }
        atomic_store(&refuses_after, NULL);
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
        lab_close(&lab);
    }
}

static struct {
    struct due_queue *q;
    sem_t begun; /* a handler has begun */
    sem_t go;    /* it may return */
    const due_job *job;
    atomic_bool refused; /* another thread */
} busy;

static void take(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}

static void busy_handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    busy.job = job;
    sem_post(&busy.begun);
    take(&busy.go);
    *answer = due_answer_ack();
}

static void until_busy(void)
{
    take(&busy.begun);
    atomic_store(&busy.refused, true);
}

static int start_pool(void *refused_thread)
{
    due_workers *w;

    refuse(&threads, *(const int *)refused_thread);
    int rc = due_workers_start(&w, busy.q, NULL, 0, 3, busy_handle, NULL, NULL);
    refuse(&threads, -1);
    return rc;
}

/* A job that had been begun by then is told to stop, is waited for, and its answer is heard. */
LAB_TEST(refused, thread_of_a_pool_waits_for_the_handlers_of_the_others)
{
    for (int i = 0; i < 4; i++) {
        int n = 2 + i / 2;
        struct lab lab = lab_open(.kernel = i % 2);
        struct crew_thread starter;

        busy.q = lab.q;
        sem_init(&busy.begun, 0, 0);
        sem_init(&busy.go, 0, 0);
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        atomic_store(&refuses_after, until_busy);
        atomic_store(&busy.refused, false);
        crew_go(&starter, start_pool, &n);
        while (!atomic_load(&busy.refused))
            sched_yield();
        crew_until_asleep(&starter);
        cr_expect(!atomic_load(&starter.back), "thread %d: a handler runs", n);
        cr_expect_eq(due_job_stopping(busy.job), 1);
        sem_post(&busy.go);
        cr_expect_eq(crew_join(&starter), DUE_ESYS);
        atomic_store(&refuses_after, NULL);
        cr_expect_eq(lab_stats(&lab).acked, 1u);
        cr_expect_eq(lab_stats(&lab).leased, 0u);
        lab_close(&lab);
        sem_destroy(&busy.begun);
        sem_destroy(&busy.go);
    }
}

LAB_TEST(refused, thread_leaves_a_manual_clock_free)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock,
                            .proxies = (enum due_proxies)lab_proxies };
    due_queue *q;

    for (int n = 0;; n++) {
        refuse(&threads, n);
        int rc = due_open(&q, &options, NULL);
        refuse(&threads, -1);
        cr_assert_eq(due_clock_advance(clock, 1), 0);
        if (rc == 0)
            break;
    }
    close_and_free(q);
    cr_expect_eq(due_clock_free(clock), 0);
}

LAB_TEST(refused, descriptor_makes_opening_fail_and_leaves_nothing_behind)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_BOOTTIME, DUE_CLOCK_REALTIME };
    unsigned before = crew_threads();

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct flaky memory;
        due_queue *q = NULL;

        flaky_init(&memory, FLAKY_NEVER);
        due_options options = { DUE_OPTIONS_INIT, .allocator = &memory.hooks, .clock = kinds[i],
                                .proxies = (enum due_proxies)lab_proxies };
        refuse(&timers, 0);
        int rc = due_open(&q, &options, NULL);
        refuse(&timers, -1);
        cr_assert_eq(rc, DUE_ESYS, "%s", due_error_name(rc));
        cr_expect_null(q);
        cr_expect_eq(atomic_load(&memory.live), 0u);
        cr_expect_eq(crew_threads(), before);
    }
}

/* J4 */
LAB_TEST(refused, descriptor_for_an_event_loop_can_be_asked_for_again)
{
    struct lab lab = lab_open();

    refuse(&timers, 0);
    cr_expect_eq(due_fd(lab.q), DUE_ESYS);
    refuse(&timers, -1);
    cr_expect_geq(due_fd(lab.q), 0);
    lab_close(&lab);
}

/* J4: as many descriptors as a program may have, from none on */
LAB_TEST(refused, descriptors_by_the_limit_of_the_process_are_an_error_and_no_more)
{
    struct rlimit all;
    struct rlimit few;
    int opened = 0;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    for (rlim_t n = 0; n < 24; n++) {
        due_options options = { DUE_OPTIONS_INIT, .clock = DUE_CLOCK_REALTIME,
                                .proxies = (enum due_proxies)lab_proxies };
        due_error error = { "", "" };
        due_queue *q;

        few = (struct rlimit){ .rlim_cur = n, .rlim_max = all.rlim_max };
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        int rc = due_open(&q, &options, &error);
        int fd = rc == 0 ? due_fd(q) : 0;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
        cr_assert(rc == 0 || rc == DUE_ESYS, "%s", due_error_name(rc));
        cr_assert_eq(rc == 0, error.text[0] == 0, "%s", error.text);
        cr_assert_eq(rc == 0, strstr(error.hint, "ulimit -n") == NULL, "%s", error.hint);
        cr_assert(fd >= 0 || fd == DUE_ESYS, "%s", due_error_name(fd));
        if (rc == 0) {
            close_and_free(q);
            opened++;
        }
    }
    cr_expect_gt(opened, 0);
}

LAB_TEST(refused, pages_make_opening_fail)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)lab_proxies };
    unsigned before = crew_threads();

    for (int n = 0; n < 50; n++) {
        due_queue *q;

        refuse(&maps, n);
        int rc = due_open(&q, &options, NULL);
        bool last = atomic_load(&maps.calls) <= n;
        refuse(&maps, -1);
        cr_assert(rc == 0 || rc == DUE_ENOMEM || rc == DUE_ESYS, "%s", due_error_name(rc));
        if (rc == 0)
            close_and_free(q);
        cr_assert_eq(crew_threads(), before, "map %d", n);
        if (last)
            return;
    }
}

LAB_TEST(refused, pages_make_an_enqueue_fail_and_the_queue_goes_on)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)lab_proxies };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };
    int in = 0;
    due_queue *q;
    due_job job;

    cr_assert_eq(due_open(&q, &options, NULL), 0);
    for (int i = 0; i < 50000; i++) {
        refuse(&maps, i % 2 == 0 ? 0 : 1);
        int rc = due_enqueue(q, &spec, 0, NULL);
        refuse(&maps, -1);
        cr_assert(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        if (rc != 0)
            cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
        in++;
    }
    for (int i = 0; i < in; i++) {
        cr_assert_eq(due_dequeue(q, &job, DUE_S(20)), 0);
        due_job_done(&job);
    }
    close_and_free(q);
}
