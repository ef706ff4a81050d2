/* The event hook: every step of every job, in order. */
#include <semaphore.h>
#include <stdio.h>

#include "due/metrics.h"
#include "due/workers.h"
#include "lab/lab.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define EVENTS 256
#define LEASE  100

struct told {
    pthread_mutex_t lock;
    due_event event[EVENTS];
    size_t count;
    due_queue *q;
    sem_t limiter;              /* READY of this topic waits here */
    atomic_int gated_topic;     /* 0: none */
    atomic_bool at_the_limiter; /* */
};

static struct told told;

static void hook(void *ctx, const due_event *event)
{
    struct told *t = ctx;

    if (event->topic != 0 && event->topic == atomic_load(&t->gated_topic) &&
        event->kind == DUE_EVENT_READY) {
        atomic_store(&t->at_the_limiter, true);
        sem_wait(&t->limiter);
    }
    pthread_mutex_lock(&t->lock);
    if (t->count < EVENTS)
        t->event[t->count++] = *event;
    pthread_mutex_unlock(&t->lock);
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

#define LISTEN .with.on_event = hook, .with.on_discard = no_discard, .with.ctx = &told

static void told_reset(void)
{
    told = (struct told){ .lock = PTHREAD_MUTEX_INITIALIZER };
    sem_init(&told.limiter, 0, 0);
}

/* What was told of a job, as words.  With the proxies a step may be told a little later. */
static const char *life_of(due_id id)
{
    static char words[512];

    words[0] = '\0';
    pthread_mutex_lock(&told.lock);
    for (size_t i = 0; i < told.count; i++) {
        size_t n = strlen(words);

        if (due_id_equal(told.event[i].id, id))
            snprintf(words + n, sizeof words - n, "%s%s", n > 0 ? " " : "",
                     due_event_name(told.event[i].kind));
        cr_expect((told.event[i].cause != 0) == (told.event[i].kind == DUE_EVENT_DEAD), "why");
    }
    pthread_mutex_unlock(&told.lock);
    return words;
}

/* The last thing told of a job. */
static due_event last_of(due_id id)
{
    due_event last = { 0 };

    pthread_mutex_lock(&told.lock);
    for (size_t i = 0; i < told.count; i++) {
        if (due_id_equal(told.event[i].id, id))
            last = told.event[i];
    }
    pthread_mutex_unlock(&told.lock);
    return last;
}

/* In the mode ALWAYS a proxy may be about to tell. */
static void expect_life(due_id id, const char *life)
{
    for (int i = 0; i < 1000 && strlen(life_of(id)) < strlen(life); i++)
        crew_sleep(DUE_MS(1));
    cr_expect_str_eq(life_of(id), life);
}

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, DUE_S(20)), 0);
    return job;
}

LAB_TEST(events, of_a_job_that_is_taken)
{
    told_reset();
    struct lab lab = lab_open(LISTEN);
    int mail = due_topic(lab.q, "mail");
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .topic = mail, .priority = 7);

    expect_life(id, "produced");
    due_event e = last_of(id);
    cr_expect_eq(e.topic, mail);
    cr_expect_eq(e.priority, 7);
    cr_expect_eq(e.deadline_ns, 10);
    cr_expect_eq(e.at_ns, 0);
    lab_turn_to(&lab, 15);
    due_poll(lab.q, NULL);
    expect_life(id, "produced ready");
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    expect_life(id, "produced ready delivered");
    cr_expect_eq(last_of(id).at_ns, 15);
    cr_expect_eq(last_of(id).attempts, 0u);
    lab_close(&lab);
    expect_life(id, "produced ready delivered");
}

/* A job that is due when it is enqueued, taken by whatever way. */
LAB_TEST(events, say_ready_before_delivered_also_when_it_is_at_once)
{
    told_reset();
    struct lab lab = lab_open(LISTEN);
    due_spec specs[3] = { { DUE_SPEC_INIT }, { DUE_SPEC_INIT }, { DUE_SPEC_INIT } };
    due_id id[4];
    due_job jobs[4];

    id[0] = lab_enqueue(&lab, "a", .delay_ns = 0);
    cr_assert_eq(due_enqueue_batch(lab.q, specs, 3, 0, id + 1), 3);
    cr_assert_eq(take_some(lab.q, NULL, 0, jobs, 4, 0), 4);
    for (int i = 0; i < 4; i++) {
        expect_life(id[i], "produced ready delivered");
        due_job_done(&jobs[i]);
    }
    lab_close(&lab);
}

