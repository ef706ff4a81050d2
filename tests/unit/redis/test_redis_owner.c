/* test_redis_owner.c - who owns a stored queue, and what a server loses.
 *
 * This program stands between the library and the system: its own readlink(), open() and access()
 * fail on demand.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "lab/redis/redis_proxy_lab.h"
#include "redis/owner/owner.h"

static bool no_links;
static size_t link_length; /* of a name that is none; 0: it is what it is */

ssize_t readlink(const char *path, char *text, size_t room)
{
    if (link_length > 0) {
        memset(text, 'x', link_length < room ? link_length : room);
        return (ssize_t)link_length;
    }
    if (!no_links)
        return (ssize_t)syscall(SYS_readlinkat, AT_FDCWD, path, text, room);
    errno = EACCES;
    return -1;
}

static bool no_files;  /* of a process may be opened, */
static bool no_access; /* or seen */

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    if (!no_files || strstr(path, "/stat") == NULL)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    errno = EACCES;
    return -1;
}

__attribute__((visibility("default"))) int access(const char *path, int how)
{
    if (!no_access || strstr(path, "/stat") == NULL)
        return (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
    errno = ENOENT;
    return -1;
}

/* ---- Owners ---------------------------------------------------------------------------------- */

REDIS_TEST(redis_owner, is_named_while_it_lives)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_store *other = make((due_redis_options){ 0 }, NULL);
    char who[64];

    snprintf(who, sizeof who, "process %d on host ", (int)getpid());
    cr_expect_eq(take(other, DUE_MS(50), &info, &error), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, who), "%s", error.text);
    finish(store);
    cr_expect_eq(take(other, DUE_MS(50), &info, &error), 0, "%s", error.text);
    finish(other);
}

REDIS_TEST(redis_owner, is_replaced_at_once_if_it_was_killed)
{
    pid_t child = fork();

    if (child == 0) {
        due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
        cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    due_store *store = opened((due_redis_options){ 0 });
    cr_expect_eq(info.jobs, 1u);
    finish(store);
}

/* Who we are, but that the part number @at of the text is @other. */
static const char *owner_with(int at, const char *other)
{
    static char text[DUE__REDIS_OWNER];
    char own[DUE__REDIS_OWNER];
    size_t len = 0;

    cr_assert_eq(due__owner_write(own), 0);
    for (char *part = strtok(own, " "); part != NULL; part = strtok(NULL, " "), at--)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? " " : "",
                                at == 0 ? other : part);
    return text;
}

enum { VERSION, HOST, BOOT, NAMESPACE, PROCESS, START, NO_PART };

/* A number of a process is used again: it is the time of its start that tells them apart. */
Test(redis_owner, is_gone_when_its_number_is_another_processs)
{
    cr_expect_eq(due__owner_life(owner_with(NO_PART, "")), DUE__OWNER_LIVES);
    cr_expect_eq(due__owner_life(owner_with(START, "1")), DUE__OWNER_DEAD);
    cr_expect_eq(due__owner_life(owner_with(PROCESS, "99999999")), DUE__OWNER_DEAD);
    cr_expect_eq(due__owner_life(owner_with(BOOT, "-")), DUE__OWNER_UNKNOWN);
    cr_expect_eq(due__owner_life(owner_with(NAMESPACE, "pid:[1]")), DUE__OWNER_UNKNOWN);
    cr_expect_eq(due__owner_life(owner_with(HOST, "another")), DUE__OWNER_LIVES);
}

/* Two containers that see no /proc may well have processes of the same number. */
Test(redis_owner, is_not_known_where_namespaces_are_not)
{
    char text[DUE__REDIS_OWNER];

    no_links = true;
    cr_assert_eq(due__owner_write(text), 0);
    cr_expect_eq(due__owner_life(text), DUE__OWNER_UNKNOWN, "%s", text);
    no_links = false;
}

/* It is written down whole, or not at all. */
Test(redis_owner, is_not_known_where_the_name_of_a_namespace_is_too_long)
{
    char text[DUE__REDIS_OWNER];

    for (link_length = 31; link_length <= 32; link_length++) {
        cr_assert_eq(due__owner_write(text), 0);
        cr_expect_eq(strstr(text, " xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ") != NULL, link_length == 31);
        cr_expect_eq(due__owner_life(text),
                     link_length == 31 ? DUE__OWNER_LIVES : DUE__OWNER_UNKNOWN, "%s", text);
    }
    link_length = 0;
}

/* Where a process can be seen and not be looked at, nobody knows whether it is another one; nor
 * where nothing can be seen at all. */
