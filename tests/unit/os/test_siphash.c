/* Names come from outside: nobody can choose them so that they meet in one place of a table, even
 * who knows everything that an id shows. */
#define _GNU_SOURCE
#include "os/siphash.h"
#include "queue/queue.h"
#include "lab/kernel_time.h"
#include "lab/lab.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- The hash ---- */

/* Of 0, 1, 2 and so on bytes 00 01 02 ..., under the key 00 ... 0f: what any SipHash-1-3 says. */
Test(siphash, is_the_one_that_was_looked_into)
{
    static const uint64_t expected[] = {
        UINT64_C(0xabac0158050fc4dc), UINT64_C(0xc9f49bf37d57ca93), UINT64_C(0x82cb9b024dc7d44d),
        UINT64_C(0x8bf80ab8e7ddf7fb), UINT64_C(0xcf75576088d38328), UINT64_C(0xdef9d52f49533b67),
        UINT64_C(0xc50d2b50c59f22a7), UINT64_C(0xd3927d989bb11140), UINT64_C(0x369095118d299a8e),
        UINT64_C(0x25a48eb36c063de4), UINT64_C(0x79de85ee92ff097f), UINT64_C(0x70c118c1f94dc352),
        UINT64_C(0x78a384b157b4d9a2), UINT64_C(0x306f760c1229ffa7), UINT64_C(0x605aa111c0f95d34),
        UINT64_C(0xd320d86d2a519956),
    };
    uint64_t seed[2];
    unsigned char bytes[16];

    for (size_t i = 0; i < 16; i++)
        bytes[i] = (unsigned char)i;
    memcpy(seed, bytes, sizeof seed);
    if (seed[0] != UINT64_C(0x0706050403020100))
        cr_skip_test("the other byte order has other numbers");
    for (size_t n = 0; n < 16; n++)
        cr_expect_eq(due__siphash(seed, bytes, n), expected[n], "of %zu bytes", n);
}

/* ---- The seed ---- */

static enum { RANDOM, KNOWN, NONE } bytes_are; /* what the kernel answers with */
static bool clock_stands;                      /* every clock */
static int cancel_state;                       /* of the thread, in the call */

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
    if (bytes_are == RANDOM)
        return syscall(SYS_getrandom, to, len, flags);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_setcancelstate(cancel_state, NULL);
    errno = EAGAIN;
    if (bytes_are == NONE)
        return -1;
    memset(to, 0x5a, len);
    return (ssize_t)len;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (!clock_stands)
        return (int)syscall(KERNEL_CLOCK_GETTIME, id, t);
    *t = (struct timespec){ .tv_sec = 12345 };
    return 0;
}

