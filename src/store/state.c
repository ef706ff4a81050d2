/* state.c - how far the batch under way is, and what is read: two state machines.
 *
 * Both are changed with the key, here alone; an event that cannot happen stops a debug build.
 *
 * The sender is in one of these states, and nothing else says how far the batch is:
 *
 *          fill              send (pipeline.c)
 *   idle --------> filled -----------------------> sent
 *    ^               | ^                            |
 *    |   unanswered, | | anew: the store is full,   | unanswered
 *    |   or end      | |       or has lost it       |
 *    |               v |                            v
 *    '---- end ---- in doubt <----------------------'
 *
 * A batch that ends in any of them makes room for the next one: then the sender is
 * idle if that is empty, filled, or (if it was sent meanwhile) sent.
 *
 * What is read is one state:
 *
 *                 shown          shown
 *          jobs --------> keys --------> serving <--------------------------------.
 *           ^              |                |                                     |
 *           '--- again ----'                | again                               | shown
 *                                           v     rewritten               shown   |
 *                                       rewriting --------> deleting jobs ----> deleting keys
 *                                           ^                    |                |
 *                                           '------- again ------+----------------'
 *
 * When something is lost while the queue still loads, all is put again too, but what the store
 * shows that is not known is yet to be loaded.  Changes that a store refuses may be put again in
 * any state: how far that is says mirror_at, and for kept keys keep_shard.
 *
 * Guards     K  the key (sender.c)      A  atomic, see Edges
 *
 * Edges      described elsewhere: G2 sender.c
 */
#include <assert.h>

#include "os/atomic.h"
#include "store/sender.h"

void due__sender_on(struct due__commits *c, enum due__sender_event event)
{
    enum { NO, IDLE, FILLED, SENT, DOUBT }; /* NO: it cannot happen; else the state plus 1 */
    static const unsigned char after[][DUE__SENDER_STATES] = {
        /* from: idle, filled, sent, doubt */
        [DUE__SENDER_FILL] = { FILLED, NO, NO, NO },
        [DUE__SENDER_SEND] = { NO, SENT, NO, NO },
        [DUE__SENDER_UNANSWERED] = { NO, DOUBT, DOUBT, DOUBT },
        [DUE__SENDER_ANEW] = { IDLE, FILLED, FILLED, FILLED },
        [DUE__SENDER_END] = { IDLE, IDLE, IDLE, IDLE },
        [DUE__SENDER_END_REST] = { NO, FILLED, FILLED, FILLED },
        [DUE__SENDER_END_FOLLOWED] = { NO, SENT, SENT, SENT },
    };
    unsigned next = after[event][c->sender];

    assert(next != NO);
    c->sender = (enum due__sender)(next - 1);
}

void due__reader_on(struct due__commits *c, enum due__reading_event event)
{
    enum { NO, JOBS, KEYS, SERVING, REWRITING, DELETING_JOBS, DELETING_KEYS }; /* plus 1; or not */
    static const unsigned char after[DUE__READER_EVENTS][DUE__READER_STATES] = {
        /* from: jobs, keys, serving, rewriting, deleting jobs, deleting keys */
        [DUE__READER_SHOWN] = { KEYS, SERVING, NO, NO, DELETING_KEYS, SERVING },
        [DUE__READER_AGAIN] = { JOBS, JOBS, REWRITING, REWRITING, REWRITING, REWRITING },
        [DUE__READER_REWRITTEN] = { NO, NO, NO, DELETING_JOBS, NO, NO },
    };
    unsigned next = after[event][due__load_seq(&c->reader)]; /* G2: ours */

    assert(next != NO);
    due__store_seq(&c->reader, next - 1); /* G2 */
    c->rewind = true;
}
