/* What a change does to which key, by itself: each kind, on a server that has lost nothing, and on
 * one that may have. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/keys/keys.h"

enum {
    OLD = 40,
    NEW = 50
}; /* numbers of our jobs: of the batch before this one, and of this one */

static struct due__redis *desk(void)
{
    static struct due__redis s;

    memset(&s, 0, sizeof s);
    s.writer = 3;
    s.read_once = true;
    s.sequence_old[0] = s.sequence_old[1] = OLD;
    return &s;
}

static due_id id_of(uint64_t writer, uint64_t sequence)
{
    due_id id = { { 127 } };

    for (size_t i = 0; i < 6; i++)
        id.byte[6 - i] = (unsigned char)(writer >> (8 * i));
    for (size_t i = 0; i < 7; i++)
        id.byte[13 - i] = (unsigned char)(sequence >> (8 * i));
    return id;
}

/* A job of ours that the store may have; with a key. */
static due_change change(enum due_change_kind kind)
{
    return (due_change){
        .kind = kind, .record = { .id = id_of(3, OLD), .topic = "mail", .key = "k", .key_len = 1 }
    };
}

static due_change fresh(enum due_change_kind kind)
{
    due_change c = change(kind);

    c.record.id = id_of(3, NEW);
    return c;
}

static due_change dead(due_change c)
{
    c.record.cause = DUE_CAUSE_BURIED;
    return c;
}

static due_change was_dead(due_change c)
{
    c.was_dead = 1;
    return c;
}

/* ---- Scores and numbers ---- */

Test(score, is_in_whole_microseconds_and_never_early)
{
    static const int64_t known[][2] = { { 0, 0 },      { 1, 1 },         { 999, 1 },  { 1000, 1 },
                                        { 1001, 2 },   { -1, 0 },        { -999, 0 }, { -1000, -1 },
                                        { -1001, -1 }, { 1999999, 2000 } };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_expect_eq(due__redis_score(known[i][0]), known[i][1], "%zu", i);
}

/* From 2^53 microseconds on a score is even, or it would be rounded by the server, perhaps down. */
Test(score, is_even_where_odd_numbers_have_no_exact_score)
{
    int64_t exact = (INT64_C(1) << 53) * 1000;

    cr_expect_eq(due__redis_score(exact - 1000), (INT64_C(1) << 53) - 1);
    cr_expect_eq(due__redis_score(exact), INT64_C(1) << 53);
    cr_expect_eq(due__redis_score(exact + 1000), (INT64_C(1) << 53) + 2);
    cr_expect_eq(due__redis_score(exact + 2000), (INT64_C(1) << 53) + 2);
    cr_expect_eq(due__redis_score(exact + 2001), (INT64_C(1) << 53) + 4);
    cr_expect_eq((int64_t)(double)due__redis_score(INT64_MAX), due__redis_score(INT64_MAX));
}

Test(sequence, is_told_of_ids_of_this_writer_only)
{
    struct due__redis *s = desk();
    uint64_t most = (UINT64_C(1) << 56) - 1;

    s->writer = 0x010203040506;
    cr_expect_eq(due__redis_sequence(s, id_of(s->writer, most)), most);
    cr_expect_eq(due__redis_sequence(s, id_of(s->writer, 0x01020304050607)), 0x01020304050607u);
    for (int bit = 0; bit < 48; bit++)
        cr_expect_eq(due__redis_sequence(s, id_of(s->writer ^ UINT64_C(1) << bit, 9)), 0u);
}

/* Of the two batches that may be under way each has its own bound. */
Test(sequence, above_all_that_came_before_a_batch_is_new_to_the_store)
{
    struct due__redis *s = desk();

    s->sequence_old[0] = 10;
    s->sequence_old[1] = 20;
    cr_expect(due__redis_may_be_stored(s, id_of(3, 10), 4));
    cr_expect_not(due__redis_may_be_stored(s, id_of(3, 11), 4));
    cr_expect(due__redis_may_be_stored(s, id_of(3, 11), 5));
    cr_expect(due__redis_may_be_stored(s, id_of(3, 20), 5));
    cr_expect_not(due__redis_may_be_stored(s, id_of(3, 21), 5));
    cr_expect(due__redis_may_be_stored(s, id_of(4, 99), 4), "another writer's");
    cr_expect(due__redis_may_be_stored(s, id_of(3, 0), 4));
}

/* ---- Where it stands ---- */

#define PUT  change(DUE_CHANGE_PUT)
#define MOVE change(DUE_CHANGE_MOVE)
#define BURY change(DUE_CHANGE_BURY)
#define DROP change(DUE_CHANGE_DROP)

static void expect_topic(due_change c, bool leaves, bool enters, const char *what)
{
    cr_expect_eq(due__change_leaves_topic(desk(), &c, 0), leaves, "%s leaves", what);
    cr_expect_eq(due__change_enters_topic(&c), enters, "%s enters", what);
}

