/* file.c - a queue with a store in a file, beside what SQLite does by itself on the same disk, and
 * beside beanstalkd.
 *
 * bench_file [--jobs N] [--rounds N] [--tiny] [--only PART]: makes its files in a folder of its own
 * in $TMPDIR, or else in /var/tmp, which should be a disk; runs each row as often as there are
 * rounds, and prints medians.  "of bare" is the ratio to a loop over a table with an index by time
 * in the same round; in the rows that name it, to beanstalkd, which waits for the disk with each
 * job (-b -f0).
 */
#include <sys/stat.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bare_file.h"
#include "beanstalkd.h"
#include "common.h"
#include "due/sqlite.h"

static char folder[256];
static char path[320];
static enum due_durability level = DUE_DURABLE_ALWAYS;

/* ---- The files ---- */

static void remove_all(const char *of)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-owner" };
    char name[400];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", of, ends[i]);
        (void)unlink(name);
    }
}

due_store *bench_store_new(int64_t spin_ns)
{
    due_sqlite_options o = { DUE_SQLITE_OPTIONS_INIT, .durability = level };
    due_store *store;

    (void)spin_ns;
    must(due_sqlite_open(&store, path, &o, NULL));
    return store;
}

void bench_store_empty(void)
{
    remove_all(path);
}

static double bytes_of(const char *of, const char *end)
{
    char name[400];
    struct stat file;

    snprintf(name, sizeof name, "%s%s", of, end);
    return stat(name, &file) == 0 ? (double)file.st_size : 0;
}

/* ---- The loop ---- */

enum what { PUT, TAKE, READ };

/* Jobs per second. */
static double bare(enum what what, const char *synchronous, bool indexed, size_t total,
                   size_t batch)
{
    char other[360];
    double took;

    snprintf(other, sizeof other, "%s.bare", path);
    struct bare_file b = bare_file_open(other, synchronous, indexed);
    total = total / batch * batch;
    took = bare_file_put(&b, total, batch, PAYLOAD);
    if (what == TAKE)
        took = bare_file_take(&b, total, batch);
    else if (what == READ)
        took = bare_file_read(&b, total);
    bare_file_close(&b);
    remove_all(other);
    return (double)total / took;
}

/* ---- Writing ---- */

static double batches(void)
{
    due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

    loaded();
    double begin = now();
    double put = (double)put_batches(q, 1, due_now(q) + DUE_S(3600), HOURS);
    double took = now() - begin;
    queue_close(q);
    bench_store_empty();
    return put / took;
}

static double async(void)
{
    due_queue *q = queue_open(DUE_CONFIRM_ASYNC, 0);
    int64_t from = due_now(q) + DUE_S(3600);

    loaded();
    double begin = now();
    for (size_t i = 0; i < jobs; i++) {
        due_spec spec = spec_at(from);
        must(due_enqueue(q, &spec, 0, NULL));
    }
    must(due_flush(q, DUE_S(60)));
    double took = now() - begin;
    queue_close(q);
    bench_store_empty();
    return (double)jobs / took;
}

static void run_always(void)
{
    size_t few = jobs / 100 > 100 ? jobs / 100 : 100;
    double one = bare(PUT, "FULL", true, few, 1);
    double many = bare(PUT, "FULL", true, jobs, BATCH);

    level = DUE_DURABLE_ALWAYS;
    note("always: enqueue, one caller", "jobs/s", callers(1, few, 0), one);
    note("always: enqueue, 64 callers (bare: one)", "jobs/s", callers(64, jobs / 4, 0), one);
    note("always: enqueue, batches of 256", "jobs/s", batches(), many);
    note("always: enqueue, asynchronous", "jobs/s", async(), many);
}

static void run_everysec(void)
{
    double many = bare(PUT, "NORMAL", true, jobs, BATCH);

    level = DUE_DURABLE_EVERYSEC;
    note("everysec: enqueue, batches of 256", "jobs/s", batches(), many);
    note("everysec: enqueue, asynchronous", "jobs/s", async(), many);
    note("  the same; bare: without an index", "jobs/s", async(),
         bare(PUT, "NORMAL", false, jobs, BATCH));
}

/* ---- Taking out ---- */

static double removal(bool reserve)
{
    due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

    loaded();
    size_t put = put_batches(q, 1, 1, HOURS);
    double begin = now();
    share(1, take_share, &(struct share){ .q = q, .jobs = put, .reserve = reserve });
    double took = now() - begin;
    queue_close(q);
    bench_store_empty();
    return (double)put / took;
}

