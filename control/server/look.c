/* look.c - requests that look at jobs: a page of those that wait, or of the dead; or those that are
 * named.
 *
 * A list is asked for page by page, so nothing is kept here between two requests, and an answer is
 * of bounded length.  Times are those of the queue's clock; the first line says what that shows,
 * and the wall clock.
 *
 * A job on a lease is somebody's: the library does not tell of it.  It is not in a list, and who
 * names it is told DUE_EBUSY.
 */
#include "os/atomic.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHORT      4096         /* bytes of a payload that are read without moving its job */
#define ANSWER_MAX (1u << 23)   /* what has come of a request before the next job is shown */
#define PAGE       DUE__CTL_IDS /* jobs */

/* ---- One job --------------------------------------------------------------------------------- */

static void add_head(struct due__ctl_carrier *c)
{
    struct due__ctl_times t = due__ctl_times_now(c->of->queue);

    due__ctl_buffer_text(c->answer,
                         "{\"queue\":\"%s\",\"now_ns\":%" PRId64 ",\"wall_ns\":%" PRId64 "}\n",
                         c->of->name, t.now_ns, t.wall_ns);
}

/* The beginning of its payload, of @most bytes: *@len of them.  0, or an error: then the job does
 * not wait any more, nor is it dead. */
static int read_payload(struct due__ctl_carrier *c, due_id id, size_t most, char **bytes,
                        size_t *len)
{
    size_t whole = 0;

    *bytes = NULL;
    *len = 0;
    if (most == 0)
        return 0;
    *bytes = malloc(most);
    if (*bytes == NULL)
        return DUE_ENOMEM;
    int rc = due_read(c->of->queue, id, *bytes, most, &whole);
    *len = whole < most ? whole : most;
    if (rc != 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return rc;
}

/* What all have, and @dead besides if it is one. */
static void add_job(struct due__ctl_carrier *c, const due_info *info, const due_dead *dead,
                    const char *bytes, size_t len)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    const char *topic = due_topic_name(c->of->queue, info->topic);
    struct due__ctl_buffer *b = c->answer;
    char id[DUE_ID_TEXT];

    due__ctl_buffer_text(b,
                         "{\"id\":\"%s\",\"state\":\"%s\",\"topic\":", due_id_format(info->id, id),
                         dead != NULL ? "dead" : "waiting");
    due__ctl_json_put(b, topic == NULL ? "" : topic, topic == NULL ? 0 : strlen(topic));
    due__ctl_buffer_text(b, ",\"at_ns\":%" PRId64 ",\"priority\":%d,\"len\":%zu", info->deadline_ns,
                         info->priority, info->len);
    if (dead != NULL) {
        due__ctl_buffer_text(b,
                             ",\"died_ns\":%" PRId64 ",\"cause\":\"%s\",\"attempts\":%" PRIu32
                             ",\"failures\":%" PRIu32,
                             dead->died_ns, causes[dead->cause], dead->attempts, dead->failures);
        if (dead->reason[0] != '\0') {
            due__ctl_buffer_text(b, ",\"reason\":");
            due__ctl_json_put(b, dead->reason, strnlen(dead->reason, DUE_REASON_BYTES));
        }
    }
    if (len > 0) {
        due__ctl_buffer_text(b, ",\"data\":");
        due__ctl_json_put(b, bytes, len);
    }
    due__ctl_buffer_text(b, "}\n");
}

/* 0; DUE_ENOENT, DUE_EBUSY: it has gone meanwhile; DUE_ECLOSED: so is the socket. */
static int show_job(struct due__ctl_carrier *c, const due_info *info, const due_dead *dead,
                    size_t data)
{
    size_t len;
    char *bytes;

    if (due__load_seq(&c->served->stopping)) /* E1 */
        return DUE_ECLOSED;
    int rc = read_payload(c, info->id, info->len < data ? info->len : data, &bytes, &len);

    if (rc != 0)
        return rc;
    add_job(c, info, dead, bytes, len);
    free(bytes);
    return 0;
}

