/* load.c - reading everything back, while batches are committed in between.
 *
 * A topic's zset is read in pages by rank: by score would lose jobs of one score at the edge of a
 * page.  We are the only writer, so the rank of what comes next is known exactly: it rises by what
 * is shown, falls by what we remove at or below the cursor, rises by what we insert there.  When
 * something was committed since the last page, the member just below the rank is looked at
 * besides: if it is not at or below the cursor, the rank was wrong (somebody else was at work, or
 * the caller's was_ns is not what the store has), and a lower one is taken.  So a job may be shown
 * twice, and the queue knows it by its id, but none is left out.
 *
 * While nothing is committed, the records of the next page and the ids of the one after it are
 * asked for before this page is shown; whose the keys of this page are, before that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"
#include "redis/read/read.h"

#define PAGE_FIRST 8 /* doubled each time: jobs may be large */
#define PAGE_MOST  1000
#define PAGE_BYTES ((size_t)16 << 20)
#define MORE       1

static void page_free(struct due__redis_load *l)
{
    redisReply *replies[] = { l->ids, l->jobs, l->entries, l->owners, l->next_ids };

    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
        if (replies[i] != NULL)
            freeReplyObject(replies[i]);
    l->ids = l->jobs = l->entries = l->owners = l->next_ids = NULL;
    l->at = l->owner = 0;
    l->last = l->whose = false;
    if (l->n_bad > 0) { /* they are met again, and so is what was shown among them */
        l->cursor = l->before.cursor;
        l->rank = l->before.rank;
        l->passed = l->before.passed;
    }
    l->n_bad = l->bad_passed = 0;
}

