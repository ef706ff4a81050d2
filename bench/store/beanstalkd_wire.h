/* beanstalkd_wire.h - a connection to beanstalkd: requests are gathered and sent together, answers
 * are read line by line.
 *
 * Whatever goes wrong ends the process.
 */
#ifndef BENCH_BEANSTALKD_WIRE_H
#define BENCH_BEANSTALKD_WIRE_H

#include <stddef.h>

#define WIRE_LINE 80 /* bytes of an answer's line that are kept, with a NUL */

struct wire {
    int fd;
    char *out; /* requests */
    size_t out_len;
    char in[65536]; /* what was received, and not read yet */
    size_t at, end;
};

void wire_fail(const char *what) __attribute__((noreturn));

/* A descriptor, or -1: nobody listens at that path. */
int wire_dial(const char *socket);

/* @room: for requests, in bytes. */
void wire_open(struct wire *w, const char *socket, size_t room);
void wire_close(struct wire *w);
void wire_send(struct wire *w);

/* The next line of its answers; wire_expect(): which must begin so. */
void wire_line(struct wire *w, char line[WIRE_LINE]);
void wire_expect(struct wire *w, char line[WIRE_LINE], const char *begin);
/* The next so many bytes of its answers. */
void wire_bytes(struct wire *w, void *bytes, size_t n);

#endif
