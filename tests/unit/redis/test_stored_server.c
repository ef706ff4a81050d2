/* A queue stored in Redis: a server that is full, gone, or guarded; and who owns the queue. */
#ifdef DUE_HAVE_REDIS

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

static void serve_durably(void)
{
    serve((const char *const[]){ "--appendonly", "yes", "--appendfsync", "always", NULL });
}

#define DURABLE_TEST(suite, name) \
    Test(suite, name, .init = serve_durably, .fini = stop, .timeout = 100)

static void until_stored(long jobs)
{
    char want[32];

    snprintf(want, sizeof want, ":%ld\r\n", jobs);
    for (int i = 0; strcmp(ASK("HLEN", "due:{queue}:j"), want) != 0; i++) {
        cr_assert_lt(i, 2000, "%s jobs are stored", ASK("HLEN", "due:{queue}:j"));
        crew_sleep(DUE_MS(5));
    }
}

/* ---- A full server ---- */

/* Another process owns the queue, puts jobs in, and is killed. */
static void owner_that_dies(unsigned jobs)
{
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        due_options o = { DUE_OPTIONS_INIT };
        due_redis_options r = { .lease_ns = DUE_S(3600) };
        due_queue *q;

        o.store = store_at(server.url, r);
        if (due_open(&q, &o, NULL) != 0)
            _exit(1);
        for (unsigned i = 0; i < jobs; i++) {
            due_spec spec = { DUE_SPEC_INIT, .data = "old", .len = 3, .at_ns = 1 };
            if (due_enqueue(q, &spec, 0, NULL) != 0)
                _exit(2);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status), "%d", status);
}

STORED_TEST(stored_server, a_full_server_refuses_new_jobs_and_gives_the_old_ones_out)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };
    due_job job;

    owner_that_dies(20);
    ASK("CONFIG", "SET", "maxmemory", "1");
    struct lab lab = OPEN(.start_ns = 10);
    cr_expect_eq(lab_stats(&lab).restored, 20u);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_ENOSPC);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(lab_take(&lab, &job), 0);
        due_job_done(&job);
        cr_assert_eq(take_leased(lab.q, &job, DUE_S(60), 0), 0);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_ENOSPC);
    cr_expect_str_eq(ASK("EXISTS", "due:{queue}:j"), ":0\r\n");
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    lab_close(&lab);
}

/* ---- Who owns it ---- */

STORED_TEST(stored_server, an_owner_that_was_killed_is_replaced_at_once)
{
    owner_that_dies(3); /* its lease is an hour */
    struct lab lab = OPEN(.start_ns = 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "old old old");
    lab_close(&lab);
}

STORED_TEST(stored_server, an_owner_that_lives_is_named)
{
    due_redis_options hour = { .lease_ns = DUE_S(3600) };
    struct lab lab =
        open_with((struct lab_options){ .kernel = true, .with.clock = DUE_CLOCK_REALTIME }, hour);
    due_options o = { DUE_OPTIONS_INIT, .open_timeout_ns = DUE_S(1) };
    char host[256] = "";
    char pid[64];
    due_error error;
    due_queue *q;

    gethostname(host, sizeof host - 1);
    snprintf(pid, sizeof pid, "process %d ", (int)getpid());
    o.store = store_at(server.url, (due_redis_options){ .size = 0 });
    cr_expect_eq(due_open(&q, &o, &error), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, host), "%s", error.text);
    cr_expect_not_null(strstr(error.text, pid), "%s", error.text);
    cr_expect_str_neq(error.hint, "");
    lab_close(&lab); /* now it need not wait for the hour to end */
    cr_expect_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)), 0);
    cr_expect_eq(due_free(q), 0);
}

/* ---- The server goes and comes ---- */

/* It looks at the server every 200 ms at least. */
static const due_redis_options often = { .lease_ns = DUE_MS(600) };

