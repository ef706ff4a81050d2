/* store_share_memory.c - the suite of shared stores on the store in memory. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/crew.h"
#include "lab/memory_store.h"
#include "store/share_suite.h"

struct place {
    struct memory_disk *disk;
    due_store *store; /* made last */
    _Atomic int64_t now_ns;
};

/* What was wrong with the suite itself is wrong with the test. */
static void fresh(void *ctx)
{
    struct place *p = ctx;

    if (p->disk != NULL)
        CREW_CHECK(memory_disk_wrong(p->disk) == NULL, ": %s", memory_disk_wrong(p->disk));
    memory_disk_free(p->disk);
    p->disk = memory_disk_new(NULL);
    p->now_ns = DUE_S(1700000000);
}

static due_store *make(void *ctx)
{
    struct place *p = ctx;

    p->store = memory_store_new(p->disk);
    return p->store;
}

static int64_t now(void *ctx)
{
    return ((struct place *)ctx)->now_ns;
}

static void pass(void *ctx, int64_t ns)
{
    ((struct place *)ctx)->now_ns += ns;
}

static void evict(void *ctx, due_store *store)
{
    (void)ctx;
    memory_store_evict(store);
}

static void swallow(void *ctx, due_store *store)
{
    (void)ctx;
    memory_store_swallow(store, true);
}

static void lose(void *ctx)
{
    memory_disk_lose(((struct place *)ctx)->disk, SIZE_MAX);
}

static void lose_last(void *ctx)
{
    memory_disk_lose(((struct place *)ctx)->disk, 1);
}

static void full(void *ctx, bool is_full)
{
    struct place *p = ctx;

    memory_store_forgive(p->store);
    for (int verb = MEMORY_PUT; is_full && verb <= MEMORY_WORK; verb++)
        memory_store_fault(p->store, (struct memory_fault){ .verb = (enum memory_verb)verb,
                                                            .times = MEMORY_ALWAYS,
                                                            .kind = MEMORY_FULL });
}

static void doubt(void *ctx, due_store *store, bool work, bool lands)
{
    (void)ctx;
    memory_store_fault(
        store, (struct memory_fault){ .verb = work ? MEMORY_WORK : MEMORY_PUT,
                                      .kind = lands ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
}

int main(void)
{
    struct place place = { .now_ns = 0 };
    struct share_maker maker = { .store = { .name = "memory store",
                                            .make = make,
                                            .ctx = &place,
                                            .fresh = fresh,
                                            .full = full },
                                 .one_time = true,
                                 .knows_deaths = true,
                                 .now = now,
                                 .pass = pass,
                                 .evict = evict,
                                 .swallow = swallow,
                                 .lose = lose,
                                 .lose_last = lose_last,
                                 .doubt = doubt };

    crew_watchdog("store_share_memory", 280);
    maker.by_rank = getenv("STORE_SUITE_BY_RANK") != NULL;
    int failed = share_suite_run(&maker, getenv("STORE_SUITE_ONLY"));
    fresh(&place);
    memory_disk_free(place.disk);
    return failed;
}
