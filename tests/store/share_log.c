/* share_log.c - a history written to a file, and read from it. */
#define _GNU_SOURCE
#include "store/share_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/share_exchange.h"

/* ---- Writing --------------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t len;
    FILE *file;
};

static FILE *text_begin(struct text *t)
{
    *t = (struct text){ .bytes = NULL };
    t->file = open_memstream(&t->bytes, &t->len);
    return replay_need(t->file);
}

static void text_end(struct text *t, int fd)
{
    fclose(t->file);
    if (write(fd, t->bytes, t->len) != (ssize_t)t->len) {
        perror("history");
        abort();
    }
    free(t->bytes);
}

int64_t replay_log_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static void put_id(FILE *f, due_id id)
{
    putc(' ', f);
    for (int i = 0; i < DUE_STORE_ID_BYTES; i++)
        fprintf(f, "%02x", id.byte[i]);
}

static void put_text(FILE *f, const void *bytes, size_t len)
{
    putc(' ', f);
    if (bytes == NULL || len == 0)
        putc('-', f);
    else
        fwrite(bytes, 1, len, f);
}

void replay_log_line(int fd, const char *format, ...)
{
    struct text t;
    FILE *f = text_begin(&t);
    va_list arguments;

    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    text_end(&t, fd);
}

/* What a model looks at. */
static void put_change(FILE *f, const due_change *c)
{
    const due_record *r = &c->record;

    fprintf(f, "c %d", (int)c->kind);
    put_id(f, r->id);
    put_id(f, c->from);
    put_text(f, r->topic, r->topic != NULL ? strlen(r->topic) : 0);
    put_text(f, r->key, r->key_len);
    put_text(f, r->group, r->group_len);
    fprintf(f, " %" PRId64 " %u %u %d %" PRId64 " %zu %zu", r->until_ns, r->attempts, r->failures,
            (int)r->cause, r->died_ns, r->mark_len, r->headers_len);
    fprintf(f, " %" PRIu64 " %" PRId64 " %d %" PRId64 " %" PRId64 " %d %d %d %d", c->held,
            c->was_ns, c->was_dead, c->lease_ns, c->key_kept_ns, c->keeps_pass, c->keeps_room,
            c->revokes, c->anew);
    fprintf(f, " %" PRIu64 " %" PRId64 " %" PRId64 "\n", c->dead_max, c->paused, c->held_max);
}

void replay_log_asked(int fd, const struct replay_exchange *x)
{
    struct text t;
    FILE *f = text_begin(&t);

    fprintf(f, "ask %" PRId64 " %zu %d\n", replay_log_now(), x->n, x->claims);
    for (size_t i = 0; i < x->n; i++)
        put_change(f, &x->changes[i]);
    if (x->claims) {
        const struct due_claim *c = &x->claim;

        fprintf(f, "l %zu %zu %" PRId64 " %d %zu", c->need, c->extra, c->lease_ns, c->waits,
                c->topics != NULL ? c->topic_count : 0);
        for (size_t i = 0; c->topics != NULL && i < c->topic_count; i++)
            fprintf(f, " %s", x->topics[i]);
        putc('\n', f);
    }
    fprintf(f, "sent\n");
    text_end(&t, fd);
}

void replay_log_answered(int fd, const struct replay_exchange *x)
{
    struct text t;
    FILE *f = text_begin(&t);
    const struct due_exchange *a = &x->answer;

    fprintf(f, "ans %" PRId64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %d %" PRId64 "\n",
            replay_log_now(), a->stamp, a->now_ns, a->claimed, a->more, x->again_ns);
    for (size_t i = 0; i < x->n; i++)
        fprintf(f, "r %d\n", x->results[i]);
    for (size_t i = 0; i < x->n_shown; i++) {
        const struct replay_shown *s = &x->shown[i];

        fprintf(f, "j");
        put_id(f, s->id);
        fprintf(f, " %" PRIu64 " %" PRId64 " %u %u %" PRIu64 "\n", s->held, s->lapsed_ns,
                s->attempts, s->failures, s->content);
    }
    fprintf(f, "end\n");
    text_end(&t, fd);
}

/* ---- Reading --------------------------------------------------------------------------------- */

#define WORDS 40

struct reader {
    struct replay *r;
    const char *file;
    unsigned line;
    char *word[WORDS];
    size_t n;
    const char *wrong;
    bool open;             /* an exchange has no answer yet */
    bool piece;            /* the last event is none */
    struct replay_open is; /* of the exchanges that were answered */
};

