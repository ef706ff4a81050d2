/* doctor.c - what a server promises, and what is to be changed. */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { PINGS = 100, TEXT = 1024 };
#define SLOW_NS DUE_MS(20)
#define SKEW_NS DUE_MS(100)

struct doctor {
    struct ctl_server server;
    const char *queue;
    enum due_durability assume;
    redisReply *info;
    const char *what; /* it was that was looked at last */
    int changes;      /* that are to be made */
};

/* Lines that belong to the one before have no name: for people that is a blank. */
static void say(struct doctor *d, const char *mark, const char *what, const char *format,
                va_list args)
{
    char text[TEXT];

    vsnprintf(text, sizeof text, format, args);
    d->what = what[0] != '\0' ? what : d->what;
    ctl_report_line(mark[0] == 'C' ? CTL_BAD : CTL_PLAIN, "%-7s %-12s %s", mark, what, text);
    ctl_object_begin();
    ctl_object_text("check", d->what);
    ctl_object_text("result", mark[0] == 'C' ? "change" : mark[0] == '\0' ? "note" : "ok");
    ctl_object_text("text", text);
    ctl_object_end();
}

static void fine(struct doctor *d, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void change(struct doctor *d, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(struct doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fine(struct doctor *d, const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(d, "ok", what, format, args);
    va_end(args);
}

static void change(struct doctor *d, const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(d, "CHANGE", what, format, args);
    va_end(args);
    d->changes++;
}

/* More of what was said before. */
static void add(struct doctor *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(d, "", "", format, args);
    va_end(args);
}

/* ---- What the server says of itself ---------------------------------------------------------- */

static void look_at_version(struct doctor *d)
{
    char redis[CTL_SHOWN];
    char valkey[CTL_SHOWN];
    char *end;
    long major;
    long minor;

    ctl_info_value(d->info, "redis_version", redis, sizeof redis);
    ctl_info_value(d->info, "valkey_version", valkey, sizeof valkey);
    major = strtol(redis, &end, 10);
    minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (redis[0] == '\0')
        change(d, "version", "unknown: permit INFO");
    else if (major < 6 || (major == 6 && minor < 2))
        change(d, "version", "Redis %s: use 6.2 or later, or Valkey 7.2", redis);
    else
        fine(d, "version", "%s %s", valkey[0] != '\0' ? "Valkey" : "Redis",
             valkey[0] != '\0' ? valkey : redis);
}

/* The value of a setting; empty: it may not be asked for. */
static bool setting(struct doctor *d, const char *name, char value[CTL_SHOWN])
{
    redisReply *answer = CTL_ASK(&d->server, "CONFIG", "GET", name);

    value[0] = '\0';
    if (answer == NULL)
        return false;
    if (due__reply_is_array(answer, 2) && due__reply_is_text(answer->element[1]))
        ctl_shown(value, answer->element[1]->str, (size_t)answer->element[1]->len);
    freeReplyObject(answer);
    return true;
}

/* The server does not say, but the caller does. */
static void judge_assumed(struct doctor *d)
{
    static const char *const names[] = { "", "none", "everysec", "always" };

    fine(d, "persistence", "unknown, and taken for %s, as --assume says", names[d->assume]);
}

static void judge_aof(struct doctor *d, const char *sync)
{
    if (sync[0] == '\0' && d->assume > DUE_DURABLE_NONE)
        judge_assumed(d);
    else if (strcmp(sync, "always") == 0) {
        fine(d, "persistence", "append-only file, synced before each answer");
        fine(d, "", "survives: the program killed, the server killed, a power cut");
    } else if (strcmp(sync, "everysec") == 0) {
        fine(d, "persistence", "append-only file, synced every second");
        fine(d, "",
             "survives: the program killed; the server killed or a power cut may lose the last "
             "second or so");
        fine(d, "", "(appendfsync always would lose nothing)");
    } else if (sync[0] == '\0') {
        change(d, "persistence",
               "append-only file, synced nobody knows how: permit config|get, or say --assume");
    } else {
        change(d, "persistence",
               "append-only file, synced when the system likes: set appendfsync "
               "to everysec or always");
    }
}

static bool look_at_persistence(struct doctor *d)
{
    char aof[CTL_SHOWN];
    char sync[CTL_SHOWN];
    char save[CTL_SHOWN];

    ctl_info_value(d->info, "aof_enabled", aof, sizeof aof);
    if (!setting(d, "appendfsync", sync) || !setting(d, "save", save))
        return false;
    if (strcmp(aof, "1") == 0) {
        judge_aof(d, sync);
    } else if (aof[0] == '\0' && d->assume > DUE_DURABLE_NONE) {
        judge_assumed(d);
    } else if (aof[0] == '\0') {
        change(d, "persistence", "unknown: permit INFO, or say --assume");
    } else {
        change(d, "persistence", "%s: set appendonly yes, and appendfsync always (or everysec)",
               save[0] != '\0' ? "a snapshot now and then" : "none");
        add(d, "survives: the program killed.  The server killed, or a power cut, loses %s,",
            save[0] != '\0' ? "all since the snapshot" : "everything");
        add(d, "unless a program that holds the jobs lives on and puts them again");
    }
    return true;
}

static void look_at_memory(struct doctor *d)
{
    char policy[CTL_SHOWN];
    char most[CTL_SHOWN];
    char used[CTL_SHOWN];

    ctl_info_value(d->info, "maxmemory_policy", policy, sizeof policy);
    ctl_info_value(d->info, "maxmemory", most, sizeof most);
    ctl_info_value(d->info, "used_memory", used, sizeof used);
    if (policy[0] == '\0')
        change(d, "eviction", "unknown: permit INFO");
    else if (strcmp(policy, "noeviction") != 0)
        change(d, "eviction", "%s may throw jobs away: set maxmemory-policy noeviction", policy);
    else
        fine(d, "eviction", "noeviction");
    if (strtoull(most, NULL, 10) > 0) {
        double share = strtod(used, NULL) / strtod(most, NULL) * 100;

        if (share > 90)
            change(d, "memory", "%.0f %% of maxmemory is used: raise it, or new jobs are refused",
                   share);
        else
            fine(d, "memory", "%.0f %% of maxmemory is used", share);
    }
}

static void look_at_role(struct doctor *d)
{
    char role[CTL_SHOWN];
    char replicas[CTL_SHOWN];

    ctl_info_value(d->info, "role", role, sizeof role);
    ctl_info_value(d->info, "connected_slaves", replicas, sizeof replicas);
    if (strcmp(role, "slave") == 0)
        change(d, "role", "a replica takes no writes: name its primary");
    else if (role[0] != '\0')
        fine(d, "role", "primary with %s replicas", replicas);
}

/* ---- What is measured ------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static bool look_at_latency(struct doctor *d)
{
    int64_t ns[PINGS];
    char shown[CTL_DURATION];
    char worst[CTL_DURATION];

    for (size_t i = 0; i < PINGS; i++) {
        ctl_progress("doctor: PINGs", i, PINGS);
        int64_t began = due__mono_ns();
        redisReply *answer = CTL_ASK(&d->server, "PING");

        if (answer == NULL)
            return false;
        freeReplyObject(answer);
        ns[i] = due__mono_ns() - began;
    }
    ctl_progress_end();
    qsort(ns, PINGS, sizeof ns[0], by_size);
    ctl_duration(shown, ns[PINGS / 2]);
    ctl_duration(worst, ns[PINGS - 1]);
    if (ns[PINGS / 2] > SLOW_NS)
        change(d, "latency", "%s (median of %d PINGs): nearer would be better", shown, PINGS);
    else
        fine(d, "latency", "%s (median of %d PINGs, the slowest %s)", shown, PINGS, worst);
    return true;
}

static int64_t real_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static bool is_number(const redisReply *r, uint64_t *number)
{
    return due__reply_is_text(r) && due__reply_digits(r->str, (size_t)r->len, number);
}

/* The server's clock was read between our two looks: half of what lies between is doubt. */
static bool look_at_clock(struct doctor *d)
{
    int64_t before = real_now();
    redisReply *answer = CTL_ASK(&d->server, "TIME");
    int64_t after = real_now();
    char shown[CTL_DURATION];

    if (answer == NULL)
        return false;
    uint64_t seconds;
    uint64_t us;
    if (!due__reply_is_array(answer, 2) || !is_number(answer->element[0], &seconds) ||
        !is_number(answer->element[1], &us) || seconds >= INT64_MAX / DUE_S(2) || us > 999999) {
        change(d, "clock", "unknown: permit TIME");
    } else {
        int64_t server = DUE_S((int64_t)seconds) + DUE_US((int64_t)us);
        int64_t skew = llabs(server - (before + (after - before) / 2));

        ctl_duration(shown, skew);
        if (skew > SKEW_NS + (after - before) / 2)
            change(d, "clock", "%s from ours: set both by NTP; deadlines are kept by ours", shown);
        else
            fine(d, "clock", "%s from ours", shown);
    }
    freeReplyObject(answer);
    return true;
}

/* ---- Permissions ----------------------------------------------------------------------------- */

/* What the library does, on a key of ours; one name for each type. */
enum key { NO_KEY, STRING, HASH, ZSET };

static const struct trial {
    enum key key;
    bool important;
    const char *words[8]; /* the key comes second */
} trials[] = {
    { STRING, true, { "SET", "1", "PX", "60000" } },
    { STRING, true, { "GET" } },
    { STRING, true, { "PEXPIRE", "60000" } },
    { STRING, true, { "PTTL" } },
    { STRING, true, { "WATCH" } },
    { NO_KEY, true, { "MULTI" } },
    { NO_KEY, true, { "EXEC" } },
    { NO_KEY, true, { "UNWATCH" } },
    { HASH, true, { "HSET", "f", "1" } },
    { HASH, true, { "PEXPIRE", "60000" } },
    { HASH, true, { "HSETNX", "f", "1" } },
    { HASH, true, { "HGET", "f" } },
    { HASH, true, { "HMGET", "f" } },
    { HASH, true, { "HLEN" } },
    { HASH, true, { "HKEYS" } },
    { HASH, false, { "HGETALL" } },
    { HASH, false, { "HSCAN", "0" } },
    { ZSET, true, { "ZADD", "1", "m" } },
    { ZSET, true, { "PEXPIRE", "60000" } },
    { ZSET, true, { "ZRANGE", "0", "1", "WITHSCORES" } },
    { ZSET, true, { "ZCOUNT", "0", "1" } },
    { ZSET, true, { "ZSCAN", "0" } },
    { ZSET, false, { "ZSCORE", "m" } },
    { ZSET, true, { "ZREM", "m" } },
    { HASH, true, { "HDEL", "f" } },
    { NO_KEY, true, { "WAIT", "0", "1" } },
    { NO_KEY, true, { "EVAL", "return 1", "0" } },
    { NO_KEY, false, { "SCAN", "0", "COUNT", "1" } },
    { STRING, true, { "DEL" } },
    { HASH, true, { "DEL" } },
    { ZSET, true, { "DEL" } },
};

/* Of a queue that many processes share, before the others. */
static const struct trial shared_trials[] = {
    { NO_KEY, true, { "SCRIPT", "LOAD", "return 1" } },
    { NO_KEY, true, { "EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0" } },
    { STRING, true, { "PUBLISH", "1" } }, /* a channel has such a name too */
    { STRING, true, { "EXISTS" } },
    { HASH, true, { "HEXISTS", "f" } },
    { ZSET, true, { "ZCARD" } },
    { ZSET, true, { "ZMSCORE", "m" } },
    { ZSET, true, { "ZRANGEBYSCORE", "0", "1" } },
};

/* What came of a trial. */
enum outcome { DONE, DENIED, UNKNOWN, READS_ONLY, NO_DISK, FULL, ELSEWHERE, LATER, NO_ANSWER };

/* What it says of writes, if any trial came to that. */
static const char *const refusals[NO_ANSWER] = {
    [READS_ONLY] = "refused, it is read-only (READONLY): name its primary",
    [NO_DISK] = "refused, its disk is full or fails (MISCONF): make room, see its log",
    [FULL] = "refused, its memory is full (OOM): raise maxmemory",
    [ELSEWHERE] = "refused, the keys are another server's of its cluster: name that one",
    [LATER] = "refused, it is loading, busy, or short of replicas: wait, and look again",
};

static enum outcome outcome_of(const redisReply *answer)
{
    switch (due__reply_classify(answer)) {
    case DUE__REPLY_FINE:
        return DONE;
    case DUE__REPLY_READONLY:
        return READS_ONLY;
    case DUE__REPLY_DISK:
        return NO_DISK;
    case DUE__REPLY_FULL:
        return FULL;
    case DUE__REPLY_ELSEWHERE:
        return ELSEWHERE;
    case DUE__REPLY_AGAIN:
        return LATER;
    default:
        return due__reply_is_unknown(answer) ? UNKNOWN : DENIED;
    }
}

static enum outcome try_one(struct doctor *d, const struct trial *t, char keys[4][192])
{
    const char *words[10] = { t->words[0] };
    size_t n = 1;
    redisReply *answer;

    if (t->key != NO_KEY)
        words[n++] = keys[t->key];
    for (size_t i = 1; i < 8 && t->words[i] != NULL; i++)
        words[n++] = t->words[i];
    answer = ctl_server_ask(&d->server, words);
    if (answer == NULL)
        return NO_ANSWER;
    enum outcome outcome = outcome_of(answer);
    freeReplyObject(answer);
    return outcome;
}

static void add_name(char *list, size_t room, const char *name)
{
    size_t len = strlen(list);

    if (strstr(list, name) == NULL)
        snprintf(list + len, room - len, " %s", name);
}

static bool is_shared(struct doctor *d)
{
    struct ctl_keys keys;

    ctl_keys_make(&keys, d->queue);
    redisReply *mode = CTL_ASK(&d->server, "HGET", keys.meta, "mode");
    bool shared = mode != NULL && due__reply_is_text(mode) && strcmp(mode->str, "shared") == 0;
    freeReplyObject(mode);
    return shared;
}

static bool look_at_permissions(struct doctor *d)
{
    static const char *const types[] = { "", "string", "hash", "zset" };
    char keys[4][192] = { "" };
    char needed[256] = "";
    char wanted[256] = "";
    char unknown[256] = "";
    bool came[NO_ANSWER] = { false };
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)due__mono_ns();
    for (size_t i = 1; i < 4; i++)
        snprintf(keys[i], sizeof keys[i], "due:{%s}:doctor:%016" PRIx64 ":%s", d->queue, random,
                 types[i]);
    size_t n = sizeof trials / sizeof trials[0];
    size_t more = is_shared(d) ? sizeof shared_trials / sizeof shared_trials[0] : 0;
    for (size_t i = 0; i < more + n; i++) {
        const struct trial *t = i < more ? &shared_trials[i] : &trials[i - more];
        enum outcome outcome = try_one(d, t, keys);

        if (outcome == NO_ANSWER)
            return false;
        if (outcome == DENIED && came[READS_ONLY] && strcmp(t->words[0], "WAIT") == 0)
            continue; /* a replica cannot */
        came[outcome] = true;
        if (outcome == UNKNOWN)
            add_name(unknown, sizeof unknown, t->words[0]);
        else if (outcome == DENIED && t->important)
            add_name(needed, sizeof needed, t->words[0]);
        else if (outcome == DENIED)
            add_name(wanted, sizeof wanted, t->words[0]);
    }
    for (size_t i = 0; i < NO_ANSWER; i++)
        if (came[i] && refusals[i] != NULL)
            change(d, "writes", "%s", refusals[i]);
    if (unknown[0] != '\0')
        change(d, "commands", "not known to it, renamed or disabled:%s", unknown);
    if (needed[0] != '\0')
        change(d, "permissions", "refused on due:{%s}:* :%s", d->queue, needed);
    else
        fine(d, "permissions", "every command that the library needs%s",
             more > 0 ? ", also for a shared queue" : "");
    if (wanted[0] != '\0')
        change(d, "permissions", "refused, and needed by duectl restore and verify:%s", wanted);
    return true;
}

/* ---- The visit ------------------------------------------------------------------------------- */

static bool look(struct doctor *d)
{
    d->info = CTL_ASK(&d->server, "INFO");
    if (d->info == NULL)
        return false;
    fine(d, "connection", "%s", d->server.where);
    look_at_version(d);
    if (!look_at_persistence(d))
        return false;
    look_at_memory(d);
    look_at_role(d);
    return look_at_latency(d) && look_at_clock(d) && look_at_permissions(d);
}

int ctl_server_doctor(const struct ctl_look *what)
{
    struct doctor d = { .changes = 0 };
    int status = ctl_server_open(&d.server, what->url);
    bool answered;

    if (status != 0)
        return status;
    ctl_urls_forget();
    d.queue = what->queue;
    d.assume = what->assume;
    answered = look(&d);
    freeReplyObject(d.info);
    ctl_server_close(&d.server);
    if (!answered)
        return CTL_BROKEN;
    ctl_object_begin();
    ctl_object_number("changes", (uint64_t)d.changes);
    ctl_object_end();
    return d.changes > 0 ? CTL_FAULTS : CTL_FINE;
}
