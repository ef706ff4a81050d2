/* ledger_late.c - changes that nobody waits for, and that are refused when all believe in them.
 *
 * Its job is as it was before, then.  Other threads may have it so before on_settled says why, and
 * who asked for the change may be told DUE_OK after that.  So a job that comes as it was, or might
 * have been, is wrong only if nothing was said of it by the next flush or the end of a close; and
 * what was said of a job is kept until it is known which one that is.
 */
#include "ledger_book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refused(struct job *j, uint64_t line)
{
    j->refused_line = line;
    j->usurped = 0; /* so nobody need have had its key */
    j->now.since = j->kept.since = 0;
    book_maybe_dead(j);
    book_sooner(j, j->least_ns);
    j->has_key = j->has_key == SURE ? MAYBE : j->has_key;
}

static void excuse_all_of(struct ledger *l, uint32_t place)
{
    size_t left = 0;

    for (size_t i = 0; i < l->n_waiting; i++)
        if (l->waiting[i].place != place)
            l->waiting[left++] = l->waiting[i];
    l->n_waiting = left;
}

void late_settled(struct ledger *l, const char *rest)
{
    char id[ID_TEXT];
    char answer[40];

    if (sscanf(rest, "%39s %39s", id, answer) != 2 || told_ok(answer))
        return;
    struct job *j = book_job(l, id);
    if (j != NULL) {
        refused(j, l->lines);
        excuse_all_of(l, book_place(l, j));
        return;
    }
    l->strangers = book_need(realloc(l->strangers, (l->n_strangers + 1) * sizeof *l->strangers));
    struct stranger *s = &l->strangers[l->n_strangers++];
    s->line = l->lines;
    snprintf(s->id, sizeof s->id, "%s", id);
}

void late_named(struct ledger *l, struct job *j)
{
    for (size_t i = 0; i < l->n_strangers; i++)
        if (strcmp(l->strangers[i].id, j->id) == 0)
            refused(j, l->strangers[i].line);
}

/* ---- Faults that may have a reason ---- */

static void count_fault(struct ledger *l, const struct job *j, enum fault what, const char *line)
{
    static const char *const names[] = { "stale", "early", "risen" };

    l->v.stale += what == FAULT_STALE;
    l->v.early += what == FAULT_EARLY;
    l->v.risen += what == FAULT_RISEN;
    complain(l, names[what], j, line);
}

void late_fault(struct ledger *l, const struct job *j, enum fault what, bool was_so,
                const char *line)
{
    if (!was_so) {
        count_fault(l, j, what, line);
        return;
    }
    l->waiting = book_need(realloc(l->waiting, (l->n_waiting + 1) * sizeof *l->waiting));
    l->waiting[l->n_waiting++] =
        (struct waiting_fault){ .line = l->lines, .place = book_place(l, j), .what = what };
}

void late_judge(struct ledger *l, uint64_t line)
{
    size_t left = 0;

    for (size_t i = 0; i < l->n_waiting; i++) {
        const struct waiting_fault *f = &l->waiting[i];
        const struct job *j = &l->jobs[f->place];

        if (f->line < line)
            count_fault(l, j, f->what, j->id);
        else
            l->waiting[left++] = *f;
    }
    l->n_waiting = left;
}

void late_forget(struct ledger *l)
{
    l->n_waiting = l->n_strangers = 0;
}
