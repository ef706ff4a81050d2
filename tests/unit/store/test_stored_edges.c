/* A queue with a store, where several things come together: dead jobs that are put back among the
 * dead, a cancel while the store is asked for something else, and room that nobody will give. */
#include "api/ack.h"
#include "lab/shop.h"
#include "lab/take.h"
#include "queue/queue.h"
#include "store/sender.h"

static due_job reserve(struct shop *s)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(s->lab.q, &job, DUE_S(1), 0), 0);
    return job;
}

static due_id put_dead(struct shop *s, const char *text)
{
    due_id id = lab_enqueue(&s->lab, text, .delay_ns = 0);
    due_job job = reserve(s);

    cr_assert_eq(due_bury(&job, text), 0);
    lab_advance(&s->lab, 1);
    return id;
}

static bool is_dead(struct shop *s, due_id id)
{
    due_record r;

    return memory_disk_find(s->disk, id, &r) && r.cause != 0;
}

/* What goes is sent by nobody in particular. */
static void until_dead(struct shop *s, uint64_t n)
{
    for (int i = 0; i < 2000 && (lab_stats(&s->lab).dead != n || memory_disk_jobs(s->disk) != n);
         i++)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(lab_stats(&s->lab).dead, n);
}

/* ---- The order of the dead ---- */

enum touched { CHANGED, NOT_KICKED };

static void check_order(enum touched how)
{
    struct shop s = shop_make(.start_ns = 5, .with.dead_max = 2);
    due_id first = put_dead(&s, "first");
    due_id second = put_dead(&s, "second");

    if (how == CHANGED) {
        cr_expect_eq(due_update(s.lab.q, first, "mended", 6), 0);
    } else {
        shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
        cr_expect_eq(due_kick(s.lab.q, first), DUE_ENOSPC);
    }
    due_id third = put_dead(&s, "third");
    until_dead(&s, 2);
    cr_expect(!is_dead(&s, first), "the oldest goes");
    cr_expect(is_dead(&s, second));
    cr_expect(is_dead(&s, third));
    shop_close(&s);
}

Test(stored_edges, a_dead_job_that_was_changed_is_as_old_as_it_was, .timeout = 60)
{
    check_order(CHANGED);
}

Test(stored_edges, a_dead_job_that_could_not_be_kicked_is_as_old_as_it_was, .timeout = 60)
{
    check_order(NOT_KICKED);
}

/* ---- Cancelled while it is being buried ---- */

static int bury_it(void *job)
{
    return due_bury(job, "why");
}

/* The store refuses the burial: its holder still has it, and answers otherwise. */
Test(stored_edges, cancelled_during_a_burial_that_is_refused_it_goes_with_the_next_answer,
     .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread burier;
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    due_job job = reserve(&s);

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    crew_go(&burier, bury_it, &job);
    memory_limiter_reached(limiter, 1);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    memory_limiter_open(limiter);
    cr_expect_eq(crew_join(&burier), DUE_ENOSPC);
    cr_expect_eq(due_nack(&job, 0), 0);
    struct due_stats now = lab_stats(&s.lab);
    cr_expect_eq(now.cancelled, 1u);
    cr_expect_eq(now.buried, 0u);
    cr_expect_eq(now.dead + now.waiting + now.leased, 0u);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* ---- Room ---- */

static int put_one_more(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "2", .len = 1 };
    struct shop *s = arg;

    return due_enqueue(s->lab.q, &spec, DUE_S(1000), NULL);
}

Test(stored_edges, who_waits_for_room_is_told_when_somebody_else_owns_the_jobs, .timeout = 20)
{
    struct shop s = shop_make(.start_ns = 5, .with.capacity = 1);
    struct crew_thread producer;
    due_id id = lab_enqueue(&s.lab, "1", .delay_ns = 0);

    crew_go(&producer, put_one_more, &s);
    crew_sleep(DUE_MS(20)); /* it may wait by then, or come later: the answer is the same */
    memory_disk_fence(s.disk);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EFENCED);
    cr_expect_eq(crew_join(&producer), DUE_EFENCED);
    shop_close(&s);
}

