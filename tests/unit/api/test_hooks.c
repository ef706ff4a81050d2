/* What a hook may do, from every place where one is called: open another queue, on the same clock
 * too, use it, close and free it, and call one that is there already.  And what the library holds
 * meanwhile: no lock of its own, and under an allocation not the timeline's.  The caller's thread
 * is not cancelled in a hook, and can be after it as before.
 */
#include <stdio.h>
#include <time.h>

#include "store/sender.h"
#include "queue/queue.h"
#include "job/key_table.h"
#include "lab/shop.h"
#include "queue/events.h"
#include "lab/take.h"

enum hook { ON_EVENT, ON_DISCARD, ON_SETTLED, ON_RESTORE, ON_LOG, ON_START, ON_ALLOC, HOOKS };

static const char *const hook_names[HOOKS] = { "on_event", "on_discard", "on_settled", "on_restore",
                                               "on_log",   "on_start",   "alloc" };

struct world {
    due_clock *clock;
    due_queue *neighbour;   /* on the same clock, and there all the time */
    _Atomic(due_queue *) q; /* whose hooks they are; NULL: not known */
    due_queue *stored;      /* the same, if it has a store and is open */
    bool only_memory;       /* the other hooks do nothing */
    atomic_uint calls[HOOKS];
    atomic_uint wrong;         /* calls in which something failed */
    _Atomic(const char *) why; /* */
};

/* ---- What every hook does ---- */

static void check(struct world *w, bool right, const char *what)
{
    if (!right) {
        atomic_store(&w->why, what);
        atomic_fetch_add(&w->wrong, 1);
    }
}

static _Thread_local bool is_librarys; /* this thread: nobody can cancel it */

static bool may_be_cancelled(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    return state == PTHREAD_CANCEL_ENABLE;
}

/* Others may have it for a moment, but nobody for a second. */
static bool stays_held(struct due__lock *l)
{
    for (int i = 0; due__lock_held(l); i++) {
        if (i == 1000)
            return true;
        crew_sleep(DUE_MS(1));
    }
    return false;
}

static void no_lock_is_held(struct world *w)
{
    struct due_queue *q = atomic_load(&w->q);

    if (q == NULL)
        return;
    check(w, !stays_held(&q->lock), "the timeline's lock is held");
    check(w, !stays_held(&q->names.lock), "the names' lock is held");
    check(w, !stays_held(&q->fdlock), "the descriptor's lock is held");
    check(w, !stays_held(&q->pool_stats.lock), "the roster's lock is held");
    check(w, !stays_held(&q->slab.depot), "the slab's depot is held");
    check(w, !stays_held(&q->slab.payloads.depot), "the payloads' depot is held");
    for (unsigned i = 0; i < DUE__SHARDS; i++) {
        check(w, !stays_held(&q->slab.shard[i].lock), "a slab shard is held");
        check(w, !stays_held(&q->slab.payloads.shard[i].lock), "a payload shard is held");
    }
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 of key_table.c */
    for (unsigned i = 0; keys != NULL && i < DUE__KEY_SHARDS; i++)
        check(w, !stays_held(&keys->shard[i].lock), "a shard of keys is held");
    if (q->commits == NULL)
        return;
    check(w, !stays_held(&q->commits->calls), "the calls' lock is held");
    for (unsigned i = 0; i < DUE__INDEX_SHARDS; i++)
        check(w, !stays_held(&q->commits->index.shard[i].lock), "a shard of ids is held");
}

/* Of each verb a few, without waiting. */
static void use(struct world *w, due_queue *q)
{
    due_spec soon = { DUE_SPEC_INIT, .data = "x", .len = 1 };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    struct due_stats s;
    due_id id;
    due_job job;

    check(w, due_enqueue(q, &later, 0, &id) == 0, "enqueue, delayed");
    check(w, due_cancel(q, id, NULL) == 0, "cancel");
    check(w, due_enqueue(q, &soon, 0, NULL) == 0, "enqueue");
    int rc = take_leased(q, &job, DUE_S(1), 0);
    check(w, rc == 0, "reserve");
    if (rc == 0) {
        check(w, due_ack(&job) == 0, "ack");
        due_job_done(&job);
    }
    check(w, due_poll(q, NULL) >= 0 && due_stats_read(q, &s) == 0, "stats");
}

