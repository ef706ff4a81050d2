/* words.c - the options that verbs share; ids, as arguments and as lines of standard input. */
#include "verbs/verbs.h"

#include <stdio.h>
#include <string.h>

bool ctl_take_topic(struct ctl_look *look, const char *value)
{
    look->topic = value;
    return strlen(value) <= DUE_TOPIC_LENGTH ||
           ctl_look_wrong(look, "--topic takes a name of up to 255 bytes", value);
}

bool ctl_take_json(struct ctl_look *look, const char *value)
{
    (void)value;
    look->json = true;
    return true;
}

bool ctl_take_yes(struct ctl_look *look, const char *value)
{
    (void)value;
    look->yes = true;
    return true;
}

bool ctl_take_all(struct ctl_look *look, const char *value)
{
    (void)value;
    look->all = true;
    return true;
}

bool ctl_take_control(struct ctl_look *look, const char *value)
{
    look->control = value;
    return value[0] != '\0' || ctl_look_wrong(look, "--control takes a path", "''");
}

/* ---- Ids ------------------------------------------------------------------------------------- */

struct batch {
    ctl_ids_take *take;
    void *ctx;
    size_t n;
    int status;
    due_id ids[CTL_NAMED];
};

static bool goes_on(const struct batch *b)
{
    return b->status == CTL_FINE || b->status == CTL_FAULTS;
}

/* False: no more. */
static bool batch_give(struct batch *b)
{
    if (b->n > 0) {
        int status = b->take(b->ctx, b->ids, b->n);

        b->n = 0;
        if (status > b->status)
            b->status = status;
    }
    return goes_on(b);
}

static bool batch_add(struct batch *b, due_id id)
{
    b->ids[b->n++] = id;
    return b->n < CTL_NAMED || batch_give(b);
}

static void arrived(void *ctx)
{
    (void)ctx;
}

static bool paused(void *ctx)
{
    return batch_give(ctx);
}

/* The first word of a line is the id, so that what `duectl ls` prints can be given on. */
static bool line(void *ctx, const struct ctl_line *line)
{
    struct batch *b = ctx;
    char text[DUE_ID_TEXT] = "";
    size_t len = 0;
    due_id id;

    while (len < line->len && line->bytes[len] != ' ' && line->bytes[len] != '\t')
        len++;
    if (line->len == 0)
        return true;
    if (len == sizeof text - 1)
        memcpy(text, line->bytes, len);
    if (due_id_parse(text, &id) == 0)
        return batch_add(b, id);
    fprintf(stderr, "duectl: -:%llu:1: expected an id: 32 hexadecimal digits\n",
            (unsigned long long)line->number);
    b->status = CTL_FAULTS;
    return true;
}

static void read_lines(struct batch *b)
{
    struct ctl_sink sink = { .arrived = arrived, .line = line, .paused = paused, .ctx = b };
    struct ctl_input in;

    if (!ctl_input_open(&in, NULL)) {
        b->status = CTL_USAGE;
        return;
    }
    int rc = ctl_lines_read(&in, -1, &sink);
    if (rc < 0) {
        fprintf(stderr, "duectl: -: cannot be read to its end: %s\n", strerror(-rc));
        b->status = CTL_FAULTS;
    }
}

int ctl_ids(const struct ctl_look *look, ctl_ids_take *take, void *ctx)
{
    struct batch b = { .take = take, .ctx = ctx };

    for (size_t i = 0; i < look->word_count && goes_on(&b); i++) {
        due_id id;

        if (strcmp(look->words[i], "-") == 0)
            read_lines(&b);
        else if (due_id_parse(look->words[i], &id) == 0)
            (void)batch_add(&b, id);
    }
    if (goes_on(&b))
        (void)batch_give(&b);
    return b.status;
}
