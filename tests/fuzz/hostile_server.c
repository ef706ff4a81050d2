/* hostile_server.c - a server without a thread, which answers each command as an input says.
 *
 * A byte for each reply says whether it is honest; others say how long it is, and what is in it.
 * Behind the end of the input all of them are 0, and what is answered is honest.
 */
#define _GNU_SOURCE
#include "hostile_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/record.h"

#define WORDS  4096
#define SENT   ((size_t)1 << 20) /* most bytes of commands that were not answered yet */
#define SAID   ((size_t)1 << 20) /* the same of answers */
#define QUEUED 64

/* ---- The input ------------------------------------------------------------------------------- */

static const uint8_t *input;
static size_t left;

unsigned hostile_byte(void)
{
    if (left == 0)
        return 0;
    left--;
    return *input++;
}

static int server_fd = -1;

const uint8_t *hostile_bytes(size_t *n)
{
    const uint8_t *at = input;

    *n = *n < left ? *n : left;
    input += *n;
    left -= *n;
    return at;
}

/* ---- The server ------------------------------------------------------------------------------ */

struct word {
    const char *at;
    size_t len;
};

static struct {
    char sent[SENT]; /* by the client, and not understood yet */
    size_t n_sent;
    char said[SAID]; /* and not taken yet */
    size_t n_said;
    struct word words[WORDS];
    size_t n;
    bool multi;
    char queued[QUEUED]; /* the first letter of each command in the transaction, z for ZSCORE */
    size_t n_queued;
    char fence[64];
    char owner[600];
    char incarnation[64];
    char number[32]; /* of the last batch */
    char writer[32]; /* whose */
} server;

static void forget_connection(void)
{
    server.n_sent = server.n_said = server.n_queued = 0;
    server.multi = false;
}

static void say(const void *bytes, size_t len)
{
    if (len > SAID - server.n_said)
        return; /* it stops in the middle: as good as any */
    memcpy(server.said + server.n_said, bytes, len);
    server.n_said += len;
}

static void say_line(char type, int64_t number)
{
    char line[32];

    say(line, (size_t)snprintf(line, sizeof line, "%c%" PRId64 "\r\n", type, number));
}

static void say_bulk(const void *bytes, size_t len)
{
    say_line('$', (int64_t)len);
    say(bytes, len);
    say("\r\n", 2);
}

static void say_text(const char *text)
{
    say_bulk(text, strlen(text));
}

static void say_nil(void)
{
    say("$-1\r\n", 5);
}

static bool is(size_t i, const char *text)
{
    return i < server.n && server.words[i].len == strlen(text) &&
           memcmp(server.words[i].at, text, server.words[i].len) == 0;
}

/* Does the key end so? */
static bool key_is(const char *end)
{
    size_t len = strlen(end);

    return server.n > 1 && server.words[1].len >= len &&
           memcmp(server.words[1].at + server.words[1].len - len, end, len) == 0;
}

static void keep(char *to, size_t room, size_t i)
{
    size_t len = i < server.n && server.words[i].len < room ? server.words[i].len : 0;

    if (len > 0)
        memcpy(to, server.words[i].at, len);
    to[len] = '\0';
}

/* ---- Jobs that it has ------------------------------------------------------------------------ */

due_id hostile_id(uint64_t i)
{
    due_id id = { { 255 } };

    for (size_t k = 0; k < 4; k++)
        id.byte[13 - k] = (unsigned char)(i >> (8 * k));
    return id;
}

/* A record of the job, of which some are as none should be. */
static void say_record(struct word name, unsigned how)
{
    unsigned char bytes[DUE__RECORD_FRONT + 16] = { 0 };
    due_record record = { .deadline_ns = 5000, .topic = how & 1 ? "a" : "", .len = 0 };

    if (name.len != DUE_STORE_ID_BYTES || how % 16 == 15) {
        say_nil();
        return;
    }
    memcpy(record.id.byte, name.at, name.len);
    if (how & 2) {
        record.key = "key";
        record.key_len = 3;
    }
    if (how % 16 == 14)
        record.deadline_ns = -5;
    size_t len = due__record_front(&record, bytes);
    if (how % 16 == 13)
        bytes[0] = 2;
    uint64_t check = due__record_check(record.id, bytes, len);
    due__bytes_put(bytes + 2, how % 16 == 12 ? check + 1 : check, 2);
    say_bulk(bytes, len);
}

