/* ledger.c - the checker of the crash tests: what lines say, and what follows from them.
 *
 * Of each job it keeps what the callers' answers allow: whether it went in (maybe, surely, surely
 * not), what it carries, when it may come, whether it is dead, and whether it left.  A line that
 * says what a caller wants makes things possible, the line with the answer makes them sure.  The
 * lines of two threads may be in another order than what they tell of, so neither may undo what the
 * other has said.
 */
#include "ledger_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Changes ---- */

/* Something is wanted that gives the job another state. */
static void want_change(struct ledger *l, unsigned thread, struct job *j)
{
    struct call *call = &l->calls[thread];

    call->now = j->now;
    call->kept = j->kept;
    call->place = book_place(l, j) + 1;
    j->touched = l->lines;
    lane_enter(book_lane(l, j));
}

/* It is another time. */
static void want_time(struct ledger *l, unsigned thread, struct job *j, int64_t ns)
{
    want_change(l, thread, j);
    l->calls[thread].want_ns = ns;
    j->plain = false;
    book_sooner(j, ns);
}

/* The change has its answer.  True: it has been made, and nothing else meanwhile. */
static bool told_change(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    const struct call *call = &l->calls[thread];
    bool alone = lane_leave(book_lane(l, j)) && j->handed_line < call->line && l->revivals == 0 &&
                 l->revived_line < call->line && j->refused_line < call->line;

    if (told_ok(answer)) {
        j->mark = l->lines;
        keys_seen(l, j, call->line, answer);
    } else if (!told_in_doubt(answer) && alone && !l->async && !j->risk) {
        j->now = call->now;
        j->kept = call->kept;
    }
    return alone && told_ok(answer);
}

/* It is another time, or dead: and nobody's who had it, unless that is on its way still. */
static void told_back(const struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    if (!told_ok(answer) || l->async || j->handed_line > l->calls[thread].line)
        return;
    j->out = false;
    j->back_line = l->lines;
}

/* It is known how the job is now; so it will be after a crash, if that is confirmed. */
static void settle(const struct ledger *l, struct job *j)
{
    if (!l->async)
        j->kept = j->now;
}

static void told_time(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    if (!told_change(l, thread, j, answer))
        return;
    j->now.bound_ns = l->calls[thread].want_ns;
    settle(l, j);
}

static void told_death(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    if (!told_change(l, thread, j, answer))
        return;
    j->now.dead = SURE;
    settle(l, j);
}

static void told_kick(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    if (!told_change(l, thread, j, answer))
        return;
    j->now.dead = NOT;
    j->alive_line = l->lines;
    j->now.bound_ns = l->calls[thread].want_ns;
    settle(l, j);
}

static void refuse(struct ledger *l, struct content *c)
{
    c->refused = true;
    c->refused_line = l->lines;
}

static void told_update(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    uint64_t number = l->calls[thread].number;

    if (!told_ok(answer) && !told_in_doubt(answer))
        refuse(l, book_content(l, number));
    if (!told_change(l, thread, j, answer))
        return;
    j->now.current = number;
    j->now.since = l->lines;
    settle(l, j);
}

/* ---- Enqueue ---- */

/* Any job of the key may be the one that is changed. */
static void want_replaced(struct ledger *l, uint32_t key, int64_t at_ns)
{
    for (uint32_t place = l->keys[key].first; place != 0; place = l->jobs[place - 1].of_key) {
        struct job *j = &l->jobs[place - 1];

        j->touched = l->lines;
        j->plain = false;
        book_sooner(j, at_ns);
        if (j->now.dead != NOT || j->kept.dead != NOT)
            book_maybe_dead(j);
    }
}

/* The job may carry the content @c instead, or have carried it first. */
static void want_other(struct job *j, const struct content *c)
{
    j->plain = false;
    book_sooner(j, c->at_ns);
    if (c->line <= j->now.since)
        j->now.since = j->kept.since = c->line - 1;
}

/* An enqueue that is under way may change a job that comes in after it was asked for, and be told
 * its id first: then what it has begun is that job, whose time it need not have set.  And one that
 * changes a job may meet one whose id nobody was told: so is that. */
