/* shop.h - a queue with a store in memory, whose program can die and start again.
 *
 *     struct shop s = shop_make(.start_ns = 5);
 *     lab_enqueue(&s.lab, "tea", .at_ns = 10);
 *     shop_crash(&s, (struct lab_options){ .start_ns = 20 });
 *     ...
 *     shop_close(&s);
 */
#ifndef SHOP_H
#define SHOP_H

#include "lab/lab.h"
#include "lab/memory_store.h"

struct shop {
    struct memory_disk *disk;
    due_store *store;
    struct lab lab;
};

/* On its disk; the stored jobs are still being read.  @verbs: others than the store's own, or
 * NULL. */
static inline void shop_begin(struct shop *s, struct lab_options with,
                              const struct due_store_verbs *verbs)
{
    s->store = memory_store_new(s->disk);
    if (verbs != NULL)
        s->store->verbs = verbs;
    with.with.size = sizeof(due_options);
    with.with.store = s->store;
    s->lab = lab_open_with(&with);
}

static inline void shop_wait_loaded(struct shop *s)
{
    while (lab_stats(&s->lab).loading)
        crew_sleep(DUE_MS(1));
}

static inline void shop_open(struct shop *s, struct lab_options with)
{
    shop_begin(s, with, NULL);
    shop_wait_loaded(s);
}

/* A new one; @disk NULL: as it comes. */
static inline struct shop shop_new(const struct memory_disk_options *disk, struct lab_options with)
{
    struct shop s = { .disk = memory_disk_new(disk) };

    shop_open(&s, with);
    return s;
}

#define shop_make(...) shop_new(NULL, (struct lab_options){ .kernel = false, __VA_ARGS__ })

/* Everything is as it should be, in the queue and on the disk. */
static inline void shop_close(struct shop *s)
{
    lab_close(&s->lab);
    const char *wrong = memory_disk_wrong(s->disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(s->disk);
}

/* The program dies. */
static inline void shop_die(struct shop *s)
{
    memory_store_crash(s->store);
    lab_close(&s->lab);
}

/* And starts again. */
static inline void shop_crash(struct shop *s, struct lab_options with)
{
    shop_die(s);
    shop_open(s, with);
}

/* A text that is enqueued under a key, without waiting. */
static inline int shop_put(struct shop *s, const char *key, const char *text, due_id *id,
                           due_spec spec)
{
    return lab_put_key(&s->lab, key, DUE_KEY_REFUSE, text, id, spec);
}

/* Its key is kept so long after it is done. */
#define KEEPS(ns) .more = EXTRA(.keep_key_ns = (ns))

/* Under the key "k". */
#define shop_put_as(s, policy, text, id, ...) lab_put_as(&(s)->lab, policy, text, id, __VA_ARGS__)

/* The next @times calls of @verb fail, so or so. */
static inline void shop_fail(struct shop *s, enum memory_verb verb, uint64_t times,
                             enum memory_fault_kind kind)
{
    memory_store_fault(s->store,
                       (struct memory_fault){ .verb = verb, .times = times, .kind = kind });
}

/* All calls of @verb take so long, before they do anything. */
static inline void shop_slow(struct shop *s, enum memory_verb verb, size_t us)
{
    memory_store_fault(
        s->store, (struct memory_fault){
                      .verb = verb, .times = MEMORY_ALWAYS, .kind = MEMORY_SLOW, .count = us });
}

#endif
