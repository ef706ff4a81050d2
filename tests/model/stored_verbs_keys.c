/* stored_verbs_keys.c - the steps of stored_model.c on unique keys, and what is known of each key.
 *
 * What a job of a key has besides (how long its key is kept, its limit of attempts) follows from
 * the key, so that whoever changes the job says the same again.
 */
#include "model/stored_known.h"

#include "queue/queue.h"
#include "queue/extras.h"
#include "lab/memory_disk.h"
#include "store/sender.h"

/* What an enqueue does, if all that matters is known. */
enum outcome { NEW, CHANGED, EXISTS };

static size_t key_bytes(int key, unsigned char bytes[8])
{
    memcpy(bytes, "key ", 4);
    bytes[4] = (unsigned char)key; /* 0 too */
    return 5;
}

static int64_t term(const struct stored_world *w, int key)
{
    return key % 3 == 0 && (w->pattern & STORED_KEEPS) ? 40 : 0;
}

/* Is it known who has the key, and what becomes of him? */
static bool certain(const struct stored_world *w, int key)
{
    const struct stored_key *k = &w->key[key];

    return !k->unsure && (k->owner == 0 || !restless(&w->job[k->owner - 1]));
}

void stored_key_ended(struct stored_world *w, const struct stored_job *j, bool done, bool sure)
{
    if (j->key == 0)
        return;
    struct stored_key *k = &w->key[j->key - 1];
    k->unsure |= !sure;
    if (k->unsure || k->owner != j - w->job + 1)
        return;
    k->owner = 0;
    k->kept_until = done && term(w, j->key - 1) > 0 ? w->now + term(w, j->key - 1) : 0;
    k->kept_id = j->id;
}

/* The key is that job's, or may be. */
static void owned(struct stored_world *w, struct stored_job *j, int key, bool sure)
{
    struct stored_key *k = &w->key[key];

    j->key = key + 1;
    if (!sure) {
        k->unsure = true;
        return;
    }
    for (int i = 0; i < w->made; i++) {
        if (&w->job[i] != j && w->job[i].key == key + 1)
            w->job[i].key = 0;
    }
    *k = (struct stored_key){ .owner = (int)(j - w->job) + 1 };
}

/* ---- Enqueue ---- */

static enum outcome expected(const struct stored_world *w, int key, enum due_key_policy policy,
                             due_id *id)
{
    const struct stored_key *k = &w->key[key];

    *id = k->kept_id;
    if (k->owner == 0)
        return k->kept_until > w->now ? EXISTS : NEW;
    const struct stored_job *j = &w->job[k->owner - 1];
    *id = j->id;
    if (policy == DUE_KEY_REFUSE)
        return EXISTS;
    if (leased(w, j) || (policy != DUE_KEY_EARLIEST && lent(w, j)))
        return NEW;
    return CHANGED;
}

/* When it comes now that an enqueue for @at has changed it. */
static void change_time(struct stored_job *j, enum due_key_policy policy, int64_t at, bool sure)
{
    struct stored_time was[STORED_TIMES];
    int n = j->times;
    bool known = sure && j->plain && n == 1;
    int64_t until = j->time[0].until;

    memcpy(was, j->time, sizeof was);
    if (policy == DUE_KEY_REPLACE || (j->dead && sure))
        add_time(j, at, at, sure);
    else if (policy == DUE_KEY_EARLIEST && known && until <= at)
        return;
    else if (known)
        add_time(j, policy == DUE_KEY_EARLIEST || at > until ? at : until,
                 policy == DUE_KEY_EARLIEST || at > until ? at : until, true);
    for (int i = 0; policy == DUE_KEY_DEBOUNCE && !known && i < n; i++) {
        int64_t later = was[i].until > at ? was[i].until : at;

        add_time(j, later, later, false);
    }
    if (!known && policy != DUE_KEY_REPLACE)
        add_time(j, at, at, false);
}

