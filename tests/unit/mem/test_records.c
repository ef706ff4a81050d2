/* Records beside the slab: a segment at a time, by place and back. */
#include "lab/lab.h"

#include "mem/records.h"

#define SIZE 48u

struct shelf {
    struct flaky memory;
    struct due__alloc alloc;
    struct due__records records;
};

static void shelf_open(struct shelf *s)
{
    flaky_init(&s->memory, FLAKY_NEVER);
    due__alloc_init(&s->alloc, &s->memory.hooks);
    due__records_init(&s->records, SIZE);
}

static void shelf_close(struct shelf *s)
{
    due__records_destroy(&s->records, &s->alloc);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    cr_expect_eq(atomic_load(&s->memory.bad), 0u);
}

/* The place whose record it is, in whichever segment. */
Test(records, are_found_by_place_and_tell_their_place)
{
    static const uint32_t places[] = { 0,
                                       1,
                                       DUE__SPAN_JOBS - 1,
                                       DUE__SPAN_JOBS,
                                       2 * DUE__SPAN_JOBS - 1,
                                       2 * DUE__SPAN_JOBS,
                                       4 * DUE__SPAN_JOBS - 1 };
    struct shelf s;

    shelf_open(&s);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        cr_assert(due__records_make(&s.records, &s.alloc, places[i]));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const unsigned char *record = due__records_at(&s.records, places[i]);

        cr_expect_eq(due__records_number(&s.records, record), places[i]);
        cr_expect_eq(due__records_number(&s.records, record + SIZE - 1), places[i]);
        cr_expect_eq(record[0], 0);
        cr_expect_eq(record[SIZE - 1], 0);
    }
    shelf_close(&s);
}

Test(records, that_are_not_there_have_no_place)
{
    static const unsigned char elsewhere[SIZE];
    struct shelf s;

    shelf_open(&s);
    cr_expect_eq(due__records_number(&s.records, elsewhere), DUE__NO_JOB);
    cr_assert(due__records_make(&s.records, &s.alloc, DUE__SPAN_JOBS));
    const unsigned char *first = due__records_at(&s.records, DUE__SPAN_JOBS);
    cr_expect_eq(due__records_number(&s.records, first), DUE__SPAN_JOBS);
    cr_expect_eq(due__records_number(&s.records, first - 1), DUE__NO_JOB);
    cr_expect_eq(due__records_number(&s.records, first + (size_t)SIZE * DUE__SPAN_JOBS),
                 DUE__NO_JOB);
    shelf_close(&s);
}

Test(records, of_a_segment_are_made_once_and_of_others_not)
{
    struct shelf s;

    shelf_open(&s);
    cr_assert(due__records_make(&s.records, &s.alloc, DUE__SPAN_JOBS + 5));
    cr_expect_geq(atomic_load(&s.memory.bytes), (size_t)SIZE * DUE__SPAN_JOBS);
    cr_expect_lt(atomic_load(&s.memory.bytes), (size_t)SIZE * DUE__SPAN_JOBS * 3 / 2);
    cr_expect_not(due__records_has(&s.records, DUE__SPAN_JOBS - 1));
    cr_expect(due__records_has(&s.records, DUE__SPAN_JOBS));
    cr_expect(due__records_has(&s.records, 2 * DUE__SPAN_JOBS - 1));
    cr_expect_not(due__records_has(&s.records, 2 * DUE__SPAN_JOBS));
    cr_assert(due__records_make(&s.records, &s.alloc, DUE__SPAN_JOBS));
    cr_expect_eq(atomic_load(&s.memory.live), 1u);
    shelf_close(&s);
}

Test(records, are_reserved_for_as_many_places_as_are_asked_for)
{
    struct shelf s;

    shelf_open(&s);
    cr_assert(due__records_reserve(&s.records, &s.alloc, DUE__SPAN_JOBS));
    cr_expect(due__records_has(&s.records, 0));
    cr_expect_not(due__records_has(&s.records, DUE__SPAN_JOBS));
    cr_assert(due__records_reserve(&s.records, &s.alloc, 2 * DUE__SPAN_JOBS + 1));
    cr_expect(due__records_has(&s.records, DUE__SPAN_JOBS));
    cr_expect(due__records_has(&s.records, 2 * DUE__SPAN_JOBS));
    cr_expect_not(due__records_has(&s.records, 4 * DUE__SPAN_JOBS));
    shelf_close(&s);
}

Test(records, are_refused_where_there_is_no_memory)
{
    struct shelf s;

    shelf_open(&s);
    s.memory.fail_at = 1;
    cr_expect_not(due__records_reserve(&s.records, &s.alloc, DUE__SPAN_JOBS + 1));
    cr_expect(due__records_has(&s.records, 0));
    cr_expect_not(due__records_has(&s.records, DUE__SPAN_JOBS));
    s.memory.fail_at = 2;
    cr_expect_not(due__records_make(&s.records, &s.alloc, DUE__SPAN_JOBS));
    s.memory.fail_at = FLAKY_NEVER;
    cr_expect(due__records_make(&s.records, &s.alloc, DUE__SPAN_JOBS));
    shelf_close(&s);
}