static void expect_dead(due_change c, bool leaves, bool enters, const char *what)
{
    struct due__redis *s = desk();

    s->has_dead = true;
    cr_expect_eq(due__change_leaves_dead(s, &c, 0), leaves, "%s leaves the dead", what);
    cr_expect_eq(due__change_enters_dead(&c), enters, "%s enters the dead", what);
}

Test(change, puts_a_job_where_it_belongs_and_takes_it_from_where_it_was)
{
    expect_topic(PUT, false, true, "put");
    expect_topic(dead(PUT), true, false, "put dead over a job");
    expect_topic(dead(fresh(DUE_CHANGE_PUT)), false, false, "a new one, dead");
    expect_topic(MOVE, false, true, "move");
    expect_topic(was_dead(MOVE), false, true, "kick");
    expect_topic(BURY, true, false, "bury");
    expect_topic(DROP, true, false, "drop");
    expect_topic(was_dead(DROP), false, false, "drop a dead one");
    expect_topic(change(DUE_CHANGE_KEEP), false, false, "keep");
    expect_topic(change(DUE_CHANGE_FORGET), false, false, "forget");

    expect_dead(PUT, true, false, "put over a job");
    expect_dead(fresh(DUE_CHANGE_PUT), false, false, "a new one");
    expect_dead(dead(PUT), false, true, "put dead");
    expect_dead(MOVE, false, false, "move");
    expect_dead(was_dead(MOVE), true, false, "kick");
    expect_dead(BURY, false, true, "bury");
    expect_dead(DROP, false, false, "drop");
    expect_dead(was_dead(DROP), true, false, "drop a dead one");
    expect_dead(change(DUE_CHANGE_KEEP), false, false, "keep");
    expect_dead(change(DUE_CHANGE_FORGET), false, false, "forget");
}

Test(change, looks_for_the_dead_only_where_there_may_be_some)
{
    struct due__redis *s = desk();
    due_change put = PUT;

    cr_expect_not(due__change_leaves_dead(s, &put, 0));
    s->has_dead = true;
    cr_expect(due__change_leaves_dead(s, &put, 0));
}

Test(change, drops_a_job_from_both_places_on_a_server_that_has_lost_something)
{
    struct due__redis *s = desk();
    due_change drop = DROP;
    due_change of_dead = was_dead(DROP);

    s->lossy = true;
    cr_expect(due__change_leaves_topic(s, &drop, 0));
    cr_expect(due__change_leaves_topic(s, &of_dead, 0));
    cr_expect_not(due__change_leaves_dead(s, &drop, 0), "there are none");
    s->has_dead = true;
    cr_expect(due__change_leaves_dead(s, &drop, 0));
    cr_expect(due__change_leaves_dead(s, &of_dead, 0));
}

/* Only if nothing may be otherwise than the queue says. */
Test(change, of_an_attempt_alone_leaves_the_job_where_it_is)
{
    due_change c = MOVE;

    c.was_ns = 1001;
    c.record.until_ns = 2000;
    cr_expect(due__change_stays(desk(), &c), "the same microsecond");
    c.record.until_ns = 2001;
    cr_expect_not(due__change_stays(desk(), &c));
    c.record.until_ns = 2000;
    c.kind = DUE_CHANGE_PUT;
    cr_expect_not(due__change_stays(desk(), &c));
    c = was_dead(c);
    c.kind = DUE_CHANGE_MOVE;
    cr_expect_not(due__change_stays(desk(), &c));
    c.was_dead = 0;
    struct due__redis *s = desk();
    s->read_once = false;
    cr_expect_not(due__change_stays(s, &c));
    s = desk();
    s->lossy = true;
    cr_expect_not(due__change_stays(s, &c));
    s = desk();
    s->unsure = true;
    cr_expect_not(due__change_stays(s, &c));
}

/* ---- Its entry ---- */

static bool put_has_entry(due_record with)
{
    due_change c = PUT;

    c.record.until_ns = with.until_ns;
    c.record.attempts = with.attempts;
    return due__change_has_entry(&c);
}

Test(change, has_an_entry_where_the_record_does_not_say_all)
{
    due_change move = MOVE, bury = BURY, drop = DROP;

    cr_expect(due__change_has_entry(&move));
    cr_expect(due__change_has_entry(&bury));
    cr_expect_not(due__change_has_entry(&drop));
    cr_expect_not(put_has_entry((due_record){ .attempts = 0 }));
    cr_expect(put_has_entry((due_record){ .attempts = 1 }));
    cr_expect(put_has_entry((due_record){ .until_ns = 1 }));
    due_change keep = change(DUE_CHANGE_KEEP);
    keep.record.attempts = 1;
    cr_expect_not(due__change_has_entry(&keep));
}