/* Does an enqueue for @at give it another place?  And is that sure? */
static bool replaced(const struct stored_job *j, enum due_key_policy policy, int64_t at, bool *sure)
{
    bool always = policy != DUE_KEY_EARLIEST || j->dead;
    int earlier = 0;

    for (int i = 0; i < j->times; i++)
        earlier += at < j->time[i].until;
    *sure = always || earlier == 0 || earlier == j->times;
    return always || earlier > 0;
}

/* @sure: the store has it so. */
static void changed(struct stored_world *w, struct stored_job *j, enum due_key_policy policy,
                    const struct stored_job *to, bool sure)
{
    int64_t at = to->time[0].until;
    bool only = sure && !restless(j);
    bool dying = j->dead || j->mortal;
    bool anew = policy != DUE_KEY_EARLIEST || dying;

    if (anew)
        never_handed(j, only);
    if (policy != DUE_KEY_EARLIEST)
        add_content(j, to->number, only);
    if (policy != DUE_KEY_EARLIEST)
        add_head(j, to->head[0], only);
    if (policy != DUE_KEY_EARLIEST)
        add_limit(j, to->limit[0], only);
    else if (dying) /* it is kicked */
        add_limit(j, (struct stored_limit){ .ttl = 0 }, only && j->dead);
    j->buried = 0;
    if (policy != DUE_KEY_EARLIEST && storeless(w))
        j->priority = to->priority;
    bool known_place;
    if (replaced(j, policy, at, &known_place)) {
        j->arrival = w->arrivals++;
        run_over(j, only && known_place);
    }
    j->shaky |= !known_place; /* it may run still */
    bool known = only && (j->dead || policy == DUE_KEY_REPLACE || (j->plain && j->times == 1));
    change_time(j, policy, at, only);
    j->plain = known;
    j->mortal = !only && dying;
    j->dead = j->doomed = false;
    if (only)
        j->cause = 0;
    j->shaky |= !sure;
    if (sure) {
        j->in = true;
        j->unsure = false;
        j->leased_until = INT64_MIN;
    }
}

static struct stored_job *fill(struct stored_world *w, int key, uint64_t value,
                               struct stored_draft *d)
{
    struct stored_job *j = stored_new_job(w, value, d);
    due_spec *spec = &d->spec;
    due_extra *more = &d->more;
    int64_t delay = 1 + (int64_t)(value >> 8 & 0x3f);

    more->key_len = key_bytes(key, d->bytes + 120);
    more->key = d->bytes + 120;
    more->keep_key_ns = term(w, key);
    more->on_key = (enum due_key_policy)(value >> 20 & 3);
    spec->at_ns = value >> 16 & 1 ? 1 + w->now / 2 + delay : 0;
    spec->delay_ns = spec->at_ns == 0 ? delay : 0;
    j->retry = (due_retry){ .kind = key % 4 == 0 ? DUE_RETRY_FIXED : DUE_RETRY_INHERIT,
                            .attempts_max = key % 4 == 0 ? 2 : 0,
                            .delay_ns = key % 4 == 0 ? 7 : 0 };
    more->retry = key % 4 == 0 ? &j->retry : NULL;
    j->loose = false;
    add_time(j, spec->at_ns != 0 ? spec->at_ns : w->now + delay,
             spec->at_ns != 0 ? spec->at_ns : w->now + delay, true);
    return j;
}