static void want_others(struct ledger *l, struct job *j, uint32_t key, const struct content *c)
{
    for (size_t i = 0; i < THREADS; i++) {
        const struct call *call = &l->calls[i];

        if (call->key != key || call->number == 0)
            continue;
        const struct content *other = book_content(l, call->number);
        if (call->changes || c->keeps)
            want_other(j, other);
        if (other->keeps)
            want_other(&l->jobs[other->own], c);
        else if (call->changes)
            l->jobs[other->own].plain = false;
    }
    for (uint32_t place = l->keys[key].first; place != 0; place = l->jobs[place - 1].of_key) {
        const struct job *it = &l->jobs[place - 1];

        if (c->changes && it->id[0] == '\0' && it->put == MAYBE)
            want_other(j, book_content(l, it->number));
    }
}

static void want_enqueue(struct ledger *l, unsigned thread, const char *rest)
{
    uint64_t number;
    int64_t at_ns;
    int priority;
    int topic;
    unsigned key;
    char policy[16];
    int64_t keep_ns = 0;

    if (sscanf(rest, "%" SCNu64 " %" SCNd64 " %d %d %u %15s %" SCNd64, &number, &at_ns, &priority,
               &topic, &key, policy, &keep_ns) < 6 ||
        key > KEYS)
        return;
    struct content *c = book_add(l, number);
    struct job *j = &l->jobs[c->job];
    c->at_ns = at_ns;
    c->changes = strcmp(policy, "refuse") != 0;
    c->keeps = strcmp(policy, "earliest") == 0;
    j->now = (struct state){ .bound_ns = at_ns, .current = number, .since = l->lines, .dead = NOT };
    j->kept = j->now;
    j->at_ns = j->least_ns = at_ns;
    j->priority = priority;
    j->topic = topic;
    j->thread = thread;
    j->has_key = SURE;
    j->keep_ns = keep_ns;
    if (key != 0)
        want_others(l, j, key, c);
    l->calls[thread].number = number;
    l->calls[thread].changes = c->changes;
    l->calls[thread].key = key;
    if (key == 0)
        return;
    if (c->changes)
        want_replaced(l, key, at_ns);
    j->key = key;
    j->of_key = l->keys[key].first;
    l->keys[key].first = c->job + 1;
    lane_enter(&l->keys[key].lane);
}

/* The job has come in, or may have. */
static void told_put(struct ledger *l, struct job *j, const char *answer)
{
    if (!told_ok(answer))
        return;
    j->born_line = l->lines;
    if (l->async) {
        j->put_soon = true;
    } else {
        l->v.told++;
        j->put = SURE;
    }
}

/* An enqueue has left the job what it carries, but for its time. */
static void told_kept(struct ledger *l, unsigned thread, struct job *j, struct content *c,
                      const char *answer, bool alone)
{
    const struct call *call = &l->calls[thread];

    if (!told_ok(answer))
        return;
    j->mark = l->lines;
    if (j->born_line != 0 && j->born_line < call->line)
        refuse(l, c); /* nor has it begun the job */
    if (!alone || j->handed_line > call->line || j->refused_line > call->line)
        return;
    j->now.dead = NOT;
    j->alive_line = l->lines;
    settle(l, j);
}

/* The job has what an enqueue brought, be it new or another one's. */
static void told_content(struct ledger *l, unsigned thread, struct job *j, struct content *c,
                         const char *answer, bool alone)
{
    if (!told_ok(answer))
        return;
    j->mark = l->lines;
    if (!alone || j->handed_line > l->calls[thread].line || j->refused_line > l->calls[thread].line)
        return;
    j->now = (struct state){
        .bound_ns = c->at_ns, .current = c->number, .since = l->lines, .dead = NOT
    };
    j->alive_line = l->lines;
    settle(l, j);
}

