/* One queue for many processes: its capacity. */
#include "lab/mall.h"

static const due_spec one_more = { DUE_SPEC_INIT, .delay_ns = 5 };

/* Two processes, of which the first says how many jobs the queue has room for, and a third that
 * opens it later. */
static struct mall mall_of(size_t capacity, enum due_confirm confirm)
{
    struct mall m = mall_make(0);

    mall_join(&m, (struct lab_options){ .with.capacity = capacity, .with.confirm = confirm });
    mall_join(&m, (struct lab_options){ .with.confirm = confirm });
    mall_join(&m, (struct lab_options){ .with.confirm = confirm });
    for (size_t i = 0; i < m.n; i++)
        memory_store_until(m.store[i], MEMORY_BEAT, 1); /* the one that follows joining */
    return m;
}

/* A call of process @i waits for room, and the store knows it: none of that process did before. */
static void call_waits(struct mall *m, size_t i, struct crew_call *c, int64_t timeout_ns)
{
    uint64_t beats = memory_store_calls(m->store[i], MEMORY_BEAT);

    crew_call_enqueue(c, m->lab[i].q, one_more, timeout_ns);
    memory_store_until(m->store[i], MEMORY_BEAT, beats + 1);
    crew_call_asleep(c);
}

struct ids {
    due_id id[128];
    size_t n;
};

static int note_id(void *ctx, const due_record *r)
{
    struct ids *ids = ctx;

    ids->id[ids->n++] = r->id;
    return 0;
}

/* The jobs that are there, so many at least, are cancelled; nobody holds any. */
static void empty(struct mall *m, size_t least)
{
    struct ids ids = { .n = 0 };

    memory_disk_each(m->disk, note_id, &ids);
    cr_expect_geq(ids.n, least);
    for (size_t i = 0; i < ids.n; i++)
        cr_expect_eq(due_cancel(m->lab[2].q, ids.id[i], NULL), 0);
}

static void is_full(struct mall *m)
{
    for (size_t i = 0; i < m->n; i++)
        cr_expect_eq(due_enqueue(m->lab[i].q, &one_more, 0, NULL), DUE_EAGAIN, "of %zu", i);
}

MALL_TEST(share_capacity, is_that_of_all_who_share_the_queue)
{
    struct mall m = mall_of(2, DUE_CONFIRM_SYNC);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    due_id id = lab_enqueue(&m.lab[1], "cake", .delay_ns = 100);
    is_full(&m);
    cr_assert_eq(mall_reserve(&m, 1, &job, DUE_S(9)), 0);
    is_full(&m);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_enqueue(m.lab[2].q, &one_more, 0, NULL), 0);
    is_full(&m);
    cr_expect_eq(due_reschedule(m.lab[0].q, id, 50), 0);
    cr_expect_eq(due_promote(m.lab[2].q, id), 0);
    is_full(&m);
    cr_assert_eq(mall_take(&m, 0, &job), 0, "one that was dequeued has left");
    cr_expect_eq(due_enqueue(m.lab[2].q, &one_more, 0, &id), 0);
    is_full(&m);
    due_job_done(&job);
    is_full(&m);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
    cr_expect_eq(due_enqueue(m.lab[0].q, &one_more, 0, NULL), 0);
    mall_close(&m);
}

MALL_TEST(share_capacity, counts_no_dead_job_and_lets_one_that_is_kicked_in)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, DUE_S(9)), 0);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    cr_expect_eq(due_enqueue(m.lab[0].q, &one_more, 0, NULL), 0);
    cr_expect_eq(due_kick(m.lab[0].q, id), 0);
    is_full(&m);
    cr_assert_eq(mall_take(&m, 2, &job), 0);
    due_job_done(&job);
    is_full(&m);
    mall_close(&m);
}

