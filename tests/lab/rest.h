/* rest.h - what a closed queue has left in itself: memory follows what lives, to the last place.
 *
 * A queue that is freed gives back its memory whatever it had lost of it before, so that no
 * allocator sees a place that nobody would have had again.
 *
 * Threads  one, between due_close() and due_free()
 */
#ifndef REST_H
#define REST_H

#include "due/due.h"

/* What is left that should not be, or NULL. */
const char *rest_wrong(due_queue *q);

#endif
