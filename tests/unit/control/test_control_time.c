/* test_control_time.c - how long those wait who are connected to a control socket, and what is done
 * of what they have asked for when it is closed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lab/crew.h"
#include "os/atomic.h"
#include "server/server.h"
#include "unit/control/control_desk.h"

/* ---- A hook that a request stands in --------------------------------------------------------- */

struct gate {
    atomic_uint come;
    atomic_uint open; /* for so many */
};

static void stand(void *ctx, due_queue *q, const due_job *job)
{
    struct gate *g = ctx;

    (void)q;
    (void)job;
    unsigned number = atomic_fetch_add(&g->come, 1) + 1;
    while (atomic_load(&g->open) < number)
        crew_sleep(DUE_MS(1));
}

static struct desk gated(struct gate *g)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });

    desk_serve(&d, 0, (due_control_options){ .on_cancel = stand, .ctx = g });
    return d;
}

static void until_stands(struct gate *g, unsigned number)
{
    while (atomic_load(&g->come) < number)
        crew_sleep(DUE_MS(1));
}

/* A connection on which this was said, of one or more jobs. */
static int say_cancel(struct desk *d, const due_id *ids, size_t n)
{
    char text[DUE_ID_TEXT];
    int fd = socket_connect(d->path);

    socket_say(fd, "{\"verb\":\"cancel\",\"ids\":[", 24);
    for (size_t i = 0; i < n; i++) {
        socket_say(fd, i == 0 ? "\"" : ",\"", i == 0 ? 1 : 2);
        socket_say(fd, due_id_format(ids[i], text), DUE_ID_TEXT - 1);
        socket_say(fd, "\"", 1);
    }
    socket_say(fd, "]}\n", 3);
    return fd;
}

static int close_it(void *control)
{
    return due_control_close(control);
}

/* ---- Closed ---------------------------------------------------------------------------------- */

/* The one that is being carried out comes to its end, after the job at hand. */
Test(control_closing, ends_between_two_jobs, .timeout = 60)
{
    struct gate gate = { .come = 0 };
    struct desk d = gated(&gate);
    struct crew_thread closer;
    due_id ids[3];

    for (int i = 0; i < 3; i++)
        ids[i] = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);
    int fd = say_cancel(&d, ids, 3);
    until_stands(&gate, 1);
    crew_go(&closer, close_it, d.control);
    crew_until_asleep(&closer);
    atomic_store(&gate.open, 99);
    cr_expect_eq(crew_join(&closer), 0);
    free(d.answer);
    d.answer = socket_hear(fd); /* who asked is told */
    cr_expect_eq(desk_count(&d, "\"result\":\"DUE_OK\""), 1u);
    cr_expect_eq(desk_count(&d, "\"result\":\"DUE_ECLOSED\""), 2u);
    desk_ends(&d, "DUE_OK");
    cr_expect_eq(atomic_load(&gate.come), 1u);
    cr_expect_eq(lab_stats(desk_lab(&d)).waiting, 2u);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* No other is begun, though all of it has come: while the first stands in the hook all others are
 * said, of which the last stands there next. */
Test(control_closing, carries_out_nothing_more, .timeout = 60)
{
    static const char put[] = "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":0}]}\n";
    struct gate gate = { .come = 0 };
    struct desk d = gated(&gate);
    due_id first = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);
    due_id last = lab_enqueue(desk_lab(&d), "egg", .delay_ns = 5);
    struct crew_thread closer;
    int fds[DUE__CTL_CLIENTS_MAX];
    char line[128], text[DUE_ID_TEXT];

    for (int i = 0; i < DUE__CTL_CLIENTS_MAX; i++)
        fds[i] = socket_connect(d.path);
    crew_sleep(DUE_MS(100)); /* all are accepted */
    for (int i = 0; i < DUE__CTL_CLIENTS_MAX; i++) {
        bool cancels = i == 0 || i == DUE__CTL_CLIENTS_MAX - 1;

        snprintf(line, sizeof line, "{\"verb\":\"cancel\",\"ids\":[\"%s\"]}\n",
                 due_id_format(i == 0 ? first : last, text));
        socket_say(fds[i], cancels ? line : put, strlen(cancels ? line : put));
        if (i == 0)
            until_stands(&gate, 1);
    }
    atomic_store(&gate.open, 1);
    until_stands(&gate, 2);
    crew_go(&closer, close_it, d.control);
    crew_until_asleep(&closer);
    atomic_store(&gate.open, 99);
    cr_expect_eq(crew_join(&closer), 0);
    for (int i = 0; i < DUE__CTL_CLIENTS_MAX; i++)
        free(socket_hear(fds[i]));
    cr_expect_eq(lab_stats(desk_lab(&d)).waiting, 0u);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* Whoever is connected hears the end, though a child has a copy of all descriptors; and so does who
 * was not accepted yet. */
