/* backoff.h - how long to wait before the next connection. */
#ifndef DUE__REDIS_BACKOFF_H
#define DUE__REDIS_BACKOFF_H

#include <stdint.h>

struct due__backoff {
    int64_t min_ns;
    int64_t max_ns;
    int failures;    /* in a row */
    uint64_t random; /* for the jitter */
};

/* Both are brought to where nothing spins: at least 1 ms, at most an hour. */
void due__backoff_init(struct due__backoff *b, int64_t min_ns, int64_t max_ns, uint64_t seed);

/* One more failure: the pause after it.  Doubled each time, capped, and half of it by chance, so
 * that many clients do not come back all at once. */
int64_t due__backoff_next(struct due__backoff *b);

#endif
