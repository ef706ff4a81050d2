/* reader.c - replies out of bytes that a server sent, within limits.
 *
 * The scan knows where each reply ends and what it will cost; hiredis makes the objects.  Both must
 * come to the same end, else the reply is refused.
 *
 * Not here   What an error reply means: link.c.
 */
#include "redis/resp/reader.h"

#include <hiredis.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "due/due.h"

#define DEPTH_MAX    8                   /* arrays in arrays: hiredis 0.14 can do no more */
#define TEXT_MAX     ((size_t)8192)      /* the line of a status or an error */
#define NUMBER_MAX   ((size_t)20)        /* the digits of a number, with its sign */
#define BYTES_MAX    ((size_t)1 << 30)   /* hiredis counts some sizes in an int */
#define KEEP_READER  ((size_t)128 << 10) /* after a larger reply its buffer is given back */
#define NO_SUCH_SIZE ((size_t)SIZE_MAX)

enum phase {
    PHASE_TYPE,    /* the byte that says what comes */
    PHASE_LINE,    /* up to the end of the line */
    PHASE_BULK,    /* bytes of a bulk */
    PHASE_BULK_CR, /* and what must follow them */
    PHASE_BULK_LF
};

struct scan {
    enum phase phase;
    char type;
    bool cr;                 /* the last byte of the line was one */
    size_t line;             /* bytes of the line */
    char number[NUMBER_MAX]; /* the same, if it is a number */
    size_t bulk;             /* bytes of the bulk still to come */
    size_t depth;
    size_t left[DEPTH_MAX]; /* elements still to come, of each array we are in */
    size_t cost;            /* of this reply so far */
    size_t last_cost;       /* of the reply that ended last */
};

/* createArray() has another type since hiredis 1.0. */
#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

struct due__reader {
    size_t elements;
    size_t bytes;
    struct scan scan;
    bool broken;
    redisReader *hiredis; /* NULL: none yet, or none any more */
    redisReplyObjectFunctions functions;
    void *(*create_array)(const redisReadTask *, array_size); /* hiredis's own */
};

/* ---- The scan -------------------------------------------------------------------------------- */

static bool charge(const struct due__reader *r, struct scan *s, size_t cost)
{
    if (cost > r->bytes - s->cost)
        return false;
    s->cost += cost;
    return true;
}

/* An item has ended: is it the last of the reply? */
static bool last_item(struct scan *s)
{
    s->phase = PHASE_TYPE;
    while (s->depth > 0) {
        if (--s->left[s->depth - 1] > 0)
            return false;
        s->depth--;
    }
    s->last_cost = s->cost;
    s->cost = 0;
    return true;
}

static bool is_number(char type)
{
    return type == ':' || type == '$' || type == '*';
}

/* The size that the line holds; for -1 ("nothing") and for what is no size, see @nothing. */
static size_t line_size(const struct scan *s, bool *nothing)
{
    size_t size = 0;

    *nothing = s->line == 2 && s->number[0] == '-' && s->number[1] == '1';
    if (*nothing)
        return 0;
    if (s->line == 0 || s->line > 10 || (s->line > 1 && s->number[0] == '0'))
        return NO_SUCH_SIZE;
    for (size_t i = 0; i < s->line; i++) {
        if (s->number[i] < '0' || s->number[i] > '9')
            return NO_SUCH_SIZE;
        size = size * 10 + (size_t)(s->number[i] - '0');
    }
    return size;
}

/* A line has ended.  1: the reply too; 0: more to come; -1: refused. */
static int line_ended(const struct due__reader *r, struct scan *s)
{
    bool nothing = false;
    size_t size;

    if (s->type != '$' && s->type != '*')
        return last_item(s);
    size = line_size(s, &nothing);
    if (size == NO_SUCH_SIZE)
        return -1;
    if (nothing || (s->type == '*' && size == 0))
        return last_item(s);
    if (s->type == '$') {
        s->bulk = size;
        s->phase = size > 0 ? PHASE_BULK : PHASE_BULK_CR;
        return size <= r->bytes && charge(r, s, size + 2) ? 0 : -1;
    }
    if (size > r->elements || !charge(r, s, size * DUE__READER_ELEMENT))
        return -1;
    s->left[s->depth++] = size;
    s->phase = PHASE_TYPE;
    return 0;
}

static int scan_type(const struct due__reader *r, struct scan *s, char c)
{
    if (c != '+' && c != '-' && !is_number(c))
        return -1;
    if (c == '*' && s->depth == DEPTH_MAX)
        return -1;
    s->type = c;
    s->line = 0;
    s->cr = false;
    s->phase = PHASE_LINE;
    return charge(r, s, 3) ? 0 : -1; /* with the end of its line */
}

