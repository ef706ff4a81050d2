/* holds.c - the jobs that this process holds, and when their leases end on the server.
 *
 * The queue names a job's lease by the stamp of its claim, which stays the same while the lease is
 * extended and rises from holder to holder.  The server compares the end of the lease.  An open
 * hash with linear probing; what is removed closes its gap.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/share/share.h"

#define ROOM 64

/* The last eight bytes run, the last of them fastest: it has to be the lowest of the number, since
 * a product carries upwards only. */
static size_t slot_of(const struct due__share_holds *h, due_id id)
{
    uint64_t runs = 0;

    for (size_t i = DUE_STORE_ID_BYTES - 8; i < DUE_STORE_ID_BYTES; i++)
        runs = runs << 8 | id.byte[i];
    return (size_t)((runs * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (h->room - 1);
}

static bool is(const struct due__share_hold *at, due_id id)
{
    return at->held != 0 && memcmp(at->id.byte, id.byte, DUE_STORE_ID_BYTES) == 0;
}

struct due__share_hold *due__hold_find(const struct due__share_holds *h, due_id id)
{
    if (h->room == 0)
        return NULL;
    for (size_t i = slot_of(h, id); h->at[i].held != 0; i = (i + 1) & (h->room - 1))
        if (is(&h->at[i], id))
            return &h->at[i];
    return NULL;
}

static void place(struct due__share_holds *h, struct due__share_hold hold)
{
    size_t i = slot_of(h, hold.id);

    while (h->at[i].held != 0)
        i = (i + 1) & (h->room - 1);
    h->at[i] = hold;
    h->n++;
}

/* Into twice the room, or the same if many are old. */
static bool make_room(struct due__share_holds *h, int64_t old_us)
{
    size_t live = 0;
    struct due__share_holds other = { 0 };

    for (size_t i = 0; i < h->room; i++)
        live += h->at[i].held != 0 && h->at[i].end_us >= old_us;
    other.room = h->room == 0 ? ROOM : live * 4 < h->room ? h->room : 2 * h->room;
    other.at = calloc(other.room, sizeof *other.at);
    if (other.at == NULL)
        return false;
    for (size_t i = 0; i < h->room; i++)
        if (h->at[i].held != 0 && h->at[i].end_us >= old_us)
            place(&other, h->at[i]);
    free(h->at);
    *h = other;
    return true;
}

bool due__hold_add(struct due__share_holds *h, struct due__share_hold hold, int64_t old_us)
{
    struct due__share_hold *at = due__hold_find(h, hold.id);

    if (at != NULL) {
        *at = hold;
        return true;
    }
    if (2 * (h->n + 1) > h->room && !make_room(h, old_us))
        return false;
    place(h, hold);
    return true;
}

size_t due__holds_live(const struct due__share *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->holds.room; i++)
        n += h->holds.at[i].held != 0 && h->holds.at[i].end_us > h->now_us;
    return n;
}

void due__hold_remove(struct due__share_holds *h, due_id id)
{
    struct due__share_hold *at = due__hold_find(h, id);

    if (at == NULL)
        return;
    size_t mask = h->room - 1;
    size_t gap = (size_t)(at - h->at);

    for (size_t i = (gap + 1) & mask; h->at[i].held != 0; i = (i + 1) & mask) {
        size_t home = slot_of(h, h->at[i].id);
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            h->at[gap] = h->at[i];
            gap = i;
        }
    }
    h->at[gap].held = 0;
    h->n--;
}
