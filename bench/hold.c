/* hold.c - the hold model: take the head, put it back some time later, one thread.
 *
 *   hold [--quick] [--uniform]      ns per pop and push at 1e3 ... 1e7 live slots (quick: 1e2, 1e3)
 *   hold --tenure [--quick]         the longest single call of the timeline, in CPU time, with 10
 *                                   million slots of which 60 % are dead
 *
 * Rivals in the same run, interleaved: a textbook binary heap of the same slots, written below,
 * and the tuned heap alone.  Increments are exponential with a mean of one second, or uniform
 * over two.  One run is as many holds as there are slots, so that every slot moves through all
 * levels; a run before the first is not counted.  The hash of what was popped must be equal.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "timeline/heap.h"
#include "timeline/timeline.h"

enum { INCREMENTS = 1 << 16, RUNS_MAX = 15 };

static int64_t increment[INCREMENTS];

static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static void make_increments(bool uniform)
{
    uint64_t state = 42;

    for (size_t i = 0; i < INCREMENTS; i++) {
        double u = ((double)(random_next(&state) >> 11) + 0.5) / 9007199254740992.0;

        increment[i] = (int64_t)(1e9 * (uniform ? 2 * u : -log(u)));
    }
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Of this thread: where the longest call counts, a neighbour's time slice must not. */
static int64_t cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- The textbook heap ----------------------------------------------------------------------- */

struct textbook {
    struct due__slot *slot;
    size_t count;
};

