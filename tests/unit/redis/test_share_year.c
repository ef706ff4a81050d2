/* test_share_year.c - a shared queue that nobody has touched for a year, on the store in memory and
 * on Redis: whoever comes finds all that was left.
 *
 * In memory a clock is turned by hand; in Redis the server's own (lab/turned/turned.c).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/metrics.h"
#include "due/redis.h"
#include "lab/lab.h"
#include "lab/memory_store.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

#define DAY  DUE_S(86400)
#define YEAR (366 * DAY)

static struct memory_disk *disk; /* NULL: in Redis */
static due_clock *clock_;
static struct redis_server server;
static int64_t *ahead; /* of the server's clock, in seconds */
static char ahead_name[128];

static int64_t clock_of(void *clock)
{
    return due_clock_now(clock);
}

static due_queue *come(due_store **store)
{
    due_options o = { DUE_OPTIONS_INIT,
                      .name = "q",
                      .share = DUE_SHARED,
                      .prefetch_max = 1,
                      .open_timeout_ns = DUE_S(60),
                      .manual = clock_ };
    due_error error = { "", "" };
    due_queue *q = NULL;

    if (disk != NULL)
        o.store = memory_store_new(disk);
    else
        cr_assert_eq(due_redis_open(&o.store, server.url, NULL, &error), 0, "%s", error.text);
    if (store != NULL)
        *store = o.store;
    int rc = due_open(&q, &o, &error);
    cr_assert_eq(rc, 0, "%s: %s", due_error_name(rc), error.text);
    return q;
}

static void go(due_queue *q)
{
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
}

static void turn_a_year(void)
{
    if (disk != NULL)
        cr_assert_eq(due_clock_advance(clock_, YEAR), 0);
    else
        *ahead += YEAR / DUE_S(1);
}

static int put_extra(due_queue *q, const char *text, int64_t delay_ns, const char *topic,
                     const due_extra *more)
{
    due_spec spec = { DUE_SPEC_INIT,
                      .data = text,
                      .len = strlen(text) + 1,
                      .delay_ns = delay_ns,
                      .topic = due_topic(q, topic),
                      .more = more };

    return due_enqueue(q, &spec, DUE_S(20), NULL);
}

static void put(due_queue *q, const char *text, int64_t delay_ns, const char *topic)
{
    int rc = put_extra(q, text, delay_ns, topic, NULL);

    cr_assert_eq(rc, 0, "%s: %s", text, due_error_name(rc));
}

/* The only one that is due. */
static due_job held(due_queue *q, const char *text)
{
    due_job job;

    cr_assert_eq(take_leased(q, &job, DUE_S(60), DUE_FOREVER), 0);
    cr_expect_str_eq(job.data, text);
    return job;
}

static due_job left[2]; /* what that one holds */

/* All that is there, by one who never comes back. */
static void leave_all(due_queue *q)
{
    due_extra group = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };
    due_extra ttl = { DUE_EXTRA_INIT, .ttl_ns = DAY };
    due_extra long_key = { DUE_EXTRA_INIT, .key = "long", .key_len = 4, .keep_key_ns = 2 * YEAR };
    due_extra short_key = { DUE_EXTRA_INIT, .key = "short", .key_len = 5, .keep_key_ns = DAY };
    due_job job;

    cr_assert_eq(put_extra(q, "kept", 0, "", &long_key), 0);
    job = held(q, "kept");
    cr_assert_eq(due_ack(&job), 0);
    cr_assert_eq(put_extra(q, "kept for a day", 0, "", &short_key), 0);
    job = held(q, "kept for a day");
    cr_assert_eq(due_ack(&job), 0);
    put(q, "dead", 0, "");
    job = held(q, "dead");
    cr_assert_eq(due_bury(&job, "broken"), 0);
    put(q, "leased", 0, "");
    left[0] = held(q, "leased");
    cr_assert_eq(put_extra(q, "g1", 0, "", &group), 0);
    left[1] = held(q, "g1");
    cr_assert_eq(put_extra(q, "g2", 0, "", &group), 0);
    cr_assert_eq(due_topic_limit(q, due_topic(q, "slow"), 1), 0);
    cr_assert_eq(due_pause(q, due_topic(q, "paused")), 0);
    put(q, "p1", 0, "paused");
    put(q, "s1", DAY, "slow");
    put(q, "s2", DAY + 1000, "slow");
    put(q, "s3", DAY + 2000, "slow");
    cr_assert_eq(put_extra(q, "over", DAY, "", &ttl), 0);
    put(q, "week", 7 * DAY, "");
    put(q, "later", 2 * YEAR, "");
    cr_assert_eq(due_flush(q, DUE_S(20)), 0);
}

