/* history.h - what callers ask and are told, in the order in which it happens.
 *
 * Each line goes into the hash of the run and, in the language of tests/crash/ledger.h, to the
 * ledger of the crash tests, which judges it.  What that one does not know (topics asked for, room,
 * limits, how long a call may take) is in books.h.
 *
 * Of several programs that want one queue the ledger is told what its owner asks.  The answers to
 * that may come when it was replaced: then it is told what has landed, and nothing of what the
 * program says by heart.  Who was replaced can still have what had left the store before that, and
 * was in doubt; what else he asks is not for the ledger.
 */
#ifndef SIMULATE_HISTORY_H
#define SIMULATE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"
#include "plan.h"

/* @print: each line, as it comes. */
void history_begin(const struct plan *p, bool print);
void history_end(void);

/* The queue's clock: not later than it has shown, and not earlier. */
void history_clock(int64_t (*now)(void));
void history_stepped(void); /* the wall clock will be set */

/* What is asked, and what was told; for the ledger too. */
void history_ask(unsigned thread, const char *format, ...) __attribute__((format(printf, 2, 3)));
void history_tell(unsigned thread, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* It is not known whether this job has left the store, says a program that owns it, or did. */
void history_doubt(unsigned thread, const char *id);
/* Nothing that the ledger knows. */
void history_note(unsigned thread, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define HISTORY_LANES 64u /* threads of a program, in the history */

void history_life(bool async, bool alone);
void history_death(void);
void history_takeover(bool async);     /* the running program owns the jobs now */
void history_cut(unsigned first_lane); /* the program that has this lane was killed */
void history_risk(void);               /* what was confirmed may be lost */
void history_balance(void);

/* Fails the run if the ledger has found anything. */
void history_judge(void);

#endif
