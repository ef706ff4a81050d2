/* control_desk.h - a queue on a clock turned by hand, in memory or stored, behind a control socket
 * at which a test asks.
 *
 *     struct desk d = desk_open(false);
 *     desk_ask(&d, "{\"verb\":\"stats\"}");
 *     desk_says(&d, "\"waiting\":0,");
 *     desk_close(&d);
 */
#ifndef CONTROL_DESK_H
#define CONTROL_DESK_H

#include <stdio.h>

#include "due/control.h"
#include "lab/shop.h"
#include "lab/socket.h"

struct desk {
    struct shop shop; /* of a queue in memory the lab alone */
    bool stored;
    due_control *control;
    char folder[32];
    char path[48];
    char *answer; /* the last one */
};

static inline struct lab *desk_lab(struct desk *d)
{
    return &d->shop.lab;
}

static inline due_queue *desk_queue(struct desk *d)
{
    return d->shop.lab.q;
}

/* Behind a socket with these options, but for path and queue. */
static inline void desk_serve(struct desk *d, unsigned flags, due_control_options o)
{
    due_control_queue queue = { .queue = desk_queue(d), .name = "kitchen", .flags = flags };
    due_error error = { "", "" };

    o.size = sizeof o;
    o.path = d->path;
    o.queues = &queue;
    o.queue_count = 1;
    int rc = due_control_open(&d->control, &o, &error);
    cr_assert_eq(rc, 0, "%s", error.text);
}

/* Its clock shows 1,000. */
static inline struct desk desk_with(bool stored, struct lab_options with)
{
    struct desk d = { .stored = stored };

    strcpy(d.folder, "/tmp/due-control-XXXXXX");
    cr_assert_not_null(mkdtemp(d.folder));
    snprintf(d.path, sizeof d.path, "%s/c", d.folder);
    with.with.size = sizeof(due_options);
    with.start_ns = 1000;
    if (stored)
        d.shop = shop_new(NULL, with);
    else
        d.shop.lab = lab_open_with(&with);
    return d;
}

static inline struct desk desk_open(bool stored)
{
    struct desk d = desk_with(stored, (struct lab_options){ .kernel = false });

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    return d;
}

static inline void desk_ask_with(struct desk *d, const char *line, const void *body, size_t len)
{
    free(d->answer);
    d->answer = socket_ask(d->path, line, body, len);
}

static inline void desk_ask(struct desk *d, const char *line)
{
    desk_ask_with(d, line, "", 0);
}

/* Of one job: {"verb":"cancel","ids":["ff00..."]MORE}. */
static inline void desk_name(struct desk *d, const char *verb, due_id id, const char *more)
{
    char text[DUE_ID_TEXT];
    char line[512];

    snprintf(line, sizeof line, "{\"verb\":\"%s\",\"ids\":[\"%s\"]%s}", verb,
             due_id_format(id, text), more);
    desk_ask(d, line);
}

static inline bool desk_heard(struct desk *d, const char *text)
{
    return strstr(d->answer, text) != NULL;
}

#define desk_says(d, text) \
    cr_expect(desk_heard((d), (text)), "%s is not in:\n%.2000s", (text), (d)->answer)
#define desk_says_not(d, text) \
    cr_expect(!desk_heard((d), (text)), "%s is in:\n%.2000s", (text), (d)->answer)

/* The last line, and nothing but results before it. */
#define desk_ends(d, name) desk_says((d), "{\"end\":\"" name "\"}\n")

/* How often the answer has this text. */
static inline unsigned desk_count(struct desk *d, const char *text)
{
    unsigned n = 0;

    for (const char *at = d->answer; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

/* The id of the first result. */
static inline due_id desk_id(struct desk *d)
{
    const char *at = strstr(d->answer, "\"id\":\"");
    char text[DUE_ID_TEXT] = "";
    due_id id = { { 0 } };

    if (at != NULL)
        memcpy(text, at + 6, DUE_ID_TEXT - 1);
    cr_expect_eq(due_id_parse(text, &id), 0, "no id in:\n%.2000s", d->answer);
    return id;
}

static inline void desk_close(struct desk *d)
{
    free(d->answer);
    cr_expect_eq(due_control_close(d->control), 0);
    cr_expect_eq(access(d->path, F_OK), -1, "the socket's file stays");
    if (d->stored)
        shop_close(&d->shop);
    else
        lab_close(&d->shop.lab);
    cr_expect_eq(rmdir(d->folder), 0);
}

/* A test of a desk: with a queue in memory, in each of the proxies' modes, and with a store. */
#define DESK_TEST(suite, name)                  \
    static void suite##_##name(struct desk *d); \
    LAB_TEST(suite, name)                       \
    {                                           \
        struct desk d = desk_open(false);       \
        suite##_##name(&d);                     \
        desk_close(&d);                         \
    }                                           \
    Test(suite, name##_stored, .timeout = 60)   \
    {                                           \
        struct desk d = desk_open(true);        \
        suite##_##name(&d);                     \
        desk_close(&d);                         \
    }                                           \
    static void suite##_##name(struct desk *d)

#endif
