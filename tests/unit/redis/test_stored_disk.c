/* A queue stored in Redis, and the server's disk is full: it refuses every write. */
#ifdef DUE_HAVE_REDIS

#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>

#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

/* Files of the server may not grow any more: a write is answered as on a full disk, with another
 * errno.  What ignores SIGXFSZ is told so, and the server has inherited that. */
static void let_files_grow(bool yes)
{
    struct rlimit limit = { .rlim_cur = yes ? RLIM_INFINITY : 0, .rlim_max = RLIM_INFINITY };

    cr_assert_eq(prlimit(server.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

/* Until the server says so of its last attempt; each time it is told to try. */
static void until_it_says(const char *line, const char *const *attempt)
{
    for (int i = 0; strstr(ASK("INFO", "persistence"), line) == NULL; i++) {
        cr_assert_lt(i, 2000, "the server does not say %s", line);
        ask(attempt);
        crew_sleep(DUE_MS(5));
    }
}

/* How a server finds out: it saves now and then, or it appends to its log. */
struct way {
    const char *options[5];
    const char *attempt[4];
    const char *full;
    const char *room;
};

static const struct way saving = { { "--save", "3600 1000000", NULL },
                                   { "BGSAVE", NULL },
                                   "rdb_last_bgsave_status:err",
                                   "rdb_last_bgsave_status:ok" };
static const struct way appending = { { "--appendonly", "yes", "--appendfsync", "everysec", NULL },
                                      { "SET", "x", "y", NULL },
                                      "aof_last_write_status:err",
                                      "aof_last_write_status:ok" };

static void serve_this_way(const struct way *way)
{
    signal(SIGXFSZ, SIG_IGN);
    serve(way->options);
}

static void fill_disk(const struct way *way)
{
    let_files_grow(false);
    until_it_says(way->full, way->attempt);
    cr_assert(strncmp(ASK("SET", "x", "y"), "-MISCONF", 8) == 0);
}

static void make_room(const struct way *way)
{
    let_files_grow(true);
    until_it_says(way->room, way->attempt);
}

static bool away(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_ESTORE;
}

/* There is room again, though the queue may not have noticed. */
static void goes_on(struct lab *lab, due_job *done)
{
    due_spec after = { DUE_SPEC_INIT, .data = "after", .len = 5 };
    int rc = DUE_ETIMEDOUT;

    for (int i = 0; i < 100 && away(rc); i++)
        rc = due_enqueue(lab->q, &after, 0, NULL);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    rc = DUE_ETIMEDOUT;
    for (int i = 0; i < 100 && away(rc); i++)
        rc = due_ack(done);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(lab_stats(lab).mirrored, 0u);
}

/* The change that was sent first is in doubt, and seen through; nothing else can be changed, and
 * the calls say so in their time; reserving goes on.  Nothing is lost, nothing that was refused is
 * there, and when there is room again all goes on by itself. */
static void check_full_disk(const struct way *way)
{
    due_spec sent = { DUE_SPEC_INIT, .data = "sent", .len = 4 };
    due_spec refused = { DUE_SPEC_INIT, .data = "refused", .len = 7 };
    due_job done;
    due_job job;

    serve_this_way(way);
    struct lab lab = OPEN(.with.store_timeout_ns = DUE_S(1));
    lab_enqueue(&lab, "done", .delay_ns = 0);
    lab_enqueue(&lab, "held", .delay_ns = 0);
    lab_enqueue(&lab, "later", .delay_ns = DUE_S(3600));
    cr_assert_eq(take_leased(lab.q, &done, DUE_S(60), 0), 0);
    fill_disk(way);
    cr_expect_eq(due_enqueue(lab.q, &sent, 0, NULL), DUE_EINDOUBT);
    cr_expect_eq(due_enqueue(lab.q, &refused, 0, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_ack(&done), DUE_ETIMEDOUT);
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ESTORE);
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(60), 0), 0);
    cr_expect_str_eq(lab_text(&lab, &job), "held");
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:j"), ":3\r\n");
    make_room(way);
    goes_on(&lab, &done);
    lab_close(&lab);
    lab = OPEN(.start_ns = DUE_S(7200));
    cr_expect_str_eq(lab_dequeue_all(&lab), "held sent after later");
    lab_close(&lab);
}

Test(stored_disk, that_is_full_is_waited_for_by_a_server_that_saves, .fini = stop, .timeout = 100)
{
    check_full_disk(&saving);
}

Test(stored_disk, that_is_full_is_waited_for_by_a_server_that_appends, .fini = stop, .timeout = 100)
{
    check_full_disk(&appending);
}

/* What was left without waiting is stored as soon as there is room. */
Test(stored_disk, that_is_full_loses_nothing_that_was_left_asynchronously, .fini = stop,
     .timeout = 100)
{
    serve_this_way(&saving);
    struct lab lab = OPEN(.with.confirm = DUE_CONFIRM_ASYNC);
    put_many(&lab, 500);
    cr_assert_eq(due_flush(lab.q, DUE_S(30)), 0);
    fill_disk(&saving);
    put_many(&lab, 500);
    cr_expect_eq(due_flush(lab.q, DUE_MS(200)), DUE_ETIMEDOUT);
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:j"), ":500\r\n");
    make_room(&saving);
    cr_expect_eq(due_flush(lab.q, DUE_S(30)), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:j"), ":1000\r\n");
    lab_close(&lab);
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