bool stored_put_keyed(struct stored_world *w, uint32_t n, uint64_t value)
{
    int key = (int)(n % STORED_KEYS);
    struct stored_draft d;
    due_id id = { { 0 } };
    due_id has;

    if (w->made == STORED_ROOM)
        return true;
    stored_note_refused(w);
    struct stored_job *j = fill(w, key, value, &d);
    bool known = certain(w, key);
    enum outcome outcome;

    outcome = expected(w, key, d.more.on_key, &has);
    if (!(w->pattern & STORED_TAKES) && (!known || (outcome == NEW && w->key[key].owner != 0))) {
        d.more.on_key = DUE_KEY_REFUSE; /* it might take the key over */
        outcome = expected(w, key, d.more.on_key, &has);
    }
    int rc = due_enqueue(w->q, &d.spec, 0, &id);
    struct stored_job *old = due_id_equal(id, (due_id){ { 0 } }) ? NULL : stored_find(w, id);
    bool sure = rc == 0 && !asynchronous(w);
    bool right = !known || refused(rc) ||
                 outcome == (rc == DUE_EEXIST ? EXISTS
                             : old != NULL    ? CHANGED
                                              : NEW);
    if (!right)
        return stored_wrong(w, "its key is taken otherwise", old);
    if (rc == DUE_EEXIST && known && !due_id_equal(id, has))
        return stored_wrong(w, "another job has its key", old);
    if (rc == DUE_EEXIST || (rc == DUE_EAGAIN && (w->pattern & STORED_BOUNDED)))
        return true;
    if (rc != 0 && rc != DUE_EINDOUBT && !refused(rc))
        return stored_wrong(w, "an enqueue with a key answers otherwise", old);
    if (old == NULL) {
        stored_keep_job(w, id, !refused(rc), rc == DUE_EINDOUBT);
        if (!refused(rc))
            owned(w, j, key, sure);
        return true;
    }
    if (old->key != key + 1)
        return stored_wrong(w, "a job without this key was changed", old);
    if (!refused(rc)) {
        changed(w, old, d.more.on_key, j, sure);
        owned(w, old, key, sure);
    }
    return true;
}

/* ---- By key ---- */

bool stored_find_key(struct stored_world *w, uint32_t n, uint64_t value)
{
    int key = (int)(n % STORED_KEYS);
    const struct stored_key *k = &w->key[key];
    unsigned char bytes[8];
    due_id id;
    int rc;

    (void)value;
    stored_note_refused(w);
    rc = due_id_of_key(w->q, bytes, key_bytes(key, bytes), &id);
    if (rc != 0 && rc != DUE_ENOENT)
        return refused(rc) || stored_wrong(w, "a key answers otherwise", NULL);
    if (rc == 0 && stored_find(w, id) == NULL)
        return stored_wrong(w, "a key of a job that was never put in", NULL);
    if (!certain(w, key))
        return true;
    if ((rc == 0) != (k->owner != 0))
        return stored_wrong(w, "a key is found, or is not", rc == 0 ? stored_find(w, id) : NULL);
    if (rc == 0 && !due_id_equal(id, w->job[k->owner - 1].id))
        return stored_wrong(w, "a key is another job's", stored_find(w, id));
    return true;
}

bool stored_cancel_key(struct stored_world *w, uint32_t n, uint64_t value)
{
    int key = (int)(n % STORED_KEYS);
    const struct stored_key *k = &w->key[key];
    unsigned char bytes[8];

    stored_note_refused(w);
    if (!certain(w, key))
        return stored_find_key(w, n, value);
    size_t len = key_bytes(key, bytes);
    int rc = due_cancel_key(w->q, bytes, len, NULL);
    if (k->owner != 0)
        return stored_cancelled(w, &w->job[k->owner - 1], rc, false);
    return rc == DUE_ENOENT || refused(rc) ||
           stored_wrong(w, "cancelled by a key that nobody has", NULL);
}

/* ---- Resolving ---- */

void stored_keys_begin(struct stored_world *w)
{
    for (int key = 0; key < STORED_KEYS; key++)
        w->key[key].known = certain(w, key);
}

/* The disk has the key, for @id until @until_ns: is it as it was told? */
static bool as_told(const struct stored_world *w, int key, bool has, due_id id, int64_t until_ns)
{
    const struct stored_key *k = &w->key[key];

    if (k->owner != 0)
        return has && until_ns == 0 && due_id_equal(id, w->job[k->owner - 1].id);
    if (k->kept_until > w->now)
        return has && until_ns == k->kept_until && due_id_equal(id, k->kept_id);
    return !has || (until_ns != 0 && until_ns <= w->now);
}

