/* lab.c - a queue on a clock turned by hand, whose memory is counted. */
#if __has_include(<criterion/criterion.h>)
#include "lab/lab.h"
#include "lab/rest.h"
#include "lab/sound.h"
#include "lab/take.h"
#include "lab/watch.h"

#include <stdio.h>
#include <stdlib.h>

int lab_proxies = -1;

static void copy_text(char *to, const void *data, size_t len)
{
    size_t n = len < LAB_TEXT - 1 ? len : LAB_TEXT - 1;

    if (n > 0)
        memcpy(to, data, n);
    to[n] = '\0';
}

static void on_discard(void *ctx, const due_job *job)
{
    struct lab_state *state = ctx;

    state->last_discarded = *job;
    copy_text(state->discarded_text, job->data, job->data != NULL ? job->len : 0);
    atomic_fetch_add(&state->discarded, 1);
}

static void *lab_alloc(void *memory, size_t size)
{
    watch_memory();
    return flaky_alloc(memory, size);
}

struct lab lab_open_with(const struct lab_options *options)
{
    struct lab lab = { .state = calloc(1, sizeof *lab.state) };
    due_options with = options->with;
    due_error error = { .text = "" };

    cr_assert_not_null(lab.state);
    flaky_init(&lab.state->memory, FLAKY_NEVER);
    lab.state->memory.hooks.alloc = lab_alloc;
    with.allocator = &lab.state->memory.hooks;
    if (lab_proxies >= 0)
        with.proxies = (enum due_proxies)lab_proxies;
    lab.state->own_discard = with.on_discard != NULL;
    if (with.on_discard == NULL) {
        cr_assert(with.on_log == NULL && with.on_thread_start == NULL, "bring on_discard too");
        with.on_discard = on_discard;
        with.ctx = lab.state;
    }
    if (!options->kernel) {
        lab.clock = options->clock != NULL ? options->clock : due_clock_manual(options->start_ns);
        cr_assert_not_null(lab.clock);
        with.manual = lab.clock;
    }
    int rc = due_open(&lab.q, &with, &error);
    cr_assert_eq(rc, 0, "%s: %s", due_error_name(rc), error.text);
    if (options->clock != NULL)
        lab.clock = NULL;
    watch_begin(lab.q);
    return lab;
}

/* What is counted is what there is. */
static void expect_sound(struct lab *lab, const char *when)
{
    const char *text = sound_wrong(lab->q);

    cr_expect_null(text, "%s: %s", when, text);
}

void lab_close(struct lab *lab)
{
    expect_sound(lab, "before the close");
    int rc = due_close(lab->q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));

    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.enqueued,
                 s.dequeued + s.cancelled + s.discarded + s.acked + s.kept + s.leased +
                     s.dead, /* a dead job stays in the store */
                 "%ju %ju %ju %ju", (uintmax_t)s.enqueued, (uintmax_t)s.dequeued,
                 (uintmax_t)s.cancelled, (uintmax_t)s.discarded);
    cr_expect_eq(s.waiting, 0u);
    cr_expect_eq(s.lent, 0u);
    cr_expect_eq(s.mended, 0u);
    if (!lab->state->own_discard && getenv("LAB_STORED") == NULL) /* else others' are shown, too */
        cr_expect_eq(atomic_load(&lab->state->discarded), s.discarded);
    const char *left = rest_wrong(lab->q);
    cr_expect_null(left, "%s", left);
    expect_sound(lab, "closed");
    watch_end(lab->q);

    rc = due_free(lab->q);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(due_clock_free(lab->clock), 0);
    cr_expect_eq(atomic_load(&lab->state->memory.live), 0u, "%zu blocks leaked",
                 atomic_load(&lab->state->memory.live));
    cr_expect_eq(atomic_load(&lab->state->memory.bad), 0u, "a free of a wrong size or block");
    free(lab->state);
    lab->q = NULL;
}

due_id lab_enqueue_spec(struct lab *lab, const char *text, due_spec spec)
{
    due_id id;

    if (text != NULL) {
        spec.data = text;
        spec.len = strlen(text);
    }
    int rc = due_enqueue(lab->q, &spec, 0, &id);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return id;
}

