/* connection_timeouts.c - a server with 100,000 connections, each with an idle timer.
 *
 * The timer is a job that carries a pointer to its connection.  Traffic moves it (reschedule), an
 * orderly end takes it back (cancel), and what a second thread dequeues has been silent for too
 * long.  A cancel and a dequeue may meet; exactly one of them gets the connection, so neither
 * needs a lock of its own.
 */
#include <due/due.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS 100000
#define IDLE_NS     DUE_MS(600)

struct connection {
    due_id timer;
    int spoke;
};

struct tally {
    due_queue *timers;
    int silent; /* timed out without a word */
    int spoke;  /* timed out after its timer had been moved */
};

/* The thread that ends silent connections. */
static void *reap(void *arg)
{
    struct tally *tally = arg;
    due_job jobs[64];
    int n;

    while ((n = due_take(tally->timers, NULL, jobs, 64, DUE_FOREVER)) > 0) {
        for (int i = 0; i < n; i++) {
            const struct connection *c = jobs[i].ptr;
            if (c->spoke)
                tally->spoke++;
            else
                tally->silent++;
            due_job_done(&jobs[i]);
        }
    }
    return NULL; /* DUE_ECLOSED */
}

/* Of ten connections eight end in order, one speaks once more, and one says nothing. */
static int serve(due_queue *timers, struct connection *c)
{
    int ended = 0;

    for (int i = 0; i < CONNECTIONS; i++) {
        c[i].spoke = i % 10 == 8;
        if (due_enqueue_after(timers, IDLE_NS, &c[i], &c[i].timer) != 0)
            exit(1);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        if (i % 10 < 8)
            ended += due_cancel(timers, c[i].timer, NULL) == 0;
        else if (c[i].spoke)
            (void)due_reschedule(timers, c[i].timer, due_now(timers) + IDLE_NS);
    }
    return ended; /* a cancel that came too late was not counted: the other thread has it */
}

int main(void)
{
    struct connection *connections = calloc(CONNECTIONS, sizeof *connections);
    struct tally tally = { NULL, 0, 0 };
    due_options options = { DUE_OPTIONS_INIT, .name = "idle", .reserve = CONNECTIONS };
    pthread_t reaper;

    if (connections == NULL || due_open(&tally.timers, &options, NULL) != 0 ||
        pthread_create(&reaper, NULL, reap, &tally) != 0)
        return 1;

    int ended = serve(tally.timers, connections);
    printf("%6d connections, each with an idle timer\n", CONNECTIONS);
    printf("%6d ended in order, their timers cancelled\n", ended);

    /* No new timers; those that still run go off at their time, and then everybody may go. */
    if (due_close(tally.timers, DUE_CLOSE_DRAIN, DUE_S(30)) != 0)
        return 1;
    pthread_join(reaper, NULL);
    printf("%6d spoke once more, and timed out later\n", tally.spoke);
    printf("%6d never spoke, and timed out\n", tally.silent);

    int sum = ended + tally.spoke + tally.silent;
    printf("%6d in all: each connection ended exactly once\n", sum);
    free(connections);
    return due_free(tally.timers) != 0 || sum != CONNECTIONS;
}
