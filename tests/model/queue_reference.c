/* queue_reference.c - what a queue should do, as sorted arrays. */
#include "model/queue_reference.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct job *a, const struct job *b)
{
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->arrival < b->arrival;
}

static size_t place_of(const struct line *line, const struct job *j)
{
    size_t low = 0;
    size_t high = line->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (before(line->job[middle], j))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void line_add(struct world *w, struct job *j)
{
    struct line *line = &w->line[j->topic];
    size_t at = place_of(line, j);

    memmove(line->job + at + 1, line->job + at, (line->count - at) * sizeof(struct job *));
    line->job[at] = j;
    line->count++;
}

static void line_remove(struct world *w, struct job *j)
{
    struct line *line = &w->line[j->topic];
    size_t at = place_of(line, j);

    line->count--;
    memmove(line->job + at, line->job + at + 1, (line->count - at) * sizeof(struct job *));
}

void reference_add(struct world *w, struct job *j)
{
    j->arrival = w->arrivals++;
    j->live = true;
    j->live_at = w->live_count;
    w->live[w->live_count++] = j;
    line_add(w, j);
}

void reference_remove(struct world *w, struct job *j)
{
    line_remove(w, j);
    j->live = false;
    w->live[j->live_at] = w->live[--w->live_count];
    w->live[j->live_at]->live_at = j->live_at;
}

struct job *reference_head(const struct world *w, int topic)
{
    const struct line *line = &w->line[topic];
    struct job *best = NULL;

    if (line->paused || line->count == 0 || line->job[0]->deadline > w->now)
        return NULL;
    best = line->job[0];
    for (size_t i = 1; w->by_priority && i < line->count; i++) {
        if (line->job[i]->deadline > w->now)
            break;
        if (line->job[i]->priority > best->priority)
            best = line->job[i];
    }
    return best;
}

bool reference_due(const struct world *w)
{
    for (int t = 0; t < TOPICS; t++) {
        if (reference_head(w, t) != NULL)
            return true;
    }
    return false;
}

struct job *reference_job(struct world *w, const void *ptr)
{
    uintptr_t number = (uintptr_t)ptr;

    return number > 0 && number <= w->made ? &w->jobs[number - 1] : NULL;
}

void reference_move(struct world *w, struct job *j, int64_t to_ns)
{
    line_remove(w, j);
    j->deadline = to_ns;
    j->arrival = w->arrivals++;
    line_add(w, j);
}

struct job *reference_next(const struct world *w)
{
    struct job *next = NULL;

    for (int t = 0; t < TOPICS; t++) {
        const struct line *line = &w->line[t];
        size_t at = 0;

        while (at < line->count && line->job[at]->deadline <= w->now)
            at++;
        if (at < line->count && (next == NULL || before(line->job[at], next)))
            next = line->job[at];
    }
    return next;
}

uint64_t reference_count_due(const struct world *w, bool with_paused)
{
    uint64_t due = 0;

    for (int t = 0; t < TOPICS; t++) {
        const struct line *line = &w->line[t];

        for (size_t i = 0; i < line->count && line->job[i]->deadline <= w->now; i++)
            due += with_paused || !line->paused;
    }
    return due;
}

static void *array(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (memory == NULL)
        abort();
    return memory;
}

void reference_init(struct world *w)
{
    w->jobs = array(ROOM, sizeof *w->jobs);
    w->live = array(ROOM, sizeof *w->live);
    for (int t = 0; t < TOPICS; t++)
        w->line[t].job = array(ROOM, sizeof *w->line[t].job);
}

void reference_free(struct world *w)
{
    free(w->jobs);
    free(w->live);
    for (int t = 0; t < TOPICS; t++)
        free(w->line[t].job);
}
