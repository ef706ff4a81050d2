/* bare.h - what the server can do by itself: the same bytes, written by hand over one socket. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stddef.h>
#include <stdint.h>

struct bare {
    int fd;
    char *out; /* bytes to be sent */
    size_t len;
    size_t room;
    uint64_t seed;
    uint64_t sequence;
};

struct bare bare_open(const char *socket_path);
void bare_close(struct bare *b);

/* Each answers the seconds it took for @jobs jobs. */
double bare_put(struct bare *b, size_t jobs, size_t batch, size_t payload); /* two batches ahead */
double bare_drop(struct bare *b, size_t jobs, size_t batch);                /* of what was put */
double bare_round_trip(struct bare *b, size_t jobs, size_t payload);        /* one job at a time */
double bare_read(struct bare *b, const char *queue, size_t jobs, size_t page); /* of a real queue */

#endif