/* ---- What a closed queue knows ---- */

Test(stored_edges, a_closed_queue_says_so_of_what_it_has_left_to_its_store, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    due_spec spec = { DUE_SPEC_INIT, .priority = 5 };
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.key = "k", .key_len = 1));
    due_info info;
    int64_t ns;
    char byte;
    int rc = 1;

    cr_assert_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_ECLOSED);
    cr_expect_eq(due_cancel_batch(s.lab.q, &id, 1, &rc), 0);
    cr_expect_eq(rc, DUE_ECLOSED);
    cr_expect_eq(due_reschedule(s.lab.q, id, 20), DUE_ECLOSED);
    cr_expect_eq(due_promote(s.lab.q, id), DUE_ECLOSED);
    cr_expect_eq(due_update(s.lab.q, id, "x", 1), DUE_ECLOSED);
    cr_expect_eq(due_amend(s.lab.q, id, &spec, DUE_SET_PRIORITY), DUE_ECLOSED);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ECLOSED);
    cr_expect_eq(due_find(s.lab.q, id, &info), DUE_ECLOSED);
    cr_expect_eq(due_remaining(s.lab.q, id, &ns), DUE_ECLOSED);
    cr_expect_eq(due_read(s.lab.q, id, &byte, 1, NULL), DUE_ECLOSED);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ECLOSED);
    cr_expect_eq(due_cancel_key(s.lab.q, "k", 1, NULL), DUE_ECLOSED);
    shop_close(&s);
}

/* ---- A store that is another than it should be ---- */

static const struct due_store_verbs *own_verbs;
static size_t told_changes; /* what it says that a batch may have */

static int open_and_tell(due_store *store, const struct due_store_open *how,
                         struct due_store_info *info, due_error *error)
{
    int rc = own_verbs->open(store, how, info, error);

    info->batch_changes = told_changes;
    return rc;
}

/* What comes of a queue whose store has verbs of this size, and tells of that many changes; *@most:
 * how many it is believed to take. */
static int opened_on(size_t size, size_t changes, size_t *most, due_error *error)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct due_store_verbs verbs = *store->verbs;
    due_queue *q;

    own_verbs = store->verbs;
    told_changes = changes;
    verbs.open = open_and_tell;
    verbs.size = size;
    store->verbs = &verbs;
    int rc = due_open(&q, &(due_options){ DUE_OPTIONS_INIT, .store = store }, error);
    if (rc == 0) {
        *most = q->commits->info.batch_changes;
        cr_expect_eq(due_flush(q, -1), DUE_EINVAL);
        cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
        due_free(q);
    } else {
        own_verbs->free(store);
    }
    memory_disk_free(disk);
    return rc;
}

Test(stored_edges, a_store_of_an_older_version_or_without_room_is_refused, .timeout = 60)
{
    const size_t size = sizeof(struct due_store_verbs);
    const size_t least = offsetof(struct due_store_verbs, change_size);
    due_error error = { "", "" };
    size_t most = 0;

    cr_expect_eq(opened_on(least - 1, 256, &most, &error), DUE_EINVAL);
    cr_expect_str_eq(error.text, "the store was built for an older version");
    cr_expect_eq(opened_on(least - 1, 256, &most, NULL), DUE_EINVAL);
    cr_expect_eq(opened_on(least, 256, &most, &error), 0, "%s", error.text);
    cr_expect_eq(opened_on(size, 0, &most, &error), DUE_EINVAL);
    cr_expect_eq(opened_on(size, 65536, &most, &error), 0, "%s", error.text);
    cr_expect_eq(most, 65536u);
    cr_expect_eq(opened_on(size, 65537, &most, &error), 0, "%s", error.text);
    cr_expect_eq(most, 65536u);
}

/* ---- Whether its holder is to stop ---- */