LAB_TEST(events, of_jobs_that_are_answered_for)
{
    told_reset();
    struct lab lab = lab_open(
        LISTEN, .with.retry = { .kind = DUE_RETRY_FIXED, .delay_ns = 50, .attempts_max = 2 });
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    expect_life(id, "produced ready delivered");
    cr_expect_eq(last_of(id).attempts, 1u);
    cr_expect_eq(last_of(id).leased, 1);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    expect_life(id, "produced ready delivered retried");
    cr_expect_eq(last_of(id).deadline_ns, 10);

    lab_advance(&lab, 50);
    job = reserve(&lab);
    cr_expect_eq(last_of(id).attempts, 2u);
    cr_expect_eq(last_of(id).failures, 1u);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    expect_life(id, "produced ready delivered retried ready delivered dead");
    cr_expect_eq(last_of(id).cause, DUE_CAUSE_ATTEMPTS);

    told.count = 0;
    cr_expect_eq(due_kick(lab.q, id), 0);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    expect_life(id, "kicked ready delivered acked");
    cr_expect_eq(last_of(id).attempts, 1u);
    lab_close(&lab);
}

LAB_TEST(events, of_a_lease_that_ends)
{
    told_reset();
    struct lab lab = lab_open(LISTEN, .with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 });
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    due_job first = reserve(&lab);
    lab_advance(&lab, LEASE);
    due_job second = reserve(&lab);
    expect_life(id, "produced ready delivered retried ready delivered");
    lab_advance(&lab, LEASE);
    due_poll(lab.q, NULL);
    expect_life(id, "produced ready delivered retried ready delivered dead");
    cr_expect_eq(last_of(id).cause, DUE_CAUSE_ATTEMPTS);
    due_job_done(&first);
    due_job_done(&second);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    expect_life(id, "produced ready delivered retried ready delivered dead cancelled");
    lab_close(&lab);
}

LAB_TEST(events, of_jobs_that_are_not_handed_out)
{
    told_reset();
    struct lab lab = lab_open(LISTEN);
    due_id buried = lab_enqueue(&lab, "buried", .delay_ns = 0);
    due_job job = reserve(&lab);
    due_id expired = lab_enqueue(&lab, "expired", .at_ns = 10, .more = EXTRA(.ttl_ns = 5));
    due_id cancelled = lab_enqueue(&lab, "cancelled", .at_ns = 1000);
    due_id taken_back = lab_enqueue(&lab, "taken back", .at_ns = 1000);
    due_id marked = lab_enqueue(&lab, "marked", .delay_ns = 0);
    due_id left = lab_enqueue(&lab, "left", .at_ns = 1000);

    cr_expect_eq(due_bury(&job, "no"), 0);
    expect_life(buried, "produced ready delivered dead");
    cr_expect_eq(last_of(buried).cause, DUE_CAUSE_BURIED);
    job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, marked, NULL), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 0), 0);
    expect_life(marked, "produced ready delivered cancelled");
    cr_expect_eq(due_cancel(lab.q, cancelled, NULL), 0);
    expect_life(cancelled, "produced cancelled");
    cr_expect_eq(due_cancel(lab.q, taken_back, &job), 0);
    expect_life(taken_back, "produced cancelled");
    due_job_done(&job);
    lab_turn_to(&lab, 20);
    cr_expect_null(lab_dequeue(&lab));
    expect_life(expired, "produced ready dead");
    cr_expect_eq(last_of(expired).cause, DUE_CAUSE_EXPIRED);
    cr_expect_eq(due_clear_dead(lab.q, DUE_ALL_TOPICS, NULL), 0);
    expect_life(expired, "produced ready dead discarded");
    lab_close(&lab);
    expect_life(left, "produced discarded");
}

