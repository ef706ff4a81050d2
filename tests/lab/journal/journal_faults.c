/* journal_faults.c - the third journal: that of memory, which refuses, delays and mixes up changes.
 *
 * Linked into the unit tests of verbs in place of the journal of memory (the linker's --wrap).
 * With the environment variable LAB_JOURNAL, a seed, it refuses about a third of what the tests'
 * verbs hand to it; without, each verb is called as it stands there, with the same arguments.  A
 * verb that is refused must leave all as it was: so the call is simply made again, and the test,
 * which knows nothing of it, must pass.  What nobody waits for lands at the end of the verb, in any
 * order; what is handed over together, likewise.
 *
 * Threads    any; what is refused and delayed is the calling thread's own.
 */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "job/amend.h"
#include "job/lease.h"
#include "job/memory.h"
#include "lab/crew.h"
#include "os/atomic.h"
#include "queue/queue.h"

#define LATE     64u /* changes that wait for the end of a verb */
#define REFUSALS 2u  /* of one verb */

extern const struct due__journal __real_due__memory_journal;
extern struct due__journal __wrap_due__memory_journal;
struct due__journal __wrap_due__memory_journal; /* filled in before main() */

static const struct due__journal *const real = &__real_due__memory_journal;
static uint64_t seed;

static _Thread_local struct {
    uint64_t random;
    unsigned depth;   /* verbs that the thread is in */
    unsigned refused; /* of the outermost one */
    size_t count;     /* left, and not landed yet */
    struct {
        struct due_queue *q;
        uint32_t number;
        enum due__purpose purpose;
    } late[LATE];
} here;

static bool chance(uint64_t of)
{
    if (here.random == 0)
        here.random = seed;
    return crew_random(&here.random) % of == 0;
}

/* Whoever looks meanwhile sees a job that is somebody's. */
static void linger(void)
{
    for (unsigned i = 0; i < 4 && !chance(3); i++)
        sched_yield();
}

/* One that was cancelled while somebody had it goes when it is refused: no call for it can be made
 * again.  And what is in an inbox still, a journal that refuses was never told of. */
static bool refuses(const struct due_queue *q, uint32_t number)
{
    if (here.depth == 0 || here.refused == REFUSALS || due__revoked(q, number) ||
        (due__load_relaxed(&due__job_at(&q->slab, number)->word) & DUE__LINKED) || /* J1: ours */
        !chance(3))
        return false;
    here.refused++;
    return true;
}

/* What was left lands, in any order.  That may leave more. */
static void land_late(void)
{
    while (here.count > 0) {
        size_t i = (size_t)(crew_random(&here.random) % here.count);
        struct due_queue *q = here.late[i].q;
        uint32_t number = here.late[i].number;
        enum due__purpose purpose = here.late[i].purpose;

        here.late[i] = here.late[--here.count];
        real->leave(q, number, purpose);
    }
}

static void late_leave(struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    if (here.depth == 0 || here.count == LATE) {
        real->leave(q, number, purpose);
        return;
    }
    here.late[here.count].q = q;
    here.late[here.count].number = number;
    here.late[here.count++].purpose = purpose;
}

static int faulty_change(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                         int64_t want_ns, struct due__deadline *by)
{
    linger();
    if (refuses(q, number))
        return DUE_ESTORE;
    if (chance(2))
        land_late();
    return real->change(q, number, purpose, want_ns, by);
}

static void faulty_change_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                              enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                              int *results)
{
    size_t first = n > 0 && seed != 0 && chance(2) ? n / 2 : 0;

    linger();
    for (size_t k = 0; k < n; k++) {
        size_t i = (first + k) % n;

        results[i] = DUE_ESTORE;
        if (!refuses(q, numbers[i]))
            real->change_all(q, &numbers[i], 1, purpose, want_ns, by, &results[i]);
    }
}

