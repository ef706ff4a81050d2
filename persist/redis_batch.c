/* redis_batch.c - batches of changes.
 *
 * One write, and its answers: MULTI, the changes, the batch's number, EXEC, and then the guard of
 * the next batch.  All changes of a kind go in one command, one per topic for the zsets.  EXEC does
 * nothing if the fence or the number was written since the guard before it was set.
 *
 * The fence: somebody else is the owner.  The number: what was sent on a connection that was given
 * up may reach the server at any later time, when the same batch was sent again, and has landed,
 * and others behind it.  Each batch writes the number; so of all that were sent behind one guard,
 * on whatever connections, one can land.
 *
 * Always  B1  s->doubt is the number of a batch that may have landed and may have not.  Only an
 *             answer of EXEC, or the number on the server after a lost connection, settles it.
 *         B2  s->landed never falls, but for what the server has lost.
 */
#include "redis_store.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN        1 /* of a step: once more */
#define SCRATCH_KEEP ((size_t)64 << 10)

/* What a batch has of each kind. */
struct counts {
    uint64_t number; /* the batch */
    size_t puts, drops, entries, stale;
    size_t from_dead, to_dead;
    size_t frees, takes, keeps, unkeeps; /* keys */
    uint64_t highest;                    /* sequence of a job of ours */
};

/* ---- Counting -------------------------------------------------------------------------------- */

static int order_reserve(struct due__redis *s, size_t n)
{
    if (n <= s->order_room)
        return 0;
    size_t *order = realloc(s->order, n * sizeof *order);
    if (order == NULL)
        return DUE_ENOMEM;
    s->order = order;
    s->order_room = n;
    return 0;
}

static struct due__redis_topic *topic_of(struct due__redis *s, const char *name)
{
    struct due__redis_topic *t = due__redis_topic(s, name, strlen(name));

    if (t != NULL && t->batch != s->stamp) {
        t->batch = s->stamp;
        t->adds = t->drops = t->add = t->drop = 0;
        t->also = s->first;
        s->first = t;
    }
    return t;
}

static void count(const struct due__redis *s, const due_change *c, struct counts *k)
{
    uint64_t sequence = c->kind == DUE_CHANGE_PUT ? due__redis_sequence(s, c->record.id) : 0;

    k->puts += c->kind == DUE_CHANGE_PUT;
    k->drops += c->kind == DUE_CHANGE_DROP;
    k->entries += due__change_has_entry(c);
    k->stale += due__change_is_stale(s, c, k->number);
    k->from_dead += due__change_leaves_dead(s, c, k->number);
    k->to_dead += due__change_enters_dead(c);
    k->frees += due__change_frees_key(c);
    k->takes += due__change_takes_key(c);
    k->keeps += due__change_keeps_key(c);
    k->unkeeps += due__change_unkeeps_key(s, c);
    k->highest = sequence > k->highest ? sequence : k->highest;
}

/* Count the changes, and chain those of each topic. */
static int sort_out(struct due__redis *s, const due_change *changes, size_t n, struct counts *k)
{
    const char *last = NULL;
    struct due__redis_topic *topic = NULL;
    int rc = order_reserve(s, n);

    s->stamp++;
    s->first = NULL;
    for (size_t i = n; i > 0 && rc == 0; i--) {
        const due_change *c = &changes[i - 1];
        bool leaves = due__change_leaves_topic(s, c, k->number);

        count(s, c, k);
        if (!leaves && !due__change_enters_topic(c))
            continue;
        if (c->record.topic != last || topic == NULL)
            topic = topic_of(s, c->record.topic);
        last = c->record.topic;
        if (topic == NULL)
            return DUE_ENOMEM;
        size_t *head = leaves ? &topic->drop : &topic->add;
        s->order[i - 1] = *head;
        *head = i;
        *(leaves ? &topic->drops : &topic->adds) += 1;
    }
    return rc;
}

/* ---- Formatting ------------------------------------------------------------------------------ */

static void put_id(struct due__redis *s, const due_change *c)
{
    due__link_bytes(s->link, c->record.id.byte, DUE_STORE_ID_BYTES);
}

