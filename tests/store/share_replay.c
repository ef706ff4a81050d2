/* share_replay.c - a history written down, and compared with the model of a shared store. */
#include "store/share_replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/share_exchange.h"
#include "store/share_log.h"
#include "store/share_model.h"

#define TIME_SLACK_NS DUE_MS(20) /* two clocks of a machine may differ by so much meanwhile */

void *replay_need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "replay: no memory\n");
        abort();
    }
    return memory;
}

struct replay_exchange *replay_last(struct replay *r)
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
    return text == NULL ? NULL : replay_need(strdup(text));
}

struct replay_exchange *replay_new(struct replay *r, size_t n, bool claims)
{
    if (r->n == r->room) {
        r->room = r->room == 0 ? 64 : 2 * r->room;
        r->exchanges = replay_need(realloc(r->exchanges, r->room * sizeof *r->exchanges));
    }
    struct replay_exchange *x = &r->exchanges[r->n++];
    *x = (struct replay_exchange){ .n = n, .claims = claims };
    x->changes = replay_need(calloc(n + 1, sizeof *x->changes));
    x->results = replay_need(calloc(n + 1, sizeof *x->results));
    return x;
}

void replay_asked(struct replay *r, const due_change *changes, size_t n,
                  const struct due_claim *claim)
{
    struct replay_exchange *x = replay_new(r, n, claim != NULL);

    for (size_t i = 0; i < n; i++) {
        x->changes[i] = changes[i];
        x->changes[i].record.topic = copy_of(changes[i].record.topic);
        x->changes[i].record.mark_len = changes[i].record.mark_len > 0 ? (size_t)r->seen : 0;
        x->changes[i].record.headers_len = (size_t)content_of(&changes[i].record);
    }
    if (claim != NULL) {
        x->claim = *claim;
        x->topics = replay_need(calloc(claim->topic_count + 1, sizeof *x->topics));
        for (size_t i = 0; claim->topics != NULL && i < claim->topic_count; i++)
            x->topics[i] = copy_of(claim->topics[i]);
    }
    if (r->log != 0)
        replay_log_asked(r->log, x);
}

struct replay_shown *replay_show(struct replay_exchange *x)
{
    if (x->n_shown == x->shown_room) {
        x->shown_room = x->shown_room == 0 ? 8 : 2 * x->shown_room;
        x->shown = replay_need(realloc(x->shown, x->shown_room * sizeof *x->shown));
    }
    return &x->shown[x->n_shown++];
}

void replay_shown(struct replay *r, const due_claimed *job)
{
    *replay_show(replay_last(r)) = (struct replay_shown){ .id = job->record.id,
                                                          .held = job->held,
                                                          .lapsed_ns = job->lapsed_ns,
                                                          .attempts = job->record.attempts,
                                                          .failures = job->record.failures,
                                                          .content = content_of(&job->record) };
}

void replay_again(struct replay *r)
{
    replay_last(r)->n_shown = 0;
    if (r->log != 0)
        replay_last(r)->again_ns = replay_log_now();
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

void replay_answered(struct replay *r, const int *results, const struct due_exchange *answer)
{
    struct replay_exchange *x = replay_last(r);

    if (x->n > 0)
        memcpy(x->results, results, x->n * sizeof *results);
    x->answer = *answer;
    x->known = true;
    if (r->log != 0) {
        replay_log_answered(r->log, x);
        exchange_free(x);
        r->n--;
    }
}

void replay_unanswered(struct replay *r)
{
    if (r->log != 0)
        replay_log_line(r->log, "not\n");
    exchange_free(replay_last(r));
    r->n--;
}

void replay_add(struct replay *r, struct replay *other)
{
    r->exchanges = replay_need(realloc(r->exchanges, (r->n + other->n + 1) * sizeof *r->exchanges));
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
    free(r->lost);
    free(r->turns);
    free(r->evicted);
    *r = (struct replay){ .grain_ns = r->grain_ns, .capacity = r->capacity, .by_rank = r->by_rank };
}

struct replay_lost {
    uint64_t above;
    uint64_t below;
};

void replay_lost(struct replay *r, uint64_t above, uint64_t below)
{
    r->lost = replay_need(realloc(r->lost, (r->n_lost + 1) * sizeof *r->lost));
    r->lost[r->n_lost++] = (struct replay_lost){ above, below };
}

struct replay_turn {
    int64_t from_ns;
    int64_t to_ns;
    int64_t peak_ns;
    int64_t ahead_ns; /* of the monotonic clock, since then */
    bool over;        /* whatever comes now is behind it */
};

void replay_turned(struct replay *r, int64_t from_ns, int64_t to_ns, int64_t peak_ns,
                   int64_t ahead_ns)
{
    r->turns = replay_need(realloc(r->turns, (r->n_turns + 1) * sizeof *r->turns));
    r->turns[r->n_turns++] = (struct replay_turn){ from_ns, to_ns, peak_ns, ahead_ns, false };
}

bool replay_was_turned(const struct replay *r, int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 1; i < r->n_turns; i++)
        if (r->turns[i].to_ns >= from_ns && r->turns[i].from_ns <= to_ns)
            return true;
    return false;
}

