/* ledger_hands.c - what is handed out, or listed, against what the ledger has of it. */
#include "ledger_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void check_order(struct ledger *l, const struct job *j, const char *line)
{
    if (!l->ordered || !j->plain || j->topic < 0 || j->topic >= TOPICS)
        return;
    const struct job *was = &l->last[j->topic];
    bool later = j->at_ns != was->at_ns                             ? j->at_ns > was->at_ns
                 : j->priority != was->priority                     ? j->priority < was->priority
                 : j->life != was->life || j->thread != was->thread ? true
                                                                    : j->number > was->number;

    if (l->any_last[j->topic] && !later) {
        l->v.disorder++;
        complain(l, "out of order", j, line);
    }
    l->last[j->topic] = *j;
    l->any_last[j->topic] = true;
}

/* It had gone, and a kill that was allowed to has brought it back. */
static void bring_back(struct ledger *l, struct job *j)
{
    l->v.returned++;
    j->gone = j->closed = j->gone_soon = false;
    j->lease_end_ns = 0;
    if (book_place(l, j) < l->first)
        l->first = book_place(l, j);
}

/* May it carry this, being so? */
static bool may_carry(const struct state *is, const struct content *c)
{
    return c->number == is->current || c->line > is->since;
}

static void check_state(struct ledger *l, struct job *j, const struct content *c, int64_t now_ns,
                        const char *line)
{
    if (j->risk && (j->gone || j->closed || j->gone_soon))
        bring_back(l, j);
    if (j->gone || now_ns < j->lease_end_ns) {
        l->v.doubled++;
        complain(l, "doubled", j, line);
    }
    if (now_ns < j->now.bound_ns)
        late_fault(l, j, FAULT_EARLY, now_ns >= j->kept.bound_ns, line);
    if (j->put == NOT || j->closed || c->refused) {
        l->v.phantom++;
        complain(l, "phantom", j, line);
    } else if (!may_carry(&j->now, c) && !j->risk) {
        late_fault(l, j, FAULT_STALE, may_carry(&j->kept, c), line);
    }
    if (j->now.dead == SURE && !j->risk)
        late_fault(l, j, FAULT_RISEN, j->kept.dead != SURE, line);
}

/* It has come out of the store, and nothing was done to it in this life: the past is settled. */
static void settle_past(struct ledger *l, struct job *j, const struct content *c)
{
    if (j->life + 1 >= l->n_lives)
        return;
    j->put = SURE;
    j->doubt &= j->doubted > l->life_line;
    if (j->touched > l->life_line)
        return;
    j->now.current = c->number;
    j->now.since = l->life_line;
    j->now.dead = NOT;
    j->kept = j->now;
}

/* Whose content it is, if it was handed out under this id.  NULL: nobody's. */
static struct job *owner(struct ledger *l, struct content *c, const char *id)
{
    struct job *j = book_job(l, id);
    struct job *of = &l->jobs[c->job];

    if (j == of)
        return j;
    if (of->id[0] != '\0')
        return NULL;
    if (j == NULL) {
        book_name(l, of, id);
        return of;
    }
    if (!book_may_be(l, j, c))
        return NULL;
    book_merge(l, c, j);
    return j;
}

static void handed(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest)
{
    const struct call *call = &l->calls[thread];
    uint64_t number;
    char id[ID_TEXT];
    int priority;
    int topic;
    int sound;

    if (sscanf(rest, "%" SCNu64 " %39s %d %d %d", &number, id, &priority, &topic, &sound) != 5)
        return;
    struct content *c = book_content(l, number);
    struct job *j = c != NULL ? owner(l, c, id) : NULL;
    struct job none = { .number = number };
    l->v.handed++;
    if (j == NULL || !sound || (j->priority != priority && !j->ranked) || j->topic != topic) {
        l->v.phantom++;
        complain(l, "phantom", j != NULL ? j : &none, rest);
        return;
    }
    if (j->born_line == 0)
        j->born_line = l->lines;
    if (!call->for_good && call->now_ns + call->lease_ns <= now_ns) {
        j->out = j->lent = true; /* he tells of a lease that may be over, and so of the past */
        return;
    }
    keys_seen(l, j, call->line, rest);
    check_state(l, j, c, now_ns, rest);
    check_order(l, j, rest);
    settle_past(l, j, c);
    j->handed_line = j->alive_line = j->safe_line = l->lines;
    j->now.dead = NOT;
    if (call->for_good) {
        j->gone = true;
        j->gone_line = l->lines;
        keys_done(l, j, INT64_MIN, INT64_MAX); /* whenever he says so */
    } else {
        j->lent |= j->out;
        j->out = true;
        j->lease_end_ns = call->now_ns + call->lease_ns;
    }
}

/* The job may have left the store, even if it is handed out once more. */
static void doubted(struct ledger *l, int64_t now_ns, const char *rest)
{
    char id[ID_TEXT];
    struct job *j = sscanf(rest, "%39s", id) == 1 ? book_job(l, id) : NULL;

    if (j == NULL) {
        book_cut(l, now_ns);
        return;
    }
    j->doubt = true;
    j->doubted = l->lines;
}

void told_taking(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest)
{
    struct call *call = &l->calls[thread];
    char answer[40];
    int used = 0;

    call->takes = false;
    l->taken_line = l->lines;
    if (sscanf(rest, "%39s %n", answer, &used) != 1)
        return;
    bool left_out = told_in_doubt(answer) || strcmp(answer, "DUE_ESTORE") == 0;

    l->left_out |= left_out;
    l->ordered &= !left_out; /* what it had taken waits again, behind others */
    if (told_ok(answer)) {
        handed(l, thread, now_ns, rest + used);
    } else if (call->for_good && strcmp(answer, "DUE_EAGAIN") != 0) {
        if (told_in_doubt(answer))
            doubted(l, now_ns, rest + used);
        l->ordered = false; /* what it had taken comes again when that is sure, behind others */
    }
}

bool mortal_nameless(struct ledger *l)
{
    bool any = false;

    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (!j->mortal || j->id[0] != '\0' || j->put != MAYBE)
            continue;
        j->plain = false;
        any = true;
    }
    return any;
}

void told_dead(struct ledger *l, unsigned thread, const char *rest)
{
    uint64_t line = l->calls[thread].line;
    char id[ID_TEXT];

    if (sscanf(rest, "%39s", id) != 1)
        return;
    struct job *j = book_job(l, id);
    struct job none = { .number = 0 };
    if (j == NULL && mortal_nameless(l))
        return;
    if (j == NULL) {
        l->v.phantom++;
        complain(l, "phantom", &none, rest);
        return;
    }
    keys_seen(l, j, line, rest);
    j->safe_line = line > j->safe_line ? line : j->safe_line;
    bool alive = j->now.dead == NOT && j->alive_line < line && !j->mortal;
    bool ended = (j->gone && j->gone_line < line) || j->closed;
    if (!j->risk && (alive || ended))
        late_fault(l, j, FAULT_RISEN, !ended && j->kept.dead != NOT, rest);
}
