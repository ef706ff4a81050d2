/* What a call that fails leaves in what it was to fill in: a handle (a queue, a pool, a store, a
 * single job) is NULL or zero, everything else as it was.  Every call with an output meets every
 * situation; each must have failed in those that its row names. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/metrics.h"
#include "due/cron.h"
#include "due/signals.h"
#include "lab/shop.h"

#define BYTES 80000 /* of the largest output */
#define MARK  0xa5

enum situation { EMPTY, TIMED, WRONG, BUSY, FULL, CLOSED, NO_MEMORY, FORKED, AWAY, FENCED, ALL };

static const char *const situation_names[ALL] = {
    "empty", "timed", "wrong", "busy", "full", "closed", "no memory", "forked", "away", "fenced"
};

struct subject {
    due_queue *q;
    due_id id;          /* of a job that is reserved (BUSY), waits (AWAY, FENCED), or is none */
    int64_t timeout_ns; /* WRONG: negative */
    bool wrong;
};

static const due_id none;

/* ---- The calls ---- */

static int open_queue(struct subject *s, void *out)
{
    due_options o = { DUE_OPTIONS_INIT, .name = s->wrong ? "not a name" : "a" };

    return s->wrong ? due_open(out, &o, NULL) : 0;
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx, (void)job;
    *answer = (due_answer){ .kind = DUE_ANSWER_ACK };
}

static int start_workers(struct subject *s, void *out)
{
    due_workers **pool = out;
    int rc = due_workers_start(pool, s->q, NULL, 0, s->wrong ? 0 : 1, handle, NULL, NULL);

    if (rc != 0)
        return rc;
    cr_assert_eq(due_workers_stop(*pool, DUE_FOREVER), 0);
    return due_workers_free(*pool);
}

static int open_signals(struct subject *s, void *out)
{
    return s->wrong ? due_signals_open(out, &(int){ SIGKILL }, 1) : 0;
}

static int cron_next(struct subject *s, void *out)
{
    return due_cron_next(s->wrong ? "0 0 30 2 *" : "@daily", "UTC", 0, out);
}

static int done(int rc, due_job *jobs)
{
    for (int i = 0; i < rc; i++)
        due_job_done(&jobs[i]);
    return rc;
}

static int dequeue(struct subject *s, void *out)
{
    int rc = due_dequeue(s->q, out, s->timeout_ns);

    return rc == 0 ? done(1, out) : rc;
}

static int reserve(struct subject *s, void *out)
{
    int rc = due_reserve(s->q, out, s->timeout_ns);

    return rc == 0 ? done(1, out) : rc;
}

static int take(struct subject *s, void *out)
{
    return done(due_take(s->q, NULL, out, 4, s->timeout_ns), out);
}

static int take_on_lease(struct subject *s, void *out)
{
    due_take_options how = { DUE_TAKE_INIT, .topics = &(int){ 0 }, .topic_count = 1,
                             .lease_ns = 5 };

    return done(due_take(s->q, &how, out, 4, s->timeout_ns), out);
}

static int cancel(struct subject *s, void *out)
{
    int rc = due_cancel(s->q, s->id, out);

    return rc == 0 ? done(1, out) : rc;
}

static int cancel_key(struct subject *s, void *out)
{
    int rc = due_cancel_key(s->q, "k", s->wrong ? 0 : 1, out);

    return rc == 0 ? done(1, out) : rc;
}

/* More bytes than a job's own, so that they take memory. */
static due_spec spec_of(const struct subject *s)
{
    static const char text[70000];

    return (due_spec){ DUE_SPEC_INIT, .data = text, .len = sizeof text,
                       .delay_ns = s->wrong ? -1 : DUE_S(1000) };
}

static int enqueue(struct subject *s, void *out)
{
    due_spec spec = spec_of(s);

    return due_enqueue(s->q, &spec, s->wrong ? 0 : s->timeout_ns, out);
}

static int enqueue_key(struct subject *s, void *out)
{
    due_spec spec = spec_of(s);

    spec.more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE);
    return due_enqueue(s->q, &spec, s->wrong ? 0 : s->timeout_ns, out);
}

