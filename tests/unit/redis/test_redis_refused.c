/* A server that answers and refuses to write: it is told as what it is, and not flooded. */
#include "lab/redis/redis_store_lab.h"

#include <sys/stat.h>

static struct {
    unsigned gone;
    unsigned back;
    char reason[256];
} said;

static void count_lines(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    if (strstr(text, "cannot be used") != NULL) {
        said.gone++;
        snprintf(said.reason, sizeof said.reason, "%s", text);
    }
    said.back += strstr(text, "can be used again") != NULL;
}

static due_store *opened_and_heard(void)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = count_lines };

    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    return store;
}

/* A batch of @bytes for a second; with pauses of 5 ms it would be sent a hundred times.  Then the
 * server takes writes again. */
static void not_flooded(const char *const *refuse, const char *const *accept, const char *reason)
{
    const size_t bytes = (size_t)1 << 20;
    due_store *store = opened_and_heard();
    due_change large = put(1, 5000);
    char *payload = calloc(1, bytes);

    cr_assert_not_null(payload);
    large.record.data = payload;
    large.record.len = bytes;
    memset(&said, 0, sizeof said);
    ask(refuse);
    struct due_store_stats before = stats_of(store);
    int64_t end_ns = soon(DUE_S(1));
    while (due__mono_ns() < end_ns) {
        int rc = store->verbs->commit(store, &large, 1, 1, soon(DUE_MS(100)));
        cr_expect(rc == DUE_EAGAIN || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
        int64_t held;
        (void)store->verbs->ready(store, soon(DUE_MS(1)));
        (void)store->verbs->renew(store, &held, soon(DUE_MS(1)));
    }
    struct due_store_stats after = stats_of(store);
    cr_expect_leq(after.connects - before.connects, 15u, "%d",
                  (int)(after.connects - before.connects));
    cr_expect_leq(after.bytes_out - before.bytes_out, 16 * bytes);
    cr_expect_eq(said.gone, 1u);
    cr_expect_eq(said.back, 0u);
    cr_expect_not_null(strstr(said.reason, reason), "%s", said.reason);
    ask(accept);
    int rc = DUE_EAGAIN;
    while (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
        rc = store->verbs->commit(store, &large, 1, 1, soon(LONG_NS));
    cr_expect_eq(rc, 0);
    cr_expect_eq(commit_one(store, put(2, 5000), 2), 0);
    cr_expect_eq(said.gone, 1u);
    cr_expect_eq(said.back, 1u);
    free(payload);
    finish(store);
}

REDIS_TEST(redis_refused, a_server_that_only_reads_is_not_flooded)
{
    not_flooded((const char *const[]){ "REPLICAOF", "127.0.0.1", "1", NULL },
                (const char *const[]){ "REPLICAOF", "NO", "ONE", NULL }, "read-only");
}

REDIS_TEST(redis_refused, a_server_that_lacks_replicas_is_not_flooded)
{
    not_flooded((const char *const[]){ "CONFIG", "SET", "min-replicas-to-write", "1", NULL },
                (const char *const[]){ "CONFIG", "SET", "min-replicas-to-write", "0", NULL },
                "replicas");
}

/* A snapshot cannot take the place of a directory, and a server that could not save one refuses to
 * write. */
static void break_its_disk(char dir[128])
{
    snprintf(dir, 128, "%s/dump.rdb", server.dir);
    cr_assert_eq(mkdir(dir, 0700), 0);
    ASK("CONFIG", "SET", "save", "3600 1");
    ASK("BGSAVE");
    while (strstr(ASK("INFO", "persistence"), "rdb_last_bgsave_status:err") == NULL)
        usleep(2000);
}

static void remove_dir(const char *dir)
{
    cr_expect_eq(rmdir(dir), 0);
}

REDIS_TEST(redis_refused, a_server_whose_disk_fails_is_not_flooded)
{
    char dir[128];

    break_its_disk(dir);
    ASK("CONFIG", "SET", "save", "");
    not_flooded((const char *const[]){ "CONFIG", "SET", "save", "3600 1", NULL },
                (const char *const[]){ "CONFIG", "SET", "save", "", NULL }, "MISCONF");
    remove_dir(dir);
}

/* Connected anew, and not answered yet: that it refused to write is what counts. */
REDIS_TEST(redis_refused, what_was_refused_stays_the_reason_until_there_is_another)
{
    due_store *store = opened_and_heard();
    due_change job = put(1, 5000);
    char dir[128];

    break_its_disk(dir);
    cr_expect_neq(store->verbs->commit(store, &job, 1, 1, soon(DUE_MS(20))), 0);
    redis_server_freeze(&server);
    cr_expect_neq(store->verbs->commit(store, &job, 1, 1, soon(DUE_MS(200))), 0);
    const char *trouble = due__link_trouble(((struct due__redis *)store)->link);
    cr_expect_not_null(strstr(trouble, "MISCONF"), "%s", trouble);
    redis_server_thaw(&server);
    remove_dir(dir);
    finish(store);
}

/* Job @number is refused three times, which is told once. */
static void refused_and_told(due_store *store, uint64_t number, const char *reason)
{
    memset(&said, 0, sizeof said);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(commit_one(store, put(number, 5000), number), DUE_EACCES);
    cr_expect_eq(said.gone, 1u);
    cr_expect_not_null(strstr(said.reason, reason), "%s", said.reason);
    cr_expect_eq(said.back, 0u);
}

static void accepted_and_told(due_store *store, uint64_t number)
{
    int rc = commit_one(store, put(number, 5000), number);

    while (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
        rc = commit_one(store, put(number, 5000), number);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(commit_one(store, put(number + 1, 5000), number + 1), 0);
    cr_expect_eq(said.gone, 1u);
    cr_expect_eq(said.back, 1u);
}

REDIS_TEST(redis_refused, a_command_that_is_forbidden_meanwhile_is_told_once)
{
    due_store *store = opened_and_heard();

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    ASK("ACL", "SETUSER", "default", "-hset");
    refused_and_told(store, 2, "refuses the user the command hset");
    ASK("ACL", "SETUSER", "default", "+hset");
    accepted_and_told(store, 2);
    finish(store);
}

static void serve_and_save(void)
{
    serve((const char *const[]){ "--save", "3600 1", NULL });
}

/* Started once more, with what it has saved. */
static void restart_with(const char *option, const char *name, const char *other)
{
    const char *const words[] = { option, name, other };

    redis_server_halt(&server);
    server.n_options = 2;
    for (size_t i = 0; i < 3 && option != NULL; i++)
        snprintf(server.options[server.n_options++], sizeof server.options[0], "%s", words[i]);
    cr_assert_eq(redis_server_run(&server), 0);
}

Test(redis_refused, a_command_that_is_renamed_meanwhile_is_told_once, .init = serve_and_save,
     .fini = stop, .timeout = 60)
{
    due_store *store = opened_and_heard();

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    restart_with("--rename-command", "HSET", "SECRET");
    store->verbs->ready(store, soon(LONG_NS)); /* connected anew */
    refused_and_told(store, 2, "does not know the command HSET");
    restart_with(NULL, NULL, NULL);
    accepted_and_told(store, 2);
    finish(store);
}

/* ---- At open --------------------------------------------------------------------------------- */

static void opening_says(const char *url, int rc, const char *text, const char *hint)
{
    due_store *store = make((due_redis_options){ 0 }, url);

    cr_expect_eq(take(store, DUE_MS(100), &info, &error), rc, "%s", error.text);
    cr_expect_not_null(strstr(error.text, text), "%s", error.text);
    cr_expect_not_null(strstr(error.hint, hint), "%s", error.hint);
    due_redis_free(store);
}

/* Who waits for less than a second is answered then, and the log hears nothing of it. */
REDIS_TEST(redis_refused, opening_waits_for_a_server_no_longer_than_it_was_told)
{
    char url[160];

    snprintf(url, sizeof url, "unix://%s/nobody", server.dir);
    logged[0] = '\0';
    opening_says(url, DUE_ESTORE, "cannot be reached", "is the server there");
    cr_expect_str_empty(logged, "it was said: %s", logged);
}

/* Once for all the calls that an opening may take. */
REDIS_TEST(redis_refused, opening_says_once_that_it_waits_for_a_server)
{
    char url[160];

    snprintf(url, sizeof url, "unix://%s/nobody", server.dir);
    due_store *store = make((due_redis_options){ 0 }, url);
    inside(store)->awaits_server = true; /* it has said so */
    logged[0] = '\0';
    cr_expect_eq(take(store, DUE_MS(1050), &info, &error), DUE_ESTORE);
    cr_expect_str_empty(logged, "it was said: %s", logged);
    due_redis_free(store);
}

REDIS_TEST(redis_refused, opening_says_that_it_is_a_replica)
{
    ASK("REPLICAOF", "127.0.0.1", "1");
    opening_says(NULL, DUE_ESTORE, "read-only", "primary");
}

REDIS_TEST(redis_refused, opening_says_that_its_disk_fails)
{
    char dir[128];

    break_its_disk(dir);
    opening_says(NULL, DUE_ESTORE, "MISCONF", "disk");
    remove_dir(dir);
}

REDIS_TEST(redis_refused, opening_names_the_command_that_the_user_must_not_say)
{
    char url[256];

    ASK("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-hlen");
    snprintf(url, sizeof url, "unix://u:p@%s", server.socket);
    opening_says(url, DUE_EACCES, "the command hlen", "allowed");
}

static void serve_without_hlen(void)
{
    serve((const char *const[]){ "--rename-command", "HLEN", "SECRET", NULL });
}

Test(redis_refused, opening_names_the_command_that_was_renamed, .init = serve_without_hlen,
     .fini = stop, .timeout = 60)
{
    opening_says(NULL, DUE_EACCES, "does not know the command HLEN", "renamed");
}
