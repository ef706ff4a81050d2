/* link.h - one connection to a Redis server.
 *
 * Commands are formatted into the link's own buffer, sent with send(MSG_NOSIGNAL), and replies are
 * read by hiredis's reader out of bytes that the link received.  The link closes on the first
 * error, time-out or reply that makes no sense, and is never used in a state in which a reply could
 * be taken for another command's.
 *
 * Threads    one at a time, but due__link_interrupt() and due__link_count()
 * Times      on CLOCK_MONOTONIC
 */
#ifndef DUE__REDIS_LINK_H
#define DUE__REDIS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/redis.h"

struct redisReply;
struct due__link;

/* Where to, taken from a URL.  The strings are the address's own; the password lies in memory that
 * core dumps leave out, and is wiped. */
struct due__address {
    char *host; /* NULL: a UNIX socket */
    char *path; /* NULL: TCP */
    int port;
    int db;
    bool tls;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
};

/* redis://[[user]:password@]host[:port][/db], rediss://, unix://[[user]:password@]/path[?db=N].
 * DUE_EINVAL, DUE_ENOTSUP (sentinel, cluster, TLS), DUE_ENOMEM; @error says what is wrong, without
 * the URL. */
int due__address_parse(struct due__address *a, const char *url, due_error *error);
void due__address_wipe(struct due__address *a);
/* "host:6379/0" or "/path/to.sock?db=0", for people: no user, no password. */
void due__address_show(const struct due__address *a, char *text, size_t room);

struct due__link_limits {
    int64_t connect_ns; /* a connection and its first commands must be there by then */
    int64_t answer_ns;  /* so long after the send, or the answer before it, an answer must be
                               there, or the link closes; a large one has as long for each 64 KiB */
    int64_t spin_ns;    /* so long after a short send an answer is waited for without sleeping */
    int64_t backoff_min_ns; /* first pause after a failed connection; doubled, with jitter */
    int64_t backoff_max_ns;
    size_t reply_elements; /* most elements of one array */
    size_t reply_bytes;    /* most bytes of one whole reply, 96 counted for each element besides */
};

/* Takes @address over, whatever comes of it: it is all zero afterwards, so show it before.  NULL:
 * no memory, or no descriptor. */
struct due__link *due__link_new(struct due__address *address, const struct due__link_limits *limits,
                                const char *client_name);
void due__link_free(struct due__link *l); /* no I/O: also in a forked child */
/* One more to the same place, not connected yet.  NULL: no memory, or no descriptor. */
struct due__link *due__link_twin(const struct due__link *l);

/* Connected, authenticated, on its database and named: 0.  *@fresh: it has been connected anew in
 * this call.  Waits out the backoff, and connects as often as @until_ns allows; a connection that
 * is begun goes on in the next call.  Only looking a name up may take longer.  DUE_EAGAIN: time is
 * up or interrupted; DUE_EACCES: the server refuses us (with a pause: asking again is allowed). */
int due__link_up(struct due__link *l, bool *fresh, int64_t until_ns);
bool due__link_is_up(const struct due__link *l);
void due__link_down(struct due__link *l);
/* The same, since it refuses to write: @trouble says why. */
void due__link_refused(struct due__link *l, const char *trouble);
/* What is written now may never be done; and it was.  Between the two no answer counts as a reason
 * to connect again soon. */
void due__link_owes(struct due__link *l);
void due__link_wrote(struct due__link *l);
bool due__link_is_owing(const struct due__link *l);
/* What went wrong last, for people: no secrets, nothing that the server said, never NULL. */
const char *due__link_trouble(const struct due__link *l);

/* Format one command: due__link_command(l, n) and then exactly n arguments.  Memory that is wanting
 * is remembered, and told by due__link_send(). */
void due__link_command(struct due__link *l, size_t arguments);
void due__link_bytes(struct due__link *l, const void *bytes, size_t len);
void due__link_text(struct due__link *l, const char *text);
void due__link_number(struct due__link *l, int64_t number);
/* One whole command of @n words. */
void due__link_words(struct due__link *l, size_t n, const char *const *words);
size_t due__link_formatted(const struct due__link *l); /* bytes not yet sent */
void due__link_forget(struct due__link *l);            /* what was formatted and not yet sent */

/* Send what was formatted, which is forgotten then, whatever the answer.  0: it has left, or a part
 * of it has by @until_ns, and due__link_reply() goes on with the rest; or the link is down:
 * DUE_EAGAIN if not a byte had left, DUE_EINDOUBT if some had; DUE_ENOMEM with nothing sent and the
 * link as it was.  Reads on meanwhile, so that two full buffers cannot block each other.  Not
 * interrupted: the next call that waits hears it. */
int due__link_send(struct due__link *l, int64_t until_ns);

/* The next reply: 0 and *@reply, the caller's until freeReplyObject().  DUE_EAGAIN: not there by
 * @until_ns or interrupted, the link stays up and the call may be made again; DUE_ESTORE: the link
 * is down, because it was closed, because answer_ns has passed, or because the reply makes no sense
 * or is over the limits. */
int due__link_reply(struct due__link *l, struct redisReply **reply, int64_t until_ns);
/* Replies that are still to come. */
size_t due__link_pending(const struct due__link *l);

/* Something may come unasked, no matter when: due__link_reply() waits for it, and this is said
 * before each call of it, unless an answer is waited for. */
void due__link_expect(struct due__link *l);

/* A look that does not wait: a link that was closed, or on which something came unasked, goes down.
 * Saves due__link_send() its own. */
void due__link_look(struct due__link *l);

/* Do nothing until @until_ns.  0, or DUE_EAGAIN: interrupted.  A link that is closed meanwhile goes
 * down, and the pause goes on. */
int due__link_pause(struct due__link *l, int64_t until_ns);

/* Make the call that waits, or else the next that would, return DUE_EAGAIN once.  Any thread. */
void due__link_interrupt(struct due__link *l);
/* Whether interrupts end calls now, or only once they do again. */
void due__link_deafen(struct due__link *l, bool deaf);

struct due__link_counts {
    uint64_t connects;
    uint64_t bytes_out;
    uint64_t bytes_in;
};
struct due__link_counts due__link_count(const struct due__link *l);

#endif
