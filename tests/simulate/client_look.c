/* client_look.c - calls that look at jobs and at the queue, and change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "due/metrics.h"
#include "machine.h"

#define LISTED 8

/* ---- At one job ---- */

/* Its bytes are those of one put or update, and of its own, unless a key has changed it. */
static void check_bytes(const struct book *b, const unsigned char *bytes, size_t len)
{
    due_job job = { .data = bytes, .len = len };
    uint64_t number = client_number(&job);
    const struct book *from = books_job(number);

    if (number == 0 || from == NULL)
        machine_fail("a job is read, and its bytes make no sense");
    if (!b->keyed && from != b && from->round.of != books_number(b))
        machine_fail("job %" PRIu64 " is read, and has the bytes of %" PRIu64, books_number(b),
                     number);
}

void client_read(struct client *c)
{
    static unsigned char buffers[PLAN_SEATS][PLAN_QUEUES][BOOKS_CALLERS][CLIENT_BYTES];
    unsigned char *bytes = buffers[c->program->seat][c->program->queue][client_number_of(c)];
    size_t at;
    size_t len = 0;
    char id[DUE_ID_TEXT];
    struct book *b = client_draw(c, &at);

    if (b == NULL)
        return;
    history_note(c->thread, "read? %s", due_id_format(b->id, id));
    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    books_looks_at(c->thread, b);
    int rc = due_read(c->program->q, b->id, bytes, CLIENT_BYTES, &len);
    books_return(c->thread, rc);
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    if (rc == DUE_ENOENT)
        books_unknown(c->thread);
    if (rc == 0 && len > 0) /* else it has a pointer */
        check_bytes(b, bytes, len);
    history_note(c->thread, "read! %s %zu", due_error_name(rc), len);
    if (rc == DUE_ENOENT)
        client_forget(c, at);
}

void client_find_key(struct client *c)
{
    char name[16];
    char text[DUE_ID_TEXT];
    unsigned key = 1 + (unsigned)model_below(&c->random, c->program->plan->keys);
    int n = snprintf(name, sizeof name, "key-%u", key);
    due_id id = { { 0 } };

    history_ask(c->thread, "find? %u", key);
    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    int rc = due_id_of_key(c->program->q, name, (size_t)n, &id);
    books_return(c->thread, rc);
    history_tell(c->thread, "find! %u %s %s", key, due_error_name(rc), client_id(id, text));
}

/* What is said of a job that waits.  Its time is told apart only while it cannot have been had. */
static void shown(struct client *c, const struct book *b, const due_info *info)
{
    const struct plan *p = c->program->plan;
    struct content seen = { .fields = CONTENT_PRIORITY,
                            .least_ns = info->deadline_ns,
                            .priority = info->priority };
    uint64_t number = books_bytes(c->thread, b);

    if (client_topic(c->program, info->topic) != b->topic)
        machine_fail("job %" PRIu64 " is said to be of another topic", books_number(b));
    if (contents_timed(b))
        seen.fields |= CONTENT_TIME;
    books_seen(c->thread, b, &seen);
    if (number != 0 && info->len != (b->carried ? 0 : client_length(p, number)))
        machine_fail("job %" PRIu64 " is said to have %zu bytes", books_number(b), info->len);
}

void client_find(struct client *c)
{
    size_t at;
    char id[DUE_ID_TEXT];
    due_info info;
    int64_t ns = 0;
    struct book *b = client_draw(c, &at);
    bool remaining = model_below(&c->random, 3) == 0;

    if (b == NULL)
        return;
    history_note(c->thread, "look at? %s", due_id_format(b->id, id));
    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    books_looks_at(c->thread, b);
    int64_t begun_ns = books_now();
    int rc = remaining ? due_remaining(c->program->q, b->id, &ns)
                       : due_find(c->program->q, b->id, &info);
    books_return(c->thread, rc);
    if (rc == 0 && remaining) /* as if it were listed with that time */
        books_remaining(c->thread, b, begun_ns + ns, books_now() + ns);
    else if (rc == 0)
        shown(c, b, &info);
    if (rc == 0 && !remaining && info.ready != 0 && info.deadline_ns > books_now() &&
        c->program->plan->machine.clock_step_max_ns == 0)
        machine_fail("job %" PRIu64 " is said to be due", books_number(b));
    if (rc == DUE_EBUSY)
        books_busy(c->thread);
    history_note(c->thread, "look at! %s %" PRId64, due_error_name(rc), ns);
}

/* ---- At all of them ---- */

