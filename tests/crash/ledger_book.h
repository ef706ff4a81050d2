/* ledger_book.h - what the ledger of the crash tests keeps: jobs by id, what they carry, keys.
 *
 * A job is known by its id.  What it carries is known by a number, and may become another: by an
 * update, or when an enqueue replaces the job that has its key.  An enqueue begins a job without an
 * id; if its answer, or what is handed out, shows that it has changed another one, what it carries
 * is that one's.
 *
 * Of a job there are two states, what it is now, and what it must be after a crash.  They differ
 * where an answer is not yet a confirmation.
 *
 * Whatever is done to a job, or to any of one key, keeps a lane: while two of these are under way
 * it is not known which was first, and their answers make nothing sure.
 */
#ifndef LEDGER_BOOK_H
#define LEDGER_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger.h"

#define THREADS 128
#define TOPICS  8
#define KEYS    64 /* numbers of keys, from 1; 0: none */
#define ID_TEXT 40

enum sure { MAYBE = 0, SURE, NOT };

/* What a job may carry. */
struct content {
    uint64_t number;
    uint64_t line; /* in which it was wanted */
    int64_t at_ns; /* of an enqueue */
    uint32_t job;  /* place of whose it is */
    uint32_t own;  /* place of the job that the enqueue began */
    bool changes;  /* likewise: it may change the job that has its key, */
    bool keeps;    /* and leaves it what it carries */
    bool refused;
    uint64_t refused_line;
};

struct state {
    int64_t bound_ns; /* it does not come before that */
    uint64_t current; /* it carries this */
    uint64_t since;   /* or what was wanted behind this line */
    enum sure dead;
};

struct lane {
    unsigned wants; /* under way */
    bool overlap;   /* two or more of them were so at a time */
};

struct job {
    char id[ID_TEXT]; /* "": not known */
    uint64_t number;  /* of what it carried first */
    int64_t at_ns;    /* as it was enqueued */
    int64_t least_ns; /* the least that a bound ever was */
    struct state now;
    struct state kept;
    struct lane own_lane; /* if it has no key */
    int topic;
    int priority;
    unsigned thread;
    unsigned life;

    enum sure put;
    bool put_soon;      /* an answer said so; sure with the next flush */
    bool gone;          /* it has left, surely */
    bool gone_soon;     /* an answer said so; sure with the next flush */
    bool doubt;         /* it may have left: the end of a removal is not known */
    bool revoked;       /* cancelled while somebody had it: it leaves when he gives it back */
    unsigned leaving;   /* removals that have no answer yet */
    bool ranked;        /* it may have any priority */
    bool mortal;        /* it may die by itself at any time */
    bool plain;         /* never moved, given back, dead, replaced or at risk: its order is known */
    bool risk;          /* a kill may have taken or brought back anything of it */
    bool closed;        /* it was found missing */
    bool out;           /* somebody has it, or may have */
    bool lent;          /* it came again while somebody had it, who may have its bytes still */
    uint64_t mark;      /* line of the last answer that waits for a flush */
    uint64_t born_line; /* it surely was there */
    uint64_t named_line; /* its id was told first */
    uint64_t touched;    /* it was last wanted to be changed */
    uint64_t alive_line; /* it was last seen not to be dead */
    uint64_t handed_line;
    uint64_t refused_line; /* in this life a change nobody waited for was refused; 0: none */
    uint64_t doubted;      /* a removal of it last ended in doubt */
    uint64_t back_line;    /* it was last given back, or its removal answered */
    uint64_t gone_line;
    uint64_t cleared;   /* a clear that is not confirmed was last asked for, or answered; 0: none */
    uint64_t safe_line; /* no dequeue that ended until then has had it */
    int64_t lease_end_ns; /* in this life, at the earliest; 0: not leased */