static int put_record(struct due__redis *s, const due_record *r)
{
    size_t need = DUE__RECORD_FRONT + r->len;

    if (need > s->scratch_room) {
        unsigned char *bytes = realloc(s->scratch, need);
        if (bytes == NULL)
            return DUE_ENOMEM;
        s->scratch = bytes;
        s->scratch_room = need;
    }
    size_t front = due__record_front(r, s->scratch);
    if (r->len > 0)
        memcpy(s->scratch + front, r->data, r->len);
    due__link_bytes(s->link, s->scratch, front + r->len);
    return 0;
}

static void scratch_shrink(struct due__redis *s)
{
    if (s->scratch_room > SCRATCH_KEEP) {
        free(s->scratch);
        s->scratch = NULL;
        s->scratch_room = 0;
    }
}

static int put_jobs(struct due__redis *s, const due_change *changes, size_t n,
                    const struct counts *k)
{
    int rc = 0;

    if (k->puts == 0)
        return 0;
    due__redis_word(s, s->keys.jobs, 2 * k->puts, "HSET");
    s->statuses++;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (changes[i].kind == DUE_CHANGE_PUT) {
            put_id(s, &changes[i]);
            rc = put_record(s, &changes[i].record);
        }
    }
    return rc;
}

/* A command on @key with @count arguments for what @chosen says, one each: the id, or the key. */
static void put_chosen(struct due__redis *s, const char *command, const char *key, size_t count,
                       due__redis_choice *chosen, bool ids, const due_change *changes, size_t n,
                       uint64_t number)
{
    if (count == 0)
        return;
    due__redis_word(s, key, count, command);
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        if (!chosen(s, &changes[i], number))
            continue;
        if (ids)
            put_id(s, &changes[i]);
        else
            due__link_bytes(s->link, changes[i].record.key, changes[i].record.key_len);
    }
}

static void put_removals(struct due__redis *s, const due_change *changes, size_t n,
                         const struct counts *k)
{
    size_t entries = k->stale + (s->has_entries ? k->drops : 0);
    uint64_t number = k->number;

    put_chosen(s, "HDEL", s->keys.jobs, k->drops, due__choose_drops, true, changes, n, number);
    put_chosen(s, "HDEL", s->keys.again, entries, due__choose_entries, true, changes, n, number);
    put_chosen(s, "ZREM", s->keys.dead, k->from_dead, due__change_leaves_dead, true, changes, n,
               number);
    put_chosen(s, "HDEL", s->keys.unique, k->frees, due__choose_frees, false, changes, n, number);
    put_chosen(s, "ZREM", s->keys.kept, k->unkeeps, due__choose_unkeeps, false, changes, n, number);
}

static void put_entries(struct due__redis *s, const due_change *changes, size_t n,
                        const struct counts *k)
{
    unsigned char entry[DUE__ENTRY_MOST];

    if (k->entries == 0)
        return;
    due__redis_word(s, s->keys.again, 2 * k->entries, "HSET");
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        if (due__change_has_entry(&changes[i])) {
            put_id(s, &changes[i]);
            due__link_bytes(s->link, entry, due__entry_write(&changes[i].record, entry));
        }
    }
}

static void put_dead(struct due__redis *s, const due_change *changes, size_t n,
                     const struct counts *k)
{
    if (k->to_dead == 0)
        return;
    due__redis_word(s, s->keys.dead, 2 * k->to_dead, "ZADD");
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        if (due__change_enters_dead(&changes[i])) {
            due__link_number(s->link, due__redis_score(changes[i].record.died_ns));
            put_id(s, &changes[i]);
        }
    }
}

/* Behind what frees them: a batch may free a key and then take it. */
static void put_keys(struct due__redis *s, const due_change *changes, size_t n,
                     const struct counts *k)
{
    if (k->takes > 0) {
        due__redis_word(s, s->keys.unique, 2 * k->takes, "HSET");
        s->statuses++;
    }
    for (size_t i = 0; i < n && k->takes > 0; i++) {
        if (due__change_takes_key(&changes[i])) {
            due__link_bytes(s->link, changes[i].record.key, changes[i].record.key_len);
            put_id(s, &changes[i]);
        }
    }
    if (k->keeps == 0)
        return;
    due__redis_word(s, s->keys.kept, 2 * k->keeps, "ZADD");
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        if (due__change_keeps_key(&changes[i])) {
            due__link_number(s->link, due__redis_score(changes[i].key_kept_ns));
            due__link_bytes(s->link, changes[i].record.key, changes[i].record.key_len);
        }
    }
}

