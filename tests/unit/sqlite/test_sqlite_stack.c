/* Each public function runs on 32 KiB of stack with a store in a file, as due/sqlite.h says: who
 * calls may be the one who writes for all, and SQLite takes most of it. */
#define _GNU_SOURCE
#include "lab/stack_script.h"

#include "lab/sqlite/sqlite_place.h"

#ifndef STACK_SANITIZED
Test(sqlite_stack, of_32_kib_is_enough_for_every_call, .timeout = 60)
{
    struct sqlite_place place;

    sqlite_place_open(&place);
    threads_have(2 * STACK);
    on_a_stack(2 * STACK, DUE_PROXIES_ADAPTIVE, sqlite_place_store(&place));
    sqlite_place_close(&place);
}
#endif
