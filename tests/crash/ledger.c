/* ledger.c - the checker of the crash tests.
 *
 * Of each job it keeps what the callers' answers allow: whether it went in (maybe, surely, surely
 * not) and whether it left.  A line that says what a caller wants makes things possible, the line
 * with the answer makes them sure.  The lines of two threads may be in another order than what they
 * tell of, so neither may undo what the other has said.
 */
#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_TEXT 512
#define THREADS   8
#define TOPICS    8
#define SHOWN     20 /* complaints that are printed */

enum sure { MAYBE = 0, SURE, NOT };

struct job {
    uint64_t number;
    int64_t at_ns;        /* as it was enqueued */
    int64_t bound_ns;     /* not before that */
    int64_t kept_ns;      /* the same after a crash: what was confirmed */
    int64_t least_ns;     /* the least that bound_ns ever was */
    int64_t lease_end_ns; /* in this life, at the earliest; 0: not leased */
    int64_t held_ns;      /* when its holder was told */
    int64_t gone_ns;      /* when its removal was told */
    uint64_t mark;        /* line of the last answer that waits for a flush */
    char id[40];
    unsigned life;
    unsigned handouts;
    unsigned want_handouts; /* when the last nack or move was wanted */
    int64_t want_ns;        /* and for when */
    unsigned wants;         /* nacks and moves that have no answer yet */
    bool overlap;           /* there were two at a time: who was last is not known */
    int topic;
    int priority;
    unsigned thread;
    enum sure put;
    bool gone;         /* it has left, surely */
    bool gone_soon;    /* an answer said so; sure with the next flush */
    bool put_soon;     /* likewise */
    bool doubt;        /* it may have left: the end of a removal is not known */
    bool revoked;      /* cancelled while somebody had it: it leaves when he gives it back */
    unsigned leaving;  /* removals that have no answer yet */
    bool refused_late; /* a change nobody waited for was refused */
    bool plain;        /* never moved, nacked or at risk: its order is known */
    bool risk;
    bool closed; /* it was found missing */
};

/* One run of the worker. */
struct life {
    int64_t end_ns;
    unsigned cut_short; /* dequeues that may have taken a job out of the store, and told nobody */
};

struct ledger {
    struct job *jobs; /* by place */
    size_t n_jobs;
    size_t room;
    uint32_t *table; /* by number: place plus 1 */
    size_t table_room;
    struct life *lives;
    size_t n_lives;
    size_t first; /* the first job that is not closed or gone for good */
    bool async;
    bool ordered; /* one thread takes everything out, and all its answers were sure */
    uint64_t lines;
    uint64_t flush_from[THREADS];
    bool taking[THREADS];
    int64_t asked_ns[THREADS];
    int64_t lease_ns[THREADS];
    struct job last[TOPICS]; /* handed over last, in an ordered life */
    bool any_last[TOPICS];
    unsigned shown;
    struct ledger_verdict v;
};

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "ledger: out of memory\n");
        exit(2);
    }
    return memory;
}

struct ledger *ledger_new(void)
{
    struct ledger *l = need(calloc(1, sizeof *l));

    l->table_room = 1024;
    l->table = need(calloc(l->table_room, sizeof *l->table));
    return l;
}

void ledger_free(struct ledger *l)
{
    free(l->jobs);
    free(l->table);
    free(l->lives);
    free(l);
}

static void complain(struct ledger *l, const char *what, const struct job *j, const char *line)
{
    if (l->shown++ < SHOWN)
        printf("  %s: job %" PRIu64 " of life %u (put %d, gone %d, doubt %d): %s\n", what,
               j->number, j->life, (int)j->put, (int)j->gone, (int)j->doubt, line);
}

/* ---- Jobs by number ---- */

static uint32_t *slot_of(struct ledger *l, uint64_t number)
{
    size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (l->table_room - 1);

    while (l->table[at] != 0 && l->jobs[l->table[at] - 1].number != number)
        at = (at + 1) & (l->table_room - 1);
    return &l->table[at];
}