static void say_entry(struct word name, unsigned how)
{
    unsigned char bytes[DUE__ENTRY_MOST] = { 0 };
    due_record record = { .deadline_ns = 5000, .until_ns = 9000, .topic = "", .attempts = 1 };

    if (name.len != DUE_STORE_ID_BYTES || how % 4 != 3) {
        say_nil();
        return;
    }
    memcpy(record.id.byte, name.at, name.len);
    if (how & 4) {
        record.cause = DUE_CAUSE_BURIED;
        record.died_ns = 7000;
        record.reason = "so";
    }
    say_bulk(bytes, due__entry_write(&record, bytes));
}

/* What a field of a hash holds. */
static void say_field(struct word name, unsigned how)
{
    due_id id = hostile_id(how);

    if (key_is(":j"))
        say_record(name, how);
    else if (key_is(":a"))
        say_entry(name, how);
    else if (how % 2 == 0)
        say_bulk(id.byte, DUE_STORE_ID_BYTES);
    else
        say_nil();
}

/* ---- Honest answers -------------------------------------------------------------------------- */

/* So many of them, or a few more or less. */
static size_t about(size_t n)
{
    static const size_t others[] = { 0, 1, 2, 7, 9, 64, 999, 1001, 2500 };
    unsigned how = hostile_byte();

    if (how < 200)
        return n;
    if (how < 220)
        return n + 1;
    return how < 240 && n > 0 ? n - 1 : others[how % (sizeof others / sizeof others[0])];
}

static void say_fields(size_t from)
{
    size_t n = about(server.n > from ? server.n - from : 0);
    unsigned how = hostile_byte();
    unsigned step = hostile_byte();

    say_line('*', (int64_t)n);
    for (size_t i = 0; i < n; i++)
        say_field(server.words[from + i < server.n ? from + i : 0], how + step * (unsigned)i);
}

static void say_meta(void)
{
    const char *const values[] = { "1", "1", "owner", "1", server.incarnation, server.writer, "?" };

    say_line('*', (int64_t)about(7));
    for (size_t i = 0; i < 7; i++) {
        if (server.incarnation[0] == '\0')
            say_nil();
        else
            say_text(values[i]);
    }
}

/* Of a zset: as many ids as were asked for, or fewer. */
static void say_range(void)
{
    bool scores = is(4, "WITHSCORES");
    char from[24];
    char to[24];

    keep(from, sizeof from, 2);
    keep(to, sizeof to, 3);
    int64_t first = strtoll(from, NULL, 10);
    int64_t n = strtoll(to, NULL, 10) - first + 1;
    unsigned most = (hostile_byte() + 4) * 16;
    n = n < 0 || first >= most ? 0 : n < (int64_t)most - first ? n : (int64_t)most - first;
    size_t said = about((size_t)n);
    unsigned odd = hostile_byte();

    say_line('*', (int64_t)said * (scores ? 2 : 1));
    for (size_t i = 0; i < said; i++) {
        due_id id = hostile_id((uint64_t)first + i);

        say_bulk(id.byte, odd > 240 ? odd % 16 : DUE_STORE_ID_BYTES);
        if (scores)
            say_text(odd == 240 ? "1e300" : "5");
    }
}

static void say_scan(void)
{
    static const char *const cursors[] = { "0", "0", "7", "123456789012345678901234567890", "" };
    size_t n = hostile_byte() % 40;

    say_line('*', 2);
    say_text(cursors[hostile_byte() % 5]);
    say_line('*', (int64_t)about(2 * n));
    unsigned how = hostile_byte();
    for (size_t i = 0; i < n; i++) {
        due_id id = hostile_id(i);
        struct word name = { (const char *)id.byte, DUE_STORE_ID_BYTES };

        say_bulk(name.at, how % 32 == 31 ? 3 : name.len);
        if (key_is(":j"))
            say_record(name, how + (unsigned)i);
        else
            say_text(how & 1 ? "8" : "nan");
    }
}

