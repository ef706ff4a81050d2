/* ledger_keys.c - of one unique key at most one live job at any time.
 *
 * What an answer says of a key was so at some moment between question and answer.  So a job that
 * had the key before the question, and is met in what is asked after the answer, had it all along:
 * then nobody else can have got it, nor can it have been free.
 *
 * A job that somebody has loses its key to one that replaces it.  Where that may have been so, the
 * job is left out from then on.  It may have been so by a call that changes jobs and says that it
 * has begun one, or not what it has done; or that it has changed one which nobody had seen before
 * it was asked.  That job may be the one that it began, and another call, which has replaced what
 * that carries, was told the id first.  Who has changed a job that was there has taken over
 * nothing, nor has who was refused, or looked.
 */
#include "ledger_book.h"

#include <stdio.h>

static void wrong(struct ledger *l, const struct job *j, const char *line)
{
    l->v.keys++;
    complain(l, "key", j, line);
}

static struct job *next(struct ledger *l, uint32_t place)
{
    return place != 0 ? &l->jobs[place - 1] : NULL;
}

/* Who was another's victim was there all the same. */
static void alive(struct ledger *l, struct job *j, uint64_t line, const char *rest)
{
    if (j->usurped == 0 || line <= j->usurped || j->risk)
        return;
    wrong(l, j, rest);
    j->usurped = 0;
}

/* Of those of one key that were stored when this life began only one had it. */
static void came(struct ledger *l, struct job *j, const char *rest)
{
    struct key *k = &l->keys[j->key];

    if (j->key == 0 || j->has_key != SURE || j->risk || j->life + 1 >= l->n_lives)
        return;
    if (k->life == l->n_lives && k->came != book_place(l, j) + 1)
        wrong(l, j, rest);
    k->life = (unsigned)l->n_lives;
    k->came = book_place(l, j) + 1;
}

void keys_seen(struct ledger *l, struct job *j, uint64_t line, const char *rest)
{
    alive(l, j, line, rest);
    if (line > l->life_line) /* else it need not have been there any more */
        came(l, j, rest);
}

/* May somebody have had the job since line @from, so that another one could take its key over?  A
 * clear has what it finds until its store has answered, and gives back what that refuses. */
static bool may_be_out(const struct ledger *l, const struct job *j, uint64_t from, int64_t now_ns)
{
    bool taken = l->taken_line > from || l->left_out;
    bool cleared = j->cleared > from;

    for (size_t i = 0; i < THREADS; i++) {
        taken |= l->calls[i].takes;
        cleared |= l->calls[i].clears;
    }
    return cleared || j->out || j->lent || j->leaving > 0 || j->doubt || j->revoked ||
           j->back_line > from ||
           ((taken || j->mortal) && j->now.bound_ns <= now_ns); /* its death may be on its way */
}

/* An enqueue that takes over the keys of jobs that are out may have met this one. */
static void taken_over(struct ledger *l, struct job *j, const struct call *call, bool surely,
                       int64_t now_ns)
{
    if (j->has_key != SURE || !may_be_out(l, j, call->line, now_ns))
        return;
    j->has_key = MAYBE;
    if (surely && j->out && j->handed_line < call->line && now_ns < j->lease_end_ns) {
        j->has_key = NOT;
        j->lost_line = l->lines;
    }
}

bool keys_nameless(struct ledger *l, const struct call *call)
{
    for (struct job *j = next(l, l->keys[call->key].first); j != NULL; j = next(l, j->of_key)) {
        const struct content *c = book_content(l, j->number);

        if (j->id[0] == '\0' && j->number != call->number && !j->closed &&
            (!c->refused || c->refused_line > call->line))
            return true;
    }
    return false;
}