static void told_enqueue(struct ledger *l, unsigned thread, struct content *c, const char *answer,
                         const char *id)
{
    const struct call *call = &l->calls[thread];
    struct job *own = &l->jobs[c->own];
    uint32_t key = own->key;
    bool in = told_ok(answer) || told_in_doubt(answer);
    bool alone = key != 0 && lane_leave(&l->keys[key].lane);
    bool taken = strcmp(answer, "DUE_EEXIST") == 0;
    struct job *j = book_job(l, id);

    if (!in) {
        refuse(l, c);
        own->put = NOT;
    } else if (j == NULL || j == own) {
        book_name(l, own, id);
        told_put(l, own, answer);
        told_content(l, thread, own, c, answer, alone && !(c->keeps && keys_nameless(l, call)));
        j = own;
    } else if (book_may_be(l, j, c)) {
        book_merge(l, c, j);
        if (j->born_line == 0) /* who was told its id first was in doubt */
            told_put(l, j, answer);
        else
            l->v.told += told_ok(answer) && !l->async;
        (c->keeps ? told_kept : told_content)(l, thread, j, c, answer, alone);
    } else {
        l->v.phantom++;
        complain(l, "enqueued as another", j, id);
    }
    if (key == 0)
        return;
    enum key_answer what = taken                   ? KEY_HAD
                           : !in                   ? KEY_REFUSED
                           : told_in_doubt(answer) ? KEY_UNKNOWN
                           : j == own              ? KEY_NEW
                                                   : KEY_CHANGED;
    keys_answered(l, call, alone, what, j, id);
}

/* ---- Removals ---- */

/* A removal has its answer. */
static void told_removal(struct ledger *l, unsigned thread, struct job *j, const char *answer)
{
    j->leaving -= j->leaving > 0;
    j->back_line = l->lines;
    if (told_ok(answer) && l->async) {
        j->gone_soon = true;
        j->doubt = true; /* if it is refused later, that may be in doubt: it comes again, or not */
        j->doubted = l->lines;
        j->mark = l->lines;
    } else if (told_ok(answer)) {
        j->gone = true;
        j->gone_line = l->lines;
    } else if (told_in_doubt(answer)) {
        j->doubt = true;
        j->doubted = l->lines;
    }
    if (told_ok(answer))
        keys_seen(l, j, l->calls[thread].line, answer);
    else
        l->ordered = false; /* it may come again, behind others */
}

/* What was answered before line @line is confirmed, if nothing else was said of it. */
static void confirm(struct ledger *l, uint64_t line, int64_t now_ns)
{
    bool clearing = false;

    for (size_t i = 0; i < THREADS; i++)
        clearing |= l->calls[i].clears;
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->cleared < line && !clearing)
            j->cleared = 0; /* else it has been shown */
        if (j->refused_line != 0 || j->mark == 0 || j->mark > line)
            continue;
        if (j->put_soon && j->put == MAYBE) {
            j->put = SURE;
            l->v.told++;
        }
        if (j->gone_soon && !j->gone) {
            j->gone = true;
            j->gone_line = l->lines;
            if (j->done_by_ns < now_ns) /* a key is kept from when it is sent */
                j->done_by_ns = now_ns;
        }
        j->kept = j->now;
        j->put_soon = j->gone_soon = false;
    }
    late_judge(l, line);
}

/* Of changes that nobody waits for a close has told the end of each. */
static void told_end(struct ledger *l, unsigned thread, const char *verb, const char *answer)
{
    const struct call *call = &l->calls[thread];

    if (told_ok(answer))
        confirm(l, verb[0] == 'f' ? call->line : l->lines, call->answer_ns);
}

static void mortal(struct ledger *l, const char *rest)
{
    const struct content *c = book_content(l, strtoull(rest, NULL, 10));

    if (c != NULL)
        l->jobs[c->job].mortal = true;
}

static void ranked(struct ledger *l, const char *rest)
{
    const struct content *c = book_content(l, strtoull(rest, NULL, 10));

    if (c == NULL)
        return;
    l->jobs[c->job].ranked = true;
    l->jobs[c->job].plain = false;
}