struct replay_evicted {
    uint64_t writer;
    int64_t at_ns;
};

void replay_evicted(struct replay *r, uint64_t writer, int64_t at_ns)
{
    r->evicted = replay_need(realloc(r->evicted, (r->n_evicted + 1) * sizeof *r->evicted));
    r->evicted[r->n_evicted++] = (struct replay_evicted){ writer, at_ns };
}

/* ---- Comparing ---- */

static char said[512];

static const char *differs(const struct replay_exchange *x, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static const char *differs(const struct replay_exchange *x, size_t at, const char *format, ...)
{
    va_list arguments;
    int n = snprintf(said, sizeof said, "exchange %zu, stamp %llu", at,
                     (unsigned long long)x->answer.stamp);

    if (x->file != NULL)
        n += snprintf(said + n, sizeof said - (size_t)n, ", %.80s:%u", x->file, x->line);
    n += snprintf(said + n, sizeof said - (size_t)n, ": ");
    va_start(arguments, format);
    vsnprintf(said + n, sizeof said - (size_t)n, format, arguments);
    va_end(arguments);
    return said;
}

static bool asked_for(const struct replay_exchange *x, const char *topic)
{
    for (size_t i = 0; i < x->claim.topic_count && x->claim.topics != NULL; i++)
        if (strcmp(x->topics[i], topic) == 0)
            return true;
    return x->claim.topics == NULL;
}

/* A claim that came back short has come to all that was due, and nothing is left of it. */
static void note_ended(struct model *m, const struct replay_exchange *x)
{
    int64_t now_ns = x->answer.now_ns;

    for (size_t i = 0; x->n_shown < x->claim.need && !x->answer.more && i < m->n; i++)
        if (asked_for(x, m->jobs[i].topic) && model_maybe(m, &m->jobs[i], now_ns) &&
            model_is_due(m, &m->jobs[i], now_ns) && !model_topic(m, m->jobs[i].topic)->paused)
            model_end(m, &m->jobs[i], 0);
}

static const char *is_not_next(struct model *m, const struct replay_exchange *x, size_t i,
                               size_t at)
{
    const char *topic = model_find(m, x->shown[i].id)->topic;
    const struct model_job *next = model_first_due(m, topic, x->answer.now_ns);
    char one[DUE_ID_TEXT];
    char other[DUE_ID_TEXT];

    return differs(x, at, "job %zu, %s, is not the one that is next, %s", i,
                   due_id_format(x->shown[i].id, one),
                   next != NULL ? due_id_format(next->id, other) : "none");
}

static const char *check_claim(struct model *m, const struct replay_exchange *x, size_t at)
{
    int64_t now_ns = x->answer.now_ns;

    if (x->n_shown > x->claim.need + x->claim.extra)
        return differs(x, at, "%zu jobs, more than were asked for", x->n_shown);
    for (size_t i = 0; i < x->n_shown; i++) {
        const struct replay_shown *s = &x->shown[i];
        struct model_job *j = model_find(m, s->id);

        if (j == NULL || !asked_for(x, j->topic))
            return differs(x, at, "job %zu is none that was asked for", i);
        if (!model_is_next(m, j, now_ns))
            return is_not_next(m, x, i, at);
        if (j->state == WAITS ? s->lapsed_ns != 0 : model_grains(m, s->lapsed_ns) != j->at)
            return differs(x, at, "job %zu, %s since %lld, is shown with a lease over at %lld", i,
                           j->state == WAITS ? "waiting" : "held", (long long)j->at,
                           (long long)s->lapsed_ns);
        if (!s->unseen && (j->attempts != s->attempts || j->failures != s->failures))
            return differs(x, at, "the counts of job %zu are %u, %u", i, s->attempts, s->failures);
        if (!s->unseen && j->content != s->content)
            return differs(x, at, "the bytes of job %zu are others", i);
        if (j->state == HELD && j->held == s->held)
            return differs(x, at, "job %zu has the lease that it had", i);
        if (j->state == WAITS)
            j->until = j->at;
        j->state = HELD;
        j->passed = j->group_len > 0;
        j->held = s->held;
        j->at = model_grains(m, now_ns + x->claim.lease_ns);
    }
    for (size_t i = 0; x->n_shown < x->claim.need && !x->answer.more && i < m->n_topics; i++)
        if (asked_for(x, m->topics[i].name) &&
            model_first_due(m, m->topics[i].name, now_ns) != NULL)
            return differs(x, at, "it came back short, and more is due");
    note_ended(m, x);
    return NULL;
}

static int by_stamp(const void *a, const void *b)
{
    const struct replay_exchange *x = a;
    const struct replay_exchange *y = b;

    return (x->answer.stamp > y->answer.stamp) - (x->answer.stamp < y->answer.stamp);
}

/* Did the store lose it? */
static bool is_lost(const struct replay *r, const struct replay_exchange *x)
{
    for (size_t i = 0; i < r->n_lost; i++)
        if (x->answer.stamp > r->lost[i].above && x->answer.stamp < r->lost[i].below)
            return true;
    return false;
}

/* Lanes of which something that was answered is lost: who goes on in one is told so, and joins anew
 * before anything else is done in it. */
struct behind {
    const struct replay_exchange **first;
    size_t n;
};

static const char *check_told(struct behind *b, const struct replay_exchange *x, bool lost,
                              size_t at)
{
    size_t i = 0;

    while (i < b->n && (b->first[i]->writer != x->writer || b->first[i]->work != x->work))
        i++;
    if (!lost && i < b->n && x->writer != 0)
        return differs(x, at, "an earlier one of its lane, %.80s:%u, is lost, and it was not told",
                       b->first[i]->file, b->first[i]->line);
    if (lost && i == b->n && x->answered_ns != 0) {
        b->first = replay_need(realloc(b->first, (b->n + 1) * sizeof *b->first));
        b->first[b->n++] = x;
    }
    return NULL;
}

/* The clock may have been turned before it, and not behind all that comes behind it. */
static void note_turns(struct replay *r, struct model *m, const struct replay_exchange *x)
{
    for (size_t i = 0; i < r->n_turns; i++) {
        struct replay_turn *turn = &r->turns[i];

        if (turn->over || (x->answered_ns != 0 && x->answered_ns < turn->from_ns))
            continue;
        model_set_back(m, turn->peak_ns);
        turn->over = x->asked_ns > turn->to_ns;
    }
}

/* The time is that of the store's clock, as far as it is known. */
static const char *check_time(const struct replay *r, const struct replay_exchange *x, size_t at)
{
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;

    for (size_t i = 0; i < r->n_turns && x->answered_ns != 0; i++) {
        const struct replay_turn *t = &r->turns[i];

        if (t->from_ns > x->answered_ns || (i + 1 < r->n_turns && t[1].to_ns < x->asked_ns))
            continue;
        least = t->ahead_ns < least ? t->ahead_ns : least;
        most = t->ahead_ns > most ? t->ahead_ns : most;
    }
    if (most == INT64_MIN || (x->answer.now_ns >= x->asked_ns + least - TIME_SLACK_NS &&
                              x->answer.now_ns <= x->answered_ns + most + TIME_SLACK_NS))
        return NULL;
    return differs(x, at, "the clock did not show %lld then", (long long)x->answer.now_ns);
}

/* Who was turned out is not answered any more. */
static const char *check_evicted(const struct replay *r, const struct replay_exchange *x, size_t at)
{
    int64_t sent_ns = x->again_ns > x->asked_ns ? x->again_ns : x->asked_ns;

    for (size_t i = 0; i < r->n_evicted && x->answered_ns != 0; i++)
        if (x->writer == r->evicted[i].writer && sent_ns > r->evicted[i].at_ns)
            return differs(x, at, "it was turned out before it asked");
    return NULL;
}

/* Nothing of it was done, since the store was full. */
static bool is_refused(const struct replay_exchange *x)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->results[i] != DUE_ENOSPC)
            return false;
    return x->n > 0 && !x->claims;
}

