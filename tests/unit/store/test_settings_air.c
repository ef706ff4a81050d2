/* What holds back topics, while something else is on its way to the store, or comes from it. */
#include "lab/redis/stored_both.h"

#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

static bool is_paused(struct shop *s, const char *topic)
{
    return memory_disk_setting(s->disk, topic, NULL);
}

/* ---- Behind many jobs ------------------------------------------------------------------------ */

static int pause_topic(void *arg)
{
    struct shop *s = arg;

    return due_pause(s->lab.q, 0);
}

static const struct due_store_verbs *own;
static uint64_t told_in; /* the first batch that tells of a topic */

static int commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                  int64_t until_ns)
{
    if (changes[0].kind == DUE_CHANGE_TOPIC && told_in == 0)
        told_in = number;
    return own->commit(store, changes, n, number, until_ns);
}

/* A queue on a store that has this verb of its own. */
static struct shop shop_with(struct memory_disk_options disk, struct lab_options with,
                             struct due_store_verbs *verbs)
{
    struct shop s = { .where = IN_MEMORY, .disk = memory_disk_new(&disk) };
    struct due_store_verbs theirs = *verbs;

    s.store = memory_store_new(s.disk);
    own = s.store->verbs;
    *verbs = *own;
    if (theirs.commit != NULL)
        verbs->commit = theirs.commit;
    if (theirs.topics != NULL)
        verbs->topics = theirs.topics;
    s.store->verbs = verbs;
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    return s;
}

/* Batches are sent one right after another, and there may always be one more: a pause does not wait
 * for that. */
static void goes_first(size_t batch, unsigned jobs, enum due_proxies proxies)
{
    struct due_store_verbs verbs = { .commit = commit };
    struct lab_options with = AT(5);
    struct crew_thread pauser;

    with.with.confirm = DUE_CONFIRM_ASYNC;
    with.with.proxies = proxies;
    struct shop s = shop_with((struct memory_disk_options){ .batch_changes = batch }, with, &verbs);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    memory_limiter_reached(limiter, 1);
    uint64_t blocked = memory_disk_batches(s.disk) + 1;
    for (unsigned i = 0; i < jobs; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    crew_go(&pauser, pause_topic, &s);
    crew_until_asleep(&pauser);
    cr_expect(!is_paused(&s, ""));
    memory_limiter_open(limiter);
    cr_expect_eq(crew_join(&pauser), 0);
    cr_expect(told_in > blocked && told_in <= blocked + 2, "batch %llu, and %llu stood",
              (unsigned long long)told_in, (unsigned long long)blocked);
    cr_expect_eq(shop_stored(&s), jobs + 1);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    memory_limiter_free(limiter);
    shop_close(&s);
}

Test(settings_air, a_pause_goes_before_the_jobs_that_wait, .timeout = 60)
{
    goes_first(4, 60, DUE_PROXIES_ADAPTIVE);
}

Test(settings_air, a_pause_goes_before_ten_thousand, .timeout = 60)
{
    goes_first(64, 10000, DUE_PROXIES_ADAPTIVE);
}

Test(settings_air, a_pause_goes_first_where_every_change_goes_by_the_proxy, .timeout = 60)
{
    goes_first(4, 60, DUE_PROXIES_ALWAYS);
}

/* ---- A loss at the opening ------------------------------------------------------------------- */

static unsigned looks;

/* As a server that falls back to an older state while it is read: what was shown is no more. */
static int shown_then_lost(due_store *store, due_store_visit_topic *visit, void *ctx,
                           int64_t until_ns)
{
    if (looks++ > 0)
        return own->topics(store, visit, ctx, until_ns);
    int rc = visit(ctx, "mail", 1, 3);
    return rc != 0 ? rc : DUE_ELOST;
}

/* What the queue goes by is in the store from then on. */
Test(settings_air, what_was_shown_before_a_loss_is_told_again, .timeout = 60)
{
    struct due_store_verbs verbs = { .topics = shown_then_lost };
    struct shop s = shop_with((struct memory_disk_options){ .batch_changes = 0 }, AT(5), &verbs);
    int64_t limit = 0;

    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect(is_paused(&s, "mail"));
    cr_expect(memory_disk_setting(s.disk, "mail", &limit));
    cr_expect_eq(limit, 3);
    shop_close(&s);
}

/* ---- What is to be told again, and is refused ------------------------------------------------ */

/* When everything else is over: it is tried again soon, though nobody asks. */
static void tried_again(enum memory_verb refused)
{
    struct shop s = { .where = IN_MEMORY, .disk = memory_disk_new(NULL) };

    shop_open(&s, AT(5));
    struct due__commits *c = s.lab.q->commits;
    cr_expect_eq(due_pause(s.lab.q, 0), 0);
    memory_store_fault(
        s.store, (struct memory_fault){
                     .verb = refused, .times = 2, .kind = MEMORY_ANSWER, .answer = DUE_EACCES });
    uint64_t before = memory_disk_batches(s.disk);
    due__lock_acquire(&c->key);
    due__settings_again(c);
    due__store_seq(&c->lacking, 1); /* G2 */
    due__lock_release(&c->key);
    due__proxy_call(s.lab.q);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect_eq(memory_disk_batches(s.disk), before + 1);
    cr_expect_eq(due_resume(s.lab.q, 0), 0);
    shop_close(&s);
}

Test(settings_air, what_cannot_be_shown_again_at_once_is_tried_again, .timeout = 60)
{
    tried_again(MEMORY_TOPICS);
}

Test(settings_air, what_cannot_be_told_again_at_once_is_tried_again, .timeout = 60)
{
    tried_again(MEMORY_COMMIT);
}