static void run_removal(void)
{
    double always = bare(TAKE, "FULL", true, jobs, BATCH);
    double everysec = bare(TAKE, "NORMAL", true, jobs, BATCH);

    level = DUE_DURABLE_ALWAYS;
    note("always: dequeue, batches of 256", "jobs/s", removal(false), always);
    note("always: reserve and ack, the same", "jobs/s", removal(true), always);
    level = DUE_DURABLE_EVERYSEC;
    note("everysec: dequeue, batches of 256", "jobs/s", removal(false), everysec);
    note("everysec: reserve and ack, the same", "jobs/s", removal(true), everysec);
}

/* ---- Opening ---- */

static void run_restore(void)
{
    level = DUE_DURABLE_EVERYSEC;
    due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

    loaded();
    size_t put = put_batches(q, 1, due_now(q) + DUE_S(3600), HOURS);
    queue_close(q);
    double begin = now();
    q = queue_open(DUE_CONFIRM_SYNC, 0);
    double opened = now() - begin;
    due_spec spec = spec_at(due_now(q) + DUE_S(3600));
    must(due_enqueue(q, &spec, 0, NULL));
    double accepted = now() - begin;
    loaded();
    double took = now() - begin;
    note("restore", "jobs/s", (double)put / took, bare(READ, "NORMAL", true, jobs, BATCH));
    note("open, until the call returns", "ms", opened * 1e3, 0);
    note("open, until a job is confirmed", "ms", accepted * 1e3, 0);
    queue_close(q);
    bench_store_empty();
}

/* ---- Beside beanstalkd ---- */

static void run_beanstalkd(void)
{
    struct beanstalkd b;
    size_t few = jobs / 100 > 100 ? jobs / 100 : 100;
    size_t some = jobs / 10 / BATCH * BATCH;

    if (some < BATCH)
        some = BATCH;
    if (!beanstalkd_start(&b, folder, 0)) {
        fprintf(stderr, "beanstalkd is not installed: it is left out\n");
        return;
    }
    double one = (double)few / beanstalkd_put(&b, 1, few, 1, PAYLOAD, 3600);
    double many = (double)some / beanstalkd_put(&b, 64, some, 1, PAYLOAD, 3600);
    double ahead = (double)some / beanstalkd_put(&b, 1, some, BATCH, PAYLOAD, 3600);
    (void)beanstalkd_put(&b, 1, some, BATCH, PAYLOAD, 0);
    double take = (double)some / beanstalkd_take(&b, some, BATCH);
    beanstalkd_stop(&b);

    level = DUE_DURABLE_ALWAYS;
    note("beanstalkd: enqueue, one caller", "jobs/s", callers(1, few, 0), one);
    note("beanstalkd: enqueue, 64 callers", "jobs/s", callers(64, jobs / 4, 0), many);
    note("beanstalkd: enqueue, 256 ahead", "jobs/s", batches(), ahead);
    note("beanstalkd: reserve and ack, 256 ahead", "jobs/s", removal(true), take);
}

/* ---- Room ---- */

static void run_size(void)
{
    due_queue *q;

    level = DUE_DURABLE_EVERYSEC;
    q = queue_open(DUE_CONFIRM_SYNC, 0);
    loaded();
    size_t put = put_batches(q, 1, 1, HOURS);
    queue_close(q);
    double full = bytes_of(path, "");
    note("file, of jobs that wait", "bytes a job", full / (double)put, 0);
    q = queue_open(DUE_CONFIRM_SYNC, 0);
    loaded();
    share(1, take_share, &(struct share){ .q = q, .jobs = put });
    double end = now() + (full > 16e6 ? 30 : 0); /* less than that is kept */
    while (bytes_of(path, "") > full / 10 && now() < end)
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    queue_close(q);
    note("file, when all are done", "of that", bytes_of(path, "") / full, 0);
    bench_store_empty();
}

static const struct part parts[] = { { "always", run_always },         { "everysec", run_everysec },
                                     { "removal", run_removal },       { "restore", run_restore },
                                     { "beanstalkd", run_beanstalkd }, { "size", run_size } };

int main(int argc, char **argv)
{
    const char *where = getenv("TMPDIR");
    const char *only = NULL;

    if (!arguments(argc, argv, &only))
        return 2;
    snprintf(folder, sizeof folder, "%.200s/due-bench-XXXXXX", where != NULL ? where : "/var/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/jobs.db", folder);
    run_parts(parts, sizeof parts / sizeof *parts, only);
    (void)rmdir(folder);
    print_rows();
    return 0;
}
