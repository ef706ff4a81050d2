/* calls.c - what callers heard is compared with the exchanges that their processes made, whose
 * order is known and which are right.
 */
#define _GNU_SOURCE
#include "histories/calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/share_exchange.h"
#include "store/share_plant.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static struct call *add(struct calls *all)
{
    if (all->n == all->room) {
        all->room = all->room == 0 ? 256 : 2 * all->room;
        all->call = replay_need(realloc(all->call, all->room * sizeof *all->call));
    }
    all->call[all->n] = (struct call){ .rc = 0 };
    return &all->call[all->n++];
}

static bool read_id(const char *text, due_id *id)
{
    if (strlen(text) != 2 * DUE_STORE_ID_BYTES)
        return false;
    for (int i = 0; i < DUE_STORE_ID_BYTES; i++) {
        char two[3] = { text[2 * i], text[2 * i + 1], '\0' };
        id->byte[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    return true;
}

/* The call of that number, which began in this file. */
static struct call *begun(struct calls *all, size_t from, unsigned number)
{
    for (size_t i = all->n; i-- > from;)
        if (all->call[i].number == number && all->call[i].verb != CALL_HANDED)
            return &all->call[i];
    return NULL;
}

static bool read_line(struct calls *all, size_t from, const char *line)
{
    char id[64];
    unsigned number;
    int64_t ns;
    int64_t deadline_ns;
    uint64_t content;
    uint64_t token;
    int what;

    if (sscanf(line, "c %u %" SCNd64 " %d %" SCNu64 " %63s %" SCNu64, &number, &ns, &what, &content,
               id, &token) == 6) {
        struct call *c = add(all);

        *c = (struct call){ .number = number,
                            .verb = (enum call_verb)what,
                            .asked_ns = ns,
                            .content = content,
                            .token = token };
        return read_id(id, &c->id);
    }
    struct call *of = sscanf(line, "%*c %u", &number) == 1 ? begun(all, from, number) : NULL;
    if (of == NULL)
        return false;
    if (sscanf(line, "a %u %" SCNd64 " %d %63s", &number, &ns, &what, id) == 4) {
        of->answered_ns = ns;
        of->rc = what;
        return read_id(id, &of->id);
    }
    if (sscanf(line, "h %u %" SCNd64 " %63s %" SCNu64 " %" SCNu64 " %" SCNd64, &number, &ns, id,
               &token, &content, &deadline_ns) != 6)
        return false;
    struct call call = *of; /* add() moves it */
    struct call *c = add(all);
    *c = (struct call){ .number = number,
                        .verb = CALL_HANDED,
                        .for_good = call.verb == CALL_DEQUEUE,
                        .asked_ns = call.asked_ns,
                        .answered_ns = ns,
                        .token = token,
                        .content = content,
                        .deadline_ns = deadline_ns };
    return read_id(id, &c->id);
}

bool calls_read(struct calls *all, const char *path, const char *file)
{
    FILE *f = fopen(path, "re");
    char line[256];
    unsigned lines = 0;
    size_t from = all->n;
    bool fine = f != NULL;

    while (fine && fgets(line, sizeof line, f) != NULL && strchr(line, '\n') != NULL) {
        size_t n = all->n;

        lines++;
        fine = read_line(all, from, line);
        for (; n < all->n; n++) {
            all->call[n].file = file;
            all->call[n].line = lines;
        }
    }
    if (!fine)
        fprintf(stderr, "%s:%u: it makes no sense\n", path, lines);
    if (f != NULL)
        fclose(f);
    return fine;
}

void calls_free(struct calls *all)
{
    free(all->call);
    *all = (struct calls){ .n = 0 };
}

/* ---- What the exchanges did ------------------------------------------------------------------ */

/* A change, or a claim, of a job. */
struct effect {
    due_id id;
    const struct replay_exchange *x;
    const due_change *change; /* NULL: it was claimed */
    int result;
    uint64_t held;
    uint64_t content; /* of a claim, if it is known; 0: not */
};

struct effects {
    struct effect *effect;
    size_t n;
    const struct replay *all;
};

static int by_id_then_stamp(const void *a, const void *b)
{
    const struct effect *x = a;
    const struct effect *y = b;
    int order = memcmp(x->id.byte, y->id.byte, DUE_STORE_ID_BYTES);

    if (order != 0)
        return order;
    return (x->x->answer.stamp > y->x->answer.stamp) - (x->x->answer.stamp < y->x->answer.stamp);
}

static struct effects effects_of(const struct replay *all)
{
    struct effects e = { .all = all };
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        n += all->exchanges[i].n + all->exchanges[i].n_shown;
    e.effect = replay_need(calloc(n + 1, sizeof *e.effect));
    for (size_t i = 0; i < all->n; i++) {
        const struct replay_exchange *x = &all->exchanges[i];

        for (size_t k = 0; k < x->n; k++)
            e.effect[e.n++] = (struct effect){ .id = x->changes[k].record.id,
                                               .x = x,
                                               .change = &x->changes[k],
                                               .result = x->results[k],
                                               .held = x->changes[k].held };
        for (size_t k = 0; k < x->n_shown; k++)
            e.effect[e.n++] =
                (struct effect){ .id = x->shown[k].id,
                                 .x = x,
                                 .held = x->shown[k].held,
                                 .content = x->shown[k].unseen ? 0 : x->shown[k].content };
    }
    qsort(e.effect, e.n, sizeof *e.effect, by_id_then_stamp);
    return e;
}

/* The first effect of a job, and behind the last. */
static const struct effect *first_of(const struct effects *e, due_id id)
{
    size_t low = 0;
    size_t high = e->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (memcmp(e->effect[mid].id.byte, id.byte, DUE_STORE_ID_BYTES) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return &e->effect[low];
}

static bool is_of(const struct effects *e, const struct effect *f, due_id id)
{
    return f < e->effect + e->n && memcmp(f->id.byte, id.byte, DUE_STORE_ID_BYTES) == 0;
}

static bool made(const struct effect *f)
{
    return f->change != NULL && (f->result == 0 || f->result == DUE_REVOKED);
}

static bool is_kind(const struct effect *f, unsigned kinds)
{
    return f->change != NULL && (kinds >> f->change->kind & 1) != 0;
}

#define KIND(name) (1U << DUE_CHANGE_##name)

#define UNHEARD_NS (INT64_MAX / 2) /* it was answered, who knows when */

/* ---- Comparing ------------------------------------------------------------------------------- */

static char said[512];

static const char *differs(const struct call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *differs(const struct call *c, const char *format, ...)
{
    static const char *const names[] = { "enqueue",
                                         "enqueue (replace)",
                                         "enqueue (earliest)",
                                         "update",
                                         "reserve",
                                         "dequeue",
                                         "ack",
                                         "nack",
                                         "snooze",
                                         "bury",
                                         "extend",
                                         "cancel",
                                         "move",
                                         "a job" };
    va_list arguments;
    int n = snprintf(said, sizeof said, "%.80s, call %u, line %u, %s, %s: ", c->file, c->number,
                     c->line, names[c->verb], due_error_name(c->rc));

    va_start(arguments, format);
    vsnprintf(said + n, sizeof said - (size_t)n, format, arguments);
    va_end(arguments);
    return said;
}

/* Is it of the caller's process? */
static bool is_own(const struct call *c, const struct replay_exchange *x)
{
    return strcmp(x->file, c->file) == 0;
}

/* It is, and was answered during the call. */
static bool in_call(const struct call *c, const struct replay_exchange *x)
{
    return is_own(c, x) && x->answered_ns != 0 && x->answered_ns <= c->answered_ns &&
           x->answered_ns >= c->asked_ns;
}

/* Its bytes are those of no other enqueue: have they been put? */
static const char *check_enqueue(const struct effects *e, const struct call *c)
{
    const struct effect *put = NULL;
    unsigned n = 0;

    for (size_t i = 0; i < e->n; i++)
        if (is_kind(&e->effect[i], KIND(PUT) | KIND(AMEND)) && made(&e->effect[i]) &&
            e->effect[i].change->record.headers_len == c->content &&
            e->effect[i].change->record.mark_len != c->content && /* it does not stay so, */
            e->effect[i].change->keeps_room == 0) {               /* nor comes back */
            put = &e->effect[i];
            n++;
        }
    if (n > 1)
        return differs(c, "it was put %u times", n);
    if (c->answered_ns == 0 || c->rc == DUE_EINDOUBT)
        return NULL;
    if (c->rc != 0)
        return n == 0 ? NULL : differs(c, "and it was put");
    if (n == 0)
        return c->verb == CALL_EARLIEST ? NULL : differs(c, "and it was not put");
    if (!due_id_equal(put->id, c->id))
        return differs(c, "and the job is another one");
    return in_call(c, put->x) ? NULL : differs(c, "and it was put at another time");
}

/* The lease that it was handed out with, which had not ended when the call began. */
static const char *check_lease(const struct effects *e, const struct call *c)
{
    const struct effect *claim = NULL;
    int64_t over_ns = 0;

    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++) {
        if (f->held != c->token)
            continue;
        if (f->change == NULL && is_own(c, f->x)) {
            claim = f;
            over_ns = f->x->answered_ns + f->x->claim.lease_ns;
        } else if (is_kind(f, KIND(EXTEND)) && made(f)) {
            int64_t from_ns = f->x->answered_ns != 0 ? f->x->answered_ns : UNHEARD_NS;

            over_ns =
                from_ns + f->change->lease_ns > over_ns ? from_ns + f->change->lease_ns : over_ns;
        }
    }
    if (claim == NULL)
        return differs(c, "it was not claimed with that token");
    if (claim->x->asked_ns > c->answered_ns) /* it is shown before all of that is written down */
        return differs(c, "it was claimed later");
    if (claim->content != 0 && claim->content != c->content)
        return differs(c, "it was claimed with other bytes");
    if (c->asked_ns > over_ns)
        return differs(c, "its lease was over %" PRId64 " us before",
                       (c->asked_ns - over_ns) / 1000);
    if (replay_was_turned(e->all, claim->x->asked_ns, c->answered_ns))
        return NULL;
    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++) {
        bool ends = f->held == c->token
                        ? made(f) && !is_kind(f, KIND(EXTEND) | KIND(BEGIN))
                        : f->change == NULL || (f->held == 0 && is_kind(f, KIND(DROP)) && made(f));

        if (f->x->answer.stamp > claim->x->answer.stamp && ends && f->x->answered_ns != 0 &&
            f->x->answered_ns < c->asked_ns)
            return differs(c, "and what ended its lease was answered before");
    }
    return NULL;
}

/* Handed out for good: it has left by then. */
static const char *check_taken(const struct effects *e, const struct call *c)
{
    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++)
        if (is_kind(f, KIND(DROP)) && made(f) && f->held != 0 && is_own(c, f->x) &&
            f->x->answered_ns != 0 && f->x->answered_ns <= c->answered_ns)
            return NULL;
    return differs(c, "and it has not left the store");
}

/* What was said of a job that somebody has. */
static const char *check_answer(const struct effects *e, const struct call *c, unsigned kinds)
{
    const struct effect *done = NULL;

    if (c->answered_ns == 0 || c->rc == DUE_EINDOUBT || c->rc == DUE_ECLOSED)
        return NULL;
    if (c->rc != 0 && c->verb != CALL_ACK) /* one that was cancelled goes when its lease is over */
        kinds &= ~KIND(DROP);
    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++)
        if (f->held == c->token && is_kind(f, kinds) && made(f) && in_call(c, f->x))
            done = f;
    if ((c->rc == 0) == (done != NULL))
        return NULL;
    if (c->verb == CALL_EXTEND && c->rc != 0) /* it may have ended here, and not there */
        return NULL;
    return differs(c, c->rc == 0 ? "and it was not" : "and it was done");
}

