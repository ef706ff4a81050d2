/* Memory by the page: as long as was asked for, aligned, zero where it should be, and given back as
 * it was taken. */
#include "lab/lab.h"

#include <sys/mman.h>

#include "mem/alloc.h"

static const size_t sizes[] = { 1,
                                DUE__PAGE - 1,
                                DUE__PAGE,
                                DUE__PAGE + 1,
                                2 * DUE__PAGE,
                                2 * DUE__PAGE + 1,
                                5 * DUE__PAGE - 7,
                                8 * DUE__PAGE };

static bool is_zero(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] != 0)
            return false;
    return true;
}

static size_t pages(size_t size)
{
    return (size + DUE__PAGE - 1) / DUE__PAGE;
}

/* A user's block has room for all pages of the region, wherever it begins. */
Test(alloc, region_of_a_users_memory_is_aligned_and_as_long_as_its_pages)
{
    struct flaky memory;
    struct due__alloc alloc;

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t whole = pages(sizes[i]) * DUE__PAGE;
        unsigned char *region = due__alloc_region(&alloc, sizes[i]);

        cr_assert_not_null(region);
        cr_expect_eq((uintptr_t)region % DUE__PAGE, 0u);
        cr_expect(is_zero(region, whole), "%zu bytes", sizes[i]);
        cr_expect_geq(atomic_load(&memory.bytes), whole + DUE__PAGE, "%zu bytes", sizes[i]);
        cr_expect_leq(atomic_load(&memory.bytes), whole + DUE__PAGE + 64, "%zu bytes", sizes[i]);
        memset(region, 1, whole);
        due__alloc_region_free(&alloc, region, sizes[i]);
        cr_assert_eq(atomic_load(&memory.live), 0u);
        cr_assert_eq(atomic_load(&memory.bad), 0u);
    }
}

/* How many of the pages from @at on are there; the one behind the last is asked for, too. */
static size_t mapped(unsigned char *at, size_t most)
{
    unsigned char there;
    size_t n = 0;

    while (n < most && mincore(at + n * DUE__PAGE, DUE__PAGE, &there) == 0)
        n++;
    return n;
}

Test(alloc, region_of_the_kernels_pages_is_whole_and_goes_back_whole)
{
    struct due__alloc alloc;

    due__alloc_init(&alloc, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *region = due__alloc_region(&alloc, sizes[i]);

        cr_assert_not_null(region);
        cr_expect_eq((uintptr_t)region % DUE__PAGE, 0u);
        cr_expect(is_zero(region, pages(sizes[i]) * DUE__PAGE));
        memset(region, 1, pages(sizes[i]) * DUE__PAGE);
        due__alloc_region_free(&alloc, region, sizes[i]);
        cr_expect_eq(mapped(region, pages(sizes[i])), 0u, "%zu bytes", sizes[i]);
    }
    due__alloc_region_free(&alloc, NULL, 1);
}

Test(alloc, part_that_goes_back_is_zero_when_it_is_used_again)
{
    struct due__alloc alloc;
    struct flaky memory;

    due__alloc_init(&alloc, NULL);
    unsigned char *region = due__alloc_region(&alloc, 3 * DUE__PAGE);
    cr_assert_not_null(region);
    memset(region, 1, 3 * DUE__PAGE);
    cr_expect(due__alloc_give_back(&alloc, region + DUE__PAGE, DUE__PAGE));
    cr_expect(is_zero(region + DUE__PAGE, DUE__PAGE));
    cr_expect_eq(region[DUE__PAGE - 1], 1);
    cr_expect_eq(region[2 * DUE__PAGE], 1);
    due__alloc_region_free(&alloc, region, 3 * DUE__PAGE);

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    region = due__alloc_region(&alloc, DUE__PAGE);
    cr_assert_not_null(region);
    cr_expect_not(due__alloc_give_back(&alloc, region, DUE__PAGE), "it is the user's");
    due__alloc_region_free(&alloc, region, DUE__PAGE);
}

