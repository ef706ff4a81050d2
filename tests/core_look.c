/* core_look.c - looks through the memory of another process that the kernel would dump. */
#define _GNU_SOURCE
#include "core_look.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 20)

void core_spell(const char *as, char text[CORE_SECRET + 1])
{
    for (int i = 0; i < CORE_SECRET; i++)
        ((volatile char *)text)[i] = (char)(as[i] - 1);
    text[CORE_SECRET] = '\0';
}

static unsigned times(const char *bytes, size_t n, const char *what)
{
    unsigned found = 0;

    for (const char *at = bytes;
         (at = memmem(at, n - (size_t)(at - bytes), what, CORE_SECRET)) != NULL; at++)
        found++;
    return found;
}

/* The pages from @from to @to; pieces overlap by less than what is looked for. */
static void look_at(struct core_look *l, uint64_t from, uint64_t to)
{
    static char bytes[CHUNK];

    for (uint64_t at = from; at < to;) {
        size_t most = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
        ssize_t n = pread(l->memory, bytes, most, (off_t)at);

        if (n < CORE_SECRET)
            return; /* none that could be dumped */
        l->bytes += (uint64_t)n;
        l->canaries += times(bytes, (size_t)n, l->canary);
        l->controls += times(bytes, (size_t)n, l->control);
        if (at + (uint64_t)n >= to)
            return;
        at += (uint64_t)n - (CORE_SECRET - 1);
    }
}

bool core_look_through(struct core_look *l, pid_t pid)
{
    char path[64];
    char line[512];
    uint64_t from = 0;
    uint64_t to = 0;
    char may = '-';

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    l->memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *maps = fopen(path, "r");
    if (l->memory < 0 || maps == NULL)
        return false;
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strncmp(line, "VmFlags:", 8) != 0) {
            uint64_t a, b;
            char c;
            if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &a, &b, &c) == 3) {
                from = a;
                to = b;
                may = c;
            }
        } else if (may == 'r' && strstr(line, " dd") == NULL && strstr(line, " io") == NULL) {
            look_at(l, from, to);
        }
    }
    fclose(maps);
    close(l->memory);
    return true;
}
