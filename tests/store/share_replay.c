/* share_replay.c - a history written down, and compared with the model of a shared store. */
#include "store/share_replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/share_model.h"

struct shown {
    due_id id;
    uint64_t held;
    int64_t lapsed_ns;
    uint32_t attempts;
    uint32_t failures;
    uint64_t content;
};

struct replay_exchange {
    due_change *changes; /* their topics are copies, other bytes are left out: what they believed
                            the content to be is in mark_len, what it is to be in headers_len */
    int *results;
    size_t n;
    struct due_claim claim;
    char **topics; /* of the claim */
    bool claims;
    struct due_exchange answer;
    struct shown *shown;
    size_t n_shown;
    size_t shown_room;
};

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "replay: no memory\n");
        abort();
    }
    return memory;
}

static struct replay_exchange *last(struct replay *r)
{
    return &r->exchanges[r->n - 1];
}

/* A name for the bytes of a job. */
static uint64_t content_of(const due_record *r)
{
    const unsigned char *bytes = r->data;
    uint64_t hash = UINT64_C(14695981039346656037) + r->len;

    for (size_t i = 0; bytes != NULL && i < r->len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/* ---- Writing down ---- */

void replay_seen(struct replay *r, const due_record *record)
{
    r->seen = content_of(record);
}

static char *copy_of(const char *text)
{
    return text == NULL ? NULL : need(strdup(text));
}

void replay_asked(struct replay *r, const due_change *changes, size_t n,
                  const struct due_claim *claim)
{
    if (r->n == r->room) {
        r->room = r->room == 0 ? 64 : 2 * r->room;
        r->exchanges = need(realloc(r->exchanges, r->room * sizeof *r->exchanges));
    }
    struct replay_exchange *x = &r->exchanges[r->n++];
    *x = (struct replay_exchange){ .n = n, .claims = claim != NULL };
    x->changes = need(calloc(n + 1, sizeof *x->changes));
    x->results = need(calloc(n + 1, sizeof *x->results));
    for (size_t i = 0; i < n; i++) {
        x->changes[i] = changes[i];
        x->changes[i].record.topic = copy_of(changes[i].record.topic);
        x->changes[i].record.mark_len = changes[i].record.mark_len > 0 ? (size_t)r->seen : 0;
        x->changes[i].record.headers_len = (size_t)content_of(&changes[i].record);
    }
    if (claim == NULL)
        return;
    x->claim = *claim;
    x->topics = need(calloc(claim->topic_count + 1, sizeof *x->topics));
    for (size_t i = 0; claim->topics != NULL && i < claim->topic_count; i++)
        x->topics[i] = copy_of(claim->topics[i]);
}

void replay_shown(struct replay *r, const due_claimed *job)
{
    struct replay_exchange *x = last(r);

    if (x->n_shown == x->shown_room) {
        x->shown_room = x->shown_room == 0 ? 8 : 2 * x->shown_room;
        x->shown = need(realloc(x->shown, x->shown_room * sizeof *x->shown));
    }
    x->shown[x->n_shown++] = (struct shown){ job->record.id,       job->held,
                                             job->lapsed_ns,       job->record.attempts,
                                             job->record.failures, content_of(&job->record) };
}

void replay_again(struct replay *r)
{
    last(r)->n_shown = 0;
}

void replay_answered(struct replay *r, const int *results, const struct due_exchange *answer)
{
    struct replay_exchange *x = last(r);

    if (x->n > 0)
        memcpy(x->results, results, x->n * sizeof *results);
    x->answer = *answer;
}

static void exchange_free(struct replay_exchange *x)
{
    for (size_t i = 0; i < x->n; i++)
        free((char *)(uintptr_t)x->changes[i].record.topic);
    for (size_t i = 0; x->claims && x->claim.topics != NULL && i < x->claim.topic_count; i++)
        free(x->topics[i]);
    free(x->topics);
    free(x->changes);
    free(x->results);
    free(x->shown);
}

void replay_unanswered(struct replay *r)
{
    exchange_free(last(r));
    r->n--;
}

void replay_add(struct replay *r, struct replay *other)
{
    r->exchanges = need(realloc(r->exchanges, (r->n + other->n + 1) * sizeof *r->exchanges));
    r->room = r->n + other->n + 1;
    if (other->n > 0)
        memcpy(r->exchanges + r->n, other->exchanges, other->n * sizeof *r->exchanges);
    r->n += other->n;
    other->n = 0;
}

void replay_free(struct replay *r)
{
    for (size_t i = 0; i < r->n; i++)
        exchange_free(&r->exchanges[i]);
    free(r->exchanges);
    *r = (struct replay){ .grain_ns = r->grain_ns, .capacity = r->capacity, .by_rank = r->by_rank };
}

/* ---- Comparing ---- */

static char said[256];

static const char *differs(size_t exchange, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *differs(size_t exchange, const char *format, ...)
{
    va_list arguments;
    int n = snprintf(said, sizeof said, "exchange %zu: ", exchange);

    va_start(arguments, format);
    vsnprintf(said + n, sizeof said - (size_t)n, format, arguments);
    va_end(arguments);
    return said;
}

static bool asked_for(const struct replay_exchange *x, const struct model_job *j)
{
    for (size_t i = 0; i < x->claim.topic_count && x->claim.topics != NULL; i++)
        if (strcmp(x->topics[i], j->topic) == 0)
            return true;
    return x->claim.topics == NULL;
}

/* A claim that came back short has come to all that was due, and nothing is left of it. */
static void note_ended(struct model *m, const struct replay_exchange *x)
{
    int64_t now_ns = x->answer.now_ns;

    for (size_t i = 0; x->n_shown < x->claim.need && !x->answer.more && i < m->n; i++)
        if (asked_for(x, &m->jobs[i]) && model_maybe(m, &m->jobs[i], now_ns) &&
            !model_topic(m, m->jobs[i].topic)->paused)
            model_end(m, &m->jobs[i], 0);
}

static const char *check_claim(struct model *m, const struct replay_exchange *x, size_t at)
{
    int64_t now_ns = x->answer.now_ns;

    if (x->n_shown > x->claim.need + x->claim.extra)
        return differs(at, "%zu jobs, more than were asked for", x->n_shown);
    for (size_t i = 0; i < x->n_shown; i++) {
        const struct shown *s = &x->shown[i];
        struct model_job *j = model_find(m, s->id);

        if (j == NULL || !asked_for(x, j))
            return differs(at, "job %zu is none that was asked for", i);
        if (!model_is_next(m, j, now_ns))
            return differs(at, "job %zu is not the one that is next", i);
        if (j->state == WAITS ? s->lapsed_ns != 0 : model_grains(m, s->lapsed_ns) != j->at)
            return differs(at, "job %zu, %s since %lld, is shown with a lease over at %lld", i,
                           j->state == WAITS ? "waiting" : "held", (long long)j->at,
                           (long long)s->lapsed_ns);
        if (j->attempts != s->attempts || j->failures != s->failures)
            return differs(at, "the counts of job %zu are %u, %u", i, s->attempts, s->failures);
        if (j->content != s->content)
            return differs(at, "the bytes of job %zu are others", i);
        if (j->state == HELD && j->held == s->held)
            return differs(at, "job %zu has the lease that it had", i);
        if (j->state == WAITS)
            j->until = j->at;
        j->state = HELD;
        j->passed = j->group_len > 0;
        j->held = s->held;
        j->at = model_grains(m, now_ns + x->claim.lease_ns);
    }
    for (size_t i = 0; x->n_shown < x->claim.need && !x->answer.more && i < m->n; i++)
        if (asked_for(x, &m->jobs[i]) && model_is_due(m, &m->jobs[i], now_ns) &&
            model_first_due(m, m->jobs[i].topic, now_ns) != NULL)
            return differs(at, "it came back short, and more is due");
    note_ended(m, x);
    return NULL;
}

static int by_stamp(const void *a, const void *b)
{
    const struct replay_exchange *x = a;
    const struct replay_exchange *y = b;

    return (x->answer.stamp > y->answer.stamp) - (x->answer.stamp < y->answer.stamp);
}

const char *replay_check(struct replay *r)
{
    struct model m = { .grain_ns = r->grain_ns, .capacity = r->capacity, .by_rank = r->by_rank };
    const char *wrong = NULL;

    if (r->n > 0)
        qsort(r->exchanges, r->n, sizeof *r->exchanges, by_stamp);
    for (size_t i = 0; i < r->n && wrong == NULL; i++) {
        struct replay_exchange *x = &r->exchanges[i];

        if (i > 0 && x->answer.stamp == r->exchanges[i - 1].answer.stamp)
            wrong = differs(i, "a stamp that another one has");
        m.shut = false;
        for (size_t k = 0; k < x->n && wrong == NULL; k++) {
            int rc = model_change(&m, &x->changes[k], x->answer.now_ns, x->results[k]);

            if (rc != x->results[k])
                wrong = differs(i, "change %zu of kind %d: %s instead of %s", k,
                                (int)x->changes[k].kind, due_error_name(x->results[k]),
                                due_error_name(rc));
        }
        if (wrong == NULL && x->claims)
            wrong = check_claim(&m, x, i);
    }
    free(m.jobs);
    return wrong;
}
