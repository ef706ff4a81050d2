/* books_names.c - jobs by number, and by id. */
#include "books.h"

#include <string.h>

#include "machine.h"
#include "world.h"

#define SLOTS (2 * BOOKS_JOBS)

static const struct plan *plan;
static struct book all_jobs[PLAN_QUEUES][BOOKS_JOBS];
static struct book *jobs; /* of these */
static uint64_t count;
static uint16_t all_by_id[PLAN_QUEUES][SLOTS];
static uint16_t *by_id; /* of these: number; 0: nothing */

void books_names_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(jobs);
    WORLD_KEEP(count);
    WORLD_KEEP(by_id);
    plan = p;
    jobs = all_jobs[world_now()];
    by_id = all_by_id[world_now()];
    memset(jobs, 0, count * sizeof jobs[0]);
    if (count > 0)
        memset(by_id, 0, SLOTS * sizeof by_id[0]);
    count = 0;
}

uint64_t books_count(void)
{
    return count;
}

uint64_t books_new(void)
{
    if (count == BOOKS_JOBS)
        machine_fail("too many jobs for the books");
    jobs[count].due_by_ns = DUE_FOREVER;
    rounds_new(&jobs[count]);
    return ++count;
}

struct book *books_job(uint64_t number)
{
    return number >= 1 && number <= count ? &jobs[number - 1] : NULL;
}

uint64_t books_number(const struct book *b)
{
    return (uint64_t)(b - jobs) + 1;
}

void books_each_unmet(void (*what)(struct book *b))
{
    for (uint64_t i = 0; i < count; i++)
        if (!jobs[i].met)
            what(&jobs[i]);
}

static uint16_t *slot_of(due_id id)
{
    uint64_t word;

    memcpy(&word, id.byte + 6, sizeof word);
    size_t at = (size_t)model_random(&word) % SLOTS;
    while (by_id[at] != 0 && !due_id_equal(jobs[by_id[at] - 1].id, id))
        at = (at + 1) % SLOTS;
    return &by_id[at];
}

struct book *books_find(due_id id)
{
    return books_job(*slot_of(id));
}

struct book *books_meet(uint64_t number, due_id id)
{
    uint16_t *slot = slot_of(id);
    struct book *b = books_job(number);

    if (*slot != 0)
        return books_job(*slot);
    if (b != NULL && b->met && plan_has(plan, KIND_STORED))
        return b; /* the ledger knows more of what comes back */
    if (b == NULL || b->met)
        machine_fail("number %llu comes with an id that nobody was told",
                     (unsigned long long)number);
    b->met = true;
    b->id = id;
    *slot = (uint16_t)number;
    return b;
}