/* Without a store, where all is known. */
static bool key_in_memory(struct stored_world *w, int key)
{
    struct stored_key *k = &w->key[key];
    unsigned char bytes[8];
    due_id id;
    int rc = due_id_of_key(w->q, bytes, key_bytes(key, bytes), &id);

    if (!k->known) { /* one that might have died by then */
        const struct stored_job *j = rc == 0 ? stored_find(w, id) : NULL;

        if (rc == 0 && (j == NULL || !j->in || j->key != key + 1))
            return stored_wrong(w, "a key of a job that has none", j);
        *k = (struct stored_key){ .owner = j != NULL ? (int)(j - w->job) + 1 : 0,
                                  .unsure = j == NULL && term(w, key) > 0 }; /* it may be kept */
        return true;
    }
    if (rc != (k->owner != 0 ? 0 : DUE_ENOENT))
        return stored_wrong(w, "a key is not as it was told", NULL);
    return rc != 0 || due_id_equal(id, w->job[k->owner - 1].id) ||
           stored_wrong(w, "a key is another job's than was told", &w->job[k->owner - 1]);
}

/* The disk has the key for a job that gave it up in an earlier life of the queue: the loss of that
 * is not seen in this one, where the job never had a key. */
static bool left_over(const struct stored_world *w, due_id id, int64_t until_ns, int rc)
{
    uint32_t number;
    uint32_t generation;

    if (!(w->pattern & STORED_LOSES) || until_ns != 0 || rc != DUE_ENOENT)
        return false;
    if (!due__index_find(&w->q->commits->index, id, &number, &generation))
        return true;
    const struct due__extras *front = due__extras_of(due__job_at(&w->q->slab, number));
    return front == NULL || front->key == NULL;
}

static bool resolve_key(struct stored_world *w, int key, bool *has)
{
    struct stored_key *k = &w->key[key];
    unsigned char bytes[8];
    size_t len = key_bytes(key, bytes);
    int64_t until = 0;
    due_id id = { { 0 } };
    due_id found;

    if (storeless(w))
        return key_in_memory(w, key);
    *has = memory_disk_key(w->disk, bytes, len, &id, &until);
    struct stored_job *j = *has && until == 0 ? stored_find(w, id) : NULL;
    int rc = due_id_of_key(w->q, bytes, len, &found);
    if (*has && left_over(w, id, until, rc)) {
        for (int i = 0; i < w->made; i++)
            w->job[i].key = w->job[i].key == key + 1 ? 0 : w->job[i].key;
        *k = (struct stored_key){ .owner = 0 };
        return true;
    }
    if (rc != (j != NULL ? 0 : DUE_ENOENT) || (j != NULL && !due_id_equal(found, id)))
        return fprintf(stderr, "key %d: %d in the queue; %d until %lld on the disk\n", key, rc,
                       (int)*has, (long long)until),
               stored_wrong(w, "a key is another's on the disk",
                            rc == 0 ? stored_find(w, found) : j);
    if (j != NULL && (!j->in || j->key != key + 1))
        return stored_wrong(w, "a key of a job that has none", j);
    if (k->known && !as_told(w, key, *has, id, until))
        return fprintf(stderr, "key %d: owner %d kept %lld; disk: %d until %lld\n", key, k->owner,
                       (long long)k->kept_until, (int)*has, (long long)until),
               stored_wrong(w, "a key is not as it was told", j);
    for (int i = 0; i < w->made; i++) {
        if (w->job[i].key == key + 1 && &w->job[i] != j)
            w->job[i].key = 0;
    }
    *k = (struct stored_key){ .owner = j != NULL ? (int)(j - w->job) + 1 : 0,
                              .kept_until = until,
                              .kept_id = id };
    return true;
}

bool stored_keys_resolve(struct stored_world *w)
{
    size_t count = 0;

    for (int key = 0; key < STORED_KEYS; key++) {
        bool has = false;

        if (!resolve_key(w, key, &has))
            return false;
        count += has;
    }
    return storeless(w) || count == memory_disk_keys(w->disk) ||
           stored_wrong(w, "keys are lost or found", NULL);
}
