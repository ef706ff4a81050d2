/* share_replay.c - the model of a shared store, and the comparison with a history. */
#include "store/share_replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- The model ---- */

enum state { GONE, WAITS, HELD, DEAD };

struct model_job {
    due_id id;
    const char *topic;
    enum state state;
    int64_t at;    /* WAITS: due then; HELD: the lease ends; DEAD: since; in grains */
    int64_t until; /* HELD: what it would be if it waited */
    uint64_t held;
    uint32_t attempts;
    uint32_t failures;
    uint64_t content;
    const void *group;
    size_t group_len; /* 0: none */
    bool passed;      /* it has the group's pass */
};

/* What holds back a topic. */
struct model_topic {
    const char *name;
    bool paused;
    int64_t held_max;
};

#define MODEL_TOPICS 16

struct model_key {
    const void *bytes;
    size_t len;
    due_id id;     /* whose it is */
    int64_t until; /* in grains, that job is gone, and it is kept; 0: it lives */
};

#define MODEL_KEYS 32

struct model {
    struct model_job *jobs;
    size_t n;
    struct model_topic topics[MODEL_TOPICS];
    size_t n_topics;
    struct model_key keys[MODEL_KEYS]; /* those that are had */
    size_t n_keys;
    int64_t grain_ns;
    uint64_t capacity;
    bool by_rank;
    bool shut; /* an earlier put of the exchange had no room */
};

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

static int64_t grains(const struct model *m, int64_t ns)
{
    return m->grain_ns <= 1 ? ns : ns / m->grain_ns + (ns % m->grain_ns > 0);
}

static struct model_job *model_find(struct model *m, due_id id)
{
    for (size_t i = 0; i < m->n; i++)
        if (due_id_equal(m->jobs[i].id, id))
            return &m->jobs[i];
    return NULL;
}

/* The key, if somebody has it, or it is kept still. */
static struct model_key *model_key(struct model *m, const due_record *r, int64_t now_ns)
{
    int64_t now = m->grain_ns <= 1 ? now_ns : now_ns / m->grain_ns;

    for (size_t i = 0; i < m->n_keys; i++) {
        struct model_key *key = &m->keys[i];

        if (key->len == r->key_len && memcmp(key->bytes, r->key, key->len) == 0)
            return key->until == 0 || key->until > now ? key : NULL;
    }
    return NULL;
}

/* Whatever the key was, it is the job's. */
static void model_key_set(struct model *m, const due_record *r)
{
    size_t i = 0;

    while (i < m->n_keys &&
           (m->keys[i].len != r->key_len || memcmp(m->keys[i].bytes, r->key, r->key_len) != 0))
        i++;
    if (i == MODEL_KEYS)
        abort();
    m->n_keys += i == m->n_keys;
    m->keys[i] = (struct model_key){ .bytes = r->key, .len = r->key_len, .id = r->id };
}

/* A job is gone: what it had is free, or kept. */
static void model_key_end(struct model *m, due_id id, int64_t kept_ns)
{
    for (size_t i = 0; i < m->n_keys; i++) {
        if (m->keys[i].until != 0 || !due_id_equal(m->keys[i].id, id))
            continue;
        if (kept_ns > 0)
            m->keys[i].until = grains(m, kept_ns);
        else
            m->keys[i] = m->keys[--m->n_keys];
        return;
    }
}

static void set_waiting(struct model *m, struct model_job *j, const due_record *r)
{
    j->state = WAITS;
    j->at = grains(m, r->until_ns);
    j->attempts = r->attempts;
    j->failures = r->failures;
}

static int model_held(struct model *m, struct model_job *j, const due_change *c, int64_t now_ns)
{
    if (j == NULL || j->state != HELD || j->held != c->held)
        return DUE_ESTALE;
    switch (c->kind) {
    case DUE_CHANGE_DROP:
        j->state = GONE;
        j->passed = false;
        model_key_end(m, j->id, c->key_kept_ns);
        break;
    case DUE_CHANGE_MOVE:
        set_waiting(m, j, &c->record);
        j->passed = j->passed && c->keeps_pass;
        break;
    case DUE_CHANGE_BURY:
        j->state = DEAD;
        j->passed = false;
        j->at = grains(m, c->record.died_ns);
        break;
    case DUE_CHANGE_BEGIN:
        j->attempts = c->record.attempts;
        j->failures = c->record.failures;
        break;
    case DUE_CHANGE_EXTEND:
        j->at = grains(m, now_ns + c->lease_ns);
        break;
    default: /* RELEASE */
        j->state = WAITS;
        j->at = j->until;
    }
    return 0;
}