static void say_keys(void)
{
    static const char *const topics[] = { "", "a", "b", "c" };
    size_t n = key_is(":writers") ? server.writer[0] != '\0' : (hostile_byte() + 2) % 5;
    size_t said = about(n);

    say_line('*', (int64_t)said);
    for (size_t i = 0; i < said; i++)
        say_text(key_is(":writers") ? server.writer : topics[i % 4]);
}

static void say_config(void)
{
    say_line('*', 2);
    say_text("name");
    say_text(is(2, "appendfsync") ? "always" : "536870912");
}

static void say_get(void)
{
    const char *text = key_is(":fence") ? server.fence : server.owner;

    if (text[0] == '\0')
        say_nil();
    else
        say_text(text);
}

static void say_time(void)
{
    static const char *const times[] = { "1", "1700000000", "9223372036854", "4611686018427" };

    say_line('*', 2);
    say_text(times[hostile_byte() % 4]);
    say_text("5");
}

static void say_exec(void)
{
    size_t n = about(server.n_queued);

    server.multi = false;
    say_line('*', (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        if (i < server.n_queued && server.queued[i] == 'z')
            say_nil();
        else if (i < server.n_queued && server.queued[i] == 'S')
            say("+OK\r\n", 5);
        else
            say_line(':', 1);
    }
}

/* What a command changes, as if its transaction were sure to be carried out. */
static void note(void)
{
    if (is(0, "SET") && key_is(":fence"))
        keep(server.fence, sizeof server.fence, 2);
    if (is(0, "SET") && key_is(":owner"))
        keep(server.owner, sizeof server.owner, 2);
    if (is(0, "HSET") && key_is(":writers")) {
        keep(server.writer, sizeof server.writer, 2);
        keep(server.number, sizeof server.number, 3);
    }
    for (size_t i = 2; is(0, "HSET") && key_is(":meta") && i + 1 < server.n; i += 2)
        if (is(i, "incarnation"))
            keep(server.incarnation, sizeof server.incarnation, i + 1);
    if (is(0, "DEL") && key_is(":owner"))
        server.owner[0] = '\0';
    if (server.n_queued < QUEUED)
        server.queued[server.n_queued++] = is(0, "ZSCORE") ? 'z' : server.words[0].at[0];
}

static void say_honestly(void)
{
    static const char info[] = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n"
                               "aof_enabled:1\r\nrun_id:0123456789abcdef\r\n";
    static const struct {
        const char *name;
        void (*answer)(void);
    } table[] = { { "ZRANGE", say_range }, { "HSCAN", say_scan }, { "ZSCAN", say_scan },
                  { "HKEYS", say_keys },   { "GET", say_get },    { "CONFIG", say_config },
                  { "TIME", say_time },    { "EXEC", say_exec } };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (is(0, table[i].name)) {
            table[i].answer();
            return;
        }
    }
    if (is(0, "INFO")) {
        say_text(info);
    } else if (is(0, "HMGET") && key_is(":meta")) {
        say_meta();
    } else if (is(0, "HMGET")) {
        say_fields(2);
    } else if (is(0, "HGET") && key_is(":writers")) {
        if (server.number[0] == '\0')
            say_nil();
        else
            say_text(server.number);
    } else if (is(0, "HGET")) {
        say_field(server.words[2], hostile_byte());
    } else if (is(0, "HLEN") || is(0, "ZCOUNT") || is(0, "PTTL")) {
        say_line(':', hostile_byte());
    } else if (is(0, "PEXPIRE") || is(0, "WAIT") || is(0, "EVAL")) {
        say_line(':', 1);
    } else {
        server.multi = server.multi || is(0, "MULTI");
        server.n_queued = server.multi ? 0 : server.n_queued;
        say("+OK\r\n", 5);
    }
}

/* ---- Lies ------------------------------------------------------------------------------------ */