Test(change, makes_an_entry_stale_that_was_there_before)
{
    struct due__redis *s = desk();
    due_change put = PUT, again = PUT, brand_new = fresh(DUE_CHANGE_PUT), drop = DROP, move = MOVE;

    again.record.attempts = 1;
    cr_expect_not(due__change_is_stale(s, &put, 0), "there are none");
    cr_expect_not(due__choose_entries(s, &drop, 0), "there are none");
    s->has_entries = true;
    cr_expect(due__change_is_stale(s, &put, 0));
    cr_expect_not(due__change_is_stale(s, &again, 0), "it is written anew");
    cr_expect_not(due__change_is_stale(s, &brand_new, 0));
    cr_expect_not(due__change_is_stale(s, &drop, 0));
    cr_expect(due__choose_entries(s, &drop, 0));
    cr_expect(due__choose_entries(s, &put, 0));
    cr_expect_not(due__choose_entries(s, &move, 0));
    cr_expect(due__choose_drops(s, &drop, 0));
    cr_expect_not(due__choose_drops(s, &move, 0));
}

/* ---- Its key ---- */

static void expect_key(due_change c, bool frees, bool keeps, bool takes, const char *what)
{
    cr_expect_eq(due__change_frees_key(&c), frees, "%s frees", what);
    cr_expect_eq(due__choose_frees(desk(), &c, 0), frees, "%s frees", what);
    cr_expect_eq(due__change_keeps_key(&c), keeps, "%s keeps", what);
    cr_expect_eq(due__change_takes_key(&c), takes, "%s takes", what);
    c.record.key_len = 0;
    cr_expect_not(due__change_frees_key(&c) || due__change_keeps_key(&c) ||
                  due__change_takes_key(&c));
}

Test(change, takes_keeps_or_frees_a_key)
{
    due_change keeping = DROP;

    keeping.key_kept_ns = 1;
    expect_key(PUT, false, false, true, "put");
    expect_key(MOVE, false, false, false, "move");
    expect_key(BURY, false, false, false, "bury");
    expect_key(DROP, true, false, false, "drop");
    expect_key(keeping, false, true, true, "drop that keeps");
    expect_key(change(DUE_CHANGE_KEEP), false, true, true, "keep");
    expect_key(change(DUE_CHANGE_FORGET), true, false, false, "forget");
}

static bool unkeeps(bool lossy, due_change c)
{
    struct due__redis *s = desk();

    s->lossy = lossy;
    cr_expect_eq(due__choose_unkeeps(s, &c, 0), due__change_unkeeps_key(s, &c));
    return due__change_unkeeps_key(s, &c);
}

Test(change, unkeeps_a_key_that_may_have_been_kept)
{
    due_change kept = PUT, keeping = DROP, none = change(DUE_CHANGE_FORGET);

    kept.was_kept = 1;
    keeping.key_kept_ns = 1;
    none.record.key_len = 0;
    cr_expect(unkeeps(false, change(DUE_CHANGE_FORGET)));
    cr_expect(unkeeps(false, kept));
    cr_expect_not(unkeeps(false, PUT));
    cr_expect_not(unkeeps(false, DROP));
    cr_expect_not(unkeeps(false, none));
    cr_expect(unkeeps(true, PUT));
    cr_expect(unkeeps(true, DROP));
    cr_expect_not(unkeeps(true, keeping));
    cr_expect_not(unkeeps(true, MOVE));
    cr_expect_not(unkeeps(true, change(DUE_CHANGE_KEEP)));
}

/* ---- Names and topics ---- */

Test(topics, are_found_again_by_name_however_many_there_are)
{
    enum { MANY = 1000 };
    struct due__redis *s = desk();
    struct due__redis_topic *met[MANY];
    char name[16];

    snprintf(s->prefix, sizeof s->prefix, "due");
    snprintf(s->name, sizeof s->name, "q");
    due__redis_name_keys(s);
    cr_expect_str_eq(s->keys.jobs, "due:{q}:j");
    cr_expect_str_eq(s->keys.again, "due:{q}:a");
    cr_expect_str_eq(s->keys.kept, "due:{q}:kx");
    cr_expect_eq(s->keys.topic_len, strlen("due:{q}:t:"));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "topic%d", i);
        met[i] = due__redis_topic(s, name, strlen(name));
        cr_assert_not_null(met[i]);
        cr_expect_eq(met[i]->key_len, s->keys.topic_len + strlen(name));
        cr_expect_eq(memcmp(met[i]->key + met[i]->name_at, name, strlen(name)), 0);
        met[i]->entered = true;
    }
    cr_expect_eq(s->topics.count, (size_t)MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "topic%d", i);
        cr_assert_eq(due__redis_topic(s, name, strlen(name)), met[i]);
    }
    cr_expect_neq(due__redis_topic(s, "topic1", 5), met[1]);
    due__redis_topics_forget(s);
    for (int i = 0; i < MANY; i++)
        cr_expect_not(met[i]->entered);
    struct due__redis_topic *of_dead = due__redis_dead(s);
    cr_assert_not_null(of_dead);
    cr_expect(of_dead->entered);
    cr_expect_eq(due__redis_dead(s), of_dead);
    cr_expect_eq(of_dead->name_at, of_dead->key_len);
    cr_expect_eq(memcmp(of_dead->key, "due:{q}:dead", of_dead->key_len), 0);
    due__redis_topics_free(s);
    cr_expect_eq(s->topics.count, 0u);
    cr_expect_null(s->dead);
    due__redis_topics_free(s);
}
