/* bare_shared.h - the scripts of a shared queue, called by hand over one socket. */
#ifndef BENCH_BARE_SHARED_H
#define BENCH_BARE_SHARED_H

#include <stddef.h>

/* Jobs that are due, in batches: the seconds it took.  A queue made anew. */
double bare_shared_put(const char *socket_path, size_t jobs, size_t batch, size_t payload);
/* Claims so many at once, and ends them with the next claim, until nothing is due. */
size_t bare_shared_work(const char *socket_path, size_t at_once);

#endif
