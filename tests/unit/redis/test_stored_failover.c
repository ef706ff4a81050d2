/* A queue stored in Redis whose server fails over: the primary is killed, its replica takes its
 * place, and clients are led there.
 */
#ifdef DUE_HAVE_REDIS

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/fault_proxy.h"
#include "lab/redis/redis_replica.h"
#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

#define JOBS     40
#define PATIENCE DUE_S(20) /* with a replica that the machine does not let run */

static struct redis_server replica;
static struct redis_server second; /* follows the replica once that is the primary */
static struct fault_proxy *proxy;  /* what clients connect to */
static char url[160];

static void serve_pair(void)
{
    char path[112];
    int rc = redis_primary_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip("redis-server is not installed");
    cr_assert_eq(rc, 0);
    cr_assert_eq(redis_replica_start(&replica, &server, NULL), 0);
    snprintf(path, sizeof path, "%s/proxy", server.dir);
    snprintf(url, sizeof url, "unix://%s", path);
    proxy = fault_proxy_start(path, server.socket);
    cr_assert_not_null(proxy);
}

static void stop_pair(void)
{
    fault_proxy_stop(proxy);
    redis_server_stop(&second);
    redis_server_stop(&replica);
    redis_server_stop(&server);
}

#define FAILOVER_TEST(suite, name) \
    Test(suite, name, .init = serve_pair, .fini = stop_pair, .timeout = 100)

/* The primary is gone, and all clients with it. */
static void fail_over(void)
{
    redis_server_kill(&server);
    cr_assert_eq(redis_replica_promote(&replica), 0);
    cr_assert(fault_proxy_move(proxy, replica.socket));
    fault_proxy_cut(proxy);
}

/* Entries of a hash of the queue, as this server has it. */
static long entries(const struct redis_server *s, const char *key)
{
    char answer[64];

    cr_assert_gt(
        redis_server_ask(s, (const char *const[]){ "HLEN", key, NULL }, answer, sizeof answer), 0);
    cr_assert_eq(answer[0], ':', "%s", answer);
    return strtol(answer + 1, NULL, 10);
}

static struct lab open_living(struct lines *lines, int wait_replicas)
{
    struct lab_options o = { .with.on_log = count_lines,
                             .with.on_discard = forget,
                             .with.ctx = lines };
    due_redis_options r = { .lease_ns = DUE_MS(600),
                            .wait_replicas = wait_replicas,
                            .wait_replicas_ns = PATIENCE };

    o.with.store = store_at(url, r);
    return open_with(o, r);
}

/* ---- The program dies with the primary ---- */

/* Of its jobs it takes ten for good, acks five, gives five back and buries five; it is told of each
 * that a replica has it. */
static void owner_that_is_told(void)
{
    due_options o = { DUE_OPTIONS_INIT };
    due_spec spec = { DUE_SPEC_INIT, .data = "job", .len = 3, .at_ns = 1 };
    due_queue *q;
    due_job job;

    o.store = store_at(url, (due_redis_options){ .lease_ns = DUE_S(3600),
                                                 .wait_replicas = 1,
                                                 .wait_replicas_ns = PATIENCE });
    if (due_open(&q, &o, NULL) != 0)
        _exit(1);
    for (unsigned i = 0; i < JOBS; i++)
        if (due_enqueue(q, &spec, 0, NULL) != 0)
            _exit(2);
    for (unsigned i = 0; i < 10; i++)
        if (due_dequeue(q, &job, DUE_S(5)) != 0)
            _exit(3);
    for (unsigned i = 0; i < 15; i++) {
        if (take_leased(q, &job, DUE_S(60), 0) != 0)
            _exit(4);
        if ((i < 5    ? due_ack(&job)
             : i < 10 ? due_nack(&job, DUE_S(3600))
                      : due_bury(&job, "why")) != 0)
            _exit(5);
    }
    kill(getpid(), SIGKILL);
}

FAILOVER_TEST(stored_failover, loses_nothing_that_a_replica_confirmed_when_the_program_dies_too)
{
    pid_t pid = fork();
    int status;

    cr_assert_geq(pid, 0);
    if (pid == 0)
        owner_that_is_told();
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status), "it ended with %d", WEXITSTATUS(status));
    fail_over();
    struct lab lab = OPEN(.start_ns = 10, .with.store = store_at(url, (due_redis_options){ 0 }));
    cr_expect_eq(lab_stats(&lab).restored, JOBS - 15u);
    cr_expect_eq(lab_stats(&lab).dead, 5u);
    for (unsigned i = 0; i < JOBS - 25; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_null(lab_dequeue(&lab), "what was given back waits for an hour");
    cr_expect_eq(entries(&replica, "due:{queue}:j"), 10);
    lab_close(&lab);
}

/* ---- The program lives ---- */

/* All of it was confirmed, so nothing is missing there. */
FAILOVER_TEST(stored_failover, is_nothing_to_an_owner_whose_replica_had_everything)
{
    struct lines lines = { 0 };
    struct lab lab = open_living(&lines, 1);
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1);
    lab_turn_to(&lab, 10);
    int rc = take_leased(lab.q, &job, DUE_S(60), 0);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(entries(&replica, "due:{queue}:j"), JOBS);
    cr_assert_eq(redis_replica_start(&second, &replica, NULL), 0);
    fail_over();
    cr_expect_eq(due_ack(&job), 0);
    lab_enqueue(&lab, "more", .at_ns = 2);
    cr_expect_eq(entries(&replica, "due:{queue}:j"), JOBS);
    cr_expect_eq(entries(&second, "due:{queue}:j"), JOBS, "it was waited for");
    for (int i = 1; i < JOBS; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_str_eq(lab_dequeue(&lab), "more");
    cr_expect_eq(entries(&second, "due:{queue}:j"), 0);
    cr_expect_eq(atomic_load(&lines.lost), 0u);
    lab_close(&lab);
}

/* A replica that was not waited for lacks the last jobs, and has those still that have gone. */
FAILOVER_TEST(stored_failover, makes_a_living_owner_write_what_the_replica_lacks)
{
    struct lines lines = { 0 };
    struct lab lab = open_living(&lines, 0);

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1);
    lab_turn_to(&lab, 10);
    for (int i = 0; i < 4000 && entries(&replica, "due:{queue}:j") < JOBS; i++)
        crew_sleep(DUE_MS(5));
    cr_assert_eq(redis_replica_promote(&replica), 0); /* it does not hear what comes now */
    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
    for (int i = 0; i < 7; i++)
        lab_enqueue(&lab, "more", .at_ns = 2);
    fail_over();
    while (atomic_load(&lines.whole) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(atomic_load(&lines.lost), 1u);
    cr_expect_eq(entries(&replica, "due:{queue}:j"), JOBS - 5 + 7);
    lab_close(&lab);
    lab = OPEN(.start_ns = 10, .with.store = store_at(url, (due_redis_options){ 0 }));
    cr_expect_eq(lab_stats(&lab).restored, JOBS - 5 + 7u);
    for (int i = 5; i < JOBS; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
    for (int i = 0; i < 7; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "more");
    lab_close(&lab);
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
