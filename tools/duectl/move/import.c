/* import.c - lines into a store, for `duectl import`.
 *
 * They come from standard input, or from a source that makes them.  They are put in batches, as
 * they come.  Jobs keep their ids, and an id belongs to the opening
 * that gave it: so the store is opened once more, with a higher number, where a line has a higher
 * one than ours.  At the end the store is read back, and must show exactly what the lines say.
 */
#define _GNU_SOURCE
#include "move/move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH          1024
#define READ           ((size_t)1 << 16)
#define LINE_MAX_BYTES (((size_t)1 << 31) + READ)
#define SLACK          16 /* writers that are passed over when the store is opened yet again */

/* A line that waits for its batch. */
struct slot {
    char *line; /* what its job points into */
    struct ctl_dump dump;
};

struct import {
    struct ctl_look look;
    struct ctl_source *source; /* NULL: standard input */
    struct ctl_hold hold;
    struct due__ctl_buffer input; /* what was read and is no line yet */
    struct due__ctl_buffer text;  /* a line, written anew */
    size_t passed;                /* of the input: lines that were taken out */
    uint64_t number;              /* of the line */
    uint64_t batch;
    uint64_t slack;
    struct slot *slots;
    due_change *changes;
    size_t n;
    size_t bytes; /* of the payloads that wait */
    struct ctl_filter filter;
    struct ctl_digest wanted, there; /* the lines; what the store shows */
    uint64_t jobs, keys;             /* lines */
    uint64_t before;                 /* of them, jobs that were there already */
    uint64_t suspect;                /* the first line whose key perhaps came before; 0: none */
    bool begun, ended;               /* the first line was there; the last */
    bool typed;                      /* by somebody at a terminal: he sees how far he has come */
    uint64_t bytes_read, bytes_all;  /* of the input; 0: nobody knows how long it is */
};

/* ---- Faults ---------------------------------------------------------------------------------- */

static int fault(const struct import *im, size_t at, const char *reason)
{
    ctl_progress_end();
    ctl_object_begin();
    if (im->source != NULL) {
        fprintf(stderr, "duectl: %s: %s\n", im->source->at, reason);
        ctl_object_text("source", im->source->at);
    } else {
        fprintf(stderr, "-:%" PRIu64 ":%zu: %s\n", im->number, at + 1, reason);
        ctl_object_number("line", im->number);
        ctl_object_number("column", at + 1);
    }
    ctl_object_text("text", reason);
    ctl_object_end();
    return CTL_FAULTS;
}

static int no_memory(void)
{
    fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
    return CTL_BROKEN;
}

/* ---- Into the store -------------------------------------------------------------------------- */

/* What waits lands. */
static int flush(struct import *im)
{
    int rc = im->n == 0 ? 0 : ctl_hold_commit(&im->hold, im->changes, im->n, im->batch + 1);

    im->batch += im->n > 0;
    for (size_t i = 0; i < im->n; i++)
        free(im->slots[i].line);
    im->n = im->bytes = 0;
    return rc == 0 ? 0 : CTL_BROKEN;
}

/* The opening that gave an id. */
static uint64_t writer_of(const due_id *id)
{
    uint64_t writer = 0;

    for (int i = 1; i <= 6; i++)
        writer = writer << 8 | id->byte[i];
    return writer;
}

/* The queue's next openings must give higher numbers than any that came with a job. */
static int rise(struct import *im, uint64_t writer)
{
    int status = flush(im);

    if (status != 0)
        return status;
    status = ctl_hold_close(&im->hold);
    if (status != 0)
        return status;
    status = ctl_hold_open(&im->hold, &im->look, true, writer + im->slack);
    im->slack = im->slack == 0 ? SLACK : 2 * im->slack;
    im->batch = 0;
    return status;
}

/* ---- What is there already ------------------------------------------------------------------- */

static int visit_same(void *ctx, const due_record *record)
{
    struct import *im = ctx;
    struct due__ctl_buffer text = { 0 };

    ctl_dump_job(&text, record);
    bool same = text.len == im->text.len && memcmp(text.bytes, im->text.bytes, text.len) == 0;
    due__ctl_buffer_free(&text);
    im->hold.stopped = !same;
    return same ? 0 : DUE_EEXIST;
}

/* The job of the line is in the store, or waits (@maybe), perhaps.  0: it is not; 1: it is, as the
 * line says; or an exit status, negative. */