static int scan_line(const struct due__reader *r, struct scan *s, char c)
{
    if (s->cr)
        return c == '\n' ? line_ended(r, s) : -1;
    s->cr = c == '\r';
    if (s->cr)
        return 0;
    if (c == '\n' || s->line == (is_number(s->type) ? NUMBER_MAX : TEXT_MAX))
        return -1;
    if (is_number(s->type))
        s->number[s->line] = c;
    s->line++;
    return charge(r, s, 1) ? 0 : -1;
}

static int scan_byte(const struct due__reader *r, struct scan *s, char c)
{
    switch (s->phase) {
    case PHASE_TYPE:
        return scan_type(r, s, c);
    case PHASE_LINE:
        return scan_line(r, s, c);
    case PHASE_BULK_CR:
        s->phase = PHASE_BULK_LF;
        return c == '\r' ? 0 : -1;
    case PHASE_BULK_LF:
        return c == '\n' ? last_item(s) : -1;
    case PHASE_BULK:
        break;
    }
    return -1;
}

static size_t scan_bulk(struct scan *s, size_t len)
{
    size_t n = len < s->bulk ? len : s->bulk;

    s->bulk -= n;
    if (s->bulk == 0)
        s->phase = PHASE_BULK_CR;
    return n;
}

/* 1: the reply ends with the last of the *@used bytes; 0: all used, more to come; -1: refused. */
static int scan(struct due__reader *r, const char *bytes, size_t len, size_t *used)
{
    struct scan *s = &r->scan;
    size_t at = 0;
    int rc = 0;

    while (at < len && rc == 0) {
        if (s->phase == PHASE_BULK)
            at += scan_bulk(s, len - at);
        else
            rc = scan_byte(r, s, bytes[at++]);
    }
    *used = at;
    return rc;
}

/* ---- The objects ----------------------------------------------------------------------------- */

/* The second lock on the same door: the scan has refused such an array already. */
static void *create_array(const redisReadTask *task, array_size elements)
{
    struct due__reader *r = task->privdata;

    if (elements > 0 && (size_t)elements > r->elements)
        return NULL;
    return r->create_array(task, elements);
}

static bool have_hiredis(struct due__reader *r)
{
    if (r->hiredis != NULL)
        return true;
    r->hiredis = redisReaderCreate();
    if (r->hiredis == NULL)
        return false;
    /* With a limit hiredis 0.14 empties its buffer by itself, and asserts that there is memory. */
    r->hiredis->maxbuf = 0;
    r->functions = *r->hiredis->fn;
    r->create_array = r->functions.createArray;
    r->functions.createArray = create_array;
    r->hiredis->fn = &r->functions;
    r->hiredis->privdata = r;
    return true;
}

static void drop_hiredis(struct due__reader *r)
{
    if (r->hiredis != NULL)
        redisReaderFree(r->hiredis);
    r->hiredis = NULL;
}

static int parse(struct due__reader *r, const char *bytes, size_t len, redisReply **reply)
{
    void *got = NULL;

    if (!have_hiredis(r))
        return DUE_ENOMEM;
    if (redisReaderFeed(r->hiredis, bytes, len) != REDIS_OK ||
        redisReaderGetReply(r->hiredis, &got) != REDIS_OK)
        return r->hiredis->err == REDIS_ERR_OOM ? DUE_ENOMEM : DUE_ECORRUPT;
    *reply = got;
    return 0;
}

struct due__reader *due__reader_new(size_t elements, size_t bytes)
{
    struct due__reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->elements = elements < INT_MAX ? elements : INT_MAX;
    r->bytes = bytes < BYTES_MAX ? bytes : BYTES_MAX;
    return r;
}

void due__reader_free(struct due__reader *r)
{
    if (r == NULL)
        return;
    drop_hiredis(r);
    free(r);
}

void due__reader_clear(struct due__reader *r)
{
    drop_hiredis(r);
    r->scan = (struct scan){ 0 };
    r->broken = false;
}

int due__reader_take(struct due__reader *r, const char *bytes, size_t len, size_t *used,
                     struct redisReply **reply)
{
    int whole = r->broken ? -1 : scan(r, bytes, len, used);
    int rc = whole < 0 ? DUE_ECORRUPT : 0;

    *reply = NULL;
    if (rc == 0 && len > 0)
        rc = parse(r, bytes, *used, reply);
    if (rc == 0 && (*reply != NULL) != (whole == 1))
        rc = DUE_ECORRUPT;
    if (rc != 0) {
        if (*reply != NULL)
            freeReplyObject(*reply);
        *reply = NULL;
        r->broken = true;
        return rc;
    }
    /* Nothing is kept of a large reply but what the caller has now. */
    if (whole == 1 && r->scan.last_cost > KEEP_READER)
        drop_hiredis(r);
    return whole;
}