/* Nobody need have been told of it before. */
static void discarded(struct ledger *l, const char *rest)
{
    char id[ID_TEXT];
    uint64_t number;

    if (sscanf(rest, "%39s %" SCNu64, id, &number) != 2)
        return;
    book_meet(l, number, id);
    struct job *j = book_job(l, id);
    struct job none = { .number = number };
    if (j == NULL) {
        l->v.phantom++;
        complain(l, "phantom", &none, rest);
        return;
    }
    if (j->gone && !j->risk) {
        l->v.doubled++;
        complain(l, "doubled", j, rest);
    }
    j->gone = true;
    j->gone_line = j->back_line = l->lines;
    if (j->born_line == 0)
        j->born_line = l->lines;
}

/* ---- Lines ---- */

/* What is wanted of the job of an id. */
static void want(struct ledger *l, unsigned thread, const char *verb, const char *rest)
{
    int64_t now_ns = l->calls[thread].now_ns;
    char id[ID_TEXT];
    int64_t n = 0;

    if (sscanf(rest, "%39s %" SCNd64, id, &n) < 1)
        return;
    struct job *j = book_job(l, id);
    if (j == NULL) {
        if (strcmp(verb, "kick?") == 0)
            (void)mortal_nameless(l);
        return;
    }
    if (strcmp(verb, "ack?") == 0 || strcmp(verb, "cancel?") == 0) {
        l->calls[thread].place = book_place(l, j) + 1;
        l->calls[thread].leaves = true;
        j->leaving++;
    }
    if (strcmp(verb, "nack?") == 0 || strcmp(verb, "bury?") == 0)
        j->lease_end_ns = 0;
    if (strcmp(verb, "nack?") == 0)
        want_time(l, thread, j, now_ns + n);
    if (strcmp(verb, "move?") == 0)
        want_time(l, thread, j, n);
    if (strcmp(verb, "kick?") == 0)
        want_time(l, thread, j, now_ns);
    if (strcmp(verb, "bury?") == 0)
        want_change(l, thread, j);
    if (strcmp(verb, "kick?") == 0 || strcmp(verb, "bury?") == 0) {
        j->plain = false;
        book_maybe_dead(j);
    }
    if (strcmp(verb, "update?") == 0) {
        want_change(l, thread, j);
        l->calls[thread].number = (uint64_t)n;
        book_add_to(l, (uint64_t)n, book_place(l, j));
    }
}

/* What was told of it. */
static void told(struct ledger *l, unsigned thread, const char *verb, const char *rest)
{
    char id[ID_TEXT];
    char answer[40];

    if (sscanf(rest, "%39s %39s", id, answer) != 2)
        return;
    struct job *j = book_job(l, id);
    if (j == NULL)
        return;
    if (strcmp(verb, "cancel!") == 0 && strcmp(answer, "DUE_EBUSY") == 0)
        j->revoked = true;
    if (strcmp(verb, "ack!") == 0 || strcmp(verb, "cancel!") == 0)
        told_removal(l, thread, j, answer);
    if (strcmp(verb, "ack!") == 0 && told_ok(answer))
        keys_done(l, j, l->calls[thread].now_ns, l->calls[thread].answer_ns);
    if (strcmp(verb, "nack!") == 0 || strcmp(verb, "bury!") == 0)
        told_back(l, thread, j, answer);
    if (strcmp(verb, "nack!") == 0 || strcmp(verb, "move!") == 0)
        told_time(l, thread, j, answer);
    if (strcmp(verb, "kick!") == 0)
        told_kick(l, thread, j, answer);
    if (strcmp(verb, "bury!") == 0)
        told_death(l, thread, j, answer);
    if (strcmp(verb, "update!") == 0)
        told_update(l, thread, j, answer);
}