/* These come, in any order: each is held until all of them are. */
static void expect_jobs(due_queue *q, const char *const *texts, int n)
{
    due_job job[8];
    int found = 0;

    for (int i = 0; i < n; i++)
        cr_assert_eq(take_leased(q, &job[i], DUE_S(600), DUE_FOREVER), 0);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            found += strcmp(job[k].data, texts[i]) == 0;
    cr_expect_eq(found, n, "%s, %s, ...", (const char *)job[0].data, texts[0]);
    for (int i = 0; i < n; i++)
        cr_expect_eq(due_ack(&job[i]), 0);
    cr_expect_eq(due_flush(q, DUE_S(20)), 0);
}

#define EXPECT(q, ...)                                   \
    expect_jobs(q, (const char *const[]){ __VA_ARGS__ }, \
                (int)(sizeof(const char *const[]){ __VA_ARGS__ } / sizeof(char *)))

static struct due_queue_census census(due_queue *q)
{
    struct due_queue_census c;

    cr_assert_eq(due_census(q, DUE_ALL_TOPICS, &c, DUE_S(20)), 0);
    return c;
}

/* Those who died are dead, with the reason; a job that was worth nothing after a day is, too. */
static void expect_dead(due_queue *q)
{
    due_dead dead[8];
    uint64_t cursor = 0;
    int n = due_list_dead(q, &cursor, dead, 8);

    cr_assert_eq(n, 2);
    cr_expect_eq(dead[0].cause, DUE_CAUSE_BURIED);
    cr_expect_str_eq(dead[0].reason, "broken");
    cr_expect_eq(dead[1].cause, DUE_CAUSE_EXPIRED);
}

static void find_all(due_queue *q)
{
    due_extra long_key = { DUE_EXTRA_INIT, .key = "long", .key_len = 4 };
    due_extra short_key = { DUE_EXTRA_INIT, .key = "short", .key_len = 5 };

    EXPECT(q, "leased", "g1", "s1", "week"); /* g2, s2 and s3 are kept back, and p1 */
    EXPECT(q, "g2", "s2");
    EXPECT(q, "s3");
    struct due_queue_census c = census(q);
    cr_expect_eq(c.ready, 1u, "p1: %d", (int)c.ready);
    cr_expect_eq(c.delayed, 1u, "later: %d", (int)c.delayed);
    cr_expect_eq(c.leased, 0u);
    expect_dead(q);
    cr_expect_eq(due_resume(q, due_topic(q, "paused")), 0);
    EXPECT(q, "p1");
    cr_expect_eq(put_extra(q, "no", 0, "", &long_key), DUE_EEXIST);
    cr_expect_eq(put_extra(q, "again", 0, "", &short_key), 0);
    EXPECT(q, "again");
}

/* Then another one is put and taken by others; and one more year passes under those. */
static void a_year(void)
{
    turn_a_year();
    due_queue *q = come(NULL);
    due_queue *other = come(NULL);
    find_all(q);
    put(other, "new", 0, "");
    EXPECT(q, "new");
    turn_a_year();
    EXPECT(other, "later");
    put(q, "newer", 0, "");
    EXPECT(other, "newer");
    go(other);
    go(q);
}

Test(share_year, is_nothing_to_a_queue_in_memory, .timeout = 100)
{
    clock_ = due_clock_manual(DUE_S(1700000000));
    disk = memory_disk_new(&(struct memory_disk_options){ .now = clock_of, .clock = clock_ });
    due_store *store;
    due_queue *dies = come(&store);
    leave_all(dies);
    memory_store_crash(store);
    int rc = due_close(dies, DUE_CLOSE_DISCARD, DUE_FOREVER);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    for (int i = 0; i < 2; i++)
        due_job_done(&left[i]); /* he does not know */
    rc = due_free(dies);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    a_year();
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
    due_clock_free(clock_);
}

