/* arena.c - a snapshot of memory, by pages.
 *
 * When setup is over all pages are made read-only.  The first write to a page copies it aside and
 * makes it writable for good; a reset copies the copies back.  So a reset costs what the executions
 * write, not what setup has made.
 */
#define _GNU_SOURCE
#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE        4096u
#define ARENA_BYTES (64u << 20)
#define DIRTY_MAX   4096u

static unsigned char *memory;
static unsigned char *copies;
static uint32_t dirty[DIRTY_MAX]; /* page numbers; their copies lie in the same order */
static size_t dirty_count;
static size_t used;
static size_t kept;
static bool locked;

static void *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);

    if (at == MAP_FAILED) {
        perror("explore: arena");
        exit(2);
    }
    return at;
}

void arena_open(void)
{
    if (memory == NULL)
        copies = map((size_t)DIRTY_MAX * PAGE);
    else
        munmap(memory, ARENA_BYTES);
    memory = map(ARENA_BYTES);
    dirty_count = used = kept = 0;
    locked = false;
}

void arena_keep(void)
{
    kept = used;
    locked = true;
    mprotect(memory, ARENA_BYTES, PROT_READ);
}

void arena_reset(void)
{
    for (size_t i = 0; i < dirty_count; i++)
        memcpy(memory + (size_t)dirty[i] * PAGE, copies + i * PAGE, PAGE);
    used = kept;
}

void *arena_new(size_t size)
{
    size_t align = size >= PAGE ? PAGE : 64;
    size_t at = (used + align - 1) & ~(align - 1);

    if (size > ARENA_BYTES - at) {
        fprintf(stderr, "explore: the arena is used up\n");
        exit(2);
    }
    used = at + size;
    return memory + at; /* beyond what is kept it is zero again after each reset */
}

bool arena_fault(void *address)
{
    size_t at = (size_t)((unsigned char *)address - memory);

    if (!locked || (unsigned char *)address < memory || at >= ARENA_BYTES)
        return false;
    if (dirty_count == DIRTY_MAX) {
        fprintf(stderr, "explore: an execution writes too many pages\n");
        exit(2);
    }
    at -= at % PAGE;
    memcpy(copies + dirty_count * PAGE, memory + at, PAGE);
    dirty[dirty_count++] = (uint32_t)(at / PAGE);
    return mprotect(memory + at, PAGE, PROT_READ | PROT_WRITE) == 0;
}
