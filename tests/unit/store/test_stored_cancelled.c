/* Threads that are cancelled in a call whose store is a point of cancellation, as one that waits or
 * writes: the call ends first, whatever it is, and its thread is as cancellable as it was. */
#include <pthread.h>

#include "lab/shop.h"
#include "lab/take.h"

static const struct due_store_verbs *own_verbs;
static atomic_uint points;   /* that calls of the store have been */
static atomic_bool loads_on; /* the load does not end yet */

static void point(void)
{
    atomic_fetch_add(&points, 1);
    pthread_testcancel();
}

static int commit_at_a_point(due_store *s, const due_change *changes, size_t n, uint64_t number,
                             int64_t until_ns)
{
    point();
    int rc = own_verbs->commit(s, changes, n, number, until_ns);
    point();
    return rc;
}

static int find_at_a_point(due_store *s, due_id id, due_store_visit *visit, void *ctx,
                           int64_t until_ns)
{
    point();
    return own_verbs->find(s, id, visit, ctx, until_ns);
}

static int load_at_a_point(due_store *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                           int64_t until_ns)
{
    point();
    if (atomic_load(&loads_on)) {
        crew_sleep(DUE_MS(1));
        return 1;
    }
    return own_verbs->load(s, rewind, max, visit, ctx, until_ns);
}

static int ready_at_a_point(due_store *s, int64_t until_ns)
{
    point();
    return own_verbs->ready(s, until_ns);
}

static int close_at_a_point(due_store *s, int64_t until_ns)
{
    point();
    int rc = own_verbs->close(s, until_ns);
    point();
    return rc;
}

static void interrupt_at_a_point(due_store *s)
{
    point();
    own_verbs->interrupt(s);
}

static struct shop shop_of_points(struct due_store_verbs *verbs, struct memory_disk *disk,
                                  enum due_confirm confirm)
{
    struct shop s = { .disk = disk };

    s.store = memory_store_new(s.disk);
    own_verbs = s.store->verbs;
    *verbs = *own_verbs;
    verbs->commit = commit_at_a_point;
    verbs->find = find_at_a_point;
    verbs->load = load_at_a_point;
    verbs->ready = ready_at_a_point;
    verbs->close = close_at_a_point;
    verbs->interrupt = interrupt_at_a_point;
    verbs->prepare = NULL; /* else it is sent otherwise */
    verbs->send = NULL;
    s.store->verbs = verbs;
    s.lab = lab_open(.start_ns = 5, .with.store = s.store, .with.confirm = confirm);
    return s;
}

/* ---- The calls: each of a queue in which one job is due, and one waits ---- */

struct caller {
    struct shop *s;
    due_id id; /* of the one that waits */
    int (*call)(struct caller *c);
    atomic_int rc; /* of the call, plus 1000: it has come back */
};

static int enqueue(struct caller *c)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 500 };

    return due_enqueue(c->s->lab.q, &spec, 0, NULL);
}

static int update(struct caller *c)
{
    return due_update(c->s->lab.q, c->id, "new", 3);
}

static int reschedule(struct caller *c)
{
    return due_reschedule(c->s->lab.q, c->id, 600);
}

static int cancel(struct caller *c)
{
    return due_cancel(c->s->lab.q, c->id, NULL);
}

