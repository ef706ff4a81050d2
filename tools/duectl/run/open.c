/* open.c - a stored queue is opened and closed while signals are looked for.
 *
 * Both may wait for a server, and opening for the present owner, for ever if it is a standby.  So a
 * thread of its own does it, and the caller waits for that thread and for a signal.
 */
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOK_MS = 20, INTERRUPTED_MS = 300, QUIET_MS = 1500 };

/* A call that waits. */
struct call {
    struct ctl_run *run;        /* I  */
    const due_options *options; /* I  of due_open(); NULL: it is due_close() */
    int done_fd;                /* I  readable once it has returned */
    int rc;                     /* what it has answered, */
    due_error error;            /* and why: both once it has returned */
    pthread_t thread;           /* I  */
};

static void *call_main(void *arg)
{
    struct call *c = arg;

    if (c->options != NULL)
        c->rc = due_open(&c->run->queue, c->options, &c->error);
    else
        c->rc = due_close(c->run->queue, DUE_CLOSE_DISCARD, CTL_CLOSE_NS);
    eventfd_write(c->done_fd, 1);
    return NULL;
}

/* 0 or an errno. */
static int call_begin(struct call *c)
{
    int rc;

    c->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->done_fd < 0)
        return errno;
    rc = pthread_create(&c->thread, NULL, call_main, c);
    if (rc != 0)
        close(c->done_fd);
    return rc;
}

/* Wait until it has returned, a signal comes (its number is the answer), or time is up.  Else 0. */
static int call_wait(struct call *c, int signal_fd, int ms, bool *returned)
{
    struct pollfd ready[] = {
        { .fd = c->done_fd, .events = POLLIN },
        { .fd = signal_fd, .events = POLLIN },
    };

    int signal = 0;

    do {
        if (poll(ready, 2, ms) < 0)
            return 0;
        *returned = ready[0].revents != 0;
        if (!*returned && ready[1].revents != 0)
            signal = ctl_signal_next(signal_fd);
    } while (!*returned && signal == 0 && ready[1].revents != 0);
    return signal;
}

static void call_end(struct call *c)
{
    pthread_join(c->thread, NULL);
    close(c->done_fd);
}

/* A signal has come while it opens: what waits for the server or the owner is interrupted.  A name
 * that is being looked up is not, and is left behind. */
static void call_interrupt(struct call *c, int signal)
{
    due_store *store = c->options->store;
    bool returned = false;

    for (int ms = 0; ms < INTERRUPTED_MS && !returned; ms += LOOK_MS) {
        store->verbs->interrupt(store);
        (void)call_wait(c, -1, LOOK_MS, &returned);
    }
    if (!returned)
        _exit(128 + signal);
    call_end(c);
}

int ctl_queue_open(struct ctl_run *run, const due_options *options, int signal_fd)
{
    struct call c = { .run = run, .options = options, .error = { "", "" } };
    bool returned = false;
    int signal = 0;
    int rc;

    atomic_store(&run->opening, true);
    rc = call_begin(&c);
    if (rc != 0) {
        ctl_say(&run->screen, "duectl: a thread cannot be started: %s\n", strerror(rc));
        return CTL_BROKEN;
    }
    while (!returned && signal == 0)
        signal = call_wait(&c, signal_fd, -1, &returned);
    if (signal != 0)
        call_interrupt(&c, signal);
    else
        call_end(&c);
    atomic_store(&run->opening, false);
    if (signal != 0) {
        ctl_say(&run->screen, "duectl: stopped before the queue was opened\n");
        if (c.rc == 0 && !ctl_queue_close(run, signal_fd))
            _exit(128 + signal);
        return 128 + signal;
    }
    if (c.rc == 0)
        return CTL_FINE;
    ctl_say(&run->screen, "duectl: %s%s%s\n", c.error.text, c.error.hint[0] == '\0' ? "" : "; ",
            c.error.hint);
    return CTL_BROKEN;
}

void ctl_say_closing(struct ctl_run *run)
{
    if (!run->said_closing)
        ctl_say(&run->screen, "duectl: waits for the server to confirm what was done; "
                              "another signal ends this\n");
    run->said_closing = true;
}

bool ctl_queue_close(struct ctl_run *run, int signal_fd)
{
    struct call c = { .run = run };
    bool returned = false;
    int signal = 0;

    if (call_begin(&c) != 0) /* without a thread it is short */
        return due_close(run->queue, DUE_CLOSE_DISCARD, DUE_MS(QUIET_MS)) == 0;
    signal = call_wait(&c, signal_fd, QUIET_MS, &returned);
    if (!returned && signal == 0)
        ctl_say_closing(run);
    while (!returned && signal == 0)
        signal = call_wait(&c, signal_fd, -1, &returned);
    if (signal != 0)
        return false;
    call_end(&c);
    if (c.rc != 0)
        ctl_say(&run->screen, "duectl: the queue does not close: %s\n", due_error_text(c.rc));
    return true;
}
