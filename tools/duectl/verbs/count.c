/* count.c - what a queue holds, by topic: each job is looked at once. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Topics by name -------------------------------------------------------------------------- */

static size_t slot_of(const struct ctl_counted *c, const char *topic)
{
    size_t at = (size_t)ctl_hash(topic, strlen(topic)) & (c->slots - 1);

    while (c->table[at] != 0 && strcmp(c->topics[c->table[at] - 1].topic, topic) != 0)
        at = (at + 1) & (c->slots - 1);
    return at;
}

/* Room for one more: half of the table stays empty. */
static bool grow(struct ctl_counted *c)
{
    size_t room = c->room == 0 ? 16 : 2 * c->room;

    if (c->n < c->room)
        return true;
    struct ctl_count *topics = realloc(c->topics, room * sizeof *topics);
    if (topics == NULL)
        return false;
    c->topics = topics;
    size_t *table = calloc(2 * room, sizeof *table);
    if (table == NULL)
        return false;
    free(c->table);
    c->table = table;
    c->slots = 2 * room;
    c->room = room;
    for (size_t i = 0; i < c->n; i++)
        c->table[slot_of(c, c->topics[i].topic)] = i + 1;
    return true;
}

static struct ctl_count *count_of(struct ctl_counted *c, const char *topic)
{
    if (!grow(c))
        return NULL;
    size_t at = slot_of(c, topic);
    if (c->table[at] == 0) {
        char *name = strdup(topic);

        if (name == NULL)
            return NULL;
        c->topics[c->n] =
            (struct ctl_count){ .topic = name, .oldest_ns = DUE_FOREVER, .next_ns = DUE_FOREVER };
        c->table[at] = ++c->n;
    }
    return &c->topics[c->table[at] - 1];
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void add(struct ctl_count *c, const due_record *r, int64_t now_ns)
{
    c->bytes += r->len;
    if (r->cause != 0) {
        c->dead++;
    } else if (strcmp(ctl_state_of(r), "reserved") == 0) {
        c->reserved++;
    } else {
        c->waiting++;
        c->due += r->until_ns <= now_ns;
        if (r->until_ns <= now_ns && r->until_ns < c->oldest_ns)
            c->oldest_ns = r->until_ns;
        if (r->until_ns > now_ns && r->until_ns < c->next_ns)
            c->next_ns = r->until_ns;
    }
}

struct visit {
    struct ctl_counted *counted;
    const char *topic;
};

void ctl_count_open(struct ctl_counted *c)
{
    *c = (struct ctl_counted){ .all = { .oldest_ns = DUE_FOREVER, .next_ns = DUE_FOREVER } };
    c->now_ns = ctl_at_ns(&(struct ctl_entry){ .kind = CTL_DELAY });
}

bool ctl_count_job(struct ctl_counted *c, const due_record *record)
{
    struct ctl_count *of_topic = count_of(c, record->topic);

    if (of_topic == NULL) {
        c->failed = true;
        return false;
    }
    add(of_topic, record, c->now_ns);
    add(&c->all, record, c->now_ns);
    return true;
}

static bool visit_job(void *ctx, due_id id, int rc, const due_record *record)
{
    struct visit *v = ctx;
    struct ctl_counted *c = v->counted;

    (void)id;
    if (rc != 0) {
        c->unreadable++;
        return true;
    }
    if (v->topic != NULL && strcmp(v->topic, record->topic) != 0)
        return true;
    return ctl_count_job(c, record);
}

/* A topic that holds jobs back is shown also if it has none. */
static bool visit_held_back(void *ctx, const char *topic, bool paused, uint64_t limit)
{
    struct visit *v = ctx;

    if (v->topic != NULL && strcmp(v->topic, topic) != 0)
        return true;
    struct ctl_count *of_topic = count_of(v->counted, topic);
    if (of_topic == NULL) {
        v->counted->failed = true;
        return false;
    }
    of_topic->paused = paused;
    of_topic->limit = limit;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ctl_count *)a)->topic, ((const struct ctl_count *)b)->topic);
}

void ctl_count_sort(struct ctl_counted *c)
{
    if (c->n > 0)
        qsort(c->topics, c->n, sizeof *c->topics, by_name);
}

int ctl_count(struct ctl_counted *c, const struct ctl_look *look)
{
    struct visit v = { .counted = c, .topic = look->topic };

    ctl_count_open(c);
    int status = ctl_jobs(look, visit_job, &v);
    if (status == CTL_FINE && !c->failed)
        status = ctl_held_back(look, visit_held_back, &v);
    if (c->failed) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    ctl_count_sort(c);
    if (c->unreadable == 0)
        return status;
    fprintf(stderr, "duectl: %" PRIu64 " jobs cannot be read: duectl verify says more\n",
            c->unreadable);
    return status == 0 ? CTL_FAULTS : status;
}

void ctl_count_free(struct ctl_counted *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->topics[i].topic);
    free(c->topics);
    free(c->table);
}
