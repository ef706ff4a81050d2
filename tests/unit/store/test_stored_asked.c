/* What a store is asked, call by call: how much goes together, what is sent ahead, and that nothing
 * is asked twice.  A store is written down as it hears the queue, word for word:
 *
 *     t       topics            l1:512  load, from the beginning, about so many
 *     r       ready             k0:512  keys, likewise, going on
 *     p2:8P   prepare batch 2   s2      send it           c2:8P  commit it
 *
 * with how many changes of each kind there are: P put, M move, B bury, D drop, K keep, F forget,
 * T topic.
 */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

static const struct due_store_verbs *real;

/* With the key, so by one thread at a time. */
static struct heard {
    char text[4096];
    size_t len;
} heard;

static void hear(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void hear(const char *format, ...)
{
    size_t room = sizeof heard.text - heard.len;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(heard.text + heard.len, room, format, args);
    va_end(args);
    cr_assert(n >= 0 && (size_t)n < room, "too much is asked: %s", heard.text);
    heard.len += (size_t)n;
}

/* " p2:3P1D" */
static void hear_changes(char verb, uint64_t number, const due_change *changes, size_t n)
{
    static const char letters[] = "?PMBDKFBERAT";

    hear("%s%c%llu:", heard.len > 0 ? " " : "", verb, (unsigned long long)number);
    for (size_t i = 0; i < n;) {
        size_t first = i;

        while (i < n && changes[i].kind == changes[first].kind)
            i++;
        hear("%zu%c", i - first, letters[changes[first].kind]);
    }
}

static int hear_ready(due_store *s, int64_t until_ns)
{
    hear("%sr", heard.len > 0 ? " " : "");
    return real->ready(s, until_ns);
}

static int hear_prepare(due_store *s, const due_change *changes, size_t n, uint64_t number)
{
    hear_changes('p', number, changes, n);
    return real->prepare(s, changes, n, number);
}

static int hear_send(due_store *s, uint64_t number, int64_t until_ns)
{
    hear("%ss%llu", heard.len > 0 ? " " : "", (unsigned long long)number);
    return real->send(s, number, until_ns);
}

static int hear_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    hear_changes('c', number, changes, n);
    return real->commit(s, changes, n, number, until_ns);
}

static int hear_load(due_store *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    hear("%sl%d:%zu", heard.len > 0 ? " " : "", rewind, max);
    return real->load(s, rewind, max, visit, ctx, until_ns);
}

static int hear_keys(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                     int64_t until_ns)
{
    hear("%sk%d:%zu", heard.len > 0 ? " " : "", rewind, max);
    return real->keys(s, rewind, max, visit, ctx, until_ns);
}

static int hear_topics(due_store *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    hear("%st", heard.len > 0 ? " " : "");
    return real->topics(s, visit, ctx, until_ns);
}

/* ---- A queue whose store is heard ---- */

/* The proxy sleeps, and nobody has the key: what was asked is all. */
static void until_it_rests(struct shop *s)
{
    due_queue *q = s->lab.q;

    while (due__load_seq(&q->enqueue_bell.word) != 2 || due__lock_held(&q->commits->key))
        crew_sleep(DUE_MS(1));
}

static const char *asked(struct shop *s)
{
    static char text[sizeof heard.text];

    until_it_rests(s);
    memcpy(text, heard.text, heard.len + 1);
    heard.len = 0;
    heard.text[0] = '\0';
    return text;
}

/* It does what @text says, and nothing else. */
#define expect_asked(s, text) cr_expect_str_eq(asked(s), text)

static void open_heard(struct shop *s, struct lab_options with, bool ahead)
{
    static struct due_store_verbs verbs;
    due_store *any = memory_store_new(s->disk);

    real = any->verbs;
    verbs = *real;
    any->verbs->free(any);
    verbs.ready = hear_ready;
    verbs.commit = hear_commit;
    verbs.load = hear_load;
    verbs.keys = hear_keys;
    verbs.topics = hear_topics;
    verbs.prepare = ahead ? hear_prepare : NULL;
    verbs.send = ahead ? hear_send : NULL;
    heard = (struct heard){ .len = 0 };
    shop_begin(s, with, &verbs);
    shop_wait_loaded(s);
    due__lock_acquire(&s->lab.q->commits->key); /* what loaded it is at its end */
    due__lock_release(&s->lab.q->commits->key);
}

