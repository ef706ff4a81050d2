/* share_model.c - the model of a shared store: what each change answers, and which job is next. */
#include "store/share_model.h"

#include <stdlib.h>
#include <string.h>

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

int64_t model_grains(const struct model *m, int64_t ns)
{
    return m->grain_ns <= 1 ? ns : ns / m->grain_ns + (ns % m->grain_ns > 0);
}

struct model_job *model_find(struct model *m, due_id id)
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
            m->keys[i].until = model_grains(m, kept_ns);
        else
            m->keys[i] = m->keys[--m->n_keys];
        return;
    }
}

static void set_waiting(struct model *m, struct model_job *j, const due_record *r)
{
    j->state = WAITS;
    j->at = model_grains(m, r->until_ns);
    j->attempts = r->attempts;
    j->failures = r->failures;
}

/* In whole grains, as a store compares it. */
int64_t model_now(const struct model *m, int64_t now_ns)
{
    return m->grain_ns <= 1 ? now_ns : now_ns / m->grain_ns;
}

/* May a claim have ended it? */
bool model_maybe(const struct model *m, const struct model_job *j, int64_t now_ns)
{
    return j->state == HELD && j->revoked && (j->was_over || j->at <= model_now(m, now_ns));
}

void model_set_back(struct model *m, int64_t peak_ns)
{
    int64_t peak = model_now(m, peak_ns);

    for (size_t i = 0; i < m->n; i++)
        m->jobs[i].was_over |= model_maybe(m, &m->jobs[i], peak_ns);
    for (size_t i = 0; i < m->n_keys; i++)
        m->keys[i].was_over |= m->keys[i].until != 0 && m->keys[i].until <= peak;
}

void model_end(struct model *m, struct model_job *j, int64_t kept_ns)
{
    j->state = GONE;
    j->passed = false;
    model_key_end(m, j->id, kept_ns);
}

/* @rc: the answer, which tells of what may be gone whether it is. */
static int model_held(struct model *m, struct model_job *j, const due_change *c, int64_t now_ns,
                      int rc)
{
    if (j == NULL || j->state != HELD || j->held != c->held)
        return DUE_ESTALE;
    if (model_maybe(m, j, now_ns) && rc == DUE_ESTALE) {
        model_end(m, j, 0);
        return rc;
    }
    j->was_over = false; /* it is there */
    bool stays = c->kind == DUE_CHANGE_BEGIN || c->kind == DUE_CHANGE_EXTEND;
    if (c->kind == DUE_CHANGE_DROP || (j->revoked && !stays)) {
        int ended = j->revoked ? DUE_REVOKED : 0;

        model_end(m, j, c->key_kept_ns);
        return ended;
    }
    switch (c->kind) {
    case DUE_CHANGE_MOVE:
        set_waiting(m, j, &c->record);
        j->passed = j->passed && c->keeps_pass;
        break;
    case DUE_CHANGE_BURY:
        j->state = DEAD;
        j->passed = false;
        j->at = model_grains(m, c->record.died_ns);
        break;
    case DUE_CHANGE_BEGIN:
        j->attempts = c->record.attempts;
        j->failures = c->record.failures;
        break;
    case DUE_CHANGE_EXTEND:
        j->at = model_grains(m, now_ns + c->lease_ns);
        break;
    default: /* RELEASE */
        j->state = WAITS;
        j->at = j->until;
    }
    return j->revoked ? DUE_REVOKED : 0;
}

