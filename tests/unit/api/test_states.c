/* Each call that names a job, on a job in each state: what it answers; and a call that fails has
 * changed nothing. */
#include "lab/shop.h"
#include "lab/take.h"

enum state { WAITS, READY, LEASED, LENT, DEAD, CANCELLED, ACKED, FREED, STATES };

static const char *const state_names[STATES] = { "waits", "ready",     "leased", "lent",
                                                 "dead",  "cancelled", "acked",  "freed" };

/* ---- The calls ---- */

static int find(due_queue *q, due_id id)
{
    due_info info;
    int rc = due_find(q, id, &info);

    if (rc == 0)
        cr_expect(due_id_equal(info.id, id) && info.len == 3);
    return rc;
}

static int remaining(due_queue *q, due_id id)
{
    int64_t ns = 77;
    int rc = due_remaining(q, id, &ns);

    cr_expect(rc == 0 ? ns == 0 || ns == 50 : ns == 77, "%d: %jd", rc, (intmax_t)ns);
    return rc;
}

static int read_it(due_queue *q, due_id id)
{
    char bytes[4] = "xxx";
    size_t len = 77;
    int rc = due_read(q, id, bytes, 3, &len);

    cr_expect_eq(len, rc == 0 ? 3u : 77u);
    cr_expect_str_eq(bytes, rc == 0 ? "tea" : "xxx");
    return rc;
}

static int cancel(due_queue *q, due_id id)
{
    return due_cancel(q, id, NULL);
}

static int cancel_lent(due_queue *q, due_id id)
{
    due_job job;
    int rc = due_cancel(q, id, &job);

    if (rc == 0) {
        cr_expect(due_id_equal(job.id, id) && job.len == 3 && memcmp(job.data, "tea", 3) == 0);
        due_job_done(&job);
    }
    return rc;
}

static int cancel_batch(due_queue *q, due_id id)
{
    int results[2] = { 77, 77 };
    due_id none = { { 0 } };
    due_id ids[2] = { none, id };
    int n = due_cancel_batch(q, ids, 2, results);

    cr_expect_eq(results[0], DUE_ENOENT);
    cr_expect_eq(n, results[1] == 0);
    return results[1];
}

static int cancel_key(due_queue *q, due_id id)
{
    (void)id;
    return due_cancel_key(q, "k", 1, NULL);
}

static int reschedule(due_queue *q, due_id id)
{
    return due_reschedule(q, id, 500);
}

static int promote(due_queue *q, due_id id)
{
    return due_promote(q, id);
}

static int update(due_queue *q, due_id id)
{
    return due_update(q, id, "cup", 3);
}

static int move_by_amend(due_queue *q, due_id id)
{
    return due_amend(q, id, &(due_spec){ DUE_SPEC_INIT, .delay_ns = 70 }, DUE_SET_TIME);
}

static int set_headers(due_queue *q, due_id id)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.headers = "h", .headers_len = 1) };

    return due_amend(q, id, &spec, DUE_SET_HEADERS);
}

static int limit(due_queue *q, due_id id)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.ttl_ns = 1000000) };

    return due_amend(q, id, &spec, DUE_SET_LIMIT);
}

static int kick(due_queue *q, due_id id)
{
    return due_kick(q, id);
}

static int id_of_key(due_queue *q, due_id id)
{
    due_id is;
    int rc = due_id_of_key(q, "k", 1, &is);

    cr_expect(rc != 0 || due_id_equal(is, id));
    return rc;
}

#define GONE DUE_ENOENT, DUE_ENOENT, DUE_ENOENT

