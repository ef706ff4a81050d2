/* What is done to the slab's depot, and to payloads that are kept, is done under their locks: not a
 * moment before and not a moment after. */
#include "lab/lab.h"

#include "lab/knock.h"
#include "mem/payload.h"
#include "mem/slab.h"

enum { PLACES = DUE__SPAN_JOBS };

struct shelf {
    struct due__alloc alloc;
    struct due__slab slab;
    struct due__shard *shard;   /* that the call works in, */
    uint32_t thread;            /* by this number */
    uint32_t place[2 * PLACES]; /* that were taken */
    uint32_t taken;
    uint32_t count; /* in the shard before the call */
    size_t bytes;   /* likewise */
    size_t told;
    void *memory;
};

static struct shelf *shelf_open(void)
{
    struct shelf *s = NULL;

    cr_assert_eq(posix_memalign((void **)&s, 128, sizeof *s), 0);
    due__alloc_init(&s->alloc, NULL);
    due__slab_init(&s->slab, &s->alloc);
    s->thread = due__thread_shard() + 1;
    s->shard = &s->slab.shard[s->thread % DUE__SHARDS];
    s->taken = 0;
    due__slab_add(&s->slab, PLACES, due__slab_segment(&s->slab, PLACES));
    return s;
}

static void shelf_close(struct shelf *s)
{
    due__slab_destroy(&s->slab);
    free(s);
}

/* ---- The depot ---- */

static void take(void *arg)
{
    struct shelf *s = arg;

    due__thread_be(s->thread);
    s->taken += (uint32_t)due__slab_take(&s->slab, s->place + s->taken, 1);
}

/* A shard that has none gets so many at once. */
static enum knock_far is_taken(void *arg)
{
    const struct shelf *s = arg;
    uint32_t left = s->slab.spans[0]->fresh;

    return left == 0 ? KNOCK_NOTHING : left == DUE__SUPPLY ? KNOCK_ALL : KNOCK_PART;
}

Test(mem_locked, places_leave_the_depot_under_its_lock, .timeout = 30)
{
    struct shelf *s = shelf_open();

    KNOCK_IS(knock(&s->slab.depot, take, is_taken, s), KNOCK_UNDER);
    cr_expect_eq(s->taken, 1u);
    cr_expect_eq(s->shard->count, DUE__SUPPLY - 1);
    shelf_close(s);
}

/* This thread as one of that shard: it fills the magazine. */
static void fill_magazine(struct shelf *s)
{
    uint32_t me = due__thread_number;

    due__thread_be(s->thread);
    while (s->taken < DUE__MAGAZINE + 1)
        s->taken += (uint32_t)due__slab_take(&s->slab, s->place + s->taken, 1);
    while (s->shard->count < DUE__MAGAZINE)
        due__slab_untake(&s->slab, s->place[--s->taken]);
    due__thread_be(me);
}

static void put_one(void *arg)
{
    struct shelf *s = arg;

    due__thread_be(s->thread);
    due__slab_untake(&s->slab, s->place[--s->taken]);
}

static enum knock_far is_spilled(void *arg)
{
    const struct shelf *s = arg;
    uint32_t n = s->slab.spans[0]->free_count;

    return n == s->count ? KNOCK_NOTHING : n == s->count + DUE__SUPPLY ? KNOCK_ALL : KNOCK_PART;
}

Test(mem_locked, places_come_back_to_the_depot_under_its_lock, .timeout = 30)
{
    struct shelf *s = shelf_open();

    fill_magazine(s);
    s->count = s->slab.spans[0]->free_count;
    KNOCK_IS(knock(&s->slab.depot, put_one, is_spilled, s), KNOCK_UNDER);
    cr_expect_eq(s->shard->count, DUE__MAGAZINE - DUE__SUPPLY + 1);
    shelf_close(s);
}

static void trim_all(void *arg)
{
    struct shelf *s = arg;

    due__slab_trim(&s->slab, 0, true);
}

static enum knock_far is_emptied(void *arg)
{
    const struct shelf *s = arg;
    uint32_t n = s->slab.spans[0]->free_count;
    bool given = n == s->count + DUE__MAGAZINE;

    if (n == s->count && s->shard->count == DUE__MAGAZINE) /* in the order of locks */
        return due__lock_held(&((struct shelf *)arg)->shard->lock) ? KNOCK_NOTHING : KNOCK_PART;
    return given && s->shard->count == 0 ? KNOCK_ALL : KNOCK_PART;
}

