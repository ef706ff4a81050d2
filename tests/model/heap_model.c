/* heap_model.c - the heap against a sorted array.
 *
 * All permutations of up to eight slots, then random scripts of pushes, pops and builds; the slow
 * check runs after every step.
 *
 *   heap_model [--ops N] [--seed S]     exit 0 or 1
 */
#include "timeline/heap.h"
#include "lab/model.h"

enum { ROOM = 600 };

enum pattern { RANDOM, EQUAL_DEADLINES, RISING, FALLING, TWO_VALUES, PATTERNS };

enum verb { PUSH, POP, APPEND, DRAIN, VERBS };

static const char *const verbs[VERBS] = { "push", "pop", "append", "drain" };

static _Alignas(64) struct due__slot array[ROOM + 1];
static struct due__heap heap;
static struct due__slot sorted[ROOM];
static size_t count;
static uint32_t arrival;

static struct due__slot make(unsigned pattern, uint64_t r)
{
    int64_t deadline = (int64_t)(r >> 1);

    arrival = (arrival + 1) & DUE__ARRIVAL_MAX;
    if (pattern == EQUAL_DEADLINES)
        deadline = 77;
    else if (pattern == RISING)
        deadline = arrival;
    else if (pattern == FALLING)
        deadline = (int64_t)DUE__ARRIVAL_MAX - arrival;
    else if (pattern == TWO_VALUES)
        deadline = (int64_t)(r % 2);
    return due__slot_make(deadline, (unsigned)(r >> 32) % 256, arrival, arrival);
}

static void remember(struct due__slot s)
{
    size_t at = count++;

    for (; at > 0 && due__slot_before(s, sorted[at - 1]); at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = s;
}

static bool pop(void)
{
    struct due__slot top = due__heap_top(&heap);
    struct due__slot s = due__heap_pop(&heap);
    bool right = due__slot_same(s, sorted[0]) && due__slot_same(top, s);

    memmove(sorted, sorted + 1, --count * sizeof *sorted);
    return right && heap.count == count && due__heap_check(&heap);
}

static bool step(const struct model_step *step, unsigned pattern)
{
    uint64_t state = step->value;

    for (uint32_t i = 0; i < step->n; i++) {
        struct due__slot s = make(pattern, model_random(&state));

        if ((step->verb == POP || step->verb == DRAIN) && count > 0) {
            if (!pop())
                return false;
        } else if ((step->verb == PUSH || step->verb == APPEND) && count < ROOM) {
            remember(s);
            if (step->verb == PUSH)
                due__heap_push(&heap, s);
            else
                due__heap_append(&heap, s);
        }
        if (step->verb == PUSH && !due__heap_check(&heap))
            return false;
    }
    if (step->verb == APPEND)
        due__heap_build(&heap);
    return due__heap_check(&heap) && heap.count == count;
}

static size_t run(const struct model_step *steps, size_t n, unsigned pattern)
{
    count = 0;
    arrival = 0;
    due__heap_init(&heap, array, ROOM);
    for (size_t i = 0; i < n; i++)
        if (!step(&steps[i], pattern))
            return i;
    while (count > 0)
        if (!pop())
            return 0;
    return n;
}

/* Every order of pushing 0 ... n-1, and of appending them, comes out sorted. */
static bool permutation(const unsigned *order, size_t n)
{
    for (int built = 0; built < 2; built++) {
        due__heap_init(&heap, array, n);
        count = 0;
        for (size_t i = 0; i < n; i++) {
            struct due__slot s = due__slot_make((int64_t)(order[i] / 2), 0, order[i], order[i]);

            remember(s);
            if (built)
                due__heap_append(&heap, s);
            else
                due__heap_push(&heap, s);
        }
        if (built)
            due__heap_build(&heap);
        if (!due__heap_check(&heap))
            return false;
        while (count > 0)
            if (!pop())
                return false;
    }
    return true;
}

static bool permute(unsigned *order, size_t at, size_t n)
{
    if (at == n)
        return permutation(order, n);
    for (size_t i = at; i < n; i++) {
        unsigned other = order[i];

        order[i] = order[at];
        order[at] = other;
        if (!permute(order, at + 1, n))
            return false;
        order[at] = order[i];
        order[i] = other;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 1000000);
    static struct model_step script[300];
    uint64_t done = 0;

    for (size_t n = 0; n <= 8; n++) {
        unsigned order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

        if (!permute(order, 0, n)) {
            printf("failed: a permutation of %zu\n", n);
            return 1;
        }
    }
    for (uint64_t seed = o.seed; done < o.ops; seed++) {
        uint64_t state = seed;
        unsigned pattern = (unsigned)model_below(&state, PATTERNS);
        size_t steps = 1 + (size_t)model_below(&state, 300);

        for (size_t i = 0; i < steps; i++) {
            uint64_t pick = model_below(&state, 32);

            script[i].verb = pick < 15 ? PUSH : pick < 29 ? POP : pick < 31 ? APPEND : DRAIN;
            script[i].n = 1 + (uint32_t)model_below(&state, script[i].verb == DRAIN ? ROOM : 8);
            script[i].value = model_random(&state);
            done += script[i].n;
        }
        if (!model_try(script, steps, pattern, seed, verbs, run))
            return 1;
    }
    return 0;
}