/* What is gone is as what never was. */
static void forget_gone(struct model *m)
{
    for (size_t i = m->n; i-- > 0;)
        if (m->jobs[i].state == GONE)
            m->jobs[i] = m->jobs[--m->n];
}

static int stamp_is(const void *stamp, const void *exchange)
{
    const struct replay_exchange *x = exchange;
    uint64_t s = *(const uint64_t *)stamp;

    return (s > x->answer.stamp) - (s < x->answer.stamp);
}

/* Who hears late of a claim is not shown what others have claimed since. */
static const char *check_shown(const struct replay *r, struct model *m,
                               const struct replay_exchange *y, size_t at)
{
    for (size_t i = 0; i < y->n_shown && y->answered_ns != 0; i++) {
        const struct model_job *j = model_find(m, y->shown[i].id);
        const struct replay_exchange *x =
            j == NULL || j->held == 0 || j->held == y->answer.stamp
                ? NULL
                : bsearch(&j->held, r->exchanges, r->n, sizeof *r->exchanges, stamp_is);

        for (size_t k = 0; x != NULL && x->again_ns > y->answered_ns && k < x->n_shown; k++)
            if (!x->shown[k].unseen && due_id_equal(x->shown[k].id, y->shown[i].id))
                return differs(x, at, "it shows job %zu, which another one has claimed since", k);
    }
    return NULL;
}

