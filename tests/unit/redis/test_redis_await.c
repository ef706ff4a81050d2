/* A queue that somebody else owns, and a server that nobody listens at: what is said while they are
 * waited for, and what is left of it. */
#include "lab/redis/redis_link_lab.h"
#include "lab/redis/redis_store_lab.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lab/crew.h"
#include "redis/owner/owner.h"

/* ---- An owner that stays for a while ---- */

static unsigned told;

static void count_waits(void *queue, enum due_log_level level, const char *text)
{
    (void)queue, (void)level;
    told += strstr(text, "waits for its owner to go") != NULL;
}

#define STAYS ASK("PEXPIRE", "due:{q}:owner", "1500")

/* Its lease is renewed, so that who waits looks several times; then it ends. */
static int stay_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        crew_sleep(DUE_MS(500));
        STAYS;
    }
    return 0;
}

Test(await, says_once_whom_it_waits_for, .init = serve_plainly, .fini = stop, .timeout = 60)
{
    due_store *owner = opened((due_redis_options){ 0 });
    due_store *next = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = count_waits };
    struct crew_thread thread;

    STAYS;
    crew_go(&thread, stay_and_go, NULL);
    cr_expect_eq(next->verbs->open(next, &how, &info, &error), 0, "%s", error.text);
    cr_expect_eq(crew_join(&thread), 0);
    cr_expect_eq(told, 1u);
    due_redis_free(owner);
    finish(next);
}

static int go_early(void *arg)
{
    (void)arg;
    crew_sleep(DUE_MS(300));
    ASK("DEL", "due:{q}:owner");
    return 0;
}

/* However long its lease is: it may be gone by then, unheard. */
Test(await, looks_once_more_before_time_is_up, .init = serve_plainly, .fini = stop, .timeout = 60)
{
    due_store *owner = opened((due_redis_options){ .lease_ns = DUE_S(600) });
    due_store *next = make((due_redis_options){ 0 }, NULL);
    struct crew_thread thread;

    crew_go(&thread, go_early, NULL);
    cr_expect_eq(take(next, DUE_S(4), &info, &error), 0, "%s", error.text);
    cr_expect_eq(crew_join(&thread), 0);
    due_redis_free(owner);
    finish(next);
}

/* ---- A server that is not there ---- */

static unsigned told_of_server;

static void count_servers(void *queue, enum due_log_level level, const char *text)
{
    (void)queue, (void)level;
    told_of_server += strstr(text, "waits for the server at /nowhere/redis.sock") != NULL;
}

/* After a second, and not again by the next connection that takes as long; nor by one that has less
 * time, which is not lengthened for it. */
Test(await, says_once_that_a_server_is_not_there, .timeout = 60)
{
    due_store *store = make((due_redis_options){ 0 }, "unix:///nowhere/redis.sock");
    struct due__redis *s = inside(store);
    bool fresh;

    s->how.log = count_servers;
    cr_expect_eq(due__redis_connect(s, &fresh, soon(DUE_MS(100))), DUE_EAGAIN);
    cr_expect_eq(told_of_server, 0u);
    cr_expect_eq(due__redis_connect(s, &fresh, soon(DUE_S(2))), DUE_EAGAIN);
    cr_expect_eq(told_of_server, 1u);
    cr_expect_eq(due__redis_connect(s, &fresh, soon(DUE_S(2))), DUE_EAGAIN);
    cr_expect_eq(told_of_server, 1u);
    due_redis_free(store);
}

/* Once it was there, it is said anew. */
Test(await, forgets_that_it_waited_when_the_server_is_there, .init = serve_plainly, .fini = stop,
     .timeout = 60)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    bool fresh;

    inside(store)->awaits_server = true;
    cr_expect_eq(due__redis_connect(inside(store), &fresh, soon(LONG_NS)), 0);
    cr_expect(fresh);
    cr_expect_not(inside(store)->awaits_server);
    due_redis_free(store);
}

/* ---- A server that refuses ---- */

static int descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* The port is somebody's, so that nobody else listens there. */
Test(link, leaks_no_descriptor_where_it_is_refused, .timeout = 60)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    char url[64];
    bool fresh;

    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(taken, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(getsockname(taken, (struct sockaddr *)&at, &len), 0);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    struct due__link *l = link_to(url);
    int before = descriptors();
    for (int i = 0; i < 3; i++)
        cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(20))), DUE_EAGAIN);
    cr_expect_str_eq(due__link_trouble(l), "the connection was refused");
    cr_expect_eq(descriptors(), before);
    due__link_free(l);
    close(taken);
}
