/* The slab of jobs by itself: who has which place, in which use, and which pages go back. */
#include "lab/lab.h"

#include <sys/mman.h>

#include "mem/slab.h"

enum { FIRST = DUE__SPAN_JOBS, ALL = 2 * FIRST };

struct shelf {
    struct flaky memory;
    struct due__alloc alloc;
    struct due__slab slab;
    uint32_t place[ALL]; /* that were taken */
    size_t taken;
};

/* On memory that is counted, or on the kernel's pages. */
static struct shelf *shelf_open(bool counted)
{
    struct shelf *s = NULL;

    cr_assert_eq(posix_memalign((void **)&s, 128, sizeof *s), 0);
    flaky_init(&s->memory, FLAKY_NEVER);
    due__alloc_init(&s->alloc, counted ? &s->memory.hooks : NULL);
    due__slab_init(&s->slab, &s->alloc);
    s->taken = 0;
    return s;
}

static void shelf_close(struct shelf *s)
{
    due__slab_destroy(&s->slab);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    cr_expect_eq(atomic_load(&s->memory.bad), 0u);
    free(s);
}

/* A segment of @places.  False: no memory. */
static bool shelf_add(struct shelf *s, uint32_t places)
{
    void *segment = due__slab_segment(&s->slab, places);

    if (segment != NULL)
        due__slab_add(&s->slab, places, segment);
    return segment != NULL;
}

static void shelf_grow(struct shelf *s)
{
    cr_assert(shelf_add(s, due__slab_next_places(&s->slab)));
}

static uint32_t use_of(struct shelf *s, uint32_t place)
{
    return due__word_generation(due__job_at(&s->slab, place)->word);
}

/* Up to @n places, each as its taker makes it; how many. */
static size_t shelf_take(struct shelf *s, size_t n)
{
    size_t before = s->taken;

    while (s->taken < before + n) {
        size_t left = before + n - s->taken;
        uint32_t *place = s->place + s->taken;
        size_t got = due__slab_take(&s->slab, place, left < 64 ? left : 64);

        if (got == 0)
            break;
        for (size_t i = 0; i < got; i++)
            due__word_begin(&due__job_at(&s->slab, place[i])->word, use_of(s, place[i]), 0,
                            DUE__CLAIMED, 0);
        s->taken += got;
    }
    return s->taken - before;
}

static void shelf_give_all(struct shelf *s)
{
    while (s->taken > 0)
        due__slab_give(&s->slab, s->place[--s->taken]);
}

static void expect_each_once(struct shelf *s, uint32_t use)
{
    static bool seen[ALL];

    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < s->taken; i++) {
        cr_assert_lt(s->place[i], (uint32_t)ALL);
        cr_assert_not(seen[s->place[i]], "place %u twice", s->place[i]);
        seen[s->place[i]] = true;
        cr_assert_eq(use_of(s, s->place[i]), use, "use %u", use_of(s, s->place[i]));
    }
}

/* How many of the @n places from @first on have pages. */
static size_t resident(struct shelf *s, uint32_t first, size_t n)
{
    unsigned char page[FIRST * sizeof(struct due__job) / 4096];
    size_t there = 0;

    cr_assert_eq(mincore(due__job_at(&s->slab, first), n * sizeof(struct due__job), page), 0);
    for (size_t i = 0; i < n * sizeof(struct due__job) / 4096; i++)
        there += page[i] & 1;
    return there * (4096 / sizeof(struct due__job));
}

Test(slab, gives_each_place_to_one)
{
    struct shelf *s = shelf_open(true);

    cr_expect_eq(shelf_take(s, 1), 0u, "there is none yet");
    cr_expect_eq(due__slab_end(&s->slab), 0u);
    shelf_grow(s);
    cr_expect_eq(due__slab_end(&s->slab), (uint32_t)FIRST);
    cr_expect_eq(shelf_take(s, ALL), (size_t)FIRST);
    shelf_grow(s);
    cr_expect_eq(due__slab_end(&s->slab), (uint32_t)ALL);
    cr_expect_eq(shelf_take(s, ALL), (size_t)FIRST);
    expect_each_once(s, 1);
    shelf_give_all(s);
    cr_expect_eq(shelf_take(s, ALL), (size_t)ALL);
    expect_each_once(s, 2);
    shelf_close(s);
}

Test(slab, gives_its_first_places_first)
{
    struct shelf *s = shelf_open(true);

    shelf_grow(s);
    cr_assert_eq(shelf_take(s, 200), 200u);
    for (size_t i = 0; i < s->taken; i++)
        cr_expect_lt(s->place[i], 200u + DUE__MAGAZINE);
    shelf_close(s);
}

