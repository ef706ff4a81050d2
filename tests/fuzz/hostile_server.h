/* hostile_server.h - a server without a thread, which answers each command as an input says.
 *
 * It sits at the other end of a pair of sockets, and does its work when it is told to.  Of what is
 * said to it it remembers who owns the queue; what it has of jobs it makes up.
 */
#ifndef HOSTILE_SERVER_H
#define HOSTILE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

/* It has heard nothing yet, and has this input, which stays. */
void hostile_begin(const uint8_t *data, size_t size);
void hostile_end(void);
/* The next byte of the input; 0 behind its end. */
unsigned hostile_byte(void);
/* So many bytes of it, or what is left, are the caller's: *@n of them. */
const uint8_t *hostile_bytes(size_t *n);
/* A new connection: the client's end, which never blocks. */
int hostile_connect(void);
/* Hear what was sent, and answer. */
void hostile_serve(void);
/* The jobs that it speaks of. */
due_id hostile_id(uint64_t i);

#endif