static int look_up(struct import *im, const struct ctl_dump *d, bool maybe)
{
    int status = maybe ? flush(im) : 0;

    if (status != 0)
        return -status;
    int rc = ctl_hold_find(&im->hold, d->record.id, visit_same, im);
    if (rc == DUE_ENOENT)
        return 0;
    bool differs = rc == DUE_EEXIST && im->hold.stopped;
    if (rc != 0 && !differs)
        return -CTL_BROKEN;
    if (im->source != NULL && (differs || !im->look.again))
        return -fault(im, 0,
                      im->look.again ? "it is there already, and was another then"
                                     : "it was met before: its queues are in use");
    if (differs)
        return -fault(im, 0, "another job of this id is there already");
    return im->look.again ? 1 : -fault(im, 0, "the same job stood in a line before");
}

static int visit_deadline(void *ctx, const due_record *record)
{
    *(int64_t *)ctx = record->deadline_ns;
    return 0;
}

/* For a source: the job of this id is in the store, with this deadline: 1; it is not: 0; or an exit
 * status, negative. */
static int find_deadline(void *ctx, due_id id, int64_t *deadline_ns)
{
    struct import *im = ctx;

    if (!im->look.again || im->look.check)
        return 0;
    int rc = ctl_hold_find(&im->hold, id, visit_deadline, deadline_ns);
    return rc == 0 ? 1 : rc == DUE_ENOENT ? 0 : -CTL_BROKEN;
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* The change takes over the line. */
static int wait_for_batch(struct import *im, const struct ctl_dump *d, char *line)
{
    struct slot *slot = &im->slots[im->n];
    due_change *change = &im->changes[im->n];

    slot->line = line;
    slot->dump = *d;
    *change = (due_change){ .kind = DUE_CHANGE_PUT, .is_new = 1, .was_kept = im->look.again };
    if (d->kind == CTL_DUMP_KEY) {
        change->kind = DUE_CHANGE_KEEP;
        change->is_new = 0;
        change->key_kept_ns = d->kept_until_ns;
    }
    change->record = d->record;
    change->record.topic = slot->dump.topic;
    change->record.reason = slot->dump.reason;
    if (d->record.retry != NULL)
        change->record.retry = &slot->dump.retry;
    im->n++;
    im->bytes += d->record.len;
    bool full = im->n == BATCH || im->n == im->hold.info.batch_changes ||
                im->bytes >= im->hold.info.batch_bytes;
    return full ? flush(im) : 0;
}

static void note_key(struct import *im, const due_record *r)
{
    if (r->key_len > 0 && ctl_filter_add(&im->filter, ctl_hash(r->key, r->key_len)) &&
        im->suspect == 0)
        im->suspect = im->number;
}

/* A job, or a kept key.  *@line is NULL afterwards if it was taken over. */
static int put(struct import *im, const struct ctl_dump *d, char **line)
{
    const due_record *r = &d->record;
    uint64_t writer = writer_of(&r->id);
    size_t most = im->hold.info.payload_max;
    int status = 0;

    if (d->kind == CTL_DUMP_JOB && most != 0 && r->len > most)
        return fault(im, 0, "this store takes no payload so large");
    if (writer > im->hold.info.writer)
        status = rise(im, writer);
    if (status == 0 && d->kind == CTL_DUMP_JOB) {
        bool maybe = ctl_filter_add(&im->filter, ctl_hash(r->id.byte, sizeof r->id.byte));
        int there = maybe || im->look.again ? look_up(im, d, maybe) : 0;

        if (there > 0) {
            im->before++;
            note_key(im, r);
            return 0;
        }
        status = -there;
    }
    if (status != 0)
        return status;
    note_key(im, r);
    if (im->n > 0 && im->bytes + r->len > im->hold.info.batch_bytes)
        status = flush(im);
    if (status == 0) {
        status = wait_for_batch(im, d, *line);
        *line = NULL;
    }
    return status;
}

/* The first line, and the last. */
static int take_frame(struct import *im, const struct ctl_dump *d)
{
    if (d->kind == CTL_DUMP_HEAD && im->begun)
        return fault(im, 0, "a second beginning: import one export at a time");
    if (d->kind == CTL_DUMP_HEAD && d->version != CTL_DUMP_VERSION)
        return fault(im, 0, "written by another version of duectl: use that one");
    if (d->kind == CTL_DUMP_END && ((uint64_t)d->jobs != im->jobs || (uint64_t)d->keys != im->keys))
        return fault(im, 0, "so many lines of jobs and keys there were not: some are missing");
    im->begun = true;
    im->ended = d->kind == CTL_DUMP_END;
    return 0;
}

/* *@line is NULL afterwards if it was taken over. */
static int take_line(struct import *im, char **line, size_t len)
{
    struct due__ctl_json j = { .line = *line, .len = len };
    struct ctl_dump d;

    if (!ctl_dump_read(&d, &j))
        return fault(im, j.at, j.fault);
    if (im->ended)
        return fault(im, 0, "something stands behind the last line");
    if (!im->begun && d.kind != CTL_DUMP_HEAD)
        return fault(im, 0, "expected {\"due_export\":1}: is this an export?");
    if (d.kind == CTL_DUMP_HEAD || d.kind == CTL_DUMP_END)
        return take_frame(im, &d);
    im->text.len = 0;
    if (d.kind == CTL_DUMP_JOB)
        ctl_dump_job(&im->text, &d.record);
    else
        ctl_dump_key(&im->text, d.record.key, d.record.key_len, d.record.id, d.kept_until_ns);
    if (im->text.failed)
        return no_memory();
    ctl_digest_add(&im->wanted, &im->text);
    im->jobs += d.kind == CTL_DUMP_JOB;
    im->keys += d.kind == CTL_DUMP_KEY;
    return im->look.check ? 0 : put(im, &d, line);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void show_progress(const struct import *im)
{
    if (im->bytes_all > 0)
        ctl_progress("import: bytes", im->bytes_read, im->bytes_all);
    else if (!im->typed)
        ctl_progress("import: lines", im->number, 0);
}

/* Each job keeps the line that it stands in. */
static int copy_and_take(struct import *im, const char *at, size_t len)
{
    char *line = malloc(len + 1);

    im->number++;
    show_progress(im);
    if (line == NULL)
        return no_memory();
    memcpy(line, at, len);
    int status = take_line(im, &line, len);
    free(line);
    return status;
}

/* The same for a source. */
static int take_made(void *ctx, const char *line, size_t len)
{
    return copy_and_take(ctx, line, len);
}

/* More of the input: 1; 0: it has ended; or a negative exit status. */
static int read_more(struct import *im)
{
    struct due__ctl_buffer *b = &im->input;

    if (im->passed > 0) {
        memmove(b->bytes, b->bytes + im->passed, b->len - im->passed);
        b->len -= im->passed;
        im->passed = 0;
    }
    if (b->len > LINE_MAX_BYTES) {
        im->number++;
        return -fault(im, b->len, "the line is too long");
    }
    if (!due__ctl_buffer_grow(b, READ))
        return -no_memory();
    ssize_t n;
    do
        n = read(STDIN_FILENO, b->bytes + b->len, b->room - b->len);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        fprintf(stderr, "duectl: standard input: %s\n", strerror(errno));
        return -CTL_BROKEN;
    }
    b->len += (size_t)n;
    im->bytes_read += (uint64_t)n;
    return n > 0;
}

/* The next line: 1, and where it is; 0: there is none; or a negative exit status. */
static int next_line(struct import *im, const char **at, size_t *len)
{
    struct due__ctl_buffer *b = &im->input;
    size_t seen = im->passed;
    int more = 1;

    for (;;) {
        char *end = b->len > seen ? memchr(b->bytes + seen, '\n', b->len - seen) : NULL;

        if (end != NULL || (more == 0 && b->len > im->passed)) {
            *at = b->bytes + im->passed;
            *len = end != NULL ? (size_t)(end - *at) : b->len - im->passed;
            im->passed += *len + (end != NULL);
            return 1;
        }
        if (more <= 0)
            return more;
        seen = b->len - im->passed;
        more = read_more(im);
    }
}

/* All the lines that are left.  With --check, also behind a fault. */
static int take_lines(struct import *im)
{
    const char *at = NULL;
    size_t len = 0;
    int worst = 0;
    int more;

    while ((more = next_line(im, &at, &len)) > 0) {
        int status = copy_and_take(im, at, len);

        if (status != 0 && (!im->look.check || status != CTL_FAULTS))
            return status;
        worst = status != 0 ? status : worst;
    }
    if (more < 0)
        return -more;
    im->number++;
    if (!im->ended && worst == 0)
        return fault(im, 0, "the last line is missing: the export was cut off");
    return worst;
}

/* ---- Before and after ------------------------------------------------------------------------ */

static int stop_at_once(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct import *im = ctx;

    (void)key;
    (void)len;
    (void)id;
    (void)until_ns;
    im->hold.stopped = true;
    return DUE_EEXIST;
}

static int check_empty(struct import *im)
{
    int rc = im->hold.info.jobs > 0 ? DUE_EEXIST : ctl_hold_keys(&im->hold, stop_at_once, im);

    if (rc == 0)
        return 0;
    if (rc != DUE_EEXIST)
        return CTL_BROKEN;
    fprintf(stderr,
            "duectl: the queue %s holds %" PRIu64 " jobs, or kept keys: an import goes into "
            "an empty one; --again ends one that was interrupted\n",
            im->look.queue, im->hold.info.jobs);
    return CTL_FAULTS;
}

static int add_job(void *ctx, const due_record *record)
{
    struct import *im = ctx;

    im->text.len = 0;
    ctl_dump_job(&im->text, record);
    ctl_digest_add(&im->there, &im->text);
    ctl_progress("import: jobs read back", im->there.lines, im->wanted.lines);
    return im->text.failed ? DUE_ENOMEM : 0;
}

static int add_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct import *im = ctx;

    im->text.len = 0;
    ctl_dump_key(&im->text, key, len, id, until_ns);
    ctl_digest_add(&im->there, &im->text);
    return im->text.failed ? DUE_ENOMEM : 0;
}