static void say_anything(int depth)
{
    static const int64_t numbers[] = { -1, 0, 1, 255, INT64_MAX, INT64_MIN, INT64_C(1) << 53 };
    static const char *const errors[] = {
        "-ERR unknown command 'X'\r\n",
        "-READONLY no\r\n",
        "-MISCONF no\r\n",
        "-OOM no\r\n",
        "-NOPERM no\r\n",
        "-WRONGTYPE no\r\n",
        "-LOADING no\r\n",
        "-EXECABORT no OOM\r\n",
        "-EXECABORT no\r\n",
        "-NOSCRIPT no\r\n",
        "-BUSY\r\n",
        "-\r\n",
        "-MOVED 1 a:1\r\n",
        "-NOPERM no 'zscan'\r\n",
        "-NOAUTH\r\n",
    };
    unsigned how = hostile_byte();

    if (how < 40) {
        say_line(':', numbers[hostile_byte() % 7]);
    } else if (how < 80) {
        const char *text = errors[hostile_byte() % 15];

        say(text, strlen(text));
    } else if (how < 100) {
        say_nil();
    } else if (how < 120) {
        say(how & 1 ? "+OK\r\n" : "+QUEUED\r\n", how & 1 ? 5 : 9);
    } else if (how < 160) {
        size_t len = hostile_byte();
        const uint8_t *bytes = hostile_bytes(&len);

        say_bulk(bytes, len);
    } else if (how < 230 && depth < 3) {
        size_t n = about(how % 8);

        say_line('*', (int64_t)n);
        for (size_t i = 0; i < n; i++)
            say_anything(depth + 1);
    } else {
        say("*-1\r\n", 5);
    }
}

/* Answer the command.  False: the connection is closed instead. */
static bool answer(void)
{
    unsigned how = hostile_byte();

    if (how >= 252)
        return false;
    if (how >= 248)
        return true; /* not a word */
    if (how >= 200) {
        say_anything(0);
    } else if (server.multi && !is(0, "EXEC")) {
        note();
        say("+QUEUED\r\n", 9);
    } else {
        say_honestly();
    }
    return true;
}

/* ---- Bytes in and out ------------------------------------------------------------------------ */

/* The number of a line such as "*3\r\n".  False: it is not whole. */
static bool read_number(const char **at, const char *end, size_t *number)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));

    if (stop == NULL)
        return false;
    *number = (size_t)strtoul(*at + 1, NULL, 10);
    *at = stop + 1;
    return true;
}

/* One whole command into server.words.  Answers its bytes; 0: it is not whole. */
static size_t read_command(void)
{
    const char *at = server.sent;
    const char *end = server.sent + server.n_sent;
    size_t len;

    if (!read_number(&at, end, &server.n))
        return 0;
    assert(server.n > 0 && server.n <= WORDS);
    for (size_t i = 0; i < server.n; i++) {
        if (!read_number(&at, end, &len) || (size_t)(end - at) < len + 2)
            return 0;
        server.words[i] = (struct word){ at, len };
        at += len + 2;
    }
    return (size_t)(at - server.sent);
}

static void close_server(void)
{
    close(server_fd);
    server_fd = -1;
}

void hostile_serve(void)
{
    ssize_t n;
    size_t used;

    while (server_fd >= 0 && server.n_sent < SENT - 1 &&
           (n = recv(server_fd, server.sent + server.n_sent, SENT - 1 - server.n_sent, 0)) > 0)
        server.n_sent += (size_t)n;
    server.sent[server.n_sent] = '\0';
    while (server_fd >= 0 && (used = read_command()) > 0) {
        if (!answer()) {
            close_server();
            return;
        }
        server.n_sent -= used;
        memmove(server.sent, server.sent + used, server.n_sent + 1);
    }
    n = server_fd >= 0 ? send(server_fd, server.said, server.n_said, MSG_NOSIGNAL) : 0;
    if (n > 0) {
        server.n_said -= (size_t)n;
        memmove(server.said, server.said + n, server.n_said);
    }
}

int hostile_connect(void)
{
    int pair[2];

    if (server_fd >= 0)
        close_server();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        abort();
    server_fd = pair[1];
    forget_connection();
    return pair[0];
}

void hostile_begin(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    memset(&server, 0, sizeof server);
}

void hostile_end(void)
{
    if (server_fd >= 0)
        close_server();
}
