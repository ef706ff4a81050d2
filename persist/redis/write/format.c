/* format.c - a batch, written down.
 *
 * MULTI, the changes, the batch's number, EXEC, and then the guard of the next batch.  All changes
 * of a kind go in one command, one per topic for the zsets.
 *
 * The order of the changes: of a batch that stands last in a torn log the server may carry out the
 * first commands later (torn_log.c).  So a job's record and entry come first, then it enters
 * its zset, then it leaves where it was, and what is dropped loses its record last, and then its
 * entry: whatever half it is, the job is there with all that it has, or it is gone.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/write/write.h"

#define TABLE 32 /* entries of one batch */

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
        if (!leaves && (!due__change_enters_topic(c) || due__change_stays(s, c)))
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
    size_t front = 0;
    size_t len = 0;
    int rc = due__scratch_record(&s->scratch, r, &front, &len);

    if (rc == 0)
        due__link_bytes(s->link, s->scratch.bytes, len);
    return rc;
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

static bool has_entry(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return due__change_has_entry(c);
}

/* The entries of what is @chosen: @count of them.  A server keeps a small hash as one string that
 * it searches from end to end, until a value is long: with some hundred jobs out, that is most of
 * what it does.  So where there are many, one long value comes with them. */
static void put_entries(struct due__redis *s, size_t count, due__redis_choice *chosen,
                        const due_change *changes, size_t n, uint64_t number)
{
    unsigned char entry[DUE__ENTRY_MOST];
    bool table = count >= TABLE;

    if (count == 0)
        return;
    due__redis_word(s, s->keys.again, 2 * (count + table), "HSET");
    s->statuses++;
    if (table) {
        due__link_text(s->link, DUE__REDIS_TABLE);
        due__link_text(s->link, DUE__REDIS_TABLE_TEXT);
    }
    for (size_t i = 0; i < n; i++) {
        if (chosen(s, &changes[i], number)) {
            put_id(s, &changes[i]);
            due__link_bytes(s->link, entry, due__entry_write(&changes[i].record, entry));
        }
    }
}

static bool enters_dead(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return due__change_enters_dead(c);
}

/* What is @chosen, among the dead. */
static void put_dead(struct due__redis *s, size_t count, due__redis_choice *chosen,
                     const due_change *changes, size_t n, uint64_t number)
{
    if (count == 0)
        return;
    due__redis_word(s, s->keys.dead, 2 * count, "ZADD");
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        if (chosen(s, &changes[i], number)) {
            due__link_number(s->link, due__redis_score(changes[i].record.died_ns));
            put_id(s, &changes[i]);
        }
    }
}

/* The keys of what is @chosen, as kept so long; those that are not to be, as over. */
static void put_kept(struct due__redis *s, size_t count, due__redis_choice *chosen,
                     const due_change *changes, size_t n, uint64_t number)
{
    if (count == 0)
        return;
    due__redis_word(s, s->keys.kept, 2 * count, "ZADD");
    s->statuses++;
    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];

        if (!chosen(s, c, number))
            continue;
        due__link_number(s->link, due__change_keeps_key(c) ? due__redis_score(c->key_kept_ns) : 0);
        due__link_bytes(s->link, c->record.key, c->record.key_len);
    }
}

/* ---- While we are unsure ---- */

static bool stands_elsewhere(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return c->kind == DUE_CHANGE_DROP || (c->kind == DUE_CHANGE_PUT && c->record.cause == 0);
}

static bool keeps_key(const struct due__redis *s, const due_change *c, uint64_t number)
{
    (void)s;
    (void)number;
    return due__change_keeps_key(c);
}

static size_t count_of(struct due__redis *s, due__redis_choice *chosen, const due_change *changes,
                       size_t n, uint64_t number)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += chosen(s, &changes[i], number);
    return count;
}

/* The ids of a chain, into the zset of @t, @in, or out of it. */
static void put_chain(struct due__redis *s, const struct due__redis_topic *t, size_t chain,
                      size_t count, bool in, const due_change *changes)
{
    if (count == 0)
        return;
    due__link_command(s->link, 2 + (in ? 2 : 1) * count);
    due__link_text(s->link, in ? "ZADD" : "ZREM");
    due__link_bytes(s->link, t->key, t->key_len);
    for (size_t i = chain; i != 0; i = s->order[i - 1]) {
        if (in)
            due__link_number(s->link, 0);
        put_id(s, &changes[i - 1]);
    }
    s->statuses++;
}

/* A server logs only what changes something.  What it may have otherwise after its next start has
 * to be in the log all the same: so what enters a zset leaves it before, what is not to stand in
 * one enters and leaves it, and what is to have no entry gets one first; what is dropped only when
 * its record is gone, or half of this batch would make another job of it. */