/* Is all there, and nothing else? */
static int read_back(struct import *im)
{
    if (ctl_hold_load(&im->hold, add_job, im) != 0 || ctl_hold_keys(&im->hold, add_key, im) != 0)
        return CTL_BROKEN;
    ctl_progress_end();
    if (ctl_digest_same(&im->wanted, &im->there))
        return CTL_FINE;
    fprintf(stderr,
            "duectl: the store does not hold exactly what the lines say: %" PRIu64
            " of them, %" PRIu64 " there\n",
            im->wanted.lines, im->there.lines);
    if (im->suspect > 0)
        fprintf(stderr, "duectl: -:%" PRIu64 ": its key stood in a line before, perhaps\n",
                im->suspect);
    return CTL_FAULTS;
}

/* The first line is looked at before a store is opened, which may make it. */
static int import(struct import *im)
{
    const char *at = NULL;
    size_t len = 0;
    int more = next_line(im, &at, &len);

    if (more < 0)
        return -more;
    if (more == 0) {
        im->number = 1;
        return fault(im, 0, "there is nothing to import");
    }
    int status = copy_and_take(im, at, len);
    if (im->look.check) {
        int rest = take_lines(im);
        return status > rest ? status : rest;
    }
    if (status == 0)
        status = ctl_hold_open(&im->hold, &im->look, false, 0);
    if (status == 0 && !im->look.again)
        status = check_empty(im);
    if (status == 0)
        status = take_lines(im);
    if (status == 0)
        status = flush(im);
    return status == 0 ? read_back(im) : status;
}

