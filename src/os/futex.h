/* futex.h - to sleep on a word of memory until somebody says that it changed. */
#ifndef DUE__FUTEX_H
#define DUE__FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* Sleep while *@word is @value, at most until @until_ns on the monotonic clock (DUE_FOREVER: no
 * limit).  @precise: without the thread's timer slack.  Returns early for any
 * reason or none: the caller looks at the word again. */
void due__futex_wait(const uint32_t *word, uint32_t value, int64_t until_ns, bool precise);

/* Wake one thread that sleeps on @word. */
void due__futex_wake(const uint32_t *word);

/* Set this thread's timer slack to 1 ns; answers what it was, for due__slack_restore(). */
long due__slack_tighten(void);
void due__slack_restore(long slack);

#endif
