/* loop_libevent.c - a queue's jobs in a libevent base.
 *
 * Reminders are due while the loop waits for other things too; some of them were enqueued by
 * another thread.  Each is shown in the loop's thread.  When the queue closes, the loop ends.
 */
#include <due/loop_libevent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LAST "the tea"

static pthread_t loop_thread;

static void *enqueue_others(void *q)
{
    due_spec egg = { DUE_SPEC_INIT, .delay_ns = DUE_MS(20), .data = "the egg", .len = 7 };
    due_spec tea = { DUE_SPEC_INIT, .delay_ns = DUE_MS(40), .data = LAST, .len = strlen(LAST) };

    return due_enqueue(q, &egg, 0, NULL) == 0 && due_enqueue(q, &tea, 0, NULL) == 0 ? q : NULL;
}

static void on_due(void *ctx, due_job *job)
{
    due_queue *q = ctx;

    printf("%.*s is due, %s\n", (int)job->len, (const char *)job->data,
           pthread_equal(pthread_self(), loop_thread) ? "in the loop's thread" : "elsewhere");
    if (memcmp(job->data, LAST, strlen(LAST)) == 0 &&
        due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) != 0)
        printf("the queue cannot be closed\n");
}

static void on_end(void *ctx, int rc)
{
    (void)ctx;
    printf("no more jobs: %s\n", due_error_text(rc));
}

int main(void)
{
    due_loop_options options = { .on_end = on_end };
    due_spec milk = { DUE_SPEC_INIT, .delay_ns = DUE_MS(10), .data = "the milk", .len = 8 };
    struct event_base *base = event_base_new();
    struct due_event_base watcher;
    due_queue *q;
    pthread_t other;

    loop_thread = pthread_self();
    if (base == NULL || due_open(&q, NULL, NULL) != 0 || due_enqueue(q, &milk, 0, NULL) != 0 ||
        due_event_start(&watcher, base, q, on_due, q, &options) != 0 ||
        pthread_create(&other, NULL, enqueue_others, q) != 0)
        return 1;
    event_base_dispatch(base);
    pthread_join(other, NULL);
    event_base_free(base);
    return due_free(q);
}