LAB_TEST(events, tell_of_a_job_that_is_moved_each_time_it_is_ready)
{
    told_reset();
    struct lab lab = lab_open(LISTEN);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    lab_turn_to(&lab, 10);
    due_poll(lab.q, NULL);
    cr_expect_eq(due_reschedule(lab.q, id, 30), 0);
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    expect_life(id, "produced ready ready delivered");
    lab_close(&lab);
}

/* A hook that does not come back holds up nobody but who tells, and whose turn it is to tell of the
 * same job. */
Test(events, hold_no_lock_that_others_need, .timeout = 30)
{
    told_reset();
    struct lab lab = lab_open(LISTEN, .start_ns = 1000);
    int slow = due_topic(lab.q, "slow");
    struct crew_call stuck;

    atomic_store(&told.gated_topic, slow);
    crew_call_enqueue(&stuck, lab.q, (due_spec){ DUE_SPEC_INIT, .topic = slow }, 0);
    while (!atomic_load(&told.at_the_limiter))
        crew_sleep(DUE_US(100));
    for (int i = 0; i < 30; i++) {
        due_id id = lab_enqueue(&lab, "quick", .delay_ns = 0);

        cr_expect_str_eq(lab_dequeue_from(&lab, 0), "quick");
        cr_expect_str_eq(life_of(id), "produced ready delivered");
        id = lab_enqueue(&lab, "later", .at_ns = 2000);
        cr_expect_eq(due_reschedule(lab.q, id, 3000), 0);
        cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
        cr_expect_eq(lab_stats(&lab).ready, 1u);
    }
    sem_post(&told.limiter);
    cr_expect_eq(crew_call_answer(&stuck), 0);
    atomic_store(&told.gated_topic, 0);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    lab_close(&lab);
}

/* What cannot be told of later is refused now. */
Test(events, an_enqueue_without_memory_is_refused_and_not_told)
{
    told_reset();
    struct lab lab = lab_open(LISTEN);
    size_t failed = 0;

    for (;; failed++) {
        due_id id;

        flaky_fail_in(&lab.state->memory, failed);
        int rc = due_enqueue(lab.q, &(due_spec){ DUE_SPEC_INIT }, 0, &id);
        if (rc == 0)
            break;
        cr_assert_eq(rc, DUE_ENOMEM);
        cr_assert_eq(told.count, 0u);
    }
    lab.state->memory.fail_at = FLAKY_NEVER;
    cr_expect_gt(failed, 2u, "the notes' memory is asked for once, besides two for places");
    cr_expect_eq(told.count, 1u);
    lab_close(&lab);
}

/* ---- With a store ---- */

static struct lab open_stored(struct memory_disk *disk, due_store **store)
{
    *store = memory_store_new(disk);
    struct lab lab = lab_open(LISTEN, .with.store = *store, .with.metrics = 1,
                              .with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 });

    while (lab_stats(&lab).loading)
        crew_sleep(DUE_MS(1));
    return lab;
}

static void expect_sum(struct lab *lab)
{
    struct due_topic_stats s;

    cr_assert_eq(due_topic_stats_read(lab->q, 0, &s), 0);
    cr_expect_eq(s.enqueued + s.restored, s.delayed + s.ready + s.leased + s.dead + s.dequeued +
                                              s.acked + s.cancelled + s.discarded + s.kept);
    struct due_stats all = lab_stats(lab);
    cr_expect_eq(s.ready, all.ready);
    cr_expect_eq(s.leased, all.leased);
    cr_expect_eq(s.dead, all.dead);
    cr_expect_eq(s.acked, all.acked);
    cr_expect_eq(s.kept, all.kept);
}

