/* unlisted.c - topics that hold jobs, and were not read because `topics` did not list them.
 *
 * A server that evicts, or a hand, may take the key `topics` away and leave the zsets.  Then a load
 * finds no topic to read.  The sweep at its end sees that there are more records than members, and
 * that some stand in zsets that nobody has read (orphans.c); these are read then, and entered
 * again.  So is a topic that was entered since the load began: by a job of our own, but it may have
 * held others before.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/read/read.h"

int due__redis_unread(struct due__redis *s, struct due__redis_topic *t)
{
    struct due__redis_load *l = s->load;

    if (t->read == s->pass || t->noted == s->pass)
        return 0;
    if (l->n_unlisted == l->unlisted_room) {
        size_t room = l->unlisted_room == 0 ? 16 : 2 * l->unlisted_room;
        struct due__redis_topic **more = realloc(l->unlisted, room * sizeof(void *));

        if (more == NULL)
            return DUE_ENOMEM;
        l->unlisted = more;
        l->unlisted_room = room;
    }
    l->unlisted[l->n_unlisted++] = t;
    t->noted = s->pass;
    return 0;
}

/* Those that are not entered: how many commands that takes. */
static size_t put_entering(struct due__redis *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->load->n_unlisted; i++) {
        const struct due__redis_topic *t = s->load->unlisted[i];

        if (t->entered)
            continue;
        due__redis_word(s, s->keys.topics, 2, "HSETNX");
        due__link_bytes(s->link, t->key + t->name_at, t->key_len - t->name_at);
        due__link_number(s->link, 0);
        n++;
    }
    return n;
}

/* If it is refused, they are read all the same, and each is entered with its next job. */
int due__redis_enter_unlisted(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    bool all = true;

    for (size_t i = 0; i < l->n_unlisted; i++)
        all = all && l->unlisted[i]->entered;
    int rc = all ? 0 : due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns);
    if (rc != 0 || all || !s->armed) /* not armed: as if it were refused */
        return rc;
    due__redis_bare(s, "MULTI");
    size_t n = put_entering(s);
    rc = due__redis_transact(s, DUE__FLIGHT_ASIDE, n, 0, until_ns);
    if (rc != 0)
        return rc;
    for (size_t i = 0; s->air.kept[0]->type == REDIS_REPLY_ARRAY && i < l->n_unlisted; i++)
        l->unlisted[i]->entered = true;
    due__flight_end(s);
    return 0;
}