static const char *interned(const char *text)
{
    static char *all[512];
    size_t i = 0;

    while (i < sizeof all / sizeof all[0] && all[i] != NULL && strcmp(all[i], text) != 0)
        i++;
    if (i == sizeof all / sizeof all[0])
        abort();
    if (all[i] == NULL)
        all[i] = replay_need(strdup(text));
    return all[i];
}

static bool read_line(struct reader *d, FILE *f)
{
    static char line[1024];
    char *rest = NULL;

    if (fgets(line, sizeof line, f) == NULL || strchr(line, '\n') == NULL)
        return false; /* the end, or a piece */
    d->line++;
    d->n = 0;
    for (char *w = strtok_r(line, " \n", &rest); w != NULL && d->n < WORDS;
         w = strtok_r(NULL, " \n", &rest))
        d->word[d->n++] = w;
    return true;
}

static const char *word(struct reader *d, size_t i)
{
    if (i < d->n)
        return d->word[i];
    d->wrong = "a word is missing";
    return "0";
}

static int64_t number(struct reader *d, size_t i)
{
    return (int64_t)strtoll(word(d, i), NULL, 10);
}

static uint64_t whole(struct reader *d, size_t i)
{
    return (uint64_t)strtoull(word(d, i), NULL, 10);
}

static due_id id_in(struct reader *d, size_t i)
{
    const char *text = word(d, i);
    due_id id = { .byte = { 0 } };

    if (strlen(text) != 2 * DUE_STORE_ID_BYTES) {
        d->wrong = "an id is wanted";
        return id;
    }
    for (int k = 0; k < DUE_STORE_ID_BYTES; k++) {
        char two[3] = { text[2 * k], text[2 * k + 1], '\0' };
        id.byte[k] = (unsigned char)strtoul(two, NULL, 16);
    }
    return id;
}

/* A key or a group, which stays. */
static const void *bytes_in(struct reader *d, size_t i, size_t *len)
{
    const char *text = word(d, i);

    *len = strcmp(text, "-") == 0 ? 0 : strlen(text);
    return *len > 0 ? interned(text) : NULL;
}

static void read_change(struct reader *d, due_change *c)
{
    due_record *r = &c->record;
    const char *topic = word(d, 4);

    c->kind = (enum due_change_kind)number(d, 1);
    r->id = id_in(d, 2);
    c->from = id_in(d, 3);
    r->topic = strcmp(topic, "-") == 0 ? NULL : replay_need(strdup(topic));
    r->key = bytes_in(d, 5, &r->key_len);
    r->group = bytes_in(d, 6, &r->group_len);
    r->until_ns = number(d, 7);
    r->attempts = (uint32_t)whole(d, 8);
    r->failures = (uint32_t)whole(d, 9);
    r->cause = (enum due_cause)number(d, 10);
    r->died_ns = number(d, 11);
    r->mark_len = (size_t)whole(d, 12);
    r->headers_len = (size_t)whole(d, 13);
    c->held = whole(d, 14);
    c->was_ns = number(d, 15);
    c->was_dead = (int)number(d, 16);
    c->lease_ns = number(d, 17);
    c->key_kept_ns = number(d, 18);
    c->keeps_pass = (int)number(d, 19);
    c->keeps_room = (int)number(d, 20);
    c->revokes = (int)number(d, 21);
    c->anew = (int)number(d, 22);
    c->dead_max = whole(d, 23);
    c->paused = number(d, 24);
    c->held_max = number(d, 25);
}

static void read_claim(struct reader *d, struct replay_exchange *x)
{
    size_t topics = (size_t)whole(d, 5);

    x->claim = (struct due_claim){ .need = (size_t)whole(d, 1),
                                   .extra = (size_t)whole(d, 2),
                                   .lease_ns = number(d, 3),
                                   .waits = (int)number(d, 4),
                                   .topic_count = topics };
    if (topics == 0)
        return;
    x->topics = replay_need(calloc(topics + 1, sizeof *x->topics));
    for (size_t i = 0; i < topics; i++)
        x->topics[i] = replay_need(strdup(word(d, 6 + i)));
    x->claim.topics = (const char *const *)x->topics;
}