Test(control_closing, is_heard_also_where_a_child_lives_on, .timeout = 60)
{
    struct desk d = desk_open(false);
    int fds[DUE__CTL_CLIENTS_MAX + 2];
    int status;

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        fds[i] = socket_connect(d.path);
    crew_sleep(DUE_MS(100)); /* all but two are accepted */
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
            close(fds[i]);
        for (;;)
            pause();
    }
    cr_assert_eq(due_control_close(d.control), 0);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        free(socket_hear(fds[i]));
    kill(pid, SIGKILL);
    cr_expect_eq(waitpid(pid, &status, 0), pid);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* ---- Who waits behind a slow one ------------------------------------------------------------- */

/* While a request is carried out nobody is heard: that is not counted against who was silent. */
Test(control_time, goes_on_behind_a_slow_request, .timeout = 60)
{
    struct gate gate = { .come = 0 };
    struct desk d = gated(&gate);
    due_id id = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);
    int other = socket_connect(d.path);

    socket_say(other, "{\"verb\":", 8);
    crew_sleep(DUE_MS(100));
    int fd = say_cancel(&d, &id, 1);
    until_stands(&gate, 1);
    crew_sleep(DUE__CTL_REQUEST_NS);
    atomic_store(&gate.open, 99);
    free(socket_hear(fd));
    crew_sleep(DUE_MS(200)); /* it would be refused by now */
    socket_say(other, "\"stats\"}\n", 9);
    char *answer = socket_hear(other);
    cr_expect_not_null(strstr(answer, "{\"end\":\"DUE_OK\"}"), "%s", answer);
    free(answer);
    desk_close(&d);
}

/* An answer is written as long as it is read. */
Test(control_time, is_given_to_who_goes_on_reading, .timeout = 60)
{
    enum { LEN = 8000000, STEPS = 14 };
    struct desk d = desk_open(false);
    char *bytes = calloc(1, LEN);
    due_id id;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5, .data = bytes, .len = LEN };
    char text[DUE_ID_TEXT], line[128];
    size_t got = 0;

    memset(bytes, 'a', LEN);
    cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, &id), 0);
    int fd = socket_connect(d.path);
    snprintf(line, sizeof line, "{\"verb\":\"show\",\"data\":8388608,\"ids\":[\"%s\"]}\n",
             due_id_format(id, text));
    socket_say(fd, line, strlen(line));
    for (int i = 0; i < STEPS; i++) {
        for (size_t n = 0; n < LEN / STEPS / 2;) {
            ssize_t some = recv(fd, bytes, 65536, 0);

            cr_assert_gt(some, 0, "after %zu bytes", got);
            n += (size_t)some;
            got += (size_t)some;
        }
        crew_sleep(DUE_MS(500));
    }
    char *rest = socket_hear(fd);
    cr_expect_gt(got + strlen(rest), (size_t)LEN);
    cr_expect_not_null(strstr(rest, "{\"end\":\"DUE_OK\"}\n"));
    free(rest);
    free(bytes);
    desk_close(&d);
}

/* ---- What is bounded ------------------------------------------------------------------------- */

/* Payloads of all who are connected; it is had again when one of them is done. */
Test(control_bounds, hold_for_the_payloads_of_all, .timeout = 60)
{
    static const char put[] = "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":300000}]}\n";
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    char *bytes = calloc(1, 300000);

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    cr_expect_eq(d.control->body_most, (size_t)DUE_PAYLOAD_MAX);
    d.control->body_most = 400000; /* its thread sleeps */
    int fd = socket_connect(d.path);
    socket_say(fd, put, sizeof put - 1);
    socket_say(fd, bytes, 250000);
    crew_sleep(DUE_MS(200));
    desk_ask_with(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":300000}]}", bytes,
                  300000);
    desk_ends(&d, "DUE_EAGAIN");
    socket_say(fd, bytes, 50000);
    char *answer = socket_hear(fd);
    cr_expect_not_null(strstr(answer, "{\"end\":\"DUE_OK\"}"), "%s", answer);
    free(answer);
    desk_ask_with(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":300000}]}", bytes,
                  300000);
    desk_ends(&d, "DUE_OK");
    free(bytes);
    desk_close(&d);
}

/* Where the system has no descriptor, or does not even wait, the socket waits for better times, and
 * is not busy meanwhile. */
Test(control_bounds, of_the_system_are_outlived, .timeout = 60)
{
    struct desk d = desk_open(false);
    struct rlimit before, none;
    int fd = socket_connect(d.path);

    desk_ask(&d, "{\"verb\":\"stats\"}"); /* the first is accepted, too */
    int second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, d.path);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 1, .rlim_max = before.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int64_t from_ns = crew_cpu_ns();
    cr_expect_eq(connect(second, (struct sockaddr *)&address, sizeof address), 0);
    crew_sleep(DUE_MS(500));
    int64_t cpu_ns = crew_cpu_ns() - from_ns;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_expect_lt(cpu_ns, DUE_MS(250));
    socket_say(second, "{\"verb\":\"stats\"}\n", 17);
    char *answer = socket_hear(second);
    cr_expect_not_null(strstr(answer, "{\"end\":\"DUE_OK\"}"), "%s", answer);
    free(answer);
    close(fd);
    desk_close(&d);
}