Test(slab, gives_no_more_than_are_asked_for_and_counts_them)
{
    struct shelf *s = shelf_open(true);
    struct due__shard *mine = due__shard_mine(&s->slab);

    shelf_grow(s);
    cr_expect_eq(shelf_take(s, 3), 3u);
    cr_expect_eq(mine->enqueued, 3u);
    due__slab_untake(&s->slab, s->place[--s->taken]);
    cr_expect_eq(mine->refused, 1u);
    cr_expect_eq(mine->count, DUE__MAGAZINE / 2 - 2);
    shelf_close(s);
}

Test(slab, doubles_from_the_third_segment_on)
{
    struct shelf *s = shelf_open(true);

    cr_expect_eq(due__slab_next_places(&s->slab), (uint32_t)FIRST);
    shelf_grow(s);
    uint64_t first = due__slab_bytes(&s->slab);
    cr_expect_eq(first, FIRST * sizeof(struct due__job) + sizeof(struct due__span));
    cr_expect_eq(due__slab_next_places(&s->slab), (uint32_t)FIRST);
    shelf_grow(s);
    cr_expect_eq(due__slab_next_places(&s->slab), (uint32_t)ALL);
    cr_expect_eq(due__slab_bytes(&s->slab), 2 * first);
    shelf_grow(s);
    cr_expect_eq(due__slab_bytes(&s->slab), 4 * first);
    cr_expect_eq(due__slab_end(&s->slab), 2 * (uint32_t)ALL);
    shelf_close(s);
}

Test(slab, that_somebody_else_has_grown_is_left_as_it_is)
{
    struct shelf *s = shelf_open(true);

    shelf_grow(s);
    shelf_grow(s);
    cr_expect(shelf_add(s, FIRST));
    cr_expect_eq(due__slab_end(&s->slab), (uint32_t)ALL);
    flaky_fail_in(&s->memory, 0);
    cr_expect_not(shelf_add(s, ALL));
    cr_expect_eq(due__slab_end(&s->slab), (uint32_t)ALL);
    shelf_close(s);
}

/* As many bytes as addresses of 32 bits have, and a little more: that must not become a little. */
Test(slab, takes_no_segment_that_has_more_bytes_than_there_are_addresses)
{
    struct shelf *s = shelf_open(true);

    s->memory.fail_on = true;
    s->memory.fail_at = 0;
    cr_expect_null(due__slab_segment(&s->slab, UINT32_C(1) << 26));
    cr_expect_eq(atomic_load(&s->memory.calls), sizeof(size_t) > 4 ? 1u : 0u);
    shelf_close(s);
}

Test(slab, tells_the_number_of_each_of_its_jobs)
{
    static const uint32_t places[] = { 0, 1, FIRST - 1, FIRST, ALL - 1, ALL, 2 * ALL - 1 };
    static const struct due__job elsewhere;
    struct shelf *s = shelf_open(true);

    for (int i = 0; i < 3; i++)
        shelf_grow(s);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        cr_expect_eq(due__job_number(&s->slab, due__job_at(&s->slab, places[i])), places[i]);
    cr_expect_eq(due__job_number(&s->slab, &elsewhere), DUE__NO_JOB);
    for (uint32_t k = 0; k < 3; k++) {
        const struct due__job *base = due__job_at(&s->slab, due__segment_first(k));

        cr_expect_eq(due__job_number(&s->slab, base + due__segment_places(k)), DUE__NO_JOB);
    }
    shelf_close(s);
}

/* A place whose pages went back must not come with a use that somebody may still have in mind. */
Test(slab, gives_pages_of_idle_spans_back_and_remembers_their_last_use)
{
    struct shelf *s = shelf_open(false);

    shelf_grow(s);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(shelf_take(s, FIRST), (size_t)FIRST);
        shelf_give_all(s);
    }
    cr_expect_eq(resident(s, 0, FIRST), (size_t)FIRST);
    due__slab_trim(&s->slab, 0, false);
    cr_expect_eq(resident(s, 0, FIRST), (size_t)FIRST, "a magazine has some of them");
    due__slab_trim(&s->slab, 0, true);
    cr_expect_eq(s->slab.idle, 0u);
    cr_expect_eq(resident(s, 0, FIRST), 0u);
    cr_assert_eq(shelf_take(s, ALL), (size_t)FIRST);
    expect_each_once(s, 5); /* uses 1 to 3 were had, and 4 was to come */
    shelf_give_all(s);
    shelf_close(s);
}

