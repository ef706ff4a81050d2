/* A link and a real server: bytes as they are, pipelines, passwords, databases. */
#include "lab/redis/redis_link_lab.h"

#include <stdlib.h>

#include "lab/redis/redis_server.h"

/* A server, and a link to it; NULL: there is no redis-server here. */
static struct due__link *start(struct redis_server *server, const char *const *options)
{
    int rc = redis_server_start(server, options);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip("redis-server is not installed");
    cr_assert_eq(rc, 0);
    struct due__link *l = link_to(server->url);
    link_is_up(l);
    return l;
}

static void set(struct due__link *l, const char *key, const void *value, size_t len)
{
    due__link_command(l, 3);
    due__link_text(l, "SET");
    due__link_text(l, key);
    due__link_bytes(l, value, len);
}

static void comes_back(struct due__link *l, const void *value, size_t len)
{
    redisReply *reply;

    set(l, "key", value, len);
    due__link_words(l, 2, (const char *const[]){ "GET", "key" });
    cr_assert_eq(due__link_send(l, in_ns(DUE_S(20))), 0);
    cr_assert_str_eq(link_hears(l), "OK");
    cr_assert_eq(due__link_reply(l, &reply, in_ns(DUE_S(20))), 0);
    cr_assert_eq(reply->type, REDIS_REPLY_STRING);
    cr_assert_eq(reply->len, len);
    cr_expect_eq(memcmp(reply->str, value, len), 0);
    freeReplyObject(reply);
}

Test(real, bytes_come_back_as_they_went, .timeout = 120)
{
    static const char *const texts[] = { "", "\r\n", "$5\r\nhello\r\n",
                                         "*1\r\n$8\r\nFLUSHALL\r\n" };
    static const char nul[] = "a\0b\0\0c";
    static char big[1 << 20];
    struct redis_server server;
    struct due__link *l = start(&server, NULL);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        comes_back(l, texts[i], strlen(texts[i]));
    comes_back(l, nul, sizeof nul);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    comes_back(l, big, sizeof big);
    comes_back(l, "small", 5);
    due__link_free(l);
    redis_server_stop(&server);
}

Test(real, a_thousand_commands_go_in_one_send, .timeout = 120)
{
    struct redis_server server;
    struct due__link *l = start(&server, NULL);
    char key[32];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(key, sizeof key, "key%d", i);
            due__link_command(l, 3);
            due__link_text(l, i % 2 == 0 ? "SET" : "ECHO");
            due__link_text(l, key);
            due__link_number(l, i % 3 == 0 ? INT64_MIN : i);
        }
        cr_assert_eq(due__link_send(l, in_ns(DUE_S(20))), 0);
        cr_expect_eq(due__link_pending(l), 1000u);
        for (int i = 0; i < 1000; i++) {
            const char *text = link_hears(l);

            cr_assert(i % 2 == 0 ? strcmp(text, "OK") == 0 : strncmp(text, "ERR wrong", 9) == 0);
        }
    }
    due__link_words(l, 2, (const char *const[]){ "GET", "key600" });
    cr_assert_eq(due__link_send(l, in_ns(DUE_S(20))), 0);
    cr_expect_str_eq(link_hears(l), "-9223372036854775808");
    due__link_free(l);
    redis_server_stop(&server);
}

Test(real, databases_are_kept_apart, .timeout = 120)
{
    struct redis_server server;
    struct due__link *l = start(&server, NULL);
    char url[160];
    bool fresh;

    comes_back(l, "zero", 4);
    snprintf(url, sizeof url, "%s?db=7", server.url);
    struct due__link *other = link_to(url);
    link_is_up(other);
    due__link_words(other, 2, (const char *const[]){ "EXISTS", "key" });
    due__link_words(other, 2, (const char *const[]){ "CLIENT", "GETNAME" });
    cr_assert_eq(due__link_send(other, in_ns(DUE_S(20))), 0);
    redisReply *reply;
    cr_assert_eq(due__link_reply(other, &reply, in_ns(DUE_S(20))), 0);
    cr_expect_eq(reply->integer, 0);
    freeReplyObject(reply);
    cr_expect_str_eq(link_hears(other), "t");
    due__link_free(other);
    snprintf(url, sizeof url, "%s?db=16", server.url); /* it has 16 */
    other = link_to(url);
    cr_expect_eq(due__link_up(other, &fresh, in_ns(DUE_S(20))), DUE_EACCES);
    cr_expect_str_eq(due__link_trouble(other), "the server refuses the database");
    due__link_free(other);
    due__link_free(l);
    redis_server_stop(&server);
}

static int up_with(const struct redis_server *server, const char *user)
{
    char url[256];
    bool fresh;

    snprintf(url, sizeof url, "unix://%s%s%s", user, user[0] != '\0' ? "@" : "", server->socket);
    struct due__link *l = link_to(url);
    int rc = due__link_up(l, &fresh, in_ns(DUE_S(20)));
    cr_expect_null(strstr(due__link_trouble(l), "canary"));
    due__link_free(l);
    return rc;
}

Test(real, a_password_must_be_right, .timeout = 120)
{
    static const char *const options[] = { "--requirepass", "canary:right", "--user", "only", "on",
                                           ">canary",       "+ping",        NULL };
    struct redis_server server;
    int rc = redis_server_start(&server, options);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip("redis-server is not installed");
    cr_assert_eq(rc, 0);
    cr_expect_eq(up_with(&server, ":canary%3Aright"), 0);
    cr_expect_eq(up_with(&server, "default:canary%3Aright"), 0);
    cr_expect_eq(up_with(&server, "only:canary"), 0);
    cr_expect_eq(up_with(&server, ":canary%3Awrong"), DUE_EACCES);
    cr_expect_eq(up_with(&server, "only:canary%3Aright"), DUE_EACCES);
    cr_expect_eq(up_with(&server, "nobody:canary%3Aright"), DUE_EACCES);
    cr_expect_eq(up_with(&server, ""), DUE_EACCES);
    redis_server_stop(&server);
}

Test(real, a_password_where_none_is_wanted_is_refused, .timeout = 120)
{
    struct redis_server server;
    struct due__link *l = start(&server, NULL);

    cr_expect_eq(up_with(&server, ":canary"), DUE_EACCES);
    due__link_free(l);
    redis_server_stop(&server);
}

Test(real, a_server_may_be_killed_and_started_again, .timeout = 120)
{
    struct redis_server server;
    struct due__link *l = start(&server, NULL);

    comes_back(l, "value", 5);
    redis_server_kill(&server);
    cr_expect_eq(link_asks(l, "PING"), DUE_EAGAIN);
    cr_expect_not(due__link_is_up(l));
    cr_assert_eq(redis_server_run(&server), 0);
    link_is_up(l);
    comes_back(l, "value", 5);
    cr_expect_eq(due__link_count(l).connects, 2u);
    due__link_free(l);
    redis_server_stop(&server);
}
