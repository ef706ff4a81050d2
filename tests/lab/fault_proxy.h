/* fault_proxy.h - stands between a client and a Redis server, and breaks what a test wants broken.
 *
 * It listens on one UNIX socket and forwards to another, in a thread of its own.  It knows where a
 * command and where a reply ends, counts the commands, and at those that the plan names it does
 * what the plan says.
 *
 *     struct fault_proxy *proxy = fault_proxy_start("/dir/proxy.sock", "/dir/redis.sock");
 *     fault_proxy_plan(proxy, NULL, 0);
 *     ... run once: n = fault_proxy_commands(proxy) ...
 *     for (uint64_t i = 1; i <= n; i++) {
 *         fault_proxy_plan(proxy, &(struct fault_cell){ .command = i, .where = FAULT_SENT,
 *                                                       .what = FAULT_CLOSE }, 1);
 *         ... run again ...
 *     }
 *     fault_proxy_stop(proxy);
 *
 * Commands that were sent in one write count one by one.  Before a cell does anything, everything
 * ahead of it has been answered, and the client has the answers; and the server has nothing of what
 * is behind it.  So what has happened when the fault strikes is always the same.
 *
 * Threads  any
 */
#ifndef FAULT_PROXY_H
#define FAULT_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_proxy;

enum fault_where {
    FAULT_BEFORE = 0,  /* the command has come, and the server has nothing of it */
    FAULT_MID_COMMAND, /* the server has the first half of its bytes */
    FAULT_SENT,        /* the server has done it, and the client has nothing of the reply */
    FAULT_MID_REPLY,   /* the client has the first half of the reply's bytes */
    FAULT_ACCEPT       /* .command is the number of a connection, and it has just been made */
};

/* At FAULT_ACCEPT: RESET, CLOSE, STALL and DELAY. */
enum fault_what {
    FAULT_RESET = 1, /* both connections are closed at once */
    FAULT_CLOSE,     /* the client's is closed, and the server's when it has answered everything */
    FAULT_HALF,      /* the client reads an end; what it sends still arrives */
    FAULT_STALL,     /* nothing goes on until fault_proxy_go_on(), and then everything does */
    FAULT_DELAY,     /* the same for .delay_ms */
    FAULT_TRICKLE,   /* the rest of this command or reply comes one byte every .delay_ms */
    FAULT_REPLACE,   /* the reply is the line .text instead: FAULT_BEFORE: and the server never has
                        the command; FAULT_SENT: though it has done it */
    FAULT_REFUSE     /* at FAULT_BEFORE: the server refuses the command with the line .text, as it
                        would itself: a transaction that it stands in is discarded by its EXEC */
};

struct fault_cell {
    uint64_t command; /* the first is 1; counted since the plan was set */
    const char *name; /* only of this name, as "EXEC", and counted among those; NULL: any */
    enum fault_where where;
    enum fault_what what;
    unsigned delay_ms;
    const char *text; /* "-OOM command not allowed", without the end of the line */
};

/* Listens at @path (what is there is removed) for clients of the server at @server.  NULL, and a
 * line on standard error, if that fails. */
struct fault_proxy *fault_proxy_start(const char *path, const char *server);
void fault_proxy_stop(struct fault_proxy *proxy); /* closes everything; NULL is allowed */

/* From now on these @n (at most 16), each once; the counts begin anew.  Whatever stalls goes on. */
void fault_proxy_plan(struct fault_proxy *proxy, const struct fault_cell *cells, size_t n);
void fault_proxy_go_on(struct fault_proxy *proxy);
/* From now on whatever the server sends comes so much later; 0: as it is sent. */
void fault_proxy_lag(struct fault_proxy *proxy, unsigned ms);
void fault_proxy_cut(struct fault_proxy *proxy); /* close every connection, now */
/* From now on clients reach the server at @server.  False: the path is too long. */
bool fault_proxy_move(struct fault_proxy *proxy, const char *server);

uint64_t fault_proxy_commands(struct fault_proxy *proxy);    /* since the plan was set */
uint64_t fault_proxy_connections(struct fault_proxy *proxy); /* the same */
unsigned fault_proxy_struck(struct fault_proxy *proxy);      /* cells that have done their thing */
/* Wait until so many have; false: not within @ms. */
bool fault_proxy_wait(struct fault_proxy *proxy, unsigned struck, unsigned ms);
/* Let everything go on, at full speed, and wait until the server has done all that clients had sent
 * that are gone.  false: not within @ms. */
bool fault_proxy_settle(struct fault_proxy *proxy, unsigned ms);
/* The name of the n-th command since the plan was set, or "". */
const char *fault_proxy_name(struct fault_proxy *proxy, uint64_t command, char name[24]);

#endif
