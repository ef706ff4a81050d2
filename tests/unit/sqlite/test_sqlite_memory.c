/* What the store keeps in memory between two calls. */
#include <criterion/criterion.h>

#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/session.h"

Test(sqlite_memory, what_a_large_payload_took_is_given_back_after_its_batch, .timeout = 20)
{
    static const char large[1 << 20];
    struct sqlite_desk desk;

    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    due_change change = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(1) };
    change.record.data = large;
    change.record.len = sizeof large;
    cr_assert_eq(sqlite_desk_commit(&desk, &change, DUE_S(5)), 0);
    const struct due__sqlite *inside = (const struct due__sqlite *)(const void *)desk.store;
    cr_expect_leq(inside->scratch.room, DUE__SCRATCH_KEEP);
    sqlite_desk_end(&desk);
}