static void grow(struct ledger *l)
{
    l->room = l->room > 0 ? 2 * l->room : 512;
    l->jobs = need(realloc(l->jobs, l->room * sizeof *l->jobs));
    free(l->table);
    l->table_room = 4 * l->room;
    l->table = need(calloc(l->table_room, sizeof *l->table));
    for (size_t i = 0; i < l->n_jobs; i++)
        *slot_of(l, l->jobs[i].number) = (uint32_t)i + 1;
}

static struct job *find(struct ledger *l, uint64_t number)
{
    uint32_t place = l->n_jobs > 0 ? *slot_of(l, number) : 0;

    return place != 0 ? &l->jobs[place - 1] : NULL;
}

static struct job *add(struct ledger *l, uint64_t number)
{
    if (l->n_jobs == l->room)
        grow(l);
    struct job *j = &l->jobs[l->n_jobs++];
    *j = (struct job){ .number = number, .life = (unsigned)l->n_lives - 1, .plain = true };
    *slot_of(l, number) = (uint32_t)l->n_jobs;
    return j;
}

/* ---- Answers ---- */

static bool fine(const char *answer)
{
    return strcmp(answer, "DUE_OK") == 0;
}

static bool in_doubt(const char *answer)
{
    return strcmp(answer, "DUE_EINDOUBT") == 0;
}

static void bound(struct job *j, int64_t ns)
{
    j->bound_ns = ns;
    if (ns < j->least_ns)
        j->least_ns = ns;
}

static void want_enqueue(struct ledger *l, unsigned thread, const char *rest)
{
    uint64_t number;
    int64_t at_ns;
    int priority;
    int topic;

    if (sscanf(rest, "%" SCNu64 " %" SCNd64 " %d %d", &number, &at_ns, &priority, &topic) != 4)
        return;
    struct job *j = add(l, number);
    j->at_ns = j->bound_ns = j->kept_ns = j->least_ns = at_ns;
    j->priority = priority;
    j->topic = topic;
    j->thread = thread;
}

static void told_enqueue(struct ledger *l, struct job *j, const char *answer, const char *id)
{
    snprintf(j->id, sizeof j->id, "%s", id);
    if (fine(answer) && l->async) {
        j->put_soon = true;
        j->mark = l->lines;
    } else if (fine(answer)) {
        l->v.told++;
        j->put = SURE;
    } else if (!in_doubt(answer)) {
        j->put = NOT;
    }
}

/* A removal has its answer. */
static void told_removal(struct ledger *l, struct job *j, const char *answer, int64_t now_ns)
{
    j->leaving--;
    j->gone_ns = now_ns;
    if (fine(answer) && l->async) {
        j->gone_soon = true;
        j->doubt = true;
        j->mark = l->lines;
    } else if (fine(answer)) {
        j->gone = true;
    } else if (in_doubt(answer)) {
        j->doubt = true;
    }
    if (!fine(answer))
        l->ordered = false; /* it may come again, behind others */
}

static void want_later(struct job *j, int64_t ns)
{
    j->plain = false;
    j->overlap |= j->wants++ > 0;
    j->want_handouts = j->handouts;
    j->want_ns = ns;
    if (ns < j->bound_ns)
        bound(j, ns);
    if (ns < j->kept_ns)
        j->kept_ns = ns;
}

static void told_later(const struct ledger *l, struct job *j, const char *answer)
{
    if (--j->wants > 0)
        return;
    if (fine(answer) && j->want_handouts == j->handouts && !j->overlap) {
        bound(j, j->want_ns);
        if (!l->async)
            j->kept_ns = j->bound_ns;
        else
            j->mark = l->lines;
    }
    j->overlap = false;
}

static void told_flush(struct ledger *l, unsigned thread, const char *answer)
{
    if (!fine(answer))
        return;
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->refused_late || j->mark == 0 || j->mark > l->flush_from[thread])
            continue;
        if (j->put_soon && j->put == MAYBE) {
            j->put = SURE;
            l->v.told++;
        }
        j->gone |= j->gone_soon;
        j->kept_ns = j->bound_ns;
        j->put_soon = j->gone_soon = false;
    }
}