/* Does a job live from before the call until behind it? */
static bool lives(const struct effects *e, const struct call *c)
{
    bool was_put = false;

    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++) {
        if (is_kind(f, KIND(PUT)) && made(f))
            was_put = f->x->answered_ns != 0 && f->x->answered_ns < c->asked_ns;
        if (is_kind(f, KIND(DROP)) && f->result != 0 && f->change->revokes)
            return false; /* it may end by itself */
        if (made(f) && (is_kind(f, KIND(DROP)) || f->result == DUE_REVOKED) &&
            f->x->asked_ns <= c->answered_ns)
            return false;
    }
    return was_put;
}

/* What was said of a job by its name. */
static const char *check_named(const struct effects *e, const struct call *c, unsigned kinds)
{
    bool done = false;

    if (c->answered_ns == 0)
        return NULL;
    for (const struct effect *f = first_of(e, c->id); is_of(e, f, c->id); f++)
        done |= is_kind(f, kinds) && made(f) && in_call(c, f->x);
    if (c->rc == 0 && !done)
        return differs(c, "and it was not");
    if (c->verb == CALL_CANCEL && c->rc == DUE_ENOENT && lives(e, c))
        return differs(c, "and the job is there");
    return NULL;
}

static const char *check_call(const struct effects *e, const struct call *c)
{
    switch (c->verb) {
    case CALL_ENQUEUE:
    case CALL_REPLACE:
    case CALL_EARLIEST:
    case CALL_UPDATE:
        return check_enqueue(e, c);
    case CALL_HANDED:
        return c->for_good ? check_taken(e, c) : check_lease(e, c);
    case CALL_ACK:
        return check_answer(e, c, KIND(DROP));
    case CALL_NACK:
        return check_answer(e, c, KIND(MOVE) | KIND(BURY) | KIND(DROP));
    case CALL_SNOOZE:
        return check_answer(e, c, KIND(MOVE) | KIND(DROP));
    case CALL_BURY:
        return check_answer(e, c, KIND(BURY) | KIND(DROP));
    case CALL_EXTEND:
        return check_answer(e, c, KIND(EXTEND));
    case CALL_CANCEL:
        return check_named(e, c, KIND(DROP));
    case CALL_MOVE:
        return check_named(e, c, KIND(MOVE) | KIND(AMEND) | KIND(RELEASE));
    default:
        return NULL;
    }
}

