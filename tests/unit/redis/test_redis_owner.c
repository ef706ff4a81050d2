/* test_redis_owner.c - who owns a stored queue, and what a server loses.
 *
 * This program stands between the library and the system: its own readlink() fails on demand.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "lab/redis/redis_proxy_lab.h"

static bool no_links;

ssize_t readlink(const char *path, char *text, size_t room)
{
    if (!no_links)
        return (ssize_t)syscall(SYS_readlinkat, AT_FDCWD, path, text, room);
    errno = EACCES;
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
