/* cursor.c - where the reading back stands in a topic, while batches move what is around
 * it. */
#include <stdlib.h>
#include <string.h>

#include "redis/read/read.h"

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

bool due__redis_load_stray(struct due__redis *s, due_id id)
{
    struct due__redis_load *l = s->load;

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

/* Whether the change takes a job out of the line that is being read, and from behind the cursor. */
static bool was_behind(const struct due__redis *s, const due_change *c, bool dead)
{
    return c->kind != DUE_CHANGE_PUT && dead == (c->was_dead != 0) &&
           is_behind(s->load, c->was_ns, c->record.id);
}

/* And whether it puts one in there. */
static bool is_now_behind(const struct due__redis *s, const due_change *c, bool dead)
{
    bool enters = dead ? due__change_enters_dead(c) : due__change_enters_topic(c);

    return enters &&
           is_behind(s->load, dead ? c->record.died_ns : c->record.until_ns, c->record.id);
}

/* Whether the job may come to stand where it would not be shown any more. */
static bool goes_astray(const struct due__redis *s, const due_change *c, bool was, bool is,
                        uint64_t number)
{
    if (was)
        return false; /* it was shown */
    if (c->kind == DUE_CHANGE_MOVE)
        return is || c->was_dead; /* its topic may have been read before */
    return is && due__redis_may_be_stored(s, c->record.id, number);
}

/* One change: keep the rank right.  True: the job has to be shown at the end. */
static bool count_change(struct due__redis *s, const due_change *c, uint64_t number)
{
    struct due__redis_load *l = s->load;
    bool dead = l->line == s->dead;
    bool here = dead || strcmp(c->record.topic, l->line->key + l->line->name_at) == 0;
    bool was = here && was_behind(s, c, dead);
    bool is = here && is_now_behind(s, c, dead);

    if (was && !is && l->rank > 0)
        l->rank--;
    if (is && !was)
        l->rank++;
    return goes_astray(s, c, was, is, number);
}

/* A batch has landed.  A job that was moved from ahead of the cursor to behind it, or put there
 * again, or was dead, is shown at the end; without memory to remember it, everything is read from
 * its beginning. */
void due__redis_load_count(struct due__redis *s, const due_change *changes, size_t n,
                           uint64_t number)
{
    struct due__redis_load *l = s->load;

    if (!l->begun || l->ended || l->line == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];
        if (c->kind < DUE_CHANGE_KEEP && count_change(s, c, number) &&
            !due__redis_load_stray(s, c->record.id)) {
            l->begun = false;
            return;
        }
    }
}
