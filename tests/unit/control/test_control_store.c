/* test_control_store.c - what a control socket answers where the store is slow, silent, or told of
 * changes that nobody waits for.
 */
#include "unit/control/control_desk.h"

/* Stored, on a clock that goes by itself: on it time passes for who waits for the store. */
static struct desk stored_desk(enum due_confirm confirm, int64_t store_timeout_ns)
{
    struct desk d =
        desk_with(true, (struct lab_options){ .kernel = true,
                                              .with.clock = DUE_CLOCK_MONOTONIC,
                                              .with.confirm = confirm,
                                              .with.store_timeout_ns = store_timeout_ns });

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    return d;
}

/* No change is stored from here on, until the limiter is opened. */
static struct memory_limiter *silence(struct desk *d)
{
    struct memory_limiter *limiter = memory_limiter_new(d->shop.disk);

    memory_store_fault(d->shop.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                             .times = MEMORY_ALWAYS,
                                                             .kind = MEMORY_BLOCK,
                                                             .limiter = limiter });
    return limiter;
}

static void speak(struct desk *d, struct memory_limiter *limiter)
{
    memory_store_forgive(d->shop.store);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(desk_queue(d), DUE_S(30)), 0);
    memory_limiter_free(limiter);
}

/* ---- Changes that nobody waits for ----------------------------------------------------------- */

/* The answer comes when the store has it, also of a queue whose callers do not wait. */
Test(control_store, has_what_is_answered_with_ok, .timeout = 60)
{
    struct desk d = stored_desk(DUE_CONFIRM_ASYNC, 0);

    shop_slow(&d.shop, MEMORY_COMMIT, 50000);
    desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":3600000000000,\"len\":0}]}");
    due_id id = desk_id(&d);
    cr_expect(memory_disk_find(d.shop.disk, id, NULL), "put: %s", d.answer);
    desk_ends(&d, "DUE_OK");
    desk_name(&d, "cancel", id, "");
    cr_expect(!memory_disk_find(d.shop.disk, id, NULL), "cancel: %s", d.answer);
    desk_ends(&d, "DUE_OK");
    id = lab_enqueue(desk_lab(&d), "tea", .delay_ns = DUE_S(3600));
    desk_ask(&d, "{\"verb\":\"clear\"}");
    cr_expect(!memory_disk_find(d.shop.disk, id, NULL), "clear: %s", d.answer);
    desk_ends(&d, "DUE_OK");
    memory_store_forgive(d.shop.store);
    desk_close(&d);
}

/* What the store was silent about has an id, and no OK; and nothing in the answer says that it may
 * be put again. */
Test(control_store, says_that_it_is_in_doubt_while_it_is_silent, .timeout = 120)
{
    struct desk d = stored_desk(DUE_CONFIRM_ASYNC, 0);
    struct memory_limiter *limiter = silence(&d);

    desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":3600000000000,\"len\":0},"
                 "{\"delay_ns\":3600000000000,\"len\":0}]}");
    cr_expect_eq(desk_count(&d, "\"result\":\"DUE_EINDOUBT\""), 2u, "%s", d.answer);
    desk_says_not(&d, "DUE_OK");
    desk_ends(&d, "DUE_EINDOUBT");
    (void)lab_find(desk_lab(&d), desk_id(&d));
    speak(&d, limiter);
    desk_close(&d);
}

/* ---- A store that is silent ------------------------------------------------------------------ */

/* {"verb":VERB,"ids":[...]MORE}; free() it. */
static char *line_of(const char *verb, const due_id *ids, size_t n, const char *more)
{
    char *line = malloc(128 + n * (DUE_ID_TEXT + 3));
    size_t at = (size_t)sprintf(line, "{\"verb\":\"%s\",\"ids\":[", verb);
    char text[DUE_ID_TEXT];

    for (size_t i = 0; i < n; i++)
        at +=
            (size_t)sprintf(line + at, "%s\"%s\"", i == 0 ? "" : ",", due_id_format(ids[i], text));
    sprintf(line + at, "]%s}", more);
    return line;
}

enum { MANY = 200 };

static void ignore_cancelled(void *ctx, due_queue *q, const due_job *job)
{
    (void)ctx;
    (void)q;
    (void)job;
}

/* It is waited for once, and not for each job that is named. */
static void silent_once(const char *verb, const char *more, bool hook)
{
    struct desk d = desk_with(true, (struct lab_options){ .kernel = true,
                                                          .with.clock = DUE_CLOCK_MONOTONIC,
                                                          .with.store_timeout_ns = DUE_MS(200) });
    bool drop = strcmp(verb, "drop") == 0 || strcmp(verb, "kick") == 0;
    due_id ids[MANY];
    due_job job;

    for (int i = 0; i < MANY; i++) {
        ids[i] = lab_enqueue(desk_lab(&d), "tea", .delay_ns = drop ? 0 : DUE_S(3600));
        if (!drop)
            continue;
        cr_assert_eq(due_reserve(desk_queue(&d), &job, DUE_S(10)), 0);
        cr_assert_eq(due_bury(&job, "hot"), 0);
    }
    cr_assert_eq(due_flush(desk_queue(&d), DUE_S(30)), 0);
    desk_serve(&d, 0, (due_control_options){ .on_cancel = hook ? ignore_cancelled : NULL });
    struct memory_limiter *limiter = silence(&d);
    char *line = line_of(verb, ids, MANY, more);
    int64_t from_ns = crew_now_ns();
    desk_ask(&d, line);
    int64_t took_ns = crew_now_ns() - from_ns;
    free(line);
    cr_expect(took_ns < MANY * DUE_MS(200) / 2, "%s: %lld ms", verb, (long long)took_ns / 1000000);
    cr_expect_eq(desk_count(&d, "\"id\":"), (unsigned)MANY, "%s", verb);
    desk_says_not(&d, "\"result\":\"DUE_OK\"");
    speak(&d, limiter);
    desk_close(&d);
}

Test(control_silent_store, is_waited_for_once_by_a_promote, .timeout = 120)
{
    silent_once("promote", "", false);
}

Test(control_silent_store, is_waited_for_once_by_a_reschedule, .timeout = 120)
{
    silent_once("reschedule", ",\"delay_ns\":5000000000000", false);
}

Test(control_silent_store, is_waited_for_once_by_a_kick, .timeout = 120)
{
    silent_once("kick", "", false);
}

Test(control_silent_store, is_waited_for_once_by_a_drop, .timeout = 120)
{
    silent_once("drop", "", false);
}

Test(control_silent_store, is_waited_for_once_by_a_cancel, .timeout = 120)
{
    silent_once("cancel", "", false);
}

Test(control_silent_store, is_waited_for_once_by_a_cancel_that_is_shown, .timeout = 120)
{
    silent_once("cancel", "", true);
}