static struct shop shop_heard(size_t batch_changes, struct lab_options with)
{
    struct shop s = { .disk = memory_disk_new(
                          &(struct memory_disk_options){ .batch_changes = batch_changes }) };

    open_heard(&s, with, true);
    expect_asked(&s, "t l1:512 k1:512");
    return s;
}

/* By callers alone, or all by the proxy. */
static const enum due_proxies by_callers = DUE_PROXIES_ADAPTIVE;

static void put_many(struct shop *s, size_t n)
{
    static due_spec spec[1024];

    for (size_t i = 0; i < n; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };
    cr_assert_eq(due_enqueue_batch(s->lab.q, spec, n, 0, NULL), (int)n);
}

static void take_all(struct shop *s, due_job *jobs, size_t n, int64_t lease_ns)
{
    for (size_t got = 0; got < n;) {
        int some = take_leased_some(s->lab.q, NULL, 0, jobs + got, n - got, lease_ns, 1);

        cr_assert_gt(some, 0);
        got += (size_t)some;
    }
}

/* ---- Reading ---- */

Test(stored_asked, pages_until_there_is_nothing_left, .timeout = 60)
{
    static const struct {
        size_t jobs;
        const char *asked;
    } cases[] = { { 0, "t l1:512 k1:512" },
                  { 1, "t l1:512 k1:512" },
                  { 511, "t l1:512 k1:512" },
                  { 513, "t l1:512 l0:512 k1:512" },
                  { 1023, "t l1:512 l0:512 k1:512" } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_options with = { .start_ns = 5, .with.proxies = by_callers };
        struct shop s = shop_heard(0, with);

        if (cases[i].jobs > 0)
            put_many(&s, cases[i].jobs);
        shop_die(&s);
        open_heard(&s, with, true);
        expect_asked(&s, cases[i].asked);
        shop_close(&s);
    }
}

/* ---- Writing ---- */

static void one_by_one(struct shop *s)
{
    due_job job;
    due_id id = lab_enqueue(&s->lab, "tea", .at_ns = 10);

    expect_asked(s, "r p1:1P s1 c1:1P");
    cr_expect_eq(due_reschedule(s->lab.q, id, 20), 0);
    expect_asked(s, "r p2:1M s2 c2:1M");
    lab_turn_to(&s->lab, 20);
    cr_assert_eq(lab_reserve(&s->lab, &job, DUE_S(60)), 0);
    expect_asked(s, "");
    cr_expect_eq(due_nack(&job, 5), 0);
    expect_asked(s, "r p3:1M s3 c3:1M");
    lab_advance(&s->lab, 5);
    cr_assert_eq(lab_reserve(&s->lab, &job, DUE_S(60)), 0);
    cr_expect_eq(due_bury(&job, "no"), 0);
    expect_asked(s, "r p4:1B s4 c4:1B");
    cr_expect_eq(due_kick(s->lab.q, id), 0);
    expect_asked(s, "r p5:1M s5 c5:1M");
    cr_expect_eq(due_cancel(s->lab.q, id, NULL), 0);
    expect_asked(s, "r p6:1D s6 c6:1D");
    cr_expect_eq(due_cancel(s->lab.q, id, NULL), DUE_ENOENT);
    expect_asked(s, "");
    lab_enqueue(&s->lab, "tea", .at_ns = 1);
    expect_asked(s, "r p7:1P s7 c7:1P");
    cr_expect_str_eq(lab_dequeue(&s->lab), "tea");
    expect_asked(s, "r p8:1D s8 c8:1D");
    cr_expect_null(lab_dequeue(&s->lab));
    cr_expect_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    expect_asked(s, "");
}