static int by_id_then_token(const void *a, const void *b)
{
    const struct call *x = *(const struct call *const *)a;
    const struct call *y = *(const struct call *const *)b;
    int order = memcmp(x->id.byte, y->id.byte, DUE_STORE_ID_BYTES);

    return order != 0 ? order : (x->token > y->token) - (x->token < y->token);
}

/* Of the hand-overs of a job each has its own token, and these rise. */
static const char *check_tokens(const struct calls *all, const struct replay *r)
{
    const struct call **h = replay_need(calloc(all->n + 1, sizeof(void *)));
    const char *wrong = NULL;
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (all->call[i].verb == CALL_HANDED && !all->call[i].for_good)
            h[n++] = &all->call[i];
    qsort(h, n, sizeof(void *), by_id_then_token);
    for (size_t i = 1; i < n && wrong == NULL; i++) {
        if (!due_id_equal(h[i - 1]->id, h[i]->id))
            continue;
        if (h[i - 1]->token == h[i]->token)
            wrong = differs(h[i], "a token that was handed out before");
        else if (h[i]->answered_ns < h[i - 1]->asked_ns &&
                 !replay_was_turned(r, h[i]->asked_ns - DUE_S(1), h[i - 1]->answered_ns))
            wrong = differs(h[i - 1], "a token that is lower than one before");
    }
    free(h);
    return wrong;
}