/* The key is said to be that of the job @id.  Answers whether it may be. */
static bool had(struct ledger *l, const struct call *call, const char *id)
{
    struct job *j = book_job(l, id);
    struct job none = { .key = call->key };

    if (j == NULL) {
        bool may = keys_nameless(l, call);

        if (!may)
            wrong(l, &none, id);
        return may;
    }
    bool ended = (j->gone && j->gone_line < call->line) || j->closed;
    /* When it was done; or somebody is about to say that he has taken it. */
    bool unsure =
        !j->gone && (j->gone_soon || j->closed || may_be_out(l, j, j->usurped, call->answer_ns));
    bool kept = call->number != 0 && j->keep_ns > 0 &&
                (unsure || (j->gone && call->now_ns - j->keep_ns <= j->done_by_ns));
    bool lost = j->has_key == NOT && j->lost_line < call->line;
    if (j->key != call->key || (!j->risk && ((ended && !kept) || lost))) {
        wrong(l, j, id);
        return false;
    }
    if (!kept)
        keys_seen(l, j, call->line, id);
    return true;
}

void keys_shown(struct ledger *l, const char *rest)
{
    char id[ID_TEXT];
    struct job *j = sscanf(rest, "%39s", id) == 1 ? book_job(l, id) : NULL;

    if (j == NULL)
        return;
    j->shown = l->lines;
    j->usurped = 0; /* somebody may have heard so a moment before */
}

/* A take that was in doubt may have had it before, and its key is kept from then on. */
void keys_done(const struct ledger *l, struct job *j, int64_t from_ns, int64_t to_ns)
{
    j->done_by_ns = to_ns;
    if (!l->async && !l->left_out && j->has_key == SURE)
        j->done_ns = from_ns;
}

/* Is there another call that may have replaced who has the key, and is not answered yet? */
static bool is_replaced_meanwhile(const struct ledger *l, const struct call *call)
{
    for (size_t i = 0; i < THREADS; i++)
        if (&l->calls[i] != call && l->calls[i].changes && l->calls[i].key == call->key)
            return true;
    return false;
}

/* The key of a job that is done was still taken, and somebody else got it.  Unless it had been
 * replaced before it was done, by a call that is not answered yet: whose job this call has changed,
 * or which somebody had by then, so that this one took the key over.
 */
static void check_kept(struct ledger *l, const struct call *call, const char *id)
{
    if (call->changes && (is_replaced_meanwhile(l, call) || keys_nameless(l, call)))
        return;
    for (struct job *it = next(l, l->keys[call->key].first); it != NULL; it = next(l, it->of_key))
        if (it->gone && it->gone_line < call->line && it->done_ns != INT64_MIN && !it->risk &&
            it->keep_ns > 0 && call->answer_ns - it->keep_ns < it->done_ns)
            wrong(l, it, id);
}

/* May the call have begun a job that has the key? */
static bool may_have_begun(const struct call *call, enum key_answer what, const struct job *j)
{
    bool before = j != NULL && j->born_line != 0 && j->born_line < call->line;

    return call->changes &&
           (what == KEY_NEW || what == KEY_UNKNOWN || (what == KEY_CHANGED && !before));
}

void keys_answered(struct ledger *l, const struct call *call, bool alone, enum key_answer what,
                   const struct job *j, const char *id)
{
    bool says = what == KEY_NEW || what == KEY_FREE; /* whose it is: nobody's else */
    bool begun = may_have_begun(call, what, j);
    struct job *it;

    if (what == KEY_CHANGED || what == KEY_HAD)
        says = had(l, call, id);
    if (what == KEY_HAD)
        j = book_job(l, id);
    if (what == KEY_NEW)
        check_kept(l, call, id);
    if (what == KEY_REFUSED)
        return;
    for (it = next(l, l->keys[call->key].first); it != NULL; it = next(l, it->of_key)) {
        if (it != j && it->gone && it->gone_line > call->line && begun)
            it->done_ns = INT64_MIN; /* it may have lost it before it was done */
        if (it == j || it->gone || it->closed)
            continue;
        if (begun)
            taken_over(l, it, call, alone && what == KEY_NEW && !l->async, call->answer_ns);
        if (what == KEY_FREE && it->shown > l->life_line) /* by who says so, too */
            continue;
        if (alone && says && it->has_key == SURE && !it->risk && it->born_line != 0 &&
            it->born_line < call->line)
            it->usurped = l->lines;
    }
}