/* Each batch does so until one has landed that did. */
static void put_entering(struct due__redis *s, struct due__redis_topic *t, uint64_t number)
{
    due__redis_word(s, s->keys.topics, 2, "HSETNX");
    due__link_bytes(s->link, t->key + t->name_at, t->key_len - t->name_at);
    due__link_number(s->link, 0);
    s->statuses++;
    t->after[number % 2] = s->enter[number % 2];
    s->enter[number % 2] = t;
}

/* The batch @number has landed, with its topics, or is formatted anew. */
static void forget_entering(struct due__redis *s, uint64_t number, bool entered)
{
    for (struct due__redis_topic *t = s->enter[number % 2]; t != NULL; t = t->after[number % 2])
        t->entered = t->entered || entered;
    s->enter[number % 2] = NULL;
}

static void put_topic(struct due__redis *s, struct due__redis_topic *t, const due_change *changes,
                      uint64_t number)
{
    if (t->drops > 0) {
        due__link_command(s->link, 2 + t->drops);
        due__link_text(s->link, "ZREM");
        due__link_bytes(s->link, t->key, t->key_len);
        for (size_t i = t->drop; i != 0; i = s->order[i - 1])
            put_id(s, &changes[i - 1]);
        s->statuses++;
    }
    if (t->adds > 0) {
        due__link_command(s->link, 2 + 2 * t->adds);
        due__link_text(s->link, "ZADD");
        due__link_bytes(s->link, t->key, t->key_len);
        for (size_t i = t->add; i != 0; i = s->order[i - 1]) {
            due__link_number(s->link, due__redis_score(changes[i - 1].record.until_ns));
            put_id(s, &changes[i - 1]);
        }
        s->statuses++;
    }
    if (t->adds > 0 && !t->entered)
        put_entering(s, t, number);
}

/* The number is the last to be written, so that it never is there without the changes. */
static void put_end(struct due__redis *s, uint64_t number)
{
    static const char *const exec[] = { "EXEC" };

    due__redis_word(s, s->keys.writers, 2, "HSET");
    due__link_number(s->link, (int64_t)s->writer);
    due__link_number(s->link, (int64_t)number);
    s->statuses++;
    due__link_words(s->link, 1, exec);
    due__redis_guard(s);
    if (s->set.wait_replicas > 0) {
        due__link_command(s->link, 3);
        due__link_text(s->link, "WAIT");
        due__link_number(s->link, s->set.wait_replicas);
        due__link_number(s->link, s->set.wait_replicas_ns / 1000000);
    }
}

static void put_multi(struct due__redis *s)
{
    static const char *const multi[] = { "MULTI" };

    due__link_words(s->link, 1, multi);
    s->statuses = 1;
}

static int format_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    struct counts k = { .number = number };

    if (s->formatted[number % 2] != number)
        s->sequence_old[number % 2] = s->sequence_high;
    s->formatted[number % 2] = number;
    forget_entering(s, number, false);
    int rc = sort_out(s, changes, n, &k);
    if (rc != 0)
        return rc;
    put_multi(s);
    put_removals(s, changes, n, &k);
    rc = put_jobs(s, changes, n, &k);
    scratch_shrink(s);
    if (rc != 0) {
        due__link_forget(s->link); /* the command that was begun cannot be taken back */
        return rc;
    }
    put_entries(s, changes, n, &k);
    put_dead(s, changes, n, &k);
    put_keys(s, changes, n, &k);
    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also)
        put_topic(s, t, changes, number);
    put_end(s, number);
    if (k.highest > s->sequence_high)
        s->sequence_high = k.highest;
    s->has_entries = s->has_entries || k.entries > 0;
    s->has_dead = s->has_dead || k.to_dead > 0;
    return 0;
}

/* ---- What came of it ------------------------------------------------------------------------- */