Test(stored_asked, each_change_once, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct shop s = shop_heard(
            0, (struct lab_options){ .start_ns = 5, .with.proxies = (enum due_proxies)mode });

        one_by_one(&s);
        shop_close(&s);
    }
}

/* A call of many changes leaves them by the half of a batch, but not by fewer than 64, and of 256
 * jobs at a time; what is a quarter of a batch is made ready before the answer is there. */
Test(stored_asked, many_changes_of_a_call_a_piece_at_a_time, .timeout = 60)
{
    static const struct {
        size_t batch, jobs;
        const char *put, *acked;
    } cases[] = {
        { 256, 128, "r p1:128P s1 c1:128P", "r p2:128D s2 c2:128D" },
        { 256, 129, "r p1:128P s1 c1:128P p2:1P s2 c2:1P", "r p3:128D s3 c3:128D p4:1D s4 c4:1D" },
        { 256, 191, "r p1:128P s1 c1:128P p2:63P s2 c2:63P",
          "r p3:128D s3 c3:128D p4:63D s4 c4:63D" },
        { 256, 192, "r p1:128P s1 p2:64P c1:128P s2 c2:64P",
          "r p3:128D s3 p4:64D c3:128D s4 c4:64D" },
        { 256, 600,
          "r p1:128P s1 p2:128P c1:128P s2 c2:128P r p3:128P s3 p4:128P c3:128P s4 c4:128P "
          "r p5:88P s5 c5:88P",
          "r p6:128D s6 p7:128D c6:128D s7 c7:128D r p8:128D s8 p9:128D c8:128D s9 c9:128D "
          "r p10:88D s10 c10:88D" },
        { 100, 64, "r p1:64P s1 c1:64P", "r p2:64D s2 c2:64D" },
        { 100, 65, "r p1:64P s1 c1:64P p2:1P s2 c2:1P", "r p3:64D s3 c3:64D p4:1D s4 c4:1D" },
        { 16, 40, "r p1:16P s1 p2:16P c1:16P s2 p3:8P c2:16P s3 c3:8P",
          "r p4:16D s4 p5:16D c4:16D s5 p6:8D c5:16D s6 c6:8D" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shop s = shop_heard(
            cases[i].batch, (struct lab_options){ .start_ns = 5, .with.proxies = by_callers });
        static due_job jobs[1024];
        static int results[1024];
        size_t n = cases[i].jobs;

        put_many(&s, n);
        expect_asked(&s, cases[i].put);
        lab_turn_to(&s.lab, 10);
        take_all(&s, jobs, n, DUE_S(60));
        expect_asked(&s, "");
        cr_assert_eq(due_ack_batch(jobs, n, results), (int)n);
        expect_asked(&s, cases[i].acked);
        shop_close(&s);
    }
}

/* Where the proxy sends all, only as much as it finds. */
Test(stored_asked, many_changes_at_once_where_the_proxy_sends, .timeout = 60)
{
    struct shop s =
        shop_heard(64, (struct lab_options){ .start_ns = 5, .with.proxies = DUE_PROXIES_ALWAYS });

    put_many(&s, 40);
    expect_asked(&s, "r p1:40P s1 c1:40P");
    put_many(&s, 100);
    expect_asked(&s, "r p2:64P s2 p3:36P c2:64P s3 c3:36P");
    shop_close(&s);
}

/* A store that cannot be sent to ahead is asked for each batch as a whole. */
Test(stored_asked, nothing_ahead_of_a_store_that_cannot, .timeout = 60)
{
    struct shop s = { .disk =
                          memory_disk_new(&(struct memory_disk_options){ .batch_changes = 64 }) };

    open_heard(&s, (struct lab_options){ .start_ns = 5, .with.proxies = by_callers }, false);
    expect_asked(&s, "t l1:512 k1:512");
    put_many(&s, 64);
    expect_asked(&s, "r c1:64P r"); /* full: is there more? */
    put_many(&s, 22);
    expect_asked(&s, "r c2:22P");
    shop_close(&s);
}

/* ---- Behind a batch that is under way ---- */

static void block_commit(struct shop *s, uint64_t call, struct memory_limiter *limiter)
{
    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .call = call,
                                                        .kind = MEMORY_BLOCK,
                                                        .limiter = limiter });
}