Test(events, of_stored_jobs_come_when_the_store_has_confirmed_them, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store;
    due_job job;

    told_reset();
    struct lab lab = open_stored(disk, &store);
    due_id kept = lab_enqueue(&lab, "kept", .at_ns = 1000);
    due_id acked = lab_enqueue(&lab, "acked", .delay_ns = 0);
    expect_life(acked, "produced ready");
    job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    expect_life(acked, "produced ready delivered retried ready delivered acked");

    expect_sum(&lab);
    due_id refused;
    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                     .kind = MEMORY_ANSWER,
                                                     .answer = DUE_ENOSPC });
    cr_expect_eq(due_enqueue(lab.q, &(due_spec){ DUE_SPEC_INIT }, 0, &refused), DUE_ENOSPC);
    cr_expect_str_eq(life_of(refused), "");
    expect_sum(&lab);
    lab_close(&lab);
    expect_life(kept, "produced kept");

    told_reset();
    lab = open_stored(disk, &store);
    expect_life(kept, "restored");
    expect_sum(&lab);
    cr_expect_eq(due_cancel(lab.q, kept, NULL), 0);
    expect_life(kept, "restored cancelled");
    expect_sum(&lab);
    lab_close(&lab);
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
}

Test(events, of_changes_nobody_waits_for_come_when_they_have_landed, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_job job;

    told_reset();
    struct lab lab =
        lab_open(LISTEN, .with.store = store, .with.metrics = 1, .with.confirm = DUE_CONFIRM_ASYNC);
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_expect_eq(due_flush(lab.q, DUE_S(10)), 0);
    expect_life(id, "produced ready");
    job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_flush(lab.q, DUE_S(10)), 0);
    expect_life(id, "produced ready delivered retried ready");
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_flush(lab.q, DUE_S(10)), 0);
    expect_life(id, "produced ready delivered retried ready cancelled");
    expect_sum(&lab);

    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                     .kind = MEMORY_ANSWER,
                                                     .answer = DUE_ENOSPC });
    id = lab_enqueue(&lab, "refused", .delay_ns = 0);
    cr_expect_eq(due_flush(lab.q, DUE_S(10)), 0);
    expect_life(id, "discarded");
    expect_sum(&lab);
    lab_close(&lab);
    memory_disk_free(disk);
}

Test(events, have_names)
{
    cr_expect_str_eq(due_event_name(DUE_EVENT_PRODUCED), "produced");
    cr_expect_str_eq(due_event_name(DUE_EVENT_KICKED), "kicked");
    cr_expect_str_eq(due_event_name((enum due_event_kind)0), "unknown");
    cr_expect_str_eq(due_event_name((enum due_event_kind)99), "unknown");
}

LAB_TEST(events, of_a_job_that_comes_again)
{
    told_reset();
    struct lab lab = lab_open(LISTEN, .with.metrics = 1);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));

    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    expect_life(id, "produced ready delivered repeated");
    expect_sum(&lab);
    lab_turn_to(&lab, 110);
    due_job job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    expect_life(id, "produced ready delivered repeated ready delivered repeated");
    expect_sum(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    expect_sum(&lab);
    lab_close(&lab);
}

Test(events, of_stored_jobs_that_die_come_back_and_repeat, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store;

    told_reset();
    struct lab lab = open_stored(disk, &store);
    due_id dead = lab_enqueue(&lab, "dead", .delay_ns = 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_bury(&job, "no"), 0);
    expect_life(dead, "produced ready delivered dead");
    expect_sum(&lab);
    due_id kicked = lab_enqueue(&lab, "kicked", .delay_ns = 0);
    job = reserve(&lab);
    cr_expect_eq(due_bury(&job, NULL), 0);
    cr_expect_eq(due_kick(lab.q, kicked), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "kicked");
    expect_life(kicked, "produced ready delivered dead kicked ready delivered");
    expect_sum(&lab);
    due_id round = lab_enqueue(&lab, "round", .delay_ns = 0, .more = EXTRA(.every_ns = 100));
    cr_expect_str_eq(lab_dequeue(&lab), "round");
    expect_life(round, "produced ready delivered repeated");
    expect_sum(&lab);
    lab_advance(&lab, 100);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    expect_life(round, "produced ready delivered repeated ready delivered repeated");
    expect_sum(&lab);
    cr_expect_eq(due_cancel(lab.q, round, NULL), 0);
    lab_close(&lab);
    expect_life(dead, "produced ready delivered dead kept");

    told_reset();
    lab = open_stored(disk, &store);
    expect_life(dead, "restored");
    expect_sum(&lab);
    cr_expect_eq(due_kick(lab.q, dead), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "dead");
    expect_life(dead, "restored kicked ready delivered");
    expect_sum(&lab);
    lab_close(&lab);
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
}