STORED_TEST(stored_server, a_living_owner_writes_again_what_a_killed_server_has_lost)
{
    struct lines lines = { 0 };
    struct lab_options o = { .with.on_log = count_lines,
                             .with.on_discard = forget,
                             .with.ctx = &lines };
    struct lab lab = open_with(o, often);
    due_job job;

    for (int i = 0; i < 50; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1 + i);
    due_id moved = lab_enqueue(&lab, "moved", .at_ns = 100);
    cr_expect_eq(due_reschedule(lab.q, moved, 90), 0);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(60), 0), 0);
    for (unsigned kill = 1; kill <= 3; kill++) {
        redis_server_kill(&server);
        cr_assert_eq(redis_server_run(&server), 0);
        until_stored(49 + (long)kill - 1 + 1);
        lab_enqueue(&lab, "more", .at_ns = 200);
        while (atomic_load(&lines.whole) < kill)
            crew_sleep(DUE_MS(1));
        cr_expect_eq(atomic_load(&lines.lost), kill);
    }
    cr_expect_geq(lab_stats(&lab).mirrored, 150u);
    due_job_done(&job); /* the program dies with it */
    lab_close(&lab);
    lab = OPEN(.start_ns = 1000);
    cr_expect_eq(lab_stats(&lab).restored, 53u);
    cr_expect_eq(lab_find(&lab, moved).deadline_ns, 90);
    lab_close(&lab);
}

/* An older copy of the data takes the place of the present one, with keys that were free by now. */
STORED_TEST(stored_server, keys_of_an_older_copy_are_kept_only_as_the_owner_knows_them)
{
    struct lab lab = open_with((struct lab_options){ .kernel = false }, often);
    due_job job;

    lab_enqueue(&lab, "tea", .at_ns = 90, .more = EXTRA(.key = "live", .key_len = 4));
    lab_enqueue(&lab, "jam", .more = EXTRA(.key = "kept", .key_len = 4, .keep_key_ns = DUE_S(9)));
    cr_assert_eq(lab_take(&lab, &job), 0);
    due_job_done(&job);
    ASK("FLUSHALL");
    ASK("HSET", "due:{queue}:k", "old", "14 bytes of it", "live", "another of it.");
    ASK("ZADD", "due:{queue}:kx", "4102444800000000", "old", "4102444800000000", "live");
    lab_enqueue(&lab, "ham", .at_ns = 90);
    for (int i = 0; i < 3000 && strcmp(ASK("HLEN", "due:{queue}:k"), ":2\r\n") != 0; i++)
        crew_sleep(DUE_MS(5));
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:k"), ":2\r\n");
    cr_expect_str_eq(ASK("HEXISTS", "due:{queue}:k", "old"), ":0\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{queue}:kx"), ":1\r\n");
    cr_expect_str_eq(ASK("ZSCORE", "due:{queue}:kx", "kept"), "$7\r\n9000000\r\n");
    until_stored(2);
    lab_close(&lab);
}

DURABLE_TEST(stored_server, reserve_goes_on_while_the_server_is_away_and_dequeue_waits)
{
    struct lab lab = OPEN(.with.store_timeout_ns = DUE_S(1));
    due_job job;
    due_job other;

    lab_enqueue(&lab, "one", .delay_ns = 0);
    lab_enqueue(&lab, "two", .delay_ns = 0);
    redis_server_kill(&server);
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(60), 0), 0);
    int rc = due_dequeue(lab.q, &other, 0);
    cr_expect_eq(rc, DUE_ESTORE, "%s", due_error_name(rc));
    rc = due_ack(&job);
    cr_expect(rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
    cr_assert_eq(redis_server_run(&server), 0);
    for (int i = 0; i < 100 && (rc = due_ack(&job)) == DUE_ETIMEDOUT; i++)
        ;
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    while (due_dequeue(lab.q, &other, 0) != 0)
        crew_sleep(DUE_MS(1));
    cr_expect_str_eq(lab_text(&lab, &other), "two");
    until_stored(0);
    lab_close(&lab);
}

/* The last bytes of the server's log are gone, as after a power cut. */
static void tear_log(void)
{
    char path[160];
    FILE *file = NULL;

    redis_server_kill(&server);
    for (int i = 9; i > 0 && file == NULL; i--) {
        snprintf(path, sizeof path, "%s/appendonlydir/appendonly.aof.%d.incr.aof", server.dir, i);
        file = fopen(path, "r+");
    }
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    cr_assert_eq(ftruncate(fileno(file), ftell(file) - 20), 0);
    fclose(file);
    cr_assert_eq(redis_server_run(&server), 0);
}

