/* address.c - where to, taken from a URL.
 *
 * The URL may hold a password, so no text of an error holds any part of it, and the password is
 * kept in pages of its own, which a core dump leaves out and which are wiped before they are given
 * back.
 *
 * Not here   Looking a host's name up: link.c.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "redis/link/link.h"
#include "redis/os/secret.h"

#define URL_MAX      ((size_t)8192)
#define HOST_MAX     ((size_t)253)
#define PATH_MAX_LEN (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define DEFAULT_PORT 6379

/* A part of the URL: not ended by a NUL. */
struct part {
    const char *at;
    size_t len;
};

static int refuse(due_error *error, int rc, const char *text, const char *hint)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        snprintf(error->hint, sizeof error->hint, "%s", hint);
    }
    return rc;
}

static int invalid(due_error *error, const char *text, const char *hint)
{
    return refuse(error, DUE_EINVAL, text, hint);
}

static int no_memory(due_error *error)
{
    return refuse(error, DUE_ENOMEM, "no memory for an address", "");
}

static int bad_bytes(due_error *error, const char *text)
{
    return invalid(error, text,
                   "percent-encode all but letters, digits and -._~; control bytes are refused");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static int hex(char c)
{
    if (is_digit(c))
        return c - '0';
    return lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

/* What stands before the first @c, which is taken away with it; or nothing and false. */
static bool cut(struct part *rest, char c, struct part *before)
{
    const char *found = due__secret_find(rest->at, c, rest->len);

    if (found == NULL)
        return false;
    *before = (struct part){ rest->at, (size_t)(found - rest->at) };
    rest->len -= before->len + 1;
    rest->at = found + 1;
    return true;
}

static bool begins(struct part *rest, const char *with)
{
    size_t len = strlen(with);

    if (rest->len < len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (lower(rest->at[i]) != with[i])
            return false;
    }
    rest->at += len;
    rest->len -= len;
    return true;
}

/* @part without its percent-encoding into @to, which has room for it and a NUL. */
static bool decode(struct part part, char *to)
{
    for (size_t i = 0; i < part.len; i++) {
        char c = part.at[i];

        if (c == '%') {
            bool whole = part.len - i > 2;
            int high = whole ? hex(part.at[i + 1]) : -1;
            int low = whole ? hex(part.at[i + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (is_control(c))
            return false;
        *to++ = c;
    }
    *to = '\0';
    return true;
}

/* A number of at most @max, of digits only. */
static bool number(struct part part, int max, int *n)
{
    int64_t sum = 0;

    if (part.len == 0 || part.len > 10)
        return false;
    for (size_t i = 0; i < part.len; i++) {
        if (!is_digit(part.at[i]))
            return false;
        sum = sum * 10 + (part.at[i] - '0');
    }
    *n = sum <= max ? (int)sum : 0;
    return sum <= max;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static int take_text(struct part part, char **to, const char *what, due_error *error)
{
    *to = malloc(part.len + 1);
    if (*to == NULL)
        return no_memory(error);
    return decode(part, *to) ? 0 : bad_bytes(error, what);
}

static int take_password(struct due__address *a, struct part part, due_error *error)
{
    a->password = due__secret_new(part.len + 1);
    if (a->password == NULL)
        return no_memory(error);
    return decode(part, a->password) ? 0 : bad_bytes(error, "the password has a bad byte in it");
}

/* "user:password" or ":password" */
static int take_user(struct due__address *a, struct part info, due_error *error)
{
    struct part user;
    int rc = 0;

    if (!cut(&info, ':', &user))
        return invalid(error, "the URL has a user without a password",
                       "write USER:PASSWORD@ or :PASSWORD@");
    if (user.len == 0 && info.len == 0)
        return invalid(error, "the URL has an empty user and an empty password",
                       "write USER:PASSWORD@ or :PASSWORD@, or leave it out with its @");
    if (user.len > 0)
        rc = take_text(user, &a->user, "the user has a bad byte in it", error);
    return rc != 0 ? rc : take_password(a, info, error);
}

/* "fe80::1" or "fe80::1%25eth0", without the brackets */
static int take_ipv6(struct due__address *a, struct part part, due_error *error)
{
    struct in6_addr ignored;
    char text[INET6_ADDRSTRLEN];
    int rc = take_text(part, &a->host, "the IPv6 address has a bad byte in it", error);

    if (rc != 0)
        return rc;
    size_t len = strcspn(a->host, "%");
    const char *zone = a->host + len;
    bool fine = len < sizeof text && strlen(zone) != 1 && strlen(zone) <= 16;

    for (const char *c = zone; *c != '\0' && fine; c++)
        fine = is_letter(*c) || is_digit(*c) || strchr("._-", *c) != NULL || c == zone;
    if (fine) {
        memcpy(text, a->host, len);
        text[len] = '\0';
        fine = inet_pton(AF_INET6, text, &ignored) == 1;
    }
    return fine ? 0 : invalid(error, "what stands in brackets is no IPv6 address", "");
}

static int take_name(struct due__address *a, struct part part, due_error *error)
{
    if (part.len == 0)
        return invalid(error, "the URL has no host", "redis://HOST:PORT/DB, or unix:///PATH");
    if (part.len > HOST_MAX)
        return invalid(error, "the host is too long", "");
    for (size_t i = 0; i < part.len; i++) {
        char c = part.at[i];

        if (!is_letter(c) && !is_digit(c) && (c == '\0' || strchr(".-_", c) == NULL))
            return invalid(
                error, "the host has a bad byte in it",
                "an IPv6 address stands in brackets; percent-encode @ : / in a password");
    }
    return take_text(part, &a->host, "the host has a bad byte in it", error);
}

/* "host", "host:port", "[::1]:port" */
static int take_host(struct due__address *a, struct part rest, due_error *error)
{
    struct part host = rest;
    struct part port = { "", 0 };
    bool has_port;
    int rc;

    if (rest.len > 0 && rest.at[0] == '[') {
        rest.at++;
        rest.len--;
        if (!cut(&rest, ']', &host) || (rest.len > 0 && rest.at[0] != ':'))
            return invalid(error, "the brackets of the host are not closed before its port", "");
        rc = take_ipv6(a, host, error);
        has_port = rest.len > 0;
        port = has_port ? (struct part){ rest.at + 1, rest.len - 1 } : port;
    } else {
        has_port = cut(&rest, ':', &host);
        port = has_port ? rest : port;
        rc = take_name(a, host, error);
    }
    if (rc != 0 || !has_port)
        return rc;
    if (port.len > 5 || !number(port, 65535, &a->port) || a->port == 0)
        return invalid(error, "the port is not a number from 1 to 65535",
                       "percent-encode : and / in a password");
    return 0;
}

static int take_db(struct due__address *a, struct part part, due_error *error)
{
    if (number(part, INT_MAX, &a->db))
        return 0;
    return invalid(error, "the database is not a number from 0 on",
                   "redis://HOST:PORT/DB, or unix:///PATH?db=DB, and nothing behind");
}

/* ---- Kinds of URL ---------------------------------------------------------------------------- */

static int parse_tcp(struct due__address *a, struct part rest, due_error *error)
{
    struct part authority = rest;
    struct part info;
    bool has_db = cut(&rest, '/', &authority);
    int rc = 0;

    a->port = DEFAULT_PORT;
    if (cut(&authority, '@', &info))
        rc = take_user(a, info, error);
    if (rc == 0)
        rc = take_host(a, authority, error);
    if (rc == 0 && has_db && rest.len > 0)
        rc = take_db(a, rest, error);
    if (rc == 0 && a->tls)
        rc = refuse(error, DUE_ENOTSUP, "TLS (rediss://) is not supported",
                    "use redis:// on a network you trust, or a local TLS tunnel and unix://");
    return rc;
}

static int take_path(struct due__address *a, struct part path, due_error *error)
{
    int rc = take_text(path, &a->path, "the path of the socket has a bad byte in it", error);

    if (rc != 0)
        return rc;
    if (strlen(a->path) > PATH_MAX_LEN)
        return invalid(error, "the path of the socket is too long", "at most 107 bytes");
    if (strlen(a->path) < 2)
        return invalid(error, "the URL has no path of a socket", "unix:///PATH/TO/SOCKET");
    return 0;
}

static int parse_unix(struct due__address *a, struct part rest, due_error *error)
{
    const char *slash = due__secret_find(rest.at, '/', rest.len);
    size_t before = slash == NULL ? rest.len : (size_t)(slash - rest.at);
    struct part authority = { rest.at, before };
    struct part path = { rest.at + before, rest.len - before };
    struct part query = path;
    struct part info;
    int rc = 0;

    if (cut(&authority, '@', &info))
        rc = take_user(a, info, error);
    if (rc == 0 && (authority.len > 0 || path.len == 0))
        rc = invalid(error, "a unix:// URL has a path, and no host before it",
                     "unix:///PATH/TO/SOCKET; percent-encode / in a password");
    if (rc != 0)
        return rc;
    if (!cut(&query, '?', &path))
        return take_path(a, path, error);
    rc = take_path(a, path, error);
    if (rc == 0 && !begins(&query, "db="))
        rc = invalid(error, "a unix:// URL has an option other than db", "unix:///PATH?db=DB");
    return rc != 0 ? rc : take_db(a, query, error);
}

static int parse(struct due__address *a, struct part rest, due_error *error)
{
    for (size_t i = 0; i < rest.len; i++) {
        if (is_control(rest.at[i]) || rest.at[i] == ' ' || rest.at[i] == '#')
            return bad_bytes(error, "the URL has a space, a # or a control byte in it");
    }
    if (begins(&rest, "redis://"))
        return parse_tcp(a, rest, error);
    if (begins(&rest, "unix://"))
        return parse_unix(a, rest, error);
    if (begins(&rest, "rediss://")) {
        a->tls = true;
        return parse_tcp(a, rest, error);
    }
    if (begins(&rest, "redis-sentinel://") || begins(&rest, "redis-cluster://"))
        return refuse(error, DUE_ENOTSUP, "Sentinel and Cluster are not supported",
                      "give the URL of one server");
    return invalid(error, "the URL does not begin with redis:// or unix://",
                   "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], or unix:///PATH[?db=DB]");
}

int due__address_parse(struct due__address *a, const char *url, due_error *error)
{
    size_t len = due__secret_length(url, URL_MAX + 1);
    int rc;

    *a = (struct due__address){ 0 };
    if (error != NULL)
        *error = (due_error){ 0 };
    if (len > URL_MAX)
        return invalid(error, "the URL is too long", "at most 8,192 bytes");
    rc = parse(a, (struct part){ url, len }, error);
    if (rc != 0)
        due__address_wipe(a);
    return rc;
}

void due__address_wipe(struct due__address *a)
{
    due__secret_free(a->password);
    free(a->user);
    free(a->host);
    free(a->path);
    *a = (struct due__address){ 0 };
}

void due__address_show(const struct due__address *a, char *text, size_t room)
{
    if (a->path != NULL)
        snprintf(text, room, "%s?db=%d", a->path, a->db);
    else if (a->host != NULL && strchr(a->host, ':') != NULL)
        snprintf(text, room, "[%s]:%d/%d", a->host, a->port, a->db);
    else
        snprintf(text, room, "%s:%d/%d", a->host != NULL ? a->host : "", a->port, a->db);
}
