/* command.c - `duectl import`: its options, and where its lines come from. */
#include "foreign/foreign.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: duectl import [OPTION]... [URL] <FILE\n"
    "       duectl import --from KIND --source URL [OPTION]... [URL]\n"
    "\n"
    "Puts what `duectl export` has written into a store, byte for byte, ids and all, and looks at "
    "the\n"
    "end whether all of it is there.  The queue must be empty, and nobody may have it open.  URL "
    "is "
    "a\n"
    "Redis, or the path of a file, which is made; without one it is that of the environment "
    "variable\n"
    "DUE_STORE_URL.  With --from it puts the jobs there that another library keeps in a Redis, "
    "which\n"
    "stays as it is.\n"
    "\n"
    "  --again        the queue holds what an import of the same lines has left that was "
    "interrupted:\n"
    "                 put what is missing\n"
    "  --check        only say which lines, or jobs, cannot be read; no store is needed\n"
    "  --json         each line or job that cannot be put is a line of JSON, and the last has the\n"
    "                 numbers\n"
    "  --from KIND    read the jobs of delayqueue, asynq or bullmq\n"
    "  --source URL   the Redis where these are\n"
    "  --source-queue NAME   which of their queues; may be given more than once (asynq: all)\n"
    "  --source-prefix TEXT  what their keys begin with (dp; asynq; bull)\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 all is there; 1 a line cannot be put, a job cannot be carried over, or the "
    "queue\n"
    "is not empty; 2 wrong usage; 3 no connection, or the queue is somebody else's, or it is "
    "full.\n";

static bool take_again(struct ctl_look *look, const char *value)
{
    (void)value;
    look->again = true;
    return true;
}

static bool take_check(struct ctl_look *look, const char *value)
{
    (void)value;
    look->check = true;
    return true;
}

static bool take_from(struct ctl_look *look, const char *value)
{
    if (strcmp(value, "delayqueue") != 0 && strcmp(value, "asynq") != 0 &&
        strcmp(value, "bullmq") != 0)
        return ctl_look_wrong(look, "--from takes delayqueue, asynq or bullmq", value);
    look->from.kind = value;
    return true;
}

static bool take_source(struct ctl_look *look, const char *value)
{
    look->from.url = value;
    return true;
}

static bool take_queue(struct ctl_look *look, const char *value)
{
    if (value[0] == '\0' || strlen(value) > DUE_TOPIC_LENGTH)
        return ctl_look_wrong(look, "--source-queue takes a name of 1 to 255 bytes", value);
    if (look->from.queue_count == CTL_TOPICS_MAX)
        return ctl_look_wrong(look, "64 times at most", "--source-queue");
    look->from.queues[look->from.queue_count++] = value;
    return true;
}

static bool take_prefix(struct ctl_look *look, const char *value)
{
    if (value[0] == '\0' || strlen(value) > DUE_TOPIC_LENGTH)
        return ctl_look_wrong(look, "--source-prefix takes 1 to 255 bytes", value);
    look->from.prefix = value;
    return true;
}

static bool take_json(struct ctl_look *look, const char *value)
{
    (void)value;
    look->json = true;
    return true;
}

static int import_go(struct ctl_look *look)
{
    const struct ctl_from *from = &look->from;
    int status = CTL_USAGE;

    ctl_report_begin(look->json);
    if (from->kind == NULL && (from->url != NULL || from->prefix != NULL || from->queue_count > 0))
        (void)ctl_look_wrong(look, "goes with --from",
                             from->url != NULL      ? "--source"
                             : from->prefix != NULL ? "--source-prefix"
                                                    : "--source-queue");
    else if (from->kind == NULL)
        status = ctl_import_lines(look, NULL);
    else if (from->url == NULL)
        (void)ctl_look_wrong(look, "it needs --source URL", "--from");
    else if (from->queue_count == 0 && strcmp(from->kind, "asynq") != 0)
        (void)ctl_look_wrong(look, "of these it needs --source-queue NAME", "--from");
    else
        status = ctl_foreign_import(look);
    ctl_urls_forget();
    return ctl_report_end(status);
}

static const struct ctl_look_option own[] = {
    { "again", false, take_again, NULL },
    { "check", false, take_check, NULL },
    { "json", false, take_json, NULL },
    { "from", true, take_from, "delayqueue asynq bullmq" },
    { "source", true, take_source, NULL },
    { "source-queue", true, take_queue, NULL },
    { "source-prefix", true, take_prefix, NULL }
};

const struct ctl_command ctl_import = {
    "import", usage, CTL_URL_ONLY, own, sizeof own / sizeof own[0], import_go
};
