/* store_memory.c - the suite on the store in memory, and the faults of that store. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/crew.h"
#include "lab/memory_store.h"
#include "store/store_suite.h"

/* ---- The suite ---- */

struct place {
    struct memory_disk *disk;
    struct memory_disk_options options;
    due_store *store; /* made last */
};

/* What was wrong with the suite itself is wrong with the test. */
static void fresh(void *ctx)
{
    struct place *p = ctx;

    if (p->disk != NULL)
        CREW_CHECK(memory_disk_wrong(p->disk) == NULL, ": %s", memory_disk_wrong(p->disk));
    memory_disk_free(p->disk);
    p->disk = memory_disk_new(&p->options);
}

static due_store *make(void *ctx)
{
    struct place *p = ctx;

    p->store = memory_store_new(p->disk);
    return p->store;
}

static void end_lease(void *ctx)
{
    struct place *p = ctx;

    memory_disk_end_lease(p->disk);
}

static void lose(void *ctx)
{
    struct place *p = ctx;

    memory_disk_lose(p->disk, SIZE_MAX);
}

static void full(void *ctx, bool is_full)
{
    struct place *p = ctx;

    memory_store_forgive(p->store);
    if (is_full)
        memory_store_fault(p->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                            .times = MEMORY_ALWAYS,
                                                            .kind = MEMORY_FULL });
}