/* What is asked; whatever was asked before, and not answered, was not done. */
static void read_asked(struct reader *d, FILE *f)
{
    size_t n = (size_t)whole(d, 2);
    int64_t asked_ns = number(d, 1);
    bool claims = number(d, 3) != 0;
    struct replay_exchange *x = replay_new(d->r, n, claims);
    size_t at = 0;
    bool whole_one = false;

    x->asked_ns = asked_ns;
    x->file = d->file;
    x->line = d->line;
    while (!whole_one && d->wrong == NULL && read_line(d, f)) {
        if (strcmp(word(d, 0), "c") == 0 && at < n)
            read_change(d, &x->changes[at++]);
        else if (strcmp(word(d, 0), "l") == 0)
            read_claim(d, x);
        else if (strcmp(word(d, 0), "sent") == 0)
            whole_one = true;
        else
            d->wrong = "what is asked ends too early";
    }
    d->open = whole_one;
    d->piece = !whole_one;
    d->is.work = claims;
    for (size_t i = 0; i < at; i++)
        d->is.work = d->is.work || x->changes[i].held != 0;
    x->writer = d->is.writer;
    x->work = d->is.work;
    if (!whole_one)
        replay_unanswered(d->r);
}

static void read_answered(struct reader *d, FILE *f)
{
    struct replay_exchange *x = replay_last(d->r);
    int64_t answered_ns = number(d, 1);
    int64_t again_ns = number(d, 6);
    struct due_exchange answer = { .stamp = whole(d, 2),
                                   .now_ns = number(d, 3),
                                   .claimed = whole(d, 4),
                                   .more = (int)number(d, 5) };
    size_t at = 0;

    while (d->wrong == NULL && read_line(d, f)) {
        if (strcmp(word(d, 0), "r") == 0 && at < x->n) {
            x->results[at++] = (int)number(d, 1);
        } else if (strcmp(word(d, 0), "j") == 0) {
            *replay_show(x) = (struct replay_shown){ .id = id_in(d, 1),
                                                     .held = whole(d, 2),
                                                     .lapsed_ns = number(d, 3),
                                                     .attempts = (uint32_t)whole(d, 4),
                                                     .failures = (uint32_t)whole(d, 5),
                                                     .content = whole(d, 6) };
        } else if (strcmp(word(d, 0), "end") == 0) {
            x->answer = answer;
            x->answered_ns = answered_ns;
            x->again_ns = again_ns;
            x->known = true;
            d->is.stamp[d->is.work] = answer.stamp;
            d->open = false;
            return;
        } else {
            d->wrong = "an answer ends too early";
        }
    }
    x->n_shown = 0;
    d->piece = true;
}

/* The change as work.lua and edit.lua have it, as far as they group changes by that. */
static int letter_of(const due_change *c)
{
    int letter = (int)c->kind * 8;

    if (c->kind == DUE_CHANGE_MOVE && c->held != 0)
        letter += c->keeps_pass ? 1 : c->key_kept_ns > 0 ? 2 : 3;
    if (c->kind == DUE_CHANGE_DROP && c->held != 0)
        letter += c->key_kept_ns > 0;
    return letter;
}

static int result_of(char letter)
{
    switch (letter) {
    case 's':
        return DUE_ESTALE;
    case 'c':
    case 'f':
        return DUE_EAGAIN;
    case 'e':
        return DUE_EEXIST;
    case 'o':
        return DUE_EBUSY;
    case 'u':
        return DUE_ENOENT;
    case 'x':
        return DUE_REVOKED;
    default:
        return 0;
    }
}

/* Statuses stand in the order of the batches in which the changes were sent: of new jobs in that of
 * the exchange. */
static const char *tell_statuses(struct replay_exchange *x, const char *status)
{
    bool puts = x->n > 0 && x->changes[0].kind == DUE_CHANGE_PUT;
    bool plain = strcmp(status, "-") == 0;
    bool told[256] = { false };
    size_t at = 0;

    if (!plain && puts && strcmp(status, "u") == 0) { /* the number was used up by nothing */
        for (size_t i = 0; i < x->n; i++)
            x->results[i] = DUE_ENOSPC;
        return NULL;
    }
    if (x->n > sizeof told || (!plain && strlen(status) != x->n))
        return "there are not as many statuses as changes";
    for (size_t i = 0; i < x->n && !plain; i++) {
        const due_change *c = &x->changes[i];

        for (size_t k = i; k < x->n; k++) {
            const due_change *o = &x->changes[k];
            if (told[k] || (k != i && !puts &&
                            (letter_of(c) != letter_of(o) || c->lease_ns != o->lease_ns ||
                             strcmp(c->record.topic, o->record.topic) != 0)))
                continue;
            x->results[k] = result_of(status[at++]);
            told[k] = true;
        }
    }
    return NULL;
}