/* Whatever makes room, and whoever does it. */
MALL_TEST(share_capacity, lets_in_who_waits_for_room)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call call;
    due_job job;
    due_id id;

    for (int way = 0; way < 5; way++) {
        id = lab_enqueue(&m.lab[2], "in the way", .delay_ns = way < 3 ? 0 : DUE_S(9));
        call_waits(&m, (size_t)way % 2, &call, DUE_FOREVER);
        if (way < 2) {
            cr_assert_eq(mall_reserve(&m, 2, &job, DUE_S(9)), 0);
            cr_expect_eq(way == 0 ? due_ack(&job) : due_bury(&job, "cold"), 0);
        } else if (way == 2) {
            cr_assert_eq(mall_take(&m, 1, &job), 0);
            due_job_done(&job);
        } else {
            cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
        }
        cr_expect_eq(crew_call_answer(&call), 0, "way %d", way);
        is_full(&m);
        empty(&m, 1);
    }
    mall_close(&m);
}

MALL_TEST(share_capacity, is_not_used_up_by_a_caller_that_timed_out)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call brief;
    struct crew_call patient;
    due_job job;

    lab_enqueue(&m.lab[0], "first", .delay_ns = 0);
    call_waits(&m, 0, &brief, DUE_S(60));
    call_waits(&m, 1, &patient, DUE_FOREVER);
    mall_turn_to(&m, DUE_S(60));
    cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    cr_assert_eq(mall_take(&m, 2, &job), 0);
    due_job_done(&job);
    cr_expect_eq(crew_call_answer(&patient), 0, "the ring was for the first, and is passed on");
    mall_close(&m);
}

/* More than a script rings at a time, and than a tenure does. */
MALL_TEST(share_capacity, lets_as_many_in_as_there_is_room)
{
    enum { CALLERS = 60, ROOM = 50 };
    struct mall m = mall_of(ROOM, DUE_CONFIRM_SYNC);
    struct crew_call call[CALLERS];

    for (int i = 0; i < ROOM; i++)
        lab_enqueue(&m.lab[0], "in the way", .delay_ns = 0);
    for (int i = 0; i < CALLERS; i++) {
        crew_call_enqueue(&call[i], m.lab[i % 3].q, one_more, DUE_FOREVER);
        crew_call_asleep(&call[i]);
    }
    empty(&m, ROOM);
    while (memory_disk_jobs(m.disk) < ROOM)
        crew_sleep(DUE_US(100));
    is_full(&m);
    empty(&m, ROOM);
    for (int i = 0; i < CALLERS; i++)
        cr_expect_eq(crew_call_answer(&call[i]), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), (size_t)CALLERS - ROOM);
    mall_close(&m);
}

MALL_TEST(share_capacity, takes_as_many_of_a_batch_as_there_is_room_for)
{
    struct mall m = mall_of(3, DUE_CONFIRM_SYNC);
    int other = lab_topic(&m.lab[1], "other");
    due_spec specs[8];
    due_id ids[8];
    due_job job;

    for (int i = 0; i < 8; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = 100, .topic = i % 2 ? other : 0 };
    cr_expect_eq(due_enqueue_batch(m.lab[1].q, specs, 8, DUE_S(9), ids), 3, "and does not wait");
    for (int i = 0; i < 3; i++)
        cr_expect(memory_disk_find(m.disk, ids[i], NULL), "the first");
    cr_expect_eq(due_enqueue_batch(m.lab[1].q, specs, 8, 0, ids), DUE_EAGAIN);
    uint64_t beats = memory_store_calls(m.store[0], MEMORY_BEAT);
    struct crew_call call;
    crew_call_enqueue_batch(&call, m.lab[0].q, one_more, DUE_FOREVER);
    memory_store_until(m.store[0], MEMORY_BEAT, beats + 1);
    mall_turn_to(&m, 100);
    cr_assert_eq(mall_take(&m, 2, &job), 0);
    due_job_done(&job);
    cr_expect_eq(crew_call_answer(&call), 1, "for the first of them it does");
    is_full(&m);
    mall_close(&m);
}

/* Of whom the others are to know whether it is in. */
MALL_TEST(share_capacity, is_an_answer_also_where_nothing_is_confirmed)
{
    struct mall m = mall_of(1, DUE_CONFIRM_ASYNC);
    struct crew_call call;

    cr_expect_eq(due_enqueue(m.lab[1].q, &one_more, 0, NULL), 0);
    is_full(&m);
    call_waits(&m, 1, &call, DUE_FOREVER);
    empty(&m, 1);
    cr_expect_eq(crew_call_answer(&call), 0);
    mall_close(&m);
}