int lab_put_key(struct lab *lab, const char *key, enum due_key_policy policy, const char *text,
                due_id *id, due_spec spec)
{
    due_extra more = spec.more != NULL ? *spec.more : (due_extra){ DUE_EXTRA_INIT };

    more.key = key;
    more.key_len = strlen(key);
    more.on_key = policy;
    spec.size = sizeof spec;
    spec.more = &more;
    spec.data = text;
    spec.len = strlen(text);
    return due_enqueue(lab->q, &spec, 0, id);
}

const char *lab_text(struct lab *lab, due_job *job)
{
    char *answer = lab->state->answer[lab->state->answers++ % LAB_ANSWERS];

    copy_text(answer, job->data, job->data != NULL ? job->len : 0);
    due_job_done(job);
    return answer;
}

static const char *taken(struct lab *lab, int rc, due_job *job)
{
    if (rc == DUE_EAGAIN)
        return NULL;
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_leq(job->deadline_ns, due_now(lab->q));
    cr_expect_geq(job->lateness_ns, 0);
    return lab_text(lab, job);
}

#define LAB_FLUSH_NS DUE_S(5)

int lab_take(struct lab *lab, due_job *job)
{
    int rc = due_dequeue(lab->q, job, 0);

    if (rc == DUE_EAGAIN && due_flush(lab->q, LAB_FLUSH_NS) == 0)
        rc = due_dequeue(lab->q, job, 0);
    return rc;
}

int lab_reserve(struct lab *lab, due_job *job, int64_t lease_ns)
{
    int rc = take_leased(lab->q, job, lease_ns, 0);

    if (rc == DUE_EAGAIN && due_flush(lab->q, LAB_FLUSH_NS) == 0)
        rc = take_leased(lab->q, job, lease_ns, 0);
    return rc;
}

const char *lab_dequeue(struct lab *lab)
{
    due_job job;
    int rc = lab_take(lab, &job);

    return taken(lab, rc, &job);
}

const char *lab_dequeue_from(struct lab *lab, int topic)
{
    due_job job;
    int rc = take_from(lab->q, &topic, 1, &job, 0);

    if (rc == DUE_EAGAIN && due_flush(lab->q, LAB_FLUSH_NS) == 0)
        rc = take_from(lab->q, &topic, 1, &job, 0);
    return taken(lab, rc, &job);
}

const char *lab_dequeue_all(struct lab *lab)
{
    char *answer = lab->state->answer[lab->state->answers++ % LAB_ANSWERS];
    size_t at = 0;
    due_job job;

    answer[0] = '\0';
    while (lab_take(lab, &job) == 0) {
        int n = snprintf(answer + at, LAB_TEXT - at, "%s%.*s", at > 0 ? " " : "", (int)job.len,
                         job.data != NULL ? (const char *)job.data : "");

        at = at + (size_t)n < LAB_TEXT ? at + (size_t)n : LAB_TEXT - 1;
        due_job_done(&job);
    }
    return answer;
}

static due_clock *clock_of(struct lab *lab)
{
    cr_assert_not_null(lab->clock, "this lab's clock cannot be turned by hand");
    return lab->clock;
}

void lab_turn_to(struct lab *lab, int64_t to_ns)
{
    cr_assert_eq(due_clock_turn_to(clock_of(lab), to_ns), 0);
}

void lab_advance(struct lab *lab, int64_t by_ns)
{
    cr_assert_eq(due_clock_advance(clock_of(lab), by_ns), 0);
}

int lab_topic(struct lab *lab, const char *name)
{
    int topic = due_topic(lab->q, name);

    cr_assert_geq(topic, 0, "%s", due_error_name(topic));
    return topic;
}

struct due_stats lab_stats(struct lab *lab)
{
    struct due_stats s;

    cr_assert_eq(due_stats_read(lab->q, &s), 0);
    return s;
}

due_info lab_find(struct lab *lab, due_id id)
{
    due_info info;
    int rc = due_find(lab->q, id, &info);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return info;
}

void lab_each_mode(void (*test)(void))
{
    const char *only = getenv("LAB_PROXIES");
    const int modes = getenv("LAB_STORED") != NULL ? 2 : 3; /* a stored queue has its proxies */

    for (int mode = 0; mode < modes; mode++) {
        if (only != NULL && strcmp(only, crew_mode_names[mode]) != 0)
            continue;
        lab_proxies = mode;
        test();
    }
    lab_proxies = -1;
}
#else
extern int lab_needs_criterion;
#endif