static int enqueue_batch(struct subject *s, void *out)
{
    due_spec specs[] = { spec_of(s), spec_of(s), spec_of(s) };

    return due_enqueue_batch(s->q, specs, 3, s->wrong ? 0 : s->timeout_ns, out);
}

static int find_key(struct subject *s, void *out)
{
    return due_id_of_key(s->q, "none", s->wrong ? 0 : 4, out);
}

static int find(struct subject *s, void *out)
{
    return due_find(s->q, s->id, out);
}

static int remaining(struct subject *s, void *out)
{
    return due_remaining(s->q, s->id, out);
}

static int peek(struct subject *s, void *out)
{
    return due_peek(s->q, out);
}

static int list(struct subject *s, void *out)
{
    uint64_t cursor = 0;

    return due_list(s->q, &cursor, out, s->wrong ? 0 : 4);
}

static int list_from(struct subject *s, void *out)
{
    due_info infos[4];

    return due_list(s->q, out, infos, s->wrong ? 0 : 4);
}

static int list_dead(struct subject *s, void *out)
{
    uint64_t cursor = 0;

    return due_list_dead(s->q, &cursor, out, s->wrong ? 0 : 4);
}

static int clear(struct subject *s, void *out)
{
    return due_clear(s->q, s->wrong ? 99 : 0, out);
}

static int clear_dead(struct subject *s, void *out)
{
    return due_clear_dead(s->q, s->wrong ? 99 : 0, out);
}

static int kick_all(struct subject *s, void *out)
{
    return due_kick_all(s->q, s->wrong ? 99 : 0, out);
}

static int cancel_batch(struct subject *s, void *out)
{
    return due_cancel_batch(s->q, &none, s->wrong ? (size_t)INT32_MAX + 1 : 0, out);
}

static int ack_batch(struct subject *s, void *out)
{
    due_job job = { .queue = NULL };

    return due_ack_batch(&job, s->wrong ? (size_t)INT32_MAX + 1 : 0, out);
}

static int stats(struct subject *s, void *out)
{
    return due_stats_read(s->q, out);
}

static int poll(struct subject *s, void *out)
{
    return due_poll(s->q, out);
}

static int topic_stats(struct subject *s, void *out)
{
    return due_topic_stats_read(s->q, s->wrong ? 99 : 0, out);
}

static int durations(struct subject *s, void *out)
{
    due_histogram *two = out;

    return due_topic_durations(s->q, s->wrong ? 99 : 0, two, two + 1);
}

static int metrics(struct subject *s, void *out)
{
    return due_metrics_read(s->q, out);
}

static int census(struct subject *s, void *out)
{
    return due_census(s->q, s->wrong ? 99 : 0, out, DUE_S(1));
}

static int processes(struct subject *s, void *out)
{
    uint64_t cursor = 0;

    return due_processes(s->q, &cursor, out, s->wrong ? 0 : 2, DUE_S(1));
}

static int census_write(struct subject *s, void *out)
{
    return due_census_write(s->q, out, BYTES, s->wrong ? -1 : DUE_S(1));
}

static int metrics_write(struct subject *s, void *out)
{
    return due_metrics_write(s->q, out, BYTES);
}

static int parse(struct subject *s, void *out)
{
    return s->wrong ? due_id_parse("no id", out) : 0;
}

#define IN(situation) (1u << (situation))