MALL_TEST(share_capacity, wakes_who_waits_at_close)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call call;

    lab_enqueue(&m.lab[0], "in the way", .delay_ns = 5);
    call_waits(&m, 1, &call, DUE_FOREVER);
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_S(9)), 0);
    cr_expect_eq(crew_call_answer(&call), DUE_ECLOSED);
    mall_close(&m);
}

MALL_TEST(share_capacity, wakes_who_waits_when_it_is_turned_out)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call call;

    lab_enqueue(&m.lab[0], "in the way", .delay_ns = 0);
    call_waits(&m, 1, &call, DUE_FOREVER);
    memory_store_evict(m.store[1]);
    int rc = due_enqueue(m.lab[1].q, &one_more, 0, NULL);
    cr_expect(rc == DUE_EFENCED || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
    cr_expect_eq(crew_call_answer(&call), DUE_EFENCED);
    mall_close(&m);
}

MALL_TEST(share_capacity, is_kept_by_keys)
{
    struct mall m = mall_of(2, DUE_CONFIRM_SYNC);
    due_extra other = { DUE_EXTRA_INIT, .key = "l", .key_len = 1 };
    due_spec keyed = { DUE_SPEC_INIT, .delay_ns = 5, .more = &other };
    due_job job;
    due_id id;
    due_id again;

    cr_expect_eq(lab_put_as(&m.lab[0], DUE_KEY_REFUSE, "tea", &id, .delay_ns = 50), 0);
    lab_enqueue(&m.lab[0], "in the way", .delay_ns = DUE_S(9));
    is_full(&m);
    cr_expect_eq(lab_put_as(&m.lab[1], DUE_KEY_REFUSE, "milk", &again, .delay_ns = 5), DUE_EEXIST);
    cr_expect_eq(lab_put_as(&m.lab[1], DUE_KEY_REPLACE, "cake", &again, .delay_ns = 5), 0);
    cr_expect(due_id_equal(id, again), "it takes no room besides");
    cr_expect_eq(due_enqueue(m.lab[1].q, &keyed, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_id_of_key(m.lab[1].q, "l", 1, &again), DUE_ENOENT);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_take(&m, 2, &job), 0);
    cr_expect_str_eq(lab_text(&m.lab[2], &job), "cake");
    cr_expect_eq(due_enqueue(m.lab[1].q, &keyed, 0, NULL), 0);
    is_full(&m);
    mall_close(&m);
}

/* The ring goes to a process that is stopped: who rang looks after the grace, and calls another. */
MALL_TEST(share_capacity, is_not_lost_with_a_process_that_was_rung)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call stopped;
    struct crew_call patient;

    lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));
    call_waits(&m, 0, &stopped, DUE_S(1));
    call_waits(&m, 1, &patient, DUE_FOREVER);
    memory_store_swallow(m.store[0], true);
    empty(&m, 1);
    while (memory_store_rings(m.store[0]) == 0)
        crew_sleep(DUE_US(100));
    mall_turn_to(&m, 2 * DUE_RING_NS);
    cr_expect_eq(crew_call_answer(&patient), 0);
    mall_turn_to(&m, DUE_S(2));
    cr_expect_eq(crew_call_answer(&stopped), DUE_ETIMEDOUT);
    mall_close(&m);
}

/* A process that makes room is the first in line, and is stopped: no grace has to pass. */
MALL_TEST(share_capacity, is_not_lost_with_a_process_that_rang_itself)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call stopped;
    struct crew_call patient;

    due_id id = lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));
    call_waits(&m, 0, &stopped, DUE_S(1));
    call_waits(&m, 1, &patient, DUE_FOREVER);
    memory_store_swallow(m.store[0], true);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    cr_expect_eq(crew_call_answer(&patient), 0);
    mall_turn_to(&m, DUE_S(1));
    cr_expect_eq(crew_call_answer(&stopped), DUE_ETIMEDOUT);
    mall_close(&m);
}

