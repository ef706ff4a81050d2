/* machine_memory.c - the atomic operations of the library, each a step; and allocations.
 *
 * A relaxed or release store may stay in its fibre's buffer for a while, as x86 keeps it: the fibre
 * itself sees it, others do not yet.  Here it is written at once, and what was there is remembered:
 * that is what others' atomic loads see, until the store has left the buffer.  So plain reads of
 * one's own stores are right, and those of others are behind a lock, which empties the buffer.  A
 * sequentially consistent operation empties it too, and so does a sleep; else the oldest stores go
 * at random.  The explorer does more, and tries each moment (tests/explore/memory.c).
 *
 * What is freed is filled with bytes that make no sense, so that whoever goes on using it fails:
 * its first bytes, and of a queue what stands in front of its shards.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "machine.h"

/* ---- Bytes ---- */

static uint64_t bytes_read(const volatile void *p, unsigned size)
{
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)p;
    case 2:
        return *(const volatile uint16_t *)p;
    case 4:
        return *(const volatile uint32_t *)p;
    default:
        return *(const volatile uint64_t *)p;
    }
}

static void bytes_write(volatile void *p, unsigned size, uint64_t value)
{
    switch (size) {
    case 1:
        *(volatile uint8_t *)p = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)p = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)p = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)p = value;
        break;
    }
}

static void look_at(const volatile void *p);

static uint64_t cut(uint64_t value, unsigned size)
{
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* ---- Buffers ---- */

/* The oldest @n are seen by all from now on. */
static void show_oldest(struct fiber *f, unsigned n)
{
    f->held_count -= n;
    machine.held -= n;
    memmove(f->held, f->held + n, f->held_count * sizeof f->held[0]);
}

void memory_empty(void)
{
    if (machine.me != NULL && machine.me->held_count > 0)
        show_oldest(machine.me, machine.me->held_count);
}

void memory_empty_all(void)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (f->held_count > 0)
            show_oldest(f, f->held_count);
    }
}

/* Some of somebody's. */
static void show_some(void)
{
    struct fiber *f = &machine.fiber[machine_below(machine.fibers)];

    if (f->held_count > 0)
        show_oldest(f, 1 + (unsigned)machine_below(f->held_count));
}

/* Where another fibre has a store to @p in its buffer; NULL: nobody has. */
static struct fiber *holder(const volatile void *p, unsigned *at)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        for (*at = 0; *at < f->held_count && f != machine.me; (*at)++)
            if (f->held[*at].p == p)
                return f;
    }
    return NULL;
}

/* What others have stored there comes before what is stored now. */
static void show_all(const volatile void *p)
{
    struct fiber *f;
    unsigned at;

    while ((f = holder(p, &at)) != NULL)
        show_oldest(f, at + 1);
}

/* ---- The operations ---- */

/* @at: what is about to be changed; NULL: it is only read, and which of two places is read first
 * may be up to the compiler. */
static void step(const struct explore_site *at)
{
    machine_step();
    if (machine.o.back_every != 0)
        machine_hold_back(at);
}

uint64_t explore_load(const volatile void *p, unsigned size, const struct explore_site *at)
{
    unsigned place;

    (void)at;
    step(NULL);
    look_at(p);
    if (machine.held == 0)
        return bytes_read(p, size);
    if (machine_chance(machine.o.linger_every))
        show_some();
    const struct fiber *f = holder(p, &place);
    return f != NULL ? f->held[place].was : bytes_read(p, size);
}

void explore_store(volatile void *p, unsigned size, uint64_t value, const struct explore_site *at)
{
    struct fiber *me = machine.me;

    step(at);
    look_at(p);
    if (machine.held > 0)
        show_all(p);
    if (machine.running && (me->held_count > 0 || machine_chance(machine.o.hold_every))) {
        if (me->held_count == BUFFER_MAX)
            show_oldest(me, 1);
        me->held[me->held_count++] = (struct held){ p, bytes_read(p, size) };
        machine.held++;
    }
    bytes_write(p, size, value);
}

static uint64_t changed(enum explore_op op, uint64_t old, uint64_t value)
{
    switch (op) {
    case EXPLORE_ADD:
    case EXPLORE_ADD_RELAXED:
        return old + value;
    case EXPLORE_SUB:
        return old - value;
    case EXPLORE_OR:
        return old | value;
    case EXPLORE_AND:
        return old & value;
    default:
        return value;
    }
}

uint64_t explore_change(volatile void *p, unsigned size, enum explore_op op, uint64_t value,
                        const struct explore_site *at)
{
    step(at);
    look_at(p);
    if (machine.held > 0) {
        if (op != EXPLORE_ADD_RELAXED)
            memory_empty();
        show_all(p);
    }
    uint64_t old = bytes_read(p, size);

    bytes_write(p, size, changed(op, old, value));
    return old;
}

