/* What holds back topics, as a store shows it: at the opening, and once more after a loss. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lab/memory_disk.h"
#include "lab/shop.h"
#include "lab/take.h"
#include "queue/queue.h"
#include "store/sender.h"

#define WAIT_NS DUE_S(30)

static const struct due_store_verbs *own;
static due_store_visit_topic *show_to;
static void *show_ctx;
static int (*shows)(void);       /* what the store shows; NULL: what it has */
static int (*shows_later)(void); /* the same, from the second look on */
static unsigned looks;
static unsigned told; /* topics that the store was told of, since the last opening */

static int show(const char *topic, int paused, int64_t held_max)
{
    return show_to(show_ctx, topic, paused, held_max);
}

static int topics(due_store *store, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    int (*it)(void) = looks++ == 0 ? shows : shows_later;

    show_to = visit;
    show_ctx = ctx;
    return it != NULL ? it() : own->topics(store, visit, ctx, until_ns);
}

static int commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                  int64_t until_ns)
{
    for (size_t i = 0; i < n; i++)
        told += changes[i].kind == DUE_CHANGE_TOPIC;
    return own->commit(store, changes, n, number, until_ns);
}

/* A store on the disk that shows so at first, and so later. */
static due_store *store_that(struct memory_disk *disk, struct due_store_verbs *verbs,
                             int (*first)(void), int (*later)(void))
{
    due_store *store = memory_store_new(disk);

    own = store->verbs;
    *verbs = *own;
    verbs->topics = topics;
    verbs->commit = commit;
    store->verbs = verbs;
    shows = first;
    shows_later = later;
    looks = told = 0;
    return store;
}

static void shop_on(struct shop *s, struct due_store_verbs *verbs, int (*first)(void),
                    int (*later)(void))
{
    s->store = store_that(s->disk, verbs, first, later);
    s->lab = lab_open(.start_ns = 5, .with.store = s->store);
    shop_wait_loaded(s);
}

static bool is_paused(struct shop *s, const char *topic)
{
    return memory_disk_setting(s->disk, topic, NULL);
}

static int mended(struct shop *s)
{
    return due__commit_mended(s->lab.q, due__monotonic_now() + WAIT_NS);
}

static due_job take_of(struct shop *s, int topic)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased_from(s->lab.q, &topic, 1, &job, DUE_S(600), WAIT_NS), 0);
    return job;
}

/* ---- At the opening -------------------------------------------------------------------------- */

static int no_number(void)
{
    int rc = show("mail", 1, -1);

    return rc != 0 ? rc : show("post", 0, INT64_MAX);
}