/* Dead, it is brought back by an enqueue under its key. */
static void expect_revived(struct lab *lab)
{
    for (int policy = DUE_KEY_REPLACE; policy <= DUE_KEY_DEBOUNCE; policy++) {
        due_id id;

        cr_assert_eq(lab_put_as(lab, DUE_KEY_REFUSE, "tea", &id, .delay_ns = 0), 0);
        due_job job = reserve(lab);
        cr_expect_eq(due_bury(&job, "no"), 0);
        expect_life(id, "produced ready delivered dead");
        cr_expect_eq(lab_put_as(lab, (enum due_key_policy)policy, "jam", NULL, .delay_ns = 0), 0);
        job = reserve(lab);
        cr_expect(due_id_equal(job.id, id));
        cr_expect_eq(due_ack(&job), 0);
        expect_life(id, "produced ready delivered dead kicked ready delivered acked");
        expect_sum(lab);
    }
}

LAB_TEST(events, of_a_dead_job_that_an_enqueue_with_its_key_brings_back)
{
    told_reset();
    struct lab lab = lab_open(LISTEN, .with.metrics = 1);

    expect_revived(&lab);
    lab_close(&lab);
}

Test(events, of_a_dead_stored_job_that_an_enqueue_with_its_key_brings_back, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store;

    told_reset();
    struct lab lab = open_stored(disk, &store);
    expect_revived(&lab);
    lab_close(&lab);
    memory_disk_free(disk);
}

/* A job that its group holds back is ready, and counted so. */
LAB_TEST(events, of_jobs_of_a_group)
{
    told_reset();
    struct lab lab = lab_open(LISTEN, .with.metrics = 1);
    due_id first =
        lab_enqueue(&lab, "first", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    due_id second =
        lab_enqueue(&lab, "second", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));

    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    cr_expect_null(lab_dequeue(&lab));
    expect_life(first, "produced ready delivered");
    expect_life(second, "produced ready");
    expect_sum(&lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "second");
    expect_life(first, "produced ready delivered acked");
    expect_life(second, "produced ready delivered");
    expect_sum(&lab);
    lab_close(&lab);
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    *answer = job->attempts == 1 ? due_answer_nack(DUE_DELAY_POLICY) : due_answer_ack();
}

/* A pool promises leases without beginning them; of a queue that is watched it begins each. */
/* It failed once and was acked then.  A pool gives back what nobody has begun for a while, so it
 * may have been ready and delivered more often. */
static void expect_life_in_a_pool(due_id id)
{
    const char *begin = "produced ready delivered";
    const char *end = " delivered acked";
    const char *life = life_of(id);
    const char *retried = strstr(life, " retried ready delivered");

    cr_expect(strncmp(life, begin, strlen(begin)) == 0, "%s", life);
    cr_expect(strlen(life) > strlen(end) && strcmp(life + strlen(life) - strlen(end), end) == 0,
              "%s", life);
    cr_expect(retried != NULL && strstr(retried + 1, "retried") == retried + 1 &&
                  strstr(retried + 2, "retried") == NULL,
              "%s", life);
}

Test(events, of_jobs_of_a_pool, .timeout = 60)
{
    enum { JOBS = 20 };
    struct lab lab = { 0 };
    due_workers *pool;
    due_id id[JOBS];

    told_reset();
    lab = lab_open(LISTEN, .kernel = true, .with.metrics = 1);
    cr_assert_eq(due_workers_start(&pool, lab.q, NULL, 0, 2, handle, NULL, NULL), 0);
    for (int i = 0; i < JOBS; i++)
        id[i] = lab_enqueue(&lab, "job", .delay_ns = 0);
    for (int i = 0; i < 10000 && lab_stats(&lab).acked < JOBS; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_workers_stop(pool, DUE_S(10)), 0);
    for (int i = 0; i < JOBS; i++)
        expect_life_in_a_pool(id[i]);
    expect_sum(&lab);
    cr_expect_eq(due_workers_free(pool), 0);
    lab_close(&lab);
}