static void leave_some(struct shop *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lab_enqueue(&s->lab, "tea", .at_ns = 10);
}

/* Two batches are under way one after another, while so many jobs come behind each. */
static void behind(size_t first, size_t second, const char *what)
{
    struct shop s =
        shop_heard(16, (struct lab_options){ .start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC });
    struct memory_limiter *one = memory_limiter_new(s.disk);
    struct memory_limiter *two = memory_limiter_new(s.disk);

    block_commit(&s, 1, one);
    block_commit(&s, 2, two);
    leave_some(&s, 1);
    memory_limiter_reached(one, 1);
    leave_some(&s, first);
    memory_limiter_open(one);
    if (first > 0) {
        memory_limiter_reached(two, 1);
        leave_some(&s, second);
    }
    memory_limiter_open(two);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    expect_asked(&s, what);
    shop_close(&s);
    memory_limiter_free(one);
    memory_limiter_free(two);
}

/* What came meanwhile goes with the next batch, which is made ready once, and once more only if as
 * much again has come. */
Test(stored_asked, for_what_came_meanwhile_in_one_batch, .timeout = 60)
{
    behind(0, 0, "r p1:1P s1 c1:1P");
    behind(1, 0, "r p1:1P s1 c1:1P p2:1P s2 c2:1P");
    behind(8, 0, "r p1:1P s1 c1:1P p2:8P s2 c2:8P");
    behind(8, 3, "r p1:1P s1 c1:1P p2:8P s2 c2:8P p3:3P s3 c3:3P");
    behind(19, 0, "r p1:1P s1 c1:1P p2:16P s2 c2:16P p3:3P s3 c3:3P");
    behind(20, 0, "r p1:1P s1 c1:1P p2:16P s2 p3:4P c2:16P s3 c3:4P");
    behind(22, 6, "r p1:1P s1 c1:1P p2:16P s2 p3:6P c2:16P s3 p4:6P c3:6P s4 c4:6P");
    behind(22, 7, "r p1:1P s1 c1:1P p2:16P s2 p3:6P c2:16P p3:13P s3 c3:13P");
    behind(19, 1, "r p1:1P s1 c1:1P p2:16P s2 c2:16P p3:4P s3 c3:4P");
    behind(40, 30,
           "r p1:1P s1 c1:1P p2:16P s2 p3:16P c2:16P s3 p4:16P c3:16P s4 p5:16P c4:16P s5 p6:6P "
           "c5:16P s6 c6:6P");
}

/* ---- After a loss ---- */

/* @jobs and one more, of which the last one is told of the loss.  How large a page is that is shown
 * then follows from how much was sent since the last one, which may have come between. */
static void put_again(size_t jobs, size_t batches, const char *put, const char *shown)
{
    struct shop s = shop_heard(16, (struct lab_options){ .start_ns = 5 });

    leave_some(&s, jobs);
    asked(&s);
    memory_store_fault(s.store, (struct memory_fault){
                                    .verb = MEMORY_READY, .kind = MEMORY_LOSE, .count = batches });
    leave_some(&s, 1);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    while (due__load_seq(&s.lab.q->commits->lacking))
        crew_sleep(DUE_MS(1));
    const char *all = asked(&s);
    cr_assert_eq(strncmp(all, put, strlen(put)), 0, "%s", all);
    const char *rest = all + strlen(put);
    if (shown != NULL)
        cr_expect_str_eq(rest, shown);
    else
        cr_expect(strncmp(rest, "l1:", 3) == 0 && strstr(rest, " k1:9") == rest + 6, "%s", all);
    cr_expect_eq(memory_disk_jobs(s.disk), jobs + 1);
    cr_expect_eq(lab_stats(&s.lab).mirrored, jobs);
    shop_close(&s);
}

