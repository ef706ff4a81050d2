/* What is stored cannot be read: why is said once, and once that it was read after all. */
#include "lab/shop.h"

#include <string.h>

#define JOBS 3

static struct heard {
    atomic_uint errors;
    atomic_uint after_all;
} heard;

static void on_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    if (strstr(text, "not all that is stored can be read") != NULL && level == DUE_LOG_ERROR)
        atomic_fetch_add(&heard.errors, 1);
    if (strstr(text, "has been read after all") != NULL && level == DUE_LOG_INFO)
        atomic_fetch_add(&heard.after_all, 1);
}

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

static const struct lab_options heeded = { .start_ns = 5,
                                           .with.on_log = on_log,
                                           .with.on_discard = on_discard,
                                           .with.store_timeout_ns = DUE_S(30) };

static struct shop shop_with_jobs(void)
{
    struct shop s = shop_new(NULL, heeded);

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 1);
    shop_die(&s);
    cr_expect_eq(atomic_load(&heard.errors) + atomic_load(&heard.after_all), 0u, "it was read");
    return s;
}

/* The next calls of @verb have that answer; and from then on, if @until_told, one error more was
 * told. */
static void answer(struct shop *s, enum memory_verb verb, uint64_t times, int rc)
{
    memory_store_fault(
        s->store,
        (struct memory_fault){ .verb = verb, .times = times, .kind = MEMORY_ANSWER, .answer = rc });
}

static void until_told(unsigned errors)
{
    while (atomic_load(&heard.errors) < errors)
        crew_sleep(DUE_MS(1));
}

static void open_with(struct shop *s, enum memory_verb verb, int rc)
{
    s->store = memory_store_new(s->disk);
    answer(s, verb, MEMORY_ALWAYS, rc);
    struct lab_options with = heeded;

    with.with.size = sizeof(due_options);
    with.with.store = s->store;
    s->lab = lab_open_with(&with);
}

static void expect_heard(unsigned errors, unsigned after_all)
{
    cr_expect_eq(atomic_load(&heard.errors), errors);
    cr_expect_eq(atomic_load(&heard.after_all), after_all);
}

static void check(enum memory_verb verb)
{
    struct shop s = shop_with_jobs();
    due_info info;

    open_with(&s, verb, DUE_ECORRUPT);
    until_told(1);
    memory_store_until(s.store, verb, memory_store_calls(s.store, verb) + 2); /* tried again */
    expect_heard(1, 0);
    due_id none = { .byte = { 1 } };
    cr_expect_neq(due_find(s.lab.q, none, &info), 0);
    memory_store_forgive(s.store);
    answer(&s, verb, MEMORY_ALWAYS, DUE_EACCES);
    until_told(2);
    expect_heard(2, 0);
    memory_store_forgive(s.store);
    shop_wait_loaded(&s);
    while (atomic_load(&heard.after_all) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea tea tea");
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    expect_heard(2, 1);
    shop_close(&s);
    expect_heard(2, 1);
}

Test(proxy, says_once_what_keeps_it_from_reading_jobs, .timeout = 60)
{
    check(MEMORY_LOAD);
}

Test(proxy, says_once_what_keeps_it_from_reading_kept_keys, .timeout = 60)
{
    check(MEMORY_KEYS);
}

/* A store that is only away is waited for, and nothing is said of that. */
Test(proxy, does_not_say_that_a_store_is_away, .timeout = 60)
{
    struct shop s = shop_with_jobs();

    s.store = memory_store_new(s.disk);
    shop_fail(&s, MEMORY_LOAD, 2, MEMORY_AWAY);
    struct lab_options with = heeded;
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    shop_wait_loaded(&s);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea tea tea");
    expect_heard(0, 0);
    shop_close(&s);
}