/* Nothing was put that nobody has enqueued. */
static const char *check_puts(const struct calls *all, const struct effects *e)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t k = 0;

        if (!is_kind(&e->effect[i], KIND(PUT)) || !made(&e->effect[i]))
            continue;
        while (k < all->n && (all->call[k].verb > CALL_UPDATE ||
                              all->call[k].content != e->effect[i].change->record.headers_len))
            k++;
        if (k == all->n) {
            snprintf(said, sizeof said, "%.80s:%u: a job that nobody has enqueued",
                     e->effect[i].x->file, e->effect[i].x->line);
            return said;
        }
    }
    return NULL;
}

const char *calls_check(struct calls *all, const struct replay *exchanges)
{
    struct effects e = effects_of(exchanges);
    const char *wrong = check_puts(all, &e);

    for (size_t i = 0; i < all->n && wrong == NULL; i++)
        wrong = check_call(&e, &all->call[i]);
    if (wrong == NULL)
        wrong = check_tokens(all, exchanges);
    free(e.effect);
    return wrong;
}

/* ---- Planting -------------------------------------------------------------------------------- */

const struct replay_planted call_plants[] = {
    { "put-not", "an enqueue that is done is answered with an error", false },
    { "put-yes", "an enqueue that is not done is answered with 0", false },
    { "update-not", "an update that is made is answered with an error", false },
    { "update-yes", "an update that is not made is answered with 0", false },
    { "acked", "an ack of a lease that was over is answered with 0", false },
    { "unacked", "an ack that is done is answered with DUE_ESTALE", false },
    { "again", "a job is handed out twice with a lease", false },
    { "token", "a job is handed out with the token of another", false },
    { "falls", "the tokens of two hand-overs of a job are exchanged", false },
    { "late", "a job is handed out a second later", false },
    { "other", "a job is handed out with other bytes", false },
    { "cancel", "a cancel of what is not there is answered with 0", false },
    { "nobody's", "a job is put that nobody has enqueued", false },
    { NULL, NULL, false },
};

