/* debounce.c - many changes, one report: a unique key per document.
 *
 * An editor saves a document at each pause.  It is to be indexed when nothing was saved for two
 * seconds, once, as it is then.  The key is the document's name: each save replaces the job that
 * waits, and puts it off.  A message that may arrive twice is enqueued once, and its key is kept
 * for a minute after it was handled.
 *
 * The clock is turned by hand, so that the example takes no time.
 */
#include <due/due.h>
#include <stdio.h>
#include <string.h>

static void saved(due_queue *q, const char *document, const char *text)
{
    due_extra once = { DUE_EXTRA_INIT, .key = document, .key_len = strlen(document),
                       .on_key = DUE_KEY_DEBOUNCE };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(2), .data = text, .len = strlen(text),
                      .more = &once };

    if (due_enqueue(q, &spec, 0, NULL) != 0)
        printf("not saved: %s\n", document);
}

static const char *arrived(due_queue *q, const char *message)
{
    due_extra once = { DUE_EXTRA_INIT, .key = message, .key_len = strlen(message),
                       .keep_key_ns = DUE_S(60) };
    due_spec spec = { DUE_SPEC_INIT, .data = message, .len = strlen(message), .more = &once };

    return due_enqueue(q, &spec, 0, NULL) == DUE_EEXIST ? "seen already" : "new";
}

static void handle_what_is_due(due_queue *q)
{
    due_job job;

    while (due_dequeue(q, &job, 0) == 0) {
        printf("%2d s: %.*s\n", (int)(due_now(q) / DUE_S(1)), (int)job.len, (const char *)job.data);
        due_job_done(&job);
    }
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    for (int s = 1; s <= 10; s++) {
        due_clock_advance(clock, DUE_S(1));
        handle_what_is_due(q);
        if (s <= 3)
            saved(q, "letter", s < 3 ? "index: Dear Ann" : "index: Dear Ann, thank you");
        if (s == 3 || s == 6)
            saved(q, "list", s == 3 ? "index: tea" : "index: tea, jam");
    }

    printf("order 7 is %s\n", arrived(q, "order 7"));
    handle_what_is_due(q);
    printf("order 7 is %s\n", arrived(q, "order 7"));
    due_clock_advance(clock, DUE_S(60));
    printf("order 7 is %s\n", arrived(q, "order 7"));
    return due_close(q, DUE_CLOSE_DISCARD, 0) != 0 || due_free(q) != 0 ||
           due_clock_free(clock) != 0;
}
