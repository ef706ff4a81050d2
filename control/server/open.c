/* open.c - a control socket is opened and closed. */
#define _GNU_SOURCE
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/atomic.h"
#include "os/sized.h"

static int fail(due_error *error, int rc, const char *text, const char *hint)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        snprintf(error->hint, sizeof error->hint, "%s", hint);
    }
    return rc;
}

/* The system says no: @number is an errno. */
static int refused(due_error *error, const char *path, int number)
{
    char text[sizeof error->text];

    snprintf(text, sizeof text, "%.120s: %.60s", path, strerror(number));
    switch (number) {
    case EADDRINUSE:
        return fail(error, DUE_EBUSY, text, "another process has it, or it is no socket");
    case EACCES:
    case EPERM:
    case EROFS:
        return fail(error, DUE_EACCES, text, "");
    case ENOENT:
    case ENOTDIR:
        return fail(error, DUE_ENOENT, text, "make the folder first");
    case ENOMEM:
    case ENOBUFS:
        return fail(error, DUE_ENOMEM, text, "");
    default:
        return fail(error, DUE_ESYS, text, "");
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t len = name == NULL ? 0 : strnlen(name, DUE__CTL_NAME_MAX + 1);

    return len > 0 && len <= DUE__CTL_NAME_MAX && strspn(name, allowed) == len;
}

/* Is there a queue of this name before the place @n? */
static bool is_taken(const due_control_queue *queues, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(queues[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Is there nothing of a newer version in it? */
static bool is_known(const due_control_queue *q)
{
    static const uint32_t zero[sizeof q->reserved / sizeof q->reserved[0]];

    return (q->flags & ~(unsigned)(DUE_CONTROL_NO_PUT | DUE_CONTROL_READ_ONLY)) == 0 &&
           memcmp(q->reserved, zero, sizeof zero) == 0;
}

static int newer(due_error *error)
{
    return fail(error, DUE_ENOTSUP, "an option is set that this version does not know",
                "the program was built for a newer version");
}

static int options_check(const due_control_options *o, due_error *error)
{
    if (o->path == NULL || o->path[0] == '\0')
        return fail(error, DUE_EINVAL, "the socket needs a path", "");
    if (strlen(o->path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return fail(error, DUE_ELIMIT, "the path of a socket is shorter than 108 bytes", "");
    if (o->queues == NULL || o->queue_count == 0 || o->queue_count > DUE_CONTROL_QUEUES_MAX)
        return fail(error, DUE_EINVAL, "a socket is for 1 to 256 queues", "");
    for (size_t i = 0; i < o->queue_count; i++) {
        if (!is_known(&o->queues[i]))
            return newer(error);
        if (o->queues[i].queue == NULL || !is_name(o->queues[i].name))
            return fail(error, DUE_EINVAL, "a queue or its name is wrong",
                        "a name has 1 to 64 of A-Z a-z 0-9 . _ -");
        if (is_taken(o->queues, i, o->queues[i].name))
            return fail(error, DUE_EINVAL, "two queues have the same name", "");
    }
    return 0;
}

static int options_read(due_control_options *o, const due_control_options *given, due_error *error)
{
    static const uint32_t zero[sizeof o->reserved / sizeof o->reserved[0]];
    int rc = due__sized_read(o, sizeof *o, given);

    if (rc == DUE_EINVAL)
        return fail(error, rc, "the options have no size",
                    "begin them with DUE_CONTROL_OPTIONS_INIT");
    if (rc != 0 || memcmp(o->reserved, zero, sizeof zero) != 0)
        return newer(error);
    return options_check(o, error);
}

/* ---- Opened ---------------------------------------------------------------------------------- */

static void control_free(struct due_control *c)
{
    if (c->listen_fd >= 0)
        close(c->listen_fd);
    if (c->stop_fd >= 0)
        close(c->stop_fd);
    if (c->place.folder_fd >= 0)
        close(c->place.folder_fd);
    free(c->served.queues);
    free(c);
}

static struct due_control *control_new(const due_control_options *o)
{
    struct due_control *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->listen_fd = -1;
    c->stop_fd = -1;
    c->place.folder_fd = -1;
    c->served.queues = calloc(o->queue_count, sizeof *c->served.queues);
    if (c->served.queues == NULL) {
        control_free(c);
        return NULL;
    }
    for (size_t i = 0; i < o->queue_count; i++) {
        c->served.queues[i] =
            (struct due__ctl_queue){ .queue = o->queues[i].queue, .flags = o->queues[i].flags };
        memcpy(c->served.queues[i].name, o->queues[i].name, strlen(o->queues[i].name) + 1);
    }
    c->served.n = o->queue_count;
    c->served.on_cancel = o->on_cancel;
    c->served.ctx = o->ctx;
    c->on_thread_start = o->on_thread_start;
    c->body_most = DUE_PAYLOAD_MAX;
    c->pid = getpid();
    c->place.address.sun_family = AF_UNIX;
    memcpy(c->place.address.sun_path, o->path, strlen(o->path) + 1);
    return c;
}

/* No signal of the program is handled in the socket's thread.  0 or an errno. */
static int start(struct due_control *c)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, due__ctl_serve, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* 0 or an errno. */
static int control_start(struct due_control *c)
{
    c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->listen_fd < 0)
        return errno;
    c->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (c->stop_fd < 0)
        return errno;
    int rc = due__ctl_place_take(&c->place, c->listen_fd);
    return rc == 0 ? start(c) : rc;
}

int due_control_open(due_control **control, const due_control_options *options, due_error *error)
{
    due_control_options o;
    int rc = options_read(&o, options, error);

    *control = NULL;
    if (rc != 0)
        return rc;
    struct due_control *c = control_new(&o);
    if (c == NULL)
        return refused(error, o.path, ENOMEM);
    rc = control_start(c);
    if (rc != 0) {
        due__ctl_place_leave(&c->place);
        control_free(c);
        return refused(error, o.path, rc);
    }
    *control = c;
    return 0;
}

/* Whoever was not heard yet hears the end, also where a child of fork() has a copy of the
 * descriptor. */
static void hang_up(struct due_control *c)
{
    int fd;

    (void)shutdown(c->listen_fd, SHUT_RDWR);
    while ((fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        close(fd);
}

/* In a child the thread is not there, and the file is the parent's. */
int due_control_close(due_control *c)
{
    if (c == NULL)
        return 0;
    if (c->pid == getpid()) {
        if (pthread_equal(c->thread, pthread_self()))
            return DUE_EDEADLK;
        due__store_seq(&c->served.stopping, true); /* E1 */
        eventfd_write(c->stop_fd, 1);
        pthread_join(c->thread, NULL);
        due__ctl_place_leave(&c->place);
        hang_up(c);
    }
    control_free(c);
    return 0;
}
