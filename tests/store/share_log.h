/* share_log.h - a history in a file: what a process asked, and what it was answered.
 *
 * Each event is written at once, so a kill leaves whole events, and perhaps a piece of one, which
 * is as if it had not happened: what is asked is written before it is sent.
 *
 *     join WRITER             a process, or one that came anew
 *     ask TIME CHANGES CLAIMS then c: a change, l: the claim; sent
 *     ans TIME STAMP NOW CLAIMED MORE SENT then r: results, j: a job that is shown; end
 *     mem STAMP NOW STATUSES  what the server remembers of its last answer; then m: a job that it
 *                             has claimed, and the end of the lease that was over; end
 *     not                     it was not done
 *     lost ABOVE BELOW        of what has stamps between, nothing is left
 *     turned FROM TO PEAK AHEAD  the store's clock was turned between, may have shown PEAK before,
 *                             and is ahead of CLOCK_MONOTONIC by AHEAD since
 *     evicted WRITER TIME     it was turned out by then
 *
 * Times are CLOCK_MONOTONIC; SENT, when it was sent last.  `mem` stands behind `ask` if nobody has
 * heard the answer, or behind `ans` if it was heard late: then it says all that was claimed, and
 * not what is left of that.
 */
#ifndef SHARE_LOG_H
#define SHARE_LOG_H

#include "store/share_replay.h"

struct replay_exchange;

void replay_log_line(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t replay_log_now(void);
void replay_log_asked(int fd, const struct replay_exchange *x);
void replay_log_answered(int fd, const struct replay_exchange *x);

/* What the file says, behind what the history has.  False: it cannot be read; a line says why. */
bool replay_read(struct replay *r, const char *path);

/* How a file of a process that was killed ends. */
struct replay_open {
    bool joined;
    uint64_t writer;
    bool begun;        /* an exchange was, and no answer was heard, */
    bool work;         /* of this lane */
    uint64_t stamp[2]; /* of each lane's last answer; 0: none */
    long end;          /* so long is the file without a piece of an event */
};
bool replay_read_open(struct replay_open *open, const char *path);

#endif
