/* An owner whose process has ended but is still listed, and a server that takes writes again: what
 * they are taken for.
 */
#include "lab/redis/redis_store_lab.h"

/* A process that has ended and whose parent has not looked is gone. */
Test(redis_gone, is_an_owner_when_only_its_parent_has_not_looked, .timeout = 60)
{
    char text[DUE__REDIS_OWNER] = "";
    siginfo_t ended;
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char own[DUE__REDIS_OWNER] = "";
        int rc = due__owner_write(own);
        _exit(rc != 0 || write(ends[1], own, sizeof own) != (ssize_t)sizeof own);
    }
    cr_assert_eq(read(ends[0], text, sizeof text), (ssize_t)sizeof text);
    cr_assert_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    cr_expect_eq(due__owner_life(text), DUE__OWNER_DEAD);
    cr_expect_eq(waitpid(child, NULL, 0), child);
    cr_expect_eq(due__owner_life(text), DUE__OWNER_DEAD);
    close(ends[0]);
    close(ends[1]);
}

static struct {
    unsigned gone;
    unsigned back;
} said;

static void count_lines(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    said.gone += strstr(text, "cannot be used") != NULL;
    said.back += strstr(text, "can be used again") != NULL;
}

/* With nothing to write it is the renewal of the lease that shows it. */
Test(redis_gone, is_no_server_that_takes_a_renewal, .init = serve_plainly, .fini = stop,
     .timeout = 60)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = count_lines };
    int64_t end_ns = soon(LONG_NS);
    int64_t held;

    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    ASK("REPLICAOF", "127.0.0.1", "1");
    while (said.gone == 0 && due__mono_ns() < end_ns)
        (void)store->verbs->renew(store, &held, soon(DUE_MS(20)));
    cr_expect_eq(said.gone, 1u);
    ASK("REPLICAOF", "NO", "ONE");
    while (store->verbs->renew(store, &held, soon(DUE_MS(50))) != 0 && due__mono_ns() < end_ns)
        ;
    cr_expect_eq(said.back, 1u);
    finish(store);
}
