/* What holds back topics, after the store has lost something, and after the queue was closed. */
#include "lab/redis/shared_both.h"

#include <stdio.h>

#include "lab/memory_disk.h"
#include "queue/queue.h"
#include "store/sender.h"

static bool is_paused(struct shop *s, const char *topic)
{
    return memory_disk_setting(s->disk, topic, NULL);
}

/* ---- After the close ------------------------------------------------------------------------- */

/* Nothing is stored any more, and so nothing is said to be. */
static void after_a_close(bool shares)
{
    struct shop s = shop_new(IN_MEMORY, as(shares));

    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_pause(s.lab.q, 0), DUE_ECLOSED);
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), DUE_ECLOSED);
    cr_expect_eq(due_resume(s.lab.q, 0), DUE_ECLOSED);
    cr_expect_eq(due_topic_limit(s.lab.q, 0, 1), DUE_ECLOSED);
    cr_expect(!is_paused(&s, ""));
    shop_close(&s);
}

Test(settings_after, who_comes_after_the_close_is_told, .timeout = 60)
{
    after_a_close(false);
}

Test(settings_after, who_comes_after_the_close_of_a_sharer_is_told, .timeout = 60)
{
    after_a_close(true);
}

/* ---- After a loss ---------------------------------------------------------------------------- */

static void put_some(struct shop *s, size_t n)
{
    int mail = lab_topic(&s->lab, "mail");

    for (size_t i = 0; i < n; i++)
        lab_enqueue(&s->lab, "mail", .at_ns = (int64_t)(1 + i % 100), .topic = mail);
}

static void await_stored(struct shop *s, size_t n)
{
    for (int i = 0; i < 20000 && shop_stored(s) != n; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(shop_stored(s), n);
}

/* A topic is held back there whose name no topic can have. */
Test(settings_after, a_name_that_no_topic_can_have_keeps_no_job_from_being_put_again, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    char name[DUE_TOPIC_LENGTH + 2] = { 0 };

    put_some(&s, 1000);
    cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    memory_disk_lose(s.disk, SIZE_MAX);
    memset(name, 'x', sizeof name - 1);
    due_change change = { .kind = DUE_CHANGE_TOPIC, .record.topic = name, .paused = 1 };
    pthread_mutex_lock(&s.disk->lock);
    memory_settings_change(s.disk, &change);
    pthread_mutex_unlock(&s.disk->lock);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect_eq(shop_stored(&s), 1001u);
    cr_expect(is_paused(&s, "mail"));
    lab_close(&s.lab);
    s.store = shop_store(&s);
    due_options o = { DUE_OPTIONS_INIT, .store = s.store };
    due_queue *q = NULL;
    cr_expect_eq(due_open(&q, &o, NULL), DUE_ECORRUPT, "who is not open yet does not begin so");
    s.store->verbs->free(s.store);
    memory_disk_free(s.disk);
}

/* What is stored cannot be looked at: the jobs do not wait for that. */
Test(settings_after, jobs_are_put_again_while_settings_cannot_be_read, .timeout = 60)
{
    static const int answers[] = { DUE_EACCES, DUE_ENOMEM, DUE_ECORRUPT };

    for (size_t i = 0; i < 3; i++) {
        struct shop s = shop_new(IN_MEMORY, as_owner());

        put_some(&s, 1000);
        cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_TOPICS,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_ANSWER,
                                                           .answer = answers[i] });
        memory_disk_lose(s.disk, SIZE_MAX);
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
        await_stored(&s, 1001);
        cr_expect(!is_paused(&s, "mail"));
        memory_store_forgive(s.store);
        cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
        cr_expect(is_paused(&s, "mail"));
        shop_close(&s);
    }
}

/* The server has fallen back to when a topic was paused that the queue does not hold back. */
Test(settings_after, after_a_loss_an_old_pause_is_lifted, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    int mail = lab_topic(&s.lab, "mail");

    cr_expect_eq(due_pause(s.lab.q, mail), 0);
    cr_expect_eq(due_resume(s.lab.q, mail), 0);
    put_some(&s, 1);
    memory_disk_lose(s.disk, 2);
    cr_expect(is_paused(&s, "mail"));
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect(!is_paused(&s, "mail"));
    shop_close(&s);
}

/* However many of them go into a batch, and whichever is the last. */
Test(settings_after, after_a_loss_each_topic_is_told_again, .timeout = 60)
{
    for (size_t batch = 1; batch <= 4; batch++)
        for (int topics = 1; topics <= 6; topics++) {
            struct memory_disk_options with = { .batch_changes = batch };
            struct shop s = { .where = IN_MEMORY, .disk = memory_disk_new(&with) };
            char name[16] = "";

            shop_open(&s, as_owner());
            for (int i = 1; i < topics; i++) {
                snprintf(name, sizeof name, "t%d", i);
                lab_topic(&s.lab, name);
            }
            cr_assert_eq(due_pause(s.lab.q, topics - 1), 0);
            cr_expect(is_paused(&s, name));
            memory_disk_lose(s.disk, SIZE_MAX);
            lab_enqueue(&s.lab, "tea", .at_ns = 5);
            cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
            cr_expect(is_paused(&s, name), "the last of %d by %d", topics, (int)batch);
            shop_close(&s);
        }
}
