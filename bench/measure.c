/* measure.c - see measure.h. */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

uint64_t measure_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

bool measure_option(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}

static void *count_alloc(void *bytes, size_t size)
{
    *(size_t *)bytes += size;
    return malloc(size);
}

static void count_free(void *bytes, void *memory, size_t size)
{
    *(size_t *)bytes -= size;
    free(memory);
}

due_allocator measure_memory(size_t *bytes)
{
    *bytes = 0;
    return (due_allocator){ count_alloc, count_free, bytes };
}