static int ack_it(void *job)
{
    return due_ack(job);
}

/* While it is being answered for it is not its holder's to go on with. */
Test(stored_edges, a_job_that_is_on_its_way_out_is_to_be_stopped, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10);
    struct memory_limiter *gate = memory_limiter_new(s.disk);
    struct crew_thread acks;
    due_job job;

    lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    cr_assert_eq(lab_reserve(&s.lab, &job, DUE_S(100)), 0);
    due_job copy = job;
    cr_expect_not(due__lease_stopping(&copy));
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    memory_store_fault(
        s.store, (struct memory_fault){
                     .verb = MEMORY_COMMIT, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    crew_go(&acks, ack_it, &job);
    memory_limiter_reached(gate, 1);
    cr_expect(due__lease_stopping(&copy));
    memory_limiter_open(gate);
    cr_expect_eq(crew_join(&acks), 0);
    memory_limiter_free(gate);
    shop_close(&s);
}

static int64_t given_ns[2]; /* to open the store, and to close it */

static int open_and_note(due_store *s, const struct due_store_open *how,
                         struct due_store_info *info, due_error *error)
{
    given_ns[0] = how->until_ns - due__monotonic_now();
    return own_verbs->open(s, how, info, error);
}

static int close_and_note(due_store *s, int64_t until_ns)
{
    given_ns[1] = until_ns - due__monotonic_now();
    return own_verbs->close(s, until_ns);
}

/* As due/options.h has it; a close is given a quarter of a second. */
Test(stored_edges, what_a_store_is_given_without_being_asked_for, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct due_store_verbs verbs = *store->verbs;
    due_queue *q;

    own_verbs = store->verbs;
    verbs.open = open_and_note;
    verbs.close = close_and_note;
    store->verbs = &verbs;
    cr_assert_eq(due_open(&q, &(due_options){ DUE_OPTIONS_INIT, .store = store }, NULL), 0);
    cr_expect_eq(q->commits->timeout_ns, DUE_S(5));
    cr_expect_eq(q->commits->unsettled_max, 100000u);
    cr_expect_eq(q->commits->unsettled_bytes_max, (uint64_t)256 << 20);
    cr_expect(given_ns[0] > DUE_S(10) && given_ns[0] <= DUE_S(15));
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
    cr_expect_leq(given_ns[1], DUE_MS(250));
    cr_expect_eq(due_free(q), 0);
    memory_disk_free(disk);
}

/* Whichever allocation of an opening fails: it says so, and leaves nothing behind. */
Test(stored_edges, an_opening_that_has_no_memory_is_as_if_it_had_not_been, .timeout = 60)
{
    for (int shared = 0; shared < 2; shared++) {
        int rc = DUE_ENOMEM;
        size_t n = 0;

        for (; rc != 0 && n < 1000; n++) {
            struct memory_disk *disk = memory_disk_new(NULL);
            due_store *store = memory_store_new(disk);
            struct flaky flaky;
            due_queue *q = NULL;

            flaky_init(&flaky, n);
            rc = due_open(&q,
                          &(due_options){ DUE_OPTIONS_INIT, .store = store, .reserve = 10,
                                          .allocator = &flaky.hooks,
                                          .share = shared ? DUE_SHARED : DUE_OWNED },
                          NULL);
            cr_assert_eq(rc, atomic_load(&flaky.calls) > n ? DUE_ENOMEM : 0, "%zu: %s", n,
                         due_error_name(rc));
            if (rc == 0) {
                cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
                cr_expect_eq(due_free(q), 0);
            } else {
                store->verbs->free(store);
            }
            cr_expect_eq(atomic_load(&flaky.live), 0u, "%zu", n);
            cr_expect_eq(atomic_load(&flaky.bad), 0u, "%zu", n);
            memory_disk_free(disk);
        }
        cr_expect_eq(rc, 0);
        cr_expect_gt(n, 10u, "this proves little");
    }
}
