/* ledger_book.c - jobs, contents and lanes of the ledger. */
#include "ledger_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 20 /* complaints that are printed */

void *book_need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "ledger: out of memory\n");
        exit(2);
    }
    return memory;
}

struct ledger *ledger_new(void)
{
    return book_need(calloc(1, sizeof(struct ledger)));
}

void ledger_free(struct ledger *l)
{
    free(l->jobs);
    free(l->contents);
    free(l->by_number.slots);
    free(l->by_id.slots);
    free(l->cuts);
    free(l->strangers);
    free(l->waiting);
    free(l);
}

void ledger_hush(struct ledger *l)
{
    l->shown = SHOWN;
}

void book_doubt_all(struct ledger *l)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        l->jobs[i].doubt = true;
        l->jobs[i].doubted = l->lines;
    }
}

/* Nor did it take one that is reserved, or dead: those are nobody else's, and stay in the store. */
void book_cut(struct ledger *l, int64_t ns)
{
    l->cuts = book_need(realloc(l->cuts, (l->n_cuts + 1) * sizeof *l->cuts));
    l->cuts[l->n_cuts++] = (struct cut){ .line = l->lines, .ns = ns };
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->lease_end_ns > ns || j->now.dead == SURE)
            j->safe_line = l->lines;
    }
}

void complain(struct ledger *l, const char *what, const struct job *j, const char *line)
{
    if (l->shown++ < SHOWN)
        printf("  %s: job %" PRIu64 " of life %u (put %d, gone %d, doubt %d, dead %d, key %u): "
               "line %" PRIu64 ": %s\n",
               what, j->number, j->life, (int)j->put, (int)j->gone, (int)j->doubt, (int)j->now.dead,
               (unsigned)j->key, l->lines, line);
}

bool told_ok(const char *answer)
{
    return strcmp(answer, "DUE_OK") == 0;
}

bool told_in_doubt(const char *answer)
{
    return strcmp(answer, "DUE_EINDOUBT") == 0;
}

