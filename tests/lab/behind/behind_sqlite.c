/* behind_sqlite.c - a store in a file behind every memory disk, with LAB_STORE=sqlite. */
#include <stdlib.h>

#include "lab/memory_behind.h"
#include "lab/memory_jobs.h"
#include "lab/sqlite/sqlite_place.h"

static void *behind_place(void)
{
    struct sqlite_place *p = memory_need(malloc(sizeof *p));

    sqlite_place_open(p);
    p->options.durability = DUE_DURABLE_NONE;
    return p;
}

static void behind_remove(void *place)
{
    sqlite_place_close(place);
    free(place);
}

static struct memory_behind_maker behind_sqlite = { .name = "sqlite",
                                                    .place = behind_place,
                                                    .make = sqlite_place_store,
                                                    .fresh = sqlite_place_fresh,
                                                    .remove = behind_remove };

__attribute__((constructor)) static void behind_begin(void)
{
    memory_behind_offer(&behind_sqlite);
}