void due__redis_load_forget(struct due__redis *s)
{
    struct due__redis_load *l = s->load;

    page_free(l);
    if (l->topics != NULL)
        freeReplyObject(l->topics);
    due__redis_sweep_forget(s);
    free(l->bad);
    free(l->strays);
    free(l->unlisted);
    *l = (struct due__redis_load){ .page = PAGE_FIRST };
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void ask_range(struct due__redis *s, uint64_t from, size_t n, bool scores)
{
    struct due__redis_topic *line = s->load->line;

    due__link_command(s->link, scores ? 5 : 4);
    due__link_text(s->link, "ZRANGE");
    due__link_bytes(s->link, line->key, line->key_len);
    due__link_number(s->link, (int64_t)from);
    due__link_number(s->link, (int64_t)(from + n - 1));
    if (scores)
        due__link_text(s->link, "WITHSCORES");
}

static void ask_fields(struct due__redis *s, const char *key, const redisReply *ids)
{
    due__redis_word(s, key, ids->elements, "HMGET");
    for (size_t i = 0; i < ids->elements; i++)
        due__link_bytes(s->link, ids->element[i]->str, (size_t)ids->element[i]->len);
}

/* What else stands there.  Nobody else writes; but a batch in doubt may have landed, and if we are
 * unsure any may. */
static bool note_rest(struct due__redis *s, const redisReply *entries, const redisReply *dead)
{
    enum due__reply_class class = due__reply_classify(dead);
    bool refused = class == DUE__REPLY_WRONG || class == DUE__REPLY_DENIED;

    if (entries->type != REDIS_REPLY_INTEGER || (dead->type != REDIS_REPLY_INTEGER && !refused))
        return false;
    bool may = s->doubt != 0 || s->unsure;
    s->has_entries = entries->integer > 0 || (s->has_entries && may);
    /* If it is refused, then once more when it is their turn: the topics come before that. */
    s->has_dead = refused || dead->integer > 0 || (s->has_dead && may);
    return true;
}

/* The names of all topics. */
static int load_topics(struct due__redis *s, int64_t until_ns)
{
    int ready = due__flight_ready(s, DUE__FLIGHT_TOPICS, 0, until_ns);

    if (due__redis_dead(s) == NULL)
        return DUE_ENOMEM;
    if (ready == 0) {
        due__redis_word(s, s->keys.topics, 0, "HKEYS");
        due__redis_word(s, s->keys.again, 0, "HLEN");
        due__redis_word(s, s->keys.dead, 2, "ZCOUNT");
        due__link_text(s->link, "-inf");
        due__link_text(s->link, "+inf");
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_TOPICS, 0, 3, ready, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(s->air.kept[0]) || !note_rest(s, s->air.kept[1], s->air.kept[2]))
        return due__redis_mistaken(s);
    s->load->topics = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

/* The next topic; behind the last one, the dead; and behind those what was not listed. */
static bool begin_topic(struct due__redis *s)
{
    struct due__redis_load *l = s->load;

    l->cursor.set = false;
    l->rank = 0;
    l->passed = 0;
    l->stale = false;
    if (l->topic == l->topics->elements) {
        l->line = s->dead;
        return true;
    }
    if (l->topic > l->topics->elements) {
        l->line = l->unlisted[l->topic - l->topics->elements - 1];
        return true;
    }
    const redisReply *name = l->topics->element[l->topic];
    l->line = due__redis_topic(s, name->str, (size_t)name->len);
    if (l->line != NULL)
        l->line->entered = true;
    return l->line != NULL;
}

/* Somebody else needs the air.  What was asked for ahead is given up, and found again. */
static void give_up_ahead(struct due__redis *s)
{
    if (s->load->next_ids != NULL)
        freeReplyObject(s->load->next_ids);
    s->load->next_ids = NULL;
    s->load->stale = true;
}

/* ---- The ids of the next page ---------------------------------------------------------------- */

/* Members, and no more of them than were asked for. */
static bool is_ids(const redisReply *r, size_t most)
{
    return due__reply_is_texts(r) && r->elements <= most;
}

/* Whether the member that was shown last, by our rank, is at or below the cursor. */
static bool is_rank_right(const struct due__redis_load *l, const redisReply *below)
{
    if (l->rank <= l->passed || !l->cursor.set)
        return true;
    if (!due__reply_is_array(below, 2) || !due__reply_is_text(below->element[0]) ||
        !due__reply_is_text(below->element[1]) || below->element[0]->len != DUE_STORE_ID_BYTES)
        return false;
    char *end;
    long long score = strtoll(below->element[1]->str, &end, 10);
    return *end == '\0' && due__cursor_compare(score, (const unsigned char *)below->element[0]->str,
                                               &l->cursor) <= 0;
}

/* A rank that surely is not too high. */
static int lower_rank(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    char below[32];
    int ready = due__flight_ready(s, DUE__FLIGHT_COUNT, 0, until_ns);

    if (ready == 0) {
        snprintf(below, sizeof below, "(%" PRId64, l->cursor.score);
        due__link_command(s->link, 4);
        due__link_text(s->link, "ZCOUNT");
        due__link_bytes(s->link, l->line->key, l->line->key_len);
        due__link_text(s->link, "-inf");
        due__link_text(s->link, below);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_COUNT, 0, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    if (s->air.kept[0]->type != REDIS_REPLY_INTEGER)
        return due__redis_mistaken(s);
    uint64_t count = (uint64_t)s->air.kept[0]->integer;
    l->rank = count < l->rank ? count : l->rank - 1;
    l->passed = l->bad_passed = 0;
    due__flight_end(s);
    return 0;
}

/* After a change, or at a topic's beginning.  0: the ids are in l->next_ids. */
static int find_page(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int ready = due__flight_ready(s, DUE__FLIGHT_IDS, 0, until_ns);

    if (ready == 0) {
        l->asked = l->rank;
        l->next_asked = l->page;
        l->stale = false;
        ask_range(s, l->rank > l->passed ? l->rank - l->passed - 1 : 0, 1, true);
        ask_range(s, l->rank, l->page, false);
        ready = due__flight_start(s, DUE__FLIGHT_IDS, 0, 0, 2, until_ns);
        s->air.over = give_up_ahead;
    }
    int rc = ready < 0 ? ready : due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    if (!is_ids(s->air.kept[1], l->next_asked))
        return due__redis_mistaken(s);
    bool right = is_rank_right(l, s->air.kept[0]);
    if (right)
        l->next_ids = due__flight_take(s, 1);
    due__flight_end(s);
    return right ? 0 : lower_rank(s, until_ns);
}

/* ---- A page ---------------------------------------------------------------------------------- */

/* How many to ask for, so that a page stays small in bytes. */
static size_t page_size(const struct due__redis_load *l, size_t max)
{
    size_t size = 2 * l->page;
    size_t each = l->seen_jobs > 0 ? l->seen_bytes / l->seen_jobs + 1 : 1;

    if (size > PAGE_MOST)
        size = PAGE_MOST;
    if (max > 0 && size > max)
        size = max;
    if (size > PAGE_BYTES / each)
        size = PAGE_BYTES / each;
    return size > 0 ? size : 1;
}

/* Ask for the records of l->next_ids, and for the ids behind them if all is calm. */
static int ask_page(struct due__redis *s, size_t max, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    bool more = l->calm && l->next_ids->elements == l->next_asked;
    uint64_t behind = l->asked + l->next_ids->elements;

    ask_fields(s, s->keys.jobs, l->next_ids);
    if (s->has_entries)
        ask_fields(s, s->keys.again, l->next_ids);
    if (more) {
        l->page = page_size(l, max);
        ask_range(s, behind, l->page, false);
    }
    int rc = due__flight_start(s, DUE__FLIGHT_PAGE, s->has_entries | (more ? 2 : 0), 0,
                               1u + s->has_entries + more, until_ns);
    s->air.over = give_up_ahead;
    return rc;
}

/* The page that was asked for is there: it is the one to be shown next. */
static int take_page(struct due__redis *s)
{
    struct due__redis_load *l = s->load;
    bool entries = (s->air.tag & 1) != 0;
    bool more = (s->air.tag & 2) != 0;
    redisReply **kept = s->air.kept;
    size_t n = l->next_ids->elements;

    if (!due__reply_is_fields(kept[0], n) || (entries && !due__reply_is_fields(kept[1], n)) ||
        (more && !is_ids(kept[1 + entries], l->page)))
        return due__redis_mistaken(s);
    l->ids = l->next_ids;
    l->last = n < l->next_asked;
    l->next_ids = NULL;
    l->jobs = due__flight_take(s, 0);
    l->entries = entries ? due__flight_take(s, 1) : NULL;
    l->at = l->owner = 0;
    l->whose = false;
    l->n_bad = 0;
    l->before.cursor = l->cursor;
    l->before.rank = l->rank;
    l->before.passed = l->passed;
    if (more) {
        l->next_ids = due__flight_take(s, 1u + entries);
        l->asked += n;
        l->next_asked = l->page;
    }
    due__flight_end(s);
    return 0;
}

/* ---- Shown ----------------------------------------------------------------------------------- */

static void page_done(struct due__redis_load *l)
{
    redisReply *replies[] = { l->ids, l->jobs, l->entries, l->owners };

    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
        if (replies[i] != NULL)
            freeReplyObject(replies[i]);
    l->ids = l->jobs = l->entries = l->owners = NULL;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* What was asked for ahead has come, if anything was. */
static int land_page(struct due__redis *s, int64_t until_ns)
{
    bool ahead = s->air.kind == DUE__FLIGHT_PAGE || s->air.kind == DUE__FLIGHT_IDS;

    return ahead ? due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns) : 0;
}

/* The records of the page in l->next_ids, and whose their keys are; asks for the page behind it
 * before it answers. */
static int fetch_page(struct due__redis *s, size_t max, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = 0;

    if (s->air.kind != DUE__FLIGHT_PAGE) {
        rc = due__flight_ready(s, DUE__FLIGHT_PAGE, UINT64_MAX, until_ns);
        if (rc == 0 && l->next_ids == NULL)
            return 0;
        if (rc == 0 && l->next_ids->elements > 0)
            rc = ask_page(s, max, until_ns);
        if (rc != 0)
            return rc;
        if (l->next_ids->elements == 0) {
            l->last = true;
            freeReplyObject(l->next_ids);
            l->next_ids = NULL;
            return 0;
        }
    }
    rc = due__flight_land(s, until_ns);
    if (rc == 0)
        rc = take_page(s);
    if (rc == 0)
        rc = due__redis_whose(s, until_ns);
    if (rc == 0 && l->calm && !l->stale && l->next_ids != NULL && l->next_ids->elements > 0)
        rc = ask_page(s, max, until_ns);
    return rc;
}

/* Get the next page of the topic.  0: l->ids, or l->last without any. */
static int next_page(struct due__redis *s, size_t max, int64_t until_ns)
{
    struct due__redis_load *l = s->load;

    if (l->next_ids == NULL) {
        l->page = page_size(l, max);
        int rc = l->line != NULL ? find_page(s, until_ns) : due__redis_scan(s, until_ns);
        if (rc != 0)
            return rc;
    }
    return l->next_ids != NULL ? fetch_page(s, max, until_ns) : 0;
}

/* Forget the page, and what was asked for behind it. */
static int drop_page(struct due__redis *s, int64_t until_ns)
{
    int rc = land_page(s, until_ns);

    if (rc != 0)
        return rc;
    page_free(s->load);
    s->load->stale = false;
    return 0;
}

/* Something was committed: what was read ahead is not to be shown any more. */
static int refresh(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;

    return l->stale ? drop_page(s, until_ns) : 0;
}

/* Go on with one topic by one page.  0: a page was shown; MORE: the topic is at its end. */
static int step(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit, void *ctx,
                int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = refresh(s, until_ns);

    if (rc == 0 && l->ids == NULL && !l->last)
        rc = next_page(s, max, until_ns);
    if (rc == 0 && l->ids != NULL)
        rc = due__redis_whose(s, until_ns);
    if (rc == 0 && l->ids != NULL) {
        rc = due__redis_show_page(s, shown, visit, ctx);
        if (rc == 0 && l->n_bad > 0)
            rc = due__redis_set_aside(s, until_ns);
        if (rc == 0)
            page_done(l);
    }
    if (rc == 0 && l->last && l->ids == NULL && !l->stale)
        return MORE;
    return rc;
}

/* All records, wherever they stand; one page a call, however little that shows: a scan may have any
 * number of empty ones.  0: all were shown. */
static int scan(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit, void *ctx,
                int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = 0;

    l->cursor.set = false;
    if (!l->scanned && max > 0 && *shown >= max)
        return MORE;
    while (!l->scanned && rc == 0)
        rc = step(s, shown, max, visit, ctx, until_ns);
    if (rc == MORE) {
        l->last = false;
        due__redis_scanned(l);
        rc = l->scanned ? 0 : MORE;
    }
    return rc;
}

/* What has happened since the last call. */
static void look_around(struct due__redis *s)
{
    struct due__redis_load *l = s->load;

    if (l->losses != s->losses)
        l->begun = false;
    if (l->writes != s->writes) {
        l->stale = true;
        l->calm = false;
    }
    l->writes = s->writes;
}

static int begin(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;

    if (!l->begun) {
        int rc = land_page(s, until_ns);
        if (rc != 0)
            return rc;
        due__redis_load_forget(s);
        l->begun = true;
        l->losses = s->losses;
        l->writes = s->writes;
        l->calm = true;
        s->pass++;
    }
    return l->topics == NULL && !l->ended ? load_topics(s, until_ns) : 0;
}

/* A topic that cannot be read must not keep back those behind it; nor is anything lost if these are
 * shown first.  Its turn comes again in the next call, and until it can be read the load does not
 * end. */
static int put_off(struct due__redis *s, int why, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = drop_page(s, until_ns);

    if (rc != 0)
        return rc;
    due__redis_unreadable(s, l->line->key, why);
    if (l->blocked == 0)
        l->blocked = why;
    return 0;
}

/* Whether @rc is about the topic alone: the server has answered, and answers on. */
static bool is_refused(const struct due__redis *s, int rc)
{
    return (rc == DUE_ECORRUPT || rc == DUE_EACCES) && due__link_is_up(s->link);
}

/* Go on with the topic whose turn it is.  MORE: it is over. */
static int load_topic(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit,
                      void *ctx, int64_t until_ns)
{
    struct due__redis_load *l = s->load;

    if (l->line == NULL && !begin_topic(s))
        return DUE_ENOMEM;
    if (l->line->read == s->pass)
        return MORE;
    int rc = step(s, shown, max, visit, ctx, until_ns);
    if (rc == MORE)
        l->line->read = s->pass;
    if (!is_refused(s, rc))
        return rc;
    rc = put_off(s, rc, until_ns);
    return rc == 0 ? MORE : rc;
}

static int load_all(struct due__redis *s, size_t max, due_store_visit *visit, void *ctx,
                    int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    size_t shown = 0;
    size_t pages = 0; /* of which nothing may be shown */

    while (l->topic <= l->topics->elements + l->n_unlisted) {
        if ((max > 0 && shown >= max) || (pages++ > 0 && until_ns <= due__mono_ns()))
            return MORE;
        int rc = load_topic(s, &shown, max, visit, ctx, until_ns);
        if (rc == MORE) {
            l->topic++;
            l->line = NULL;
            l->last = false;
        } else if (rc != 0) {
            return rc;
        }
    }
    if (l->blocked != 0) {
        int why = l->blocked;

        l->topic = 0;
        l->blocked = 0;
        return why;
    }
    int rc = s->unsure ? scan(s, &shown, max, visit, ctx, until_ns) : 0;
    return rc == 0 ? due__redis_load_end(s, &shown, max, visit, ctx, until_ns) : rc;
}

int due__redis_load(struct due__redis *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                    int64_t until_ns)
{
    int rc = 0;

    struct due__redis_load *l = s->load;

    if (rewind)
        l->begun = false; /* also if this call does not come to it */
    for (;;) {
        rc = due__redis_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return rc;
        if (s->lost) {
            s->lost = false;
            return DUE_ELOST;
        }
        look_around(s);
        rc = begin(s, until_ns);
        if (rc == 0 && l->ended)
            return 0;
        if (rc == 0)
            rc = load_all(s, max, visit, ctx, until_ns);
        if (rc != DUE_ESTORE)
            break;
        give_up_ahead(s);
        l->page /= 8; /* it may have been too large for one answer */
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
    if (rc == DUE_ECORRUPT)
        give_up_ahead(s); /* the link may be another one next time */
    l->calm = true;
    return rc;
}
