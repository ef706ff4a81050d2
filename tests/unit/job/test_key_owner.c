/* Whose a key is, node by node: what comes back from a store, what stands over what the store
 * keeps, and what it is told of a row.  The nodes are made by hand, and belong to no job. */
#include "lab/lab.h"

#include "job/key_table.h"
#include "os/siphash.h"
#include "queue/queue.h"

static uint64_t there; /* places that the store has, by bit */

static bool has(const struct due_queue *q, uint32_t number)
{
    (void)q;
    return there >> number & 1;
}

struct desk {
    struct lab lab;
    const struct due__journal *real;
    struct due__journal keeps;
};

/* As with a store that keeps keys. */
static void desk_open(struct desk *d)
{
    d->lab = lab_open();
    d->real = d->lab.q->journal;
    d->keeps = *d->real;
    d->keeps.keeps_keys = true;
    d->keeps.has = has;
    d->lab.q->journal = &d->keeps;
    there = 0;
}

/* A node of the key "k"; @place 0: it is kept until @until_ns. */
static struct due__key *node(struct desk *d, uint32_t place, int64_t until_ns)
{
    const due_extra x = { DUE_EXTRA_INIT, .key = "k", .key_len = 1, .keep_key_ns = until_ns };
    struct due__key *key = due__key_new(d->lab.q, &x);

    cr_assert_not_null(key);
    key->place = place;
    key->generation = 5;
    return key;
}

static struct due__key_shard *enter(struct desk *d, uint64_t *hash)
{
    *hash = due__siphash(d->lab.q->keys->seed, "k", 1);
    return due__key_enter(d->lab.q->keys, *hash);
}

static struct due__key *in_table(struct desk *d)
{
    uint64_t hash;
    struct due__key_shard *it = enter(d, &hash);
    struct due__key *key = due__key_find(it, "k", 1, hash);

    due__key_leave(d->lab.q, it);
    return key;
}

static void link_it(struct desk *d, struct due__key *key, struct due__key *was)
{
    uint64_t hash;
    struct due__key_shard *it = enter(d, &hash);

    due__key_link(it, key, was);
    due__key_leave(d->lab.q, it);
}

/* Out of the table, if it is in it, and gone. */
static void drop(struct desk *d, struct due__key *key)
{
    uint64_t hash;

    if (key == NULL)
        return;
    if (key->linked) {
        struct due__key_shard *it = enter(d, &hash);

        due__key_unlink(it, key);
        due__key_leave(d->lab.q, it);
    }
    due__key_drop(d->lab.q, key);
}

static void desk_close(struct desk *d)
{
    cr_expect_null(in_table(d));
    d->lab.q->journal = d->real;
    lab_close(&d->lab);
}

static due_id id_at(const struct due_queue *q, uint32_t place)
{
    return due__id(q, place - 1, 5);
}

/* ---- Restored ---- */

/* The id that is so far behind. */
static due_id moved(due_id id, int by)
{
    for (size_t i = sizeof id.byte; by != 0 && i-- > 0;) {
        int sum = id.byte[i] + by;

        id.byte[i] = (unsigned char)sum;
        by = sum < 0 ? -1 : sum > 255;
    }
    return id;
}

/* @was: none (0), kept (1), or a job's (2); the one that comes back is kept, or a job's. */
static void expect_restored(int was, bool kept, int order)
{
    struct desk d;
    due_id ids[3];

    desk_open(&d);
    struct due__key *first = was == 0 ? NULL : node(&d, was == 1 ? 0 : 7, 100);
    struct due__key *key = node(&d, kept ? 0 : 9, 100);
    due_id has_it = id_at(d.lab.q, 7);
    for (int i = 0; i < 3; i++) {
        ids[i] = moved(has_it, i - 1);
        ids[i].byte[0] ^= (unsigned char)(0x80 >> i); /* a priority decides nothing */
    }
    if (was == 1)
        first->of.id = has_it;
    if (first != NULL)
        link_it(&d, first, NULL);
    if (kept)
        key->of.id = ids[order];
    due__key_restore(d.lab.q, key, ids[order]);
    bool wins = was == 0 || order == 2;
    struct due__key *is = in_table(&d);
    cr_expect_eq(is, wins ? key : first, "%d %d %d", was, kept, order);
    if (!wins && !kept) {
        cr_expect(!key->linked);
        drop(&d, key);
    }
    if (wins && was == 2) {
        cr_expect(!first->linked);
        drop(&d, first);
    }
    drop(&d, is);
    desk_close(&d);
}

Test(key_owner, of_two_that_come_back_is_the_later_job, .timeout = 60)
{
    for (int was = 0; was < 3; was++)
        for (int kept = 0; kept < 2; kept++)
            for (int order = 0; order < 3; order++)
                expect_restored(was, kept != 0, order);
}

/* ---- Not forgotten by the store ---- */

Test(key_owner, of_a_kept_one_that_is_not_forgotten_is_the_table_again, .timeout = 60)
{
    struct desk d;

    desk_open(&d);
    struct due__key *key = node(&d, 0, 100);
    cr_expect(due__key_relink(d.lab.q, key));
    cr_expect_eq(in_table(&d), key);
    drop(&d, key);
    desk_close(&d);
}

