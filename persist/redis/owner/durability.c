/* durability.c - what the server promises to keep, and what else it is.
 *
 * INFO tells whether there is an append-only file, CONFIG how it is synced.  A server may forbid
 * CONFIG: then nobody knows, and what is not known counts for nothing, unless the caller says what
 * to take it for.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/owner/owner.h"

#define OLDEST    "6.2"
#define TOPICS_IN 131072 /* most topics that one reply may list */

/* The value of a line "name:value" of INFO; false if there is none. */
static bool info_value(const redisReply *info, const char *name, char *value, size_t room)
{
    size_t len = strlen(name);

    if (!due__reply_is_text(info))
        return false;
    for (const char *at = info->str; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            size_t n = strcspn(at + len + 1, "\r\n");
            if (n >= room)
                return false;
            memcpy(value, at + len + 1, n);
            value[n] = '\0';
            return true;
        }
    }
    return false;
}

static enum due_durability durability_of(struct due__redis *s, const redisReply *info,
                                         const redisReply *config)
{
    char aof[8];

    if (!info_value(info, "aof_enabled", aof, sizeof aof))
        return s->set.assume;
    if (strcmp(aof, "1") != 0)
        return DUE_DURABLE_NONE;
    if (!due__reply_is_array(config, 2) || !due__reply_is_text(config->element[1]))
        return s->set.assume;
    const char *sync = config->element[1]->str;
    if (strcmp(sync, "always") == 0)
        return DUE_DURABLE_ALWAYS;
    /* "no" leaves it to the system, for half a minute and longer. */
    return strcmp(sync, "everysec") == 0 ? DUE_DURABLE_EVERYSEC : DUE_DURABLE_NONE;
}

static const char *durability_name(enum due_durability d)
{
    switch (d) {
    case DUE_DURABLE_NONE:
        return "none";
    case DUE_DURABLE_EVERYSEC:
        return "everysec";
    case DUE_DURABLE_ALWAYS:
        return "always";
    default:
        return "unknown";
    }
}

/* What to do about less than is required. */
static const char *durability_hint(enum due_durability now, enum due_durability required)
{
    if (now == DUE_DURABLE_UNKNOWN)
        return "permit INFO and CONFIG GET, or say what to assume";
    return required == DUE_DURABLE_ALWAYS ? "set appendonly yes and appendfsync always"
                                          : "set appendonly yes and appendfsync everysec or always";
}

/* Less than was asked for is told once, and each time it changes. */
static int check_durability(struct due__redis *s, enum due_durability now)
{
    bool below = now < s->set.require;

    s->durability = now;
    if (below) {
        due__redis_say(s, durability_hint(now, s->set.require),
                       "durability in force is %s, required is %s", durability_name(now),
                       durability_name(s->set.require));
        if (!s->below && s->open)
            due__store_log(&s->how, DUE_LOG_ERROR, "%s", s->trouble);
    } else if (s->below) {
        due__store_log(&s->how, DUE_LOG_INFO, "the durability required is in force again");
    }
    s->below = below;
    return below ? DUE_EDURABILITY : 0;
}

static int check_version(struct due__redis *s, const redisReply *info)
{
    char version[32];
    char *end;

    if (!info_value(info, "redis_version", version, sizeof version)) {
        due__store_log(&s->how, DUE_LOG_WARNING, "the server does not tell its version");
        return 0;
    }
    long major = strtol(version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major > 6 || (major == 6 && minor >= 2))
        return 0;
    due__redis_say(s, "use Redis 6.2 or Valkey 7.2, or later",
                   "the server is Redis %.16s, older than " OLDEST, version);
    return DUE_ENOTSUP;
}

static int check_eviction(struct due__redis *s, const redisReply *info)
{
    char policy[32];

    if (!info_value(info, "maxmemory_policy", policy, sizeof policy)) {
        due__store_log(&s->how, DUE_LOG_WARNING, "the server does not tell whether it evicts keys");
        return 0;
    }
    if (strcmp(policy, "noeviction") == 0 || s->set.allow_eviction)
        return 0;
    due__redis_say(s, "maxmemory-policy noeviction, or allow eviction by name",
                   "the server may evict jobs: its maxmemory-policy is %.24s", policy);
    return DUE_EDURABILITY;
}

