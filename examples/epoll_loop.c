/* epoll_loop.c - a queue and another descriptor in one event loop, in one thread.
 *
 * A client writes into a pipe and wants its answer a little later; when the answer is due, the
 * client sends its next request.  The loop sleeps in epoll_wait() without a timeout: the queue's
 * descriptor says when a job is due.
 */
#include <due/due.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUNDS 4

struct server {
    due_queue *q;
    int requests; /* the reading end of the pipe */
    int client;   /* the writing end */
    int answered;
};

static int watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    return fd < 0 ? -1 : epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* A request has come: its answer shall go out 40 ms from now. */
static int on_request(struct server *s)
{
    char text[16];
    ssize_t n = read(s->requests, text, sizeof text);
    due_spec answer = { DUE_SPEC_INIT, .delay_ns = DUE_MS(40), .data = text };

    if (n <= 0)
        return -1;
    printf("request %.*s: its answer is due in 40 ms\n", (int)n, text);
    answer.len = (size_t)n;
    return due_enqueue(s->q, &answer, 0, NULL);
}

/* Something may be due: take until there is nothing, which makes the descriptor quiet again. */
static int on_due(struct server *s)
{
    due_job job;
    int rc;

    while ((rc = due_dequeue(s->q, &job, 0)) == 0) {
        printf("answer  %.*s: %s\n", (int)job.len, (const char *)job.data,
               job.lateness_ns >= 0 ? "not early" : "early");
        due_job_done(&job);
        s->answered++;
        char next[16];
        int n = snprintf(next, sizeof next, "%d", s->answered + 1);
        if (s->answered < ROUNDS && write(s->client, next, (size_t)n) != n)
            return -1;
    }
    return rc == DUE_EAGAIN ? 0 : rc;
}

int main(void)
{
    struct server s = { NULL, -1, -1, 0 };
    int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || pipe(ends) != 0 || due_open(&s.q, NULL, NULL) != 0)
        return 1;
    s.requests = ends[0];
    s.client = ends[1];
    int jobs = due_fd(s.q);
    if (watch(epoll, s.requests) != 0 || watch(epoll, jobs) != 0 || write(s.client, "1", 1) != 1)
        return 1;

    while (s.answered < ROUNDS) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) == 1 &&
            (event.data.fd == jobs ? on_due(&s) : on_request(&s)) != 0)
            return 1;
    }

    close(ends[0]);
    close(ends[1]);
    close(epoll);
    return due_close(s.q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(s.q);
}
