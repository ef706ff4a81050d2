/* Kept keys that the store is to forget while a program that has started is still reading: the
 * batch that says so is on its way when the store shows them. */
#include "lab/shop.h"

#include <stdatomic.h>
#include <stdio.h>

#define KEYS    200   /* in each part of the table some: each batch forgets some of what is left */
#define OTHERS  1200u /* more than two pages */
#define KEEP_NS 1000
#define LATER   DUE_S(1)

static const struct due_store_verbs *own_verbs;
static atomic_bool in_air;          /* a batch was sent, and its answer has not been asked for */
static atomic_bool read_in_air;     /* kept keys were read meanwhile */
static _Atomic(due_queue *) filled; /* is given a job while a batch lands; or NULL */

static int put_one(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = LATER };

    return due_enqueue(q, &spec, 0, NULL);
}

static int send_it(due_store *s, uint64_t number, int64_t until_ns)
{
    in_air = true;
    return own_verbs->send(s, number, until_ns);
}

static int commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                  int64_t until_ns)
{
    due_queue *q = filled;

    if (q != NULL)
        cr_assert_eq(put_one(q), 0);
    in_air = false;
    return own_verbs->commit(s, changes, n, number, until_ns);
}

static int keys(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                int64_t until_ns)
{
    if (in_air)
        read_in_air = true;
    return own_verbs->keys(s, rewind, max, visit, ctx, until_ns);
}

static struct due_store_verbs verbs_of(struct memory_disk *disk)
{
    due_store *any = memory_store_new(disk);

    own_verbs = any->verbs;
    any->verbs->free(any);
    struct due_store_verbs verbs = *own_verbs;
    verbs.send = send_it;
    verbs.commit = commit;
    verbs.keys = keys;
    return verbs;
}

/* Jobs with keys are due, many others are not, and the program has died. */
static struct shop stored(void)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);
    char key[16];

    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        cr_assert_eq(shop_put(&s, key, "tea", NULL, (due_spec){ .at_ns = 1, KEEPS(KEEP_NS) }), 0);
    }
    for (uint32_t i = 0; i < OTHERS; i++)
        cr_assert_eq(put_one(s.lab.q), 0);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    shop_die(&s);
    return s;
}

/* All with keys are done, and the time of these is over, when no more than a page was read. */
static void take_those_with_keys(struct shop *s)
{
    memory_store_until(s->store, MEMORY_LOAD, 2);
    for (int i = 0; i < KEYS; i++) {
        due_job job;

        cr_assert_eq(due_dequeue(s->lab.q, &job, DUE_S(30)), 0);
        due_job_done(&job);
    }
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    lab_advance(&s->lab, 2 * KEEP_NS);
    cr_assert_eq(lab_stats(&s->lab).loading, 1);
}

/* Each is forgotten once: the store would say so. */
Test(keys_loading, that_are_being_forgotten_are_not_kept_anew, .timeout = 60)
{
    static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS };

    for (int i = 0; i < 2; i++) {
        struct shop s = stored();
        struct due_store_verbs verbs = verbs_of(s.disk);

        s.store = memory_store_new(s.disk);
        s.store->verbs = &verbs;
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_LOAD,
                                                           .call = 2,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_AWAY });
        s.lab = lab_open(.start_ns = 5, .with.store = s.store, .with.proxies = modes[i],
                         .with.confirm = DUE_CONFIRM_ASYNC);
        take_those_with_keys(&s);
        read_in_air = false;
        filled = s.lab.q;
        cr_assert_eq(put_one(s.lab.q), 0);
        memory_store_forgive(s.store);
        shop_wait_loaded(&s);
        filled = NULL;
        cr_expect(read_in_air, "this proves nothing");
        for (int n = 0; n < 40; n++) {
            cr_assert_eq(put_one(s.lab.q), 0);
            cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        }
        cr_expect_eq(memory_disk_keys(s.disk), 0u);
        shop_close(&s);
    }
}