    uint32_t key;       /* 0: none */
    int64_t keep_ns;    /* it stays taken so long after the job is done, */
    int64_t done_ns;    /* which was not before this; INT64_MIN: not known to be */
    int64_t done_by_ns; /* nor after this */
    uint32_t of_key;    /* place plus 1 of the next job of that key */
    enum sure has_key;  /* SURE until it may have been taken over */
    uint64_t lost_line; /* NOT: since then */
    uint64_t shown;     /* line in which a queue that closes had given it up; 0: none */
    uint64_t usurped;   /* line in which the key was another's or nobody's; 0: none */
};

struct key {
    struct lane lane;
    uint32_t first; /* place plus 1 of a job; they are linked */
    unsigned life;  /* in that one came a job that was stored before */
    uint32_t came;  /* place plus 1 of it */
};

/* What a thread has asked, while it has no answer. */
struct call {
    uint64_t line;
    int64_t now_ns;
    int64_t answer_ns;
    int64_t lease_ns;
    int64_t want_ns;  /* the job's new time */
    uint64_t number;  /* its new content */
    uint32_t key;     /* of an enqueue, or a find */
    bool changes;     /* */
    bool takes;       /* it takes jobs, for a while or for good */
    bool for_good;    /* */
    bool clears;      /* it removes any jobs */
    bool revives;     /* it kicks all that are dead */
    bool leaves;      /* it removes a job: */
    uint32_t place;   /* plus 1, of the job that it changes or removes; 0: none */
    struct state now; /* of the job, before */
    struct state kept;
};

/* A dequeue that may have taken a job out of the store, and told nobody. */
struct cut {
    uint64_t line; /* in which it ended */
    int64_t ns;    /* */
    bool spent;    /* one job that is missing is put down to it */
};

/* A job that was told to be refused a change, and that nobody knows. */
struct stranger {
    char id[ID_TEXT];
    uint64_t line; /* in which it was told */
};

enum fault { FAULT_STALE, FAULT_EARLY, FAULT_RISEN };

/* It may have a reason, if a change is said to be refused. */
struct waiting_fault {
    uint64_t line;
    uint32_t place; /* of its job */
    enum fault what;
};

struct table {
    uint32_t *slots; /* place plus 1 */
    size_t room;
};

struct ledger {
    struct job *jobs; /* by place */
    size_t n_jobs;
    size_t jobs_room;
    struct content *contents;
    size_t n_contents;
    size_t contents_room;
    struct table by_number; /* contents */
    struct table by_id;     /* jobs */
    struct key keys[KEYS + 1];
    struct cut *cuts; /* since the last balance, in order */
    size_t n_cuts;
    struct stranger *strangers;
    size_t n_strangers;
    struct waiting_fault *waiting;
    size_t n_waiting;
    size_t n_lives; /* of the worker, so far */
    size_t first;   /* the first job that is not closed or gone for good */
    bool async;
    bool ordered;          /* one thread takes everything out, and all its answers were sure */
    uint64_t lines;        /* read so far */
    uint64_t life_line;    /* of these, before this life */
    bool left_out;         /* in this life a take was in doubt: what it had may be out still */
    uint64_t taken_line;   /* the last in which a thread wanted to take jobs, or was answered */
    unsigned revivals;     /* calls under way that kick all that are dead */
    uint64_t revived_line; /* the last in which one began, or ended */
    struct call calls[THREADS];
    struct job last[TOPICS]; /* handed over last, in an ordered life */
    bool any_last[TOPICS];
    unsigned shown;
    struct ledger_verdict v;
};

void *book_need(void *memory); /* it ends the program if there is none */
struct content *book_content(struct ledger *l, uint64_t number);
struct job *book_job(struct ledger *l, const char *id);
uint32_t book_place(const struct ledger *l, const struct job *j);

