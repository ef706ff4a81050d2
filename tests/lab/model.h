/* model.h - random scripts against a model, and the shortest one that fails.
 *
 * A script is a list of steps.  Every step has a meaning in every state (numbers are taken modulo
 * what is there), so any part of a script is a script, and a failing one can be cut down by
 * leaving parts out.  A test gives one function that runs a script from an empty state and says
 * at which step it failed.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model_step {
    uint32_t verb;
    uint32_t n;
    uint64_t value;
};

/* The step that failed, or @count.  @pattern is that of the whole script. */
typedef size_t model_run_fn(const struct model_step *step, size_t count, unsigned pattern);

struct model_options {
    uint64_t ops;
    uint64_t seed;
};

/* --ops N, --seed S */
static inline struct model_options model_options(int argc, char **argv, uint64_t ops)
{
    struct model_options o = { .ops = ops, .seed = 1 };

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--ops") == 0)
            o.ops = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            o.seed = strtoull(argv[i + 1], NULL, 10);
    }
    return o;
}

/* A mixing counter: good enough for scripts, the same everywhere. */
static inline uint64_t model_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
    z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ z >> 32;
}

static inline uint64_t model_below(uint64_t *state, uint64_t n)
{
    return model_random(state) % n;
}

/* Leaves out what is not needed for the failure, in ever smaller parts; the new length. */
static inline size_t model_shrink(struct model_step *step, size_t count, unsigned pattern,
                                  model_run_fn *run)
{
    struct model_step *part = malloc(count * sizeof *part);

    if (part == NULL)
        return count;
    for (size_t cut = count / 2; cut > 0; cut /= 2)
        for (size_t at = 0; at + cut <= count;) {
            size_t left = count - cut;

            memcpy(part, step, at * sizeof *part);
            memcpy(part + at, step + at + cut, (left - at) * sizeof *part);
            if (left > 0 && run(part, left, pattern) < left) {
                memcpy(step, part, left * sizeof *part);
                count = left;
            } else {
                at += cut;
            }
        }
    for (size_t i = 0; i < count; i++) /* then smaller numbers */
        while (step[i].n > 1) {
            uint32_t n = step[i].n;

            step[i].n = n / 2;
            if (run(step, count, pattern) == count) {
                step[i].n = n;
                break;
            }
        }
    free(part);
    return count;
}

/* Runs the script; on failure prints seed, pattern and the shortest failing script. */
static inline bool model_try(struct model_step *step, size_t count, unsigned pattern, uint64_t seed,
                             const char *const *verbs, model_run_fn *run)
{
    size_t failed = run(step, count, pattern);

    if (failed == count)
        return true;
    printf("failed: seed %llu pattern %u step %zu of %zu; shortest script:\n",
           (unsigned long long)seed, pattern, failed, count);
    count = model_shrink(step, failed + 1, pattern, run);
    for (size_t i = 0; i < count && i < 200; i++)
        printf("  %-10s n=%u value=%llu\n", verbs[step[i].verb], step[i].n,
               (unsigned long long)step[i].value);
    return false;
}

#endif