Test(redis_owner, is_not_known_where_processes_are_not)
{
    const char *own = owner_with(NO_PART, "");
    char written[DUE__REDIS_OWNER];

    no_files = true;
    cr_expect_eq(due__owner_life(own), DUE__OWNER_UNKNOWN);
    cr_assert_eq(due__owner_write(written), 0);
    no_access = true;
    cr_expect_eq(due__owner_life(own), DUE__OWNER_UNKNOWN);
    no_files = no_access = false;
    cr_expect_eq(due__owner_life(own), DUE__OWNER_LIVES);
    cr_expect_eq(due__owner_life(written), DUE__OWNER_UNKNOWN, "%s", written);
}

static const char *shown_of(const char *text)
{
    static char shown[80];

    due__owner_show(text, shown, sizeof shown);
    return shown;
}

/* The first process of a container is one. */
Test(redis_owner, is_a_process_of_a_host_and_nothing_else)
{
    static const char *const wrong[] = { "",
                                         "2 h boot ns 12 34",
                                         "1 h boot ns 0 34",
                                         "1 h boot ns -1 34",
                                         "1 h boot ns 12",
                                         "1 h boot ns 12 34 5",
                                         "1 h boot ns x 34" };

    cr_expect_str_eq(shown_of("1 h boot ns 1 34"), "process 1 on host h");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_str_eq(shown_of(wrong[i]), "an owner of an unknown kind", "%s", wrong[i]);
        cr_expect_eq(due__owner_life(wrong[i]), DUE__OWNER_UNKNOWN, "%s", wrong[i]);
    }
}

REDIS_TEST(redis_owner, is_replaced_at_once_if_its_number_is_another_processs)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
    due_store *other = make((due_redis_options){ 0 }, NULL);

    ASK("SET", "due:{q}:owner", owner_with(NO_PART, ""));
    cr_expect_eq(take(other, DUE_MS(50), &info, &error), DUE_EBUSY, "%s", error.text);
    ASK("SET", "due:{q}:owner", owner_with(START, "1"));
    cr_expect_eq(take(other, LONG_NS, &info, &error), 0, "%s", error.text);
    finish(other);
    due_redis_free(store);
}

REDIS_TEST(redis_owner, is_waited_for_by_a_standby)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(300) });
    due_store *other = make((due_redis_options){ .standby = 1, .lease_ns = DUE_MS(300) }, NULL);

    cr_expect_eq(take(other, 0, &info, &error), 0, "%s", error.text);
    finish(other);
    due_redis_free(store);
}

static int see_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct seen *seen = ctx;

    (void)key, (void)len, (void)id, (void)until_ns;
    seen->n++;
    return 0;
}

REDIS_TEST(redis_owner, that_was_replaced_is_fenced_everywhere)
{
    struct seen seen = { 0 };
    int64_t held;

    for (int verb = 0; verb < 6; verb++) {
        due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(100) });
        cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
        nap(DUE_MS(150));
        due_store *other = opened((due_redis_options){ 0 });
        int rc = verb == 0   ? commit_one(store, put(2, 5), 2)
                 : verb == 1 ? store->verbs->renew(store, &held, soon(LONG_NS))
                 : verb == 2 ? store->verbs->load(store, 1, 9, see, &seen, soon(LONG_NS))
                 : verb == 3 ? store->verbs->keys(store, 1, 9, see_key, &seen, soon(LONG_NS))
                 : verb == 4 ? store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS))
                             : store->verbs->ready(store, soon(LONG_NS));
        cr_expect_eq(rc, DUE_EFENCED, "%d: %d", verb, rc);
        cr_expect_eq(commit_one(store, put(2, 5), 2), DUE_EFENCED);
        cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_EFENCED);
        cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_EFENCED);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
        finish(store);
        cr_assert_eq(commit_one(other, drop(1, 5), 1), 0);
        info.writer--; /* the job is the first one's */
        finish(other);
        ASK("FLUSHALL");
    }
    cr_expect_eq(seen.n, 0u, "what another one owns now is not shown");
}

/* While by its own clock its lease still runs: the key that it renews is another one's. */
REDIS_TEST(redis_owner, that_was_replaced_within_its_lease_hears_it_when_it_renews)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
    int64_t held = 0;

    ASK("DEL", "due:{q}:owner");
    due_store *other = opened((due_redis_options){ 0 });
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_EFENCED);
    cr_expect_eq(held, 0);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_EFENCED);
    finish(store);
    finish(other);
}

REDIS_TEST(redis_owner, renews_its_lease_and_gets_it_back)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(200) });
    int64_t held = 0;

    for (int i = 0; i < 6; i++) {
        cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
        cr_expect_gt(held, due__boot_ns() - DUE_S(1));
        nap(DUE_MS(60));
    }
    nap(DUE_MS(250));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":0\r\n");
    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n");
    cr_expect_eq(commit_one(store, put(1, 1), 1), 0);
    finish(store);
}

