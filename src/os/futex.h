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

/* Can all threads be made to pass a fence?  Asked once, by whoever asks first. */
bool due__threads_fence_ready(void);
/* Every thread of the process passes a full fence between the beginning and the end of this call:
 * some microseconds. */
void due__threads_fence(void);

/* Set this thread's timer slack to 1 ns; answers what it was, for due__slack_restore(). */
long due__slack_tighten(void);
void due__slack_restore(long slack);

#endif