static void settled(struct ledger *l, const char *rest)
{
    char id[40];
    char answer[40];

    if (sscanf(rest, "%39s %39s", id, answer) != 2 || fine(answer))
        return;
    for (size_t i = l->first; i < l->n_jobs; i++)
        if (strcmp(l->jobs[i].id, id) == 0)
            l->jobs[i].refused_late = true;
}

/* ---- Hand-overs ---- */

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

/* Whether two have it.  The lines of two threads may be in another order than their calls: who was
 * told late may have had it first, and lost it again. */
static bool twice(const struct job *j, int64_t asked_ns, int64_t now_ns, int64_t lease_ns)
{
    bool ended = lease_ns > 0 && asked_ns + lease_ns <= (j->gone ? j->gone_ns : j->held_ns);

    return (j->gone || now_ns < j->lease_end_ns) && !ended;
}

static void check_state(struct ledger *l, struct job *j, unsigned thread, int64_t now_ns,
                        bool for_good, const char *line)
{
    if (j->risk && (j->gone || j->closed || j->gone_soon)) {
        l->v.returned++;
        j->gone = j->closed = j->gone_soon = false;
        j->lease_end_ns = 0;
        if ((size_t)(j - l->jobs) < l->first)
            l->first = (size_t)(j - l->jobs);
    }
    if (twice(j, l->asked_ns[thread], now_ns, for_good ? 0 : l->lease_ns[thread])) {
        l->v.doubled++;
        complain(l, "doubled", j, line);
    }
    if (now_ns < j->bound_ns) {
        l->v.early++;
        complain(l, "early", j, line);
    }
    if (j->put == NOT || j->closed) {
        l->v.phantom++;
        complain(l, "phantom", j, line);
    }
}

static void handed(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest,
                   bool for_good)
{
    uint64_t number;
    int priority;
    int topic;
    int sound;

    if (sscanf(rest, "%" SCNu64 " %d %d %d", &number, &priority, &topic, &sound) != 4)
        return;
    struct job *j = find(l, number);
    struct job none = { .number = number };
    l->v.handed++;
    if (j == NULL || !sound || j->priority != priority || j->topic != topic) {
        l->v.phantom++;
        complain(l, "phantom", j != NULL ? j : &none, rest);
        return;
    }
    check_state(l, j, thread, now_ns, for_good, rest);
    check_order(l, j, rest);
    j->handouts++;
    if (j->life + 1 < l->n_lives) { /* it has come out of the store: the past is settled */
        j->put = SURE;
        j->doubt = false;
    }
    if (for_good) {
        j->gone = true;
        j->gone_ns = now_ns;
    } else {
        j->lease_end_ns = l->asked_ns[thread] + l->lease_ns[thread];
        j->held_ns = now_ns;
    }
}

static void told_taking(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest,
                        bool for_good)
{
    char answer[40];
    int used = 0;

    l->taking[thread] = false;
    if (sscanf(rest, "%39s %n", answer, &used) != 1)
        return;
    if (fine(answer)) {
        handed(l, thread, now_ns, rest + used, for_good);
    } else if (for_good && strcmp(answer, "DUE_EAGAIN") != 0) {
        l->lives[l->n_lives - 1].cut_short++;
        l->ordered = false; /* what it had taken comes again when that is sure, behind others */
    }
}

/* ---- Lines ---- */

/* What is wanted of one job. */
static void want(struct ledger *l, const char *verb, int64_t now_ns, const char *rest)
{
    uint64_t number;
    int64_t ns = 0;
    int n = sscanf(rest, "%" SCNu64 " %" SCNd64, &number, &ns);
    struct job *j = n >= 1 ? find(l, number) : NULL;

    if (j == NULL)
        return;
    if (strcmp(verb, "ack?") == 0 || strcmp(verb, "cancel?") == 0)
        j->leaving++;
    if (strcmp(verb, "nack?") == 0) {
        j->lease_end_ns = 0;
        want_later(j, now_ns + ns);
    }
    if (strcmp(verb, "move?") == 0)
        want_later(j, ns);
}