static uint64_t look_at_stats(const struct client *c)
{
    const struct plan *p = c->program->plan;
    struct due_stats s;
    uint64_t left = books_left();

    if (due_stats_read(c->program->q, &s) != 0)
        machine_fail("due_stats_read fails");
    if (s.ready > s.waiting || s.mended > 0)
        machine_fail("stats: %" PRIu64 " ready of %" PRIu64 " waiting, %" PRIu64 " mended", s.ready,
                     s.waiting, s.mended);
    if (p->dead_max > 0 && !plan_has(p, KIND_EXPIRY) && /* many die at a time */
        s.dead > p->dead_max + 2 * BOOKS_CALLERS)       /* who dies is on his way */
        machine_fail("stats: %" PRIu64 " dead, and %zu are kept", s.dead, p->dead_max);
    if (!plan_has(p, KIND_STORED) && s.waiting + s.leased + s.dead > books_inside_most(left))
        machine_fail("stats: %" PRIu64 " waiting, %" PRIu64 " leased and %" PRIu64
                     " dead, and no more than %" PRIu64 " can be inside",
                     s.waiting, s.leased, s.dead, books_inside_most(left));
    return s.waiting;
}

/* All that wait, each once. */
static int list(struct client *c, uint64_t *n)
{
    static bool lists[PLAN_SEATS][PLAN_QUEUES][BOOKS_CALLERS][BOOKS_JOBS + 1];
    bool *listed = lists[c->program->seat][c->program->queue][client_number_of(c)];
    due_info infos[LISTED];
    uint64_t cursor = 0;
    int rc;

    memset(listed, 0, sizeof lists[0][0][0]);
    while ((rc = due_list(c->program->q, &cursor, infos, LISTED)) > 0) {
        for (int i = 0; i < rc; i++) {
            const struct book *b = books_find(infos[i].id);

            if (b == NULL)
                continue;
            if (listed[books_number(b)])
                machine_fail("job %" PRIu64 " is listed twice", books_number(b));
            listed[books_number(b)] = true;
            shown(c, b, &infos[i]);
        }
        *n += (uint64_t)rc;
    }
    if (rc == 0)
        books_listed(c->thread, listed);
    return rc;
}

/* ---- Figures ---- */

/* A topic's are not more than there can be. */
static void look_at_topic(const struct client *c, int topic)
{
    struct due_topic_stats s;
    due_histogram late;
    due_histogram held;

    if (due_topic_stats_read(c->program->q, topic, &s) != 0)
        machine_fail("due_topic_stats_read fails");
    if (s.enqueued > books_count())
        machine_fail("a topic: %" PRIu64 " enqueued", s.enqueued);
    if (due_topic_durations(c->program->q, topic, &late, &held) != 0)
        machine_fail("due_topic_durations fails");
}

void client_measure(struct client *c)
{
    due_queue *q = c->program->q;
    int topic = c->program->topic[model_below(&c->random, PLAN_TOPICS)];
    struct due_metrics m;
    int rc = 0;

    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    switch (model_below(&c->random, 24)) {
    case 0: /* tens of thousands of steps */
        rc = due_metrics_read(q, &m);
        if (rc == 0 && m.stats.ready > m.stats.waiting)
            machine_fail("metrics: %" PRIu64 " ready of %" PRIu64 " waiting", m.stats.ready,
                         m.stats.waiting);
        break;
    case 1:
    case 2:
    case 3:
        look_at_topic(c, topic);
        break;
    default:
        rc = due_topic_measure(q, topic);
        break;
    }
    if (rc != 0 && rc != DUE_ENOMEM)
        machine_fail("a look at the figures: %s", due_error_name(rc));
    books_return(c->thread, 0);
    history_note(c->thread, "measure %d", rc);
}

static int peek(const struct client *c)
{
    due_info info;
    int rc = due_peek(c->program->q, &info);

    if (rc == 0 || rc == DUE_EAGAIN)
        books_next(c->thread, rc == 0 ? info.deadline_ns : DUE_FOREVER);
    return rc;
}

void client_look(struct client *c)
{
    due_queue *q = c->program->q;
    int64_t next_ns = 0;
    int rc = 0;
    uint64_t n = 0;

    books_call(c->thread, WAIT_LOOK, 0, DUE_FOREVER);
    switch (model_below(&c->random, 6)) {
    case 0:
        n = look_at_stats(c);
        break;
    case 1:
        rc = peek(c);
        break;
    case 2:
        rc = list(c, &n);
        break;
    case 3:
        rc = due_poll(q, &next_ns);
        break;
    case 4:
        rc = due_trim(q);
        break;
    default:
        next_ns = due_next_deadline(q);
        books_next(c->thread, next_ns);
        break;
    }
    books_return(c->thread, 0);
    history_note(c->thread, "look %d %" PRIu64, rc, n);
}