static struct model_topic *model_topic(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_topics; i++)
        if (strcmp(m->topics[i].name, name) == 0)
            return &m->topics[i];
    if (m->n_topics == MODEL_TOPICS)
        abort();
    m->topics[m->n_topics] = (struct model_topic){ .name = name };
    return &m->topics[m->n_topics++];
}

/* Of a dead job: did it die then, and are too many dead, if the change says so? */
static bool model_may_drop(const struct model *m, const struct model_job *j, const due_change *c)
{
    uint64_t dead = 0;

    for (size_t i = 0; i < m->n; i++)
        dead += m->jobs[i].state == DEAD;
    return (c->was_ns == 0 || j->at == grains(m, c->was_ns)) &&
           (c->dead_max == 0 || dead > c->dead_max);
}

/* Of a job that nobody holds: is it what the change says that it was? */
static bool model_is_so(const struct model *m, const struct model_job *j, const due_change *c)
{
    if (j->at != grains(m, c->was_ns))
        return false;
    if (j->state == WAITS &&
        (j->attempts != c->record.attempts || j->failures != c->record.failures))
        return false;
    return c->kind == DUE_CHANGE_MOVE || j->content == c->record.mark_len;
}

/* Is the queue as full as it may be? */
static bool model_full(const struct model *m)
{
    uint64_t live = 0;

    for (size_t i = 0; i < m->n; i++)
        live += m->jobs[i].state == WAITS || m->jobs[i].state == HELD;
    return m->capacity > 0 && live >= m->capacity;
}

static int model_put(struct model *m, const due_change *c, int64_t now_ns)
{
    const struct model_key *key = c->record.key_len > 0 ? model_key(m, &c->record, now_ns) : NULL;

    if (key != NULL && (key->until != 0 || !due_id_equal(key->id, c->from)))
        return DUE_EEXIST;
    m->shut |= !c->keeps_room && model_full(m);
    if (m->shut && !c->keeps_room)
        return DUE_EAGAIN;
    if (c->record.key_len > 0)
        model_key_set(m, &c->record);
    m->jobs = need(realloc(m->jobs, (m->n + 1) * sizeof *m->jobs));
    struct model_job *j = &m->jobs[m->n++];
    *j = (struct model_job){ .id = c->record.id,
                             .topic = c->record.topic,
                             .content = c->record.headers_len,
                             .group = c->record.group,
                             .group_len = c->record.group_len };
    set_waiting(m, j, &c->record);
    return 0;
}

static int model_change(struct model *m, const due_change *c, int64_t now_ns)
{
    struct model_job *j = model_find(m, c->record.id);

    if (c->kind == DUE_CHANGE_TOPIC) {
        struct model_topic *t = model_topic(m, c->record.topic);

        t->paused = c->paused >= 0 ? c->paused != 0 : t->paused;
        t->held_max = c->held_max >= 0 ? c->held_max : t->held_max;
        return 0;
    }
    if (c->kind == DUE_CHANGE_PUT)
        return model_put(m, c, now_ns);
    if (c->held != 0)
        return model_held(m, j, c, now_ns);
    if (j == NULL || j->state == GONE || (j->state == DEAD) != (c->was_dead != 0))
        return DUE_ENOENT;
    if (j->state == HELD)
        return DUE_EBUSY;
    if (c->kind != DUE_CHANGE_MOVE && c->record.key_len > 0) {
        const struct model_key *key = model_key(m, &c->record, now_ns);

        if (key == NULL || key->until != 0 || !due_id_equal(key->id, j->id))
            return DUE_EAGAIN;
    }
    if (c->kind == DUE_CHANGE_DROP) {
        bool drops = c->record.mark_len != 0 ? model_is_so(m, j, c)
                                             : j->state != DEAD || model_may_drop(m, j, c);

        j->state = drops ? GONE : j->state;
        j->passed = j->passed && !drops;
        if (drops)
            model_key_end(m, j->id, 0);
        return drops ? 0 : DUE_EAGAIN;
    }
    if (!model_is_so(m, j, c))
        return DUE_EAGAIN;
    if (c->kind == DUE_CHANGE_AMEND)
        j->content = c->record.headers_len;
    if (c->kind == DUE_CHANGE_MOVE || j->at != grains(m, c->record.until_ns))
        j->passed = false; /* another time */
    if (c->record.cause == 0)
        set_waiting(m, j, &c->record);
    if (c->anew)
        j->attempts = j->failures = 0;
    return 0;
}

