/* test_enqueue_behind.c - what is in the inbox is there for whoever comes next.
 *
 * A thread that finds the lock held leaves its job in the inbox.  Who gets the lock then puts his
 * own behind it, takes it first if it is due first, and sees it, by each way of a call, on each
 * clock and for each time.
 */
#include "lab/lab.h"
#include "lab/watch.h"
#include "lab/take.h"

#include "queue/queue.h"

/* The ways of a put. */
enum way { BYTES, MANY_BYTES, POINTER, BATCH, BATCH_OF_LARGE, KEYED, WAYS };

static const char *const way_names[WAYS] = {
    "bytes", "many bytes", "a pointer", "a batch", "a batch of large ones", "a key"
};

enum { LEFT = 3, LARGE = 100 };

/* The times of all of them: the same, or that of their calls. */
enum when { AT, PAST, NOW, WHENS };

static due_spec spec_of(enum when when, int64_t at_ns)
{
    return (due_spec){ DUE_SPEC_INIT, .at_ns = when == NOW ? 0 : at_ns };
}

static unsigned put(struct lab *lab, enum way way, due_spec spec, unsigned number)
{
    static char marks[LARGE];
    const char key = (char)number;
    due_extra more = { DUE_EXTRA_INIT, .key = &key, .key_len = 1 };
    due_spec specs[2] = { spec, spec };
    char bytes[2][LARGE] = { { (char)number }, { (char)(number + 1) } };
    bool batch = way == BATCH || way == BATCH_OF_LARGE;

    for (int i = 0; i < 2; i++) {
        specs[i].data = bytes[i];
        specs[i].len = way == MANY_BYTES || way == BATCH_OF_LARGE ? LARGE : 1;
    }
    if (way == POINTER) {
        specs[0].data = NULL;
        specs[0].len = 0;
        specs[0].ptr = &marks[number];
        marks[number] = (char)number;
    }
    if (way == KEYED)
        specs[0].more = &more;
    int rc = batch ? due_enqueue_batch(lab->q, specs, 2, 0, NULL)
                   : due_enqueue(lab->q, &specs[0], 0, NULL);
    cr_assert_eq(rc, batch ? 2 : 0, "%s", due_error_name(rc));
    return batch ? 2 : 1;
}

static unsigned number_of(const due_job *job)
{
    return *(const unsigned char *)(job->ptr != NULL ? job->ptr : job->data);
}

static void left_and_put(bool kernel, enum way left, enum way way, enum when when)
{
    struct lab lab = lab_open(.start_ns = 100, .kernel = kernel, .with.reserve = 64);
    int64_t now = due_now(lab.q);
    due_spec spec = spec_of(when, when == AT ? now + DUE_MS(2) : now - 50);
    unsigned put_count = 0;

    watch_end(lab.q);                /* it is the caller himself */
    due__lock_acquire(&lab.q->lock); /* somebody is busy */
    for (int i = 0; i < LEFT; i++)
        put_count += put(&lab, left, spec, put_count);
    due__lock_release(&lab.q->lock); /* and has not come to look at the inbox */
    put_count += put(&lab, way, spec, put_count);
    if (!kernel)
        lab_advance(&lab, DUE_MS(2));
    for (unsigned i = 0; i < put_count; i++) {
        due_job job;

        cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0);
        unsigned number = number_of(&job);
        cr_assert_eq(number, i, "%u in place of %u: %s behind %s, %d", number, i, way_names[way],
                     way_names[left], (int)when);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue_behind, what_others_have_left_in_the_inbox)
{
    for (int i = 0; i < 2 * WAYS * WAYS * WHENS; i++)
        left_and_put(i % 2 == 1, (enum way)(i / 2 % WAYS), (enum way)(i / 2 / WAYS % WAYS),
                     (enum when)(i / 2 / WAYS / WAYS));
}

/* ---- Who takes, or looks ---- */

enum look { DEQUEUE, RESERVE, SOME, OF_TOPICS, POLL, NEXT, PEEK, LIST, LOOKS };

static const char *const look_names[LOOKS] = { "dequeue", "reserve", "some", "of topics",
                                               "poll",    "next",    "peek", "list" };

/* One that is in its place, number 1, and one in the inbox, number 0, that is due before. */
static struct lab two_due(bool kernel, enum way way, enum when when, int64_t *first_ns)
{
    struct lab lab = lab_open(.start_ns = 100, .kernel = kernel, .with.reserve = 64);
    int64_t now = due_now(lab.q);
    int64_t at = when == AT ? now + DUE_US(100) : now - 50;

    put(&lab, BYTES, (due_spec){ DUE_SPEC_INIT, .at_ns = at + 10 }, 1);
    watch_end(lab.q);
    due__lock_acquire(&lab.q->lock);
    put(&lab, way, (due_spec){ DUE_SPEC_INIT, .at_ns = at }, 0);
    due__lock_release(&lab.q->lock);
    while (kernel && due_now(lab.q) < at + 10)
        continue;
    *first_ns = at;
    return lab;
}

static int take_first(struct lab *lab, enum look look, due_job *job)
{
    int topic = 0;

    switch (look) {
    case DEQUEUE:
        return due_dequeue(lab->q, job, 0);
    case RESERVE:
        return take_leased(lab->q, job, DUE_S(10), 0);
    case SOME:
        return take_some(lab->q, NULL, 0, job, 1, 0) == 1 ? 0 : DUE_EAGAIN;
    default:
        return take_from(lab->q, &topic, 1, job, 0);
    }
}

static void expect_seen(struct lab *lab, enum look look, int64_t first_ns)
{
    due_info infos[3] = { { .len = 0 } };
    uint64_t cursor = 0;
    int64_t next = 0;

    switch (look) {
    case POLL:
        cr_expect_eq(due_poll(lab->q, &next), 2);
        cr_expect_eq(next, first_ns);
        return;
    case NEXT:
        cr_expect_eq(due_next_deadline(lab->q), first_ns);
        return;
    case PEEK:
        cr_assert_eq(due_peek(lab->q, &infos[0]), 0);
        cr_expect_eq(infos[0].deadline_ns, first_ns);
        return;
    default:
        cr_expect_eq(due_list(lab->q, &cursor, infos, 3), 2);
    }
}

static void left_and_look(bool kernel, enum way way, enum when when, enum look look)
{
    int64_t first_ns;
    struct lab lab = two_due(kernel, way, when, &first_ns);
    due_job job[2];

    if (look >= POLL)
        expect_seen(&lab, look, first_ns);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(take_first(&lab, look, &job[i]), 0, "%s, %s", look_names[look],
                     way_names[way]);
        cr_expect_eq(number_of(&job[i]), i, "%s, %s", look_names[look], way_names[way]);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (look == RESERVE)
            cr_expect_eq(due_ack(&job[i]), 0);
        due_job_done(&job[i]);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue_behind, what_is_in_the_inbox_is_taken_and_seen_in_its_place)
{
    for (int way = BYTES; way <= KEYED; way++) {
        for (int look = DEQUEUE; look < LOOKS && way != BATCH && way != BATCH_OF_LARGE; look++) {
            left_and_look(true, (enum way)way, AT, (enum look)look);
            left_and_look(true, (enum way)way, PAST, (enum look)look);
            left_and_look(false, (enum way)way, PAST, (enum look)look);
        }
    }
}
