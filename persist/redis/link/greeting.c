/* greeting.c - the first commands on a connection: AUTH, SELECT, CLIENT SETNAME, PING.
 *
 * PING is the only one of them that a server refuses while it loads, and is there for that.
 */
#include "redis/link/greeting.h"

#include <hiredis.h>
#include <string.h>

#include "redis/os/secret.h"
#include "redis/resp/reply.h"

static void begin(struct due__greeting *g, enum due__greeting_kind kind, size_t arguments)
{
    g->kinds[g->n++] = kind;
    due__bytes_command(&g->bytes, arguments);
}

static void write_auth(struct due__greeting *g, const char *user, const char *password)
{
    begin(g, DUE__GREETING_AUTH, user != NULL ? 3 : 2);
    due__bytes_text(&g->bytes, "AUTH");
    if (user != NULL)
        due__bytes_text(&g->bytes, user);
    due__bytes_secret(&g->bytes, password);
}

static size_t length(const char *text)
{
    return text != NULL ? due__secret_length(text, SIZE_MAX / 8) : 0;
}

bool due__greeting_write(struct due__greeting *g, struct due__address *a, const char *name)
{
    size_t room = 512 + length(a->user) + length(a->password) + length(name);

    *g = (struct due__greeting){ .bytes = { .room = room, .fixed = true } };
    g->bytes.at = due__secret_new(room);
    if (g->bytes.at == NULL)
        return false;
    if (a->password != NULL)
        write_auth(g, a->user, a->password);
    if (a->db != 0) {
        begin(g, DUE__GREETING_SELECT, 2);
        due__bytes_text(&g->bytes, "SELECT");
        due__bytes_number(&g->bytes, a->db);
    }
    if (length(name) > 0) {
        begin(g, DUE__GREETING_NAME, 3);
        due__bytes_text(&g->bytes, "CLIENT");
        due__bytes_text(&g->bytes, "SETNAME");
        due__bytes_text(&g->bytes, name);
    }
    begin(g, DUE__GREETING_PING, 1);
    due__bytes_text(&g->bytes, "PING");
    due__secret_free(a->password);
    a->password = NULL;
    return !g->bytes.failed;
}

void due__greeting_free(struct due__greeting *g)
{
    due__secret_free(g->bytes.at);
    *g = (struct due__greeting){ 0 };
}

/* A user who may not say this may all the same say what matters. */
static bool is_forbidden(const struct redisReply *reply)
{
    return due__reply_is_unknown(reply) ||
           (reply->len >= 6 && memcmp(reply->str, "NOPERM", 6) == 0);
}

int due__greeting_judge(const struct due__greeting *g, size_t i, const struct redisReply *reply,
                        const char **trouble)
{
    static const char *const refused[] = {
        [DUE__GREETING_AUTH] = "the server refuses the user or the password",
        [DUE__GREETING_SELECT] = "the server refuses the database",
        [DUE__GREETING_NAME] = "the server wants a password",
        [DUE__GREETING_PING] = "the server wants a password, or no clients from here",
    };
    enum due__greeting_kind kind = g->kinds[i];
    bool polite = kind == DUE__GREETING_NAME || kind == DUE__GREETING_PING;

    *trouble = refused[kind];
    switch (due__reply_classify(reply)) {
    case DUE__REPLY_FINE:
        *trouble = "the server is none of Redis's kind";
        return reply->type == REDIS_REPLY_STATUS ? 0 : DUE_ESTORE;
    case DUE__REPLY_AGAIN:
        *trouble = "the server is not ready yet, or has too many clients";
        return DUE_ESTORE;
    case DUE__REPLY_DENIED:
        return polite && is_forbidden(reply) ? 0 : DUE_EACCES;
    default:
        return polite ? 0 : DUE_EACCES;
    }
}