static void serve_by_a_turned_clock(void)
{
    int fd;

    snprintf(ahead_name, sizeof ahead_name, "/tmp/due_turned_XXXXXX");
    fd = mkstemp(ahead_name);
    cr_assert(fd >= 0 && ftruncate(fd, sizeof *ahead) == 0);
    ahead = mmap(NULL, sizeof *ahead, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(ahead != MAP_FAILED);
    close(fd);
    setenv("DUE_TURNED", ahead_name, 1);
    setenv("LD_PRELOAD", DUE_TURNED_LIBRARY, 1);
    int rc = redis_server_start(&server, NULL);
    unsetenv("LD_PRELOAD");
    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("redis-server is not installed");
    cr_assert_eq(rc, 0);
}

static void stop(void)
{
    redis_server_stop(&server);
    unlink(ahead_name);
}

static bool is_turned(void)
{
    char before[64];
    char after[64];
    const char *const words[] = { "TIME", NULL };

    cr_assert_gt(redis_server_ask(&server, words, before, sizeof before), 0);
    *ahead += 1000;
    cr_assert_gt(redis_server_ask(&server, words, after, sizeof after), 0);
    const char *from = strchr(strchr(before, '\n') + 1, '\n');
    const char *to = strchr(strchr(after, '\n') + 1, '\n');
    return strtoll(to + 1, NULL, 10) - strtoll(from + 1, NULL, 10) >= 1000;
}

Test(share_year, is_nothing_to_a_queue_in_redis, .init = serve_by_a_turned_clock, .fini = stop,
     .timeout = 200)
{
    cr_assert(is_turned());
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        leave_all(come(NULL));
        _exit(0);
    }
    int status = -1;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    a_year();
}

/* The server's clock was set forward by days, and who came then has struck off all that had not
 * lived since; if one was quicker than that, once more. */
static due_queue *strike_off(void)
{
    due_queue *q = NULL;

    do {
        if (q != NULL)
            go(q);
        *ahead += 2 * DAY / DUE_S(1);
        q = come(NULL);
    } while (census(q).processes > 1);
    return q;
}

/* What he does is not done, and he is told; what he had is others'. */
Test(share_year, that_passes_at_once_strikes_off_who_is_told_and_loses_nothing,
     .init = serve_by_a_turned_clock, .fini = stop, .timeout = 200)
{
    due_queue *lives = come(NULL);

    put(lives, "held", 0, "");
    due_job job = held(lives, "held");
    put(lives, "buried", 0, "");
    due_job other = held(lives, "buried");
    put(lives, "later", DAY, "");
    due_queue *q = strike_off();
    cr_expect_eq(put_extra(lives, "not put", 0, "", NULL), DUE_EFENCED);
    cr_expect_eq(due_job_stopping(&job), 1);
    cr_expect_eq(due_ack(&job), DUE_EFENCED);
    cr_expect_eq(due_extend(&job, DUE_S(60)), DUE_EFENCED);
    cr_expect_eq(due_bury(&other, "broken"), DUE_EFENCED);
    due_job_done(&job);
    due_job_done(&other);
    cr_expect_eq(take_leased(lives, &job, DUE_S(60), 0), DUE_EFENCED);
    go(lives);
    EXPECT(q, "held", "buried", "later");
    lives = come(NULL); /* he goes on, as another */
    put(q, "new", 0, "");
    EXPECT(lives, "new");
    struct due_queue_census c = census(q);
    cr_expect_eq(c.ready + c.delayed + c.leased + c.dead, 0u);
    cr_expect_eq(c.processes, 2u);
    go(lives);
    go(q);
}

/* Nobody rings him any more, but he lives: so he hears of it when he does. */
Test(share_year, that_passes_at_once_is_told_to_who_waits, .init = serve_by_a_turned_clock,
     .fini = stop, .timeout = 200)
{
    due_queue *lives = come(NULL);
    struct crew_call waits;

    crew_call_reserve(&waits, lives, NULL, 0, DUE_S(60), DUE_FOREVER);
    crew_call_asleep(&waits);
    due_queue *q = strike_off();
    put(q, "tea", 0, "");
    EXPECT(q, "tea");
    cr_expect_eq(crew_call_answer(&waits), DUE_EFENCED);
    go(lives);
    go(q);
}