/* The lock is taken for each shard in turn. */
Test(mem_locked, a_trim_empties_a_shard_under_the_lock_of_the_depot_and_its_own, .timeout = 30)
{
    struct shelf *s = shelf_open();

    fill_magazine(s);
    s->count = s->slab.spans[0]->free_count;
    KNOCK_IS(knock_nth(&s->slab.depot, s->thread % DUE__SHARDS + 1, trim_all, is_emptied, s),
             KNOCK_UNDER);
    shelf_close(s);
    s = shelf_open();
    fill_magazine(s);
    s->count = s->slab.spans[0]->free_count;
    KNOCK_IS(knock(&s->shard->lock, trim_all, is_emptied, s), KNOCK_UNDER);
    shelf_close(s);
}

static void add(void *arg)
{
    struct shelf *s = arg;

    due__slab_add(&s->slab, due__segment_places(1), s->memory);
}

static enum knock_far is_added(void *arg)
{
    const struct shelf *s = arg;
    bool known = s->slab.segments == 2;
    bool ends = s->slab.end == due__segment_first(1) + due__segment_places(1);

    if (known && ends && s->slab.segment[1] != NULL && s->slab.region[1] == s->memory)
        return KNOCK_ALL;
    return known || ends || s->slab.segment[1] != NULL || s->slab.region[1] != NULL ? KNOCK_PART
                                                                                    : KNOCK_NOTHING;
}

Test(mem_locked, a_segment_is_added_under_the_lock_of_the_depot, .timeout = 30)
{
    struct shelf *s = shelf_open();

    s->memory = due__slab_segment(&s->slab, due__segment_places(1));
    cr_assert_not_null(s->memory);
    KNOCK_IS(knock(&s->slab.depot, add, is_added, s), KNOCK_UNDER);
    cr_expect(due__slab_has(&s->slab, due__segment_first(1)));
    shelf_close(s);
}

/* All that are left. */
static void take_last(void *arg)
{
    struct shelf *s = arg;

    due__thread_be(s->thread);
    due__shard_refill(&s->slab, s->shard);
}

static enum knock_far is_bare(void *arg)
{
    const struct shelf *s = arg;
    bool bare = s->slab.bare != 0;

    if (s->slab.spans[0]->fresh == PLACES && bare && s->slab.lists[1] == UINT32_MAX)
        return KNOCK_ALL;
    return s->slab.spans[0]->fresh < PLACES && !bare ? KNOCK_NOTHING : KNOCK_PART;
}

Test(mem_locked, the_depot_says_under_its_lock_that_it_has_none, .timeout = 30)
{
    struct shelf *s = shelf_open();

    while (s->slab.spans[0]->fresh < PLACES - DUE__SUPPLY) {
        due__shard_refill(&s->slab, s->shard);
        s->shard->count = 0;
    }
    KNOCK_IS(knock(&s->slab.depot, take_last, is_bare, s), KNOCK_UNDER);
    shelf_close(s);
}

static enum knock_far is_fresh(void *arg)
{
    const struct shelf *s = arg;

    return s->slab.lists[0] == 0 && s->slab.idle == 0 ? KNOCK_ALL : KNOCK_NOTHING;
}

/* First it is taken out of its list; then its pages go, without the lock. */
Test(mem_locked, a_span_whose_pages_have_gone_is_in_a_list_again_under_the_lock, .timeout = 30)
{
    unsigned under = 0;

    for (unsigned n = 1; n <= DUE__SHARDS + 4; n++) {
        struct shelf *s = shelf_open();

        take(s);
        s->place[0] = 0;
        due__slab_untake(&s->slab, s->place[--s->taken]);
        enum knock how = knock_nth(&s->slab.depot, n, trim_all, is_fresh, s);
        under += how == KNOCK_UNDER || how == KNOCK_BLIND;
        shelf_close(s);
    }
    if (KNOCKS)
        cr_expect_eq(under, 1u);
}

/* ---- A shard ---- */

/* All but the call's own are entered by others, so that it has to wait for that. */
static void enter_others(struct shelf *s, bool enter)
{
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &s->slab.shard[i];

        if (it != s->shard && enter)
            due__lock_acquire(&it->lock);
        else if (it != s->shard)
            due__lock_release(&it->lock);
    }
}

static enum knock_far is_untaken(void *arg)
{
    const struct shelf *s = arg;
    bool counted = s->shard->refused == 1;
    bool back = s->shard->count == s->count + 1;

