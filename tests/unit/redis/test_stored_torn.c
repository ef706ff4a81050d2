/* A queue stored in Redis whose log ends in the middle of a batch.
 *
 * A server that finds half a transaction at the end of its log drops it, but may leave its first
 * commands in the file.  When it is started once more, they are carried out with the next
 * transaction.  So after two restarts half a batch has landed.  Whatever half it is, nothing that
 * was confirmed may be missing. */
#ifdef DUE_HAVE_REDIS

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

#define CUTS 64

/* ---- The log ---- */

static unsigned char log_bytes[1 << 16];

static FILE *log_open(const char *mode)
{
    char path[512] = "";
    DIR *dir;
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/appendonlydir", server.dir);
    dir = opendir(path);
    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, ".incr.aof") != NULL)
            snprintf(path, sizeof path, "%s/appendonlydir/%.200s", server.dir, entry->d_name);
    }
    closedir(dir);
    FILE *file = fopen(path, mode);
    cr_assert_not_null(file, "%s", path);
    return file;
}

static size_t log_read(void)
{
    FILE *file = log_open("r");
    size_t n = fread(log_bytes, 1, sizeof log_bytes, file);

    cr_assert_lt(n, sizeof log_bytes);
    fclose(file);
    return n;
}

static void log_write(size_t n)
{
    FILE *file = log_open("w");

    cr_assert_eq(fwrite(log_bytes, 1, n, file), n);
    fclose(file);
}

/* Where the log of @n bytes can be cut within its last transaction: behind each of its commands,
 * and in the middle of the next one. */
static size_t cuts_of(size_t n, size_t *cut)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
    size_t from = n - (sizeof multi - 1);
    size_t count = 0;

    while (memcmp(log_bytes + from, multi, sizeof multi - 1) != 0)
        cr_assert_gt(from--, 0u);
    for (size_t at = from + 1; at < n; at++) {
        if (log_bytes[at] != '*' || memcmp(log_bytes + at - 2, "\r\n", 2) != 0)
            continue;
        cr_assert_lt(count + 2, (size_t)CUTS);
        cut[count++] = at;
        cut[count++] = at + 6;
    }
    return count;
}

/* ---- Lives ---- */

static void must(int rc)
{
    if (rc < 0)
        _exit(1 - rc);
}

static due_id put(due_queue *q, const char *text)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10, .data = text, .len = strlen(text) };
    due_id id;

    spec.topic = due_topic(q, "mail");
    must(due_enqueue(q, &spec, 0, &id));
    return id;
}

static due_job reserve(due_queue *q)
{
    due_job job = { 0 };

    must(take_leased(q, &job, DUE_S(600), DUE_S(5)));
    return job;
}

static atomic_bool whole; /* all was written again */

static void listen(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    if (strstr(text, "has everything again") != NULL)
        atomic_store(&whole, true);
}

/* In a process of its own, which is killed; without a @deed as soon as it owns the queue. */
static void live(void (*deed)(due_queue *q))
{
    pid_t pid = fork();
    int status;

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        due_options o = { DUE_OPTIONS_INIT, .on_log = listen };
        struct due_stats stats = { .loading = 1 };
        due_queue *q;

        o.store = store_at(server.url, (due_redis_options){ .lease_ns = DUE_S(3600) });
        must(due_open(&q, &o, NULL));
        if (deed == NULL)
            kill(getpid(), SIGKILL);
        while (stats.loading) {
            must(due_stats_read(q, &stats));
            crew_sleep(DUE_MS(1));
        }
        deed(q);
        kill(getpid(), SIGKILL);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status), "exit %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* The next owner writes everything again. */
static void put_last(due_queue *q)
{
    put(q, "last");
    while (!atomic_load(&whole))
        crew_sleep(DUE_MS(1));
}

static void put_last_and_close(due_queue *q)
{
    put_last(q);
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)));
}

static void restart(void)
{
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
}

/* Does each record have a place?  After a proper close there may be one more, of a job whose put
 * was torn: the next owner is sure of what is there, and sets that one aside when it has read all.
 */