/* Each is late, and the other was rung since: the first that comes gets in. */
MALL_TEST(share_capacity, is_had_by_who_comes_late)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call late;
    struct crew_call stopped;

    lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));
    call_waits(&m, 0, &late, DUE_FOREVER);
    call_waits(&m, 1, &stopped, DUE_S(1));
    memory_store_swallow(m.store[1], true);
    memory_store_fault(
        m.store[0], (struct memory_fault){
                        .verb = MEMORY_BEAT, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    empty(&m, 1);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, 2 * DUE_RING_NS);
    while (memory_store_rings(m.store[1]) == 0)
        crew_sleep(DUE_US(100));
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&late), 0);
    mall_turn_to(&m, DUE_S(1));
    cr_expect_eq(crew_call_answer(&stopped), DUE_ETIMEDOUT);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* Who was called does not get in, since its key is another's by then: the next has the room. */
MALL_TEST(share_capacity, that_is_left_goes_to_another_process)
{
    struct mall m = mall_of(2, DUE_CONFIRM_SYNC);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    due_extra key = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };
    due_spec keyed = { DUE_SPEC_INIT, .delay_ns = 5, .more = &key };
    struct crew_call called;
    struct crew_call patient;
    uint64_t beats = memory_store_calls(m.store[0], MEMORY_BEAT);
    due_id id[2];

    for (int i = 0; i < 2; i++)
        id[i] = lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));
    crew_call_enqueue(&called, m.lab[0].q, keyed, DUE_FOREVER);
    memory_store_until(m.store[0], MEMORY_BEAT, beats + 1);
    crew_call_asleep(&called);
    call_waits(&m, 1, &patient, DUE_FOREVER);
    memory_store_fault(
        m.store[0], (struct memory_fault){
                        .verb = MEMORY_BEAT, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    cr_expect_eq(due_cancel(m.lab[2].q, id[0], NULL), 0);
    memory_limiter_reached(gate, 1);
    cr_expect_eq(lab_put_as(&m.lab[2], DUE_KEY_REFUSE, "milk", NULL, .delay_ns = DUE_S(9)), 0,
                 "faster than who was rung");
    cr_expect_eq(due_cancel(m.lab[2].q, id[1], NULL), 0);
    cr_expect_eq(memory_store_rings(m.store[1]), 0u, "one will come for it");
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&called), DUE_EEXIST);
    cr_expect_eq(crew_call_answer(&patient), 0);
    is_full(&m);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* One waits in process @i, and is called for the room that @id makes; it puts when the gate opens,
 * and another is faster. */
static void call_and_rob(struct mall *m, size_t i, due_id id, due_id *robber,
                         struct memory_limiter *gate)
{
    memory_store_fault(m->store[i], (struct memory_fault){ .verb = MEMORY_BEAT,
                                                           .times = 1,
                                                           .kind = MEMORY_BLOCK_AFTER,
                                                           .limiter = gate });
    cr_expect_eq(due_cancel(m->lab[2].q, id, NULL), 0);
    memory_limiter_reached(gate, 1);
    cr_expect_eq(due_enqueue(m->lab[2].q, &one_more, 0, robber), 0);
    memory_limiter_open(gate);
}

/* One who was called, and robbed, is called first once more; its process has asked once. */
MALL_TEST(share_capacity, keeps_the_place_of_who_was_too_late)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call first;
    struct crew_call second;
    due_id id = lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));

    call_waits(&m, 0, &first, DUE_FOREVER);
    crew_call_enqueue(&second, m.lab[0].q, one_more, DUE_FOREVER);
    crew_call_asleep(&second);
    for (int i = 0; i < 5; i++) {
        uint64_t beats = memory_store_calls(m.store[0], MEMORY_BEAT);
        struct memory_limiter *gate = memory_limiter_new(m.disk);

        call_and_rob(&m, 0, id, &id, gate);
        memory_store_until(m.store[0], MEMORY_BEAT, beats + 2);
        crew_call_asleep(&first);
        crew_call_asleep(&second);
        cr_expect_eq(memory_store_calls(m.store[0], MEMORY_BEAT), beats + 2, "%d", i);
        memory_limiter_free(gate);
    }
    cr_expect_eq(due_cancel(m.lab[2].q, id, NULL), 0);
    cr_expect_eq(crew_call_answer(&first), 0);
    crew_call_asleep(&second);
    empty(&m, 1);
    cr_expect_eq(crew_call_answer(&second), 0);
    mall_close(&m);
}

