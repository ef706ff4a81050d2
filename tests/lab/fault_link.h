/* fault_link.h - the inside of fault_proxy.h: its connections.
 *
 * Guards  I  set when started, then constant      L  the proxy's lock, left only in poll()
 */
#ifndef FAULT_LINK_H
#define FAULT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lab/fault_bytes.h"
#include "lab/fault_proxy.h"

#define FAULT_CELLS 16
#define FAULT_LINKS 64
#define FAULT_NAME  24

/* Guard: L.  A fault of the plan. */
struct fault_planned {
    struct fault_cell fault;
    char name[FAULT_NAME];
    char text[160];
    uint64_t seen; /* commands that it could have meant */
    bool used;
};

/* Guard: L.  A command whose reply has not come. */
struct fault_waiting {
    int cell; /* what happens to its reply; -1: nothing */
};

/* Guard: L.  One client, and its connection to the server. */
struct fault_link {
    int client; /* -1: closed; what still comes from the server is thrown away */
    int server;
    bool client_end; /* it sends nothing more */
    bool server_end;
    bool told_end; /* the server knows that nothing more comes */
    bool half;     /* the client was told that nothing more comes */
    struct fault_bytes from_client;
    struct fault_bytes to_server;
    struct fault_bytes from_server;
    struct fault_bytes to_client;
    struct fault_waiting *waiting; /* the first is answered next */
    size_t n_waiting;
    size_t waiting_room;
    bool counted;         /* the command that came first has been */
    int cell;             /* and this is meant for it; -1: none */
    size_t raw_command;   /* bytes of one that was forwarded in part */
    size_t raw_reply;     /* */
    bool in_half;         /* half of it is on its way, and the fault comes then */
    bool in_half_reply;   /* */
    int64_t held_until;   /* 0: not held; INT64_MAX: until told */
    size_t slow_command;  /* bytes that go one by one */
    size_t slow_reply;    /* */
    int64_t slow_ns;      /* from one to the next */
    int64_t next_slow_ns; /* */
};

struct fault_proxy {
    pthread_mutex_t lock;                    /* I */
    pthread_cond_t changed;                  /* I: struck, or rounds */
    pthread_t thread;                        /* I */
    int listener;                            /* I */
    int bell;                                /* I */
    struct sockaddr_un server;               /* L: of the next connections */
    char path[sizeof(struct sockaddr_un)];   /* I */
    bool stop;                               /* L */
    struct fault_planned cells[FAULT_CELLS]; /* L */
    size_t n_cells;                          /* L */
    int64_t lag_ns;                          /* L */
    unsigned struck;                         /* L */
    uint64_t rounds;                         /* L: in which every connection was looked at */
    uint64_t commands;                       /* L */
    uint64_t connections;                    /* L */
    char (*names)[FAULT_NAME];               /* L */
    size_t names_room;                       /* L */
    struct fault_link *links[FAULT_LINKS];   /* L */
    size_t n_links;                          /* L */
};

/* With the lock held. */
void fault_link_serve(struct fault_proxy *p, struct fault_link *l);
void fault_link_cut(struct fault_link *l); /* both connections closed: it ends */
void fault_link_free(struct fault_link *l);
/* The cell for a command or connection of this name that has just come, or -1. */
int fault_cell_for(struct fault_proxy *p, const char *name, bool accept);
/* Do it.  False: nothing of this connection goes on now.  The text of FAULT_REPLACE goes out here;
 * the caller throws away what it stands for.  @slow: where to count the @n bytes that trickle. */
bool fault_strike(struct fault_proxy *p, struct fault_link *l, int cell, size_t *slow, size_t n);

int64_t fault_now_ns(void);
void *fault_need(void *memory); /* or the end of the program */

#endif