static void doubt(void *ctx, bool lands)
{
    struct place *p = ctx;

    memory_store_fault(
        p->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                         .kind = lands ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
}

/* Every verb once is not reached. */
static void cut(void *ctx)
{
    struct place *p = ctx;

    memory_store_forgive(p->store);
    for (int verb = MEMORY_READY; verb < MEMORY_CLOSE; verb++)
        memory_store_fault(
            p->store, (struct memory_fault){ .verb = (enum memory_verb)verb, .kind = MEMORY_AWAY });
}

static int suite(int64_t lease_ns, const char *only)
{
    struct place place = { .options = { .lease_ns = lease_ns } };
    struct store_maker maker = { .name = "memory store",
                                 .make = make,
                                 .ctx = &place,
                                 .lease_ns = lease_ns,
                                 .fresh = fresh,
                                 .lose = lose,
                                 .full = full,
                                 .doubt = doubt,
                                 .cut = cut };

    if (lease_ns == 0)
        maker.end_lease = end_lease;
    int rc = store_suite_run(&maker, only);
    fresh(&place);
    memory_disk_free(place.disk);
    return rc;
}

/* ---- The faults ---- */

/* Without a text behind it. */
#define MUST(truth) CREW_CHECK(truth, "")

#define SOON (crew_now_ns() + DUE_S(30))

struct bench {
    struct memory_disk *disk;
    due_store *store;
    struct due_store_info info;
    uint64_t number;
};

static int open_store(struct bench *b, due_store *store)
{
    struct due_store_open how = { .name = "bench", .until_ns = crew_now_ns() };

    return store->verbs->open(store, &how, &b->info, NULL);
}

static struct bench bench(void)
{
    struct bench b = { .disk = memory_disk_new(NULL) };

    b.store = memory_store_new(b.disk);
    MUST(open_store(&b, b.store) == 0);
    return b;
}

static void put_away(struct bench *b)
{
    b->store->verbs->free(b->store);
    CREW_CHECK(memory_disk_wrong(b->disk) == NULL, ": %s", memory_disk_wrong(b->disk));
    memory_disk_free(b->disk);
}

static due_id id_of(unsigned char n)
{
    return (due_id){ .byte = { [0] = 255, [13] = n } };
}

static due_change change(enum due_change_kind kind, unsigned char n, int64_t until_ns)
{
    return (due_change){ .kind = kind,
                         .was_ns = until_ns,
                         .record = { .id = id_of(n), .until_ns = until_ns, .topic = "" } };
}

static int put(struct bench *b, unsigned char n, uint64_t number)
{
    due_change c = change(DUE_CHANGE_PUT, n, n);

    return b->store->verbs->commit(b->store, &c, 1, number, crew_now_ns());
}

static void fault(struct bench *b, enum memory_verb verb, enum memory_fault_kind kind, size_t count)
{
    memory_store_fault(b->store,
                       (struct memory_fault){ .verb = verb, .kind = kind, .count = count });
}

static void in_doubt_stays_so_until_it_is_reached(void)
{
    struct bench b = bench();

    fault(&b, MEMORY_COMMIT, MEMORY_DOUBT_LANDED, 0);
    MUST(put(&b, 1, 1) == DUE_EINDOUBT);
    MUST(memory_disk_jobs(b.disk) == 1);
    fault(&b, MEMORY_COMMIT, MEMORY_AWAY, 0);
    MUST(put(&b, 1, 1) == DUE_EINDOUBT);
    fault(&b, MEMORY_COMMIT, MEMORY_FULL, 0);
    MUST(put(&b, 1, 1) == 0);
    fault(&b, MEMORY_COMMIT, MEMORY_DOUBT_NOT, 0);
    MUST(put(&b, 2, 2) == DUE_EINDOUBT);
    MUST(memory_disk_jobs(b.disk) == 1);
    fault(&b, MEMORY_COMMIT, MEMORY_FULL, 0);
    MUST(put(&b, 2, 2) == DUE_ENOSPC);
    MUST(put(&b, 3, 2) == 0);
    MUST(memory_disk_batches(b.disk) == 2);
    put_away(&b);
}

static void a_loss_is_told_only_if_it_had_been_confirmed(void)
{
    struct bench b = bench();

    MUST(put(&b, 1, 1) == 0 && put(&b, 2, 2) == 0);
    fault(&b, MEMORY_COMMIT, MEMORY_DOUBT_LANDED, 0);
    MUST(put(&b, 3, 3) == DUE_EINDOUBT);
    memory_disk_lose(b.disk, 1);
    MUST(memory_disk_jobs(b.disk) == 2);
    MUST(b.store->verbs->ready(b.store, SOON) == 0);
    MUST(put(&b, 3, 3) == 0);
    fault(&b, MEMORY_READY, MEMORY_LOSE, 2);
    MUST(b.store->verbs->ready(b.store, SOON) == DUE_ELOST);
    MUST(memory_disk_jobs(b.disk) == 1 && memory_disk_find(b.disk, id_of(1), NULL));
    MUST(b.store->verbs->ready(b.store, SOON) == 0);
    MUST(put(&b, 2, 4) == 0);
    memory_disk_lose(b.disk, SIZE_MAX);
    MUST(put(&b, 5, 5) == DUE_EAGAIN);
    MUST(b.store->verbs->ready(b.store, SOON) == DUE_ELOST);
    MUST(put(&b, 5, 5) == 0);
    put_away(&b);
}

/* Moves and removals are taken back to what was before them. */
static void a_loss_brings_back_what_was(void)
{
    struct bench b = bench();
    due_change c[2] = { change(DUE_CHANGE_DROP, 1, 1), change(DUE_CHANGE_MOVE, 2, 2) };
    due_record record;

    c[1].record.until_ns = 50;
    MUST(put(&b, 1, 1) == 0 && put(&b, 2, 2) == 0);
    MUST(b.store->verbs->commit(b.store, c, 2, 3, SOON) == 0);
    MUST(memory_disk_find(b.disk, id_of(2), &record) && record.until_ns == 50);
    MUST(!memory_disk_find(b.disk, id_of(1), NULL));
    memory_disk_lose(b.disk, 1);
    MUST(memory_disk_find(b.disk, id_of(2), &record) && record.until_ns == 2);
    MUST(memory_disk_find(b.disk, id_of(1), &record) && record.until_ns == 1);
    put_away(&b);
}

static void a_crashed_store_hands_over_at_once(void)
{
    struct bench b = bench();
    due_store *dead = b.store;

    fault(&b, MEMORY_COMMIT, MEMORY_CRASH_AFTER, 0);
    MUST(put(&b, 1, 1) == DUE_EINDOUBT);
    MUST(dead->verbs->ready(dead, crew_now_ns()) == DUE_EAGAIN);
    b.store = memory_store_new(b.disk);
    MUST(open_store(&b, b.store) == 0);
    MUST(memory_disk_jobs(b.disk) == 1);
    MUST(put(&b, 2, 1) == 0);
    MUST(dead->verbs->ready(dead, crew_now_ns()) == DUE_EAGAIN);
    dead->verbs->free(dead);
    MUST(put(&b, 3, 2) == 0);
    memory_disk_fence(b.disk);
    MUST(put(&b, 4, 3) == DUE_EFENCED);
    MUST(b.store->verbs->ready(b.store, SOON) == DUE_EFENCED);
    put_away(&b);
}

struct other {
    struct crew_thread thread;
    struct bench *b;
};

static int put_one(void *arg)
{
    struct other *o = arg;
    due_change c = change(DUE_CHANGE_PUT, 1, 1);

    return o->b->store->verbs->commit(o->b->store, &c, 1, 1, SOON);
}

static void a_limiter_holds_a_call_before_or_after_it_is_done(void)
{
    for (int late = 0; late < 2; late++)
        for (int how = 0; how < 2; how++) {
            struct bench b = bench();
            struct memory_limiter *limiter = memory_limiter_new(b.disk);
            struct other other = { .b = &b };

            memory_store_fault(
                b.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                .kind = late ? MEMORY_BLOCK_AFTER : MEMORY_BLOCK,
                                                .limiter = limiter });
            crew_go(&other.thread, put_one, &other);
            memory_store_until(b.store, MEMORY_COMMIT, 1);
            memory_limiter_reached(limiter, 1);
            MUST(memory_disk_jobs(b.disk) == (size_t)late);
            if (how == 0)
                memory_limiter_open(limiter);
            else
                b.store->verbs->interrupt(b.store);
            int rc = crew_join(&other.thread);
            CREW_CHECK(rc == (how == 0 ? 0
                              : late   ? DUE_EINDOUBT
                                       : DUE_EAGAIN),
                       ": %s", due_error_name(rc));
            MUST(memory_disk_jobs(b.disk) == (how == 0 || late));
            memory_limiter_free(limiter);
            put_away(&b);
        }
}

