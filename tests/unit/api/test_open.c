/* Opening: what the options may be, and what they do. */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "lab/lab.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>

static void close_and_free(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_assert_eq(due_free(q), 0);
}

static void expect_opens(const due_options *options)
{
    due_error error = { .text = "", .hint = "" };
    due_queue *q = NULL;
    int rc = due_open(&q, options, &error);

    cr_assert_eq(rc, 0, "%s: %s", due_error_name(rc), error.text);
    close_and_free(q);
}

static void expect_refused(const due_options *options, int expected)
{
    due_queue *q = (due_queue *)(uintptr_t)0x1234;
    due_error error;

    memset(&error, 0, sizeof error);
    int rc = due_open(&q, options, &error);
    cr_expect_eq(rc, expected, "%s", due_error_name(rc));
    cr_expect_null(q, "due_free() of it does nothing");
    cr_expect_gt(strlen(error.text), 0u, "no text");
    cr_expect_lt(strnlen(error.text, sizeof error.text), sizeof error.text);
    cr_expect_lt(strnlen(error.hint, sizeof error.hint), sizeof error.hint);
    cr_expect_eq(due_open(&q, options, NULL), expected);
}

Test(open, needs_no_options_and_no_room_for_an_error)
{
    due_queue *q;

    cr_assert_eq(due_open(&q, NULL, NULL), 0);
    close_and_free(q);
    due_options defaults = { DUE_OPTIONS_INIT, .name = NULL };
    expect_opens(&defaults);
}

Test(open, refuses_options_without_their_size)
{
    due_options options = { .size = 0 };

    expect_refused(&options, DUE_EINVAL);
    options.size = 7;
    expect_refused(&options, DUE_EINVAL);
}

Test(open, takes_names_of_up_to_64_letters_digits_and_signs)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "a" };

    expect_opens(&options);
    options.name = "ABC.xyz_09-";
    expect_opens(&options);
    options.name = "0123456789012345678901234567890123456789012345678901234567890123";
    expect_opens(&options);
}

Test(open, refuses_other_names)
{
    static const char *const names[] = {
        "",          "with blank",
        "colon:",    "{tag}",
        "new\nline", "sl/ash",
        "\xc3\xbc",  "01234567890123456789012345678901234567890123456789012345678901234",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        due_options options = { DUE_OPTIONS_INIT, .name = names[i] };

        expect_refused(&options, DUE_EINVAL);
    }
}

Test(open, refuses_numbers_that_mean_nothing)
{
    due_options clock = { DUE_OPTIONS_INIT, .clock = (enum due_clock_kind)99 };
    due_options proxies = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)99 };
    due_options order = { DUE_OPTIONS_INIT, .order = (enum due_order)99 };
    due_options spin = { DUE_OPTIONS_INIT, .spin_ns = -1 };

    expect_refused(&clock, DUE_EINVAL);
    expect_refused(&proxies, DUE_EINVAL);
    expect_refused(&order, DUE_EINVAL);
    expect_refused(&spin, DUE_EINVAL);
}

/* Each on both sides of what there is, and the others as they should be. */
Test(open, refuses_each_option_that_is_out_of_range)
{
    const due_options wrong[] = {
        { DUE_OPTIONS_INIT, .proxies = (enum due_proxies) - 1 },
        { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)(DUE_PROXIES_NEVER + 1) },
        { DUE_OPTIONS_INIT, .order = (enum due_order) - 1 },
        { DUE_OPTIONS_INIT, .order = (enum due_order)(DUE_ORDER_PRIORITY + 1) },
        { DUE_OPTIONS_INIT, .confirm = (enum due_confirm) - 1 },
        { DUE_OPTIONS_INIT, .confirm = (enum due_confirm)(DUE_CONFIRM_ASYNC + 1) },
        { DUE_OPTIONS_INIT, .store_timeout_ns = -1 },
        { DUE_OPTIONS_INIT, .open_timeout_ns = -1 },
        { DUE_OPTIONS_INIT, .retry = { .kind = DUE_RETRY_FIXED, .delay_ns = -1 } },
        { DUE_OPTIONS_INIT, .dead_keep_ns = -1 },
        { DUE_OPTIONS_INIT, .lease_ns = -1 },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refused(&wrong[i], DUE_EINVAL);
}

