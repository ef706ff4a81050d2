/* watch.c - signals, the progress line, the end of a run.
 *
 * The first signal closes the queues: nothing new is printed or started, and what runs has the
 * grace to end.  Commands that have not are sent SIGTERM, a second later SIGKILL.  The second
 * signal does not wait: commands are sent SIGKILL at once.  Whatever still hangs then, such as a
 * write that nobody reads, is left behind.
 *
 *     RUNNING -- signal --> GRACE -- its end --> TERMINATED -- 1 s --> KILLED -- 1 s --> (exit)
 *                             \------------- second signal --------------^
 *
 * With a store the queue is closed at the end, which may wait for the server.  If the time of a
 * phase is up meanwhile, that has ten seconds more; another signal ends it.
 */
#define _GNU_SOURCE
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum phase { RUNNING, GRACE, TERMINATED, KILLED, CLOSING };

struct watch {
    struct ctl_run *run;
    int signal_fd;
    int signal; /* the one that stopped the run, or 0 */
    enum phase phase;
    int64_t until_ns; /* when the phase ends */
    int64_t quiet_ns; /* since when the queue is being closed; 0: it is not */
    bool hurried;     /* a second signal has come */
};

enum { LOOK_MS = 250 };                       /* how often the progress line is written */
static const int64_t QUIET_NS = DUE_MS(1500); /* until it is said what is waited for */
static const int64_t KILL_NS = DUE_MS(300);   /* for what was killed to end */

/* ---- Phases ---------------------------------------------------------------------------------- */

static int64_t now_ns(struct watch *w)
{
    return due_now(w->run->queue);
}

static void enter(struct watch *w, enum phase phase, int64_t for_ns)
{
    w->phase = phase;
    if (__builtin_add_overflow(now_ns(w), for_ns, &w->until_ns))
        w->until_ns = DUE_FOREVER;
}

/* The queues are closed; what waits is counted as left. */
static void stop(struct watch *w)
{
    struct ctl_run *run = w->run;

    eventfd_write(run->stop_fd, 1);
    if (run->options->store != NULL)
        ctl_stored_stop(run);
    else
        ctl_queues_close(run);
    enter(w, GRACE, w->run->options->grace_ns);
}

static void leave_behind(struct watch *w)
{
    atomic_store(&w->run->screen.given_up, true);
    ctl_say(&w->run->screen, "duectl: left behind: %d threads that do not end\n",
            atomic_load(&w->run->busy));
    ctl_report(w->run, w->signal);
    _exit(ctl_run_status(w->run, w->signal));
}

static void kill_all(struct watch *w)
{
    if (w->run->options->exec == NULL)
        leave_behind(w);
    ctl_crew_signal(&w->run->crew, SIGKILL);
    enter(w, KILLED, KILL_NS);
}

static void phase_has_ended(struct watch *w)
{
    if (atomic_load(&w->run->closing) && w->phase != CLOSING && !w->hurried) {
        enter(w, CLOSING, CTL_CLOSE_NS);
    } else if (w->phase == GRACE && w->run->options->exec != NULL) {
        ctl_crew_signal(&w->run->crew, SIGTERM);
        enter(w, TERMINATED, DUE_S(1));
    } else if (w->phase == TERMINATED) {
        kill_all(w);
    } else {
        leave_behind(w);
    }
}

static void signal_has_come(struct watch *w, int signal)
{
    if (w->signal == 0)
        w->signal = signal;
    if (w->phase == RUNNING) {
        stop(w);
        return;
    }
    w->hurried = true;
    if (w->phase == GRACE || w->phase == TERMINATED)
        kill_all(w);
    else
        leave_behind(w);
}

/* While the queue is closed nothing is seen of it: it is said what that waits for. */
static void look_at_closing(struct watch *w)
{
    if (!atomic_load(&w->run->closing))
        return;
    if (w->quiet_ns == 0)
        w->quiet_ns = now_ns(w);
    if (now_ns(w) - w->quiet_ns >= QUIET_NS)
        ctl_say_closing(w->run);
}

/* ---- The progress line ----------------------------------------------------------------------- */

/* How long until this queue's next deadline; DUE_FOREVER: nothing waits. */
static int64_t time_to_next(due_queue *q)
{
    int64_t at = q == NULL ? DUE_FOREVER : due_next_deadline(q);
    int64_t left = at == DUE_FOREVER ? DUE_FOREVER : at - due_now(q);

    return left < 0 ? 0 : left;
}

static void show_progress(struct watch *w)
{
    struct ctl_run *run = w->run;
    struct ctl_counts counts = ctl_tally_counts(&run->tally);
    int64_t next = time_to_next(run->queue);
    int64_t by_date = time_to_next(run->wall);
    uint64_t waiting = counts.jobs > counts.delivered ? counts.jobs - counts.delivered : 0;
    struct due_stats stats;
    char duration[CTL_DURATION];
    char text[256];
    int len;

    if (by_date < next)
        next = by_date;
    if (run->options->store != NULL && due_stats_read(run->queue, &stats) == 0)
        waiting = stats.waiting;
    len = snprintf(text, sizeof text, "%llu lines read, %llu %s", (unsigned long long)counts.lines,
                   (unsigned long long)counts.delivered,
                   run->options->exec == NULL ? "printed" : "commands ended");
    if (next != DUE_FOREVER)
        snprintf(text + len, sizeof text - (size_t)len, ", %llu waiting, next in %s",
                 (unsigned long long)waiting, ctl_duration(duration, next));
    ctl_screen_progress(&run->screen, text);
}

/* ---- The watch ------------------------------------------------------------------------------- */

/* Until the phase ends or the progress line is to be written again; -1: neither. */
static int wait_ms(struct watch *w)
{
    int64_t left_ns;

    if (w->phase == RUNNING)
        return w->run->screen.wants_progress ? LOOK_MS : -1;
    left_ns = w->until_ns - now_ns(w);
    if (left_ns <= 0)
        return 0;
    if (w->run->options->store != NULL && left_ns > DUE_MS(LOOK_MS))
        return LOOK_MS;
    return left_ns > DUE_S(3600) ? 3600000 : (int)(left_ns / 1000000) + 1;
}

static void look(struct watch *w)
{
    struct pollfd ready[] = {
        { .fd = w->signal_fd, .events = POLLIN },
        { .fd = w->run->event_fd, .events = POLLIN },
    };
    eventfd_t events;
    int signal;

    if (w->run->screen.wants_progress && w->phase == RUNNING)
        show_progress(w);
    if (poll(ready, 2, wait_ms(w)) < 0 && errno != EINTR)
        return;
    eventfd_read(w->run->event_fd, &events);
    while ((signal = ctl_signal_next(w->signal_fd)) != 0)
        signal_has_come(w, signal);
    if (atomic_load(&w->run->broken) != 0 && w->phase == RUNNING)
        stop(w);
    if (w->phase != RUNNING)
        look_at_closing(w);
    if (w->phase != RUNNING && now_ns(w) >= w->until_ns && atomic_load(&w->run->busy) > 0)
        phase_has_ended(w);
}

int ctl_watch(struct ctl_run *run, int signal_fd)
{
    struct watch w = { .run = run, .signal_fd = signal_fd, .phase = RUNNING };

    while (atomic_load(&run->busy) > 0)
        look(&w);
    ctl_screen_progress(&run->screen, NULL);
    return w.signal;
}
