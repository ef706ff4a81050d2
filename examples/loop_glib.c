/* loop_glib.c - a queue's jobs in a GLib main loop.
 *
 * Reminders are due while the loop waits for other things too; some of them were enqueued by
 * another thread.  Each is shown in the loop's thread.  When the queue closes, the loop is ended.
 */
#include <due/loop_glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LAST "the tea"

static pthread_t loop_thread;
static GMainLoop *loop;

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
    g_main_loop_quit(loop);
}

int main(void)
{
    due_loop_options options = { .on_end = on_end };
    due_spec milk = { DUE_SPEC_INIT, .delay_ns = DUE_MS(10), .data = "the milk", .len = 8 };
    struct due_glib watcher;
    due_queue *q;
    pthread_t other;

    loop_thread = pthread_self();
    loop = g_main_loop_new(NULL, FALSE);
    if (due_open(&q, NULL, NULL) != 0 || due_enqueue(q, &milk, 0, NULL) != 0 ||
        due_glib_start(&watcher, NULL, q, on_due, q, &options) != 0 ||
        pthread_create(&other, NULL, enqueue_others, q) != 0)
        return 1;
    g_main_loop_run(loop);
    pthread_join(other, NULL);
    g_main_loop_unref(loop);
    return due_free(q);
}
