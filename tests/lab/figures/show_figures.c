/* show_figures.c - a program whose figures are known: its queue does what standard input says.
 *
 * usage: show_figures PATH [NAME]
 *
 * Not a test: tests/duectl/cli_top.sh runs it.  The queue is on a clock that is turned by hand.
 * Each line is a word and perhaps a number and a topic:
 *
 *   put N [TOPIC]   that many jobs, due one nanosecond from now
 *   turn NS         the clock
 *   ack N           that many of what is due; likewise fail N, bury N, and take N for good
 *   hold 1          reserved until the end
 *   serve N         a pool of so many workers, called "cooks", until the end
 *   other PATH      another queue, called "other", with figures there
 *
 * When the figures have what was done it says "done".  At the end of its input it closes the
 * queues.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "due/figures.h"

static due_queue *queue, *other;
static due_clock *hand;
static due_workers *pool;
static due_job held; /* by hold */

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "show_figures: %s: %s\n", what, due_error_name(rc));
    exit(1);
}

static void put(int n, const char *topic)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1, .topic = due_topic(queue, topic) };

    while (n-- > 0)
        must(due_enqueue(queue, &spec, 0, NULL), "put");
}

static void answer(const char *word, int n)
{
    due_job job;

    while (n-- > 0) {
        if (strcmp(word, "take") == 0) {
            must(due_dequeue(queue, &job, 0), word);
            due_job_done(&job);
            continue;
        }
        must(due_reserve(queue, &job, 0), word);
        if (strcmp(word, "ack") == 0)
            must(due_ack(&job), word);
        else if (strcmp(word, "fail") == 0)
            must(due_nack(&job, DUE_S(1000)), word);
        else if (strcmp(word, "bury") == 0)
            must(due_bury(&job, "of no use"), word);
        else
            held = job;
    }
}

static void handle(void *ctx, const due_job *job, due_answer *answer_of)
{
    (void)ctx;
    (void)job;
    *answer_of = due_answer_ack();
}

static void obey(const char *word, long long n, const char *text)
{
    due_workers_options options = { DUE_WORKERS_INIT, .name = "cooks" };

    if (strcmp(word, "put") == 0) {
        put((int)n, text);
    } else if (strcmp(word, "turn") == 0) {
        must(due_clock_advance(hand, n), word);
    } else if (strcmp(word, "serve") == 0) {
        must(due_workers_start(&pool, queue, NULL, 0, (unsigned)n, handle, NULL, &options), word);
    } else {
        answer(word, (int)n);
    }
}

/* The number of the set that was written last. */
static uint64_t number_of(const char *path)
{
    struct due_figures_head head = { .number = 0 };
    int fd = open(path, O_RDONLY);

    must(fd, path);
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        must(DUE_ESYS, path);
    close(fd);
    return head.number;
}

/* The second set from here on was begun after now. */
static void until_shown(const char *path)
{
    static const struct timespec pause = { .tv_nsec = 10000000 };
    uint64_t number = number_of(path);

    while (number_of(path) < number + 2)
        nanosleep(&pause, NULL);
}

static void close_queue(due_queue *q)
{
    if (q == NULL)
        return;
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), "close");
    must(due_free(q), "free");
}

static due_queue *open_queue(const char *name, const char *path)
{
    due_queue *q;

    must(due_open(&q,
                  &(due_options){ DUE_OPTIONS_INIT, .name = name, .metrics = 1, .manual = hand },
                  NULL),
         "open");
    must(due_figures_open(q, path), path);
    return q;
}

int main(int argc, char **argv)
{
    char line[4096];

    if (argc < 2)
        return 2;
    hand = due_clock_manual(0);
    if (hand == NULL)
        return 1;
    queue = open_queue(argc > 2 ? argv[2] : "orders", argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("done");
    while (fgets(line, sizeof line, stdin) != NULL) {
        char word[16] = "";
        char text[4000] = "";
        long long n = 0;

        if (sscanf(line, "other %3999[^\n]", text) == 1)
            other = open_queue("other", text);
        else if (sscanf(line, "%15s %lld %3999[^\n]", word, &n, text) >= 2)
            obey(word, n, text);
        until_shown(argv[1]);
        puts("done");
    }
    if (pool != NULL) {
        must(due_workers_stop(pool, DUE_S(10)), "stop");
        must(due_workers_free(pool), "free");
    }
    due_job_done(&held);
    close_queue(other);
    close_queue(queue);
    return due_clock_free(hand) != 0;
}
