/* test_control_open.c - a control socket is opened and closed: what is refused, whose the file is,
 * what is left behind.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lab/crew.h"
#include "text/text.h"
#include "unit/control/control_desk.h"

static int open_with(struct desk *d, due_control_options o, due_control_queue queue, due_error *e)
{
    due_control *c = (due_control *)(void *)&queue;
    int rc;

    o.size = sizeof o;
    o.path = o.path == NULL ? d->path : o.path;
    o.queues = o.queues == NULL ? &queue : o.queues;
    o.queue_count = o.queue_count == 0 ? 1 : o.queue_count;
    rc = due_control_open(&c, &o, e);
    cr_expect(rc == 0 || c == NULL, "the handle is not NULL");
    if (rc == 0)
        cr_expect_eq(due_control_close(c), 0);
    return rc;
}

#define OPENS(d, q, ...)                                                       \
    open_with((d), (due_control_options){ __VA_ARGS__ }, (due_control_queue)q, \
              &(due_error){ "", "" })
#define QUEUE(...)  \
    {               \
        __VA_ARGS__ \
    }

Test(control_open, refuses_what_makes_no_sense)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    due_queue *q = desk_queue(&d);
    due_control_queue twice[2] = { { .queue = q, .name = "a" }, { .queue = q, .name = "a" } };
    char long_path[200], long_name[80];

    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[65] = '\0';
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .ctx = NULL), 0);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = NULL, .name = "a"), .ctx = NULL), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = NULL), .ctx = NULL), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = ""), .ctx = NULL), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a b"), .ctx = NULL), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a\""), .ctx = NULL), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = long_name), .ctx = NULL), DUE_EINVAL);
    long_name[64] = '\0';
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = long_name), .ctx = NULL), 0);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a", .flags = 4), .ctx = NULL), DUE_ENOTSUP);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a", .reserved = { 1 }), .ctx = NULL),
                 DUE_ENOTSUP);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .reserved = { 1 }), DUE_ENOTSUP);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .path = ""), DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .path = long_path), DUE_ELIMIT);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .path = "/none/such/c"), DUE_ENOENT);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .queues = twice, .queue_count = 2),
                 DUE_EINVAL);
    cr_expect_eq(OPENS(&d, QUEUE(.queue = q, .name = "a"), .queues = twice, .queue_count = 257),
                 DUE_EINVAL);
    due_control *c;
    due_control_options none = { .path = d.path };
    cr_expect_eq(due_control_open(&c, &none, NULL), DUE_EINVAL);
    cr_expect_eq(due_control_close(NULL), 0);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* Somebody else's socket, or another file, stays; that of a process that is gone does not. */
