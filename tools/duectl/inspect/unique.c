/* unique.c - whether every unique key of a stored queue is somebody's.
 *
 * A key leads to the id of a stored job whose record names it, and is not among the kept ones; or
 * it is, and its job is gone.  A job whose record names a key that does not lead to it has lost it
 * to another one, which may be gone by now: nothing is wrong with that.  As with jobs, what does
 * not fit is looked at once more, alone, and that look decides.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/server.h"

enum { SHOWN_MAX = 20 };

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool list_add(struct ctl_key_list *list, const void *key, size_t len, const due_id *id)
{
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 256 : 2 * list->room;
        struct ctl_key *more = realloc(list->key, room * sizeof *more);

        if (more == NULL)
            return false;
        list->key = more;
        list->room = room;
    }
    struct ctl_key fresh = { .at = malloc(len + 1), .len = len };

    if (fresh.at == NULL)
        return false;
    memcpy(fresh.at, key, len);
    if (id != NULL)
        fresh.id = *id;
    list->key[list->n++] = fresh;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct ctl_key *x = a;
    const struct ctl_key *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int rc = memcmp(x->at, y->at, len);

    return rc != 0 ? rc : (x->len > y->len) - (x->len < y->len);
}

static int compare_wholly(const void *a, const void *b)
{
    const struct ctl_key *x = a;
    const struct ctl_key *y = b;
    int rc = compare(a, b);

    return rc != 0 ? rc : memcmp(x->id.byte, y->id.byte, sizeof x->id.byte);
}

static void list_sort(struct ctl_key_list *list)
{
    if (list->n > 0)
        qsort(list->key, list->n, sizeof *list->key, compare_wholly);
}

static const struct ctl_key *list_find(const struct ctl_key_list *list, const struct ctl_key *key)
{
    return list->n > 0 ? bsearch(key, list->key, list->n, sizeof *list->key, compare) : NULL;
}

static void list_free(struct ctl_key_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->key[i].at);
    free(list->key);
}

bool ctl_unique_met(struct ctl_unique *u, const due_record *record)
{
    return record->key_len == 0 || list_add(&u->live, record->key, record->key_len, &record->id);
}

void ctl_unique_free(struct ctl_unique *u)
{
    list_free(&u->live);
    list_free(&u->held);
    list_free(&u->kept);
}

/* ---- What the server has --------------------------------------------------------------------- */

static due_id id_of(const redisReply *bytes)
{
    due_id id = { { 0 } };

    if (due__reply_is_text(bytes) && bytes->len == DUE_STORE_ID_BYTES)
        memcpy(id.byte, bytes->str, DUE_STORE_ID_BYTES);
    return id;
}

static bool add_held(void *ctx, const redisReply *page)
{
    struct ctl_unique *u = ctx;

    for (size_t i = 0; i + 1 < page->elements; i += 2) {
        const redisReply *key = page->element[i];
        due_id id = id_of(page->element[i + 1]);

        if (due__reply_is_text(key) && !list_add(&u->held, key->str, (size_t)key->len, &id))
            return false;
    }
    return true;
}

static bool add_kept(void *ctx, const redisReply *page)
{
    struct ctl_unique *u = ctx;

    for (size_t i = 0; i + 1 < page->elements; i += 2) {
        const redisReply *key = page->element[i];

        if (due__reply_is_text(key) && !list_add(&u->kept, key->str, (size_t)key->len, NULL))
            return false;
    }
    return true;
}

/* ---- One look at one key --------------------------------------------------------------------- */

struct look {
    struct ctl_server *server;
    const struct ctl_keys *keys;
    struct ctl_repair *repair;
    struct ctl_unique *unique;
};

/* What one transaction has shown. */
struct sight {
    bool held, kept; /* it stands there */
    bool led;        /* held: by a job that is stored, and names it */
    due_id of;       /* held: whose */
};

static void ask_field(struct ctl_server *s, const char *command, const char *key, const void *field,
                      size_t len)
{
    due__link_command(s->link, 3);
    due__link_text(s->link, command);
    due__link_text(s->link, key);
    due__link_bytes(s->link, field, len);
}

/* Does the job's record name the key? */
static bool names(const due_id *id, const redisReply *bytes, const struct ctl_key *key)
{
    redisReply name = { .type = REDIS_REPLY_STRING, .len = DUE_STORE_ID_BYTES };
    struct due__record_room room;
    due_record record;

    name.str = (char *)(uintptr_t)id->byte;
    return ctl_record_read(&record, &room, &name, bytes, NULL) == 0 && record.key_len == key->len &&
           memcmp(record.key, key->at, key->len) == 0;
}