/* What a queue must not do, and what is said of it. */
static void a_queue_that_is_wrong_is_noticed(void)
{
    for (int kind = 0; kind < 7; kind++) {
        struct bench b = bench();
        due_change c[2] = { change(DUE_CHANGE_PUT, 2, 2), change(DUE_CHANGE_PUT, 2, 2) };
        due_change moved = change(DUE_CHANGE_MOVE, 1, 7);
        due_change absent = change(DUE_CHANGE_DROP, 9, 9);
        uint64_t number = kind == 1 ? 3 : 2;

        MUST(put(&b, 1, 1) == 0);
        if (kind == 2)
            c[0] = moved;
        if (kind == 3)
            c[0] = absent;
        if (kind == 4)
            c[0].record.priority = 4;
        if (kind == 5)
            c[0].record.len = 1;
        if (kind == 6)
            c[0].record.id.byte[15] = 1;
        int rc = b.store->verbs->commit(b.store, c, kind == 0 ? 2 : 1, number, SOON);
        MUST(rc == DUE_EINVAL && memory_disk_wrong(b.disk) != NULL);
        MUST(memory_disk_jobs(b.disk) == 1);
        b.store->verbs->free(b.store);
        memory_disk_free(b.disk);
    }
}

/* The same of dead jobs and of keys. */
static void a_queue_that_is_wrong_about_the_dead_or_keys_is_noticed(void)
{
    static const due_change none;
    static const char too_long[DUE_KEY_MAX + 1] = "key";

    for (int kind = 0; kind < 9; kind++) {
        struct bench b = bench();
        due_change keyed = change(DUE_CHANGE_PUT, 1, 1);
        due_change wrong = change(DUE_CHANGE_MOVE, 1, 1);

        keyed.record.key = "key";
        keyed.record.key_len = 3;
        MUST(b.store->verbs->commit(b.store, &keyed, 1, 1, SOON) == 0);
        wrong.was_ns = 1;
        if (kind == 0)
            wrong.record.cause = DUE_CAUSE_BURIED; /* a MOVE of a dead job */
        if (kind == 1)
            wrong.was_dead = 1; /* it is not */
        if (kind == 2)
            wrong.kind = DUE_CHANGE_BURY; /* for no cause */
        if (kind >= 3 && kind <= 5) {
            wrong = change(DUE_CHANGE_PUT, 2, 2);
            wrong.record.key = too_long; /* or of no length */
            wrong.record.key_len = kind == 3 ? DUE_KEY_MAX + 1 : kind == 4 ? 0 : 3;
        }
        if (kind == 5)
            wrong.record.headers_len = 1; /* where are they? */
        if (kind >= 6) {
            wrong = none;
            wrong.kind = kind == 6 ? DUE_CHANGE_FORGET : DUE_CHANGE_KEEP;
            wrong.record.id = id_of(1);
            wrong.record.key = kind == 7 ? NULL : too_long; /* of a live job, or none */
            wrong.record.key_len = kind == 8 ? DUE_KEY_MAX + 1 : 3;
        }
        int rc = b.store->verbs->commit(b.store, &wrong, 1, 2, SOON);
        MUST(rc == DUE_EINVAL && memory_disk_wrong(b.disk) != NULL);
        MUST(memory_disk_jobs(b.disk) == 1 && memory_disk_keys(b.disk) == 1);
        b.store->verbs->free(b.store);
        memory_disk_free(b.disk);
    }
}