static bool same(const char *records, const char *aside, const char *topic, const char *dead,
                 bool closed)
{
    long torn = atol(records + 1) - atol(topic + 1) - atol(dead + 1);

    return torn + atol(aside + 1) == 0 || (closed && torn + atol(aside + 1) == 1);
}

/* Entries that are no job's. */
#define LEFT_OVER                                                                          \
    "local n = 0 for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do "                    \
    "if id ~= 'table' and redis.call('HEXISTS', KEYS[2], id) == 0 then n = n + 1 end end " \
    "return n"

/* What is there: its texts, the dead included. */
static const char *all_of(size_t cut, bool closed)
{
    static char all[LAB_TEXT];

    atomic_store(&whole, false);
    struct lab lab = OPEN(.start_ns = INT64_C(1) << 62, .with.on_log = listen,
                          .with.on_discard = forget); /* all is due */
    while (!closed && !atomic_load(&whole))           /* half a batch may be there until then */
        crew_sleep(DUE_MS(1));
    const char *aside = ASK("HLEN", "due:{queue}:q"); /* before what may yet come there */
    const char *records = ASK("HLEN", "due:{queue}:j");

    cr_expect(same(records, aside, ASK("ZCARD", "due:{queue}:t:mail"),
                   ASK("ZCARD", "due:{queue}:dead"), closed),
              "cut at %zu: %.8s records, %.8s aside", cut, records + 1, aside + 1);
    cr_expect_str_eq(ASK("EVAL", LEFT_OVER, "2", "due:{queue}:a", "due:{queue}:j"), ":0\r\n",
                     "cut at %zu: entries without a job", cut);
    cr_assert_eq(due_kick_all(lab.q, DUE_ALL_TOPICS, NULL), 0);
    snprintf(all, sizeof all, "%s", lab_dequeue_all(&lab));
    lab_close(&lab);
    return all;
}

/* The batch of @deed, the last one, is torn at each point; the server is started twice, with an
 * owner in between that is killed or closes.  Then @words must be there: one of those with a stroke
 * between them. */
static void tear(void (*deed)(due_queue *q), const char *const *words)
{
    size_t cut[CUTS];

    live(deed);
    redis_server_kill(&server);
    size_t n = log_read();
    size_t cuts = cuts_of(n, cut);
    cr_assert_gt(cuts, 4u);
    for (size_t i = 0; i < 2 * cuts; i++) {
        log_write(cut[i / 2]);
        cr_assert_eq(redis_server_run(&server), 0);
        live(i % 2 == 0 ? put_last : put_last_and_close);
        restart();
        const char *all = all_of(cut[i / 2], i % 2 == 1);
        for (size_t k = 0; words[k] != NULL; k++) {
            char either[64];
            bool there = false;

            snprintf(either, sizeof either, "%s", words[k]);
            for (char *word = strtok(either, "|"); word != NULL; word = strtok(NULL, "|"))
                there |= strstr(all, word) != NULL;
            cr_expect(there, "cut at %zu of %zu: \"%s\" of \"%s\"", cut[i / 2], n, words[k], all);
        }
        redis_server_kill(&server);
    }
}

static void serve_durably(void)
{
    serve((const char *const[]){ "--appendonly", "yes", "--appendfsync", "always", NULL });
}

#define TORN_TEST(name, deed, ...)                                               \
    Test(stored_torn, name, .init = serve_durably, .fini = stop, .timeout = 200) \
    {                                                                            \
        tear(deed, (const char *const[]){ __VA_ARGS__, "last", NULL });          \
    }

/* ---- Deeds ---- */

static void enqueue(due_queue *q)
{
    put(q, "one");
    put(q, "two");
}

TORN_TEST(after_a_torn_enqueue_what_was_there_is, enqueue, "one")

static void dequeue(due_queue *q)
{
    due_job job;

    enqueue(q);
    must(due_dequeue(q, &job, DUE_S(5)));
}

TORN_TEST(after_a_torn_dequeue_the_job_is_there, dequeue, "one", "two")