static due_info info_of(const due_dead *d)
{
    return (due_info){ .id = d->id,
                       .deadline_ns = d->deadline_ns,
                       .len = d->len,
                       .topic = d->topic,
                       .priority = d->priority };
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* A list reads no more of each than is read without moving it. */
static size_t page_data(const struct due__ctl_request *r)
{
    size_t data = r->data < 0 ? 0 : (size_t)r->data;

    return data < SHORT ? data : SHORT;
}

static size_t page_max(const struct due__ctl_request *r)
{
    return r->max <= 0 ? PAGE : (size_t)r->max;
}

/* A page of @n jobs was shown; 0: it is the end.  Or an error. */
static int end_page(struct due__ctl_carrier *c, int n, uint64_t cursor)
{
    if (n > 0)
        due__ctl_buffer_text(c->answer, "{\"cursor\":\"%" PRIx64 "\"}\n", cursor);
    return n < 0 ? n : 0;
}

/* One that has gone since it was listed is left out. */
static int shown(int rc)
{
    return rc == DUE_ENOENT || rc == DUE_EBUSY ? 0 : rc;
}

int due__ctl_carry_list(struct due__ctl_carrier *c)
{
    uint64_t cursor = c->request->cursor;
    due_info infos[PAGE];
    int rc = 0;

    add_head(c);
    int n = due_list(c->of->queue, &cursor, infos, page_max(c->request));
    for (int i = 0; i < n && rc == 0; i++)
        rc = shown(show_job(c, &infos[i], NULL, page_data(c->request)));
    return rc != 0 ? rc : end_page(c, n, cursor);
}

int due__ctl_carry_dead(struct due__ctl_carrier *c)
{
    uint64_t cursor = c->request->cursor;
    due_dead dead[PAGE];
    int rc = 0;

    add_head(c);
    int n = due_list_dead(c->of->queue, &cursor, dead, page_max(c->request));
    for (int i = 0; i < n && rc == 0; i++) {
        due_info info = info_of(&dead[i]);

        rc = shown(show_job(c, &info, &dead[i], page_data(c->request)));
    }
    return rc != 0 ? rc : end_page(c, n, cursor);
}

/* ---- Jobs that are named --------------------------------------------------------------------- */

/* Of the dead the library knows no way from an id to what is told of it but the list of all. */
struct dead_ones {
    due_dead found[DUE__CTL_IDS]; /* where the id of the request stands */
    bool wanted[DUE__CTL_IDS];
    size_t left; /* that were not found yet */
};

static void note_dead(struct dead_ones *d, const struct due__ctl_request *r, const due_dead *it)
{
    for (size_t i = 0; i < r->n; i++) {
        if (d->wanted[i] && d->found[i].cause == 0 && due_id_equal(r->ids[i], it->id)) {
            d->found[i] = *it;
            d->left--;
        }
    }
}

static int find_dead(struct due__ctl_carrier *c, struct dead_ones *d)
{
    due_dead page[PAGE];
    uint64_t cursor = 0;
    int n = 1;

    while (d->left > 0 && n > 0) {
        n = due_list_dead(c->of->queue, &cursor, page, PAGE);
        for (int i = 0; i < n; i++)
            note_dead(d, c->request, &page[i]);
    }
    return n < 0 ? n : 0;
}

/* An error of the queue, or of its store, is that of all that come behind it: a store that is
 * silent is waited for once. */
static int over_with(int rc)
{
    return rc == 0 || due__ctl_is_of_job(rc) ? 0 : rc;
}

/* The results, and the dead among them. */
static int find_all(struct due__ctl_carrier *c, due_info *infos, int *results, struct dead_ones *d)
{
    const struct due__ctl_request *r = c->request;
    int over = 0;

    for (size_t i = 0; i < r->n; i++) {
        results[i] = over != 0 ? over : due_find(c->of->queue, r->ids[i], &infos[i]);
        if (results[i] == DUE_ENOENT) {
            results[i] = due_read(c->of->queue, r->ids[i], NULL, 0, NULL);
            d->wanted[i] = results[i] == 0;
            d->left += d->wanted[i];
        }
        over = over_with(results[i]);
    }
    int rc = find_dead(c, d);
    for (size_t i = 0; i < r->n && rc == 0; i++) {
        if (d->wanted[i] && d->found[i].cause == 0)
            results[i] = DUE_ENOENT; /* it is not dead any more */
        else if (d->wanted[i])
            infos[i] = info_of(&d->found[i]);
    }
    return rc;
}

/* Of a queue that is not to be changed no job is moved. */
static size_t show_data(const struct due__ctl_carrier *c)
{
    const struct due__ctl_request *r = c->request;
    bool still = (c->of->flags & DUE_CONTROL_READ_ONLY) != 0;

    return still ? page_data(r) : r->data < 0 ? 0 : (size_t)r->data;
}

static int show_all(struct due__ctl_carrier *c, struct dead_ones *d)
{
    const struct due__ctl_request *r = c->request;
    size_t data = show_data(c);
    int over = 0;
    due_info infos[DUE__CTL_IDS];
    int results[DUE__CTL_IDS];
    char id[DUE_ID_TEXT];
    int rc = find_all(c, infos, results, d);

    add_head(c);
    for (size_t i = 0; i < r->n && rc == 0; i++) {
        if (c->answer->len > ANSWER_MAX)
            return DUE_ELIMIT;
        if (results[i] == 0)
            results[i] =
                over != 0 ? over : show_job(c, &infos[i], d->wanted[i] ? &d->found[i] : NULL, data);
        over = over != 0 ? over : over_with(results[i]);
        if (results[i] == DUE_ENOMEM)
            rc = DUE_ENOMEM;
        else if (results[i] != 0)
            due__ctl_buffer_text(c->answer, "{\"id\":\"%s\",\"result\":\"%s\"}\n",
                                 due_id_format(r->ids[i], id), due_error_name(results[i]));
    }
    return rc;
}

int due__ctl_carry_show(struct due__ctl_carrier *c)
{
    struct due__ctl_request *r = c->request;

    if (r->key_len > 0) {
        int rc = due_id_of_key(c->of->queue, r->key, r->key_len, &r->ids[0]);

        if (rc != 0)
            return rc;
        r->n = 1;
    }
    struct dead_ones *d = calloc(1, sizeof *d);
    if (d == NULL)
        return DUE_ENOMEM;
    int rc = show_all(c, d);
    free(d);
    return rc;
}