/* Of what somebody holds, or held: its lease may be over. */
static int model_revoke(struct model *m, struct model_job *j, const due_change *c, int64_t now_ns,
                        int rc)
{
    bool over = j->at <= model_now(m, now_ns);
    bool ends = c->kind == DUE_CHANGE_DROP && c->revokes;

    if (model_maybe(m, j, now_ns) && rc == DUE_ENOENT) {
        model_end(m, j, 0);
        return rc;
    }
    j->was_over = false; /* it is there */
    if (!ends)
        return DUE_EBUSY;
    if (c->record.key_len > 0) {
        const struct model_key *key = model_key(m, &c->record, now_ns);

        if (key == NULL || key->until != 0 || !due_id_equal(key->id, j->id))
            return DUE_EAGAIN;
    }
    j->revoked = true;
    if (!over || c->record.mark_len != 0)
        return DUE_EBUSY;
    model_end(m, j, 0);
    return 0;
}

struct model_topic *model_topic(struct model *m, const char *name)
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
    return (c->was_ns == 0 || j->at == model_grains(m, c->was_ns)) &&
           (c->dead_max == 0 || dead > c->dead_max);
}

/* Of a job that nobody holds: is it what the change says that it was? */
static bool model_is_so(const struct model *m, const struct model_job *j, const due_change *c)
{
    if (j->at != model_grains(m, c->was_ns))
        return false;
    if (j->state == WAITS &&
        (j->attempts != c->record.attempts || j->failures != c->record.failures))
        return false;
    return c->kind == DUE_CHANGE_MOVE || j->content == c->record.mark_len;
}

/* Is the queue as full as it may be?  @maybe: with what may be gone. */
static bool model_full(const struct model *m, int64_t now_ns, bool maybe)
{
    uint64_t live = 0;

    for (size_t i = 0; i < m->n; i++)
        live += (m->jobs[i].state == WAITS || m->jobs[i].state == HELD) &&
                (maybe || !model_maybe(m, &m->jobs[i], now_ns));
    return m->capacity > 0 && live >= m->capacity;
}