static void has_landed(struct due__redis *s)
{
    uint64_t number = s->air.tag;
    const redisReply *wait = s->air.expected == 4 ? s->air.kept[3] : NULL;

    s->verdict = 0;
    if (number > s->landed) {
        s->landed = number;
        due__redis_count(s, 1, 0, 0);
    }
    s->doubt = 0;
    s->unconfirmed = 0;
    if (wait != NULL && (wait->type != REDIS_REPLY_INTEGER || wait->integer < s->set.wait_replicas))
        s->unconfirmed = number;
    forget_entering(s, number, true);
}

/* Refused as a whole: what for. */
static int refused(struct due__redis *s, const redisReply *exec)
{
    enum due__reply_class class = s->air.worst;

    if (class == DUE__REPLY_FINE)
        class = due__reply_classify(exec);
    if (class == DUE__REPLY_ABORTED)
        class = strstr(exec->str, "OOM") != NULL ? DUE__REPLY_FULL : DUE__REPLY_AGAIN;
    return due__redis_error(s, class);
}

static bool has_errors(const redisReply *exec)
{
    for (size_t i = 0; i < exec->elements; i++)
        if (exec->element[i] == NULL || exec->element[i]->type == REDIS_REPLY_ERROR)
            return true;
    return false;
}

/* The answers of a batch are there. */
void due__redis_batch_over(struct due__redis *s)
{
    const redisReply *exec = s->air.kept[0];
    bool done = exec->type == REDIS_REPLY_INTEGER && exec->integer == 1;
    bool held = exec->type == REDIS_REPLY_NIL || exec->type == REDIS_REPLY_INTEGER;

    due__redis_guarded(s, 1);
    if (exec->type == REDIS_REPLY_ARRAY && s->air.refused == 0) {
        done = !has_errors(exec);
        if (!done) {
            /* Somebody put other things under our keys; the number must not stay. */
            s->rewrite = true;
            s->armed = false;
            s->doubt = 0;
            s->verdict = DUE_ECORRUPT;
            return;
        }
    }
    if (done) {
        has_landed(s);
    } else if (held) {
        /* The fence or the number was written, or lost with everything else. */
        s->doubt = 0;
        s->armed = false;
        s->verdict = AGAIN;
    } else if (due__reply_classify(exec) == DUE__REPLY_ABORTED ||
               (s->air.script && exec->type == REDIS_REPLY_ERROR)) {
        s->doubt = 0;
        s->verdict = refused(s, exec);
    } else {
        /* Not a transaction at all, or no sense: the number will tell. */
        due__link_down(s->link);
        s->armed = false;
        s->verdict = AGAIN;
    }
}

/* ---- Committing ------------------------------------------------------------------------------ */

static bool only_removals(const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind != DUE_CHANGE_DROP && changes[i].kind != DUE_CHANGE_FORGET)
            return false;
    return true;
}

static int format_script(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    struct counts k = { .number = number };

    forget_entering(s, number, false);
    int rc = sort_out(s, changes, n, &k);

    s->statuses = 0;
    if (rc == 0)
        due__script_remove(s, changes, n, number);
    return rc;
}

int due__redis_launch(struct due__redis *s, uint64_t number, bool script, int64_t until_ns)
{
    bool again = s->sent >= number;
    bool waits = !script && s->set.wait_replicas > 0;

    due__redis_load_stale(s);
    s->batch_ns = due__redis_monotonic();
    int rc = due__flight_start(s, DUE__FLIGHT_BATCH, number, s->statuses, waits ? 4 : 3, until_ns);
    s->air.script = script;
    if (rc == 0 || (rc == DUE_ESTORE && !s->unsent)) {
        s->doubt = number > s->landed ? number : 0;
        s->sent = number > s->sent ? number : s->sent;
        if (again && number > s->landed)
            due__redis_count(s, 0, 1, 0);
    }
    return rc;
}

static int send_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      bool script, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_BATCH, number, until_ns);

    if (rc != 0)
        return rc;
    rc = script ? format_script(s, changes, n, number) : format_batch(s, changes, n, number);
    return rc != 0 ? rc : due__redis_launch(s, number, script, until_ns);
}

/* Landed, but replicas lack it.  After a new connection only a write of its own can be waited for,
 * so the number is written once more. */