/* A loss takes back burials and keys too. */
static void a_loss_brings_back_the_dead_and_the_keys(void)
{
    struct bench b = bench();
    due_change c = change(DUE_CHANGE_PUT, 1, 1);
    due_record record;
    int64_t until_ns = 0;

    c.record.key = "key";
    c.record.key_len = 3;
    MUST(b.store->verbs->commit(b.store, &c, 1, 1, SOON) == 0);
    c.kind = DUE_CHANGE_BURY;
    c.was_ns = 1;
    c.record.cause = DUE_CAUSE_EXPIRED;
    c.record.died_ns = 9;
    MUST(b.store->verbs->commit(b.store, &c, 1, 2, SOON) == 0);
    MUST(memory_disk_find(b.disk, id_of(1), &record) && record.died_ns == 9);
    c.kind = DUE_CHANGE_DROP;
    c.was_ns = 9;
    c.was_dead = 1;
    c.key_kept_ns = 77;
    MUST(b.store->verbs->commit(b.store, &c, 1, 3, SOON) == 0);
    MUST(memory_disk_key(b.disk, "key", 3, NULL, &until_ns) && until_ns == 77);
    memory_disk_lose(b.disk, 1);
    MUST(memory_disk_key(b.disk, "key", 3, NULL, &until_ns) && until_ns == 0);
    MUST(memory_disk_find(b.disk, id_of(1), &record) && record.cause == DUE_CAUSE_EXPIRED);
    memory_disk_lose(b.disk, 1);
    MUST(memory_disk_find(b.disk, id_of(1), &record) && record.cause == 0 && record.until_ns == 1);
    put_away(&b);
}

/* The same seed, the same faults; and all of them are met in the end. */
static void dice_are_the_same_for_a_seed(void)
{
    uint64_t hashes[2] = { 0, 0 };

    for (int run = 0; run < 2; run++) {
        struct bench b = bench();
        struct memory_dice dice = { .seed = 7 };
        uint64_t number = 1;

        for (int kind = 1; kind < MEMORY_FAULTS; kind++)
            if (kind != MEMORY_CRASH && kind != MEMORY_CRASH_AFTER && kind != MEMORY_FENCE)
                dice.per_mille[kind] = 100;
        memory_store_dice(b.store, &dice);
        for (int i = 0; i < 2000; i++) {
            int rc = put(&b, (unsigned char)(number % 200), number);

            hashes[run] = hashes[run] * 31 + (uint64_t)(int64_t)-rc;
            number += rc == 0;
            if (rc == DUE_EAGAIN)
                (void)b.store->verbs->ready(b.store, SOON);
        }
        MUST(number > 500);
        put_away(&b);
    }
    MUST(hashes[0] == hashes[1]);
}

static void changes_are_written_down(void)
{
    struct bench b = bench();
    struct memory_entry entry;

    MUST(put(&b, 1, 1) == 0 && put(&b, 2, 2) == 0);
    MUST(memory_disk_entry(b.disk, 1, &entry) && !memory_disk_entry(b.disk, 2, &entry));
    MUST(entry.number == 2 && entry.kind == DUE_CHANGE_PUT && entry.writer == b.info.writer);
    MUST(due_id_equal(entry.id, id_of(2)) && entry.until_ns == 2);
    put_away(&b);
}

int main(void)
{
    crew_watchdog("store_memory", 280);
    int failed = suite(0, NULL);
    failed |= suite(DUE_MS(300), "o");
    in_doubt_stays_so_until_it_is_reached();
    a_loss_is_told_only_if_it_had_been_confirmed();
    a_loss_brings_back_what_was();
    a_crashed_store_hands_over_at_once();
    a_limiter_holds_a_call_before_or_after_it_is_done();
    a_queue_that_is_wrong_is_noticed();
    a_queue_that_is_wrong_about_the_dead_or_keys_is_noticed();
    a_loss_brings_back_the_dead_and_the_keys();
    dice_are_the_same_for_a_seed();
    changes_are_written_down();
    printf("store_memory: %s\n", failed ? "failed" : "as it should be");
    return failed;
}