bool explore_swap(volatile void *p, unsigned size, uint64_t *expected, uint64_t value,
                  const struct explore_site *at)
{
    step(at);
    look_at(p);
    if (machine.held > 0) {
        memory_empty();
        show_all(p);
    }
    uint64_t found = bytes_read(p, size);
    bool same = found == cut(*expected, size);

    if (same)
        bytes_write(p, size, value);
    *expected = found;
    return same;
}

/* ---- Allocations: powers of two, each kind with a list of what is free ---- */

#define ARENA_BYTES (1u << 30)
#define KINDS       26u /* from 64 bytes on */
#define POISON      512u
#define SPOILT      8192u
#define LINE        64u
#define ALIVE       UINT32_C(0x600dda7a)
#define DEAD        UINT32_C(0xdeadda7a)

/* In front of each block; a cache line, for the sake of alignment. */
struct head {
    uint32_t state;
    uint32_t kind;
    size_t size;
    const void *owner; /* the queue's counter; NULL: nobody's */
    struct head *next; /* of those that are free */
    char apart[64 - 32];
};

static unsigned char *arena;
static unsigned char *alive; /* of each LINE of it */
static size_t used;
static struct head *free_list[KINDS];

void memory_begin(void)
{
    if (arena == NULL)
        arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) {
        perror("simulate: arena");
        exit(2);
    }
    if (alive == NULL)
        alive = mmap(NULL, ARENA_BYTES / LINE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (alive == MAP_FAILED) {
        perror("simulate: arena");
        exit(2);
    }
    memset(alive, 0, used / LINE);
    used = 0;
    memset(free_list, 0, sizeof free_list);
}

/* Whoever reads or writes there by an atomic operation has to find it alive. */
static void look_at(const volatile void *p)
{
    size_t at = (size_t)((const volatile unsigned char *)p - arena);

    if (at < used && !alive[at / LINE])
        machine_fail("memory is touched that was given back");
}

static void mark(const void *memory, size_t size, bool on)
{
    size_t at = (size_t)((const unsigned char *)memory - arena);

    memset(alive + at / LINE, on, (size + LINE - 1) / LINE);
}

static void *block_new(size_t size)
{
    uint32_t kind = 0;

    while (((size_t)64 << kind) < size)
        kind++;
    struct head *h = kind < KINDS ? free_list[kind] : NULL;
    if (h != NULL) {
        free_list[kind] = h->next;
    } else {
        size_t whole = sizeof *h + ((size_t)64 << kind);

        if (kind >= KINDS || whole > ARENA_BYTES - used) {
            machine_fail("%zu bytes are wanted, and %zu are out", size, used);
            fprintf(stderr, "simulate: the arena is used up\n"); /* by none of its threads */
            exit(2);
        }
        h = (struct head *)(void *)(arena + used);
        used += whole;
    }
    *h = (struct head){ .state = ALIVE, .kind = kind, .size = size };
    mark(h + 1, size, true);
    return h + 1;
}

static void block_free(void *memory, uint64_t *freed)
{
    struct head *h = (struct head *)memory - 1;

    memory_empty(); /* what others may put there is theirs */
    if (h->state != ALIVE)
        machine_fail("freed twice, or never allocated: %zu bytes", h->size);
    *freed = h->size;
    memset(memory, 0xdb, h->size < POISON ? h->size : POISON);
    mark(memory, h->size, false);
    h->state = DEAD;
    h->next = free_list[h->kind];
    free_list[h->kind] = h;
}

void memory_spoil(void *memory)
{
    const struct head *h = (const struct head *)memory - 1;

    if (h->state == DEAD)
        memset(memory, 0xdb, h->size < SPOILT ? h->size : SPOILT);
}

void *memory_new(size_t size)
{
    void *memory = block_new(size);

    memset(memory, 0, size);
    return memory;
}

void memory_free(void *memory)
{
    uint64_t freed;

    if (memory != NULL)
        block_free(memory, &freed);
}

size_t memory_size(const void *memory)
{
    return ((const struct head *)memory - 1)->size;
}

static void *hook_alloc(void *ctx, size_t size)
{
    uint64_t *live = ctx;

    if (machine.running && machine.plenty == 0 && machine_chance(machine.o.no_memory_every))
        return NULL;
    void *memory = block_new(size);
    memset(memory, 0xa5, size < POISON ? size : POISON);
    ((struct head *)memory - 1)->owner = live;
    ++*live;
    return memory;
}

static void hook_free(void *ctx, void *memory, size_t size)
{
    uint64_t *live = ctx;
    uint64_t freed;

    if (((struct head *)memory - 1)->owner != live)
        machine_fail("%zu bytes of another queue are freed", size);
    block_free(memory, &freed);
    --*live;
    if (freed != size)
        machine_fail("%llu bytes are freed as %zu", (unsigned long long)freed, size);
}

due_allocator machine_allocator(uint64_t *live)
{
    return (due_allocator){ .alloc = hook_alloc, .free = hook_free, .ctx = live };
}
