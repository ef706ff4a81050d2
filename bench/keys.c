/* keys.c - what a unique key costs: to enqueue with it, to find it, and in memory.
 *
 *   keys [--tiny]      1 million live keys of 16 bytes (tiny: 10,000)
 *
 * Each figure stands beside the same jobs with headers as long instead of a key, and without
 * either.  Keys are used in an order that has nothing to do with that in which they were made.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"

enum kind { PLAIN, HEADERS, KEYS };

static const char *const kind_names[] = { "plain", "headers", "keys" };

/* Processor time: the machine may have other things to do. */
static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void make_key(char key[16], uint64_t i)
{
    uint64_t words[2] = { i * UINT64_C(0x9e3779b97f4a7c15), i };

    memcpy(key, words, 16);
}

static int put(due_queue *q, enum kind kind, const char *key)
{
    due_extra more = { DUE_EXTRA_INIT };
    due_spec s = { DUE_SPEC_INIT, .at_ns = DUE_S(1000), .data = "sixteen bytes...", .len = 16 };

    if (kind == KEYS)
        more.key = key, more.key_len = 16, s.more = &more;
    else if (kind == HEADERS)
        more.headers = key, more.headers_len = 16, s.more = &more;
    return due_enqueue(q, &s, 0, NULL);
}

static void fail(const char *what)
{
    printf("keys: %s went wrong\n", what);
    exit(1);
}

/* While there are @n live keys: enqueues of new ones, and cancels so that there are no more. */
static void at_full_size(due_queue *q, size_t n)
{
    size_t rounds = n < 200000 ? n : 200000;
    char key[16];
    double enqueue = 0;
    double find = 0;
    double refuse = 0;
    double cancel = 0;
    due_id id;

    for (size_t i = 0; i < rounds; i += 1000) {
        double at = now_ns();
        for (size_t k = i; k < i + 1000; k++) {
            make_key(key, n + k);
            if (put(q, KEYS, key) != 0)
                fail("an enqueue");
        }
        enqueue += now_ns() - at;
        at = now_ns();
        for (size_t k = i; k < i + 1000; k++) {
            make_key(key, k * 7919 % n + i);
            if (due_id_of_key(q, key, 16, &id) != 0)
                fail("a find");
        }
        find += now_ns() - at;
        at = now_ns();
        for (size_t k = i; k < i + 1000; k++) {
            make_key(key, k * 104729 % n + i);
            if (put(q, KEYS, key) != DUE_EEXIST)
                fail("a refusal");
        }
        refuse += now_ns() - at;
        at = now_ns();
        for (size_t k = i; k < i + 1000; k++) {
            make_key(key, k);
            if (due_cancel_key(q, key, 16, NULL) != 0)
                fail("a cancel");
        }
        cancel += now_ns() - at;
    }
    double by = (double)rounds;
    printf("keys     n=%zu  enqueue %.0f ns (owed: 400)   refused %.0f   find %.0f   cancel %.0f\n",
           n, enqueue / by, refuse / by, find / by, cancel / by);
}

static void fill(enum kind kind, size_t n)
{
    size_t bytes;
    due_allocator allocator = measure_memory(&bytes);
    due_clock *clock = due_clock_manual(DUE_S(1));
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .allocator = &allocator };
    due_queue *q;
    char key[16];

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        fail("opening");
    double at = now_ns();
    for (size_t i = 0; i < n; i++) {
        make_key(key, i);
        if (put(q, kind, key) != 0)
            fail("an enqueue");
    }
    printf("keys     n=%zu  filling, %-8s %5.0f ns a job, %4zu bytes a job\n", n, kind_names[kind],
           (now_ns() - at) / (double)n, bytes / n);
    if (kind == KEYS)
        at_full_size(q, n);
    if (due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) != 0 || due_free(q) != 0 ||
        due_clock_free(clock) != 0 || bytes != 0)
        fail("closing");
}

int main(int argc, char **argv)
{
    size_t n = measure_option(argc, argv, "--tiny") ? 10000 : 1000000;

    fill(PLAIN, n);
    fill(HEADERS, n);
    fill(KEYS, n);
    return 0;
}
