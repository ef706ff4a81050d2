/* moving_heap.c - a queue by hand, of a mutex, a condition and a heap, and the same with libdue.
 */
#include <due/due.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* ---- By hand -------------------------------------------------------------------------------- */

struct entry {
    int64_t at_ns;
    const char *what;
};

struct by_hand {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    struct entry heap[64];
    int count;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void swap(struct entry *a, struct entry *b)
{
    struct entry was = *a;

    *a = *b;
    *b = was;
}

static int by_hand_put(struct by_hand *q, int64_t delay_ns, const char *what)
{
    pthread_mutex_lock(&q->lock);
    int full = q->count == 64;
    if (!full) {
        int i = q->count++;
        q->heap[i] = (struct entry){ now_ns() + delay_ns, what };
        for (; i > 0 && q->heap[i].at_ns < q->heap[(i - 1) / 2].at_ns; i = (i - 1) / 2)
            swap(&q->heap[i], &q->heap[(i - 1) / 2]);
        pthread_cond_signal(&q->changed); /* it may be the first now */
    }
    pthread_mutex_unlock(&q->lock);
    return full ? -1 : 0;
}

static void sift_down(struct by_hand *q)
{
    for (int i = 0, child = 1; child < q->count; i = child, child = 2 * i + 1) {
        if (child + 1 < q->count && q->heap[child + 1].at_ns < q->heap[child].at_ns)
            child++;
        if (q->heap[i].at_ns <= q->heap[child].at_ns)
            return;
        swap(&q->heap[i], &q->heap[child]);
    }
}

static const char *by_hand_take(struct by_hand *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 || q->heap[0].at_ns > now_ns()) {
        if (q->count == 0) {
            pthread_cond_wait(&q->changed, &q->lock);
        } else {
            struct timespec until = { (time_t)(q->heap[0].at_ns / 1000000000),
                                      (long)(q->heap[0].at_ns % 1000000000) };
            pthread_cond_timedwait(&q->changed, &q->lock, &until);
        }
    }
    const char *what = q->heap[0].what;
    q->heap[0] = q->heap[--q->count];
    sift_down(q);
    pthread_mutex_unlock(&q->lock);
    return what;
}

static int run_by_hand(void)
{
    static struct by_hand q;
    pthread_condattr_t monotonic;

    pthread_mutex_init(&q.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q.changed, &monotonic);
    if (by_hand_put(&q, DUE_MS(300), "the tea") != 0 ||
        by_hand_put(&q, DUE_MS(150), "the egg") != 0)
        return 1;
    printf("by hand: %s, ", by_hand_take(&q));
    printf("%s\n", by_hand_take(&q));
    return 0;
}

/* ---- With libdue ---------------------------------------------------------------------------- */

static const char *take(due_queue *q)
{
    due_job job;

    if (due_dequeue(q, &job, DUE_FOREVER) != 0)
        return NULL; /* closed */
    const char *what = job.ptr;
    due_job_done(&job);
    return what;
}

static int run_libdue(void)
{
    due_queue *q;

    if (due_open(&q, NULL, NULL) != 0 ||
        due_enqueue_after(q, DUE_MS(300), (void *)"the tea", NULL) != 0 ||
        due_enqueue_after(q, DUE_MS(150), (void *)"the egg", NULL) != 0)
        return 1;
    printf("libdue:  %s, ", take(q));
    printf("%s\n", take(q));
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(q);
}

int main(void)
{
    return run_by_hand() || run_libdue();
}