static void put_anew(struct due__redis *s, const due_change *changes, size_t n,
                     const struct counts *k)
{
    uint64_t number = k->number;
    size_t elsewhere = count_of(s, stands_elsewhere, changes, n, number);

    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also) {
        put_chain(s, t, t->drop, t->drops, true, changes);
        put_chain(s, t, t->drop, t->drops, false, changes);
        put_chain(s, t, t->add, t->adds, false, changes);
    }
    put_dead(s, elsewhere, stands_elsewhere, changes, n, number);
    put_chosen(s, "ZREM", s->keys.dead, elsewhere, stands_elsewhere, true, changes, n, number);
    put_chosen(s, "ZREM", s->keys.dead, k->to_dead, enters_dead, true, changes, n, number);
    put_chosen(s, "ZREM", s->keys.kept, k->keeps, keeps_key, false, changes, n, number);
    put_kept(s, k->unkeeps, due__choose_unkeeps, changes, n, number);
    put_entries(s, k->stale, due__change_is_stale, changes, n, number);
}

/* ---- The changes ---- */

/* Out of its topic, or of the dead. */
static void put_leaving(struct due__redis *s, const due_change *changes, size_t n,
                        const struct counts *k)
{
    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also)
        put_chain(s, t, t->drop, t->drops, false, changes);
    put_chosen(s, "ZREM", s->keys.dead, k->from_dead, due__change_leaves_dead, true, changes, n,
               k->number);
}

static void put_freed(struct due__redis *s, const due_change *changes, size_t n,
                      const struct counts *k)
{
    uint64_t number = k->number;

    put_chosen(s, "HDEL", s->keys.unique, k->frees, due__choose_frees, false, changes, n, number);
    put_chosen(s, "ZREM", s->keys.kept, k->unkeeps, due__choose_unkeeps, false, changes, n, number);
}

/* Of what stands nowhere any more. */
static void put_removals(struct due__redis *s, const due_change *changes, size_t n,
                         const struct counts *k)
{
    size_t entries = k->stale + (s->has_entries ? k->drops : 0);
    uint64_t number = k->number;

    put_chosen(s, "HDEL", s->keys.jobs, k->drops, due__choose_drops, true, changes, n, number);
    if (s->unsure)
        put_entries(s, k->drops, due__choose_drops, changes, n, number);
    put_chosen(s, "HDEL", s->keys.again, entries, due__choose_entries, true, changes, n, number);
}

/* Behind what frees them: a batch may free a key and then take it.  What is kept stands in `kx`
 * first: there it is found if half a batch has left it, and in `k` it would not be. */
static void put_keys(struct due__redis *s, const due_change *changes, size_t n,
                     const struct counts *k)
{
    put_kept(s, k->keeps, keeps_key, changes, n, k->number);
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
void due__format_over(struct due__redis *s, uint64_t number, bool entered)
{
    for (struct due__redis_topic *t = s->enter[number % 2]; t != NULL; t = t->after[number % 2])
        t->entered = t->entered || entered;
    s->enter[number % 2] = NULL;
}

static void put_topic(struct due__redis *s, struct due__redis_topic *t, const due_change *changes,
                      uint64_t number)
{
    if (t->adds == 0)
        return;
    if (!t->entered)
        put_entering(s, t, number);
    due__link_command(s->link, 2 + 2 * t->adds);
    due__link_text(s->link, "ZADD");
    due__link_bytes(s->link, t->key, t->key_len);
    for (size_t i = t->add; i != 0; i = s->order[i - 1]) {
        due__link_number(s->link, due__redis_score(changes[i - 1].record.until_ns));
        put_id(s, &changes[i - 1]);
    }
    s->statuses++;
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

int due__format_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    struct counts k = { .number = number };

    if (s->formatted[number % 2] != number)
        s->sequence_old[number % 2] = s->sequence_high;
    s->formatted[number % 2] = number;
    due__format_over(s, number, false);
    int rc = sort_out(s, changes, n, &k);
    if (rc != 0)
        return rc;
    put_multi(s);
    if (s->unsure)
        put_anew(s, changes, n, &k);
    put_freed(s, changes, n, &k);
    rc = put_jobs(s, changes, n, &k);
    due__scratch_shrink(&s->scratch);
    if (rc != 0) {
        due__link_forget(s->link); /* the command that was begun cannot be taken back */
        return rc;
    }
    put_entries(s, k.entries, has_entry, changes, n, number);
    put_dead(s, k.to_dead, enters_dead, changes, n, number);
    put_keys(s, changes, n, &k);
    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also)
        put_topic(s, t, changes, number);
    due__settings_write(s, changes, n);
    put_leaving(s, changes, n, &k);
    put_removals(s, changes, n, &k);
    put_end(s, number);
    if (k.highest > s->sequence_high)
        s->sequence_high = k.highest;
    s->has_entries = s->has_entries || k.entries > 0;
    s->has_dead = s->has_dead || k.to_dead > 0;
    return 0;
}

int due__format_script(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    struct counts k = { .number = number };

    due__format_over(s, number, false);
    int rc = sort_out(s, changes, n, &k);

    s->statuses = 0;
    if (rc == 0 && due__settings_only(changes, n))
        due__script_settings(s, changes, n, number);
    else if (rc == 0)
        due__script_remove(s, changes, n, number);
    return rc;
}

void due__format_number(struct due__redis *s, uint64_t number)
{
    due__format_over(s, number, false);
    put_multi(s);
    put_end(s, number);
}