    if (counted && back)
        return KNOCK_ALL;
    return s->shard->refused == 0 && s->shard->count == s->count ? KNOCK_NOTHING : KNOCK_PART;
}

static enum knock_far is_given(void *arg)
{
    const struct shelf *s = arg;

    return s->shard->count == s->count ? KNOCK_NOTHING : KNOCK_ALL;
}

static void give_one(void *arg)
{
    struct shelf *s = arg;

    due__thread_be(s->thread);
    due__slab_give(&s->slab, s->place[--s->taken]);
}

Test(mem_locked, a_place_comes_back_to_a_shard_under_its_lock, .timeout = 30)
{
    for (int untake = 0; untake < 2; untake++) {
        struct shelf *s = shelf_open();
        uint32_t me = due__thread_number;

        due__thread_be(s->thread);
        take(s);
        due__thread_be(me);
        s->count = s->shard->count;
        if (!untake)
            due__job_at(&s->slab, s->place[0])->word =
                due__word_as(due__job_at(&s->slab, s->place[0])->word, DUE__CLAIMED);
        enter_others(s, true);
        KNOCK_IS(
            knock(&s->shard->lock, untake ? put_one : give_one, untake ? is_untaken : is_given, s),
            KNOCK_UNDER);
        enter_others(s, false);
        shelf_close(s);
    }
}

/* ---- Payloads ---- */

/* @n of 4,000 bytes, all at a time and then none. */
static void rise_and_fall(struct due__payloads *p, size_t n)
{
    static void *all[4000];

    for (size_t i = 0; i < n; i++)
        all[i] = due__payload_new(p, 4000);
    for (size_t i = 0; i < n; i++)
        due__payload_free(p, all[i], 4000);
}

static void trim_payloads(void *arg)
{
    struct shelf *s = arg;

    due__payloads_trim(&s->slab.payloads, 0, true);
}

static enum knock_far depot_trimmed(void *arg)
{
    const struct shelf *s = arg;
    size_t bytes = s->slab.payloads.bytes;

    return bytes == s->bytes ? KNOCK_NOTHING : bytes == 0 ? KNOCK_ALL : KNOCK_PART;
}

static enum knock_far shard_trimmed(void *arg)
{
    const struct shelf *s = arg;
    size_t bytes = s->slab.payloads.shard[due__thread_shard()].bytes;

    return bytes == s->bytes ? KNOCK_NOTHING : bytes == 0 ? KNOCK_ALL : KNOCK_PART;
}

static void trim_as_here(void *arg)
{
    struct shelf *s = arg;

    due__thread_be(s->thread);
    trim_payloads(arg);
}

static void count_payloads(void *arg)
{
    struct shelf *s = arg;

    s->told = due__payloads_bytes(&s->slab.payloads);
}

/* While it is waited for one block more comes, and another one once it has let go of the lock. */
static enum knock_far one_more(void *arg)
{
    struct shelf *s = arg;

    s->slab.payloads.shard[0].bytes += 5000;
    return KNOCK_NOTHING;
}

Test(mem_locked, payloads_are_trimmed_and_counted_under_their_locks, .timeout = 30)
{
    struct shelf *s = shelf_open();
    struct due__payloads *p = &s->slab.payloads;

    if (!p->keeps) { /* a checker of memory is at work */
        shelf_close(s);
        return;
    }
    for (size_t n = 200; due__payloads_idle(p) == 0 && n < 4000; n *= 2)
        rise_and_fall(p, n);
    s->bytes = due__payloads_idle(p);
    cr_assert_gt(s->bytes, 0u);
    KNOCK_IS(knock(&p->depot, trim_payloads, depot_trimmed, s), KNOCK_UNDER);
    rise_and_fall(p, 3);
    s->thread = due__thread_number;
    s->bytes = p->shard[due__thread_shard()].bytes;
    cr_assert_gt(s->bytes, 0u);
    KNOCK_IS(knock(&p->shard[due__thread_shard()].lock, trim_as_here, shard_trimmed, s),
             KNOCK_UNDER);
    cr_assert_eq(due__payloads_bytes(p), 0u);
    (void)knock(&p->shard[0].lock, count_payloads, one_more, s);
    if (KNOCKS)
        cr_expect_eq(s->told, 5000u, "it looked before it had the lock");
    p->shard[0].bytes = 0;
    shelf_close(s);
}