Test(open, refuses_two_clocks_at_once)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .clock = DUE_CLOCK_REALTIME };

    expect_refused(&options, DUE_EINVAL);
    cr_expect_eq(due_clock_free(clock), 0);
}

Test(open, refuses_half_an_allocator)
{
    struct flaky memory;

    flaky_init(&memory, FLAKY_NEVER);
    due_allocator half = memory.hooks;
    due_options options = { DUE_OPTIONS_INIT, .allocator = &half };
    half.free = NULL;
    expect_refused(&options, DUE_EINVAL);
    half = memory.hooks;
    half.alloc = NULL;
    expect_refused(&options, DUE_EINVAL);
}

Test(open, refuses_more_jobs_than_a_queue_can_hold)
{
    due_options capacity = { DUE_OPTIONS_INIT, .capacity = DUE_JOBS_MAX + 1 };
    due_options reserve = { DUE_OPTIONS_INIT, .reserve = DUE_JOBS_MAX + 1 };

    expect_refused(&capacity, DUE_EINVAL);
    expect_refused(&reserve, DUE_EINVAL);
}

LAB_TEST(open, copies_allocator_and_name)
{
    struct flaky memory;
    char name[] = "orders";
    due_queue *q;

    flaky_init(&memory, FLAKY_NEVER);
    due_allocator hooks = memory.hooks;
    due_options options = { DUE_OPTIONS_INIT, .name = name, .allocator = &hooks,
                            .proxies = (enum due_proxies)lab_proxies };
    cr_assert_eq(due_open(&q, &options, NULL), 0);
    memset(&hooks, 0, sizeof hooks);
    memset(name, 0, sizeof name);
    memset(&options, 0xff, sizeof options);
    due_spec spec = { DUE_SPEC_INIT, .data = "bytes that take an allocation of their own, I think",
                      .len = 50 };
    cr_expect_eq(due_enqueue(q, &spec, 0, NULL), 0);
    close_and_free(q);
    cr_expect_eq(atomic_load(&memory.live), 0u);
    cr_expect_eq(atomic_load(&memory.bad), 0u);
}

/* ---- Threads ---- */

struct started {
    atomic_int count;
    atomic_int wrong; /* names that are not ours, as the kernel has them too, and signals that are
                         not blocked */
};

static void on_thread_start(void *ctx, const char *name)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGHUP, SIGCHLD, SIGPIPE };
    struct started *started = ctx;
    sigset_t blocked;

    char own[64] = "";

    if (strlen(name) != 15 || strncmp(name, "due:a-name-lo:", 14) != 0)
        atomic_fetch_add(&started->wrong, 1);
    if (pthread_getname_np(pthread_self(), own, sizeof own) != 0 || strcmp(own, name) != 0)
        atomic_fetch_add(&started->wrong, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (!sigismember(&blocked, signals[i]))
            atomic_fetch_add(&started->wrong, 1);
    atomic_fetch_add(&started->count, 1);
}

LAB_TEST(open, starts_the_threads_it_promises_and_tells_of_each)
{
    static const int threads[] = { 2, 3, 0 };
    unsigned before = crew_threads();
    struct started started = { 0 };
    due_options options = { DUE_OPTIONS_INIT, .on_thread_start = on_thread_start, .ctx = &started,
                            .name = "a-name-longer-than-a-thread-name-can-be",
                            .proxies = (enum due_proxies)lab_proxies };
    due_queue *q;

    cr_assert_eq(due_open(&q, &options, NULL), 0);
    cr_expect_eq(crew_threads() - before, (unsigned)threads[lab_proxies]);
    close_and_free(q);
    cr_expect_eq(atomic_load(&started.count), threads[lab_proxies]);
    cr_expect_eq(atomic_load(&started.wrong), 0);
    cr_expect_eq(crew_threads(), before);
}