/* @rc: the answer, which counts where nobody knows. */
static int model_put(struct model *m, const due_change *c, int64_t now_ns, int rc)
{
    const struct model_key *key = c->record.key_len > 0 ? model_key(m, &c->record, now_ns) : NULL;
    struct model_job *has = key != NULL && key->until == 0 ? model_find(m, key->id) : NULL;

    if (has != NULL && model_maybe(m, has, now_ns) && rc != DUE_EEXIST &&
        !due_id_equal(has->id, c->from)) {
        model_end(m, has, 0); /* or the key were taken */
        key = NULL;
    }
    if (key != NULL && key->was_over && rc != DUE_EEXIST)
        key = NULL; /* it was forgotten */
    if (key != NULL && !due_id_equal(key->id, c->record.id) &&
        (key->until != 0 || !due_id_equal(key->id, c->from)))
        return DUE_EEXIST;
    bool known = model_full(m, now_ns, true) == model_full(m, now_ns, false);
    m->shut |= !c->keeps_room && (known ? model_full(m, now_ns, true) : rc == DUE_EAGAIN);
    if (m->shut && !c->keeps_room)
        return DUE_EAGAIN;
    if (c->record.key_len > 0)
        model_key_set(m, &c->record);
    (void)model_topic(m, c->record.topic); /* there is such a topic */
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

/* @rc: the answer, which counts where nobody knows. */
int model_change(struct model *m, const due_change *c, int64_t now_ns, int rc)
{
    struct model_job *j = model_find(m, c->record.id);

    if (c->kind == DUE_CHANGE_TOPIC) {
        struct model_topic *t = model_topic(m, c->record.topic);

        t->paused = c->paused >= 0 ? c->paused != 0 : t->paused;
        t->held_max = c->held_max >= 0 ? c->held_max : t->held_max;
        return 0;
    }
    if (c->kind == DUE_CHANGE_PUT)
        return model_put(m, c, now_ns, rc);
    if (c->held != 0)
        return model_held(m, j, c, now_ns, rc);
    if (m->more && c->record.topic == NULL && rc == DUE_ENOENT)
        return rc; /* its topic was looked up before, when it may have been on its way back */
    if (j == NULL || j->state == GONE || (j->state == DEAD) != (c->was_dead != 0))
        return DUE_ENOENT;
    if (j->state == HELD)
        return model_revoke(m, j, c, now_ns, rc);
    if (c->kind != DUE_CHANGE_MOVE && c->record.key_len > 0) {
        const struct model_key *key = model_key(m, &c->record, now_ns);

        if (key == NULL || key->until != 0 || !due_id_equal(key->id, j->id))
            return DUE_EAGAIN;
    }
    if (m->more && c->record.mark_len != 0 && rc == DUE_EAGAIN)
        return rc;
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
    if (c->kind == DUE_CHANGE_MOVE || j->at != model_grains(m, c->record.until_ns))
        j->passed = false; /* another time */
    if (c->record.cause == 0)
        set_waiting(m, j, &c->record);
    if (c->anew)
        j->attempts = j->failures = 0;
    return 0;
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

bool model_is_due(const struct model *m, const struct model_job *j, int64_t now_ns)
{
    int64_t now = m->grain_ns <= 1 ? now_ns : now_ns / m->grain_ns;

    return (j->state == WAITS || j->state == HELD) && j->at <= now;
}

/* May one more of its jobs be held?  @maybe: with what may be gone. */
static bool has_room(struct model *m, const char *topic, int64_t now_ns, bool maybe)
{
    int64_t held_max = model_topic(m, topic)->held_max;
    int64_t held = 0;

    for (size_t i = 0; held_max > 0 && i < m->n; i++)
        held += m->jobs[i].state == HELD && strcmp(m->jobs[i].topic, topic) == 0 &&
                (maybe || !model_maybe(m, &m->jobs[i], now_ns));
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
static bool is_kept_back(const struct model *m, const struct model_job *j, int64_t now_ns,
                         bool maybe)
{
    for (size_t i = 0; j->group_len > 0 && i < m->n; i++) {
        const struct model_job *other = &m->jobs[i];

        if (!maybe && model_maybe(m, other, now_ns))
            continue;
        if ((other->passed || (!j->passed && is_first_of_group(other, j))) && other != j &&
            strcmp(other->topic, j->topic) == 0 && other->group_len == j->group_len &&
            memcmp(other->group, j->group, j->group_len) == 0)
            return true;
    }
    return false;
}

/* Can it be claimed, but for others that come before it?  @room: one more of its topic may be held;
 * @maybe: what may be gone is there. */
static bool can_be_claimed(const struct model *m, const struct model_job *j, int64_t now_ns,
                           bool room, bool maybe)
{
    return model_is_due(m, j, now_ns) && !j->revoked && (j->state == HELD || room) &&
           !is_kept_back(m, j, now_ns, maybe);
}

/* The first one that can be claimed, of that topic. */
struct model_job *model_first_due(struct model *m, const char *topic, int64_t now_ns)
{
    struct model_job *first = NULL;

    if (model_topic(m, topic)->paused)
        return NULL;
    bool room = has_room(m, topic, now_ns, true);
    for (size_t i = 0; i < m->n; i++) {
        struct model_job *j = &m->jobs[i];

        if (strcmp(j->topic, topic) == 0 && can_be_claimed(m, j, now_ns, room, true) &&
            (first == NULL || comes_before(m, j, first)))
            first = j;
    }
    return first;
}

/* Is it the one that is next?  Where some of its topic may be gone it may be any that one of these
 * held up, and any that is next but for those. */
bool model_is_next(struct model *m, const struct model_job *j, int64_t now_ns)
{
    bool unsure = false;

    for (size_t i = 0; i < m->n; i++)
        unsure |= model_maybe(m, &m->jobs[i], now_ns) && strcmp(m->jobs[i].topic, j->topic) == 0;
    if (!unsure)
        return j == model_first_due(m, j->topic, now_ns);
    return !model_topic(m, j->topic)->paused &&
           can_be_claimed(m, j, now_ns, has_room(m, j->topic, now_ns, false), false);
}
