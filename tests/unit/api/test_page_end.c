/* Where memory ends: what a call is given, and what it is to fill, stands right before a page that
 * must not be touched.  With a store and without. */
#include <sys/mman.h>
#include <unistd.h>

#include "lab/shop.h"
#include "lab/take.h"

static const size_t counts[] = { 1, 2, 3, 7, 16, 33, 100, 300 };

#define ANY_TIME DUE_S(30)

/* So many bytes, and nothing behind them. */
static void *before_end(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes + page - 1) / page * page;
    unsigned char *memory =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(memory, MAP_FAILED);
    cr_assert_eq(mprotect(memory + room, page, PROT_NONE), 0);
    return memory + room - bytes;
}

/* The same, with bytes that are all different from the next. */
static const unsigned char *text_before_end(size_t bytes)
{
    static unsigned char *text;

    if (text == NULL) {
        text = before_end(DUE_KEY_MAX);
        for (size_t i = 0; i < DUE_KEY_MAX; i++)
            text[i] = (unsigned char)(DUE_KEY_MAX - i);
    }
    return text + DUE_KEY_MAX - bytes;
}

struct desk {
    struct lab *lab;
    size_t n;
    due_spec *specs;
    due_id *ids;
    due_job *jobs;
    int *results;
    int *topics;
};

static struct desk desk_of(struct lab *lab, size_t n)
{
    struct desk d = { .lab = lab,
                      .n = n,
                      .specs = before_end(n * sizeof *d.specs),
                      .ids = before_end(n * sizeof *d.ids),
                      .jobs = before_end(n * sizeof *d.jobs),
                      .results = before_end(n * sizeof *d.results),
                      .topics = before_end(2 * sizeof *d.topics) };

    d.topics[0] = lab_topic(lab, "one");
    d.topics[1] = lab_topic(lab, "other");
    for (size_t i = 0; i < n; i++) {
        size_t len = i % 3 == 0 ? i % 9 : i;

        d.specs[i] = (due_spec){ DUE_SPEC_INIT, .topic = d.topics[i % 2],
                                 .data = len > 0 ? text_before_end(len) : NULL, .len = len };
    }
    return d;
}

static void put(struct desk *d, bool named)
{
    cr_assert_eq(due_enqueue_batch(d->lab->q, d->specs, d->n, ANY_TIME, named ? d->ids : NULL),
                 (int)d->n);
}

static void take(struct desk *d, int64_t lease_ns, bool named)
{
    due_take_options *how = before_end(sizeof *how);

    *how = (due_take_options){ DUE_TAKE_INIT, .lease_ns = lease_ns,
                               .topics = named ? d->topics : NULL, .topic_count = named ? 2 : 0 };
    for (size_t got = 0; got < d->n;) {
        int rc = due_take(d->lab->q, how, d->jobs + got, d->n - got, ANY_TIME);

        cr_assert_gt(rc, 0, "%s", due_error_name(rc));
        got += (size_t)rc;
    }
    for (size_t i = 0; i < d->n; i++) {
        const due_job *job = &d->jobs[i];

        cr_assert(job->len == 0 || memcmp(job->data, text_before_end(job->len), job->len) == 0);
    }
}

/* Of all that wait, or are dead, each once. */
static void expect_listed(struct desk *d, bool dead)
{
    due_info *infos = before_end(d->n * sizeof *infos);
    due_dead *deads = before_end(d->n * sizeof *deads);
    uint64_t cursor = 0;
    size_t listed = 0;
    int rc;

    do {
        rc = dead ? due_list_dead(d->lab->q, &cursor, deads, d->n)
                  : due_list(d->lab->q, &cursor, infos, d->n);
        cr_assert_geq(rc, 0);
        listed += (size_t)rc;
    } while (rc > 0);
    cr_expect_eq(listed, d->n);
}

static void expect_read(struct desk *d)
{
    for (size_t i = 0; i < d->n; i++) {
        size_t len = d->specs[i].len;
        unsigned char *buffer = before_end(len > 0 ? len : 1);
        size_t is = 0;

        cr_assert_eq(due_read(d->lab->q, d->ids[i], buffer, len, &is), 0);
        cr_assert_eq(is, len);
        cr_assert(len == 0 || memcmp(buffer, text_before_end(len), len) == 0, "%zu", i);
    }
}

static void expect_all_zero(const struct desk *d)
{
    for (size_t i = 0; i < d->n; i++)
        cr_assert_eq(d->results[i], 0, "%zu: %s", i, due_error_name(d->results[i]));
}

static void cancelled(struct desk *d)
{
    put(d, true);
    expect_listed(d, false);
    cr_expect_eq(due_cancel_batch(d->lab->q, d->ids, d->n, d->results), (int)d->n);
    expect_all_zero(d);
    cr_expect_eq(due_cancel_batch(d->lab->q, d->ids, d->n, NULL), 0);
}

