/* store_power.c - a file on a disk that fails, and on one that loses its power.
 *
 * A script of batches is run once for each call to the disk.  That one fails, once, and the batches
 * are seen through as a queue does; in the end, and when the file is opened again, all is as it
 * should be.  And, run without a fault, the disk is cut after each of its steps, with what was not
 * synced there or not: the file is opened, is sound, and has what was confirmed by then.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef DUE_HAVE_SQLITE

#include "lab/sqlite/disk_vfs.h"
#include "lab/sqlite/sqlite_desk.h"

#define JOBS    24
#define BATCHES 24
#define DICE    2 /* times that each prefix is cut */

/* What should be stored: until when each job waits, 0 if it is not there. */
struct world {
    int64_t until_ns[JOBS];
};

static struct world worlds[BATCHES + 1]; /* after each batch */
static size_t confirmed[BATCHES + 1];    /* steps of the disk when it was */
static char payload[3000];

/* ---- The script ---- */

static size_t write_batch(unsigned number, struct world *w, due_change changes[4])
{
    static const unsigned steps[] = { 1, 5, 11 };
    size_t n = 0;

    for (unsigned i = 0; i < 3; i++) {
        unsigned job = (number * steps[i] + i) % JOBS;
        due_change *c = &changes[n];
        bool again = false;

        for (size_t k = 0; k < n; k++)
            again |= changes[k].record.id.byte[13] == job;
        if (again)
            continue;
        *c = (due_change){ .kind = DUE_CHANGE_PUT,
                           .record = sqlite_desk_record((unsigned char)job),
                           .was_ns = w->until_ns[job] };
        c->record.data = payload;
        c->record.len = number % 7 == 0 ? sizeof payload : 40;
        c->record.until_ns = c->record.deadline_ns = number * 100 + job + 1;
        if (w->until_ns[job] != 0)
            c->kind = number % 3 == 0 ? DUE_CHANGE_DROP : DUE_CHANGE_MOVE;
        w->until_ns[job] = c->kind == DUE_CHANGE_DROP ? 0 : c->record.until_ns;
        n++;
    }
    return n;
}

/* As a queue sees a batch through.  Answers how many times it had to be asked. */
static int see_through(struct sqlite_desk *d, const due_change *changes, size_t n, uint64_t number)
{
    for (int asked = 1; asked < 20; asked++) {
        int64_t until_ns = crew_now_ns() + DUE_S(5);
        int rc = d->store->verbs->commit(d->store, changes, n, number, until_ns);

        if (rc == 0)
            return asked;
        if (rc == DUE_EAGAIN)
            (void)d->store->verbs->ready(d->store, until_ns);
        CREW_CHECK(rc == DUE_EAGAIN || rc == DUE_EINDOUBT || rc == DUE_ENOSPC, ": batch %d: %s: %s",
                   (int)number, due_error_name(rc), d->log);
    }
    CREW_CHECK(false, ": batch %d does not end: %s", (int)number, d->log);
    return 0;
}

static void run_script(struct sqlite_desk *d)
{
    struct world w = { { 0 } };

    confirmed[0] = disk.n;
    for (unsigned number = 1; number <= BATCHES; number++) {
        due_change changes[4];
        size_t n = write_batch(number, &w, changes);

        see_through(d, changes, n, number);
        worlds[number] = w;
        confirmed[number] = disk.n;
    }
}

/* ---- What is there ---- */

static int see(void *ctx, const due_record *record)
{
    struct world *w = ctx;

    w->until_ns[record->id.byte[13]] = record->until_ns;
    return 0;
}

static void look(struct sqlite_desk *d, struct world *w)
{
    int rc = 1;

    *w = (struct world){ { 0 } };
    for (int rewind = 1; rc == 1 || rc == DUE_EAGAIN; rewind = 0)
        rc = d->store->verbs->load(d->store, rewind, 10, see, w, crew_now_ns() + DUE_S(5));
    CREW_CHECK(rc == 0, ": load: %s", due_error_name(rc));
}