static const struct {
    const char *name;
    int (*call)(due_queue *q, due_id id);
    int rc[STATES];
} calls[] = {
    { "find", find, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "remaining", remaining, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "read", read_it, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "cancel", cancel, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "cancel, lent", cancel_lent, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "cancel_batch", cancel_batch, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "cancel_key", cancel_key, { 0, 0, DUE_EBUSY, DUE_ENOENT, 0, GONE } },
    { "reschedule", reschedule, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "promote", promote, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "update", update, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "amend, time", move_by_amend, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "amend, headers", set_headers, { 0, 0, DUE_EBUSY, DUE_EBUSY, 0, GONE } },
    { "amend, limit", limit, { 0, 0, DUE_EBUSY, DUE_EBUSY, DUE_ENOENT, GONE } },
    { "kick", kick, { DUE_ENOENT, DUE_ENOENT, DUE_ENOENT, DUE_ENOENT, 0, GONE } },
    { "id_of_key", id_of_key, { 0, 0, 0, DUE_ENOENT, 0, GONE } },
};
#define CALLS (sizeof calls / sizeof calls[0])

/* ---- The states ---- */

static const due_retry never = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

static due_id make(struct lab *lab, enum state state, due_job *job)
{
    due_id id = lab_enqueue(
        lab, "tea", .at_ns = due_now(lab->q) + (state == WAITS ? 50 : 0),
        .more = EXTRA(.key = "k", .key_len = 1, .retry = state == DEAD ? &never : NULL));

    job->queue = NULL;
    if (state == READY)
        cr_assert_eq(due_poll(lab->q, NULL), 1);
    else if (state == LEASED || state == DEAD || state == ACKED)
        cr_assert_eq(take_leased(lab->q, job, 5000, DUE_S(20)), 0);
    else if (state == LENT || state == FREED)
        cr_assert_eq(due_dequeue(lab->q, job, DUE_S(20)), 0);
    else if (state == CANCELLED)
        cr_assert_eq(due_cancel(lab->q, id, NULL), 0);
    if (state == DEAD)
        cr_assert_eq(due_nack(job, 0), 0);
    else if (state == ACKED)
        cr_assert_eq(due_ack(job), 0);
    else if (state == FREED)
        due_job_done(job);
    return id;
}

static bool same(const struct due_stats *a, const struct due_stats *b)
{
    return a->waiting == b->waiting && a->ready == b->ready && a->leased == b->leased &&
           a->dead == b->dead && a->lent == b->lent && a->cancelled == b->cancelled &&
           a->kicked == b->kicked && a->kept_bytes == b->kept_bytes;
}

static void expect_answers(struct lab *lab)
{
    for (enum state state = 0; state < STATES; state++) {
        for (size_t i = 0; i < CALLS; i++) {
            due_job job;
            due_id id = make(lab, state, &job);
            struct due_stats before = lab_stats(lab);
            int rc = calls[i].call(lab->q, id);
            cr_expect_eq(rc, calls[i].rc[state], "%s, %s: %s", calls[i].name, state_names[state],
                         due_error_name(rc));
            struct due_stats after = lab_stats(lab);
            cr_expect(rc == 0 || same(&before, &after), "%s, %s: something has changed",
                      calls[i].name, state_names[state]);
            if (state == LEASED)
                cr_expect_eq(due_ack(&job), 0);
            due_job_done(&job);
            due_clear(lab->q, DUE_ALL_TOPICS, NULL);
            due_clear_dead(lab->q, DUE_ALL_TOPICS, NULL);
            after = lab_stats(lab);
            cr_expect_eq(after.waiting + after.leased + after.dead + after.lent, 0u, "%s, %s",
                         calls[i].name, state_names[state]);
        }
    }
}

LAB_TEST(states, of_a_job_decide_what_each_call_answers)
{
    for (int kind = 0; kind < 3 + (lab_proxies != DUE_PROXIES_NEVER); kind++) {
        struct lab_options how = { .start_ns = 5, .with.size = sizeof(due_options) };
        struct shop s = { .disk = NULL };

        how.with.metrics = kind == 1;
        how.with.capacity = kind == 2 ? 3 : 0;
        if (kind == 3)
            s = shop_new(NULL, how);
        else
            s.lab = lab_open_with(&how);
        expect_answers(&s.lab);
        if (kind == 3)
            shop_close(&s);
        else
            lab_close(&s.lab);
    }
}