static const struct call {
    const char *name;
    int (*run)(struct subject *s, void *out);
    size_t zeroed;  /* bytes of a handle; 0: it stays as it was */
    unsigned fails; /* in these at least */
    bool has_queue; /* of the subject */
} calls[] = {
    { "due_open", open_queue, sizeof(void *), IN(WRONG), false },
    { "due_workers_start", start_workers, sizeof(void *), IN(WRONG) | IN(CLOSED) | IN(NO_MEMORY),
      true },
    { "due_signals_open", open_signals, sizeof(void *), IN(WRONG), false },
    { "due_dequeue", dequeue, sizeof(due_job), IN(EMPTY) | IN(TIMED) | IN(WRONG) | IN(CLOSED),
      true },
    { "due_reserve", reserve, sizeof(due_job), IN(EMPTY) | IN(TIMED) | IN(WRONG) | IN(CLOSED),
      true },
    { "due_take", take, sizeof(due_job), IN(EMPTY) | IN(TIMED) | IN(WRONG) | IN(CLOSED), true },
    { "due_take, on a lease", take_on_lease, sizeof(due_job),
      IN(EMPTY) | IN(TIMED) | IN(WRONG) | IN(CLOSED), true },
    { "due_cancel", cancel, sizeof(due_job), IN(EMPTY) | IN(BUSY) | IN(AWAY) | IN(FENCED), true },
    { "due_cancel_key", cancel_key, sizeof(due_job),
      IN(EMPTY) | IN(WRONG) | IN(BUSY) | IN(AWAY) | IN(FENCED), true },
    { "due_peek", peek, 0, IN(EMPTY), true },
    { "due_enqueue", enqueue, 0,
      IN(WRONG) | IN(FULL) | IN(CLOSED) | IN(NO_MEMORY) | IN(AWAY) | IN(FENCED), true },
    { "due_enqueue, a key", enqueue_key, 0,
      IN(WRONG) | IN(FULL) | IN(CLOSED) | IN(NO_MEMORY) | IN(AWAY) | IN(FENCED), true },
    { "due_enqueue_batch", enqueue_batch, 0,
      IN(WRONG) | IN(FULL) | IN(CLOSED) | IN(NO_MEMORY) | IN(AWAY) | IN(FENCED), true },
    { "due_id_of_key", find_key, 0, IN(EMPTY) | IN(WRONG), true },
    { "due_find", find, 0, IN(EMPTY) | IN(BUSY), true },
    { "due_remaining", remaining, 0, IN(EMPTY) | IN(BUSY), true },
    { "due_list", list, 0, IN(WRONG), true },
    { "due_list, its cursor", list_from, 0, IN(WRONG), true },
    { "due_list_dead", list_dead, 0, IN(WRONG), true },
    { "due_clear", clear, 0, IN(WRONG), true },
    { "due_clear_dead", clear_dead, 0, IN(WRONG), true },
    { "due_kick_all", kick_all, 0, IN(WRONG) | IN(CLOSED), true },
    { "due_cancel_batch", cancel_batch, 0, IN(WRONG), true },
    { "due_ack_batch", ack_batch, 0, IN(WRONG), false },
    { "due_stats_read", stats, 0, 0, true },
    { "due_poll", poll, 0, 0, true },
    { "due_topic_stats_read", topic_stats, 0, IN(WRONG), true },
    { "due_topic_durations", durations, 0, IN(WRONG), true },
    { "due_metrics_read", metrics, 0, 0, true },
    { "due_census", census, 0, IN(WRONG), true },
    { "due_census_write", census_write, 0, IN(WRONG), true },
    { "due_processes", processes, 0, IN(WRONG), true },
    { "due_metrics_write", metrics_write, 0, 0, true },
    { "due_cron_next", cron_next, 0, IN(WRONG), false },
    { "due_id_parse", parse, 0, IN(WRONG), false },
};
#define CALLS (sizeof calls / sizeof calls[0])

/* ---- The rule ---- */

/* NULL: it is kept to. */
static const char *wrong(const struct call *c, struct subject *s, enum situation where)
{
    static unsigned char out[BYTES] __attribute__((aligned(16)));

    memset(out, MARK, sizeof out);
    int rc = c->run(s, out);
    if (rc == DUE_EINDOUBT || rc == DUE_EEXIST) /* then an id is there: other tests */
        return NULL;
    if (rc >= 0)
        return (c->fails & IN(where)) || (where == FORKED && c->has_queue) ? "it did not fail"
                                                                           : NULL;
    for (size_t i = 0; i < sizeof out; i++) {
        if (out[i] != (i < c->zeroed ? 0 : MARK))
            return i < c->zeroed ? "a handle is left as it was" : "it was written to";
    }
    return NULL;
}

