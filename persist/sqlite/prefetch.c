/* prefetch.c - jobs that a load has read already, and shows in one of its next calls. */
#include "sqlite/prefetch.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MIN ((size_t)64 << 10)
#define SLOTS_MIN 256

void due__sqlite_prefetch_begin(struct due__sqlite_prefetch *p, size_t most)
{
    if (p->n > 0)
        memset(p->changed, 0, p->slots * sizeof *p->changed);
    p->used = p->n = 0;
    p->most = most;
    p->lost = false;
}

void due__sqlite_prefetch_free(struct due__sqlite_prefetch *p)
{
    free(p->bytes);
    free(p->changed);
    *p = (struct due__sqlite_prefetch){ .bytes = NULL };
}

/* ---- Rows ------------------------------------------------------------------------------------ */

size_t due__sqlite_prefetch_room(const struct due__sqlite_prefetch *p)
{
    bool full = p->most - p->used < sizeof(struct due__sqlite_row) + DUE__SQLITE_PREFETCH_RECORD;

    return full ? 0 : DUE__SQLITE_PREFETCH_RECORD;
}

static bool prefetch_grow(struct due__sqlite_prefetch *p, size_t need)
{
    size_t room = p->room == 0 ? BYTES_MIN : p->room;

    while (room < need)
        room *= 2;
    if (room == p->room)
        return true;
    unsigned char *more = realloc(p->bytes, room);
    if (more == NULL)
        return false;
    p->bytes = more;
    p->room = room;
    return true;
}

size_t due__sqlite_prefetch_add(struct due__sqlite_prefetch *p, sqlite3_stmt *statement)
{
    struct due__sqlite_row row = due__sqlite_row_of(statement);
    size_t at = p->used;

    if (row.record == NULL || row.len > due__sqlite_prefetch_room(p) ||
        sqlite3_column_type(statement, DUE__SQLITE_DIED) != SQLITE_NULL ||
        !prefetch_grow(p, at + sizeof row + row.len))
        return 0;
    memcpy(p->bytes + at, &row, sizeof row);
    memcpy(p->bytes + at + sizeof row, row.record, row.len);
    p->used = at + sizeof row + row.len;
    return at + 1;
}

/* ---- Changes --------------------------------------------------------------------------------- */

/* An id's last byte is zero; here it is not, since a free slot is. */
static due_id marked(due_id id)
{
    id.byte[DUE_STORE_ID_BYTES] = 1;
    return id;
}

/* Where it is, or would be. */
static due_id *changed_slot(const struct due__sqlite_prefetch *p, due_id id)
{
    static const due_id none = { { 0 } };
    uint64_t hash = 0;

    memcpy(&hash, id.byte + DUE_STORE_ID_BYTES - sizeof hash, sizeof hash);
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = (size_t)(hash >> 32);; i++) {
        due_id *slot = &p->changed[i & (p->slots - 1)];

        if (due_id_equal(*slot, none) || due_id_equal(*slot, id))
            return slot;
    }
}

/* One slot of two stays free. */
static bool changed_grow(struct due__sqlite_prefetch *p)
{
    struct due__sqlite_prefetch to = { .slots = p->slots == 0 ? SLOTS_MIN : 2 * p->slots };

    if (p->n < p->slots / 2)
        return true;
    to.changed = calloc(to.slots, sizeof *to.changed);
    if (to.changed == NULL)
        return false;
    for (size_t i = 0; i < p->slots; i++) {
        if (p->changed[i].byte[DUE_STORE_ID_BYTES] != 0)
            *changed_slot(&to, p->changed[i]) = p->changed[i];
    }
    free(p->changed);
    p->changed = to.changed;
    p->slots = to.slots;
    return true;
}

void due__sqlite_prefetch_changed(struct due__sqlite_prefetch *p, due_id id)
{
    if (p->used == 0 || p->lost)
        return;
    if (!changed_grow(p)) {
        p->lost = true;
        return;
    }
    due_id *slot = changed_slot(p, marked(id));
    p->n += !due_id_equal(*slot, marked(id));
    *slot = marked(id);
}

bool due__sqlite_prefetch_get(const struct due__sqlite_prefetch *p, size_t at, due_id id,
                              struct due__sqlite_row *row)
{
    if (at == 0 || p->lost || (p->n > 0 && due_id_equal(*changed_slot(p, marked(id)), marked(id))))
        return false;
    memcpy(row, p->bytes + at - 1, sizeof *row);
    row->record = p->bytes + at - 1 + sizeof *row;
    return true;
}
