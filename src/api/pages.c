/* pages.c - the calls of a shared queue that are about many jobs: they ask for page after page of
 * what lies in the store (store/share_pages.c).
 */
#include "api/pages.h"

#include <limits.h>

#include "queue/queue.h"
#include "queue/stored.h"

/* ---- Looking ---- */

int due__pages_list(struct due_queue *q, uint64_t *cursor, due_info *infos, size_t max)
{
    struct due__ask ask = { .kind = DUE__ASK_LIST, .cursor = *cursor, .info = infos };
    size_t got = 0;
    int rc;

    do {
        struct due__deadline by = { 0 }; /* of each page */

        ask.info = infos + got;
        ask.max = max - got;
        rc = q->journal->ask(q, &ask, &by);
        if (rc == 0)
            *cursor = ask.cursor;
        got += rc == 0 ? ask.got : 0;
    } while (rc == 0 && ask.more && got < max);
    if (rc != 0 && got == 0)
        return rc;
    int64_t now = due__jobs_now(q);
    for (size_t i = 0; i < got; i++)
        infos[i].ready = infos[i].deadline_ns <= now;
    return (int)got;
}

/* The first that waits in a topic, if it comes before the one that is known. */
static int peek_topic(struct due_queue *q, int topic, due_info *first, bool *any,
                      struct due__deadline *by)
{
    struct due__pages pages = { .topic = topic, .from_ns = INT64_MIN };
    due_info it;
    struct due__ask ask = { .kind = DUE__ASK_PAGE, .info = &it, .max = 1, .pages = &pages };
    int rc = q->journal->ask(q, &ask, by);

    if (rc != 0 || ask.got == 0)
        return rc;
    if (!*any || it.deadline_ns < first->deadline_ns)
        *first = it;
    *any = true;
    return 0;
}

/* What is due may be gone again when it is looked at: then it is looked for in all topics. */
int due__pages_peek(struct due_queue *q, due_info *info)
{
    struct due__ask ask = { .kind = DUE__ASK_TOPICS };
    struct due__deadline by = { 0 };
    bool any = false;
    due_info first;
    int rc = q->journal->ask(q, &ask, &by);

    if (rc == 0 && ask.topic >= 0)
        rc = peek_topic(q, ask.topic, &first, &any, &by);
    bool all = !any;
    for (int topic = 0; rc == 0 && all && due_topic_name(q, topic) != NULL; topic++)
        rc = peek_topic(q, topic, &first, &any, &by);
    if (rc != 0 || !any)
        return rc != 0 ? rc : DUE_EAGAIN;
    first.ready = first.deadline_ns <= due__jobs_now(q);
    *info = first;
    return 0;
}

/* ---- Changing ---- */

/* All pages of a topic, or of the dead. */
static int change_all(struct due_queue *q, struct due__ask *ask, int topic, uint64_t *count)
{
    struct due__pages pages = { .topic = topic, .from_ns = INT64_MIN };
    int rc = 0;

    ask->pages = &pages;
    while (rc == 0 && !pages.over) {
        struct due__deadline by = { 0 }; /* of each page */

        rc = q->journal->ask(q, ask, &by);
        *count += rc == 0 ? ask->got : 0;
    }
    ask->pages = NULL;
    return rc;
}

int due__pages_clear(struct due_queue *q, int topic, uint64_t *cleared)
{
    struct due__ask topics = { .kind = DUE__ASK_TOPICS };
    struct due__ask ask = { .kind = DUE__ASK_CLEAR };
    struct due__deadline by = { 0 };

    if (topic != DUE_ALL_TOPICS)
        return change_all(q, &ask, topic, cleared);
    int rc = q->journal->ask(q, &topics, &by);
    for (topic = 0; rc == 0 && due_topic_name(q, topic) != NULL; topic++)
        rc = change_all(q, &ask, topic, cleared);
    return rc;
}

int due__pages_clear_dead(struct due_queue *q, int topic, uint64_t *cleared)
{
    struct due__ask ask = { .kind = DUE__ASK_CLEAR_DEAD };

    return change_all(q, &ask, topic, cleared);
}

int due__pages_kick(struct due_queue *q, int topic, uint64_t *kicked)
{
    struct due__ask ask = { .kind = DUE__ASK_KICK_ALL, .at_ns = due__jobs_now(q) };

    return change_all(q, &ask, topic, kicked);
}