static void taken(struct desk *d)
{
    for (int named = 0; named < 2; named++) {
        put(d, named);
        take(d, 0, named);
        due_jobs_done(d->jobs, d->n);
        put(d, named);
        take(d, DUE_S(100), named);
        cr_expect_eq(due_ack_batch(d->jobs, d->n, named ? d->results : NULL), (int)d->n);
        expect_all_zero(d);
    }
}

static void buried(struct desk *d)
{
    uint64_t kicked = 0;

    put(d, true);
    take(d, DUE_S(100), true);
    for (size_t i = 0; i < d->n; i++)
        cr_assert_eq(due_bury(&d->jobs[i], "no"), 0);
    cr_assert_eq(due_flush(d->lab->q, ANY_TIME), 0);
    expect_listed(d, true);
    cr_expect_eq(due_kick_all(d->lab->q, DUE_ALL_TOPICS, &kicked), 0);
    cr_expect_eq(kicked, d->n);
    cr_expect_eq(due_clear(d->lab->q, DUE_ALL_TOPICS, NULL), 0);
}

static void all_of(struct lab *lab)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct desk d = desk_of(lab, counts[i]);

        cancelled(&d);
        taken(&d);
        buried(&d);
    }
}

/* Of none at all nothing is touched. */
LAB_TEST(page_end, is_where_nothing_may_stand)
{
    struct lab lab = lab_open();
    due_job job;
    due_spec *specs = before_end(0);
    due_id *ids = before_end(0);
    due_job *jobs = before_end(0);
    int *numbers = before_end(0);
    due_info *infos = before_end(0);
    due_dead *dead = before_end(0);
    uint64_t cursor = 0;

    cr_expect_eq(due_enqueue_batch(lab.q, specs, 0, 0, ids), DUE_EINVAL);
    cr_expect_eq(due_take(lab.q, NULL, jobs, 0, 0), DUE_EINVAL);
    cr_expect_eq(take_some(lab.q, numbers, 0, &job, 1, 0), DUE_EINVAL);
    cr_expect_eq(due_cancel_batch(lab.q, ids, 0, numbers), 0);
    cr_expect_eq(due_ack_batch(jobs, 0, numbers), 0);
    due_jobs_done(jobs, 0);
    cr_expect_eq(due_list(lab.q, &cursor, infos, 0), DUE_EINVAL);
    cr_expect_eq(due_list_dead(lab.q, &cursor, dead, 0), DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(page_end, is_where_what_many_calls_are_given_may_end)
{
    struct lab lab = lab_open();

    all_of(&lab);
    lab_close(&lab);
}

Test(page_end, is_where_what_many_calls_of_a_stored_queue_are_given_may_end, .timeout = 60)
{
    struct shop s = shop_make();

    all_of(&s.lab);
    shop_close(&s);
}

/* ---- Texts ---- */

static void put_and_read(struct lab *lab)
{
    struct desk d = desk_of(lab, 100);

    put(&d, true);
    expect_read(&d);
    for (size_t i = 0; i < d.n; i++) {
        size_t len = (i * 7) % 90;

        d.specs[i].len = len;
        cr_assert_eq(due_update(lab->q, d.ids[i], len > 0 ? text_before_end(len) : NULL, len), 0);
    }
    expect_read(&d);
    cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, NULL), 0);
}

/* A job all of whose parts are so long. */
static void of_length(struct lab *lab, size_t len)
{
    due_extra *more = before_end(sizeof *more);
    due_spec *spec = before_end(sizeof *spec);
    due_id *id = before_end(sizeof *id);
    due_job *job = before_end(sizeof *job);
    const unsigned char *text = text_before_end(len);

    *more = (due_extra){ DUE_EXTRA_INIT,     .key = text,   .key_len = len,  .headers = text,
                         .headers_len = len, .group = text, .group_len = len };
    *spec = (due_spec){ DUE_SPEC_INIT, .data = text, .len = len, .more = more };
    cr_assert_eq(due_enqueue(lab->q, spec, ANY_TIME, id), 0);
    cr_expect_eq(due_enqueue(lab->q, spec, ANY_TIME, id), DUE_EEXIST);
    cr_expect_eq(due_id_of_key(lab->q, text, len, id), 0);
    cr_assert_eq(due_dequeue(lab->q, job, ANY_TIME), 0);
    cr_expect_eq(job->headers_len, len);
    cr_expect_eq(memcmp(job->headers, text, len), 0);
    cr_expect_eq(memcmp(job->data, text, len), 0);
    due_job_done(job);
    cr_expect_eq(due_cancel_key(lab->q, text, len, NULL), DUE_ENOENT);
}

LAB_TEST(page_end, is_where_what_a_job_is_made_of_may_end)
{
    struct lab lab = lab_open();

    put_and_read(&lab);
    for (size_t len = 1; len < 64; len++)
        of_length(&lab, len);
    lab_close(&lab);
}

Test(page_end, is_where_what_a_stored_job_is_made_of_may_end, .timeout = 60)
{
    struct shop s = shop_make();

    put_and_read(&s.lab);
    for (size_t len = 1; len < 64; len += 3)
        of_length(&s.lab, len);
    shop_close(&s);
}
