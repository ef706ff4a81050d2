/* liveness_many_closers.c - more threads close at once than one tenure of the lock can ring. */
#include <stdio.h>

#include "lab/crew.h"

#define CLOSERS 80

static int shut(void *arg)
{
    return due_close(arg, DUE_CLOSE_DRAIN, DUE_FOREVER);
}

int main(int argc, char **argv)
{
    due_options options = { DUE_OPTIONS_INIT };
    static struct crew_thread closers[CLOSERS];
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600) };
    due_id id;

    crew_options(argc, argv, 1);
    due_queue *q = crew_open(&options);
    int rc = due_enqueue(q, &later, 0, &id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CLOSERS; i++)
        crew_go(&closers[i], shut, q);
    for (int i = 0; i < CLOSERS; i++)
        crew_until_asleep(&closers[i]);
    rc = due_cancel(q, id, NULL); /* the last job: nothing is left to deliver */
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CLOSERS; i++) {
        rc = crew_join(&closers[i]);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    crew_close(q, DUE_CLOSE_DRAIN);
    printf("liveness_many_closers: %d closed at once, all came back\n", CLOSERS);
    return 0;
}
