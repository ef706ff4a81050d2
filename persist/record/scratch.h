/* scratch.h - where a record is put together in one piece, front and payload.
 *
 * Its memory is kept between two records, but not what a large payload took.
 *
 * Threads  one
 */
#ifndef DUE__SCRATCH_H
#define DUE__SCRATCH_H

#include "record/record.h"

#define DUE__SCRATCH_KEEP ((size_t)64 << 10) /* bytes that are kept */

/* Zero: empty. */
struct due__scratch {
    unsigned char *bytes; /* the record that was put together last */
    size_t room;
};

/* Put a record together in @s->bytes: how many bytes stand before the payload, and how many there
 * are.  0, or DUE_ENOMEM. */
int due__scratch_record(struct due__scratch *s, const due_record *record, size_t *front,
                        size_t *len);

/* After a batch: give back more than is kept. */
void due__scratch_shrink(struct due__scratch *s);
void due__scratch_free(struct due__scratch *s);

#endif