static bool asked_for(const struct replay_exchange *x, const struct model_job *j)
{
    for (size_t i = 0; i < x->claim.topic_count && x->claim.topics != NULL; i++)
        if (strcmp(x->topics[i], j->topic) == 0)
            return true;
    return x->claim.topics == NULL;
}

/* Of two that are due in one topic: ended leases first, or the higher priority; then by time, then
 * by id, whose first byte is 255 less the priority. */
static bool comes_before(const struct model *m, const struct model_job *a,
                         const struct model_job *b)
{
    if (m->by_rank && a->id.byte[0] != b->id.byte[0])
        return a->id.byte[0] < b->id.byte[0];
    if (!m->by_rank && a->state != b->state)
        return a->state == HELD;
    if (a->at != b->at)
        return a->at < b->at;
    return memcmp(a->id.byte, b->id.byte, DUE_STORE_ID_BYTES) < 0;
}

static bool is_due(const struct model *m, const struct model_job *j, int64_t now_ns)
{
    int64_t now = m->grain_ns <= 1 ? now_ns : now_ns / m->grain_ns;

    return (j->state == WAITS || j->state == HELD) && j->at <= now;
}

/* May one more of its jobs be held? */
static bool has_room(struct model *m, const char *topic)
{
    int64_t held_max = model_topic(m, topic)->held_max;
    int64_t held = 0;

    for (size_t i = 0; held_max > 0 && i < m->n; i++)
        held += m->jobs[i].state == HELD && strcmp(m->jobs[i].topic, topic) == 0;
    return held_max == 0 || held < held_max;
}

/* Of two of a group that wait without the pass: by time in any order of the queue. */
static bool is_first_of_group(const struct model_job *a, const struct model_job *b)
{
    return a->state == WAITS &&
           (a->at < b->at ||
            (a->at == b->at && memcmp(a->id.byte, b->id.byte, DUE_STORE_ID_BYTES) < 0));
}

/* Has another one of its group the pass, or does one wait that comes before it? */
static bool is_kept_back(const struct model *m, const struct model_job *j)
{
    for (size_t i = 0; j->group_len > 0 && i < m->n; i++) {
        const struct model_job *other = &m->jobs[i];

        if ((other->passed || (!j->passed && is_first_of_group(other, j))) && other != j &&
            strcmp(other->topic, j->topic) == 0 && other->group_len == j->group_len &&
            memcmp(other->group, j->group, j->group_len) == 0)
            return true;
    }
    return false;
}

/* The first one that can be claimed, of that topic. */
static struct model_job *first_due(struct model *m, const char *topic, int64_t now_ns)
{
    struct model_job *first = NULL;

    if (model_topic(m, topic)->paused)
        return NULL;
    bool room = has_room(m, topic);
    for (size_t i = 0; i < m->n; i++) {
        struct model_job *j = &m->jobs[i];

        if (is_due(m, j, now_ns) && (room || j->state == HELD) && strcmp(j->topic, topic) == 0 &&
            (first == NULL || comes_before(m, j, first)) && !is_kept_back(m, j))
            first = j;
    }
    return first;
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
        if (j != first_due(m, j->topic, now_ns))
            return differs(at, "job %zu is not the one that is next", i);
        if (j->state == WAITS ? s->lapsed_ns != 0 : grains(m, s->lapsed_ns) != j->at)
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
        j->at = grains(m, now_ns + x->claim.lease_ns);
    }
    for (size_t i = 0; x->n_shown < x->claim.need && !x->answer.more && i < m->n; i++)
        if (asked_for(x, &m->jobs[i]) && is_due(m, &m->jobs[i], now_ns) &&
            first_due(m, m->jobs[i].topic, now_ns) != NULL)
            return differs(at, "it came back short, and more is due");
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
            int rc = model_change(&m, &x->changes[k], x->answer.now_ns);

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
