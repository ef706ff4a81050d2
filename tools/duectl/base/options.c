/* options.c - the command line of `run`, `work` and `check`. */
#define _GNU_SOURCE
#include "base/base.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXEC = 256,
    WORKERS,
    REPLAY,
    SPEED,
    STATS,
    GRACE,
    STORE,
    QUEUE,
    ACK_LINES,
    STANDBY,
    REQUIRE,
    ASSUME,
    RETRY,
    ATTEMPTS,
    TOPIC,
    CONTROL,
    ZONE,
    SHARED,
    JSON,
    HELP
};

static const struct option run_options[] = {
    { "exec", required_argument, NULL, EXEC },
    { "workers", required_argument, NULL, WORKERS },
    { "grace", required_argument, NULL, GRACE },
    { "replay", no_argument, NULL, REPLAY },
    { "zone", required_argument, NULL, ZONE },
    { "speed", required_argument, NULL, SPEED },
    { "stats", no_argument, NULL, STATS },
    { "store", required_argument, NULL, STORE },
    { "queue", required_argument, NULL, QUEUE },
    { "ack-lines", no_argument, NULL, ACK_LINES },
    { "control", required_argument, NULL, CONTROL },
    { "standby", no_argument, NULL, STANDBY },
    { "require", required_argument, NULL, REQUIRE },
    { "assume", required_argument, NULL, ASSUME },
    { "retry", required_argument, NULL, RETRY },
    { "attempts", required_argument, NULL, ATTEMPTS },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static const struct option work_options[] = {
    { "exec", required_argument, NULL, EXEC },
    { "workers", required_argument, NULL, WORKERS },
    { "grace", required_argument, NULL, GRACE },
    { "stats", no_argument, NULL, STATS },
    { "store", required_argument, NULL, STORE },
    { "queue", required_argument, NULL, QUEUE },
    { "standby", no_argument, NULL, STANDBY },
    { "require", required_argument, NULL, REQUIRE },
    { "assume", required_argument, NULL, ASSUME },
    { "retry", required_argument, NULL, RETRY },
    { "attempts", required_argument, NULL, ATTEMPTS },
    { "topic", required_argument, NULL, TOPIC },
    { "control", required_argument, NULL, CONTROL },
    { "shared", no_argument, NULL, SHARED },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static const struct option check_options[] = {
    { "json", no_argument, NULL, JSON },
    { "zone", required_argument, NULL, ZONE },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static bool wrong(const char *what, const char *value)
{
    fprintf(stderr, "duectl: %s: %s\n", value, what);
    return false;
}

static bool read_workers(const char *text, int *workers)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };
    int64_t value;

    if (ctl_digits_read(&c, 9, &value) == 0 || c.at < c.len || value < 1 || value > CTL_WORKERS_MAX)
        return wrong("--workers takes a number from 1 to 256", text);
    *workers = (int)value;
    return true;
}

static bool read_attempts(const char *text, uint32_t *attempts)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };
    int64_t value;

    if (ctl_digits_read(&c, 9, &value) == 0 || c.at < c.len || value < 1)
        return wrong("--attempts takes a number from 1 to 999999999", text);
    *attempts = (uint32_t)value;
    return true;
}

static bool read_retry(const char *text, struct ctl_options *options)
{
    options->retries = true;
    return ctl_retry_read(text, &options->retry) ||
           wrong("--retry takes a time such as 5s, a range such as 1s..1h, or a list of up to 16 "
                 "times such as 1m,10m,1h",
                 text);
}

static bool take_topic(const char *text, struct ctl_options *options)
{
    if (options->topic_count == CTL_TOPICS_MAX || strlen(text) > DUE_TOPIC_LENGTH)
        return wrong("--topic takes a name of up to 255 bytes, at most 64 times", text);
    options->topics[options->topic_count++] = text;
    return true;
}

static bool read_zone(const char *text, struct ctl_options *options)
{
    options->zone = ctl_zone_of(text);
    return options->zone != NULL || wrong("--zone takes the name of a time zone", text);
}

static bool read_speed(const char *text, double *speed)
{
    static const char reason[] = "--speed takes a number from 0.000001 to 1000000000";
    char *end;

    *speed = strtod(text, &end);
    if (end == text || *end != '\0' || strspn(text, "0123456789.") != strlen(text))
        return wrong(reason, text);
    return (*speed >= 1e-6 && *speed <= 1e9) || wrong(reason, text);
}

static bool read_grace(const char *text, int64_t *ns)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };

    if (c.len == 0 || !ctl_delay_read(&c, ns) || c.at < c.len)
        return wrong("--grace takes a time such as 5s", text);
    return true;
}

bool ctl_is_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n >= 1 && n <= 64 && name[n] == '\0';
}

bool ctl_durability_read(const char *option, const char *text, enum due_durability *level)
{
    static const struct {
        const char *name;
        enum due_durability level;
    } levels[] = { { "none", DUE_DURABLE_NONE },
                   { "everysec", DUE_DURABLE_EVERYSEC },
                   { "always", DUE_DURABLE_ALWAYS } };

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(text, levels[i].name) == 0) {
            *level = levels[i].level;
            return true;
        }
    }
    fprintf(stderr, "duectl: %s: %s takes none, everysec or always\n", text, option);
    return false;
}

/* Options of a run whose jobs are stored. */
static bool take_store_option(struct ctl_options *options, int option, const char *value)
{
    switch (option) {
    case STORE:
        options->store = ctl_url_of(value);
        return true;
    case QUEUE:
        options->queue = value;
        return ctl_is_name(value) || wrong("--queue takes 1 to 64 of A-Z a-z 0-9 . _ -", value);
    case CONTROL:
        options->control = value;
        return true;
    case ACK_LINES:
        options->ack_lines = true;
        return true;
    case STANDBY:
        options->standby = true;
        return true;
    case SHARED:
        options->shared = true;
        return true;
    case ASSUME:
        return ctl_durability_read("--assume", value, &options->assume);
    default:
        return ctl_durability_read("--require", value, &options->require);
    }
}