Test(control_open, takes_over_what_nobody_listens_at_and_nothing_else)
{
    struct desk d = desk_open(false);
    due_control_queue queue = { .queue = desk_queue(&d), .name = "a" };
    due_control_options o = { DUE_CONTROL_OPTIONS_INIT, .path = d.path, .queues = &queue,
                              .queue_count = 1 };
    due_error error = { "", "" };
    struct stat file;
    due_control *c;

    cr_expect_eq(due_control_open(&c, &o, &error), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, d.path));
    desk_ask(&d, "{\"verb\":\"stats\"}");
    desk_ends(&d, "DUE_OK");
    cr_assert_eq(due_control_close(d.control), 0);

    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, d.path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    cr_expect_eq(due_control_open(&c, &o, &error), 0, "%s", error.text);
    cr_assert_eq(stat(d.path, &file), 0);
    cr_expect_eq(file.st_mode & 07777u, 0600u);
    cr_expect_eq(due_control_close(c), 0);

    fd = open(d.path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    cr_expect_eq(due_control_open(&c, &o, &error), DUE_EBUSY);
    cr_expect_eq(stat(d.path, &file), 0);
    cr_expect(S_ISREG(file.st_mode));
    unlink(d.path);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* ---- Several who want the same place --------------------------------------------------------- */

enum { RACERS = 4, RACES = 150 };

struct race {
    atomic_uint ready, opened, refused, over;
    atomic_bool go;
};

/* A process of its own: it keeps the socket until all have tried. */
static void race_for(struct race *r, const char *path)
{
    due_control_queue queue = { .name = "a" };
    due_control_options o = { DUE_CONTROL_OPTIONS_INIT, .path = path, .queues = &queue,
                              .queue_count = 1 };
    due_control *c;

    if (due_open(&queue.queue, NULL, NULL) != 0)
        _exit(1);
    atomic_fetch_add(&r->ready, 1);
    while (!atomic_load(&r->go))
        sched_yield();
    int rc = due_control_open(&c, &o, NULL);
    atomic_fetch_add(rc == 0 ? &r->opened : &r->refused, rc == 0 || rc == DUE_EBUSY);
    atomic_fetch_add(&r->over, 1);
    while (atomic_load(&r->over) < RACERS)
        crew_sleep(DUE_MS(1));
    _exit(0);
}

/* Nobody listens there. */
static void leave_stale(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* Of many processes that find the socket of one that is gone one has it, and it is not taken away
 * from that one; the same where there is none. */
Test(control_open, lets_one_of_many_take_over, .timeout = 120)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    struct race *r =
        mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < RACES; i++) {
        memset(r, 0, sizeof *r);
        if (i % 4 != 0)
            leave_stale(d.path);
        for (int j = 0; j < RACERS; j++) {
            if (fork() == 0)
                race_for(r, d.path);
        }
        while (atomic_load(&r->ready) < RACERS)
            crew_sleep(DUE_MS(1));
        atomic_store(&r->go, true);
        while (wait(NULL) > 0)
            continue;
        cr_assert_eq(atomic_load(&r->opened), 1u, "race %d", i);
        cr_assert_eq(atomic_load(&r->refused), RACERS - 1u, "race %d", i);
        unlink(d.path);
    }
    munmap(r, sizeof *r);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* A file is where it was made, also when the program has gone to another folder. */
Test(control_open, has_a_path_from_where_the_program_was)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    char home[4096], path[48];

    memcpy(path, d.path, sizeof path);
    strcpy(d.path, "c");
    cr_assert_not_null(getcwd(home, sizeof home));
    cr_assert_eq(chdir(d.folder), 0);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    cr_expect_eq(access(path, F_OK), 0);
    cr_assert_eq(chdir(home), 0);
    memcpy(d.path, path, sizeof path);
    desk_ask(&d, "{\"verb\":\"stats\"}");
    desk_ends(&d, "DUE_OK");
    desk_close(&d);
}