/* One who is robbed and stands in the line alone is asked for once each time. */
MALL_TEST(share_capacity, is_asked_for_once_by_who_was_too_late)
{
    enum { ROUNDS = 100 };
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call call;
    due_id id = lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));

    call_waits(&m, 0, &call, DUE_FOREVER);
    uint64_t beats = memory_store_calls(m.store[0], MEMORY_BEAT);
    for (int i = 0; i < ROUNDS; i++) {
        struct memory_limiter *gate = memory_limiter_new(m.disk);

        call_and_rob(&m, 0, id, &id, gate);
        memory_store_until(m.store[0], MEMORY_BEAT, beats + 2 * (uint64_t)i + 2);
        crew_call_asleep(&call);
        memory_limiter_free(gate);
    }
    cr_expect_leq(memory_store_calls(m.store[0], MEMORY_BEAT), beats + 2 * ROUNDS + 2,
                  "and lives, perhaps");
    empty(&m, 1);
    cr_expect_eq(crew_call_answer(&call), 0);
    mall_close(&m);
}

/* It was told of room when its caller had gone: another process has it, and not after the grace. */
MALL_TEST(share_capacity, that_nobody_comes_for_goes_to_another_process)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call brief;
    struct crew_call patient;
    due_id id = lab_enqueue(&m.lab[2], "in the way", .delay_ns = DUE_S(9));

    call_waits(&m, 0, &brief, DUE_RING_NS / 4);
    call_waits(&m, 1, &patient, DUE_FOREVER);
    memory_store_fault(m.store[0], (struct memory_fault){ .verb = MEMORY_BEAT,
                                                          .times = 1,
                                                          .kind = MEMORY_BLOCK_AFTER,
                                                          .limiter = gate });
    cr_expect_eq(due_cancel(m.lab[2].q, id, NULL), 0);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, DUE_RING_NS / 4);
    cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&patient), 0);
    memory_limiter_free(gate);
    mall_close(&m);
}

static void comes(struct crew_call *taker)
{
    cr_assert_eq(crew_call_answer(taker), 0);
    due_job_done(&taker->job);
}

/* One who waits is rung, and comes.  False: he was away for too long, and the job went to the next
 * in the line; by then both have come. */
static bool ring_and_come(struct mall *m, struct crew_call *taker, struct crew_call *next)
{
    lab_enqueue(&m->lab[0], "tea", .delay_ns = 0);
    while (!atomic_load(&taker->thread.back) && !(next != NULL && atomic_load(&next->thread.back)))
        crew_sleep(DUE_US(100));
    bool first = atomic_load(&taker->thread.back);
    if (!first) {
        lab_enqueue(&m->lab[0], "tea", .delay_ns = 0);
        comes(next);
    }
    comes(taker);
    return first;
}

/* Two rings, and the look for the first one comes too early for the second: it is looked for, too.
 * False: the first look came before the second ring, or after the time for both. */
static bool looks_twice(struct mall *m)
{
    struct crew_call taker[2];

    for (size_t i = 0; i < 2; i++) {
        crew_call_dequeue(&taker[i], m->lab[1 + i].q, DUE_FOREVER);
        crew_call_asleep(&taker[i]);
    }
    crew_sleep(2 * DUE_RING_NS); /* what was rung before has been looked for */
    uint64_t beats = memory_store_calls(m->store[0], MEMORY_BEAT);
    if (!ring_and_come(m, &taker[0], &taker[1]))
        return false;
    crew_sleep(DUE_RING_NS / 2);
    (void)ring_and_come(m, &taker[1], NULL);
    bool before = memory_store_calls(m->store[0], MEMORY_BEAT) == beats;
    for (int i = 0; i < 10 && memory_store_calls(m->store[0], MEMORY_BEAT) < beats + 2; i++)
        crew_sleep(DUE_RING_NS / 2);
    return before && memory_store_calls(m->store[0], MEMORY_BEAT) >= beats + 2;
}