/* Under the last of a row whose job is not in the store; unless there is something kept already. */
Test(key_owner, or_who_has_got_it_meanwhile_stands_over_what_is_kept, .timeout = 60)
{
    for (int kind = 0; kind < 4; kind++) { /* bits: a row of two; over something kept */
        struct desk d;

        desk_open(&d);
        struct due__key *kept = node(&d, 0, 100);
        struct due__key *last = node(&d, 3, 0);
        struct due__key *first = kind & 1 ? node(&d, 4, 0) : last;
        kept->of.id = id_at(d.lab.q, 8);
        if (kind & 1)
            first->of.under = last;
        if (kind & 2) {
            last->over_kept = true;
            last->kept_ns = 60;
            last->of.id = id_at(d.lab.q, 6);
        }
        link_it(&d, first, NULL);
        cr_expect(!due__key_relink(d.lab.q, kept), "%d", kind);
        cr_expect_eq(in_table(&d), first, "%d", kind);
        cr_expect(last->over_kept, "%d", kind);
        cr_expect_eq(last->kept_ns, kind & 2 ? 60 : 100, "%d", kind);
        cr_expect(due_id_equal(last->of.id, id_at(d.lab.q, kind & 2 ? 6 : 8)), "%d", kind);
        if (kind & 1)
            cr_expect(!first->over_kept && first->of.under == last, "%d", kind);
        drop(&d, kept);
        if (kind & 1)
            drop(&d, first);
        drop(&d, last);
        desk_close(&d);
    }
}

Test(key_owner, or_another_is_kept_in_its_stead, .timeout = 60)
{
    struct desk d;

    desk_open(&d);
    struct due__key *kept = node(&d, 0, 100);
    struct due__key *other = node(&d, 0, 50);
    link_it(&d, other, NULL);
    cr_expect(!due__key_relink(d.lab.q, kept));
    cr_expect_eq(in_table(&d), other);
    cr_expect_eq(other->term_ns, 50);
    cr_expect(!other->over_kept);
    drop(&d, kept);
    drop(&d, other);
    desk_close(&d);
}

/* ---- What is kept, and may be ---- */

Test(key_owner, is_kept_if_its_job_has_left_and_the_store_keeps_it, .timeout = 60)
{
    for (unsigned k = 0; k < 32; k++) {
        struct desk d;

        desk_open(&d);
        struct due__key *key = node(&d, k & 1 ? 3 : 0, 100);
        key->over_kept = (k & 2) != 0;
        key->kept_ns = k & 4 ? 1 : 0;
        key->returns = (k & 8) != 0;
        there = k & 16 ? UINT64_C(1) << 2 : ~(UINT64_C(1) << 2);
        bool kept =
            !(k & 1) || (!key->over_kept && key->kept_ns > 0 && !key->returns && !has(d.lab.q, 2));
        cr_expect_eq(due__key_is_retained(d.lab.q, key), kept, "%u", k);
        drop(&d, key);
        desk_close(&d);
    }
}

/* Of a row: by its first, or what that has it from. */
Test(key_owner, may_be_kept_as_far_as_the_row_says, .timeout = 60)
{
    for (unsigned k = 0; k < 32; k++) { /* bits: two; the terms; kept for the first; over kept */
        struct desk d;

        desk_open(&d);
        struct due__key *last = node(&d, 3, k & 2 ? 1 : 0);
        struct due__key *first = k & 1 ? node(&d, 4, k & 4 ? 1 : 0) : last;
        if (k & 1)
            first->of.under = last;
        first->kept_ns = k & 8 ? 1 : 0;
        last->over_kept = (k & 16) != 0;
        link_it(&d, first, NULL);
        bool may = (k & 8) || (k & 16) || ((k & 1) && (k & 2));
        struct due__key_told told = due__key_tell(d.lab.q, first);
        cr_expect_eq(told.was_kept, may, "%u", k);
        cr_expect(told.has && told.by == 0 && !told.free, "%u", k);
        cr_expect_eq(due__key_may_be_retained(d.lab.q, "k", 1), may, "%u", k);
        cr_expect(!due__key_may_be_retained(d.lab.q, "j", 1), "%u", k);
        cr_expect(!due__key_lost(d.lab.q, first), "%u", k);
        if (k & 1) {
            told = due__key_tell(d.lab.q, last);
            cr_expect(!told.has && !told.free, "%u", k);
            cr_expect_eq(told.by, 4u, "%u: who takes it over", k);
            cr_expect(due__key_lost(d.lab.q, last), "%u", k);
            drop(&d, first);
            told = due__key_tell(d.lab.q, last);
            cr_expect(!told.has && told.free && told.by == 0, "%u: it is nobody's", k);
        }
        drop(&d, last);
        desk_close(&d);
    }
}

/* It was taken over for good: whoever has it now has it from nobody. */
Test(key_owner, is_told_to_be_somebody_elses, .timeout = 60)
{
    struct desk d;

    desk_open(&d);
    struct due__key *lost = node(&d, 3, 0);
    struct due__key *first = node(&d, 4, 0);
    link_it(&d, first, NULL);
    struct due__key_told told = due__key_tell(d.lab.q, lost);
    cr_expect(!told.has && !told.free && told.by == 0 && !told.was_kept);
    drop(&d, lost);
    drop(&d, first);
    cr_expect(!due__key_may_be_retained(d.lab.q, "k", 1));
    struct due__key *kept = node(&d, 0, 100);
    link_it(&d, kept, NULL);
    cr_expect(due__key_may_be_retained(d.lab.q, "k", 1));
    drop(&d, kept);
    desk_close(&d);
}