/* ---- Tables ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static size_t first_slot(const struct table *t, uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->room - 1);
}

static uint32_t *slot_of_number(struct ledger *l, uint64_t number)
{
    struct table *t = &l->by_number;
    size_t at = first_slot(t, number);

    while (t->slots[at] != 0 && l->contents[t->slots[at] - 1].number != number)
        at = (at + 1) & (t->room - 1);
    return &t->slots[at];
}

static uint32_t *slot_of_id(struct ledger *l, const char *id)
{
    struct table *t = &l->by_id;
    size_t at = first_slot(t, hash_text(id));

    while (t->slots[at] != 0 && strcmp(l->jobs[t->slots[at] - 1].id, id) != 0)
        at = (at + 1) & (t->room - 1);
    return &t->slots[at];
}

static void table_for(struct table *t, size_t room)
{
    free(t->slots);
    t->room = 4 * room;
    t->slots = book_need(calloc(t->room, sizeof *t->slots));
}

static void room_for_content(struct ledger *l)
{
    if (l->n_contents < l->contents_room)
        return;
    l->contents_room = l->contents_room > 0 ? 2 * l->contents_room : 512;
    l->contents = book_need(realloc(l->contents, l->contents_room * sizeof *l->contents));
    table_for(&l->by_number, l->contents_room);
    for (size_t i = 0; i < l->n_contents; i++)
        *slot_of_number(l, l->contents[i].number) = (uint32_t)i + 1;
}

static void room_for_job(struct ledger *l)
{
    if (l->n_jobs < l->jobs_room)
        return;
    l->jobs_room = l->jobs_room > 0 ? 2 * l->jobs_room : 512;
    l->jobs = book_need(realloc(l->jobs, l->jobs_room * sizeof *l->jobs));
    table_for(&l->by_id, l->jobs_room);
    for (size_t i = 0; i < l->n_jobs; i++) {
        if (l->jobs[i].id[0] != '\0')
            *slot_of_id(l, l->jobs[i].id) = (uint32_t)i + 1;
    }
}

struct content *book_content(struct ledger *l, uint64_t number)
{
    uint32_t place = l->n_contents > 0 ? *slot_of_number(l, number) : 0;

    return place != 0 ? &l->contents[place - 1] : NULL;
}

struct job *book_job(struct ledger *l, const char *id)
{
    uint32_t place = l->n_jobs > 0 && id[0] != '\0' ? *slot_of_id(l, id) : 0;

    return place != 0 ? &l->jobs[place - 1] : NULL;
}

uint32_t book_place(const struct ledger *l, const struct job *j)
{
    return (uint32_t)(j - l->jobs);
}

struct content *book_add_to(struct ledger *l, uint64_t number, uint32_t place)
{
    room_for_content(l);
    struct content *c = &l->contents[l->n_contents++];
    *c = (struct content){ .number = number, .line = l->lines, .job = place, .own = place };
    *slot_of_number(l, number) = (uint32_t)l->n_contents;
    return c;
}

struct content *book_add(struct ledger *l, uint64_t number)
{
    room_for_job(l);
    l->jobs[l->n_jobs] = (struct job){ .number = number,
                                       .life = (unsigned)l->n_lives - 1,
                                       .plain = true,
                                       .done_ns = INT64_MIN,
                                       .done_by_ns = INT64_MAX };
    l->jobs[l->n_jobs].safe_line = l->lines;
    return book_add_to(l, number, (uint32_t)l->n_jobs++);
}

void book_name(struct ledger *l, struct job *j, const char *id)
{
    if (j->id[0] != '\0' || id[0] == '\0')
        return;
    snprintf(j->id, sizeof j->id, "%s", id);
    j->named_line = l->lines;
    *slot_of_id(l, j->id) = book_place(l, j) + 1;
    late_named(l, j);
}

void book_meet(struct ledger *l, uint64_t number, const char *id)
{
    const struct content *c = book_content(l, number);

    if (c != NULL && book_job(l, id) == NULL && l->jobs[c->job].id[0] == '\0')
        book_name(l, &l->jobs[c->job], id);
}

void book_forget(struct ledger *l)
{
    l->n_jobs = l->n_contents = l->first = 0;
    late_forget(l);
    memset(l->calls, 0, sizeof l->calls);
    memset(l->keys, 0, sizeof l->keys);
    if (l->jobs_room > 0)
        memset(l->by_id.slots, 0, l->by_id.room * sizeof *l->by_id.slots);
    if (l->contents_room > 0)
        memset(l->by_number.slots, 0, l->by_number.room * sizeof *l->by_number.slots);
}

/* ---- Lanes and states ---- */

struct lane *book_lane(struct ledger *l, struct job *j)
{
    return j->key != 0 ? &l->keys[j->key].lane : &j->own_lane;
}

void lane_enter(struct lane *lane)
{
    lane->overlap |= lane->wants++ > 0;
}

bool lane_leave(struct lane *lane)
{
    bool alone = !lane->overlap;

    if (--lane->wants == 0)
        lane->overlap = false;
    return alone;
}

void book_sooner(struct job *j, int64_t ns)
{
    if (ns < j->now.bound_ns)
        j->now.bound_ns = ns;
    if (ns < j->kept.bound_ns)
        j->kept.bound_ns = ns;
    if (ns < j->least_ns)
        j->least_ns = ns;
}

void book_maybe_dead(struct job *j)
{
    j->now.dead = j->kept.dead = MAYBE;
}

bool book_may_be(struct ledger *l, const struct job *j, const struct content *c)
{
    uint32_t key = l->jobs[c->own].key;

    return key != 0 && key == j->key &&
           (c->changes || (book_content(l, j->number)->changes && c->line < j->named_line));
}

void book_merge(struct ledger *l, struct content *c, struct job *j)
{
    struct job *own = &l->jobs[c->own];

    c->job = book_place(l, j);
    own->put = NOT;
    own->has_key = NOT;
    if (j->now.dead == SURE || j->kept.dead == SURE)
        book_maybe_dead(j);
}