MALL_TEST(share_capacity, is_looked_after_once_more_if_another_was_rung_meanwhile)
{
    struct mall m = mall_of(DUE_JOBS_MAX, DUE_CONFIRM_SYNC);
    int tries = 0;

    while (!looks_twice(&m) && tries < 40)
        tries++;
    cr_expect_lt(tries, 40, "the second ring is not looked after");
    mall_close(&m);
}

/* Refused, and before the store hears that somebody waits the queue has no capacity any more. */
MALL_TEST(share_capacity, of_none_any_more_is_for_who_was_refused_before)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call call;

    lab_enqueue(&m.lab[0], "in the way", .delay_ns = DUE_S(9));
    memory_store_fault(
        m.store[0], (struct memory_fault){
                        .verb = MEMORY_BEAT, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    crew_call_enqueue(&call, m.lab[0].q, one_more, DUE_FOREVER);
    memory_limiter_reached(gate, 1);
    mall_join(&m, (struct lab_options){ .with.capacity = DUE_JOBS_MAX });
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&call), 0);
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_capacity, is_of_who_opened_the_queue_with_one_last)
{
    struct mall m = mall_of(1, DUE_CONFIRM_SYNC);
    struct crew_call call;

    lab_enqueue(&m.lab[0], "in the way", .delay_ns = DUE_S(9));
    call_waits(&m, 0, &call, DUE_FOREVER);
    mall_join(&m, (struct lab_options){ .with.capacity = DUE_JOBS_MAX });
    cr_expect_eq(crew_call_answer(&call), 0, "it has none any more");
    for (int i = 0; i < 20; i++)
        lab_enqueue(&m.lab[1], "more", .delay_ns = DUE_S(9));
    cr_expect_eq(memory_disk_jobs(m.disk), 22u);
    mall_close(&m);
}

/* It was taken, and the answer comes when whoever took it has gone: it is put in again, whoever has
 * its room meanwhile.  False: a claim came before the take, or the answer. */
static bool comes_back(void)
{
    struct mall m = mall_make(0);
    mall_join(&m, (struct lab_options){ .with.capacity = 1 });
    size_t takes = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(100) });
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call taking;
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(due_dequeue(m.lab[takes].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[takes]).ready == 0) /* it is claimed, and what follows is the take */
        crew_sleep(DUE_US(100));
    memory_store_fault(m.store[takes], (struct memory_fault){ .verb = MEMORY_WORK,
                                                              .times = MEMORY_ALWAYS,
                                                              .kind = MEMORY_BLOCK_AFTER,
                                                              .limiter = gate });
    crew_call_dequeue(&taking, m.lab[takes].q, 10);
    memory_limiter_reached(gate, 1);
    bool took = memory_disk_jobs(m.disk) == 0;
    if (took)
        cr_expect_eq(due_enqueue(m.lab[0].q, &one_more, 0, NULL), 0, "there is room");
    if (!took)
        memory_limiter_open(gate);
    mall_turn_to(&m, 10);
    int rc = crew_call_answer(&taking); /* when its time is up */
    if (rc == 0)
        due_job_done(&taking.job);
    if (took)
        memory_limiter_open(gate);
    took = took && rc != 0;
    while (took && memory_disk_jobs(m.disk) < 2)
        crew_sleep(DUE_US(100));
    memory_limiter_free(gate);
    mall_close(&m);
    return took;
}

Test(share_capacity, a_job_that_was_taken_for_nobody_comes_back_into_a_full_queue, .timeout = 60)
{
    for (lab_proxies = 0; lab_proxies < 2; lab_proxies++) {
        int tries = 0;

        while (!comes_back() && tries < 100)
            tries++;
        cr_expect_lt(tries, 100, "it was never taken");
    }
    lab_proxies = -1;
}