/* Of a limit that is none, or as high as can be told, any number may run. */
Test(settings_shown, a_limit_that_is_no_number_of_jobs_is_none, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    const char *const names[] = { "mail", "post" };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, no_number, NULL);
    cr_expect(due__topic_at(s.lab.q, (uint32_t)lab_topic(&s.lab, "mail"))->paused);
    cr_expect_eq(due_resume(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    for (int i = 0; i < 2; i++) {
        int topic = lab_topic(&s.lab, names[i]);
        due_job jobs[3];

        for (int k = 0; k < 3; k++)
            lab_enqueue(&s.lab, names[i], .at_ns = 5, .topic = topic);
        for (int k = 0; k < 3; k++)
            jobs[k] = take_of(&s, topic);
        for (int k = 0; k < 3; k++)
            cr_expect_eq(due_ack(&jobs[k]), 0);
    }
    shop_close(&s);
}

static int known; /* so many topics, none of which is held back */
static int held;  /* and so many more, which are */

static int many(void)
{
    char name[16];
    int rc = 0;

    for (int i = 0; i < known + held && rc == 0; i++) {
        snprintf(name, sizeof name, "t%d", i);
        rc = show(name, i >= known, 0);
    }
    return rc;
}

/* All of them are paused, though no job has named them. */
Test(settings_shown, all_topics_are_those_that_the_store_knows_too, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    known = 17000;
    held = 0;
    shop_on(&s, &verbs, many, NULL);
    cr_expect_eq(told, 0u);
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
    cr_expect_eq(told, 17001u, "%u, with that of jobs without one", told);
    shop_close(&s);
}

/* It may know more than a queue can have: as many again find room that it does not know, and what
 * it holds back is held back, wherever it stands. */
Test(settings_shown, topics_that_a_store_knows_leave_room_for_others, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    known = DUE_TOPIC_MAX + 10;
    held = 100;
    shop_on(&s, &verbs, many, NULL);
    for (int i = known; i < known + held; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        cr_assert(due__topic_at(s.lab.q, (uint32_t)lab_topic(&s.lab, name))->paused);
    }
    for (int i = 0; i < DUE_TOPIC_MAX / 2 - 110; i++) {
        char name[16];

        snprintf(name, sizeof name, "new%d", i);
        cr_assert_geq(due_topic(s.lab.q, name), 0, "%d", i);
    }
    shop_close(&s);
}

Test(settings_shown, more_that_is_held_back_than_a_queue_can_have_is_not_opened, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    struct due_store_verbs verbs;
    struct flaky flaky;
    due_queue *q = NULL;

    known = 0;
    held = DUE_TOPIC_MAX; /* besides that of jobs without one */
    flaky_init(&flaky, FLAKY_NEVER);
    due_options o = { DUE_OPTIONS_INIT, .store = store_that(disk, &verbs, many, NULL),
                      .allocator = &flaky.hooks };
    cr_expect_eq(due_open(&q, &o, NULL), DUE_ELIMIT);
    cr_expect_eq(atomic_load(&flaky.live), 0u, "it has left memory behind");
    verbs.free(o.store);
    memory_disk_free(disk);
}

/* ---- After a loss ---------------------------------------------------------------------------- */

static int nothing(void)
{
    return 0;
}

static int odd(void)
{
    return show("odd", 1, 0);
}

static struct flaky *memory;

/* There is no memory to name it the first time. */
static int odd_without_memory(void)
{
    memory->fail_on = true;
    flaky_fail_in(memory, 0);
    int rc = odd();
    memory->fail_at = FLAKY_NEVER;
    cr_expect_eq(rc, DUE_ENOMEM);
    shows_later = odd;
    return rc;
}

/* The store has fallen back to a time when it held back a topic that the queue does not know. */
static void pause_odd(struct shop *s)
{
    due_change change = { .kind = DUE_CHANGE_TOPIC, .record.topic = "odd", .paused = 1 };

    memory_disk_lose(s->disk, SIZE_MAX);
    pthread_mutex_lock(&s->disk->lock);
    memory_settings_change(s->disk, &change);
    pthread_mutex_unlock(&s->disk->lock);
    lab_enqueue(&s->lab, "tea", .at_ns = 5);
}

Test(settings_shown, a_pause_that_there_is_no_memory_for_is_lifted_later, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, NULL, odd_without_memory);
    memory = &s.lab.state->memory;
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    pause_odd(&s);
    cr_expect_eq(mended(&s), 0);
    cr_expect_geq(looks, 3u);
    cr_expect(!is_paused(&s, "odd"));
    cr_expect_eq(memory_disk_jobs(s.disk), 2u);
    shop_close(&s);
}

/* None of its jobs can be the queue's, and the others are put again. */
Test(settings_shown, a_pause_that_there_is_no_number_for_is_left_alone, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, NULL, odd);
    for (int i = 1; i < DUE_TOPIC_MAX; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        cr_assert_eq(due_topic(s.lab.q, name), i);
    }
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    pause_odd(&s);
    cr_expect_eq(mended(&s), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 2u);
    cr_expect_eq(told, 0u);
    shop_close(&s);
}

/* It tells so when it is to show what it holds back, and jobs have been put again by then. */
Test(settings_shown, a_second_loss_that_is_told_then_is_heard, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, NULL, NULL);
    for (int i = 0; i < 300; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    uint64_t before = memory_store_calls(s.store, MEMORY_TOPICS);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_TOPICS,
                                                       .call = before + 1,
                                                       .kind = MEMORY_ANSWER,
                                                       .answer = DUE_EACCES });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_TOPICS,
                                                       .call = before + 2,
                                                       .kind = MEMORY_LOSE,
                                                       .count = SIZE_MAX });
    memory_disk_lose(s.disk, SIZE_MAX);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    memory_store_until(s.store, MEMORY_TOPICS, before + 2);
    cr_expect_eq(mended(&s), 0);
    cr_expect_eq(due_flush(s.lab.q, WAIT_NS), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 301u);
    cr_expect(is_paused(&s, "mail"));
    shop_close(&s);
}

