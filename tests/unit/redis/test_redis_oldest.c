/* test_redis_oldest.c - the commands and options that we use are those of Redis 6.2, the oldest
 * server that we take, whatever the server of the tests has besides.
 */
#include "lab/redis/redis_store_lab.h"
#include "lab/redis/redis_user.h"

#define OLDEST "6.2.0"

static const char *const commands[] = { REDIS_USER_MAY, REDIS_USER_BESIDES };
static const char *const options[] = { REDIS_USER_OPTIONS };

static bool is_later(const char *since)
{
    int have[3] = { 0 };
    int oldest[3] = { 0 };

    cr_assert_eq(sscanf(since, "%d.%d.%d", &have[0], &have[1], &have[2]), 3, "%s", since);
    cr_assert_eq(sscanf(OLDEST, "%d.%d.%d", &oldest[0], &oldest[1], &oldest[2]), 3);
    for (int i = 0; i < 3; i++)
        if (have[i] != oldest[i])
            return have[i] > oldest[i];
    return false;
}

/* What stands behind @name in an array of names and values, or NULL. */
static const redisReply *value_of(const redisReply *map, const char *name)
{
    for (size_t i = 0; i + 1 < map->elements; i += 2)
        if (due__reply_is_text(map->element[i]) && strcmp(map->element[i]->str, name) == 0)
            return map->element[i + 1];
    return NULL;
}

static const char *text_of(const redisReply *map, const char *name)
{
    const redisReply *value = value_of(map, name);

    return value != NULL && due__reply_is_text(value) ? value->str : NULL;
}

/* What the server says of a command, the caller's; NULL if it has none of this name. */
static redisReply *docs_of(const char *command)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    const char *bytes = ASK("COMMAND", "DOCS", command);

    cr_assert_not_null(reader);
    cr_assert_eq(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    cr_assert_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    cr_assert_not_null(reply, "%s: there was no room for all of the answer", command);
    redisReaderFree(reader);
    return reply;
}

/* Since when there is the argument of this name or token: it is no older than what it stands in.
 * NULL: there is none. */
static const char *since_of(const redisReply *arguments, const char *option, const char *since)
{
    for (size_t i = 0; arguments != NULL && i < arguments->elements; i++) {
        const redisReply *argument = arguments->element[i];
        const char *own = text_of(argument, "since");
        const char *names[] = { text_of(argument, "token"), text_of(argument, "name") };

        if (own == NULL)
            own = since;
        for (size_t k = 0; k < 2; k++)
            if (names[k] != NULL && strcmp(names[k], option) == 0)
                return own;
        own = since_of(value_of(argument, "arguments"), option, own);
        if (own != NULL)
            return own;
    }
    return NULL;
}

static void check_option(const char *option)
{
    char command[32];
    const char *word = strchr(option, ' ') + 1;

    snprintf(command, sizeof command, "%.*s", (int)(word - option) - 1, option);
    redisReply *docs = docs_of(command);
    cr_assert_eq(docs->elements, 2u, "%s", command);
    const redisReply *of = docs->element[1];
    const char *since = since_of(value_of(of, "arguments"), word, text_of(of, "since"));
    if (since == NULL)
        cr_expect_fail("%s: there is no such option", option);
    else
        cr_expect_not(is_later(since), "%s: since %s", option, since);
    freeReplyObject(docs);
}

REDIS_TEST(redis_oldest, server_has_all_that_is_said)
{
    if (ASK("COMMAND", "DOCS", "ping")[0] == '-')
        cr_skip_test("this server does not say since when it has what"); /* 6.2 itself */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *command = commands[i] + (commands[i][0] == '+');
        redisReply *docs = docs_of(command);

        cr_assert_eq(docs->elements, 2u, "%s: there is no such command", command);
        const char *since = text_of(docs->element[1], "since");
        cr_assert_not_null(since, "%s", command);
        cr_expect_not(is_later(since), "%s: since %s", command, since);
        freeReplyObject(docs);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        check_option(options[i]);
}

/* It would be told: what came later is seen to be later. */
REDIS_TEST(redis_oldest, what_came_later_is_seen)
{
    if (ASK("COMMAND", "DOCS", "ping")[0] == '-')
        cr_skip_test("this server does not say since when it has what");
    redisReply *docs = docs_of("expiretime");
    cr_assert_eq(docs->elements, 2u);
    cr_expect(is_later(text_of(docs->element[1], "since")));
    freeReplyObject(docs);
    docs = docs_of("pexpire");
    const redisReply *of = docs->element[1];
    cr_expect(is_later(since_of(value_of(of, "arguments"), "GT", text_of(of, "since"))));
    freeReplyObject(docs);
    cr_expect_not(is_later(OLDEST));
    cr_expect(is_later("7.0.0") && is_later("6.2.1") && is_later("10.0.0"));
    cr_expect_not(is_later("6.0.9"));
}
