/* word.c - which changes of a job's word there are.
 *
 * A row for each state that a word may have, in it one entry for each state that may follow: what
 * else of the word that change may change (word.h), and who makes it.  Whatever is not here does
 * not happen, and each entry does: the explorer (tests/explore) has seen it, and each flag that it
 * may set or clear.
 */
#include "mem/word.h"

#include <stddef.h>

#define MAY      DUE__MAY
#define RESTAMP  DUE__RESTAMPS
#define RENEW    DUE__RENEWS
#define SET(f)   DUE__SETS(DUE__##f)
#define CLEAR(f) DUE__CLEARS(DUE__##f)

/* clang-format off */
const uint16_t due__word_allowed[DUE__STATES][DUE__STATES] = {
    [DUE__FREE] = {
        /* given back unused */
        [DUE__FREE]     = MAY | RENEW,
        /* an enqueue: into an inbox, into its place, or loaded from a store */
        [DUE__WAITING]  = MAY | RESTAMP | SET(LINKED) | SET(READY) | SET(HELD) | SET(PASSED),
        /* loaded from a store, to be dead */
        [DUE__CLAIMED]     = MAY | SET(HELD),
    },
    [DUE__WAITING] = {
        /* cancelled at once */
        [DUE__FREE]     = MAY | RENEW | RESTAMP | CLEAR(READY),
        /* sorted in; come due; out of its line, to be numbered anew; numbered anew */
        [DUE__WAITING]  = MAY | RESTAMP | SET(READY) | CLEAR(LINKED) | CLEAR(READY),
        /* moved, changed, or let through a limiter, by who has the lock */
        [DUE__MOVING]   = MAY,
        /* taken (out of a line: not READY), or cancelled */
        [DUE__CLAIMED]     = MAY | CLEAR(READY),
        /* taken out of the inbox by the sender */
        [DUE__SENT]     = MAY | CLEAR(LINKED),
        /* claimed to be moved or changed */
        [DUE__CHANGING] = MAY,
    },
    [DUE__MOVING] = {
        /* at its new place, or as it was; changed while in the inbox: another stamp */
        [DUE__WAITING]  = MAY | RESTAMP | SET(READY) | SET(PASSED) | CLEAR(LINKED) | CLEAR(READY)
                        | CLEAR(PASSED),
        /* its lease is extended */
        [DUE__LEASED]   = MAY,
        /* changed, and dead as before */
        [DUE__DEAD]     = MAY,
    },
    [DUE__LEASED] = {
        /* its lease is being extended, or has ended */
        [DUE__MOVING]   = MAY,
        /* sorted in */
        [DUE__LEASED]   = MAY | RESTAMP,
        /* answered for, or its lease has ended and it is to die */
        [DUE__CLAIMED]     = MAY,
    },
    [DUE__CLAIMED] = {
        /* done with */
        [DUE__FREE]     = MAY | RENEW | RESTAMP | CLEAR(READY),
        /* given back, revived, or to be taken again: nacked, repeated */
        [DUE__WAITING]  = MAY | CLEAR(READY) | CLEAR(PASSED),
        /* reserved */
        [DUE__LEASED]   = MAY | RESTAMP | SET(HELD) | CLEAR(READY),
        /* its node has left the inbox; it has a record, or no pass, from now on */
        [DUE__CLAIMED]     = MAY | SET(READY) | SET(HELD) | CLEAR(LINKED) | CLEAR(PASSED),
        /* it has failed for good */
        [DUE__DEAD]     = MAY | CLEAR(PASSED),
        /* its life is over, but its record is read, or its node is in the inbox */
        [DUE__DONE]     = MAY | RESTAMP | CLEAR(READY),
        /* handed to a pool of workers */
        [DUE__DEFERRED] = MAY,
    },
    [DUE__DEAD] = {
        /* changed, or to wait again, by who has the lock */
        [DUE__MOVING]   = MAY,
        /* cancelled, or not kept any longer */
        [DUE__CLAIMED]     = MAY,
        /* sorted in */
        [DUE__DEAD]     = MAY | RESTAMP,
        /* claimed to be changed, or to wait again */
        [DUE__CHANGING] = MAY,
    },
    [DUE__DONE] = {
        /* who held it last, or the inbox, lets go */
        [DUE__FREE]     = MAY | RENEW | CLEAR(HELD),
        /* its node has left the inbox; its place has had its last use */
        [DUE__DONE]     = MAY | CLEAR(LINKED) | CLEAR(HELD),
    },
    [DUE__SENT] = {
        /* the store has it */
        [DUE__WAITING]  = MAY,
        /* the store has it not */
        [DUE__CLAIMED]     = MAY,
    },
    [DUE__DEFERRED] = {
        /* acked */
        [DUE__FREE]     = MAY | RENEW | RESTAMP,
        /* its lease is a real one from now on */
        [DUE__LEASED]   = MAY | SET(HELD),
        /* given back */
        [DUE__CLAIMED]     = MAY,
    },
    [DUE__CHANGING] = {
        /* moved, changed, or as it was */
        [DUE__WAITING]  = MAY | CLEAR(READY) | CLEAR(PASSED),
        /* it was cancelled meanwhile, and goes */
        [DUE__CLAIMED]     = MAY | CLEAR(PASSED),
        /* changed, and dead as before */
        [DUE__DEAD]     = MAY,
        /* its node has left the inbox */
        [DUE__CHANGING] = MAY | CLEAR(LINKED),
    },
};
/* clang-format on */

bool due__word_may(uint64_t from, uint64_t to)
{
    unsigned change = due__word_change(from, to);
    uint32_t renewed = due__word_generation(to) - due__word_generation(from);

    return renewed <= 1 &&
           change == (change & due__word_allowed[from & DUE__STATE_MASK][to & DUE__STATE_MASK]);
}
