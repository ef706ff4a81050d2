/* Who waits for the store sends what is there himself, and does not wait for a proxy that sleeps;
 * but while what is stored is read he leaves it to the proxy, once that is owed a page. */
#include "lab/shop.h"

#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define ROOM 10 /* bytes that may be on their way */

static const struct due_store_verbs *real;
static atomic_uint by_us;            /* changes that this thread has sent */
static atomic_uint by_others;        /* and others */
static _Thread_local bool is_caller; /* this thread is the test's */

static int count_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                        int64_t until_ns)
{
    int rc = real->commit(s, changes, n, number, until_ns);

    if (rc == 0)
        atomic_fetch_add(is_caller ? &by_us : &by_others, (unsigned)n);
    return rc;
}

struct desk {
    struct shop s;
    struct due_store_verbs verbs;
    due_queue *q;
    struct due__commits *c;
};

static due_spec of_bytes(size_t len)
{
    return (due_spec){ DUE_SPEC_INIT, .data = "0123456789", .len = len, .at_ns = 1000,
                       .flags = DUE_SPEC_AT };
}

/* @n jobs of @len bytes wait to be sent, and nobody was called for that. */
static void desk_open(struct desk *d, unsigned n, size_t len, struct lab_options with)
{
    due_spec spec = of_bytes(len);

    *d = (struct desk){ .s.disk = memory_disk_new(NULL) };
    due_store *store = memory_store_new(d->s.disk);
    real = store->verbs;
    d->verbs = *real;
    store->verbs->free(store);
    d->verbs.commit = count_commit;
    d->verbs.prepare = NULL;
    with.start_ns = 1;
    with.with.confirm = DUE_CONFIRM_ASYNC;
    with.with.store_timeout_ns = DUE_S(20);
    shop_begin(&d->s, with, &d->verbs);
    shop_wait_loaded(&d->s);
    d->q = d->s.lab.q;
    d->c = d->q->commits;
    crew_until_others_asleep();
    is_caller = true;
    atomic_store(&by_us, 0);
    atomic_store(&by_others, 0);
    due__lock_acquire(&d->c->key);
    for (; n > 0; n--)
        cr_assert_eq(due_enqueue(d->q, &spec, 0, NULL), 0);
    due__lock_release(&d->c->key); /* it leaves the knock */
}

static void desk_close(struct desk *d)
{
    cr_expect_eq(due_flush(d->q, DUE_S(20)), 0);
    is_caller = false;
    shop_close(&d->s);
}

Test(sender_self, who_flushes_sends_what_waits, .timeout = 60)
{
    struct desk d;

    desk_open(&d, 3, 1, (struct lab_options){ .kernel = false });
    cr_expect_eq(due_flush(d.q, DUE_S(20)), 0);
    cr_expect_eq(atomic_load(&by_us), 3u);
    desk_close(&d);
}

/* Bytes, or changes. */
Test(sender_self, who_waits_for_room_sends_what_takes_it, .timeout = 60)
{
    for (int changes = 0; changes < 2; changes++) {
        struct desk d;
        due_spec spec = of_bytes(1);
        struct lab_options with = { .kernel = false };

        if (changes)
            with.with.unsettled_max = 1;
        else
            with.with.unsettled_bytes_max = ROOM;
        desk_open(&d, changes ? 2 : 1, ROOM, with);
        cr_expect_eq(due_enqueue(d.q, &spec, DUE_S(20), NULL), 0, "%d", changes);
        cr_expect_eq(atomic_load(&by_us), changes ? 2u : 1u, "%d", changes);
        desk_close(&d);
    }
}

Test(sender_self, who_could_send_leaves_it_to_a_proxy_that_is_owed_a_page, .timeout = 60)
{
    static const struct {
        uint32_t since;
        enum due__reading reader;
        bool self;
    } rows[] = { { DUE__PAGE_JOBS / 2 - 1, DUE__READER_JOBS, true },
                 { DUE__PAGE_JOBS / 2, DUE__READER_JOBS, false },
                 { DUE__PAGE_JOBS / 2, DUE__READER_SERVING, true },
                 { 0, DUE__READER_JOBS, true } };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk d;

        desk_open(&d, 1, 1, (struct lab_options){ .kernel = false });
        due__store_relaxed(&d.c->since_page, rows[i].since);
        due__store_seq(&d.c->reader, rows[i].reader);
        cr_expect_eq(due_flush(d.q, DUE_S(20)), 0);
        cr_expect_eq(atomic_load(&by_us), (unsigned)rows[i].self, "row %zu", i);
        cr_expect_eq(atomic_load(&by_others), (unsigned)!rows[i].self, "row %zu", i);
        while (due__load_seq(&d.c->reader) != DUE__READER_SERVING) {
            due__bell_ring(&d.q->enqueue_bell);
            crew_sleep(DUE_MS(1));
        }
        desk_close(&d);
    }
}