Test(stored_asked, after_a_loss_to_have_all_again_and_then_to_show_it, .timeout = 60)
{
    put_again(1, 1, "r t p2:2P s2 c2:2P ", "l1:518 k1:9");
    put_again(3, 1, "r t p4:4P s4 c4:4P ", "l1:526 k1:9");
    put_again(15, 15, "r t p16:16P s16 c16:16P ", "r l1:574 k1:9"); /* full: is there more? */
    put_again(20, 5, "r t p21:16P s21 c21:16P r p22:5P s22 c22:5P ", NULL);
    put_again(40, 40, "r t p41:16P s41 c41:16P r p42:16P s42 c42:16P r p43:9P s43 c43:9P ", NULL);
}

/* Jobs that are done, and whose keys are kept. */
static void keep_keys(struct shop *s, int n)
{
    char key[16];
    due_job job;

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(shop_put(s, key, "tea", NULL, (due_spec){ KEEPS(DUE_S(1000)) }), 0);
        cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
        cr_assert_eq(lab_take(&s->lab, &job), 0);
        due_job_done(&job);
    }
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    asked(s);
}

/* Where keys left no room for jobs the next batch has a quarter less of those, until all keys are
 * told.  While the first batch after the loss is under way @behind jobs come. */
static void put_keys_again(size_t batch, int keys, size_t behind, const char *what)
{
    struct shop s =
        shop_heard(batch, (struct lab_options){ .start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC });
    struct memory_limiter *limiter = memory_limiter_new(s.disk);

    keep_keys(&s, keys);
    memory_store_fault(s.store, (struct memory_fault){
                                    .verb = MEMORY_READY, .kind = MEMORY_LOSE, .count = SIZE_MAX });
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    leave_some(&s, 1);
    memory_limiter_reached(limiter, 1);
    s.lab.q->commits->page_ns = INT64_MAX; /* nothing is shown in between */
    leave_some(&s, behind);
    memory_limiter_open(limiter);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    while (due__load_seq(&s.lab.q->commits->lacking))
        crew_sleep(DUE_MS(1));
    const char *all = asked(&s);
    const char *commits = strstr(all, "t p");
    char found[sizeof heard.text] = "";

    cr_assert_not_null(commits, "%s", all);
    for (const char *c = commits; (c = strstr(c, " c")) != NULL; c++) /* " c7:1P15K", of each */
        snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s ",
                 (int)strcspn(strchr(c, ':') + 1, " "), strchr(c, ':') + 1);
    cr_expect_str_eq(found, what, "%zu: %s", batch, all);
    cr_expect_eq(memory_disk_keys(s.disk), (size_t)keys);
    cr_expect_eq(memory_disk_jobs(s.disk), behind + 1);
    shop_close(&s);
    memory_limiter_free(limiter);
}

Test(stored_asked, after_a_loss_to_keep_keys_again_beside_what_comes, .timeout = 60)
{
    put_keys_again(16, 3, 2, "1P3K 2P ");
    put_keys_again(16, 15, 20, "1P15K 12P 8P ");
    put_keys_again(16, 40, 50, "1P15K 12P4K 12P4K 12P4K 12P4K 2P9K ");
    put_keys_again(8, 20, 20, "1P7K 6P2K 6P2K 6P2K 2P6K 1K ");
    put_keys_again(4, 9, 8, "1P3K 3P1K 3P1K 2P2K 2K ");
    put_keys_again(3, 9, 8, "1P2K 2P1K 2P1K 2P1K 2P1K 3K ");
    put_keys_again(2, 5, 5, "1P1K 1P1K 1P1K 1P1K 1P1K 1P ");
    put_keys_again(1, 3, 3, "1P 1P 1P 1P 1K 1K 1K ");
}

/* ---- Many that leave ---- */

static due_id put_ids[256];

static struct shop shop_of(size_t n)
{
    struct shop s = shop_heard(16, (struct lab_options){ .start_ns = 5 });