/* Where it stands among those that were shown. */
static size_t shown_as(const struct replay_exchange *x, due_id id)
{
    size_t i = 0;

    while (i < x->n_shown && !due_id_equal(x->shown[i].id, id))
        i++;
    return i;
}

/* All that it has claimed, in that order, whether its claimer has seen it or not. */
static void read_memory(struct reader *d, FILE *f)
{
    struct replay_exchange *x = replay_last(d->r);
    struct replay_exchange all = { .n_shown = 0 };
    uint64_t stamp = whole(d, 1);

    if (!x->known) {
        x->answer = (struct due_exchange){ .stamp = stamp, .now_ns = number(d, 2), .more = 1 };
        x->known = true;
        d->wrong = tell_statuses(x, word(d, 3));
        d->is.stamp[d->is.work] = stamp;
        d->open = false;
    } else if (x->answer.stamp != stamp) {
        d->wrong = "the server remembers another exchange";
    }
    while (d->wrong == NULL && read_line(d, f) && strcmp(word(d, 0), "m") == 0) {
        due_id id = id_in(d, 1);
        size_t at = shown_as(x, id);

        if (at < x->n_shown) {
            *replay_show(&all) = x->shown[at];
            x->shown[at].id.byte[0] = 0;
            x->shown[at].held = 0;
        } else {
            *replay_show(&all) = (struct replay_shown){
                .id = id, .held = stamp, .lapsed_ns = 1000 * number(d, 2), .unseen = true
            };
        }
    }
    for (size_t i = 0; i < x->n_shown; i++)
        if (x->shown[i].held != 0)
            d->wrong = "a job was shown that the server does not remember";
    free(x->shown);
    x->shown = all.shown;
    x->n_shown = all.n_shown;
    x->shown_room = all.shown_room;
}

static void read_event(struct reader *d, FILE *f)
{
    const char *what = word(d, 0);

    if (strcmp(what, "join") == 0) {
        d->is = (struct replay_open){ .writer = whole(d, 1) };
        d->is.joined = true;
    } else if (strcmp(what, "ask") == 0) {
        if (d->open)
            replay_unanswered(d->r);
        read_asked(d, f);
    } else if (strcmp(what, "lost") == 0) {
        replay_lost(d->r, whole(d, 1), whole(d, 2));
    } else if (strcmp(what, "turned") == 0) {
        replay_turned(d->r, number(d, 1), number(d, 2), number(d, 3), number(d, 4));
    } else if (strcmp(what, "evicted") == 0) {
        replay_evicted(d->r, whole(d, 1), number(d, 2));
    } else if (d->r->n == 0) {
        d->wrong = "nothing was asked";
    } else if (strcmp(what, "ans") == 0 && d->open) {
        read_answered(d, f);
    } else if (strcmp(what, "mem") == 0) {
        read_memory(d, f);
    } else if (strcmp(what, "not") == 0 && d->open) {
        replay_unanswered(d->r);
        d->open = false;
    } else {
        d->wrong = "it makes no sense";
    }
}

static bool read_file(struct reader *d, const char *path)
{
    const char *name = strrchr(path, '/');
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        perror(path);
        return false;
    }
    d->file = interned(name != NULL ? name + 1 : path);
    while (d->wrong == NULL && read_line(d, f)) {
        read_event(d, f);
        if (!d->piece)
            d->is.end = ftell(f);
    }
    fclose(f);
    if (d->wrong != NULL)
        fprintf(stderr, "%s:%u: %s\n", path, d->line, d->wrong);
    return d->wrong == NULL;
}

bool replay_read(struct replay *r, const char *path)
{
    struct reader d = { .r = r };
    bool fine = read_file(&d, path);

    if (fine && d.open)
        replay_unanswered(r);
    return fine;
}

bool replay_read_open(struct replay_open *open, const char *path)
{
    struct replay r = { .n = 0 };
    struct reader d = { .r = &r };
    bool fine = read_file(&d, path);

    *open = d.is;
    open->begun = d.open;
    replay_free(&r);
    return fine;
}