static void another(struct world *w, due_clock *clock, enum due_proxies proxies)
{
    due_options o = { DUE_OPTIONS_INIT, .manual = clock, .proxies = proxies };
    due_queue *q = NULL;

    if (due_open(&q, &o, NULL) != 0) {
        check(w, false, "open");
        return;
    }
    use(w, q);
    check(w, due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER) == 0, "close");
    check(w, due_free(q) == 0, "free");
}

static void called(void *ctx, enum hook hook)
{
    struct world *w = ctx;
    unsigned before = atomic_fetch_add(&w->calls[hook], 1);

    if (w->only_memory)
        return;
    check(w, is_librarys || !may_be_cancelled(), "the caller may be cancelled in it");
    no_lock_is_held(w);
    another(w, w->clock, DUE_PROXIES_NEVER);
    another(w, NULL, before % 16 == 0 ? DUE_PROXIES_ADAPTIVE : DUE_PROXIES_NEVER);
    use(w, w->neighbour);
}

/* There are so many that not each of them opens a queue. */
static void called_for_memory(struct world *w)
{
    unsigned before = atomic_fetch_add(&w->calls[ON_ALLOC], 1);
    struct due_queue *q = atomic_load(&w->q);

    if (q != NULL)
        check(w, !stays_held(&q->lock), "the timeline's lock is held");
    if (before % 64 == 0)
        another(w, w->clock, DUE_PROXIES_NEVER);
    if (before % 8 == 0)
        use(w, w->neighbour);
}

static void on_event(void *ctx, const due_event *event)
{
    (void)event;
    called(ctx, ON_EVENT);
}

static void on_discard(void *ctx, const due_job *job)
{
    check(ctx, job->queue == NULL, "the job is still the queue's");
    called(ctx, ON_DISCARD);
}

static void on_settled(void *ctx, due_id id, int rc)
{
    (void)id;
    (void)rc;
    called(ctx, ON_SETTLED);
}

static void on_restore(void *ctx, uint64_t restored, int finished)
{
    (void)restored;
    (void)finished;
    called(ctx, ON_RESTORE);
}

static void on_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)level;
    (void)text;
    called(ctx, ON_LOG);
}

static void on_start(void *ctx, const char *name)
{
    (void)name;
    is_librarys = true;
    called(ctx, ON_START);
}

/* ---- From every place ---- */

static struct world world_make(due_clock *clock)
{
    due_options o = { DUE_OPTIONS_INIT, .manual = clock, .proxies = DUE_PROXIES_NEVER };
    struct world w = { .clock = clock };

    cr_assert_eq(due_open(&w.neighbour, &o, NULL), 0);
    return w;
}

#define HOOKED(w)                                                                                 \
    .start_ns = 5, .clock = (w)->clock, .with.on_event = on_event, .with.on_discard = on_discard, \
    .with.on_log = on_log, .with.on_thread_start = on_start, .with.on_settled = on_settled,       \
    .with.on_restore = on_restore, .with.ctx = (w)

/* Was it?  A step that was made under the lock may be told by whoever is just telling of the same
 * job: so the call that made it may return a moment before. */