    for (size_t i = 0; i < n; i++)
        put_ids[i] = lab_enqueue(&s.lab, "tea", .at_ns = 10);
    asked(&s);
    return s;
}

Test(stored_asked, to_let_many_go, .timeout = 60)
{
    struct shop s = shop_of(80);
    due_job jobs[80];
    int results[80];
    uint64_t cleared;

    cr_expect_eq(due_cancel_batch(s.lab.q, put_ids, 3, results), 3);
    expect_asked(&s, "r p81:3D s81 c81:3D");
    cr_expect_eq(due_cancel_batch(s.lab.q, put_ids, 20, results), 17);
    expect_asked(&s, "r p82:16D s82 c82:16D p83:1D s83 c83:1D");
    lab_turn_to(&s.lab, 10);
    cr_assert_eq(take_some(s.lab.q, NULL, 0, jobs, 10, 1), 10);
    expect_asked(&s, "r p84:10D s84 c84:10D");
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 50u);
    expect_asked(&s, "r p85:16D s85 p86:16D c85:16D s86 p87:16D c86:16D s87 c87:16D p88:2D "
                     "s88 c88:2D");
    for (int i = 0; i < 10; i++)
        due_job_done(&jobs[i]);
    shop_close(&s);
}

/* ---- Keys, topics, rounds ---- */

/* One job more: is a key forgotten with it? */
static size_t forgets(struct shop *s, size_t most)
{
    lab_enqueue(&s->lab, "tea", .at_ns = 10);
    const char *all = asked(s);
    size_t some = strstr(all, "F") != NULL;

    cr_expect_eq(strncmp(all, "r p", 3), 0, "%s", all);
    cr_expect_leq(some, most, "%s", all);
    cr_expect(some == 0 || strstr(all, ":1P1F") != NULL, "%s", all);
    return some;
}

Test(stored_asked, keys_are_told_with_their_jobs_and_forgotten_with_the_next_batch, .timeout = 60)
{
    struct shop s = shop_heard(16, (struct lab_options){ .start_ns = 5 });
    due_job job;
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 5, KEEPS(10)), 0);
    expect_asked(&s, "r p1:1P s1 c1:1P");
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "milk", NULL, .at_ns = 5), DUE_EEXIST);
    expect_asked(&s, "");
    cr_assert_eq(lab_reserve(&s.lab, &job, DUE_S(60)), 0);
    cr_expect_eq(due_ack(&job), 0);
    expect_asked(&s, "r p2:1D s2 c2:1D");
    for (size_t i = 0; i < DUE__KEY_SHARDS; i++)
        forgets(&s, 0);
    lab_advance(&s.lab, 9);
    for (size_t i = 0; i < DUE__KEY_SHARDS; i++)
        forgets(&s, 0);
    lab_advance(&s.lab, 1);
    size_t forgot = 0;
    for (size_t i = 0; i < DUE__KEY_SHARDS / 4; i++)
        forgot += forgets(&s, 1);
    cr_expect_eq(forgot, 1u, "a few shards are looked at for each batch");
    shop_close(&s);
}

Test(stored_asked, to_hold_back_topics, .timeout = 60)
{
    struct shop s = shop_heard(16, (struct lab_options){ .start_ns = 5 });
    int a = lab_topic(&s.lab, "a");

    cr_expect_eq(due_pause(s.lab.q, a), 0);
    expect_asked(&s, "r p1:1T s1 c1:1T r");
    cr_expect_eq(due_pause(s.lab.q, a), 0);
    expect_asked(&s, "r p2:1T s2 c2:1T r");
    cr_expect_eq(due_topic_limit(s.lab.q, a, 3), 0);
    expect_asked(&s, "r p3:1T s3 c3:1T r");
    cr_expect_eq(due_resume(s.lab.q, a), 0);
    expect_asked(&s, "r p4:1T s4 c4:1T r");
    char name[8];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "t%d", i);
        lab_topic(&s.lab, name);
    }
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
    expect_asked(&s, "r p5:16T s5 c5:16T r p6:6T s6 c6:6T r");
    shop_close(&s);
}
