/* tsan_user.c - a correct program, checked by ThreadSanitizer, with a library that was not built
 * for it: nothing is reported.  With the argument "race" it has a race of its own, which is.
 *
 * Jobs go from producers to consumers and to the handlers of a pool, and come back by leases, by a
 * cancel and by the end; pointers and bytes, delayed and at once.  Each thing is touched by whoever
 * has it, and by nothing else are the threads ordered.
 */
#include <due/due.h>
#include <due/workers.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 1500
#define TEXT 100 /* bytes that need memory of their own */

struct thing {
    long touched;
};

static due_queue *q;
static int race;
static long common; /* what the race is about */

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static void *produce(void *arg)
{
    char text[TEXT];
    due_id id;
    due_job job;

    (void)arg;
    for (int i = 0; i < JOBS; i++) {
        struct thing *t = malloc(sizeof *t);
        due_spec pointer = { DUE_SPEC_INIT, .delay_ns = i % 3 * DUE_US(20), .ptr = t };
        due_spec bytes = { DUE_SPEC_INIT, .data = text, .len = 1 + (size_t)i % TEXT };

        must(t != NULL, "memory");
        t->touched = i;
        memset(text, i, sizeof text);
        must(due_enqueue(q, &pointer, 0, &id) == 0, "enqueue");
        must(due_enqueue(q, &bytes, 0, NULL) == 0, "enqueue of bytes");
        if (i % 4 == 0 && due_cancel(q, id, &job) == 0) {
            free(job.ptr);
            due_job_done(&job);
        }
        if (race)
            common++;
    }
    return NULL;
}

static void use(const due_job *job)
{
    struct thing *t = job->ptr;
    char copy[TEXT];

    if (t == NULL) {
        memcpy(copy, job->data, job->len);
        must(copy[0] == copy[job->len - 1], "the bytes are one job's");
    } else {
        t->touched++;
    }
}

static void *consume(void *arg)
{
    due_job job;
    int n = 0;

    (void)arg;
    while ((n % 2 == 0 ? due_dequeue(q, &job, DUE_FOREVER) : due_reserve(q, &job, DUE_FOREVER)) ==
           0) {
        void *ptr = job.ptr;

        use(&job);
        if (n++ % 2 == 0)
            due_job_done(&job);
        else if (n % 8 == 0 && due_nack(&job, 0) == 0)
            continue;
        else
            must(due_ack(&job) == 0, "ack");
        free(ptr);
    }
    return NULL;
}

/* It never waits, so it takes jobs from the timeline as they stand. */
static void *poll_until_closed(void *arg)
{
    due_job job;
    int rc;

    (void)arg;
    while ((rc = due_dequeue(q, &job, 0)) != DUE_ECLOSED) {
        if (rc != 0)
            continue;
        void *ptr = job.ptr;

        use(&job);
        due_job_done(&job);
        free(ptr);
    }
    return NULL;
}

static void run_polled(void)
{
    due_options o = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };
    pthread_t thread[2];

    must(due_open(&q, &o, NULL) == 0, "open");
    must(pthread_create(&thread[0], NULL, produce, NULL) == 0, "thread");
    must(pthread_create(&thread[1], NULL, poll_until_closed, NULL) == 0, "thread");
    pthread_join(thread[0], NULL);
    must(due_close(q, DUE_CLOSE_DRAIN, DUE_S(100)) == 0, "close");
    pthread_join(thread[1], NULL);
    must(due_free(q) == 0, "free");
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    use(job);
    free(job->ptr);
    *answer = due_answer_ack();
}

int main(int argc, char **argv)
{
    static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS };

    race = argc > 1 && strcmp(argv[1], "race") == 0;
    for (size_t i = 0; i < 2; i++) {
        due_options o = { DUE_OPTIONS_INIT, .proxies = modes[i], .lease_ns = DUE_S(100) };
        due_workers *workers;
        pthread_t thread[4];

        must(due_open(&q, &o, NULL) == 0, "open");
        must(due_workers_start(&workers, q, NULL, 0, 2, handle, NULL, NULL) == 0, "workers");
        for (size_t k = 0; k < 4; k++)
            must(pthread_create(&thread[k], NULL, k < 2 ? produce : consume, NULL) == 0, "thread");
        for (size_t k = 0; k < 2; k++)
            pthread_join(thread[k], NULL);
        must(due_close(q, DUE_CLOSE_DRAIN, DUE_S(100)) == 0, "close");
        for (size_t k = 2; k < 4; k++)
            pthread_join(thread[k], NULL);
        must(due_workers_free(workers) == 0, "workers_free");
        must(due_free(q) == 0, "free");
    }
    run_polled();
    return 0;
}
