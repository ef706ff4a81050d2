/* In which order a file's jobs are shown, whatever is done to them meanwhile. */
#include <criterion/criterion.h>

#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/session.h"

#define JOBS  200
#define SPANS 5 /* slices that they lie in */

struct load_script {
    struct sqlite_desk desk;
    due_record now[JOBS];    /* as it is stored; data NULL: it is not */
    bool stays[JOBS];        /* it was stored when the load began, and was not put again */
    unsigned shown[JOBS];    /* */
    due_record last;         /* that was shown */
    bool wrong_order, stale; /* */
    uint64_t random;
};

static int64_t load_some_time(struct load_script *l)
{
    uint64_t span = UINT64_C(1) << DUE__SQLITE_SLICE;

    return (int64_t)(crew_below(&l->random, SPANS) * span + crew_below(&l->random, 20));
}

static int load_visit(void *ctx, const due_record *r)
{
    struct load_script *l = ctx;
    unsigned number = r->id.byte[13];
    bool dead = r->cause != 0;
    bool was_dead = l->last.cause != 0;

    l->shown[number]++;
    l->stale |= l->now[number].data == NULL || l->now[number].until_ns != r->until_ns ||
                l->now[number].cause != r->cause;
    l->wrong_order |= dead != was_dead ? was_dead
                      : dead           ? l->last.died_ns > r->died_ns
                                       : l->last.until_ns > r->until_ns;
    l->last = *r;
    return 0;
}

static int load_page(struct load_script *l, int rewind)
{
    due_store *s = l->desk.store;

    return s->verbs->load(s, rewind, 1 + crew_below(&l->random, 9), load_visit, l,
                          crew_now_ns() + DUE_S(5));
}

/* Do something to a job; @told: and say rightly where it lies. */
static void load_change(struct load_script *l, bool told)
{
    unsigned number = (unsigned)crew_below(&l->random, JOBS);
    due_record *r = &l->now[number];
    due_change c = { .kind = DUE_CHANGE_PUT, .record = *r };

    if (r->data == NULL) {
        *r = sqlite_desk_record((unsigned char)number);
        r->until_ns = load_some_time(l);
        c.record = *r;
        c.is_new = 1;
        l->stays[number] = false;
    } else {
        c.kind = (enum due_change_kind)(DUE_CHANGE_PUT + crew_below(&l->random, 4));
        c.was_dead = told && r->cause != 0;
        c.was_ns = told ? c.was_dead ? r->died_ns : r->until_ns : load_some_time(l);
        r->cause = 0;
        r->until_ns = load_some_time(l);
        if (c.kind == DUE_CHANGE_BURY) {
            r->cause = DUE_CAUSE_EXPIRED;
            r->died_ns = (int64_t)crew_below(&l->random, 30);
        }
        c.record = *r;
        if (c.kind == DUE_CHANGE_DROP)
            r->data = NULL;
        l->stays[number] &= c.kind != DUE_CHANGE_DROP && c.kind != DUE_CHANGE_PUT;
    }
    cr_assert_eq(sqlite_desk_commit(&l->desk, &c, DUE_S(5)), 0);
}

/* Windows and reads so small that each load cuts slices and comes back to them; of what was read
 * nothing, some or all is kept. */
static void load_begin(struct load_script *l, uint64_t seed)
{
    *l = (struct load_script){ .random = seed };
    sqlite_desk_begin(&l->desk);
    l->desk.place.options.durability = DUE_DURABLE_NONE;
    cr_assert_eq(sqlite_desk_open(&l->desk), 0, "%s", l->desk.error.text);
    struct due__sqlite *inside = (struct due__sqlite *)(void *)l->desk.store;
    inside->gather_max = 1 + seed % 7;
    inside->scan_max = 1 + seed % 23;
    inside->prefetch_max = (size_t[]){ 0, 6000, 1 << 20 }[seed % 3];
    for (int i = 0; i < 3 * JOBS; i++)
        load_change(l, true);
    for (int i = 0; i < JOBS; i++)
        l->stays[i] = l->now[i].data != NULL;
}

Test(sqlite_load, shows_all_in_order_however_little_it_gathers_at_once, .timeout = 30)
{
    for (uint64_t seed = 1; seed <= 23; seed++) {
        struct load_script l;

        load_begin(&l, seed);
        for (int rc = load_page(&l, 1); rc != 0; rc = load_page(&l, 0))
            cr_assert_eq(rc, 1);
        for (int i = 0; i < JOBS; i++)
            cr_assert_eq(l.shown[i], l.stays[i], "seed %d, job %d", (int)seed, i);
        cr_expect(!l.wrong_order && !l.stale, "seed %d", (int)seed);
        sqlite_desk_end(&l.desk);
    }
}