/* What was told of one job. */
static void told(struct ledger *l, const char *verb, int64_t now_ns, const char *rest)
{
    uint64_t number;
    char answer[40];
    char id[40] = "";
    int n = sscanf(rest, "%" SCNu64 " %39s %39s", &number, answer, id);
    struct job *j = n >= 2 ? find(l, number) : NULL;

    if (j == NULL)
        return;
    if (strcmp(verb, "enqueue!") == 0)
        told_enqueue(l, j, answer, id);
    if (strcmp(verb, "cancel!") == 0 && strcmp(answer, "DUE_EBUSY") == 0)
        j->revoked = true;
    if (strcmp(verb, "ack!") == 0 || strcmp(verb, "cancel!") == 0)
        told_removal(l, j, answer, now_ns);
    if (strcmp(verb, "nack!") == 0 || strcmp(verb, "move!") == 0)
        told_later(l, j, answer);
}

static void want_taking(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest,
                        bool for_good)
{
    l->taking[thread] = for_good;
    l->asked_ns[thread] = now_ns;
    l->lease_ns[thread] = strtoll(rest, NULL, 10);
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
    if (strcmp(verb, "enqueue?") == 0)
        want_enqueue(l, thread, rest);
    else if (strcmp(verb, "dequeue?") == 0 || strcmp(verb, "reserve?") == 0)
        want_taking(l, thread, now_ns, rest, verb[0] == 'd');
    else if (strcmp(verb, "dequeue!") == 0 || strcmp(verb, "reserve!") == 0)
        told_taking(l, thread, now_ns, rest, verb[0] == 'd');
    else if (strcmp(verb, "flush?") == 0)
        l->flush_from[thread] = l->lines;
    else if (strcmp(verb, "flush!") == 0)
        told_flush(l, thread, rest);
    else if (strcmp(verb, "settled") == 0)
        settled(l, rest);
    else if (strchr(verb, '?') != NULL)
        want(l, verb, now_ns, rest);
    else
        told(l, verb, now_ns, rest);
}

/* ---- Lives ---- */

void ledger_life(struct ledger *l, bool async, bool alone)
{
    l->lives = need(realloc(l->lives, (l->n_lives + 1) * sizeof *l->lives));
    l->lives[l->n_lives++] = (struct life){ 0 };
    l->async = async;
    l->ordered = alone;
    memset(l->taking, 0, sizeof l->taking);
    memset(l->any_last, 0, sizeof l->any_last);
}

void ledger_death(struct ledger *l, int64_t time_ns)
{
    struct life *life = &l->lives[l->n_lives - 1];

    life->end_ns = time_ns;
    for (size_t i = 0; i < THREADS; i++)
        life->cut_short += l->taking[i];
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        j->doubt |= j->leaving > 0;
        j->leaving = j->wants = 0;
        j->overlap = false;
        j->lease_end_ns = 0;
        j->bound_ns = j->kept_ns;
        j->put_soon = j->gone_soon = j->refused_late = false;
        j->mark = 0;
    }
}

void ledger_risk(struct ledger *l)
{
    for (size_t i = 0; i < l->n_jobs; i++) {
        l->jobs[i].risk = true;
        l->jobs[i].plain = false;
        l->jobs[i].bound_ns = l->jobs[i].kept_ns = l->jobs[i].least_ns;
    }
}

/* A dequeue that a kill cut short may have had it. */
static bool excuse(struct ledger *l, const struct job *j)
{
    for (size_t i = j->life; i < l->n_lives; i++) {
        struct life *life = &l->lives[i];

        if (life->cut_short > 0 && life->end_ns >= j->least_ns) {
            life->cut_short--;
            return true;
        }
    }
    return false;
}

void ledger_balance(struct ledger *l)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];
        bool missed = j->put == SURE && !j->gone && !j->doubt && !j->revoked && !j->closed;

        if (missed && j->risk) {
            l->v.missing++;
        } else if (missed && excuse(l, j)) {
            l->v.excused++;
        } else if (missed) {
            l->v.lost++;
            complain(l, "lost", j, j->id);
        }
        j->closed |= !j->gone;
    }
    l->first = l->n_jobs;
}

void ledger_forget(struct ledger *l)
{
    l->n_jobs = l->first = 0;
    memset(l->table, 0, l->table_room * sizeof *l->table);
}

struct ledger_verdict ledger_verdict(const struct ledger *l)
{
    return l->v;
}
