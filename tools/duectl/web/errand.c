/* errand.c - whatever may take long is done by a process of its own.
 *
 * It is forked while there is one thread, so it may do anything.  It closes what it has no business
 * with, above all the connections; writes its answer to one pipe and, as standard error, what went
 * wrong to another; and ends.  One that only looks ends with its parent.  One that changes a queue
 * does not, since a change that was begun is better ended; signals of the terminal reach neither,
 * as they are blocked.
 */
#define _GNU_SOURCE
#include "web/web.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, OUT_MAX = 48 << 20, SAID_MAX = 4096 };

int64_t ctl_web_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

/* ---- In the other process -------------------------------------------------------------------- */

static bool write_all(const struct due__ctl_buffer *b)
{
    size_t done = 0;

    while (done < b->len) {
        ssize_t n = write(STDOUT_FILENO, b->bytes + done, b->len - done);

        if (n < 0 && errno != EINTR)
            return false;
        done += n < 0 ? 0 : (size_t)n;
    }
    return !b->failed;
}

__attribute__((noreturn)) static void errand_main(ctl_errand_body *body,
                                                  const struct ctl_look *look, const void *ctx,
                                                  int out_fd, int said_fd)
{
    struct due__ctl_buffer out = { 0 };

    if (dup2(out_fd, STDOUT_FILENO) < 0 || dup2(said_fd, STDERR_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0u, 0) != 0)
        _exit(CTL_BROKEN);
    int status = body(look, ctx, &out);
    _exit(write_all(&out) ? status : CTL_BROKEN);
}

/* ---- Here ------------------------------------------------------------------------------------ */

static void close_both(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

bool ctl_errand_start(struct ctl_errand *e, ctl_errand_body *body, const struct ctl_look *look,
                      const void *ctx, int64_t for_ns)
{
    int out[2], said[2];
    pid_t parent = getpid();

    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    if (pipe2(said, O_CLOEXEC) != 0) {
        close_both(out);
        return false;
    }
    *e = (struct ctl_errand){ .look = look,
                              .out_fd = out[0],
                              .said_fd = said[0],
                              .writes = body == ctl_change,
                              .until_ns = ctl_web_now() + for_ns };
    e->pid = fork();
    if (e->pid == 0) {
        if (!e->writes && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
            _exit(CTL_BROKEN);
        errand_main(body, look, ctx, out[1], said[1]);
    }
    close(out[1]);
    close(said[1]);
    if (e->pid > 0)
        return true;
    e->pid = 0;
    close(out[0]);
    close(said[0]);
    return false;
}

/* Read once.  What is longer than @most is left out; of an answer that is the end of the errand. */
static void read_some(struct ctl_errand *e, int *fd, struct due__ctl_buffer *to, size_t most)
{
    char bytes[CHUNK];
    ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        return;
    }
    size_t room = most - to->len;
    due__ctl_buffer_add(to, bytes, (size_t)n < room ? (size_t)n : room);
    if (to == &e->out && ((size_t)n > room || to->failed))
        ctl_errand_kill(e);
}

bool ctl_errand_read(struct ctl_errand *e, bool out, bool said)
{
    int status;

    if (out)
        read_some(e, &e->out_fd, &e->out, OUT_MAX);
    if (said)
        read_some(e, &e->said_fd, &e->said, SAID_MAX);
    if (e->out_fd >= 0 || e->said_fd >= 0)
        return false;
    while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    e->pid = 0;
    e->status = WIFEXITED(status) && !e->cut ? WEXITSTATUS(status) : CTL_BROKEN;
    if (e->cut)
        due__ctl_buffer_text(&e->said, "duectl: this took too long, or its answer was too long\n");
    else if (!WIFEXITED(status))
        due__ctl_buffer_text(&e->said, "duectl: this was ended by signal %d\n", WTERMSIG(status));
    return true;
}

void ctl_errand_kill(struct ctl_errand *e)
{
    e->cut = true;
    kill(e->pid, SIGKILL);
}

void ctl_errand_free(struct ctl_errand *e)
{
    due__ctl_buffer_free(&e->out);
    due__ctl_buffer_free(&e->said);
    *e = (struct ctl_errand){ .out_fd = -1, .said_fd = -1 };
}
