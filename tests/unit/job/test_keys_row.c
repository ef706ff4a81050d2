/* Keys that are taken over from jobs which take them over themselves: whose they are whichever of
 * these jobs ends first. */
#include "queue/queue.h"
#include "queue/extras.h"
#include "job/key_table.h"
#include "lab/shop.h"
#include "os/siphash.h"

enum { JOBS = 3 };

/* A key, and the nodes of those who take it over one from the other: the last one has it. */
struct row {
    struct shop s;
    struct due__key *node[JOBS]; /* NULL: its job has ended */
};

static const due_extra named = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };

/* As due__key_submit() does it. */
static void take_over(struct row *r, uint32_t number)
{
    due_queue *q = r->s.lab.q;
    struct due__key *key = due__key_new(q, &named);

    cr_assert_not_null(key);
    struct due__key_shard *shard = due__key_enter(q->keys, key->hash);
    struct due__key *was = due__key_find(shard, key->bytes, key->len, key->hash);
    key->place = number + 1;
    key->of.under = was;
    due__key_link(shard, key, was);
    due__key_leave(q, shard);
    r->node[number] = key;
}

static struct row row_make(void)
{
    struct row r = { .s = shop_make() };

    for (uint32_t i = 0; i < JOBS; i++)
        take_over(&r, i);
    return r;
}

/* The job, which is not in the store, ends. */
static void end(struct row *r, uint32_t number)
{
    struct due__extras front = { .key = r->node[number] };

    due__key_undo(r->s.lab.q, &front);
    cr_expect_null(front.key);
    r->node[number] = NULL;
}

/* The place of who has the key, or -1. */
static int holder(struct row *r)
{
    due_queue *q = r->s.lab.q;
    uint64_t hash = due__siphash(q->keys->seed, named.key, named.key_len);
    struct due__key_shard *shard = due__key_enter(q->keys, hash);
    const struct due__key *key = due__key_find(shard, named.key, named.key_len, hash);
    int place = key != NULL ? (int)key->place - 1 : -1;

    due__key_leave(q, shard);
    return place;
}

static int last_left(const struct row *r)
{
    int last = -1;

    for (int i = 0; i < JOBS; i++)
        last = r->node[i] != NULL ? i : last;
    return last;
}

/* Whoever is left, and was the last to take it, has it; and nobody who has ended. */
Test(keys_row, the_key_is_the_last_ones_who_is_left, .timeout = 60)
{
    static const uint32_t orders[][JOBS] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                             { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct row r = row_make();

        cr_expect_eq(holder(&r), JOBS - 1);
        for (int k = 0; k < JOBS; k++) {
            end(&r, orders[i][k]);
            cr_expect_eq(holder(&r), last_left(&r), "order %zu, after %d: %d", i, k, holder(&r));
        }
        shop_close(&r.s);
    }
}

/* It was there before all of them: the last one who ends gives it back to that. */
Test(keys_row, what_was_kept_before_them_is_to_be_forgotten, .timeout = 60)
{
    struct row r = row_make();

    r.node[0]->over_kept = true;
    r.node[0]->of.under = NULL;
    end(&r, 0);
    cr_expect(r.node[1]->over_kept);
    end(&r, 1);
    cr_expect(r.node[2]->over_kept);
    end(&r, 2);
    cr_expect_eq(holder(&r), -1, "kept, by no job");
    uint64_t hash = due__siphash(r.s.lab.q->keys->seed, named.key, named.key_len);
    cr_expect_eq(r.s.lab.q->keys->shard[hash % DUE__KEY_SHARDS].kept, 1u);
    shop_close(&r.s);
}