Test(sqlite_load, shows_what_moves_while_it_goes_on, .timeout = 30)
{
    for (uint64_t seed = 1; seed <= 23; seed++) {
        struct load_script l;

        load_begin(&l, seed);
        for (int rc = load_page(&l, 1); rc != 0; rc = load_page(&l, 0)) {
            cr_assert_eq(rc, 1);
            for (uint64_t i = crew_below(&l.random, 4); i > 0; i--)
                load_change(&l, crew_below(&l.random, 3) > 0);
        }
        for (int i = 0; i < JOBS; i++)
            cr_assert(l.shown[i] > 0 || !l.stays[i], "seed %d, job %d", (int)seed, i);
        cr_expect(!l.stale, "seed %d", (int)seed);
        sqlite_desk_end(&l.desk);
    }
}

/* Also what is said wrongly of where a job lies makes of it neither two nor none. */
Test(sqlite_load, finds_jobs_that_lie_elsewhere_than_was_said, .timeout = 30)
{
    struct load_script l;
    int64_t stored = 0;
    char count[24];

    load_begin(&l, 1);
    for (int i = 0; i < 5 * JOBS; i++)
        load_change(&l, false);
    for (int i = 0; i < JOBS; i++)
        stored += l.now[i].data != NULL;
    sqlite3 *db = sqlite_desk_other(&l.desk);
    snprintf(count, sizeof count, "%d", (int)stored);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM job"), count);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(DISTINCT id) FROM job"), count);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT jobs FROM owner"), count);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM job WHERE slice <>"
                                         " CASE WHEN died IS NULL THEN until >> 40 ELSE -1 END"),
                     "0");
    sqlite3_close(db);
    sqlite_desk_end(&l.desk);
}

/* ---- Kept keys ---- */

struct load_keys {
    char shown[64];
    int stop; /* what the visit answers at the second of a page; 0: nothing */
    int n;    /* of this page */
};

static int load_visit_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct load_keys *l = ctx;
    size_t used = strlen(l->shown);

    if (++l->n == 2 && l->stop != 0)
        return l->stop;
    snprintf(l->shown + used, sizeof l->shown - used, "%.*s%d.%d ", (int)len, (const char *)key,
             id.byte[13], (int)until_ns);
    return 0;
}

static int load_keys(struct sqlite_desk *d, struct load_keys *l, int rewind, size_t max)
{
    l->n = 0;
    return d->store->verbs->keys(d->store, rewind, max, load_visit_key, l,
                                 crew_now_ns() + DUE_S(5));
}

/* In pages, from where the last one was left; and not those of jobs that are there. */
Test(sqlite_load, shows_each_kept_key_once_and_none_that_was_refused, .timeout = 30)
{
    static const char *const keys[] = { "a", "aa", "b", "c", "d" };
    struct load_keys l = { .stop = 0 };
    struct sqlite_desk desk;

    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    for (unsigned char i = 0; i < 5; i++) {
        due_change c = { .kind = i == 3 ? DUE_CHANGE_PUT : DUE_CHANGE_KEEP,
                         .record = sqlite_desk_record(i),
                         .key_kept_ns = 10 + i };

        c.record.key = keys[i];
        c.record.key_len = strlen(keys[i]);
        cr_assert_eq(sqlite_desk_commit(&desk, &c, DUE_S(5)), 0);
    }
    cr_expect_eq(load_keys(&desk, &l, 1, 3), 1);
    cr_expect_eq(load_keys(&desk, &l, 0, 3), 0);
    cr_expect_str_eq(l.shown, "a0.10 aa1.11 b2.12 d4.14 ");
    l = (struct load_keys){ .stop = DUE_ENOMEM };
    cr_expect_eq(load_keys(&desk, &l, 1, 3), DUE_ENOMEM);
    l.stop = 0;
    cr_expect_eq(load_keys(&desk, &l, 0, 3), 1);
    cr_expect_eq(load_keys(&desk, &l, 0, 3), 0);
    cr_expect_str_eq(l.shown, "a0.10 aa1.11 b2.12 d4.14 ");
    l = (struct load_keys){ .stop = 0 };
    for (int i = 0; i < 4; i++)
        cr_expect_eq(load_keys(&desk, &l, i == 0, 0), 1, "at least one at a time");
    cr_expect_eq(load_keys(&desk, &l, 0, 0), 0);
    cr_expect_str_eq(l.shown, "a0.10 aa1.11 b2.12 d4.14 ");
    sqlite_desk_end(&desk);
}
