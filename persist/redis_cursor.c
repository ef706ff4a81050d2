/* redis_cursor.c - where the reading back stands in a topic, while batches move what is around
 * it. */
#include "redis_store.h"

#include <stdlib.h>
#include <string.h>

int due__cursor_compare(int64_t score, const unsigned char *id, const struct due__redis_cursor *c)
{
    if (score != c->score)
        return score < c->score ? -1 : 1;
    return memcmp(id, c->id.byte, DUE_STORE_ID_BYTES);
}

static bool is_behind(const struct due__redis_load *l, int64_t until_ns, due_id id)
{
    return l->cursor.set &&
           due__cursor_compare(due__redis_score(until_ns), id.byte, &l->cursor) <= 0;
}

static bool add_stray(struct due__redis_load *l, due_id id)
{
    if (l->n_strays == l->stray_room) {
        size_t room = l->stray_room == 0 ? 64 : 2 * l->stray_room;
        struct due__redis_stray *more = realloc(l->strays, room * sizeof *more);
        if (more == NULL)
            return false;
        l->strays = more;
        l->stray_room = room;
    }
    l->strays[l->n_strays++].id = id;
    return true;
}

/* A batch has landed: keep the rank right.  A job that was moved from ahead of the cursor to behind
 * it, or put there again, is shown at the end; without memory to remember it, the topic is read
 * from its beginning. */
void due__redis_load_count(struct due__redis *s, const due_change *changes, size_t n)
{
    struct due__redis_load *l = &s->load;

    if (!l->begun || l->ended || l->line == NULL)
        return;
    const char *name = l->line->key + l->line->name_at;
    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];
        if (strcmp(c->record.topic, name) != 0)
            continue;
        bool was = c->kind != DUE_CHANGE_PUT && is_behind(l, c->was_ns, c->record.id);
        bool is = c->kind != DUE_CHANGE_DROP && is_behind(l, c->record.until_ns, c->record.id);
        if (was && !is && l->rank > 0)
            l->rank--;
        if (is && !was)
            l->rank++;
        bool known = c->kind == DUE_CHANGE_MOVE || due__redis_may_be_stored(s, c->record.id);
        if (is && !was && known && !add_stray(l, c->record.id)) {
            l->rank = 0;
            l->cursor.set = false;
        }
    }
}