static void expect_rule(struct subject *s, enum situation where)
{
    for (size_t i = 0; i < CALLS; i++) {
        const char *text = wrong(&calls[i], s, where);

        cr_expect_null(text, "%s, %s: %s", situation_names[where], calls[i].name, text);
    }
}

/* ---- The situations ---- */

static struct subject subject_of(struct lab *lab)
{
    return (struct subject){ .q = lab->q };
}

Test(outputs, are_as_they_were_and_handles_zero_when_there_is_nothing, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct subject s = subject_of(&lab);

    expect_rule(&s, EMPTY);
    due_clear(lab.q, DUE_ALL_TOPICS, NULL);
    s.timeout_ns = 1;
    expect_rule(&s, TIMED);
    s.timeout_ns = -1;
    s.wrong = true;
    expect_rule(&s, WRONG);
    lab_close(&lab);
}

Test(outputs, are_as_they_were_and_handles_zero_when_somebody_has_the_job, .timeout = 60)
{
    struct lab lab = lab_open(.start_ns = 5, .with.capacity = 1);
    struct subject s = subject_of(&lab);
    due_job job;

    s.id = lab_enqueue(&lab, "tea", .more = EXTRA(.key = "k", .key_len = 1));
    cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
    expect_rule(&s, BUSY);
    expect_rule(&s, FULL);
    due_job_done(&job);
    lab_close(&lab);
}

Test(outputs, are_as_they_were_and_handles_zero_when_the_queue_is_closed, .timeout = 60)
{
    struct lab lab = lab_open();
    struct subject s = subject_of(&lab);

    cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(9)), 0);
    expect_rule(&s, CLOSED);
    lab_close(&lab);
}

Test(outputs, are_as_they_were_and_handles_zero_when_memory_is_out, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct subject s = subject_of(&lab);

    s.timeout_ns = 1; /* so that who waits takes memory */
    flaky_fail_in(&lab.state->memory, 0);
    lab.state->memory.fail_on = true;
    expect_rule(&s, NO_MEMORY);
    lab.state->memory.fail_on = false;
    lab.state->memory.fail_at = FLAKY_NEVER;
    lab_close(&lab);
}

Test(outputs, are_as_they_were_and_handles_zero_after_a_fork, .timeout = 60)
{
    struct lab lab = lab_open();
    struct subject s = subject_of(&lab);
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        unsigned bad = 0;

        for (size_t i = 0; i < CALLS; i++) {
            const char *text = wrong(&calls[i], &s, FORKED);

            bad += text != NULL;
            if (text != NULL)
                fprintf(stderr, "forked, %s: %s\n", calls[i].name, text);
        }
        _exit(bad > 0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lab_close(&lab);
}

Test(outputs, are_as_they_were_and_handles_zero_when_the_store_fails, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(10));
    struct subject subject = subject_of(&s.lab);

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &subject.id, .at_ns = 50), 0);
    shop_fail(&s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
    expect_rule(&subject, AWAY);
    memory_store_forgive(s.store);
    memory_disk_fence(s.disk);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)) == 0, 0);
    expect_rule(&subject, FENCED);
    shop_close(&s);
}

/* How much it was is said in any case, also when it was nothing. */
LAB_TEST(outputs, of_nothing_are_nothing)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "empty");
    const int topics[] = { DUE_ALL_TOPICS, 0, topic };

    for (int full = 0; full < 2; full++) {
        for (int i = full * 2; i < 3; i++) { /* of what is full another topic */
            uint64_t count = 99;

            cr_expect_eq(due_clear(lab.q, topics[i], &count), 0);
            cr_expect_eq(count, 0u, "%d", topics[i]);
            count = 99;
            cr_expect_eq(due_clear_dead(lab.q, topics[i], &count), 0);
            cr_expect_eq(count, 0u, "%d", topics[i]);
            count = 99;
            cr_expect_eq(due_kick_all(lab.q, topics[i], &count), 0);
            cr_expect_eq(count, 0u, "%d", topics[i]);
            cr_expect_eq(due_clear(lab.q, topics[i], NULL), 0);
        }
        lab_enqueue(&lab, "job", .delay_ns = 0);
    }
    lab_close(&lab);
}