static int send_number(struct due__redis *s, uint64_t number, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_BATCH, number, until_ns);

    if (rc != 0)
        return rc;
    forget_entering(s, number, false);
    put_multi(s);
    put_end(s, number);
    return due__flight_start(s, DUE__FLIGHT_BATCH, number, s->statuses,
                             s->set.wait_replicas > 0 ? 4 : 3, until_ns);
}

/* The answer of a batch under way.  0: it has landed; AGAIN; or an error. */
static int hear(struct due__redis *s, int64_t until_ns)
{
    int rc = due__flight_land(s, until_ns);

    if (rc != 0)
        return rc == DUE_EAGAIN ? DUE_EINDOUBT : AGAIN;
    due__redis_batch_over(s);
    due__flight_end(s);
    return s->verdict == DUE_ESTORE ? AGAIN : s->verdict;
}

/* It is there.  What remains is that the load hears of it, and that the replicas have it. */
static int finish(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    if (s->counted < number) {
        due__redis_load_count(s, changes, n, number);
        s->counted = number;
    }
    return s->unconfirmed == number ? DUE_EINDOUBT : 0;
}

static bool is_under_way(const struct due__redis *s, uint64_t number)
{
    return s->air.kind == DUE__FLIGHT_BATCH && s->air.tag == number;
}

/* Whether the caller can be given this error: not while it is open whether the batch landed. */
static int told(const struct due__redis *s, uint64_t number, int rc)
{
    if (s->landed >= number)
        return s->unconfirmed == number ? DUE_EINDOUBT : rc;
    return s->doubt == number && rc != DUE_EFENCED ? DUE_EINDOUBT : rc;
}

static int check_changes(const struct due__redis *s, const due_change *changes, size_t n,
                         uint64_t number)
{
    if (n == 0 || n > s->set.batch_changes || number == 0)
        return DUE_EINVAL;
    for (size_t i = 0; i < n; i++) {
        const due_record *r = &changes[i].record;
        if (r->key_len > DUE_KEY_MAX || r->headers_len > DUE_HEADERS_MAX ||
            r->group_len > DUE_KEY_MAX)
            return DUE_EINVAL;
        if (changes[i].kind >= DUE_CHANGE_KEEP)
            continue;
        if (r->topic == NULL || strnlen(r->topic, DUE_TOPIC_LENGTH + 1) > DUE_TOPIC_LENGTH)
            return DUE_EINVAL;
        if (changes[i].kind == DUE_CHANGE_PUT && r->len > DUE__REDIS_BULK)
            return DUE_ELIMIT;
    }
    return 0;
}

int due__redis_format(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    int rc = check_changes(s, changes, n, number);

    return rc != 0 ? rc : format_batch(s, changes, n, number);
}

int due__redis_commit(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      int64_t until_ns)
{
    bool script = false;
    bool tried = false; /* in this call */
    int rc = check_changes(s, changes, n, number);

    while (rc == 0) {
        if (is_under_way(s, number)) {
            rc = hear(s, until_ns);
            if (rc == DUE_ENOSPC && !script && only_removals(changes, n))
                rc = AGAIN, script = true;
            else if (rc == DUE_EACCES && script)
                rc = DUE_ENOSPC; /* scripts are forbidden here: it is full all the same */
            if (rc < 0)
                return told(s, number, rc);
            tried = true;
        }
        if (s->landed >= number) {
            rc = finish(s, changes, n, number);
            if (rc == 0 || tried)
                return rc;
        }
        rc = due__redis_up(s, until_ns);
        if (rc != 0 && s->landed >= number && s->unconfirmed != number)
            return finish(s, changes, n, number);
        if (rc == 0 && s->lost && s->landed < number)
            rc = DUE_EAGAIN;
        if (rc != 0)
            return told(s, number, rc);
        if (s->landed < number)
            rc = send_batch(s, changes, n, number, script, until_ns);
        else if (s->unconfirmed == number)
            rc = send_number(s, number, until_ns);
        if (rc == DUE_ESTORE || rc == 1)
            rc = until_ns > due__redis_monotonic() ? 0 : DUE_EAGAIN;
    }
    return told(s, number, rc);
}