Test(alloc, that_is_too_long_is_refused)
{
    struct due__alloc alloc;
    struct flaky memory;

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    cr_expect_null(due__alloc_region(&alloc, SIZE_MAX - DUE__PAGE));
    cr_expect_eq(atomic_load(&memory.calls), 0u, "what its pages take would have wrapped");
    flaky_fail_in(&memory, 0);
    cr_expect_null(due__alloc_region(&alloc, 1));
    due__alloc_init(&alloc, NULL);
    cr_expect_null(due__alloc_region(&alloc, SIZE_MAX - DUE__PAGE));
    cr_expect_null(due__alloc_region(&alloc, SIZE_MAX / 64 * 63), "the kernel has no such room");
}

Test(alloc, new_memory_is_zero_and_raw_memory_is_as_it_is)
{
    struct due__alloc alloc;
    struct flaky memory;

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    unsigned char *zeroed = due__alloc_new(&alloc, 100);
    unsigned char *raw = due__alloc_raw(&alloc, 100);
    cr_assert(zeroed != NULL && raw != NULL);
    cr_expect(is_zero(zeroed, 100));
    cr_expect_not(is_zero(raw, 100));
    due__alloc_free(&alloc, zeroed, 100);
    due__alloc_free(&alloc, raw, 100);
    due__alloc_free(&alloc, NULL, 100);
    cr_expect_eq(atomic_load(&memory.live), 0u);
    cr_expect_eq(atomic_load(&memory.bad), 0u);
    due__alloc_init(&alloc, NULL);
    zeroed = due__alloc_new(&alloc, 100);
    cr_assert_not_null(zeroed);
    cr_expect(is_zero(zeroed, 100));
    due__alloc_free(&alloc, zeroed, 100);
}

Test(alloc, touches_the_pages_that_it_is_told)
{
    struct due__alloc alloc;
    unsigned char there[4] = { 0 };

    due__alloc_init(&alloc, NULL);
    unsigned char *region = due__alloc_region(&alloc, 4 * DUE__PAGE);
    cr_assert_not_null(region);
    due__alloc_touch(region + DUE__PAGE, 2 * DUE__PAGE);
    cr_assert_eq(mincore(region, 4 * DUE__PAGE, there), 0);
    if (there[1] & 1) { /* since Linux 5.14 */
        cr_expect_eq(there[0] & 1, 0);
        cr_expect_eq(there[2] & 1, 1);
        cr_expect_eq(there[3] & 1, 0);
    }
    due__alloc_region_free(&alloc, region, 4 * DUE__PAGE);
}

/* How many bytes of the process's memory are in huge pages. */
static size_t huge_bytes(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    size_t kib = 0;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "AnonHugePages: %zu", &kib);
    if (f != NULL)
        fclose(f);
    return kib * 1024;
}

/* Does the kernel have any for who asks, at this moment? */
static bool huge_pages_there(size_t size)
{
    size_t before = huge_bytes();
    unsigned char *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(at, MAP_FAILED);
    bool asked = madvise(at, size, MADV_HUGEPAGE) == 0;
    memset(at, 1, size);
    bool there = asked && huge_bytes() > before;
    munmap(at, size);
    return there;
}

/* What is given back of one is gone, and comes again as small ones. */
Test(alloc, touches_large_parts_in_huge_pages_that_go_back_in_part)
{
    enum { LARGE = 8 << 20, PART = 256 << 10 };
    struct due__alloc alloc;
    unsigned char there[PART / DUE__PAGE];
    bool offered = huge_pages_there(LARGE);

    due__alloc_init(&alloc, NULL);
    size_t before = huge_bytes();
    unsigned char *region = due__alloc_region_raw(&alloc, LARGE);
    cr_assert_not_null(region);
    due__alloc_touch_large(&alloc, region, LARGE);
    if (offered)
        cr_expect_gt(huge_bytes(), before);
    cr_expect(is_zero(region, LARGE));
    memset(region, 1, LARGE);
    cr_assert(due__alloc_give_back(&alloc, region + LARGE / 2, PART));
    cr_assert_eq(mincore(region + LARGE / 2, PART, there), 0);
    for (size_t i = 0; i < sizeof there; i++)
        cr_expect_eq(there[i] & 1, 0);
    cr_expect(is_zero(region + LARGE / 2, PART));
    cr_expect_eq(region[LARGE / 2 - 1], 1);
    cr_expect_eq(region[LARGE / 2 + PART], 1);
    due__alloc_region_free(&alloc, region, LARGE);
}