/* What was put in its place is not taken away. */
Test(control_open, leaves_the_file_of_somebody_else)
{
    struct desk d = desk_open(false);
    struct stat file;

    cr_assert_eq(unlink(d.path), 0);
    close(open(d.path, O_CREAT | O_WRONLY, 0600));
    cr_expect_eq(due_control_close(d.control), 0);
    cr_expect_eq(stat(d.path, &file), 0);
    unlink(d.path);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

enum { FDS = 256 };

/* Which are open; how many of them would go to a program that is started. */
static unsigned descriptors(bool open_now[FDS])
{
    unsigned kept = 0;

    for (int fd = 0; fd < FDS; fd++) {
        int flags = fcntl(fd, F_GETFD);

        open_now[fd] = flags >= 0;
        kept += open_now[fd] && (flags & FD_CLOEXEC) == 0;
    }
    return kept;
}

/* No descriptor is left, nor given to a program that is started, also of who did not go himself. */
Test(control_open, leaves_no_descriptor)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    bool before[FDS], now[FDS];
    int clients[5];
    unsigned kept = descriptors(before);

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    for (int i = 0; i < 5; i++)
        clients[i] = socket_connect(d.path);
    for (int i = 0; i < 3; i++) {
        desk_ask(&d, "{\"verb\":\"list\"}");
        desk_ask(&d, "bad");
    }
    cr_expect_eq(descriptors(now), kept);
    cr_expect_neq(memcmp(before, now, sizeof now), 0, "this proves nothing");
    cr_assert_eq(due_control_close(d.control), 0);
    for (int i = 0; i < 5; i++)
        free(socket_hear(clients[i])); /* its end */
    (void)descriptors(now);
    cr_expect_eq(memcmp(before, now, sizeof now), 0);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* In a child it is only memory: the parent's socket goes on. */
Test(control_open, stays_the_parents_after_fork)
{
    struct desk d = desk_open(false);
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(due_control_close(d.control) == 0 ? 0 : 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    desk_ask(&d, "{\"verb\":\"stats\"}");
    desk_ends(&d, "DUE_OK");
    desk_close(&d);
}

/* ---- Hooks ----------------------------------------------------------------------------------- */

struct closing {
    due_control *control;
    atomic_int rc;
    char name[16];
    unsigned signals; /* that are handled in its thread */
};

static void close_it(void *ctx, due_queue *q, const due_job *job)
{
    struct closing *c = ctx;

    (void)q;
    (void)job;
    atomic_store(&c->rc, due_control_close(c->control));
}

static void note_thread(void *ctx, const char *name)
{
    struct closing *c = ctx;

    sigset_t blocked;

    snprintf(c->name, sizeof c->name, "%s", name);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; i++)
        c->signals += i != SIGKILL && i != SIGSTOP && sigismember(&blocked, i) == 0;
}

Test(control_close, is_refused_in_a_hook)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    struct closing closing = { .rc = 0 };
    due_id id = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);

    desk_serve(&d, 0,
               (due_control_options){
                   .on_cancel = close_it, .on_thread_start = note_thread, .ctx = &closing });
    closing.control = d.control;
    desk_name(&d, "cancel", id, "");
    desk_ends(&d, "DUE_OK");
    cr_expect_eq(atomic_load(&closing.rc), DUE_EDEADLK);
    cr_expect_str_eq(closing.name, "due:control");
    cr_expect_eq(closing.signals, 0u);
    desk_close(&d);
}

/* A queue that is closed is asked in vain, and the socket may be closed after it. */
Test(control_close, may_come_after_that_of_the_queue)
{
    for (int stored = 0; stored < 2; stored++) {
        struct desk d = desk_open(stored);

        cr_assert_eq(due_close(desk_queue(&d), DUE_CLOSE_DISCARD, DUE_S(1)), 0);
        desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":0,\"len\":0}]}");
        desk_ends(&d, "DUE_ECLOSED");
        desk_close(&d);
    }
}

/* ---- Several queues -------------------------------------------------------------------------- */

Test(control_queues, are_told_apart_by_their_names)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    struct lab other = lab_open(.start_ns = 5000);
    due_control_queue queues[] = { { .queue = desk_queue(&d), .name = "kitchen" },
                                   { .queue = other.q, .name = "mail" } };
    due_control_options o = { DUE_CONTROL_OPTIONS_INIT, .path = d.path, .queues = queues,
                              .queue_count = 2 };

    cr_assert_eq(due_control_open(&d.control, &o, NULL), 0);
    queues[1].name = "gone"; /* it was copied */
    desk_ask(&d, "{\"verb\":\"put\",\"queue\":\"mail\",\"jobs\":[{\"delay_ns\":9,\"len\":0}]}");
    desk_ends(&d, "DUE_OK");
    cr_expect_eq(lab_stats(&other).waiting, 1u);
    cr_expect_eq(lab_stats(desk_lab(&d)).waiting, 0u);
    desk_ask(&d, "{\"verb\":\"list\",\"queue\":\"mail\"}");
    desk_says(&d, "\"now_ns\":5000,");
    desk_ask(&d, "{\"verb\":\"list\"}");
    cr_expect_str_eq(d.answer, "{\"fault\":\"which queue? there are several\"}\n"
                               "{\"end\":\"DUE_EINVAL\"}\n");
    desk_ask(&d, "{\"verb\":\"list\",\"queue\":\"gone\"}");
    desk_says(&d, "no such queue");
    desk_ask(&d, "{\"verb\":\"queues\"}");
    cr_expect_eq(desk_count(&d, "\"queue\":"), 2u);
    cr_assert_eq(due_control_close(d.control), 0);
    lab_close(&other);
    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_close(&d);
}