static const char *check_one(struct model *m, const struct replay_exchange *x, size_t at)
{
    m->shut = false;
    for (size_t k = 0; k < x->n; k++) {
        int rc = model_change(m, &x->changes[k], x->answer.now_ns, x->results[k]);

        if (rc != x->results[k])
            return differs(x, at, "change %zu of kind %d: %s instead of %s", k,
                           (int)x->changes[k].kind, due_error_name(x->results[k]),
                           due_error_name(rc));
    }
    const char *wrong = x->claims ? check_claim(m, x, at) : NULL;
    forget_gone(m);
    return wrong;
}

/* Each stamp once; and what was asked when another was answered has a higher one. */
static const char *check_order(const struct replay_exchange *x,
                               const struct replay_exchange *before, int64_t *asked_ns, size_t at)
{
    if (before != NULL && x->answer.stamp == before->answer.stamp)
        return differs(x, at, "a stamp that another one has");
    if (x->answered_ns != 0 && x->answered_ns < *asked_ns)
        return differs(x, at, "it was answered before one with a lower stamp was asked");
    *asked_ns = x->asked_ns > *asked_ns ? x->asked_ns : *asked_ns;
    return NULL;
}

const char *replay_check(struct replay *r)
{
    struct model m = {
        .grain_ns = r->grain_ns, .capacity = r->capacity, .by_rank = r->by_rank, .more = r->more
    };
    const struct replay_exchange *before = NULL;
    const char *wrong = NULL;
    struct behind behind = { .n = 0 };
    int64_t asked_ns = 0;

    if (r->n > 0)
        qsort(r->exchanges, r->n, sizeof *r->exchanges, by_stamp);
    for (size_t i = 0; i < r->n && wrong == NULL; i++) {
        struct replay_exchange *x = &r->exchanges[i];

        if (r->may_be_full && is_refused(x))
            continue;
        bool lost = is_lost(r, x);
        wrong = check_told(&behind, x, lost, i);
        if (lost && r->keeps && x->answered_ns != 0)
            wrong = differs(x, i, "it was confirmed, and is lost");
        if (lost)
            continue;
        if (wrong == NULL)
            wrong = check_order(x, before, &asked_ns, i);
        if (wrong == NULL)
            wrong = check_evicted(r, x, i);
        if (wrong == NULL)
            wrong = check_time(r, x, i);
        note_turns(r, &m, x);
        if (wrong == NULL)
            wrong = check_shown(r, &m, x, i);
        if (wrong == NULL)
            wrong = check_one(&m, x, i);
        before = x;
    }
    r->left = r->dead = 0;
    for (size_t i = 0; i < m.n; i++) {
        r->left += m.jobs[i].state == WAITS || m.jobs[i].state == HELD;
        r->dead += m.jobs[i].state == DEAD;
    }
    free(m.jobs);
    free(behind.first);
    return wrong;
}