LAB_TEST(open, leaves_the_callers_signal_mask_alone)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)lab_proxies };
    sigset_t before;
    sigset_t after;
    due_queue *q;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(due_open(&q, &options, NULL), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < SIGRTMIN; i++)
        cr_expect_eq(sigismember(&before, i), sigismember(&after, i), "signal %d", i);
    close_and_free(q);
}

LAB_TEST(open, can_be_done_many_times_over)
{
    for (int i = 0; i < 50; i++) {
        struct lab lab = lab_open();

        lab_enqueue(&lab, "job", .delay_ns = i);
        lab_close(&lab);
    }
}

/* "no global variable that makes two queues in one process feel each other" */
LAB_TEST(open, twice_gives_two_queues_that_do_not_know_each_other)
{
    struct lab one = lab_open(.with.name = "same");
    struct lab two = lab_open(.with.name = "same");

    lab_enqueue(&one, "one", .delay_ns = 0);
    cr_expect_null(lab_dequeue(&two));
    cr_expect_eq(lab_topic(&one, "a"), lab_topic(&two, "b"));
    cr_expect_eq(due_pause(two.q, 0), 0);
    cr_expect_str_eq(lab_dequeue(&one), "one");
    lab_close(&two);
    lab_enqueue(&one, "still here", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&one), "still here");
    lab_close(&one);
}

LAB_TEST(open, can_reserve_memory_ahead)
{
    struct lab lab = lab_open(.with.reserve = 20000);
    size_t calls = atomic_load(&lab.state->memory.calls);

    for (int i = 0; i < 20000; i++)
        lab_enqueue(&lab, "small", .delay_ns = 1 + i);
    cr_expect_eq(atomic_load(&lab.state->memory.calls), calls);
    lab_close(&lab);
}

static unsigned descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

LAB_TEST(open, and_free_leave_no_descriptor_behind)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };
    unsigned before = descriptors();

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kinds[i]);

        cr_expect_geq(due_fd(lab.q), 0);
        lab_close(&lab);
        cr_expect_eq(descriptors(), before, "clock %zu", i);
    }
}

/* Kilobytes of pages that a child finds empty, as the queue's mark is. */
static size_t marks(void)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    size_t size = 0;
    size_t all = 0;
    char line[512];

    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        (void)sscanf(line, "Size: %zu kB", &size);
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf") != NULL)
            all += size;
    }
    fclose(maps);
    return all;
}

/* By clocks with descriptors, too; wherever it runs out of memory. */
LAB_TEST(open, leaves_no_descriptor_and_no_page_behind_when_it_fails)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };
    unsigned before = descriptors();
    size_t pages = marks();

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        due_queue *q = NULL;

        for (size_t n = 0; q == NULL; n++) {
            struct flaky memory;

            flaky_init(&memory, n);
            due_options options = { DUE_OPTIONS_INIT, .clock = kinds[i], .reserve = 100,
                                    .proxies = (enum due_proxies)lab_proxies,
                                    .allocator = &memory.hooks };
            if (due_open(&q, &options, NULL) != 0) {
                cr_expect_eq(descriptors(), before, "clock %zu, allocation %zu", i, n);
                cr_expect_eq(marks(), pages, "clock %zu, allocation %zu", i, n);
                continue;
            }
            cr_expect_gt(n, 0u);
            close_and_free(q);
        }
        cr_expect_eq(descriptors(), before, "clock %zu", i);
        cr_expect_eq(marks(), pages, "clock %zu", i);
    }
}

static void count_thread(void *ctx, const char *name)
{
    (void)name;
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void count_discarded(void *ctx, const due_job *job)
{
    (void)job;
    atomic_fetch_add((atomic_int *)ctx, 1);
}

Test(open, a_hook_gets_its_own_ctx_or_that_of_all)
{
    static atomic_int shared, own;
    due_options options = { DUE_OPTIONS_INIT, .on_thread_start = count_thread,
                            .on_discard = count_discarded, .ctx = &shared, .discard_ctx = &own };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    due_queue *q;

    cr_assert_eq(due_open(&q, &options, NULL), 0);
    cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_assert_eq(due_free(q), 0);
    cr_expect_eq(atomic_load(&own), 1, "discarded");
    cr_expect_eq(atomic_load(&shared), 2, "threads");
}