static void textbook_push(struct textbook *h, struct due__slot s)
{
    size_t i = h->count++;

    while (i > 0 && due__slot_before(s, h->slot[(i - 1) / 2])) {
        h->slot[i] = h->slot[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->slot[i] = s;
}

static struct due__slot textbook_pop(struct textbook *h)
{
    struct due__slot top = h->slot[0];
    struct due__slot last = h->slot[--h->count];
    size_t i = 0;

    for (size_t child = 1; child < h->count; child = 2 * i + 1) {
        if (child + 1 < h->count && due__slot_before(h->slot[child + 1], h->slot[child]))
            child++;
        if (!due__slot_before(h->slot[child], last))
            break;
        h->slot[i] = h->slot[child];
        i = child;
    }
    h->slot[i] = last;
    return top;
}

/* ---- The three subjects ---------------------------------------------------------------------- */

struct subject {
    const char *name;
    void (*open)(size_t n);
    void (*push)(struct due__slot s);
    uint64_t (*hold)(size_t holds, size_t *turn); /* hash of the popped slots */
    void (*close)(void);
};

static struct textbook textbook;
static struct due__heap tuned;
static struct due__slot *tuned_array;
static struct due__alloc alloc;
static struct due__pool pool;
static struct due__timeline timeline;

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static size_t keep_all(const void *ctx, struct due__slot *slot, size_t n)
{
    (void)ctx;
    (void)slot;
    return n;
}

/* The loop is the same for all; a macro, so that no subject pays for a call through a pointer. */
#define HOLD(name, POP, PUSH)                                                        \
    static uint64_t name##_hold(size_t holds, size_t *turn)                          \
    {                                                                                \
        uint64_t hash = 0;                                                           \
                                                                                     \
        for (size_t i = 0; i < holds; i++) {                                         \
            struct due__slot s = POP;                                                \
            size_t t = (*turn)++;                                                    \
                                                                                     \
            hash = (hash ^ s.hi ^ s.lo) * UINT64_C(0x9e3779b97f4a7c15);              \
            s = due__slot_make(due__slot_deadline(s) + increment[t % INCREMENTS], 0, \
                               (uint32_t)t & DUE__ARRIVAL_MAX, due__slot_job(s));    \
            PUSH;                                                                    \
        }                                                                            \
        return hash;                                                                 \
    }

static void textbook_open(size_t n)
{
    textbook.slot = must(malloc((n + 1) * sizeof *textbook.slot));
    textbook.count = 0;
}

static void textbook_push_one(struct due__slot s)
{
    textbook_push(&textbook, s);
}

static void textbook_close(void)
{
    free(textbook.slot);
}

HOLD(textbook, textbook_pop(&textbook), textbook_push(&textbook, s))

static void tuned_open(size_t n)
{
    tuned_array = must(aligned_alloc(64, ((n + 2) * sizeof *tuned_array + 63) & ~(size_t)63));
    due__heap_init(&tuned, tuned_array, n);
}

static void tuned_push(struct due__slot s)
{
    due__heap_push(&tuned, s);
}

static void tuned_close(void)
{
    free(tuned_array);
}

HOLD(tuned, due__heap_pop(&tuned), due__heap_push(&tuned, s))

static void open_timeline(size_t n, due__keep_fn *keep, const void *ctx)
{
    due__alloc_init(&alloc, NULL);
    due__pool_init(&pool, &alloc);
    due__pool_adopt(&pool, must(due__region_new(&alloc, DUE__CHUNKS_AT_OPEN)));
    for (size_t places = 0; places < n; places += 4096)
        due__pool_adopt(&pool, must(due__region_new(&alloc, DUE__CHUNKS_PER_SPAN)));
    if (due__timeline_init(&timeline, &alloc, &pool, keep, ctx) != 0)
        must(NULL);
}

static void timeline_open(size_t n)
{
    open_timeline(n, keep_all, NULL);
}

static void timeline_push(struct due__slot s)
{
    if (!due__timeline_insert(&timeline, s))
        must(NULL);
}

static struct due__slot timeline_pop(void)
{
    while (!due__timeline_ready(&timeline))
        ;
    return due__timeline_pop(&timeline);
}

static void timeline_close(void)
{
    due__timeline_destroy(&timeline);
    due__pool_destroy(&pool);
}

HOLD(timeline, timeline_pop(), timeline_push(s))

static const struct subject subjects[] = {
    { "textbook", textbook_open, textbook_push_one, textbook_hold, textbook_close },
    { "heap", tuned_open, tuned_push, tuned_hold, tuned_close },
    { "timeline", timeline_open, timeline_push, timeline_hold, timeline_close },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* False: the subjects did not do the same work. */
static bool measure(size_t n, size_t runs)
{
    static double ns[SUBJECTS][RUNS_MAX];
    uint64_t hash[SUBJECTS] = { 0 };
    size_t turn[SUBJECTS] = { 0 };
    size_t holds = n < 1000000 ? 1000000 : n;

    if (n < 1000)
        holds = 10 * n;
    for (size_t i = 0; i < SUBJECTS; i++) {
        uint64_t state = 7;

        subjects[i].open(n);
        for (size_t job = 0; job < n; job++)
            subjects[i].push(due__slot_make(increment[random_next(&state) % INCREMENTS], 0,
                                            DUE__ARRIVAL_MAX, (uint32_t)job));
        hash[i] = subjects[i].hold(holds, &turn[i]);
    }
    for (size_t run = 0; run < runs; run++)
        for (size_t i = 0; i < SUBJECTS; i++) {
            int64_t begin = now_ns();

            hash[i] ^= subjects[i].hold(holds, &turn[i]);
            ns[i][run] = (double)(now_ns() - begin) / (double)holds;
        }
    for (size_t i = 0; i < SUBJECTS; i++) {
        qsort(ns[i], runs, sizeof ns[i][0], ascending);
        printf("hold n=%-9zu %-9s median %6.1f ns   p10 %6.1f   p90 %6.1f   runs %zu   "
               "ratio %.2f   hash %016llx\n",
               n, subjects[i].name, ns[i][runs / 2], ns[i][runs / 10], ns[i][runs - 1 - runs / 10],
               runs, ns[i][runs / 2] / ns[0][runs / 2], (unsigned long long)hash[i]);
        subjects[i].close();
    }
    fflush(stdout);
    return hash[0] == hash[1] && hash[0] == hash[2];
}

/* ---- Tenure ---------------------------------------------------------------------------------- */

static uint32_t *stamp; /* of each job: the arrival of its live slot */

static bool stamp_alive(const void *ctx, struct due__slot s)
{
    const uint32_t *of = ctx;

    return of[(size_t)due__slot_job(s) * 16] == due__slot_arrival(s);
}

static size_t keep_stamped(const void *ctx, struct due__slot *slot, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        slot[kept] = slot[i];
        kept += stamp_alive(ctx, slot[i]);
    }
    return kept;
}

struct longest {
    int64_t ns;
    size_t looked;
    size_t over; /* calls longer than 200 us */
    size_t calls;
};

static void note(struct longest *l, int64_t begin, size_t looked)
{
    int64_t ns = cpu_ns() - begin;

    looked = timeline.looked - looked;
    l->ns = ns > l->ns ? ns : l->ns;
    l->looked = looked > l->looked ? looked : l->looked;
    l->over += ns > 200000;
    l->calls++;
}

static void show(const char *name, const struct longest *l)
{
    printf("tenure %-7s longest %7.1f us   most slots %6zu   over 200 us %zu of %zu\n", name,
           (double)l->ns / 1e3, l->looked, l->over, l->calls);
}

/* n live slots, then 60 % of them cancelled; sweeps begin as the queue's would, in pieces of 256,
 * while jobs leave and come. */
static void tenure(size_t n)
{
    struct longest insert = { 0 }, ready = { 0 }, pop = { 0 }, sweep = { 0 };
    uint64_t state = 7;
    size_t dead = 0, left = n;
    bool sweeping = false;

    stamp = must(calloc(n, 16 * sizeof *stamp)); /* a line of its own, like a job's word */
    open_timeline(n, keep_stamped, stamp);
    for (uint32_t job = 0; job < n; job++) {
        int64_t begin = cpu_ns();
        size_t looked = timeline.looked;

        stamp[(size_t)job * 16] = job;
        timeline_push(
            due__slot_make(increment[random_next(&state) % INCREMENTS] * 3600, 0, job, job));
        note(&insert, begin, looked);
    }
    for (uint32_t job = 0; job < n; job++)
        if (random_next(&state) % 10 < 6) {
            stamp[(size_t)job * 16] = UINT32_MAX;
            dead++;
        }
    while (left > 0) {
        int64_t begin = cpu_ns();
        size_t looked = timeline.looked;
        struct due__slot s;
        bool is_ready = due__timeline_ready(&timeline);

        note(&ready, begin, looked);
        if (is_ready && due__timeline_count(&timeline) > 0) {
            begin = cpu_ns();
            looked = timeline.looked;
            s = due__timeline_pop(&timeline);
            note(&pop, begin, looked);
            left--;
            dead -= !stamp_alive(stamp, s);
        }
        if (sweeping || dead > due__timeline_count(&timeline) / 2) {
            size_t dropped = 0;

            begin = cpu_ns();
            looked = timeline.looked;
            sweeping = !due__timeline_sweep(&timeline, 256, &dropped);
            note(&sweep, begin, looked);
            left -= dropped;
            dead -= dropped;
        }
    }
    show("insert", &insert);
    show("ready", &ready);
    show("pop", &pop);
    show("sweep", &sweep);
    timeline_close();
    free(stamp);
}

int main(int argc, char **argv)
{
    bool quick = false, uniform = false, measure_tenure = false;
    bool same = true;

    for (int i = 1; i < argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0 || strcmp(argv[i], "--tiny") == 0;
        uniform |= strcmp(argv[i], "--uniform") == 0;
        measure_tenure |= strcmp(argv[i], "--tenure") == 0;
    }
    make_increments(uniform);
    if (measure_tenure) {
        tenure(quick ? 10000 : 10000000);
        return 0;
    }
    for (size_t n = quick ? 100 : 1000; n <= (quick ? 1000 : 10000000); n *= 10)
        same &= measure(n, quick ? 3 : n < 1000000 ? 9 : n < 10000000 ? 5 : 3);
    if (!same)
        puts("the hashes differ: not the same work");
    return same ? 0 : 1;
}