Test(slab, keeps_as_many_idle_spans_as_it_is_told)
{
    struct shelf *s = shelf_open(false);

    shelf_grow(s);
    shelf_grow(s);
    cr_assert_eq(shelf_take(s, ALL), (size_t)ALL);
    shelf_give_all(s);
    due__slab_trim(&s->slab, 2, true);
    cr_expect_eq(s->slab.idle, 2u);
    cr_expect_eq(resident(s, 0, FIRST) + resident(s, FIRST, FIRST), (size_t)ALL);
    due__slab_trim(&s->slab, 1, true);
    cr_expect_eq(s->slab.idle, 1u);
    cr_expect_eq(resident(s, 0, FIRST) + resident(s, FIRST, FIRST), (size_t)FIRST);
    cr_assert_eq(shelf_take(s, 1), 1u);
    cr_expect_eq(s->slab.idle, 0u, "warm pages are used first");
    due__slab_give(&s->slab, s->place[--s->taken]);
    cr_assert_eq(shelf_take(s, ALL + 1), (size_t)ALL);
    shelf_close(s);
}

/* With a user's allocator no page can go back. */
Test(slab, whose_pages_cannot_go_back_uses_its_places_again)
{
    struct shelf *s = shelf_open(true);

    shelf_grow(s);
    cr_assert_eq(shelf_take(s, FIRST), (size_t)FIRST);
    shelf_give_all(s);
    due__slab_trim(&s->slab, 0, true);
    cr_expect_eq(s->slab.idle, 0u);
    cr_assert_eq(shelf_take(s, ALL), (size_t)FIRST);
    expect_each_once(s, 2);
    shelf_close(s);
}

Test(slab, touches_the_memory_that_will_be_taken_first)
{
    struct shelf *s = shelf_open(false);

    shelf_grow(s);
    shelf_grow(s);
    due__slab_touch(&s->slab, 1);
    cr_expect_eq(resident(s, 0, FIRST) + resident(s, FIRST, FIRST), (size_t)FIRST);
    uint32_t first = resident(s, 0, FIRST) > 0 ? 0 : FIRST;
    cr_assert_eq(shelf_take(s, FIRST), (size_t)FIRST);
    for (size_t i = 0; i < s->taken; i++)
        cr_assert_eq(s->place[i] / FIRST, first / FIRST);
    shelf_close(s);
}

Test(slab, touches_as_much_as_it_is_told)
{
    struct shelf *s = shelf_open(false);

    shelf_grow(s);
    shelf_grow(s);
    due__slab_touch(&s->slab, FIRST);
    cr_expect_eq(resident(s, 0, FIRST) + resident(s, FIRST, FIRST), (size_t)FIRST);
    due__slab_touch(&s->slab, FIRST + 1);
    cr_expect_eq(resident(s, 0, FIRST) + resident(s, FIRST, FIRST), (size_t)ALL);
    shelf_close(s);
}

Test(slab, lets_nobody_wait_for_a_shard_while_another_is_free)
{
    struct shelf *s = shelf_open(true);
    struct due__shard *mine = due__shard_mine(&s->slab);
    size_t at = (size_t)(mine - s->slab.shard);

    for (size_t free = 0; free < DUE__SHARDS; free++) {
        for (size_t i = 0; i < DUE__SHARDS; i++) {
            if (i != free)
                due__lock_acquire(&s->slab.shard[i].lock);
        }
        struct due__shard *got = due__shard_enter(&s->slab);
        cr_expect_eq(got, &s->slab.shard[free], "from %zu", at);
        due__shard_leave(got);
        for (size_t i = 0; i < DUE__SHARDS; i++) {
            if (i != free)
                due__lock_release(&s->slab.shard[i].lock);
        }
    }
    shelf_close(s);
}

/* A place has 2^32 uses, and none of them twice. */
Test(slab, retires_a_place_after_its_last_use)
{
    struct shelf *s = shelf_open(true);

    shelf_grow(s);
    cr_assert_eq(shelf_take(s, FIRST), (size_t)FIRST);
    due__job_at(&s->slab, s->place[7])->word = due__word(UINT32_MAX, 0, DUE__CLAIMED);
    shelf_give_all(s);
    cr_expect_eq(shelf_take(s, ALL), (size_t)FIRST - 1);
    shelf_close(s);
}

static int shard_of(void *arg)
{
    (void)arg;
    return (int)due__thread_shard();
}

Test(slab, spreads_threads_over_all_shards)
{
    unsigned seen = 0;

    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct crew_thread thread;

        crew_go(&thread, shard_of, NULL);
        seen |= 1u << crew_join(&thread);
    }
    cr_expect_eq(seen, (1u << DUE__SHARDS) - 1);
}
