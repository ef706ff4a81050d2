/* export.c - `duectl export`: all that a store holds, as lines. */
#include "move/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char usage[] =
    "usage: duectl export [OPTION]... [URL] >FILE\n"
    "\n"
    "Writes all that a stored queue holds to standard output, a line of JSON a job: what waits, "
    "what\n"
    "is dead, and the keys that are kept.  `duectl import` puts it into another store, byte for "
    "byte.\n"
    "It owns the queue for that time, so nobody else may have it open.  URL is a Redis, or the "
    "path\n"
    "of a file; without one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --salvage      of a file whose pages are damaged: whatever can be read; it says what is\n"
    "                 lost.  The file stays as it is, and nobody need own it\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 all of it is written; 1 some of it cannot be read, or there is no such queue; "
    "2\n"
    "wrong usage; 3 no connection, or the queue is somebody else's, or the output fails.\n";

struct export
{
    struct ctl_hold hold;
    struct due__ctl_buffer line;
    uint64_t jobs, keys;
    uint64_t strange; /* jobs that no line can say */
    bool flows;       /* to a terminal, which shows how far it is */
};

/* Write the line.  0, or what ends the call. */
static int put(struct export *e)
{
    bool fine = !e->line.failed && fwrite(e->line.bytes, 1, e->line.len, stdout) == e->line.len;

    if (e->line.failed)
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
    e->hold.stopped = !fine;
    return fine ? 0 : DUE_ESTORE;
}

static int put_job(void *ctx, const due_record *record)
{
    struct export *e = ctx;
    char id[DUE_ID_TEXT];

    if (record->until_ns < 0 || record->deadline_ns < 0 || record->expires_ns < 0) {
        ctl_progress_end();
        fprintf(stderr, "duectl: job %s has a time before 1970: it is left out\n",
                due_id_format(record->id, id));
        e->strange++;
        return 0;
    }
    e->line.len = 0;
    ctl_dump_job(&e->line, record);
    e->jobs++;
    if (!e->flows)
        ctl_progress("export: jobs", e->jobs, e->hold.info.jobs);
    return put(e);
}

static int put_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct export *e = ctx;

    e->line.len = 0;
    ctl_dump_key(&e->line, key, len, id, until_ns);
    e->keys++;
    return put(e);
}

static int write_all(struct export *e)
{
    ctl_dump_head(&e->line);
    if (put(e) != 0 || ctl_hold_load(&e->hold, put_job, e) != 0 ||
        ctl_hold_keys(&e->hold, put_key, e) != 0)
        return CTL_BROKEN;
    e->line.len = 0;
    ctl_dump_end(&e->line, e->jobs, e->keys);
    if (put(e) != 0)
        return CTL_BROKEN;
    if (e->jobs >= e->hold.info.jobs)
        return e->strange > 0 ? CTL_FAULTS : CTL_FINE;
    ctl_progress_end();
    fprintf(stderr, "duectl: %" PRIu64 " stored jobs cannot be read: they are left out\n",
            e->hold.info.jobs - e->jobs);
    return CTL_FAULTS;
}

/* ---- Of a damaged file ----------------------------------------------------------------------- */

static bool salvage_job(void *ctx, due_id id, int rc, const due_record *record)
{
    struct export *e = ctx;
    char text[DUE_ID_TEXT];

    if (rc == 0)
        return put_job(e, record) == 0;
    ctl_progress_end();
    fprintf(stderr, "duectl: job %s is lost: %s\n", due_id_format(id, text), due_error_text(rc));
    e->strange++;
    return true;
}

static int salvage(struct export *e, const char *path)
{
    bool all = false;

    ctl_dump_head(&e->line);
    int status = put(e) == 0 ? ctl_file_salvage(path, salvage_job, put_key, e, &all) : CTL_BROKEN;
    if (status != 0)
        return status;
    e->line.len = 0;
    ctl_dump_end(&e->line, e->jobs, e->keys);
    if (put(e) != 0)
        return CTL_BROKEN;
    ctl_progress_end();
    fprintf(stderr,
            "duectl: %" PRIu64 " jobs and %" PRIu64 " kept keys are saved; %" PRIu64
            " jobs are lost that are known\n",
            e->jobs, e->keys, e->strange);
    if (!all)
        fputs("duectl: perhaps more is lost: an index, or the keys, cannot be read to the end\n",
              stderr);
    return e->strange > 0 || !all ? CTL_FAULTS : CTL_FINE;
}

static bool take_salvage(struct ctl_look *look, const char *value)
{
    (void)value;
    look->salvage = true;
    return true;
}

static int export_go(struct ctl_look *look)
{
    struct export e = { .flows = isatty(STDOUT_FILENO) };
    const char *path = ctl_file_of(look->url);

    if (look->salvage && path == NULL) {
        (void)ctl_look_wrong(look, "goes with a file", "--salvage");
        return CTL_USAGE;
    }
    int status = look->salvage ? salvage(&e, path) : ctl_hold_open(&e.hold, look, true, 0);
    ctl_urls_forget();
    if (status == 0 && !look->salvage)
        status = write_all(&e);
    ctl_progress_end();
    if (ctl_hold_close(&e.hold) != 0)
        status = CTL_BROKEN;
    due__ctl_buffer_free(&e.line);
    return fflush(stdout) != 0 ? CTL_BROKEN : status;
}

static const struct ctl_look_option own[] = { { "salvage", false, take_salvage, NULL } };

const struct ctl_command ctl_export = { "export", usage, CTL_URL_ONLY, own, 1, export_go };