/* ---- Hostile input --------------------------------------------------------------------------- */

/* Every line of it is JSON: of strings and numbers. */
static bool is_json(char *answer)
{
    for (char *end; (end = strchr(answer, '\n')) != NULL; answer = end + 1) {
        struct due__ctl_json j = { .line = answer, .len = (size_t)(end - answer) };
        bool text;
        int64_t number;
        size_t len;
        char *at;

        if (!due__ctl_json_sign(&j, '{'))
            return false;
        do {
            if (!due__ctl_json_string(&j, &at, &len) || !due__ctl_json_sign(&j, ':'))
                return false;
            text = j.at < j.len && j.line[j.at] == '"';
            if (text ? !due__ctl_json_string(&j, &at, &len)
                     : !due__ctl_json_number(&j, DUE_FOREVER, &number))
                return false;
        } while (due__ctl_json_is(&j, ','));
        if (!due__ctl_json_sign(&j, '}') || !due__ctl_json_end(&j))
            return false;
    }
    return *answer == '\0';
}

Test(control_hostile, is_answered_with_what_is_wrong)
{
    static const char *const lines[] = {
        "",
        "{}",
        "x",
        "[",
        "{\"verb\":\"stats\"",
        "{\"verb\":\"stats\"}x",
        "{\"verb\":\"none\"}",
        "{\"verb\":\"stats\",\"ids\":[]}",
        "{\"verb\":\"stats\",\"max\":1}",
        "{\"verb\":\"stats\",\"queue\":\"\"}",
        "{\"verb\":\"stats\",\"queue\":\"\\u0000\"}",
        "{\"verb\":\"list\",\"ids\":[]}",
        "{\"verb\":\"list\",\"max\":257}",
        "{\"verb\":\"list\",\"max\":-1}",
        "{\"verb\":\"list\",\"data\":8388609}",
        "{\"verb\":\"list\",\"cursor\":1}",
        "{\"verb\":\"list\",\"cursor\":\"xyz\"}",
        "{\"verb\":\"list\",\"cursor\":\"00000000000000000\"}",
        "{\"verb\":\"show\"}",
        "{\"verb\":\"show\",\"key\":\"\"}",
        "{\"verb\":\"show\",\"ids\":[],\"key\":\"k\"}",
        "{\"verb\":\"reschedule\",\"ids\":[]}",
        "{\"verb\":\"reschedule\",\"ids\":[],\"at_ns\":1,\"delay_ns\":1}",
        "{\"verb\":\"reschedule\",\"ids\":[],\"delay_ns\":9223372036854775808}",
        "{\"verb\":\"promote\"}",
        "{\"verb\":\"promote\",\"ids\":[\"ff\"]}",
        "{\"verb\":\"queues\",\"topic\":\"\"}",
        "{\"verb\":\"put\",\"jobs\":[{\"at_ns\":1,\"delay_ns\":1,\"len\":0}]}",
        "{\"verb\":\"put\",\"jobs\":[{\"len\":0}]}",
        "{\"verb\":\"put\",\"jobs\":[]}",
        "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":1}]}",
        "{\"verb\":\"clear\",\"topic\":{\"base65\":\"\"}}",
        "{\"verb\":\"clear\",\"topic\":{\"base64\":\"x\"}}",
        "{\"verb\":\"clear\",\"topic\":\"\\ud800\"}",
        "{\"verb\":\"clear\",\"topic\":\"\\ud800\\u0041\"}",
        "{\"verb\":\"clear\",\"topic\":\"\\x\"}"
    };
    struct desk d = desk_open(false);

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        desk_ask(&d, lines[i]);
        cr_expect_eq(desk_count(&d, "{\"fault\":\""), 1u, "%s: %s", lines[i], d.answer);
        desk_says_not(&d, "(null)");
        desk_ends(&d, "DUE_EINVAL");
        cr_expect(is_json(d.answer), "%s", lines[i]); /* it is decoded in place */
    }
    cr_expect_eq(lab_stats(desk_lab(&d)).waiting, 0u);
    desk_close(&d);
}

