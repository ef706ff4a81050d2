/* foreign.h - what other libraries keep in a Redis, as lines that an import takes.
 *
 *   command.c     duectl import, and its options
 *   foreign.c     the lists of a queue, page by page; each job of them as a line
 *   delayqueue.c  what hdt3213/delayqueue keeps
 *   asynq.c       what hibiken/asynq keeps
 *   bullmq.c      what BullMQ keeps
 *   protobuf.c    messages of Protocol Buffers, field by field
 *   loose.c       objects of JSON whose fields are not known
 *   sourceless.c  what is said where there is no hiredis
 *
 * Nothing here writes to the server that it reads.
 *
 * Threads  one
 */
#ifndef DUECTL_FOREIGN_H
#define DUECTL_FOREIGN_H

#include "inspect/inspect.h"
#include "move/move.h"

/* ---- Protocol Buffers ------------------------------------------------------------------------ */

/* A message being read; nothing behind its end is looked at. */
struct ctl_protobuf {
    const unsigned char *at;
    size_t left;
    bool broken; /* it is cut off, or is no message */
};

enum { CTL_PROTOBUF_VARINT = 0, CTL_PROTOBUF_64 = 1, CTL_PROTOBUF_BYTES = 2, CTL_PROTOBUF_32 = 5 };

struct ctl_protobuf_field {
    uint32_t number;
    int type;
    uint64_t value;             /* VARINT */
    const unsigned char *bytes; /* BYTES */
    size_t len;
};

/* The next field.  False: it was the last, or the message is broken. */
bool ctl_protobuf_next(struct ctl_protobuf *p, struct ctl_protobuf_field *field);

/* ---- Loose JSON ------------------------------------------------------------------------------ */

/* A value of an object: a number, or a text of JSON as it stands there. */
struct ctl_loose {
    const char *name; /* of the field, as it stands there */
    size_t name_len;
    const char *text;
    size_t len;
    char first; /* of the text */
};

/* Show each field of an object at its upper level.  False: it is no object. */
typedef void ctl_loose_visit(void *ctx, const struct ctl_loose *field);
bool ctl_loose_object(const char *text, size_t len, ctl_loose_visit *visit, void *ctx);
bool ctl_loose_is(const struct ctl_loose *field, const char *name);
/* The number of the field, from 0 on and cut to @most; 0 if it is none. */
double ctl_loose_number(const struct ctl_loose *field, double most);

/* ---- The source ------------------------------------------------------------------------------ */

/* Open what the options ask for, read it into the store, and say what cannot be carried over: the
 * exit status. */
int ctl_foreign_import(const struct ctl_look *look);

extern const struct ctl_command ctl_import;

#endif
