/* top.c - `duectl top`: a sample, shown, again and again. */
#define _GNU_SOURCE
#include "top/top.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVERY_NS     DUE_S(1)
#define EVERY_MIN_NS DUE_MS(100)
#define REST         4 /* of a store: a look is followed by a rest of so many times its time */

static const char usage[] =
    "usage: duectl top [OPTION]... [URL]\n"
    "\n"
    "Shows what a queue does, again and again: how many jobs a second come, go and fail; how many\n"
    "are there; for how long the oldest has been due, and how late jobs are handed out; the same "
    "by\n"
    "topic; and its workers.  The queue is that of a running program that shows its figures\n"
    "(due_figures_open), or one in a store: then URL is a Redis, or the path of a file; without "
    "one\n"
    "it is that of the environment variable DUE_STORE_URL.  On a terminal a page is drawn, until q "
    "is\n"
    "typed; elsewhere there are lines of text.\n"
    "\n"
    "  --pid PID       the queue of this process\n"
    "  --figures PATH  the queue whose figures stand in this file\n"
    "  --every TIME    how often it is looked at (1s); a store not so often if that takes long\n"
    "  --count N       end after so many looks\n"
    "  --json          a line of JSON a look\n"
    "  --topic NAME    of a store: only this topic\n"
    "  --store URL     the same as URL\n"
    "  --queue NAME    which queue: of a store (duectl), or of the process\n"
    "  --help\n"
    "\n"
    "Exit status: 0 ended by q or --count, or the queue was closed; 1 there is no such process, "
    "file\n"
    "or queue, or the program has ended without closing it; 2 wrong usage; 3 the output cannot be\n"
    "written, or there is no connection, or the server refuses; 128 and its number: stopped by a\n"
    "signal.\n";

/* ---- Options --------------------------------------------------------------------------------- */

static bool take_number(const char *value, int64_t *number)
{
    char *end;

    if (value[0] < '0' || value[0] > '9')
        return false;
    long long n = strtoll(value, &end, 10);
    *number = n;
    return *end == '\0' && n > 0 && n < INT_MAX;
}

static bool take_pid(struct ctl_look *look, const char *value)
{
    return take_number(value, &look->top.pid) ||
           ctl_look_wrong(look, "--pid takes the number of a process", value);
}

static bool take_figures(struct ctl_look *look, const char *value)
{
    look->top.figures = value;
    return value[0] != '\0' || ctl_look_wrong(look, "--figures takes a path", "''");
}

static bool take_every(struct ctl_look *look, const char *value)
{
    struct ctl_cursor c = { .text = value, .len = strlen(value) };

    return (ctl_delay_read(&c, &look->top.every_ns) && c.at == c.len &&
            look->top.every_ns >= EVERY_MIN_NS) ||
           ctl_look_wrong(look, "--every takes a time of 100ms or more, such as 2s", value);
}

static bool take_count(struct ctl_look *look, const char *value)
{
    return take_number(value, &look->top.count) ||
           ctl_look_wrong(look, "--count takes a number from 1 on", value);
}

static const struct ctl_look_option own[] = {
    { "pid", true, take_pid, NULL },         { "figures", true, take_figures, "FILE" },
    { "every", true, take_every, NULL },     { "count", true, take_count, NULL },
    { "topic", true, ctl_take_topic, NULL }, { "json", false, ctl_take_json, NULL },
};

/* ---- The loop -------------------------------------------------------------------------------- */

struct top {
    struct ctl_look *look;
    struct top_file file; /* path NULL: a store */
    struct top_store store;
    struct top_terminal terminal;
    struct top_sample *now, *before; /* the two latest that differ */
    struct top_sample samples[2];
    int64_t took_ns; /* the last look */
    int ended;       /* its exit status, or TOP_TAKEN: it goes on */
    char path[PATH_MAX];
    char named[48];
};

/* Key or signal: it is to end. */
static bool happened(struct top *t, enum top_event event)
{
    if (event == TOP_QUIT)
        t->ended = CTL_FINE;
    if (event == TOP_SIGNAL)
        t->ended = 128 + t->terminal.signal;
    return t->ended != TOP_TAKEN;
}

/* In the midst of a long look. */
static bool stop_asked(void *ctx)
{
    struct top *t = ctx;
    enum top_event event = top_terminal_wait(&t->terminal, 0);

    return happened(t, event);
}

