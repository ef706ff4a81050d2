/* show.c - a page that was read, shown job by job.
 *
 * What cannot be shown is passed over: a record that is damaged, makes no sense to the queue, or
 * stands in the wrong place, is noted, and seen to when the page is done (quarantine.c).  One
 * of a newer version is left alone, for whoever wrote it: a program that was rolled back must
 * neither lose it nor stop at it.
 */
#include <stdlib.h>

#include "record/record.h"
#include "redis/read/read.h"

/* The member at l->at is not shown: the rank is beyond it, the cursor is not. */
static void pass_over(struct due__redis_load *l)
{
    l->rank++;
    l->passed++;
}

static bool note_bad(struct due__redis_load *l, bool nonsense)
{
    if (l->n_bad == l->bad_room) {
        size_t room = l->bad_room == 0 ? 64 : 2 * l->bad_room;
        struct due__redis_bad *more = realloc(l->bad, room * sizeof *more);

        if (more == NULL)
            return false;
        l->bad = more;
        l->bad_room = room;
    }
    l->bad[l->n_bad++] = (struct due__redis_bad){ .at = l->at, .nonsense = nonsense };
    l->bad_passed++;
    pass_over(l);
    return true;
}

/* A record of a newer version stays as it is, where it is: whoever wrote it can read it. */
static void note_newer(struct due__redis *s, due_id id)
{
    char text[DUE_ID_TEXT];

    s->load->newer++;
    pass_over(s->load);
    if (s->newer_told)
        return;
    s->newer_told = true;
    due__store_log(
        &s->how, DUE_LOG_ERROR,
        "job %s was stored by a newer version (DUE_EVERSION): it stays in the store, and "
        "is not handed out here",
        due_id_format(id, text));
}

/* Show the job at l->at, whose key leads to @owner; or note why not. */
static int show_job(struct due__redis *s, const redisReply *owner, size_t *shown,
                    due_store_visit *visit, void *ctx)
{
    struct due__redis_load *l = s->load;
    struct due__record_room room;
    due_record record;
    const redisReply *job = l->jobs->element[l->at];
    int rc = due__redis_read_job(s, l->line, &record, &room, l->ids->element[l->at], job,
                                 l->entries != NULL ? l->entries->element[l->at] : NULL);

    if (rc != 0 && l->line == NULL)
        return 0; /* seen to where it stands, if it stands anywhere */
    if (rc == DUE_EVERSION)
        note_newer(s, record.id);
    if (rc != 0)
        return rc == DUE_EVERSION || note_bad(l, false) ? 0 : DUE_ENOMEM;
    due__redis_judge_key(&record, owner);
    rc = visit(ctx, &record);
    if (rc == DUE_ECORRUPT)
        return l->line == NULL || note_bad(l, true) ? 0 : DUE_ENOMEM;
    if (rc != 0)
        return rc;
    l->rank++;
    l->passed = l->bad_passed = 0;
    l->cursor.set = l->line != NULL;
    l->cursor.score = due__redis_score(record.cause != 0 ? record.died_ns : record.until_ns);
    l->cursor.id = record.id;
    l->seen_bytes += (size_t)job->len;
    l->seen_jobs++;
    l->hidden +=
        l->line != NULL && l->topic > l->topics->elements && due__redis_sequence(s, record.id) == 0;
    (*shown)++;
    return 0;
}

int due__redis_show_page(struct due__redis *s, size_t *shown, due_store_visit *visit, void *ctx)
{
    struct due__redis_load *l = s->load;

    for (; l->at < l->ids->elements; l->at++) {
        const redisReply *owner = due__redis_next_owner(l);
        int rc = show_job(s, owner, shown, visit, ctx);

        if (rc != 0)
            return rc;
        l->owner += owner != NULL;
    }
    return 0;
}