/* Its last call had ended, with an answer still to come, when it was interrupted. */
REDIS_TEST(redis_owner, that_closes_gives_up_its_lease_although_it_was_interrupted)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
    int64_t held;

    redis_server_freeze(&server);
    cr_assert_eq(store->verbs->renew(store, &held, soon(DUE_MS(1))), DUE_EAGAIN);
    redis_server_thaw(&server);
    store->verbs->interrupt(store);
    cr_expect_eq(store->verbs->close(store, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":0\r\n");
    due_redis_free(store);
}

/* Two takeovers under one number, after a failover: the nonce tells them apart. */
REDIS_TEST(redis_owner, is_told_from_another_of_the_same_number)
{
    due_store *store = opened((due_redis_options){ 0 });
    char fence[64];

    snprintf(fence, sizeof fence, "%llu:0123456789abcdef", (unsigned long long)info.writer);
    ASK("SET", "due:{q}:fence", fence);
    cr_expect_eq(commit_one(store, put(1, 1), 1), DUE_EFENCED);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j"), ":0\r\n");
    finish(store);
}

/* An owner whose lease has ended, while it comes back: the first command @name has not reached the
 * server, and the call that waited for it has returned. */
static due_store *caught_at(const char *name)
{
    struct fault_cell cell = {
        .command = 1, .name = name, .where = FAULT_BEFORE, .what = FAULT_STALL
    };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    int64_t held;

    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    ASK("DEL", "due:{q}:owner");
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(store->verbs->renew(store, &held, soon(DUE_MS(300))), DUE_EAGAIN);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    return store;
}

/* Another one takes over between our look and our claim, or before the look itself, and we want
 * something else before we have heard of it: what came of them is no guard. */
REDIS_PROXY_TEST(redis_owner, that_was_replaced_while_it_came_back_is_fenced)
{
    static const char *const at[] = { "UNWATCH", "EXEC" };

    for (int i = 0; i < 2; i++) {
        due_store *store = caught_at(at[i]);
        due_store *other = opened((due_redis_options){ 0 });
        fault_proxy_go_on(proxy);
        cr_expect_eq(commit_one(store, put(2, 5), 2), DUE_EFENCED, "%s", at[i]);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n", "%s", at[i]);
        finish(store);
        finish(other);
        ASK("FLUSHALL");
    }
}

/* It goes on where it was, over as many calls as that takes. */
REDIS_PROXY_TEST(redis_owner, comes_back_also_if_no_call_has_time_enough)
{
    static const char *const at[] = { "UNWATCH", "EXEC" };
    int64_t held = 0;

    for (int i = 0; i < 2; i++) {
        due_store *store = caught_at(at[i]);
        fault_proxy_go_on(proxy);
        cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0, "%s", at[i]);
        cr_expect_eq(commit_one(store, put(2, 5), 2), 0, "%s", at[i]);
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n", "%s", at[i]);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* The server is full, and says so when the claim is to be carried out: it took the commands.  What
 * a script asks it lets through. */
REDIS_PROXY_TEST(redis_owner, comes_back_to_a_server_that_has_become_full)
{
    struct fault_cell full = { .command = 1,
                               .name = "EXEC",
                               .where = FAULT_SENT,
                               .what = FAULT_REPLACE,
                               .text = "-EXECABORT Transaction discarded because of: OOM command "
                                       "not allowed when used memory > 'maxmemory'." };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    int64_t held;

    ASK("DEL", "due:{q}:owner");
    fault_proxy_plan(proxy, &full, 1);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n");
    cr_expect_eq(commit_one(store, put(1, 5), 1), 0);
    finish(store);
}

/* A log may be torn: all is read, put again, and read again, before what the server has is sure.
 * Then it is, and the second reading is over with that. */
REDIS_TEST(redis_owner, is_sure_of_what_is_stored_when_all_was_read_twice)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);

    s->unsure = true;
    s->read_once = false;
    ASK("HSET", "due:{q}:meta", "server", "?");
    cr_expect_eq(due__redis_all_read(s, soon(LONG_NS)), 0);
    cr_expect(s->unsure);
    cr_expect_str_eq(due__redis_server(s), "?");
    cr_expect_eq(due__redis_all_read(s, soon(LONG_NS)), 0);
    cr_expect_not(s->unsure);
    cr_expect_str_neq(due__redis_server(s), "?");
    cr_expect_null(strstr(ASK("HGET", "due:{q}:meta", "server"), "?"));
    finish(store);
}

/* Only after a start of the server that the last owner did not see, and where anything is kept
 * over that. */