/* TOP_TAKEN; else an exit status. */
static int look_again(struct top *t)
{
    int64_t began_ns = top_now_ns(CLOCK_MONOTONIC);
    struct top_sample *s = malloc(sizeof *s);

    if (s == NULL) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    memset(s, 0, sizeof *s);
    int status = t->file.path != NULL ? top_file_take(&t->file, s) : top_store_take(&t->store, s);
    if (status == TOP_TAKEN && t->ended == TOP_TAKEN) {
        if (s->number != t->now->number || s->opened_ns != t->now->opened_ns) {
            struct top_sample *free_one = t->before;

            t->before = t->now;
            t->now = free_one;
        }
        *t->now = *s;
    }
    free(s);
    t->took_ns = top_now_ns(CLOCK_MONOTONIC) - began_ns;
    return t->ended != TOP_TAKEN ? t->ended : status;
}

static void show(struct top *t)
{
    struct due__ctl_buffer b = { 0 };
    struct ctl_paint paint;

    if (t->terminal.shows) {
        top_terminal_take(&t->terminal);
        ctl_paint_open(&paint);
        top_page(&paint, top_terminal_rows(), t->before, t->now);
    } else {
        (t->look->json ? top_json : top_plain)(&b, t->before, t->now);
        if (b.failed || fwrite(b.bytes, 1, b.len, stdout) != b.len)
            t->ended = CTL_BROKEN;
        due__ctl_buffer_free(&b);
    }
    if (fflush(stdout) != 0)
        t->ended = CTL_BROKEN;
}

/* Until it is time, or something ends it. */
static void rest(struct top *t, int64_t until_ns)
{
    enum top_event event;

    do {
        event = top_terminal_wait(&t->terminal, until_ns);
        if (event == TOP_RESIZED)
            show(t);
    } while (!happened(t, event) && event != TOP_TIME);
}

static int go_on(struct top *t)
{
    int64_t every_ns = t->look->top.every_ns > 0 ? t->look->top.every_ns : EVERY_NS;
    int64_t next_ns = top_now_ns(CLOCK_MONOTONIC);

    for (int64_t looks = 1;; looks++) {
        int status = look_again(t);

        if (status != TOP_TAKEN)
            return status;
        show(t);
        if (t->ended != TOP_TAKEN)
            return t->ended;
        if (t->now->closed || looks == t->look->top.count)
            return CTL_FINE;
        next_ns += every_ns;
        int64_t now_ns = top_now_ns(CLOCK_MONOTONIC);
        int64_t least_ns = now_ns + (t->file.path == NULL ? REST * t->took_ns : 0);
        next_ns = next_ns > least_ns ? next_ns : least_ns;
        rest(t, next_ns);
        if (t->ended != TOP_TAKEN)
            return t->ended;
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Where the figures are: TOP_TAKEN, or an exit status. */
static int find(struct top *t)
{
    const struct ctl_look *look = t->look;

    if (look->top.figures != NULL) {
        t->file = (struct top_file){ look->top.figures, look->top.figures, -1 };
        return TOP_TAKEN;
    }
    if (look->top.pid == 0)
        return TOP_TAKEN;
    t->file = (struct top_file){ t->path, t->named, -1 };
    snprintf(t->named, sizeof t->named, "process %lld", (long long)look->top.pid);
    return top_find(t->path, sizeof t->path, look->top.pid, look->top.named ? look->queue : NULL);
}

static int top_go(struct ctl_look *look)
{
    struct top *t = calloc(1, sizeof *t);

    if (t == NULL) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    t->look = look;
    t->store = (struct top_store){ .look = look, .stop = stop_asked, .ctx = t };
    t->before = &t->samples[0];
    t->now = &t->samples[1];
    t->ended = TOP_TAKEN;
    t->file.fd = -1;
    int status = find(t);
    if (status == TOP_TAKEN)
        status = top_terminal_open(&t->terminal, !look->json);
    if (status == CTL_FINE) {
        status = go_on(t);
        top_terminal_give_back(&t->terminal);
        if (t->now->closed)
            fprintf(stderr, "duectl: the queue was closed\n");
    }
    ctl_urls_forget();
    top_file_close(&t->file);
    top_store_free(&t->store);
    free(t);
    return status;
}

const struct ctl_command ctl_top = { "top", usage, CTL_URL_ONLY, own, 6, top_go };