/* The source has been opened; it says itself what it cannot give. */
static int import_from(struct import *im)
{
    struct ctl_lines lines = { take_made, find_deadline, im };
    int status = 0;

    im->begun = true;
    if (!im->look.check)
        status = ctl_hold_open(&im->hold, &im->look, false, 0);
    if (status == 0 && !im->look.check && !im->look.again)
        status = check_empty(im);
    if (status == 0)
        status = im->source->read(im->source, &lines);
    if (status == 0 && !im->look.check)
        status = flush(im);
    return status == 0 && !im->look.check ? read_back(im) : status;
}

/* How long it is, if it is a file. */
static void look_at_input(struct import *im)
{
    struct stat input;
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);

    if (im->source != NULL)
        return;
    im->typed = isatty(STDIN_FILENO);
    if (fstat(STDIN_FILENO, &input) == 0 && S_ISREG(input.st_mode) && at >= 0 && input.st_size > at)
        im->bytes_all = (uint64_t)(input.st_size - at);
}

static void say_end(const struct import *im, int status)
{
    bool check = im->look.check;
    char before[48] = "";

    ctl_progress_end();
    if (status != 0 && im->hold.store != NULL && im->batch > 0)
        fprintf(stderr, "duectl: the import is not complete: --again goes on with it\n");
    if (im->before > 0)
        snprintf(before, sizeof before, "; %" PRIu64 " were there", im->before);
    if (status == 0)
        ctl_report_line(CTL_PLAIN, "%s %" PRIu64 " jobs, %" PRIu64 " kept keys%s",
                        check ? "fine   " : "put    ", im->jobs - im->before, im->keys, before);
    ctl_object_begin();
    ctl_object_flag("complete", status == 0);
    if (status == 0) { /* else some of what was read was not put */
        ctl_object_number("jobs", im->jobs - im->before);
        ctl_object_number("kept_keys", im->keys);
        ctl_object_number("before", im->before);
    }
    ctl_object_end();
}

int ctl_import_lines(const struct ctl_look *look, struct ctl_source *source)
{
    struct import im = { .look = *look, .source = source };

    look_at_input(&im);
    im.slots = calloc(BATCH, sizeof *im.slots);
    im.changes = calloc(BATCH, sizeof *im.changes);
    ctl_filter_open(&im.filter);
    int status;

    if (im.slots == NULL || im.changes == NULL || im.filter.bits == NULL)
        status = no_memory();
    else
        status = source != NULL ? import_from(&im) : import(&im);
    say_end(&im, status);
    ctl_urls_forget();
    if (ctl_hold_close(&im.hold) != 0)
        status = CTL_BROKEN;
    for (size_t i = 0; i < im.n; i++)
        free(im.slots[i].line);
    free(im.slots);
    free(im.changes);
    ctl_filter_close(&im.filter);
    due__ctl_buffer_free(&im.input);
    due__ctl_buffer_free(&im.text);
    return status;
}
