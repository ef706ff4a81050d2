/* wait.h - waiting for a socket and for the bell that interrupts it. */
#ifndef DUE__BASE_WAIT_H
#define DUE__BASE_WAIT_H

#include <stdint.h>

enum due__wait {
    DUE__WAIT_TIME,
    DUE__WAIT_READY,
    DUE__WAIT_BELL, /* and nothing on the socket */
    DUE__WAIT_BOTH  /* the bell, and the socket is ready too */
};

/* What is waited for: @events on @fd, and an eventfd that is rung, which is quiet again after it.
 * -1: not for that. */
struct due__ears {
    int fd;
    short events;
    int bell;
};

/* Until @awake_ns without sleeping, then until @until_ns.  The bell is looked at whatever comes on
 * the socket, so that a server which never stops talking cannot drown it. */
enum due__wait due__wait(const struct due__ears *e, int64_t awake_ns, int64_t until_ns);

#endif
