/* What the kernel is asked for when a large part is touched: the huge pages that lie wholly in it,
 * and no others.  Each call of it is written down on its way, so that none need be there. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/flaky.h"
#include "mem/alloc.h"

#define HUGE_BYTES ((uintptr_t)2 << 20)

struct asked {
    uintptr_t from;
    size_t size;
    int advice;
};

static struct asked asked[16];
static size_t asked_n;
static int refused = -1; /* this advice is not taken; -1: all is */

/* Instead of the C library's.  The kernel may have no huge pages, nor know what it is to touch. */
int madvise(void *from, size_t size, int advice)
{
    if (asked_n < sizeof asked / sizeof *asked)
        asked[asked_n++] = (struct asked){ (uintptr_t)from, size, advice };
    if (advice == refused)
        return -1;
    return advice == MADV_DONTNEED ? (int)syscall(SYS_madvise, from, size, advice) : 0;
}

static size_t count_of(int advice)
{
    size_t n = 0;

    for (size_t i = 0; i < asked_n; i++)
        n += asked[i].advice == advice;
    return n;
}

static void expect_asked(size_t i, uintptr_t from, uintptr_t to, int advice)
{
    cr_assert_lt(i, asked_n);
    cr_expect_eq(asked[i].from, from, "call %zu begins %td bytes off", i,
                 (intptr_t)(asked[i].from - from));
    cr_expect_eq(asked[i].size, to - from, "call %zu: %zu bytes", i, asked[i].size);
    cr_expect_eq(asked[i].advice, advice);
}

static uintptr_t rounded_up(uintptr_t at)
{
    return (at + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

/* The part that begins @before bytes before a huge page and ends @behind bytes behind @pages. */
static void touch(struct due__alloc *a, uintptr_t page, size_t before, size_t pages, size_t behind)
{
    uintptr_t from = page - before;
    size_t size = before + pages * HUGE_BYTES + behind;
    size_t n = asked_n = 0;

    due__alloc_touch_large(a, (void *)from, size); // NOLINT(performance-no-int-to-ptr)
    if (pages > 0)
        expect_asked(n++, page, page + pages * HUGE_BYTES, MADV_HUGEPAGE);
    cr_assert_lt(n, asked_n);
    cr_expect_eq(asked[n].from, from);
    cr_expect_eq(asked[n++].size, size, "all of it is touched");
    if (pages > 0 && refused < 0)
        expect_asked(n++, page, page + pages * HUGE_BYTES, MADV_NOHUGEPAGE);
    cr_expect_eq(asked_n, n);
}

Test(alloc_large, asks_for_the_huge_pages_that_lie_wholly_in_it)
{
    static const size_t edges[] = { 0, DUE__PAGE, HUGE_BYTES / 2, HUGE_BYTES - DUE__PAGE };
    const size_t count = sizeof edges / sizeof *edges;
    const size_t all = 6 * HUGE_BYTES;
    struct due__alloc alloc;

    due__alloc_init(&alloc, NULL);
    unsigned char *region = due__alloc_region_raw(&alloc, all);
    cr_assert_not_null(region);
    uintptr_t page = rounded_up((uintptr_t)region) + HUGE_BYTES;
    for (size_t i = 0; i < count * count * 3; i++)
        touch(&alloc, page, edges[i % count], i / count / count, edges[i / count % count]);
    due__alloc_region_free(&alloc, region, all);
}

/* Where the kernel has none to give nothing is to be undone. */
Test(alloc_large, that_gets_none_is_touched_all_the_same)
{
    const size_t all = 4 * HUGE_BYTES;
    struct due__alloc alloc;

    due__alloc_init(&alloc, NULL);
    unsigned char *region = due__alloc_region_raw(&alloc, all);
    cr_assert_not_null(region);
    refused = MADV_HUGEPAGE;
    touch(&alloc, rounded_up((uintptr_t)region), 0, 2, 0);
    refused = -1;
    due__alloc_region_free(&alloc, region, all);
}

/* It may have them from anywhere. */
Test(alloc_large, of_a_users_memory_is_not_asked_for_in_huge_pages)
{
    const size_t all = 4 * HUGE_BYTES;
    struct flaky memory;
    struct due__alloc alloc;

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    unsigned char *region = due__alloc_region_raw(&alloc, all);
    cr_assert_not_null(region);
    asked_n = 0;
    due__alloc_touch_large(&alloc, region, all);
    cr_expect_eq(count_of(MADV_HUGEPAGE), 0u);
    cr_expect_eq(count_of(MADV_NOHUGEPAGE), 0u);
    cr_expect_eq(count_of(MADV_DONTNEED), 0u);
    due__alloc_region_free(&alloc, region, all);
}

/* Its pages are no others than those that it is told. */
Test(alloc_large, gives_back_the_part_that_it_is_told_and_says_whether_it_went)
{
    struct due__alloc alloc;

    due__alloc_init(&alloc, NULL);
    unsigned char *region = due__alloc_region_raw(&alloc, 4 * DUE__PAGE);
    cr_assert_not_null(region);
    asked_n = 0;
    cr_expect(due__alloc_give_back(&alloc, region + DUE__PAGE, 2 * DUE__PAGE));
    expect_asked(0, (uintptr_t)region + DUE__PAGE, (uintptr_t)region + 3 * DUE__PAGE,
                 MADV_DONTNEED);
    refused = MADV_DONTNEED;
    cr_expect_not(due__alloc_give_back(&alloc, region + DUE__PAGE, DUE__PAGE));
    refused = -1;
    due__alloc_region_free(&alloc, region, 4 * DUE__PAGE);
}
