/* others.c - what others do to a queue: one process is turned out, and the server's clock is set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "histories/histories.h"
#include "lab/crew.h"
#include "store/share_log.h"

/* ---- Turning out ----------------------------------------------------------------------------- */

extern char **environ;

#ifndef DUE_DUECTL
#define DUE_DUECTL "" /* nobody can be turned out */
#endif

/* As somebody at a terminal would. */
static bool duectl_evict(const struct history_round *r, uint64_t writer)
{
    char number[24];
    char url[160];
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t quiet;

    snprintf(number, sizeof number, "%" PRIu64, writer);
    snprintf(url, sizeof url, "unix://%s", r->server.socket);
    char *words[] = { (char *)(uintptr_t) "duectl",
                      (char *)(uintptr_t) "evict",
                      (char *)(uintptr_t) "--yes",
                      (char *)(uintptr_t) "--queue",
                      (char *)(uintptr_t)HISTORY_QUEUE,
                      url,
                      number,
                      NULL };
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    CREW_CHECK(posix_spawn(&pid, DUE_DUECTL, &quiet, NULL, words, environ) == 0, "");
    posix_spawn_file_actions_destroy(&quiet);
    CREW_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "");
    CREW_CHECK(WEXITSTATUS(status) <= 1, ": duectl ended with %d", WEXITSTATUS(status));
    return WEXITSTATUS(status) == 0;
}

/* What the server remembers of both lanes, while it does. */
static void write_told(const struct history_round *r, uint64_t writer, char told[2][256])
{
    for (int work = 0; work < 2; work++) {
        snprintf(told[work], 256, "%s/told-%d", r->folder, work);
        int fd = open(told[work], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CREW_CHECK(fd >= 0, ": %s", told[work]);
        CREW_CHECK(history_remember(r->server.socket, writer, work != 0, 0, 0, fd), "");
        close(fd);
    }
}

/* It finds that out by itself, unless it is another one by now. */
static bool wait_fenced(struct history_round *r, int i, uint64_t writer)
{
    int64_t end_ns = crew_now_ns() + DUE_S(60);
    int status = 0;

    while (waitpid(r->pid[i], &status, WNOHANG) == 0) {
        if (r->control->writer[i] != writer)
            return false;
        CREW_CHECK(crew_now_ns() < end_ns, ": process %d was turned out, and goes on", i);
        crew_sleep(DUE_MS(1));
    }
    CREW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == HISTORY_FENCED,
               ": process %d, life %u ended with %d", i, r->life[i], status);
    return true;
}

/* Either it cannot reach the server meanwhile, perhaps in the middle of something; or it goes on,
 * and then of what it had to send twice just then nobody knows whether it was done. */
void history_evict(struct history_round *r)
{
    int i = (int)history_below(r, HISTORY_PROCESSES);
    bool away = history_below(r, 2) == 0;
    char told[2][256];

    if (DUE_DUECTL[0] == '\0' || r->control->writer[i] == 0)
        return;
    if (away) {
        (void)fault_proxy_move(r->proxy[i], "/nowhere");
        fault_proxy_cut(r->proxy[i]);
        CREW_CHECK(fault_proxy_settle(r->proxy[i], 20000), "");
        (void)history_stamp(r->server.socket);
    }
    if (!away) { /* what was cut off is answered by then */
        fault_proxy_plan(r->proxy[i], NULL, 0);
        crew_sleep(DUE_MS(60));
    }
    uint64_t writer = r->control->writer[i];
    write_told(r, writer, told);
    bool out = duectl_evict(r, writer);
    if (out)
        replay_log_line(r->log, "evicted %" PRIu64 " %" PRId64 "\n", writer, replay_log_now());
    if (away)
        (void)fault_proxy_move(r->proxy[i], r->server.socket);
    if (out && wait_fenced(r, i, writer))
        r->torn |= !history_replace_fenced(r, i, (const char *const[2]){ told[0], told[1] }, away);
}

/* ---- The server's clock ---------------------------------------------------------------------- */

void history_turn_by(struct history_round *r, int64_t by_ns)
{
    int64_t from_ns = replay_log_now();

    r->ahead[1] += by_ns;
    r->most_ahead_ns = r->ahead[1] > r->most_ahead_ns ? r->ahead[1] : r->most_ahead_ns;
    int64_t to_ns = replay_log_now();
    int64_t peak_ns = 1000 * history_time(r->server.socket) + (by_ns < 0 ? -by_ns : 0);
    if (r->base_ns == 0)
        r->base_ns = peak_ns - replay_log_now();
    replay_log_line(r->log, "turned %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", from_ns,
                    to_ns, peak_ns, r->base_ns + r->ahead[1]);
}

/* By less than a lease, by more than any, by minutes.  Not back where what was answered may be
 * lost: stamps would begin anew among those that are. */
void history_turn(struct history_round *r)
{
    static const int64_t most_ns[] = { DUE_MS(100), DUE_S(5), DUE_S(600) };
    int64_t most = most_ns[history_below(r, 3)];
    int64_t by_ns = (int64_t)history_below(r, (uint64_t)(2 * most)) - most;

    if (by_ns < 0 && history_fault_loses(r->faults))
        by_ns = -by_ns;
    history_turn_by(r, by_ns);
}