static int dequeue(struct caller *c)
{
    due_job job;
    int rc = due_dequeue(c->s->lab.q, &job, DUE_S(30));

    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int reserve_and_bury(struct caller *c)
{
    due_job job;
    int rc = take_leased(c->s->lab.q, &job, 100, DUE_S(30));

    return rc == 0 ? due_bury(&job, "why") : rc;
}

static int find(struct caller *c)
{
    due_info info;
    due_id other = c->id;

    other.byte[15] ^= 1;
    int rc = due_find(c->s->lab.q, other, &info);
    return rc == DUE_ENOENT ? 0 : rc;
}

static int flush(struct caller *c)
{
    return due_flush(c->s->lab.q, DUE_S(30));
}

static int clear(struct caller *c)
{
    return due_clear(c->s->lab.q, DUE_ALL_TOPICS, NULL);
}

static int close_all(struct caller *c)
{
    return due_close(c->s->lab.q, DUE_CLOSE_DISCARD, DUE_S(30));
}

/* ---- The thread ---- */

/* Afterwards it is not to be cancelled: AddressSanitizer does not know of a stack left so. */
static void *call_cancelled(void *arg)
{
    struct caller *c = arg;
    int state;

    pthread_cancel(pthread_self());
    atomic_store(&c->rc, 1000 + c->call(c));
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state == PTHREAD_CANCEL_ENABLE ? arg : NULL;
}

static const struct {
    const char *name;
    int (*call)(struct caller *c);
} calls[] = {
    { "enqueue", enqueue }, { "update", update },   { "reschedule", reschedule },
    { "cancel", cancel },   { "dequeue", dequeue }, { "reserve and bury", reserve_and_bury },
    { "find", find },       { "flush", flush },     { "clear", clear },
    { "close", close_all }
};

Test(stored_cancelled, a_thread_comes_back_from_any_call_first, .timeout = 60)
{
    unsigned seen = 0;

    for (size_t i = 0; i < 2 * sizeof calls / sizeof calls[0]; i++) {
        struct due_store_verbs verbs;
        struct shop s = shop_of_points(&verbs, memory_disk_new(NULL),
                                       i % 2 ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        struct caller c = { .s = &s, .call = calls[i / 2].call };
        pthread_t thread;
        void *end = NULL;

        shop_wait_loaded(&s);
        lab_enqueue(&s.lab, "due", .at_ns = 1);
        c.id = lab_enqueue(&s.lab, "waits", .at_ns = 100);
        unsigned before = atomic_load(&points);
        cr_assert_eq(pthread_create(&thread, NULL, call_cancelled, &c), 0);
        cr_assert_eq(pthread_join(thread, &end), 0);
        cr_assert_eq(end, &c, "%s: it could not have been cancelled", calls[i / 2].name);
        cr_expect_eq(atomic_load(&c.rc), 1000, "%s: %d", calls[i / 2].name, atomic_load(&c.rc));
        seen += atomic_load(&points) - before;
        shop_close(&s);
    }
    cr_expect_gt(seen, 0u, "this proves nothing");
}

/* Nobody has sent what it left before it closes. */
Test(stored_cancelled, a_thread_that_closes_has_all_stored, .timeout = 60)
{
    for (int i = 0; i < 10; i++) {
        struct due_store_verbs verbs;
        struct shop s = shop_of_points(&verbs, memory_disk_new(NULL), DUE_CONFIRM_ASYNC);
        struct caller c = { .s = &s, .call = close_all };
        pthread_t thread;

        shop_wait_loaded(&s);
        for (int job = 0; job < 100; job++)
            lab_enqueue(&s.lab, "tea", .at_ns = 100);
        cr_assert_eq(pthread_create(&thread, NULL, call_cancelled, &c), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_expect_eq(atomic_load(&c.rc), 1000);
        cr_expect_eq(memory_disk_jobs(s.disk), 100u);
        shop_close(&s);
    }
}

/* While they are read, it is asked for one that is not there. */
Test(stored_cancelled, a_thread_that_looks_for_a_job_in_the_store_comes_back_first, .timeout = 60)
{
    for (int i = 0; i < 10; i++) {
        atomic_store(&loads_on, true);
        struct due_store_verbs verbs;
        struct shop s = shop_of_points(&verbs, memory_disk_new(NULL), DUE_CONFIRM_SYNC);
        struct caller c = { .s = &s, .call = find, .id.byte = { 1, 2, 3 } };
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, call_cancelled, &c), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_expect_eq(atomic_load(&c.rc), 1000, "%d", atomic_load(&c.rc));
        atomic_store(&loads_on, false);
        shop_wait_loaded(&s);
        shop_close(&s);
    }
}