static bool called_since(struct world *w, enum hook hook, unsigned before)
{
    for (int ms = 0; ms < 10000 && atomic_load(&w->calls[hook]) == before; ms++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return atomic_load(&w->calls[hook]) != before;
}

/* In what is done here @hook is called, and all goes well in it. */
#define CALLS(w, hook, ...)                                                                     \
    do {                                                                                        \
        unsigned before_ = atomic_load(&(w)->calls[hook]);                                      \
        __VA_ARGS__;                                                                            \
        world_settled(w);                                                                       \
        cr_expect(may_be_cancelled(), "not any more, after: %s", #__VA_ARGS__);                 \
        cr_expect(called_since(w, hook, before_), "%s was not called in: %s", hook_names[hook], \
                  #__VA_ARGS__);                                                                \
        world_right(w, #__VA_ARGS__);                                                           \
    } while (0)

/* With a store: also what nobody waited for. */
static void world_settled(struct world *w)
{
    if (w->stored != NULL)
        cr_assert_eq(due_flush(w->stored, DUE_S(30)), 0);
}

static void world_right(struct world *w, const char *where)
{
    const char *why = atomic_load(&w->why);

    cr_expect_eq(atomic_exchange(&w->wrong, 0), 0u, "%s, in: %s", why != NULL ? why : "", where);
}

static void world_end(struct world *w)
{
    world_right(w, "all");
    cr_expect_eq(due_close(w->neighbour, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(w->neighbour), 0);
    cr_expect_eq(due_clock_free(w->clock), 0);
}

/* Put in, and with a store: there. */
#define put(w, lab, text, ...) \
    put_spec((w), (lab), (text), (due_spec){ DUE_SPEC_INIT, __VA_ARGS__ })
static due_id put_spec(struct world *w, struct lab *lab, const char *text, due_spec spec)
{
    due_id id = lab_enqueue_spec(lab, text, spec);

    world_settled(w);
    return id;
}

static due_job reserved(struct lab *lab, int64_t lease_ns)
{
    due_job job = { .queue = NULL };

    cr_assert_eq(take_leased(lab->q, &job, lease_ns, DUE_S(1)), 0);
    return job;
}

static void answered(struct world *w, due_job *job, int rc)
{
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    due_job_done(job);
    world_settled(w);
}

/* What makes a job ready, kills or discards one while the clock is turned. */
static void turn_through_everything(struct world *w, struct lab *lab)
{
    struct crew_call call;
    due_job job;

    put(w, lab, "later", .delay_ns = 10);
    crew_call_dequeue(&call, lab->q, DUE_FOREVER);
    crew_call_asleep(&call);
    CALLS(w, ON_EVENT, lab_advance(lab, 10));
    cr_assert_eq(crew_call_answer(&call), 0);
    due_job_done(&call.job);

    due_id id = put(w, lab, "lapses", .delay_ns = 0);
    job = reserved(lab, 10);
    due_job_done(&job);
    CALLS(w, ON_EVENT, lab_advance(lab, 20));
    cr_assert_eq(due_cancel(lab->q, id, NULL), 0);

    put(w, lab, "expires", .delay_ns = 10, .more = EXTRA(.ttl_ns = 1));
    lab_advance(lab, 100);
    CALLS(w, ON_EVENT, cr_expect_null(lab_dequeue(lab)));
    cr_expect_gt(lab_stats(lab).dead, 0u);
    CALLS(w, ON_DISCARD, lab_advance(lab, DUE_S(10)));
    cr_expect_eq(lab_stats(lab).dead, 0u);
}

static void name_and_answer(struct world *w, struct lab *lab)
{
    due_job job;
    due_id id = { .byte = { 0 } };

    CALLS(w, ON_EVENT, id = put(w, lab, "tea", .at_ns = DUE_FOREVER - 1));
    CALLS(w, ON_EVENT, cr_assert_eq(due_cancel(lab->q, id, NULL), 0));
    put(w, lab, "tea", .delay_ns = 0);
    CALLS(w, ON_EVENT, cr_expect_str_eq(lab_dequeue(lab), "tea"));
    id = put(w, lab, "tea", .delay_ns = 0);
    CALLS(w, ON_EVENT, job = reserved(lab, DUE_S(1)));
    CALLS(w, ON_EVENT, answered(w, &job, due_nack(&job, 0)));
    job = reserved(lab, DUE_S(1));
    CALLS(w, ON_EVENT, answered(w, &job, due_bury(&job, "why not")));
    CALLS(w, ON_EVENT, cr_assert_eq(due_kick(lab->q, id), 0));
    job = reserved(lab, DUE_S(1));
    CALLS(w, ON_EVENT, answered(w, &job, due_ack(&job)));
    put(w, lab, "tea", .delay_ns = 0, .more = EXTRA(.every_ns = 5));
    job = reserved(lab, DUE_S(1));
    CALLS(w, ON_EVENT, answered(w, &job, due_ack(&job)));
    CALLS(w, ON_DISCARD, cr_assert_eq(due_clear(lab->q, DUE_ALL_TOPICS, NULL), 0));
    CALLS(w, ON_EVENT,
          put(w, lab, "keyed", .delay_ns = 500, .more = EXTRA(.key = "k", .key_len = 1)));
    put(w, lab, "keyed too", .delay_ns = 0,
        .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE));
    job = reserved(lab, DUE_S(1));
    answered(w, &job, due_bury(&job, NULL));
    CALLS(w, ON_DISCARD, cr_assert_eq(due_clear_dead(lab->q, DUE_ALL_TOPICS, NULL), 0));
    for (int i = 0; i < 3; i++) {
        put(w, lab, "more dead than are kept", .delay_ns = 0);
        job = reserved(lab, DUE_S(1));
        if (i < 2)
            answered(w, &job, due_bury(&job, NULL));
        else
            CALLS(w, ON_DISCARD, answered(w, &job, due_bury(&job, NULL)));
    }
}

LAB_TEST(hooks, may_open_use_and_free_other_queues_wherever_they_are_called)
{
    due_clock *clock = due_clock_manual(5);
    struct world w = world_make(clock);
    struct lab lab = lab_open(HOOKED(&w), .with.dead_keep_ns = DUE_S(1), .with.dead_max = 2);
    due_job job;

    atomic_store(&w.q, lab.q);
    lab.clock = clock;
    lab_topic(&lab, "a second one: turning the clock moves what is due");
    name_and_answer(&w, &lab);
    turn_through_everything(&w, &lab);
    int carried = 0;
    due_spec ptr = { DUE_SPEC_INIT, .delay_ns = 900, .ptr = &carried,
                     .more = EXTRA(.key = "p", .key_len = 1) };
    cr_assert_eq(due_enqueue(lab.q, &ptr, 0, NULL), 0);
    CALLS(&w, ON_DISCARD,
          lab_enqueue(&lab, "no pointer", .delay_ns = 900,
                      .more = EXTRA(.key = "p", .key_len = 1, .on_key = DUE_KEY_REPLACE)));
    lab_enqueue(&lab, "held", .delay_ns = 0);
    job = reserved(&lab, DUE_S(1000));
    CALLS(&w, ON_DISCARD, cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0));
    cr_expect_gt(atomic_load(&w.calls[ON_LOG]), 0u);
    due_job_done(&job);
    CALLS(&w, ON_DISCARD, cr_expect_eq(due_free(lab.q), 0));
    cr_expect_eq(atomic_load(&lab.state->memory.live), 0u);
    free(lab.state);
    world_end(&w);
}

/* ---- With a store ---- */

static struct lab_options stored_with(struct world *w, enum due_confirm confirm)
{
    return (struct lab_options){ HOOKED(w), .with.confirm = confirm, .with.dead_keep_ns = DUE_S(1),
                                 .with.dead_max = 2 };
}

static void stored_begin(struct world *w, struct shop *s, enum due_confirm confirm)
{
    atomic_store(&w->q, NULL);
    shop_begin(s, stored_with(w, confirm), NULL);
    atomic_store(&w->q, s->lab.q);
    w->stored = s->lab.q;
    s->lab.clock = w->clock;
    shop_wait_loaded(s);
}

/* Its clock stays. */
static void stored_end(struct world *w, struct shop *s)
{
    w->stored = NULL;
    CALLS(w, ON_EVENT, cr_expect_eq(due_close(s->lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0));
    cr_expect_eq(due_free(s->lab.q), 0);
    cr_expect_eq(atomic_load(&s->lab.state->memory.live), 0u);
    free(s->lab.state);
}

static void with_a_store(enum due_confirm confirm)
{
    due_clock *clock = due_clock_manual(5);
    struct world w = world_make(clock);
    struct shop s = { .disk = memory_disk_new(NULL) };

    CALLS(&w, ON_START, stored_begin(&w, &s, confirm));
    lab_topic(&s.lab, "a second one");
    name_and_answer(&w, &s.lab);
    turn_through_everything(&w, &s.lab);
    for (int i = 0; i < 10; i++)
        put(&w, &s.lab, "stays", .delay_ns = DUE_S(5000));
    if (confirm == DUE_CONFIRM_ASYNC) {
        shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
        CALLS(&w, ON_SETTLED, lab_enqueue(&s.lab, "refused to nobody", .delay_ns = DUE_S(5000));
              cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0));
    }
    stored_end(&w, &s);
    CALLS(&w, ON_RESTORE, stored_begin(&w, &s, confirm));
    cr_expect_eq(lab_stats(&s.lab).restored, 10u);
    stored_end(&w, &s);
    const char *wrong = memory_disk_wrong(s.disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(s.disk);
    world_end(&w);
}

Test(hooks, may_do_so_where_every_call_waits_for_a_store, .timeout = 60)
{
    with_a_store(DUE_CONFIRM_SYNC);
}

Test(hooks, may_do_so_where_a_store_is_written_behind_the_calls, .timeout = 60)
{
    with_a_store(DUE_CONFIRM_ASYNC);
}

/* ---- Memory ---- */

static void *world_alloc(void *ctx, size_t size)
{
    called_for_memory(ctx);
    return malloc(size);
}

static void world_free(void *ctx, void *memory, size_t size)
{
    (void)size;
    called_for_memory(ctx);
    free(memory);
}

/* Jobs, topics, waiters, groups, keys, large payloads and headers, more than there is room for. */
static void grow(struct lab *lab)
{
    static const char large[70000];
    char name[16];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%u", i);
        lab_enqueue(lab, "x", .delay_ns = (int64_t)(i % 3),
                    .more = EXTRA(.group = name, .group_len = sizeof name, .key = name,
                                  .key_len = sizeof name, .headers = name, .headers_len = 3),
                    .topic = lab_topic(lab, i % 10 == 0 ? name : ""));
    }
    for (unsigned i = 0; i < 4200; i++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = 100, .data = large, .len = i };
        cr_assert_eq(due_enqueue(lab->q, &spec, 0, NULL), 0);
    }
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 100, .data = large, .len = sizeof large };
    cr_assert_eq(due_enqueue(lab->q, &spec, 0, NULL), 0);
    lab_advance(lab, 1);
    cr_assert_eq(due_clear(lab->q, DUE_ALL_TOPICS, NULL), 0);
    cr_assert_eq(due_trim(lab->q), 0);
}

static void memory_open(struct world *w, struct lab *lab, due_store *store)
{
    due_allocator allocator = { world_alloc, world_free, w };
    due_options o = { DUE_OPTIONS_INIT,
                      .manual = w->clock,
                      .allocator = &allocator,
                      .metrics = 1,
                      .proxies = lab_proxies >= 0 ? (enum due_proxies)lab_proxies : 0,
                      .dead_keep_ns = DUE_S(1),
                      .dead_max = 2,
                      .on_event = on_event,
                      .on_discard = on_discard,
                      .ctx = w,
                      .store = store };

    CALLS(w, ON_ALLOC, cr_assert_eq(due_open(&lab->q, &o, NULL), 0));
    atomic_store(&w->q, lab->q);
    w->stored = store != NULL ? lab->q : NULL;
    while (lab_stats(lab).loading)
        crew_sleep(DUE_MS(1));
}

static void memory_close(struct world *w, struct lab *lab)
{
    w->stored = NULL;
    cr_assert_eq(due_close(lab->q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    atomic_store(&w->q, NULL);
    CALLS(w, ON_ALLOC, cr_assert_eq(due_free(lab->q), 0));
}

static void with_memory_of_its_own(struct memory_disk *disk)
{
    due_clock *clock = due_clock_manual(5);
    struct world w = world_make(clock);
    struct lab lab = { .clock = clock, .state = calloc(1, sizeof *lab.state) };

    cr_assert_not_null(lab.state);
    w.only_memory = true;
    memory_open(&w, &lab, disk != NULL ? memory_store_new(disk) : NULL);
    CALLS(&w, ON_ALLOC, name_and_answer(&w, &lab));
    CALLS(&w, ON_ALLOC, turn_through_everything(&w, &lab));
    CALLS(&w, ON_ALLOC, grow(&lab));
    for (int i = 0; i < 300; i++)
        put(&w, &lab, "what is restored, with more bytes than a place has room for", .delay_ns = 9);
    memory_close(&w, &lab);
    if (disk != NULL) {
        memory_open(&w, &lab, memory_store_new(disk));
        cr_expect_eq(lab_stats(&lab).restored, 300u);
        memory_close(&w, &lab);
    }
    free(lab.state);
    world_end(&w);
}

LAB_TEST(hooks, of_memory_are_not_called_under_the_timelines_lock)
{
    with_memory_of_its_own(NULL);
}

Test(hooks, of_memory_are_not_called_under_it_with_a_store_either, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);

    with_memory_of_its_own(disk);
    memory_disk_free(disk);
}