static void ack(due_queue *q)
{
    enqueue(q);
    due_job job = reserve(q);
    must(due_nack(&job, 0)); /* so that it has times and counts */
    job = reserve(q);
    must(due_ack(&job));
}

TORN_TEST(after_a_torn_ack_the_job_is_there, ack, "one", "two")

static void nack(due_queue *q)
{
    enqueue(q);
    due_job job = reserve(q);
    must(due_nack(&job, 0));
}

TORN_TEST(after_a_torn_nack_the_job_is_there, nack, "one", "two")

static due_id bury_one(due_queue *q)
{
    enqueue(q);
    due_job job = reserve(q);
    due_id id = job.id;
    must(due_bury(&job, "no reason"));
    return id;
}

static void bury(due_queue *q)
{
    bury_one(q);
}

TORN_TEST(after_a_torn_burial_the_job_is_there, bury, "one", "two")

static void kick(due_queue *q)
{
    must(due_kick(q, bury_one(q)));
}

TORN_TEST(after_a_torn_kick_the_job_is_there, kick, "one", "two")

static void clear_dead(due_queue *q)
{
    bury_one(q);
    must(due_clear_dead(q, DUE_ALL_TOPICS, NULL));
}

TORN_TEST(after_a_torn_clearing_of_the_dead_they_are_there, clear_dead, "one", "two")

static void reschedule(due_queue *q)
{
    due_id id = put(q, "one");

    put(q, "two");
    must(due_reschedule(q, id, 20));
}

TORN_TEST(after_a_torn_reschedule_the_job_is_there, reschedule, "one", "two")

static void update(due_queue *q)
{
    due_id id = put(q, "one");

    put(q, "two");
    must(due_update(q, id, "new", 3));
}

TORN_TEST(after_a_torn_update_the_job_is_there, update, "one|new", "two")

static void replace(due_queue *q)
{
    due_extra more = { DUE_EXTRA_INIT, .key = "key", .key_len = 3 };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10, .data = "one", .len = 3, .more = &more };

    spec.topic = due_topic(q, "mail");
    must(due_enqueue(q, &spec, 0, NULL));
    put(q, "two");
    spec.data = "new";
    more.on_key = DUE_KEY_REPLACE;
    must(due_enqueue(q, &spec, 0, NULL));
}

TORN_TEST(after_a_torn_takeover_of_a_key_one_of_both_is_there, replace, "one|new", "two")

/* ---- Written again ---- */

static void write_again(due_queue *q)
{
    (void)q;
    while (!atomic_load(&whole))
        crew_sleep(DUE_MS(1));
}

/* What an owner writes again is torn, and the next one is killed before it has done the same: the
 * beginning of such a batch takes nothing away. */
Test(stored_torn, half_of_what_is_written_again_takes_nothing, .init = serve_durably, .fini = stop,
     .timeout = 200)
{
    size_t cut[CUTS];

    live(nack);
    restart();
    live(write_again);
    redis_server_kill(&server);
    size_t n = log_read();
    size_t cuts = cuts_of(n, cut);
    cr_assert_gt(cuts, 8u);
    for (size_t i = 0; i < cuts; i++) {
        log_write(cut[i]);
        cr_assert_eq(redis_server_run(&server), 0);
        live(NULL);
        restart();
        const char *all = all_of(cut[i], false);
        cr_expect(strstr(all, "one") && strstr(all, "two"), "cut at %zu of %zu: %s", cut[i], n,
                  all);
        redis_server_kill(&server);
    }
}

/* ---- Under an owner that lives ---- */

static void enqueue_with_a_key(due_queue *q)
{
    due_extra more = { DUE_EXTRA_INIT, .key = "key", .key_len = 3 };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10, .data = "half", .len = 4, .more = &more };

    put(q, "one");
    spec.topic = due_topic(q, "mail");
    must(due_enqueue(q, &spec, 0, NULL));
}

/* Has the store what the queue holds, @jobs of which @keys have keys, and nothing else?  It may
 * take a while. */
