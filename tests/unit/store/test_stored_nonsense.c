/* What a store shows that is no job: it is refused, whatever is wrong with it, and what is just
 * right is not. */
#include "lab/shop.h"

static due_record shown; /* by the store, at its opening, and nothing else */
static int answered;     /* to that */

static int show_it(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                   int64_t until_ns)
{
    (void)store, (void)rewind, (void)max, (void)until_ns;
    answered = visit(ctx, &shown);
    return 0;
}

static due_record tea(void)
{
    return (due_record){ .id.byte = { 0, 1, 2, 3 }, .topic = "", .data = "tea", .len = 3 };
}

/* What is said of a queue of this store's. */
static struct due_stats opened_on(due_record record)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct due_store_verbs verbs;

    shown = record;
    answered = -1;
    s.store = memory_store_new(s.disk);
    verbs = *s.store->verbs;
    verbs.load = show_it;
    s.store->verbs = &verbs;
    s.lab = lab_open(.start_ns = 5, .with.store = s.store);
    shop_wait_loaded(&s);
    struct due_stats of = lab_stats(&s.lab);
    lab_close(&s.lab);
    memory_disk_free(s.disk);
    return of;
}

static void refused(due_record record, const char *why)
{
    struct due_stats s = opened_on(record);

    cr_expect_eq(answered, DUE_ECORRUPT, "%s: %s", why, due_error_name(answered));
    cr_expect_eq(s.waiting + s.dead + s.restored, 0u, "%s", why);
}

static void taken(due_record record, const char *why)
{
    struct due_stats s = opened_on(record);

    cr_expect_eq(answered, 0, "%s: %s", why, due_error_name(answered));
    cr_expect_eq(s.restored, 1u, "%s", why);
    cr_expect_eq(s.waiting, (uint64_t)(record.cause == 0), "%s", why);
    cr_expect_eq(s.dead, (uint64_t)(record.cause != 0), "%s", why);
}

/* The record tea(), with this besides. */
#define WITH(do_with, ...)        \
    do {                          \
        due_record r = tea();     \
        __VA_ARGS__;              \
        do_with(r, #__VA_ARGS__); \
    } while (0)

Test(stored_nonsense, a_record_that_no_job_can_have_is_refused, .timeout = 60)
{
    static char topic[DUE_TOPIC_LENGTH + 2];
    static char large[1];

    memset(topic, 't', DUE_TOPIC_LENGTH + 1);
    WITH(refused, r.until_ns = -1);
    WITH(refused, r.deadline_ns = -1);
    WITH(refused, r.priority = -1);
    WITH(refused, r.priority = 256);
    WITH(refused, r.data = large, r.len = (size_t)DUE_PAYLOAD_MAX + 1);
    WITH(refused, r.data = NULL, r.len = 1);
    WITH(refused, r.topic = NULL);
    WITH(refused, r.topic = topic);
    WITH(refused, r.cause = DUE_CAUSE_EXPIRED + 1, r.died_ns = 1);
    WITH(refused, r.cause = DUE_CAUSE_BURIED, r.died_ns = -1);
    WITH(refused, r.ttl_ns = -1);
    WITH(refused, r.ttl_ns = 1, r.expires_ns = 1);
    WITH(refused, r.group = "g");
    WITH(refused, r.key_len = 1);
    WITH(refused, r.headers_len = 1);
}

Test(stored_nonsense, a_record_that_a_job_can_just_have_is_taken, .timeout = 60)
{
    static char topic[DUE_TOPIC_LENGTH + 1];

    memset(topic, 't', DUE_TOPIC_LENGTH);
    WITH(taken, (void)0);
    WITH(taken, r.priority = 255, r.until_ns = DUE_FOREVER, r.deadline_ns = DUE_FOREVER);
    WITH(taken, r.data = NULL, r.len = 0);
    WITH(taken, r.topic = topic);
    WITH(taken, r.cause = DUE_CAUSE_EXPIRED, r.died_ns = 0);
    WITH(taken, r.cause = DUE_CAUSE_BURIED, r.died_ns = DUE_FOREVER);
    WITH(taken, r.expires_ns = 1000);
    WITH(taken, r.key = "k", r.key_len = 1);
}