/* @id: whose it probably is.  False: no answer. */
static bool look_once(const struct look *l, const struct ctl_key *key, const due_id *id,
                      struct sight *sight)
{
    redisReply *got[5];
    struct due__link *link = l->server->link;

    due__link_words(link, 1, (const char *const[]){ "MULTI" });
    ask_field(l->server, "HGET", l->keys->unique, key->at, key->len);
    ask_field(l->server, "ZSCORE", l->keys->kept, key->at, key->len);
    ask_field(l->server, "HGET", l->keys->jobs, id->byte, DUE_STORE_ID_BYTES);
    due__link_words(link, 1, (const char *const[]){ "EXEC" });
    if (!ctl_server_go(l->server, 5, got))
        return false;
    const redisReply *all = got[4];
    bool fine = ctl_answer_is(all, REDIS_REPLY_ARRAY, "a key") && all->elements == 3;

    *sight = (struct sight){ .held = false };
    if (fine) {
        sight->held = due__reply_is_text(all->element[0]);
        sight->kept = due__reply_is_text(all->element[1]);
        sight->of = id_of(all->element[0]);
        sight->led = sight->held && due_id_equal(sight->of, *id) && names(id, all->element[2], key);
    }
    ctl_answers_free(5, got);
    return fine;
}

static const char *judge(const struct sight *s)
{
    if (s->led && s->kept)
        return "is kept, and a job has it";
    if (s->held && !s->kept && !s->led)
        return "is nobody's";
    return s->kept && !s->held ? "is kept, and nobody knows for whom" : NULL;
}

static bool mend(const struct look *l, const struct ctl_key *key, const struct sight *s)
{
    struct ctl_text text = { key->at, key->len };

    if (l->repair == NULL)
        return true;
    if (!ctl_repair_key(l->repair, text, s->led ? &s->of : NULL)) {
        fprintf(stderr, "duectl: not repaired: the queue is not ours, or the server refuses\n");
        return false;
    }
    l->unique->repaired++;
    return true;
}

/* In a queue in use it may have come to another job since. */
static bool look_at(const struct look *l, const struct ctl_key *key)
{
    struct sight sight;
    const char *what;
    due_id id = key->id;

    for (int round = 0;; round++) {
        if (!look_once(l, key, &id, &sight))
            return false;
        what = judge(&sight);
        if (what == NULL || round == 2 || due_id_equal(sight.of, id))
            break;
        id = sight.of;
    }
    if (what == NULL)
        return true;
    if (l->unique->wrong++ < SHOWN_MAX || ctl_report_is_json())
        ctl_report_wrong("key", key->at, key->len, what);
    return mend(l, key, &sight);
}

static bool is_one_of(const struct ctl_key_list *list, const struct ctl_key *key)
{
    return list->n > 0 &&
           bsearch(key, list->key, list->n, sizeof *list->key, compare_wholly) != NULL;
}

/* Each key of @list that does not fit, unless it stands in what has been looked at before. */
static bool look_at_all(const struct look *l, const struct ctl_key_list *list,
                        const struct ctl_key_list *done)
{
    const struct ctl_unique *u = l->unique;

    for (size_t i = 0; i < list->n; i++) {
        const struct ctl_key *key = &list->key[i];
        bool kept = list_find(&u->kept, key) != NULL;
        bool fits = done == NULL ? is_one_of(&u->live, key) != kept : !kept;

        if (!fits && (done == NULL || list_find(done, key) == NULL) && !look_at(l, key))
            return false;
    }
    return true;
}

/* How many jobs name a key that is another's, or nobody's. */
static uint64_t count_lost(const struct ctl_unique *u)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < u->live.n; i++)
        lost += !is_one_of(&u->held, &u->live.key[i]);
    return lost;
}

bool ctl_unique_check(struct ctl_unique *u, struct ctl_server *s, const struct ctl_keys *k,
                      struct ctl_repair *repair)
{
    const struct look l = { .server = s, .keys = k, .repair = repair, .unique = u };

    if (!ctl_scan(s, "HSCAN", k->unique, NULL, add_held, u) ||
        !ctl_scan(s, "ZSCAN", k->kept, NULL, add_kept, u))
        return false;
    list_sort(&u->live);
    list_sort(&u->held);
    list_sort(&u->kept);
    u->lost = count_lost(u);
    return look_at_all(&l, &u->held, NULL) && look_at_all(&l, &u->kept, &u->held);
}