Test(redis_owner, is_unsure_of_a_log_that_a_start_may_have_cut)
{
    static const struct {
        const char *was, *is; /* the start of the server, then and now */
        enum due_durability durability;
        bool unsure;
    } cases[] = { { "one", "one", DUE_DURABLE_ALWAYS, false },
                  { "one", "two", DUE_DURABLE_ALWAYS, true },
                  { "one", "two", DUE_DURABLE_EVERYSEC, true },
                  { "one", "two", DUE_DURABLE_NONE, false },
                  { "one", "", DUE_DURABLE_ALWAYS, true },  /* it does not tell */
                  { "", "two", DUE_DURABLE_ALWAYS, false }, /* it was closed */
                  { "?", "two", DUE_DURABLE_ALWAYS, true } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int before = 0; before < 2; before++) {
            struct due__redis s = { .durability = cases[i].durability, .unsure = before != 0 };
            struct due__redis_survey was = { .meta = true };
            bool unsure = cases[i].unsure || before != 0;

            snprintf(s.server, sizeof s.server, "%s", cases[i].is);
            snprintf(was.server, sizeof was.server, "%s", cases[i].was);
            due__redis_suspect(&s, &was);
            cr_expect_eq(s.unsure, unsure, "%zu", i);
            cr_expect(s.lossy == unsure && s.has_entries == unsure && s.has_dead == unsure);
            cr_expect_str_eq(due__redis_server(&s),
                             unsure || cases[i].is[0] == '\0' ? "?" : cases[i].is);
        }
    }
}

/* ---- What a server loses --------------------------------------------------------------------- */

REDIS_TEST(redis_loss, of_everything_is_said_once)
{
    due_store *store = opened((due_redis_options){ 0 });

    fill(store, 10, 1000, 1000, 1);
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(commit_one(store, put(11, 1), 2), DUE_EAGAIN);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_eq(commit_one(store, put(11, 1), 2), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:topics"), ":1\r\n");
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner", "due:{q}:fence", "due:{q}:meta"), ":3\r\n");
    ASK("FLUSHALL");
    cr_expect_eq(commit_one(store, put(12, 1), 3), DUE_EAGAIN);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(commit_one(store, put(12, 1), 3), 0);
    finish(store);
}

REDIS_TEST(redis_loss, of_the_last_batches_is_seen)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(store, put(1, 1), 1), 0);
    ASK("SAVE");
    cr_assert_eq(commit_one(store, put(2, 1), 2), 0);
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_eq(commit_one(store, put(2, 1), 3), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    finish(store);
}

REDIS_TEST(redis_loss, is_told_from_a_takeover_in_an_older_copy)
{
    due_store *first = opened((due_redis_options){ .lease_ns = DUE_MS(400) });

    cr_assert_eq(commit_one(first, put(1, 1), 1), 0);
    ASK("SAVE");
    finish(first);
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(400) });
    cr_assert_eq(commit_one(store, put(2, 1), 1), 0);
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(commit_one(store, put(2, 1), 2), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    finish(store);
}

REDIS_TEST(redis_loss, does_not_hide_who_took_over_the_emptied_server)
{
    due_store *store = opened((due_redis_options){ 0 });

    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    due_store *other = opened((due_redis_options){ 0 });
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_EFENCED);
    cr_expect_eq(commit_one(other, put(1, 1), 1), 0);
    finish(store);
    finish(other);
}

/* Everything goes while an owner comes back whose lease had ended. */
REDIS_PROXY_TEST(redis_loss, is_seen_also_by_who_comes_back)
{
    due_store *store = caught_at("UNWATCH");
    int64_t held;

    ASK("FLUSHALL");
    fault_proxy_go_on(proxy);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    finish(store);
}

/* Somebody else may have written it: it is shown to people. */
Test(redis_owner, is_named_by_its_host_and_pid)
{
    char text[DUE__REDIS_OWNER];
    char host[64];
    char here[64] = "";
    int64_t pid = 0;

    cr_assert_eq(due__owner_write(text), 0);
    cr_assert_eq(gethostname(here, sizeof here - 1), 0);
    cr_assert(due__owner_name(text, host, sizeof host, &pid));
    cr_expect_eq(pid, getpid());
    cr_expect_str_eq(host, here);
    cr_assert(due__owner_name("1 \033[2Jx boot ns 77 5", host, sizeof host, &pid));
    cr_expect_str_eq(host, "?[2Jx");
    cr_expect_eq(pid, 77);
    cr_assert(due__owner_name("1 a-long-host boot ns 77 5", host, 5, &pid));
    cr_expect_str_eq(host, "a-lo");
    cr_expect_not(due__owner_name("2 shared", host, sizeof host, &pid));
    cr_expect_not(due__owner_name("1 h boot ns 0 5", host, sizeof host, &pid));
    cr_expect_not(due__owner_name("1 h boot ns 77 5 more", host, sizeof host, &pid));
}