Test(siphash, a_seed_is_what_the_kernel_gives)
{
    uint64_t seed[3] = { 1, 2, 3 };
    int state;

    bytes_are = KNOWN;
    due__siphash_seed(seed);
    cr_expect_eq(seed[0], UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(seed[1], UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(seed[2], 3u);
    cr_expect_eq(cancel_state, PTHREAD_CANCEL_DISABLE);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    cr_expect_eq(state, PTHREAD_CANCEL_ENABLE, "it is as it was");
}

/* Even at one moment, or at one place. */
Test(siphash, a_seed_is_another_each_time_where_the_kernel_gives_none)
{
    uint64_t seed[3][2] = { { 0 } };

    bytes_are = NONE;
    clock_stands = true;
    due__siphash_seed(seed[0]);
    due__siphash_seed(seed[1]);
    cr_expect_neq(seed[0][0], seed[1][0]);
    cr_expect_neq(seed[0][1], seed[1][1]);
    cr_expect_neq(seed[0][0], seed[0][1]);
    memcpy(seed[2], seed[0], sizeof seed[2]);
    clock_stands = false;
    due__siphash_seed(seed[0]);
    cr_expect_neq(seed[0][0], seed[2][0]);
    cr_expect_neq(seed[0][1], seed[2][1]);
}

/* ---- Groups ---- */

#define GROUPS 2000u

/* The inverse of an odd number, modulo 2^64. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;

    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

/* Names of 8 bytes whose hashes were all alike when groups were hashed with the queue's tag: that
 * hash was a multiplication, a shift, another of each, and all of them can be undone. */
static void name_that_met(const due_queue *q, uint32_t n, unsigned char name[8])
{
    uint64_t odd = q->tag | 1;
    uint64_t begin = (q->tag >> 32 ^ 8) * odd;
    uint64_t h = (uint64_t)n << 32 | 5; /* the lower half is what was used */

    h ^= h >> 32;
    h *= inverse(UINT64_C(0x94d049bb133111eb));
    h ^= h >> 29 ^ h >> 58;
    h = h * inverse(odd) ^ begin;
    memcpy(name, &h, 8);
}

static unsigned longest_chain(due_queue *q)
{
    unsigned longest = 0;

    for (uint32_t b = 0; b < q->limiters.buckets; b++) {
        unsigned n = 0;

        for (struct due__limiter *g = due__group_first(q, b); g != NULL; g = g->chain)
            n++;
        longest = n > longest ? n : longest;
    }
    return longest;
}

Test(siphash, groups_are_not_found_by_what_an_id_shows, .timeout = 60)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    unsigned char name[8];

    for (uint32_t n = 0; n < GROUPS; n++) {
        name_that_met(lab.q, n, name);
        lab_enqueue(&lab, NULL, .at_ns = 5, .more = EXTRA(.group = name, .group_len = sizeof name));
    }
    cr_expect_eq(lab.q->limiters.groups, GROUPS);
    cr_expect_lt(longest_chain(lab.q), 20u, "%u of %u in one bucket", longest_chain(lab.q), GROUPS);
    lab_close(&lab);
}

Test(siphash, a_group_of_the_same_name_in_another_topic_is_elsewhere, .timeout = 60)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    char topic[16];

    for (int n = 0; n < 500; n++) {
        snprintf(topic, sizeof topic, "%d", n);
        lab_enqueue(&lab, NULL, .at_ns = 5, .topic = lab_topic(&lab, topic),
                    .more = EXTRA(.group = "g", .group_len = 1));
    }
    cr_expect_eq(lab.q->limiters.groups, 500u);
    cr_expect_lt(longest_chain(lab.q), 20u, "%u in one bucket", longest_chain(lab.q));
    lab_close(&lab);
}

/* ---- Topics ---- */

static uint32_t fnv(const char *name)
{
    uint32_t h = 2166136261u;

    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* A table of so many has 2,048 places; whoever looks for a name goes from one to the next as long
 * as they are taken. */
Test(siphash, topics_do_not_meet_by_their_names, .timeout = 60)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    unsigned longest = 0;
    unsigned run = 0;
    char name[16];

    for (unsigned made = 0, n = 0; made < 600; n++) {
        snprintf(name, sizeof name, "%u", n);
        if ((fnv(name) & 2047) == 0) {
            lab_topic(&lab, name);
            made++;
        }
    }
    for (size_t i = 0; i < lab.q->names.room; i++) {
        run = lab.q->names.table[i] != 0 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    cr_expect_geq(lab.q->names.room, 1200u);
    cr_expect_lt(longest, 100u, "%u side by side", longest);
    lab_close(&lab);
}

/* ---- The seed ---- */

Test(siphash, each_queue_has_a_seed_of_its_own, .timeout = 60)
{
    struct lab one = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct lab two = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    cr_expect_neq(one.q->seed[0], two.q->seed[0]);
    cr_expect_neq(one.q->seed[1], two.q->seed[1]);
    cr_expect_neq(one.q->seed[0], one.q->tag);
    cr_expect_neq(due__siphash(one.q->seed, "g", 1), due__siphash(two.q->seed, "g", 1));
    lab_close(&two);
    lab_close(&one);
}
