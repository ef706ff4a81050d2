/* pipeline.c - a batch that is formatted while the one before it is in the air.
 *
 * It lies in the link's buffer, where a flight of any other kind would be formatted too; so each of
 * those forgets it first (due__flight_ready()), and so does a link that goes down.  Nothing is lost
 * by that: commit() formats anew.
 *
 * Always  B3  it is sent only with the guard behind the batch before it set, and seen to be ours:
 *             so if the fence was written since, EXEC does nothing.
 */
#include "redis/write/write.h"

/* Whether all is well as far as we know, without asking. */
static bool is_well(const struct due__redis *s)
{
    return s->open && !s->closed && !s->fenced && !s->lost && !s->rewrite && !s->retaking &&
           !s->below && !s->probe_due && s->unconfirmed == 0 && due__link_is_up(s->link);
}

static bool is_prepared(const struct due__redis *s, uint64_t number)
{
    return s->prepared == number && due__link_formatted(s->link) == s->prepared_bytes;
}

static void forget(struct due__redis *s)
{
    s->prepared = 0;
    due__link_forget(s->link);
}

int due__redis_prepare(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    enum due__flight_kind kind = s->air.kind;

    if (!is_well(s) || (kind != DUE__FLIGHT_NONE && kind != DUE__FLIGHT_BATCH))
        return DUE_EAGAIN;
    forget(s);
    int rc = due__redis_format(s, changes, n, number);
    if (rc != 0)
        return rc;
    s->prepared = number;
    s->prepared_bytes = due__link_formatted(s->link);
    return 0;
}

int due__redis_send(struct due__redis *s, uint64_t number, int64_t until_ns)
{
    bool next = s->air.kind == DUE__FLIGHT_NONE && s->doubt == 0 && s->landed < number;

    if (!next || !is_well(s) || !is_prepared(s, number) || !s->armed ||
        due__redis_lease_in_doubt(s)) {
        forget(s);
        return DUE_EAGAIN;
    }
    s->prepared = 0;
    (void)due__redis_launch(s, number, false, until_ns);
    return s->doubt == number ? 0 : DUE_EAGAIN; /* some of it may have left */
}
