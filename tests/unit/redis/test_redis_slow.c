/* test_redis_slow.c - a network that is slow, and nothing else: what takes longer than a call may,
 * and longer than an answer may, arrives all the same, in both directions.
 */
#ifdef DUE_HAVE_REDIS

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lab/redis/redis_link_lab.h"
#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"
#include "redis/link/link_inside.h"

/* ---- A link ---------------------------------------------------------------------------------- */

#define LARGE ((size_t)6 << 20)

/* Hears one command of LARGE bytes and some, half of it late; then answers. */
static void serve_slow_reader(struct fake *fake, int fd, int nth)
{
    static char bytes[64 << 10];
    size_t got = 0;

    (void)nth;
    if (!fake_greet(fake, fd, 2))
        return;
    while (got < LARGE) {
        ssize_t n = read(fd, bytes, sizeof bytes);

        if (n <= 0)
            return;
        got += (size_t)n;
        usleep(2000);
    }
    if (fake_say(fd, "+all of it\r\n"))
        fake_ignore(fd);
}

Test(slow, what_a_call_has_no_time_to_send_is_sent_by_the_next, .timeout = 60)
{
    struct fake fake;
    char *large = calloc(1, LARGE);
    redisReply *reply = NULL;
    unsigned calls = 0;
    int rc;

    fake_start(&fake, serve_slow_reader, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_command(l, 1);
    due__link_bytes(l, large, LARGE);
    cr_assert_eq(due__link_send(l, in_ns(DUE_MS(20))), 0);
    do {
        rc = due__link_reply(l, &reply, in_ns(DUE_MS(20)));
        calls++;
    } while (rc == DUE_EAGAIN);
    cr_assert_eq(rc, 0, "%s", due__link_trouble(l));
    cr_expect_str_eq(reply->str, "all of it");
    cr_expect_gt(calls, 2u, "it was not slow");
    freeReplyObject(reply);
    due__link_words(l, 1, (const char *const[]){ "NEXT" });
    cr_expect_eq(due__link_send(l, in_ns(DUE_S(1))), 0);
    cr_expect_eq(due__link_count(l).connects, 1u);
    due__link_free(l);
    fake_stop(&fake);
    free(large);
}

/* What was sent in part is nothing to another connection. */
Test(slow, what_is_left_of_a_command_dies_with_its_connection, .timeout = 60)
{
    struct fake fake;
    struct due__link_limits limits = link_limits();
    char *large = calloc(1, LARGE);

    fake_start(&fake, serve_slow_reader, NULL);
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    due__link_command(l, 1);
    due__link_bytes(l, large, LARGE);
    cr_assert_eq(due__link_send(l, in_ns(0)), 0);
    due__link_down(l);
    cr_expect_eq(due__link_pending(l), 0u);
    fake_stop(&fake);
    fake_start(&fake, serve_slow_reader, NULL); /* at another place: so nobody answers */
    cr_expect_eq(due__link_send(l, in_ns(0)), DUE_EAGAIN);
    due__link_free(l);
    fake_stop(&fake);
    free(large);
}

/* Nor does it send what is left of another, or give an answer more time. */
Test(slow, a_send_of_nothing_is_nothing, .timeout = 60)
{
    struct fake fake;
    char *large = calloc(1, LARGE);

    fake_start(&fake, serve_slow_reader, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_command(l, 1);
    due__link_bytes(l, large, LARGE);
    cr_assert_eq(due__link_send(l, in_ns(0)), 0);
    int64_t answer_ns = l->answer_ns;
    size_t sent = l->rest_sent;
    cr_assert_gt(l->rest.len, sent);
    cr_expect_eq(due__link_send(l, in_ns(DUE_MS(20))), 0);
    cr_expect_eq(l->answer_ns, answer_ns);
    cr_expect_eq(l->rest_sent, sent);
    cr_expect_eq(due__link_pending(l), 1u);
    due__link_free(l);
    fake_stop(&fake);
    free(large);
}

/* ---- A queue --------------------------------------------------------------------------------- */

/* A way to the server on which so many bytes a second go each way. */
struct way {
    char path[112];
    char url[128];
    int listener;
    int64_t bytes_a_second;
    struct crew_thread thread;
    atomic_bool stop;
};

static int plug(const char *path, bool listens)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (!listens) {
        cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
        return fd;
    }
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fd, 8), 0);
    return fd;
}

/* One piece from one to the other, if there is one.  False: an end was closed. */
static bool pass(int from, int to, size_t most)
{
    static char bytes[64 << 10];
    ssize_t n = recv(from, bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);

    if (n < 0)
        return true;
    for (ssize_t sent = 0; sent < n;) {
        ssize_t some = send(to, bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL);

        if (some <= 0)
            return false;
        sent += some;
    }
    return n > 0;
}

/* One connection at a time. */
static int carry(void *arg)
{
    struct way *w = arg;

    while (!atomic_load(&w->stop)) {
        struct pollfd wait = { .fd = w->listener, .events = POLLIN };

        if (poll(&wait, 1, 20) <= 0)
            continue;
        int client = accept(w->listener, NULL, NULL);
        int other = plug(server.socket, false);
        size_t piece = (size_t)(w->bytes_a_second / 200); /* each 5 ms */

        while (!atomic_load(&w->stop) && pass(client, other, piece) && pass(other, client, piece))
            usleep(5000);
        close(client);
        close(other);
    }
    return 0;
}

static void way_open(struct way *w, int64_t bytes_a_second)
{
    *w = (struct way){ .bytes_a_second = bytes_a_second };
    snprintf(w->path, sizeof w->path, "%s/way", server.dir);
    snprintf(w->url, sizeof w->url, "unix://%s", w->path);
    w->listener = plug(w->path, true);
    crew_go(&w->thread, carry, w);
}

static void way_close(struct way *w)
{
    atomic_store(&w->stop, true);
    crew_join(&w->thread);
    close(w->listener);
}

#define BYTES 40000
#define JOBS  200

/* 8 MB that nobody waits for, where 4 MB go in a second: no turn of the proxy is long enough for
 * a batch, and no answer may take as long as a page of what is read back. */
STORED_TEST(slow, a_queue_gives_and_gets_what_takes_longer_than_a_call)
{
    static char payload[BYTES];
    static due_spec specs[JOBS];
    due_redis_options slow = { .answer_ns = DUE_MS(900), .lease_ns = DUE_S(60) };
    struct way way;
    due_job job;

    way_open(&way, 4000000);
    struct lab lab = OPEN(.with.store = store_at(way.url, slow), .with.confirm = DUE_CONFIRM_ASYNC);
    for (int i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 10 + i, .data = payload, .len = BYTES };
    cr_assert_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS);
    cr_expect_eq(due_flush(lab.q, DUE_S(30)), 0);
    cr_expect_eq(lab_stats(&lab).unsettled, 0u);
    lab_close(&lab);

    lab = OPEN(.with.store = store_at(way.url, slow), .start_ns = 1000);
    cr_expect_eq(lab_stats(&lab).restored, (uint64_t)JOBS);
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(60), 0), 0);
    cr_expect_eq(job.len, (size_t)BYTES);
    due_job_done(&job);
    lab_close(&lab);
    way_close(&way);
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