static bool take_option(struct ctl_options *options, int option, const char *value)
{
    switch (option) {
    case EXEC:
        options->exec = value;
        return true;
    case WORKERS:
        return read_workers(value, &options->workers);
    case GRACE:
        return read_grace(value, &options->grace_ns);
    case REPLAY:
        options->replay = true;
        return true;
    case SPEED:
        return read_speed(value, &options->speed);
    case STATS:
        options->stats = true;
        return true;
    case RETRY:
        return read_retry(value, options);
    case ATTEMPTS:
        return read_attempts(value, &options->attempts);
    case TOPIC:
        return take_topic(value, options);
    case ZONE:
        return read_zone(value, options);
    case JSON:
        options->json = true;
        return true;
    case HELP:
        options->help = true;
        return true;
    default:
        return take_store_option(options, option, value);
    }
}

/* Options that say something only together with others. */
static bool belong_together(const struct ctl_options *options, const bool *given)
{
    static const struct {
        int option;
        const char *name;
    } of_store[] = { { QUEUE, "--queue" },     { ACK_LINES, "--ack-lines" },
                     { CONTROL, "--control" }, { STANDBY, "--standby" },
                     { REQUIRE, "--require" }, { ASSUME, "--assume" } };

    if (given[WORKERS - EXEC] && options->exec == NULL)
        return wrong("goes with --exec", "--workers");
    if (given[SPEED - EXEC] && !options->replay)
        return wrong("goes with --replay", "--speed");
    if (given[GRACE - EXEC] && options->exec == NULL)
        return wrong("goes with --exec", "--grace");
    if (given[RETRY - EXEC] && options->exec == NULL)
        return wrong("goes with --exec", "--retry");
    if (given[ATTEMPTS - EXEC] && !options->retries)
        return wrong("goes with --retry", "--attempts");
    for (size_t i = 0; i < sizeof of_store / sizeof of_store[0]; i++) {
        if (given[of_store[i].option - EXEC] && options->store == NULL)
            return wrong("goes with --store", of_store[i].name);
    }
    return true;
}

/* Of `work`: it needs a command and a queue, and tries again unless told how. */
static bool for_work(struct ctl_options *options)
{
    if (options->exec == NULL)
        return wrong("needs --exec", "work");
    if (options->store == NULL)
        return wrong("needs a URL, or the variable DUE_STORE_URL", "work");
    if (options->shared && options->standby)
        return wrong("goes without --shared: nobody has to go first", "--standby");
    return true;
}

static void set_defaults(struct ctl_options *options, const char *command)
{
    bool work = strcmp(command, "work") == 0;

    *options = (struct ctl_options){ .workers = 1, .speed = 1, .grace_ns = DUE_S(5) };
    options->queue = "duectl";
    options->zone = ctl_zone_of(NULL);
    options->attempts = CTL_ATTEMPTS;
    options->store = work || strcmp(command, "run") == 0 ? ctl_url_of(NULL) : NULL;
    options->retries = work;
    options->retry.kind = DUE_RETRY_EXPONENTIAL;
    options->retry.delay_ns = DUE_S(1);
    options->retry.cap_ns = DUE_S(3600);
}

/* A URL, which may also be given with --store, and a file; of `work`, which reads none, the path of
 * a store too. */
static bool take_operands(struct ctl_options *options, char **operands, const char *command,
                          bool url)
{
    bool check = strcmp(command, "check") == 0;
    bool work = strcmp(command, "work") == 0;

    for (; *operands != NULL; operands++) {
        bool is_url = work || (!check && ctl_is_url(*operands));

        if (is_url && url)
            return wrong("one URL at most", *operands);
        if (!is_url && options->file != NULL)
            return wrong("one file at most", *operands);
        if (is_url)
            options->store = ctl_url_of(*operands);
        else
            options->file = *operands;
        url = url || is_url;
    }
    return true;
}

static const struct option *known_to(const char *command)
{
    if (strcmp(command, "run") == 0)
        return run_options;
    return strcmp(command, "work") == 0 ? work_options : check_options;
}

/* What a value may be: words, or a file; NULL: anything. */
static const char *values_of(int option)
{
    if (option == REQUIRE || option == ASSUME)
        return "none everysec always";
    return option == STORE || option == CONTROL ? "FILE" : NULL;
}

void ctl_options_show(const char *command, ctl_option_visit *visit, void *ctx)
{
    for (const struct option *o = known_to(command); o->name != NULL; o++)
        visit(ctx, o->name, o->has_arg == required_argument, values_of(o->val));
}

bool ctl_options_read(struct ctl_options *options, int argc, char **argv)
{
    const char *command = argv[0];
    const struct option *known = known_to(command);
    bool given[HELP - EXEC + 1] = { false };
    int option;

    set_defaults(options, command);
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == ':')
            return wrong("an argument is missing", argv[optind - 1]);
        if (option == '?')
            return wrong("no such option", argv[optind - 1]);
        if (!take_option(options, option == 'h' ? HELP : option, optarg))
            return false;
        if (option != 'h')
            given[option - EXEC] = true;
    }
    if (!take_operands(options, argv + optind, command, given[STORE - EXEC]))
        return false;
    if (options->help)
        return true;
    return strcmp(command, "work") == 0 ? for_work(options) : belong_together(options, given);
}