static bool same(const struct world *a, const struct world *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- A disk that fails ---- */

static unsigned fail_each(enum due_durability level, int code)
{
    unsigned long n = 1;
    bool more = true;

    for (; more; n++) {
        struct sqlite_desk d;
        struct world found;

        sqlite_desk_begin(&d);
        d.place.options.durability = level;
        disk_begin(d.place.path);
        CREW_CHECK(sqlite_desk_open(&d) == 0, ": %s", d.error.text);
        disk.calls = 0;
        disk.fails = n;
        disk.code = code;
        run_script(&d);
        more = disk.failed;
        look(&d, &found);
        CREW_CHECK(same(&found, &worlds[BATCHES]), ": call %lu failed: not all is there", n);
        sqlite_desk_shut(&d);
        CREW_CHECK(sqlite_desk_open(&d) == 0, ": %s", d.error.text);
        look(&d, &found);
        CREW_CHECK(same(&found, &worlds[BATCHES]), ": call %lu failed: not all stayed", n);
        sqlite_desk_end(&d);
        disk_end();
    }
    return (unsigned)n - 1;
}

/* The opening too: it fails with a clear answer, and then works. */
static unsigned fail_opening(int code)
{
    unsigned failed = 0;

    for (unsigned long n = 1;; n++) {
        struct sqlite_desk d;

        sqlite_desk_begin(&d);
        disk_begin(d.place.path);
        disk.fails = n;
        disk.code = code;
        int rc = sqlite_desk_open(&d);
        bool more = disk.failed;
        disk.fails = 0;
        CREW_CHECK(rc == 0 || (more && d.error.text[0] != '\0'), ": %s", due_error_name(rc));
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOSPC || rc == DUE_ESTORE,
                   ": call %lu: %s: %s", n, due_error_name(rc), d.error.text);
        failed += rc != 0;
        if (rc != 0)
            CREW_CHECK(sqlite_desk_open(&d) == 0, ": %s", d.error.text);
        CREW_CHECK(sqlite_desk_put(&d, 1, DUE_S(5)) == 0, "");
        sqlite_desk_end(&d);
        disk_end();
        if (!more)
            return failed;
    }
}

/* ---- A disk that loses its power ---- */

/* The last batch that was confirmed by then; and the next one may be there. */
static unsigned last_confirmed(size_t n)
{
    unsigned last = 0;

    while (last < BATCHES && confirmed[last + 1] <= n)
        last++;
    return last;
}

static void check_cut(struct sqlite_desk *d, size_t n, unsigned least)
{
    struct world found;
    unsigned last = last_confirmed(n);
    int rc = sqlite_desk_open(d);

    CREW_CHECK(rc == 0, ": cut after %zu steps: %s: %s", n, due_error_name(rc), d->error.text);
    look(d, &found);
    bool known = false;
    for (unsigned batch = least; batch <= last + 1 && batch <= BATCHES; batch++)
        known |= same(&found, &worlds[batch]);
    CREW_CHECK(known, ": cut after %zu steps, batch %u was confirmed: what is there is otherwise",
               n, last);
    CREW_CHECK(sqlite_desk_put(d, 1, DUE_S(5)) == 0, "");
    sqlite_desk_shut(d);
    sqlite3 *db = sqlite_desk_other(d);
    CREW_CHECK(strcmp(sqlite_desk_ask(db, "PRAGMA integrity_check"), "ok") == 0, "");
    sqlite3_close(db);
}

static unsigned cut_each(enum due_durability level)
{
    struct sqlite_desk d;
    uint64_t random = 7;
    unsigned cuts = 0;

    sqlite_desk_begin(&d);
    d.place.options.durability = level;
    disk_begin(d.place.path);
    disk.records = true;
    CREW_CHECK(sqlite_desk_open(&d) == 0, ": %s", d.error.text);
    run_script(&d);
    sqlite_desk_shut(&d);
    disk.records = false;
    for (size_t n = confirmed[0]; n <= disk.n; n++)
        for (unsigned dice = 0; dice < DICE; dice++) {
            disk_cut(d.place.path, n, &random);
            check_cut(&d, n, level == DUE_DURABLE_ALWAYS ? last_confirmed(n) : 0);
            cuts++;
        }
    sqlite_desk_end(&d);
    disk_end();
    return cuts;
}

int main(void)
{
    crew_watchdog("store_power", 280);
    unsigned calls = fail_each(DUE_DURABLE_ALWAYS, SQLITE_IOERR_WRITE);
    printf("power: each of %u calls to the disk has failed once\n", calls);
    calls = fail_each(DUE_DURABLE_ALWAYS, SQLITE_FULL);
    printf("power: each of %u calls, with a full disk\n", calls);
    calls = fail_opening(SQLITE_IOERR_WRITE) + fail_opening(SQLITE_FULL);
    printf("power: %u openings have failed, and worked then\n", calls);
    unsigned cuts = cut_each(DUE_DURABLE_ALWAYS);
    printf("power: cut %u times at level always\n", cuts);
    cuts = cut_each(DUE_DURABLE_EVERYSEC);
    printf("power: cut %u times at level everysec\n", cuts);
    return 0;
}

#else

int main(void)
{
    printf("store_power: built without the SQLite store\n");
    return 77;
}

#endif
