/* no_threads.c - a queue without a single thread of its own.
 *
 * With DUE_PROXIES_NEVER the caller does all the work: due_poll() moves what is due to where it can
 * be taken, and says when to come again.  Until then this program sleeps; a game or a device would
 * draw a frame or read its inputs.
 */
#include <due/due.h>
#include <stdio.h>
#include <time.h>

/* Sleep until the queue's clock, the monotonic one, shows @at_ns. */
static void sleep_until(int64_t at_ns)
{
    struct timespec at = { .tv_sec = at_ns / DUE_S(1), .tv_nsec = at_ns % DUE_S(1) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

int main(void)
{
    static const char *const text[] = { "lights on", "door open", "lights off" };
    static const int64_t at_ms[] = { 50, 100, 150 };
    due_options options = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };
    due_queue *q;
    due_job job;
    int sleeps = 0;

    if (due_open(&q, &options, NULL) != 0)
        return 1;

    int64_t start_ns = due_now(q);
    for (int i = 2; i >= 0; i--) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = start_ns + DUE_MS(at_ms[i]),
                          .ptr = (void *)text[i] };
        if (due_enqueue(q, &spec, 0, NULL) != 0)
            return 1;
    }
    printf("the first is due %lld ms after the start\n",
           (long long)((due_next_deadline(q) - start_ns) / DUE_MS(1)));

    int64_t next_ns = DUE_FOREVER;
    int ready;
    while ((ready = due_poll(q, &next_ns)) > 0 || next_ns != DUE_FOREVER) {
        if (ready == 0) {
            sleep_until(next_ns);
            sleeps++;
        } else if (due_dequeue(q, &job, 0) == 0) {
            printf("%3lld ms: %s\n", (long long)((job.deadline_ns - start_ns) / DUE_MS(1)),
                   (const char *)job.ptr);
            due_job_done(&job);
        }
    }
    printf("slept no more often than there were deadlines: %s\n", sleeps <= 3 ? "yes" : "no");

    return due_close(q, DUE_CLOSE_DISCARD, 0) || due_free(q);
}
