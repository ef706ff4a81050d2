/* board.h - where the figures of a queue are shown to others: who writes them is above this floor,
 * when is a matter of the worker proxy.
 *
 * Guards     T  the timeline lock      I  set when it is made      W  the worker proxy's alone
 */
#ifndef DUE__BOARD_H
#define DUE__BOARD_H

#include <stdbool.h>
#include <stdint.h>

struct due_queue;

struct due__board {
    /* Write them; @last: the queue is closed.  When again, on the monotonic clock. */
    int64_t (*write)(struct due_queue *q, struct due__board *board, bool last); /* I */
    /* The queue is freed; @forked: it is a copy in a child, and the file is the parent's. */
    void (*free)(struct due_queue *q, struct due__board *board, bool forked); /* I */
    int64_t next_ns;                                                          /* W */
};

#endif