/* An amendment that is refused once it was decided upon; and its owner's. */
struct refused {
    struct due__amendment a; /* first: it is what the journal knows of */
    struct due__amendment *of;
};

static int decide_refused(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    const struct refused *r = (const struct refused *)(const void *)a;

    r->of->lengthy = a->lengthy;
    int rc = r->of->decide(q, r->of, w, now_ns);
    a->purpose = r->of->purpose;
    a->want_ns = r->of->want_ns;
    return rc != 0 || due__revoked(q, a->number) ? rc : DUE_ESTORE;
}

/* What gets another place in any case may also be CHANGING for a while, as if it had to be sent. */
static int faulty_amend(struct due_queue *q, struct due__amendment *a, struct due__deadline *by)
{
    struct refused r = { .a = *a, .of = a };
    bool moves = a->of == DUE__IF_DEAD || (a->of == DUE__IF_WAITING && a->last);
    bool away = !a->lengthy && moves && chance(2);

    if (chance(2))
        land_late();
    a->lengthy |= away;
    if (away || here.depth == 0 || here.refused == REFUSALS || !chance(3))
        return real->amend(q, a, by);
    r.a.decide = decide_refused;
    int rc = real->amend(q, &r.a, by);
    here.refused += rc == DUE_ESTORE;
    return rc;
}

static int faulty_amend_all(struct due_queue *q, const struct due__amendment *as,
                            const struct due__use *jobs, size_t n, struct due__deadline *by,
                            uint64_t *done)
{
    size_t first = n > 0 && chance(2) ? n / 2 : 0;
    int failed = 0;

    for (size_t k = 0; k < n; k++) {
        struct due__amendment a = *as;

        a.number = jobs[(first + k) % n].number;
        a.generation = jobs[(first + k) % n].generation;
        int rc = faulty_amend(q, &a, by);
        *done += rc == 0;
        if (rc != 0 && rc != DUE_ENOENT && rc != DUE_EBUSY)
            failed = rc;
    }
    return failed;
}

static int late_flush(struct due_queue *q, struct due__deadline *by)
{
    land_late();
    return real->flush(q, by);
}

__attribute__((constructor)) static void fill_in(void)
{
    const char *text = getenv("LAB_JOURNAL");

    __wrap_due__memory_journal = *real;
    if (text == NULL)
        return;
    seed = strtoull(text, NULL, 10) + 1;
    __wrap_due__memory_journal.change = faulty_change;
    __wrap_due__memory_journal.change_all = faulty_change_all;
    __wrap_due__memory_journal.amend = faulty_amend;
    __wrap_due__memory_journal.amend_all = faulty_amend_all;
    __wrap_due__memory_journal.leave = late_leave;
    __wrap_due__memory_journal.flush = late_flush;
}

/* ---- The verbs ---- */

static void verb_begin(void)
{
    if (here.depth++ == 0)
        here.refused = 0;
}

/* Was it refused, by this journal, so that it is to be tried again? */
static bool verb_again(int rc)
{
    return seed != 0 && rc == DUE_ESTORE;
}

static int verb_end(int rc)
{
    if (--here.depth == 0 && seed != 0)
        land_late();
    return rc;
}

#define VERB(name, parameters, arguments)   \
    int __real_##name parameters;           \
    int __wrap_##name parameters;           \
    int __wrap_##name parameters            \
    {                                       \
        int rc;                             \
                                            \
        if (seed == 0)                      \
            return __real_##name arguments; \
        verb_begin();                       \
        do {                                \
            rc = __real_##name arguments;   \
        } while (verb_again(rc));           \
        return verb_end(rc);                \
    }

/* Plain jobs go the long way too. */
void lab_journal_opened(due_queue *q);
void lab_journal_opened(due_queue *q)
{
    if (seed != 0)
        q->short_ways = false;
}