static bool comes_to_hold(long jobs, long keys)
{
    for (int i = 0; i < 20000; i++) {
        if (atol(ASK("HLEN", "due:{queue}:j") + 1) == jobs &&
            atol(ASK("ZCARD", "due:{queue}:t:mail") + 1) == jobs &&
            atol(ASK("HLEN", "due:{queue}:k") + 1) == keys)
            return true;
        crew_sleep(DUE_MS(1));
    }
    return false;
}

/* Who owns the queue when the server is started for the second time: the one who has written
 * everything again, or who followed it. */
enum owner { SAME, AFTER_A_CLOSE, AFTER_A_KILL, OWNERS };

static struct lab own(enum owner who)
{
    struct lab_options o = { .kernel = false, .with.on_log = listen, .with.on_discard = forget };

    atomic_store(&whole, false);
    if (who == AFTER_A_KILL)
        live(write_again);
    struct lab lab = open_with(o, (due_redis_options){ .size = 0 });
    while (who != AFTER_A_KILL && !atomic_load(&whole))
        crew_sleep(DUE_MS(1));
    if (who == AFTER_A_CLOSE) {
        lab_close(&lab);
        lab = open_with(o, (due_redis_options){ .size = 0 });
    }
    return lab;
}

/* What a torn batch puts is there after the second start without the owner's knowledge, who has
 * said that the key is free, and that there is no such job.  So that stays, and nothing of the
 * batch does. */
static void land_under(enum owner who, size_t cut)
{
    due_id id;
    struct lab lab = own(who);
    int mail = lab_topic(&lab, "mail");

    cr_expect_eq(due_id_of_key(lab.q, "key", 3, &id), DUE_ENOENT);
    cr_assert(comes_to_hold(1, 0), "cut at %zu, %d: before", cut, who);
    uint64_t mirrored = lab_stats(&lab).mirrored;
    ASK("CLIENT", "KILL", "TYPE", "normal"); /* the server has not been started again */
    cr_expect_eq(due_cancel(lab.q, lab_enqueue(&lab, "gone", .at_ns = 10), NULL), 0);
    cr_expect_eq(lab_stats(&lab).mirrored, mirrored, "cut at %zu, %d: too soon", cut, who);
    atomic_store(&whole, false);
    restart();
    lab_enqueue(&lab, "more", .at_ns = 10, .topic = mail);
    cr_assert(comes_to_hold(2, 0), "cut at %zu, %d: landed", cut, who);
    while (!atomic_load(&whole)) /* whatever has landed of it */
        crew_sleep(DUE_MS(1));
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "late", NULL, .at_ns = 10, .topic = mail), 0);
    mirrored = lab_stats(&lab).mirrored;
    restart(); /* that was all of it */
    lab_enqueue(&lab, "last", .at_ns = 10, .topic = mail);
    cr_assert(comes_to_hold(4, 1), "cut at %zu, %d: behind it", cut, who);
    cr_expect_eq(lab_stats(&lab).mirrored, mirrored, "cut at %zu, %d: once more", cut, who);
    lab_close(&lab);
    cr_expect_eq(ASK("HGET", "due:{queue}:meta", "server")[1], '-', "cut at %zu, %d", cut, who);
}

Test(stored_torn, half_a_batch_that_lands_under_a_living_owner_is_dropped, .init = serve_durably,
     .fini = stop, .timeout = 200)
{
    size_t cut[CUTS];

    live(enqueue_with_a_key);
    cr_expect_str_eq(ASK("HGET", "due:{queue}:meta", "late"), "$-1\r\n");
    redis_server_kill(&server);
    size_t n = log_read();
    size_t cuts = cuts_of(n, cut);
    cr_assert_gt(cuts, 8u);
    for (size_t i = 0; i < cuts * OWNERS; i++) {
        log_write(cut[i / OWNERS]);
        cr_assert_eq(redis_server_run(&server), 0);
        land_under((enum owner)(i % OWNERS), cut[i / OWNERS]);
        redis_server_kill(&server);
    }
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
