/* test_slot_key.c - numbers of 128 bits: by halves, and as the compiler has them.
 *
 * Each is held against the same in longhand, bit by bit, and where the compiler has such numbers
 * both are computed here, whichever the library takes.
 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "lab/crew.h"
#include "mem/slot.h"

#define BITS 128u

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;
#endif

/* ---- In longhand: bit 0 is the lowest ---- */

struct longhand {
    unsigned char bit[BITS];
};

static struct longhand spelled(struct due__halves a)
{
    struct longhand l;

    for (unsigned i = 0; i < 64; i++) {
        l.bit[i] = (unsigned char)(a.lo >> i & 1);
        l.bit[64 + i] = (unsigned char)(a.hi >> i & 1);
    }
    return l;
}

static struct due__halves read_back(const struct longhand *l)
{
    struct due__halves a = { 0, 0 };

    for (unsigned i = 0; i < 64; i++) {
        a.lo |= (uint64_t)l->bit[i] << i;
        a.hi |= (uint64_t)l->bit[64 + i] << i;
    }
    return a;
}

/* Plus; or minus, which is plus the other one's complement and one. */
static struct due__halves sum(struct due__halves a, struct due__halves b, bool minus)
{
    struct longhand x = spelled(a);
    struct longhand y = spelled(b);
    unsigned carry = minus;

    for (unsigned i = 0; i < BITS; i++) {
        unsigned s = x.bit[i] + (minus ? 1u - y.bit[i] : y.bit[i]) + carry;

        x.bit[i] = (unsigned char)(s & 1);
        carry = s >> 1;
    }
    return read_back(&x);
}

static struct due__halves shifted(struct due__halves a, unsigned n, bool up)
{
    struct longhand x = spelled(a);
    struct longhand y = { { 0 } };

    for (unsigned i = 0; i < BITS - n; i++)
        y.bit[up ? i + n : i] = x.bit[up ? i : i + n];
    return read_back(&y);
}

/* Less than 0: @a comes before. */
static int order(struct due__halves a, struct due__halves b)
{
    struct longhand x = spelled(a);
    struct longhand y = spelled(b);

    for (unsigned i = BITS; i-- > 0;)
        if (x.bit[i] != y.bit[i])
            return x.bit[i] - y.bit[i];
    return 0;
}

/* ---- Both forms ---- */

static bool equal(struct due__halves a, struct due__halves b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

static due__key key_of(struct due__halves a)
{
    return due__key_of(a.hi, a.lo);
}

static bool means(due__key key, struct due__halves a)
{
    return due__key_high(key) == a.hi && due__key_low(key) == a.lo;
}

#define CHECK(what)                                                                  \
    cr_assert(what, "%016llx %016llx and %016llx %016llx", (unsigned long long)a.hi, \
              (unsigned long long)a.lo, (unsigned long long)b.hi, (unsigned long long)b.lo)

static void check_pair(struct due__halves a, struct due__halves b)
{
    struct due__halves plus = sum(a, b, false);
    struct due__halves minus = sum(a, b, true);

    CHECK(equal(due__halves_plus(a, b), plus) && means(due__key_plus(key_of(a), key_of(b)), plus));
    CHECK(equal(due__halves_minus(a, b), minus) &&
          means(due__key_minus(key_of(a), key_of(b)), minus));
    CHECK(due__halves_before(a, b) == (order(a, b) < 0) &&
          due__key_before(key_of(a), key_of(b)) == (order(a, b) < 0));
    CHECK(due__halves_same(a, b) == (order(a, b) == 0) &&
          due__key_same(key_of(a), key_of(b)) == (order(a, b) == 0));
    CHECK(means(due__key_next(key_of(a)), sum(a, (struct due__halves){ 0, 1 }, false)));
#ifdef __SIZEOF_INT128__
    wide one = (wide)a.hi << 64 | a.lo;
    wide other = (wide)b.hi << 64 | b.lo;
    struct due__halves p = due__halves_plus(a, b);
    struct due__halves m = due__halves_minus(a, b);

    CHECK((uint64_t)((one + other) >> 64) == p.hi && (uint64_t)(one + other) == p.lo);
    CHECK((uint64_t)((one - other) >> 64) == m.hi && (uint64_t)(one - other) == m.lo);
    CHECK(due__halves_before(a, b) == (one < other));
    CHECK(due__halves_same(a, b) == (one == other));
#endif
}

static void check_shifts(struct due__halves a)
{
    for (unsigned n = 0; n < BITS; n++) {
        struct due__halves b = { 0, n };
        struct due__halves up = shifted(a, n, true);
        struct due__halves down = shifted(a, n, false);

        CHECK(equal(due__halves_up(a, n), up) && means(due__key_up(key_of(a), n), up));
        CHECK(equal(due__halves_down(a, n), down) && means(due__key_down(key_of(a), n), down));
#ifdef __SIZEOF_INT128__
        wide one = (wide)a.hi << 64 | a.lo;

        CHECK((uint64_t)(one << n >> 64) == up.hi && (uint64_t)(one << n) == up.lo);
        CHECK((uint64_t)(one >> n >> 64) == down.hi && (uint64_t)(one >> n) == down.lo);
#endif
    }
}

/* ---- Tests ---- */

Test(slot_key, computes_at_every_edge)
{
    static const uint64_t edges[] = { 0,
                                      1,
                                      2,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX };
    size_t n = sizeof edges / sizeof edges[0];

    for (size_t i = 0; i < n * n; i++) {
        struct due__halves a = { edges[i / n], edges[i % n] };

        check_shifts(a);
        for (size_t j = 0; j < n * n; j++)
            check_pair(a, (struct due__halves){ edges[j / n], edges[j % n] });
    }
}

/* Any number, also one whose halves are short, or that shares a half with the one before it. */
static struct due__halves any(uint64_t *random, struct due__halves before)
{
    struct due__halves a = { crew_random(random), crew_random(random) };
    uint64_t how = crew_random(random);

    a.hi = how & 1 ? before.hi : a.hi >> (how >> 8 & 63);
    a.lo = how & 2 ? before.lo : a.lo >> (how >> 16 & 63);
    return a;
}

Test(slot_key, computes_with_any_numbers)
{
    uint64_t random = 41;
    struct due__halves a = { 0, 0 };

    for (int i = 0; i < 20000; i++) {
        struct due__halves b = any(&random, a);

        check_pair(a, b);
        if (i % 20 == 0)
            check_shifts(b);
        a = b;
    }
}

Test(slot_key, of_a_slot_is_its_halves_and_comes_back)
{
    struct due__slot s = due__slot_make(INT64_MAX - 5, 3, DUE__ARRIVAL_MAX, DUE__JOB_MAX - 1);
    due__key key = due__slot_key(s);

    cr_expect_eq(due__key_high(key), s.hi);
    cr_expect_eq(due__key_low(key), s.lo);
    struct due__slot back = due__slot_of(key);
    cr_expect_eq(back.hi, s.hi);
    cr_expect_eq(back.lo, s.lo);
}