DURABLE_TEST(stored_server, a_log_that_is_written_anew_or_cut_off_keeps_its_jobs)
{
    struct lab lab = open_with((struct lab_options){ .with.confirm = DUE_CONFIRM_ASYNC }, often);

    put_many(&lab, 2000);
    ASK("BGREWRITEAOF");
    put_many(&lab, 2000);
    cr_assert_eq(due_flush(lab.q, DUE_S(30)), 0);
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    until_stored(4000);
    tear_log();
    until_stored(4000); /* the living owner has put the torn batch again */
    lab_close(&lab);
    lab = OPEN();
    cr_expect_eq(lab_stats(&lab).restored, 4000u);
    lab_close(&lab);
}

/* ---- Passwords ---- */

#define CANARY    "canary:of:Thi5-test"
#define CANARY_AS "canary%3Aof%3AThi5-test"

static char shown[65536]; /* all that was logged or said */
static size_t shown_len;

static void show(const char *text)
{
    int n = snprintf(shown + shown_len, sizeof shown - shown_len, "%s\n", text);

    shown_len += n > 0 && (size_t)n < sizeof shown - shown_len ? (size_t)n : 0;
}

static void show_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    show(text);
}

static void show_file(const char *path)
{
    char text[16384];
    int fd = open(path, O_RDONLY);

    cr_assert_geq(fd, 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    text[n > 0 ? n : 0] = '\0';
    show(text);
}

static int try_url(const char *format, const char *password)
{
    char url[512];
    due_error error = { "", "" };
    due_options o = { DUE_OPTIONS_INIT, .on_log = show_log, .open_timeout_ns = DUE_S(1) };
    due_queue *q;

    snprintf(url, sizeof url, format, password, server.socket);
    int rc = due_redis_open(&o.store, url, NULL, &error);
    if (rc == 0)
        rc = due_open(&q, &o, &error);
    if (rc != 0) {
        due_redis_free(o.store);
    } else {
        redis_server_kill(&server); /* it logs what happens to it */
        due_spec spec = { DUE_SPEC_INIT };
        cr_assert_eq(redis_server_run(&server), 0);
        cr_expect_eq(due_enqueue(q, &spec, 0, NULL), 0);
        cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)), 0);
        cr_expect_eq(due_free(q), 0);
    }
    show(due_error_name(rc));
    show(error.text);
    show(error.hint);
    return rc;
}

static void serve_guarded(void)
{
    serve((const char *const[]){ "--requirepass", CANARY, NULL });
}

#define GUARDED_TEST(suite, name) \
    Test(suite, name, .init = serve_guarded, .fini = stop, .timeout = 100)

GUARDED_TEST(stored_server, a_password_is_never_shown)
{
    char path[160];
    int out = dup(STDOUT_FILENO);
    int err = dup(STDERR_FILENO);

    snprintf(path, sizeof path, "%s/printed", server.dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    fflush(NULL);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    int right = try_url("unix://:%s@%s", CANARY_AS);
    int wrong = try_url("unix://:%s-wrong@%s", CANARY_AS);
    int user = try_url("unix://nobody:%s@%s", CANARY_AS);
    int away = try_url("redis://:%s@127.0.0.1:1", CANARY_AS);
    int bad = try_url("redis://:%s@[::1:%s", CANARY_AS);
    int odd = try_url("redis://:%s%%@host%s", CANARY_AS);
    show_file("/proc/self/cmdline");
    show_file("/proc/self/comm");
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    show_file(path);
    close(fd);
    cr_expect_eq(right, 0, "%s", shown);
    cr_expect_eq(wrong, DUE_EACCES);
    cr_expect_eq(user, DUE_EACCES);
    cr_expect_eq(away, DUE_ESTORE);
    cr_expect_eq(bad, DUE_EINVAL);
    cr_expect_eq(odd, DUE_EINVAL);
    cr_expect_gt(shown_len, 200u);
    cr_expect_null(strstr(shown, "canary"), "%s", shown);
    cr_expect_null(strstr(shown, "Thi5"), "%s", shown);
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