/* A cursor that was never given is answered, too, or refused: nothing else happens. */
Test(control_hostile, may_give_any_cursor)
{
    struct desk d = desk_open(false);

    (void)lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);
    desk_ask(&d, "{\"verb\":\"list\",\"cursor\":\"ffffffffffffffff\"}");
    desk_says(&d, "{\"end\":\"DUE_");
    desk_ask(&d, "{\"verb\":\"dead\",\"cursor\":\"ffffffffffffffff\"}");
    desk_says(&d, "{\"end\":\"DUE_");
    desk_ask(&d, "{\"verb\":\"list\",\"cursor\":\"\"}");
    desk_ends(&d, "DUE_OK");
    desk_close(&d);
}

/* Who goes away has done nothing: not the half of a line, nor payloads that are cut off. */
Test(control_hostile, may_go_away_at_any_byte)
{
    static const char request[] = "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":3}]}\nte";
    struct desk d = desk_open(false);

    for (size_t n = 0; n < sizeof request; n++) {
        int fd = socket_connect(d.path);

        socket_say(fd, request, n);
        shutdown(fd, SHUT_WR);
        char *answer = socket_hear(fd);
        cr_expect(n < sizeof request - 3 ? answer[0] == '\0' : strstr(answer, "cut off") != NULL,
                  "%zu: %s", n, answer);
        free(answer);
    }
    cr_expect_eq(lab_stats(desk_lab(&d)).waiting, 0u);
    desk_close(&d);
}

/* A line as long as may be, one that is longer, and what stands behind a line. */
Test(control_hostile, may_send_lines_of_any_length)
{
    struct desk d = desk_open(false);
    size_t most = 65536;
    char *line = malloc(most + 2);

    memset(line, ' ', most + 1);
    memcpy(line, "{\"verb\":\"stats\"}", 16);
    line[most] = '\0';
    desk_ask(&d, line);
    desk_ends(&d, "DUE_OK");
    line[most] = ' ';
    line[most + 1] = '\0';
    desk_ask(&d, line);
    desk_ends(&d, "DUE_ELIMIT");
    desk_ask_with(&d, "{\"verb\":\"stats\"}", line, most);
    desk_ends(&d, "DUE_OK");
    free(line);
    desk_close(&d);
}

/* As many ids as may be, and one more. */
Test(control_hostile, may_name_many)
{
    struct desk d = desk_open(false);

    for (int n = 256; n <= 257; n++) {
        char *line = calloc(1, 64 + 36 * 257);
        size_t at = (size_t)sprintf(line, "{\"verb\":\"cancel\",\"ids\":[");

        for (int i = 0; i < n; i++)
            at += (size_t)sprintf(line + at, "%s\"%032d\"", i == 0 ? "" : ",", i);
        strcpy(line + at, "]}");
        desk_ask(&d, line);
        if (n == 256)
            cr_expect_eq(desk_count(&d, "DUE_ENOENT"), 256u);
        else
            desk_says(&d, "more than 256 ids");
        free(line);
    }
    desk_close(&d);
}
