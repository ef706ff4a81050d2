/* The table of groups: each is found in its bucket, of which there are as many as groups, and goes
 * with its last job. */
#include <stdio.h>

#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/limit.h"
#include "queue/queue.h"

enum { FIRST = 64, GROUPS = 300 };

static struct due__limiter *join(struct lab *lab, int topic, int i)
{
    struct due__limiter *g = NULL;
    char name[16];
    int len = snprintf(name, sizeof name, "g%d", i);

    cr_assert_eq(due__group_join(lab->q, topic, name, (size_t)len, &g), 0);
    cr_expect_eq(g->len, len);
    cr_expect_eq(memcmp(g->name, name, (size_t)len), 0);
    cr_expect_eq(g->topic, topic);
    cr_expect_eq(g->limit, 1u);
    cr_expect_eq(g->queue, lab->q);
    return g;
}

/* By hand: the hash modulo the power of two that is not less than the buckets; what is not there
 * yet is where it was before. */
static uint32_t bucket_of(uint32_t buckets, uint32_t hash)
{
    uint32_t power = 1;

    while (power < buckets)
        power *= 2;
    return hash % power < buckets ? hash % power : hash % (power / 2);
}

static size_t groups_in_table(struct lab *lab)
{
    size_t n = 0;

    for (uint32_t b = 0; b < lab->q->limiters.buckets; b++) {
        for (struct due__limiter *g = due__group_first(lab->q, b); g != NULL; g = g->chain) {
            cr_expect_eq(bucket_of(lab->q->limiters.buckets, g->hash), b);
            n++;
        }
    }
    return n;
}

Test(group, is_in_its_bucket_of_a_table_that_grows_with_them, .timeout = 30)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    const int other = lab_topic(&lab, "other");
    static struct due__limiter *g[GROUPS];

    cr_expect_eq(lab.q->limiters.buckets, 0u);
    cr_expect_not(lab.q->limiters.any);
    for (int i = 0; i < GROUPS; i++) {
        g[i] = join(&lab, i % 2 == 0 ? 0 : other, i / 2);
        cr_expect_eq(due__load_acquire(&g[i]->jobs), 1u);
        cr_expect_eq(lab.q->limiters.groups, (size_t)i + 1);
        cr_expect_eq(lab.q->limiters.buckets, i < FIRST ? FIRST : (uint32_t)i + 1, "%d: %u", i,
                     lab.q->limiters.buckets);
        cr_expect_eq(groups_in_table(&lab), (size_t)i + 1);
    }
    cr_expect(lab.q->limiters.any);
    for (int i = 0; i < GROUPS; i++) {
        cr_expect_eq(join(&lab, i % 2 == 0 ? 0 : other, i / 2), g[i], "it is there already");
        cr_expect_eq(due__load_acquire(&g[i]->jobs), 2u);
        due__group_part(g[i]);
        cr_expect_eq(due__load_acquire(&g[i]->jobs), 1u);
    }
    cr_expect_eq(lab.q->limiters.groups, (size_t)GROUPS);
    for (int i = 0; i < GROUPS; i++) {
        int at = (i * 7) % GROUPS; /* in another order; 7 does not divide it */

        due__group_part(g[at]);
        cr_expect_eq(lab.q->limiters.groups, (size_t)(GROUPS - 1 - i));
        cr_expect_eq(groups_in_table(&lab), (size_t)(GROUPS - 1 - i));
    }
    cr_expect_eq(lab.q->limiters.buckets, (uint32_t)GROUPS, "it does not shrink");
    g[0] = join(&lab, 0, 0);
    cr_expect_eq(lab.q->limiters.buckets, (uint32_t)GROUPS, "nor grow while there is room");
    cr_expect_eq(lab.q->limiters.groups, 1u);
    due__group_part(g[0]);
    lab_close(&lab);
}

/* By hand: it is as if its name had the hash @hash. */
static void disguise(struct lab *lab, struct due__limiter *g, uint32_t hash)
{
    struct due__limiter **buckets = lab->q->limiters.segment[0];

    cr_assert_eq(lab->q->limiters.groups, 1u);
    cr_assert_eq(buckets[g->hash % FIRST], g);
    buckets[g->hash % FIRST] = NULL;
    g->hash = hash;
    buckets[hash % FIRST] = g;
}

/* What a join of group @i in @topic finds, if there is one with that hash and another name. */
static void expect_another(int other_topic, int other, int topic, int i)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    const int topics[] = { 0, lab_topic(&lab, "other") };
    struct due__limiter *its = join(&lab, topics[topic], i);
    uint32_t hash = its->hash;

    due__group_part(its);
    struct due__limiter *g = join(&lab, topics[other_topic], other);
    disguise(&lab, g, hash);
    its = join(&lab, topics[topic], i);
    cr_expect_neq(its, g);
    cr_expect_eq(its->hash, hash);
    cr_expect_eq(lab.q->limiters.groups, 2u);
    cr_expect_eq(join(&lab, topics[topic], i), its);
    due__group_part(its);
    due__group_part(its);
    due__group_part(g);
    cr_expect_eq(groups_in_table(&lab), 0u);
    lab_close(&lab);
}

Test(group, is_told_from_others_of_its_hash_by_its_name_and_topic, .timeout = 30)
{
    expect_another(0, 1, 0, 2);  /* other bytes */
    expect_another(0, 1, 0, 11); /* longer */
    expect_another(0, 11, 0, 1); /* shorter */
    expect_another(1, 1, 0, 1);  /* of another topic */
}

/* Nobody who chooses names can choose buckets: the same names are elsewhere in another queue. */
Test(group, is_in_another_bucket_in_another_queue, .timeout = 30)
{
    enum { SOME = 40 };
    struct lab one = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct lab two = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__limiter *a[SOME];
    struct due__limiter *b[SOME];
    int same = 0;

    for (int i = 0; i < SOME; i++) {
        a[i] = join(&one, 0, i);
        b[i] = join(&two, 0, i);
        same += a[i]->hash == b[i]->hash;
    }
    cr_expect_lt(same, 3);
    for (int i = 0; i < SOME; i++) {
        due__group_part(a[i]);
        due__group_part(b[i]);
    }
    lab_close(&one);
    lab_close(&two);
}