/* A content that is wanted in this line, of a job that begins with it; or of the job at @place. */
struct content *book_add(struct ledger *l, uint64_t number);
struct content *book_add_to(struct ledger *l, uint64_t number, uint32_t place);
void book_name(struct ledger *l, struct job *j, const char *id);
/* A job with this content has this id: if nobody knew, it is the one that it was enqueued with. */
void book_meet(struct ledger *l, uint64_t number, const char *id);
void book_forget(struct ledger *l);
/* Any job may have left. */
void book_doubt_all(struct ledger *l);
/* A dequeue ended in this line, at @ns, and it is not known whether it took a job. */
void book_cut(struct ledger *l, int64_t ns);

/* May the job @j carry what another one's enqueue brought?  That has replaced what it carried; or
 * it began the job, and was replaced by the enqueue that was told the id first. */
bool book_may_be(struct ledger *l, const struct job *j, const struct content *c);
/* So it does. */
void book_merge(struct ledger *l, struct content *c, struct job *j);

/* Something is wanted of the lane.  When it has its answer: was it alone there? */
struct lane *book_lane(struct ledger *l, struct job *j);
void lane_enter(struct lane *lane);
bool lane_leave(struct lane *lane);

/* Now and after a crash: it may come at @ns already; it may be dead, or not. */
void book_sooner(struct job *j, int64_t ns);
void book_maybe_dead(struct job *j);

bool told_ok(const char *answer);
bool told_in_doubt(const char *answer);
void complain(struct ledger *l, const char *what, const struct job *j, const char *line);

/* ---- ledger_keys.c: of one unique key at most one live job at any time ---- */

/* An enqueue or a look by key had its answer, after it was asked in call->line. */
enum key_answer {
    KEY_NEW,     /* the job @j has it, which has just come in */
    KEY_FREE,    /* nobody has it */
    KEY_CHANGED, /* the job @j has it, which was changed */
    KEY_HAD,     /* the job of id @id has it */
    KEY_UNKNOWN, /* no answer, or one that says nothing */
    KEY_REFUSED  /* by somebody else: nothing has changed */
};
void keys_answered(struct ledger *l, const struct call *call, bool alone, enum key_answer what,
                   const struct job *j, const char *id);
/* The job was there after line @line; and in the store, if it was put there in an earlier life. */
void keys_seen(struct ledger *l, struct job *j, uint64_t line, const char *rest);
/* A queue that closes does not know any more whether the job has left, nor that it has its key. */
void keys_shown(struct ledger *l, const char *rest);
/* The job is done, in this time: its key may stay taken. */
void keys_done(const struct ledger *l, struct job *j, int64_t from_ns, int64_t to_ns);
/* Has a job been enqueued with the key whose id nobody was told? */
bool keys_nameless(struct ledger *l, const struct call *call);

/* ---- ledger_lives.c: what concerns all jobs ---- */

void all_want_clear(struct ledger *l, unsigned thread);
void all_told_clear(struct ledger *l, const struct call *call, const char *answer);
void all_want_revival(struct ledger *l, unsigned thread);
void all_told_revival(struct ledger *l, const struct call *call);

/* ---- ledger_late.c: changes nobody waits for that are refused later ---- */

/* Such a one has not been made: of that job nothing is sure. */
void late_settled(struct ledger *l, const char *rest);
/* It is known now which job this is. */
void late_named(struct ledger *l, struct job *j);
/* A job is seen in this line as it should not be.  @was_so: it may be, before a change that is not
 * confirmed. */
void late_fault(struct ledger *l, const struct job *j, enum fault what, bool was_so,
                const char *line);
/* All that was refused is told, of what was seen before line @line. */
void late_judge(struct ledger *l, uint64_t line);
void late_forget(struct ledger *l);

/* ---- ledger_hands.c: what is handed out, and listed ---- */

void told_taking(struct ledger *l, unsigned thread, int64_t now_ns, const char *rest);
/* Has a job come in that may die, and nobody was told its id?  It may be one that is dead now, or
 * is kicked, and may come again. */
bool mortal_nameless(struct ledger *l);
/* A job is said to be dead. */
void told_dead(struct ledger *l, unsigned thread, const char *rest);

#endif
