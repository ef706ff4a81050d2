/* webhook_server.h - what webhook.c delivers to: a server on this computer only, in a thread of its
 * own, which answers each subscriber's requests as it was told.
 */
#ifndef WEBHOOK_SERVER_H
#define WEBHOOK_SERVER_H

#include <pthread.h>
#include <stddef.h>

#define REQUESTS 5

struct subscriber {
    const char *path;
    int answers[REQUESTS]; /* the status for the first request, the second ...; 0: no answer */
    int requests;          /* so many have come; to be read when the server has stopped */
};

struct server {
    struct subscriber *subscribers;
    size_t count;
    const char *text; /* what each of them is to get */
    int listener;
    int port; /* any that was free */
    pthread_t thread;
};

/* 0, or -1: it cannot be had. */
int server_start(struct server *s);
void server_stop(struct server *s);

#endif
