/* worker_pool.c - jobs are handled by a pool of threads, until SIGTERM: then gracefully no more.
 *
 * The handler's answer says what becomes of its job.  While it runs nobody else has the job; what
 * it does not finish, because the process ends or it takes too long, is handed out again.
 */
#include <due/due.h>
#include <due/signals.h>
#include <due/workers.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    const char *text = job->data;
    int len = (int)job->len;

    (void)ctx;
    printf("%.*s, attempt %u\n", len, text, (unsigned)job->attempts);
    *answer = due_answer_ack();
    if (strncmp(text, "report", job->len) == 0 && job->attempts == 1)
        *answer = due_answer_nack(DUE_MS(20));
    if (strncmp(text, "letter", job->len) == 0)
        *answer = due_answer_bury("no such address");
    if (strncmp(text, "the end", job->len) == 0)
        kill(getpid(), SIGTERM); /* as a service manager would */
}

static int put(due_queue *q, const char *text, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = text, .len = strlen(text), .delay_ns = delay_ns };

    return due_enqueue(q, &spec, 0, NULL);
}

int main(void)
{
    struct due_workers_stats stats;
    due_signals *signals;
    due_workers *workers;
    due_queue *q;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (due_signals_open(&signals, (const int[]){ SIGTERM, SIGINT }, 2) != 0 || /* first of all */
        due_open(&q, NULL, NULL) != 0 ||
        due_workers_start(&workers, q, NULL, 0, 4, handle, NULL, NULL) != 0)
        return 1;
    if (put(q, "greeting", 0) || put(q, "report", DUE_MS(50)) || put(q, "letter", DUE_MS(150)) ||
        put(q, "the end", DUE_MS(200)) || put(q, "after it", DUE_MS(250)))
        return 1;

    printf("stopped by signal %d\n", due_signals_wait(signals, DUE_FOREVER));
    if (due_close(q, DUE_CLOSE_DRAIN, DUE_S(10)) != 0 || /* what is there is still handled */
        due_workers_stats_read(workers, &stats) != 0)
        return 1;
    printf("%llu done, %llu tried again, %llu given up\n", (unsigned long long)stats.acked,
           (unsigned long long)stats.retried, (unsigned long long)stats.buried);
    if (due_workers_free(workers) != 0 || due_free(q) != 0)
        return 1;
    due_signals_close(signals);
    return 0;
}