/* Nothing is held back here, nor is it there: nothing has to be told. */
Test(settings_shown, after_a_loss_of_nothing_that_was_held_back_nothing_is_told, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, NULL, NULL);
    (void)lab_topic(&s.lab, "mail");
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    memory_disk_lose(s.disk, SIZE_MAX);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(mended(&s), 0);
    cr_expect_eq(told, 0u);
    cr_expect_geq(looks, 2u);
    shop_close(&s);
}

/* What holds back is one of both, whichever. */
Test(settings_shown, after_a_loss_a_pause_or_a_limit_is_told_again, .timeout = 60)
{
    for (int limits = 0; limits < 2; limits++) {
        struct shop s = { .disk = memory_disk_new(NULL) };
        struct due_store_verbs verbs;
        int64_t limit = 0;

        shop_on(&s, &verbs, NULL, NULL);
        int mail = lab_topic(&s.lab, "mail");
        cr_expect_eq(limits ? due_topic_limit(s.lab.q, mail, 7) : due_pause(s.lab.q, mail), 0);
        memory_disk_lose(s.disk, SIZE_MAX);
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
        cr_expect_eq(mended(&s), 0);
        cr_expect_eq(memory_disk_setting(s.disk, "mail", &limit), !limits);
        cr_expect_eq(limit, limits ? 7 : 0);
        shop_close(&s);
    }
}

/* A store that says what is right, and may not after its next start: it is told all the same. */
Test(settings_shown, a_store_that_is_to_be_sure_is_told_that_nothing_is_held_back, .timeout = 60)
{
    const struct memory_disk_options to_be_sure = { .put_again = true };
    struct shop s = { .disk = memory_disk_new(&to_be_sure) };
    struct due_store_verbs verbs;

    shop_on(&s, &verbs, NULL, NULL);
    int mail = lab_topic(&s.lab, "mail");
    lab_enqueue(&s.lab, "tea", .at_ns = 50, .topic = mail);
    cr_expect_eq(due_pause(s.lab.q, mail), 0);
    lab_close(&s.lab);
    shop_on(&s, &verbs, nothing, nothing);
    cr_expect_eq(mended(&s), 0);
    cr_expect(!is_paused(&s, "mail"));
    shop_close(&s);
}

static struct due_queue *opened; /* atomic: set when it was opened */
static atomic_int lacks;         /* as all was loaded: something is to be written still */
static atomic_bool loads;        /* and that was not told yet */

static void look_when_loaded(void *ctx, uint64_t restored, int finished)
{
    struct due_queue *q;

    (void)ctx, (void)restored;
    if (!finished)
        return;
    while ((q = __atomic_load_n(&opened, __ATOMIC_ACQUIRE)) == NULL)
        sched_yield();
    atomic_store(&loads, due__reader_loads(q->commits));
    atomic_store(&lacks, (int)due__load_seq(&q->commits->lacking)); /* G2 */
}

/* Or a close that comes just then would not wait for it. */
Test(settings_shown, whoever_sees_that_all_is_loaded_sees_what_is_to_be_written_again,
     .timeout = 60)
{
    for (int again = 0; again < 2; again++) {
        const struct memory_disk_options options = { .put_again = again };
        struct shop s = { .disk = memory_disk_new(&options) };

        atomic_store(&lacks, -1);
        __atomic_store_n(&opened, NULL, __ATOMIC_RELEASE);
        s.store = memory_store_new(s.disk);
        s.lab = lab_open(.start_ns = 5, .with.store = s.store, .with.on_restore = look_when_loaded);
        __atomic_store_n(&opened, s.lab.q, __ATOMIC_RELEASE);
        while (atomic_load(&lacks) < 0)
            sched_yield();
        cr_expect_eq(atomic_load(&lacks), again);
        cr_expect(!atomic_load(&loads));
        cr_expect_eq(mended(&s), 0);
        shop_close(&s);
    }
}