VERB(due_ack, (due_job * job), (job))
VERB(due_nack, (due_job * job, int64_t delay_ns), (job, delay_ns))
VERB(due_snooze, (due_job * job, int64_t delay_ns), (job, delay_ns))
VERB(due_bury, (due_job * job, const char *reason), (job, reason))
VERB(due_kick, (due_queue * q, due_id id), (q, id))
VERB(due_cancel, (due_queue * q, due_id id, due_job *job), (q, id, job))
VERB(due_cancel_key, (due_queue * q, const void *key, size_t len, due_job *job), (q, key, len, job))
VERB(due_reschedule, (due_queue * q, due_id id, int64_t at_ns), (q, id, at_ns))
VERB(due_promote, (due_queue * q, due_id id), (q, id))
VERB(due_enqueue, (due_queue * q, const due_spec *spec, int64_t timeout_ns, due_id *id),
     (q, spec, timeout_ns, id))
VERB(due_update, (due_queue * q, due_id id, const void *data, size_t len), (q, id, data, len))
VERB(due_amend, (due_queue * q, due_id id, const due_spec *spec, unsigned what),
     (q, id, spec, what))

/* Those of many count what was done before the refusal too. */
#define VERB_ALL(name)                                                  \
    int __real_##name(due_queue *q, int topic, uint64_t *count);        \
    int __wrap_##name(due_queue *q, int topic, uint64_t *count);        \
    int __wrap_##name(due_queue *q, int topic, uint64_t *count)         \
    {                                                                   \
        uint64_t all = 0;                                               \
        int rc;                                                         \
                                                                        \
        if (seed == 0)                                                  \
            return __real_##name(q, topic, count);                      \
        verb_begin();                                                   \
        do {                                                            \
            uint64_t some = 0;                                          \
                                                                        \
            rc = __real_##name(q, topic, count != NULL ? &some : NULL); \
            all += some;                                                \
        } while (verb_again(rc));                                       \
        if (count != NULL && (rc == 0 || all > 0))                      \
            *count = all;                                               \
        return verb_end(rc);                                            \
    }

VERB_ALL(due_clear)
VERB_ALL(due_clear_dead)
VERB_ALL(due_kick_all)

/* And those that answer for each. */
#define VERB_EACH(name, parameters, arguments, again)   \
    int __real_##name parameters;                       \
    int __wrap_##name parameters;                       \
    int __wrap_##name parameters                        \
    {                                                   \
        int *own = NULL;                                \
                                                        \
        if (seed == 0 || n > INT_MAX)                   \
            return __real_##name arguments;             \
        if (results == NULL)                            \
            results = own = calloc(n + 1, sizeof *own); \
        verb_begin();                                   \
        int done = __real_##name arguments;             \
        verb_end(0);                                    \
        for (size_t i = 0; done >= 0 && i < n; i++) {   \
            if (results[i] != DUE_ESTORE)               \
                continue;                               \
            done += again == 0;                         \
        }                                               \
        free(own);                                      \
        return done;                                    \
    }

/* One that was refused, and is named once more further on, was cancelled there: the answers are
 * those of the other order. */
static int cancel_again(due_queue *q, const due_id *ids, int *results, size_t i, size_t n)
{
    for (size_t k = i + 1; k < n; k++) {
        if (results[k] != 0 || !due_id_equal(ids[i], ids[k]))
            continue;
        results[i] = 0;
        results[k] = __wrap_due_cancel(q, ids[k], NULL);
        return results[k];
    }
    results[i] = __wrap_due_cancel(q, ids[i], NULL);
    return results[i];
}

static int ack_again(due_job *jobs, int *results, size_t i)
{
    results[i] = __wrap_due_ack(&jobs[i]);
    return results[i];
}

VERB_EACH(due_cancel_batch, (due_queue * q, const due_id *ids, size_t n, int *results),
          (q, ids, n, results), cancel_again(q, ids, results, i, n))
VERB_EACH(due_ack_batch, (due_job * jobs, size_t n, int *results), (jobs, n, results),
          ack_again(jobs, results, i))