/* An enqueue, or a look by key, has its answer. */
static void told_by_name(struct ledger *l, unsigned thread, bool enqueue, const char *rest)
{
    struct call *call = &l->calls[thread];
    uint64_t number;
    char answer[40];
    char id[ID_TEXT];

    if (sscanf(rest, "%" SCNu64 " %39s %39s", &number, answer, id) != 3)
        return;
    struct content *c = enqueue ? book_content(l, number) : NULL;
    if (strcmp(id, "-") == 0)
        id[0] = '\0';
    if (c != NULL)
        told_enqueue(l, thread, c, answer, id);
    if (enqueue || call->key == 0)
        return;
    bool alone = lane_leave(&l->keys[call->key].lane);
    enum key_answer what = told_ok(answer)                     ? KEY_HAD
                           : strcmp(answer, "DUE_ENOENT") == 0 ? KEY_FREE
                                                               : KEY_REFUSED;
    keys_answered(l, call, alone, what, NULL, id);
}

static void want_find(struct ledger *l, unsigned thread, const char *rest)
{
    unsigned long key = strtoul(rest, NULL, 10);

    if (key == 0 || key > KEYS)
        return;
    l->calls[thread].key = (uint32_t)key;
    lane_enter(&l->keys[key].lane);
}

static void want_taking(struct ledger *l, unsigned thread, const char *rest, bool for_good)
{
    struct call *call = &l->calls[thread];

    call->takes = true;
    call->for_good = for_good;
    call->lease_ns = strtoll(rest, NULL, 10);
    l->taken_line = l->lines;
}

static void asked(struct ledger *l, unsigned thread, int64_t now_ns, const char *verb,
                  const char *rest)
{
    l->calls[thread] = (struct call){ .line = l->lines, .now_ns = now_ns };
    if (strcmp(verb, "enqueue?") == 0)
        want_enqueue(l, thread, rest);
    else if (strcmp(verb, "dequeue?") == 0 || strcmp(verb, "reserve?") == 0)
        want_taking(l, thread, rest, verb[0] == 'd');
    else if (strcmp(verb, "find?") == 0)
        want_find(l, thread, rest);
    else if (strcmp(verb, "revive?") == 0)
        all_want_revival(l, thread);
    else if (strcmp(verb, "clear?") == 0)
        all_want_clear(l, thread);
    else
        want(l, thread, verb, rest);
}

static void answered(struct ledger *l, unsigned thread, int64_t now_ns, const char *verb,
                     const char *rest)
{
    l->calls[thread].answer_ns = now_ns;
    if (strcmp(verb, "enqueue!") == 0 || strcmp(verb, "find!") == 0)
        told_by_name(l, thread, verb[0] == 'e', rest);
    else if (strcmp(verb, "dequeue!") == 0 || strcmp(verb, "reserve!") == 0)
        told_taking(l, thread, now_ns, rest);
    else if (strcmp(verb, "flush!") == 0 || strcmp(verb, "close!") == 0)
        told_end(l, thread, verb, rest);
    else if (strcmp(verb, "clear!") == 0)
        all_told_clear(l, &l->calls[thread], rest);
    else if (strcmp(verb, "revive!") == 0)
        all_told_revival(l, &l->calls[thread]);
    else
        told(l, thread, verb, rest);
    l->calls[thread] = (struct call){ 0 };
}

void ledger_line(struct ledger *l, const char *line)
{
    unsigned thread;
    int64_t now_ns;
    char verb[24];
    int used = 0;

    l->lines++;
    if (sscanf(line, "%u %" SCNd64 " %23s %n", &thread, &now_ns, verb, &used) != 3 ||
        thread >= THREADS)
        return;
    const char *rest = line + used;
    size_t end = strlen(verb) - 1;
    if (strcmp(verb, "settled") == 0)
        late_settled(l, rest);
    else if (strcmp(verb, "discarded") == 0)
        discarded(l, rest);
    else if (strcmp(verb, "shown") == 0)
        keys_shown(l, rest);
    else if (strcmp(verb, "mortal") == 0)
        mortal(l, rest);
    else if (strcmp(verb, "ranked") == 0)
        ranked(l, rest);
    else if (strcmp(verb, "dead") == 0)
        told_dead(l, thread, rest);
    else if (verb[end] == '?')
        asked(l, thread, now_ns, verb, rest);
    else if (verb[end] == '!')
        answered(l, thread, now_ns, verb, rest);
}