static bool is_handed(const struct call *c)
{
    return c->verb == CALL_HANDED && !c->for_good;
}

static bool change_rc(struct call *c, enum call_verb verb, int from, int to)
{
    if (c->verb != verb || c->rc != from || c->answered_ns == 0)
        return false;
    c->rc = to;
    return true;
}

/* A later hand-over of the job has its token, and the other way round. */
static bool exchange_tokens(struct calls *all, struct call *c)
{
    for (struct call *o = all->call; is_handed(c) && o < all->call + all->n; o++)
        if (is_handed(o) && due_id_equal(o->id, c->id) && o->asked_ns > c->answered_ns) {
            uint64_t token = c->token;

            c->token = o->token;
            o->token = token;
            return true;
        }
    return false;
}

static bool plant(struct calls *all, struct call *c, const char *name)
{
    if (strcmp(name, "put-not") == 0)
        return change_rc(c, CALL_ENQUEUE, 0, DUE_ETIMEDOUT);
    if (strcmp(name, "put-yes") == 0)
        return change_rc(c, CALL_ENQUEUE, DUE_EEXIST, 0);
    if (strcmp(name, "update-not") == 0)
        return change_rc(c, CALL_UPDATE, 0, DUE_ENOENT);
    if (strcmp(name, "update-yes") == 0)
        return change_rc(c, CALL_UPDATE, DUE_ENOENT, 0);
    if (strcmp(name, "acked") == 0)
        return change_rc(c, CALL_ACK, DUE_ESTALE, 0);
    if (strcmp(name, "unacked") == 0)
        return change_rc(c, CALL_ACK, 0, DUE_ESTALE);
    if (strcmp(name, "cancel") == 0)
        return change_rc(c, CALL_CANCEL, DUE_ENOENT, 0);
    if (strcmp(name, "falls") == 0)
        return exchange_tokens(all, c);
    if (strcmp(name, "nobody's") == 0 && c->verb == CALL_ENQUEUE && c->rc == 0 &&
        c->answered_ns != 0) {
        c->content ^= 1;
        return true;
    }
    if (!is_handed(c))
        return false;
    struct call copy = *c; /* add() moves it */
    if (strcmp(name, "again") == 0)
        *add(all) = copy;
    else if (strcmp(name, "token") == 0)
        c->token++;
    else if (strcmp(name, "other") == 0)
        c->content ^= 1;
    else if (strcmp(name, "late") == 0)
        c->answered_ns = (c->asked_ns += DUE_S(1)) + 1;
    else
        return false;
    return true;
}

bool calls_plant(struct calls *all, const char *name, uint64_t seed)
{
    for (size_t i = 0; i < all->n; i++)
        if (plant(all, &all->call[(seed + i) % all->n], name))
            return true;
    return false;
}
