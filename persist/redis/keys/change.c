/* change.c - what a change does to which key.
 *
 * A job that is not dead stands in the zset of its topic, a dead one in that of the dead.  While
 * the server has lost nothing it is as the queue says; after that a job may stand in either, and is
 * taken out of both.
 */
#include "redis/keys/keys.h"

#define EXACT_US (INT64_C(1) << 53) /* whole numbers up to here are exact in a score */

/* Microseconds, rounded up: a score must not be early. */
int64_t due__redis_score(int64_t ns)
{
    int64_t us = ns / 1000 + (ns % 1000 > 0);

    return us > EXACT_US ? us + (us & 1) : us;
}

uint64_t due__redis_sequence(const struct due__redis *s, due_id id)
{
    uint64_t writer = 0;
    uint64_t sequence = 0;

    for (size_t i = 1; i < 7; i++)
        writer = writer << 8 | id.byte[i];
    for (size_t i = 7; i < DUE_STORE_ID_BYTES; i++)
        sequence = sequence << 8 | id.byte[i];
    return writer == s->writer ? sequence : 0;
}

/* An id that we made and that is higher than all that came before this batch is new. */
bool due__redis_may_be_stored(const struct due__redis *s, due_id id, uint64_t number)
{
    uint64_t sequence = due__redis_sequence(s, id);

    return sequence == 0 || sequence <= s->sequence_old[number % 2];
}

/* ---- Where it stands ------------------------------------------------------------------------- */

static bool replaces(const struct due__redis *s, const due_change *c, uint64_t number)
{
    return c->kind == DUE_CHANGE_PUT && due__redis_may_be_stored(s, c->record.id, number);
}

bool due__change_leaves_topic(const struct due__redis *s, const due_change *c, uint64_t number)
{
    if (c->kind == DUE_CHANGE_DROP)
        return !c->was_dead || s->lossy;
    return c->kind == DUE_CHANGE_BURY || (c->record.cause != 0 && replaces(s, c, number));
}

bool due__change_enters_topic(const due_change *c)
{
    return c->kind == DUE_CHANGE_MOVE || (c->kind == DUE_CHANGE_PUT && c->record.cause == 0);
}

/* An attempt that is counted leaves the job where it is. */
bool due__change_stays(const struct due__redis *s, const due_change *c)
{
    return c->kind == DUE_CHANGE_MOVE && !c->was_dead && s->read_once && !s->lossy && !s->unsure &&
           due__redis_score(c->was_ns) == due__redis_score(c->record.until_ns);
}

bool due__change_leaves_dead(const struct due__redis *s, const due_change *c, uint64_t number)
{
    if (c->kind == DUE_CHANGE_MOVE || (c->kind == DUE_CHANGE_DROP && c->was_dead))
        return c->was_dead;
    return s->has_dead && ((c->kind == DUE_CHANGE_DROP && s->lossy) ||
                           (c->record.cause == 0 && replaces(s, c, number)));
}

bool due__change_enters_dead(const due_change *c)
{
    return c->kind == DUE_CHANGE_BURY || (c->kind == DUE_CHANGE_PUT && c->record.cause != 0);
}

/* ---- Its entry ------------------------------------------------------------------------------- */

bool due__change_has_entry(const due_change *c)
{
    return c->kind == DUE_CHANGE_MOVE || c->kind == DUE_CHANGE_BURY ||
           (c->kind == DUE_CHANGE_PUT && due__record_has_entry(&c->record));
}

bool due__change_is_stale(const struct due__redis *s, const due_change *c, uint64_t number)
{
    return s->has_entries && replaces(s, c, number) && !due__change_has_entry(c);
}

/* ---- Its key --------------------------------------------------------------------------------- */

bool due__change_frees_key(const due_change *c)
{
    return c->record.key_len > 0 &&
           (c->kind == DUE_CHANGE_FORGET || (c->kind == DUE_CHANGE_DROP && c->key_kept_ns == 0));
}

bool due__change_keeps_key(const due_change *c)
{
    return c->record.key_len > 0 &&
           (c->kind == DUE_CHANGE_KEEP || (c->kind == DUE_CHANGE_DROP && c->key_kept_ns != 0));
}

bool due__change_takes_key(const due_change *c)
{
    return (c->record.key_len > 0 && c->kind == DUE_CHANGE_PUT) || due__change_keeps_key(c);
}

bool due__change_unkeeps_key(const struct due__redis *s, const due_change *c)
{
    if (c->record.key_len == 0)
        return false;
    return c->kind == DUE_CHANGE_FORGET || c->was_kept ||
           (s->lossy && (c->kind == DUE_CHANGE_PUT || due__change_frees_key(c)));
}

/* ---- As commands want them ------------------------------------------------------------------- */

bool due__choose_drops(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return c->kind == DUE_CHANGE_DROP;
}

bool due__choose_entries(const struct due__redis *s, const due_change *c, uint64_t number)
{
    return (s->has_entries && c->kind == DUE_CHANGE_DROP) || due__change_is_stale(s, c, number);
}

bool due__choose_frees(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return due__change_frees_key(c);
}

bool due__choose_unkeeps(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)number;
    return due__change_unkeeps_key(s, c);
}