_Static_assert(DUE__RECORD_FRONT <= DUE__REDIS_BESIDE, "a record has room");

/* A record is one argument.  Where CONFIG is forbidden the server has what it has by default. */
static size_t payload_max(const redisReply *config)
{
    uint64_t bulk = DUE__REDIS_BULK;
    uint64_t n;

    if (due__reply_is_array(config, 2) && due__reply_is_text(config->element[1]) &&
        due__reply_digits(config->element[1]->str, (size_t)config->element[1]->len, &n) && n < bulk)
        bulk = n;
    return bulk > DUE__REDIS_BESIDE ? (size_t)bulk - DUE__REDIS_BESIDE : 1;
}

/* Only what opening looks at: the clocks, and whether the keys are what they should be. */
static int check_opening(struct due__redis *s, const redisReply *info)
{
    redisReply **kept = s->air.kept;
    int rc = check_version(s, info);

    if (rc == 0)
        rc = check_eviction(s, info);
    if (rc != 0)
        return rc;
    for (size_t i = 3; i < 8; i++) {
        enum due__reply_class class = due__redis_classify(s, kept[i]);
        if (class != DUE__REPLY_FINE)
            return due__redis_error(s, class);
    }
    for (size_t i = 3; i < 6; i++)
        if (kept[i]->type != REDIS_REPLY_INTEGER)
            return DUE_ECORRUPT;
    s->jobs = (uint64_t)kept[3]->integer;
    s->has_entries = kept[4]->integer > 0;
    if (kept[5]->integer > TOPICS_IN) {
        due__redis_say(s, "", "the stored queue has too many topics");
        return DUE_ELIMIT;
    }
    return kept[6]->type == REDIS_REPLY_STATUS && kept[7]->type == REDIS_REPLY_ARRAY ? 0
                                                                                     : DUE_ECORRUPT;
}

static void ask(struct due__redis *s, bool opening)
{
    static const char *const info[] = { "INFO" };
    static const char *const config[] = { "CONFIG", "GET", "appendfsync" };
    static const char *const bulk[] = { "CONFIG", "GET", "proto-max-bulk-len" };
    static const char *const multi[] = { "MULTI" };
    static const char *const exec[] = { "EXEC" };

    due__link_words(s->link, 1, info);
    due__link_words(s->link, 3, config);
    due__link_words(s->link, 3, bulk);
    if (!opening)
        return;
    due__redis_word(s, s->keys.jobs, 0, "HLEN");
    due__redis_word(s, s->keys.again, 0, "HLEN");
    due__redis_word(s, s->keys.topics, 0, "HLEN");
    /* Where MULTI is forbidden, what stands behind it would be done all the same. */
    due__link_words(s->link, 1, multi);
    due__link_words(s->link, 1, exec);
}

/* 0; DUE_EAGAIN; DUE_ESTORE: the link is down; what is wrong with the server. */
int due__redis_probe(struct due__redis *s, bool opening, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_PROBE, opening, until_ns);

    if (rc == 0) {
        ask(s, opening);
        rc = due__flight_start(s, DUE__FLIGHT_PROBE, opening, 0, opening ? 8 : 3, until_ns);
    }
    if (rc >= 0)
        rc = due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    char server[sizeof s->server];
    const redisReply *info = s->air.kept[0];
    enum due__reply_class class = due__reply_classify(info);

    if (class != DUE__REPLY_FINE && class != DUE__REPLY_DENIED && class != DUE__REPLY_WRONG)
        rc = due__redis_error(s, class);
    if (rc == 0 && opening)
        rc = check_opening(s, info);
    s->payload_max = payload_max(s->air.kept[2]);
    if (rc == 0) {
        due__redis_met(s, info_value(info, "run_id", server, sizeof server) ? server : "");
        rc = check_durability(s, durability_of(s, info, s->air.kept[1]));
        s->probe_due = false;
        s->probed_ns = due__boot_ns();
        if (!opening && rc == DUE_EDURABILITY)
            rc = 0;
    }
    due__flight_end(s);
    return rc;
}
