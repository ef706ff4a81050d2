/* suite_frame.c - the frame of the tests of a store. */
#define _GNU_SOURCE
#include "store/suite_frame.h"

#include <stdarg.h>
#include <time.h>

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "store suite: no memory\n");
        abort();
    }
    return memory;
}

/* ---- Saying ---- */

bool suite_check(struct suite *t, bool truth, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    if (truth)
        return true;
    if (t->told++ < 4) {
        printf("  %s:%d: ", file, line);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    }
    t->failed = true;
    return false;
}

bool suite_answers(struct suite *t, int rc, int wanted, const char *file, int line,
                   const char *call)
{
    return suite_check(t, rc == wanted, file, line, "%s answered %s (%d), not %s", call,
                       due_error_name(rc), rc, due_error_name(wanted)) &&
           !t->failed;
}

void suite_skip(struct suite *t, const char *why)
{
    if (!t->skipped)
        printf("  left out: %s\n", why);
    t->skipped = true;
}

bool suite_has(struct suite *t, bool hook, const char *name)
{
    if (!hook)
        suite_skip(t, name);
    return hook;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

int64_t suite_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t suite_boottime_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t suite_soon(void)
{
    return suite_now_ns() + SUITE_SOON_NS;
}

uint64_t suite_below(struct suite *t, uint64_t n)
{
    uint64_t x = t->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % n;
}

/* ---- Stores ---- */

static int64_t wall_clock(void *clock)
{
    (void)clock;
    return clock_ns(CLOCK_REALTIME);
}

static void log_line(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    (void)text;
}

due_store *suite_store(struct suite *t, int s)
{
    if (t->stores[s] == NULL)
        t->stores[s] = need(t->maker->make(t->maker->ctx));
    return t->stores[s];
}

int suite_open_until(struct suite *t, int s, int64_t until_ns)
{
    struct due_store_open how = { .name = t->queue,
                                  .until_ns = until_ns,
                                  .now = wall_clock,
                                  .log = log_line,
                                  .queue = t,
                                  .writer_min = t->writer_min };
    due_store *store = suite_store(t, s);

    memset(&t->error, 0, sizeof t->error);
    int rc = store->verbs->open(store, &how, &t->info[s], &t->error);
    t->open[s] = rc == 0;
    t->number[s] = 0;
    return rc;
}

int suite_open(struct suite *t, int s)
{
    return suite_open_until(t, s, suite_soon());
}

int suite_open_in_vain(struct suite *t, int s)
{
    int rc = DUE_ESTORE;

    for (int64_t ns = DUE_MS(100); rc == DUE_ESTORE && ns < SUITE_SOON_NS; ns *= 3)
        rc = suite_open_until(t, s, suite_now_ns() + ns);
    return rc;
}

void suite_abandon(struct suite *t, int s)
{
    if (t->stores[s] != NULL)
        t->stores[s]->verbs->free(t->stores[s]);
    t->stores[s] = NULL;
    t->open[s] = false;
}

void suite_close(struct suite *t, int s)
{
    if (t->open[s])
        (void)t->stores[s]->verbs->close(t->stores[s], suite_soon());
    suite_abandon(t, s);
}

void suite_end_lease(struct suite *t)
{
    struct timespec lease = { .tv_sec = (time_t)(t->maker->lease_ns / DUE_S(1)) + 1 };

    if (t->maker->end_lease != NULL)
        t->maker->end_lease(t->maker->ctx);
    else
        nanosleep(&lease, NULL);
}

due_store *suite_called(struct suite *t, int s)
{
    if (t->hurried)
        t->stores[s]->verbs->interrupt(t->stores[s]);
    return t->stores[s];
}

int suite_ready(struct suite *t, int s)
{
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = t->stores[s]->verbs->ready(suite_called(t, s), end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

int suite_commit_on(struct suite *t, int s, int64_t until_ns)
{
    return t->stores[s]->verbs->commit(suite_called(t, s), t->changes, t->n_changes,
                                       t->number[s] + 1, until_ns);
}

/* Readiness is asked for as a queue does: before a batch, and whenever one did not go. */
int suite_commit(struct suite *t, int s)
{
    int64_t end_ns = suite_soon();
    int rc = suite_ready(t, s);

    while (rc == 0) {
        rc = suite_commit_on(t, s, end_ns);
        if ((rc != DUE_EAGAIN && rc != DUE_EINDOUBT) || suite_now_ns() >= end_ns)
            break;
        rc = rc == DUE_EAGAIN ? suite_ready(t, s) : 0;
    }
    if (rc == 0)
        suite_noted(t, s);
    return rc;
}

void suite_noted(struct suite *t, int s)
{
    for (size_t i = 0; i < t->n_changes; i++) {
        const due_change *change = &t->changes[i];
        if (change->kind >= DUE_CHANGE_KEEP)
            continue; /* of no job */
        struct suite_job *job = &t->jobs[t->changed[i]];

        size_t len = change->kind == DUE_CHANGE_PUT ? change->record.len : job->record.len;

        bool revived = job->record.cause != 0 && change->record.cause == 0;

        if (change->kind == DUE_CHANGE_DROP || !job->stored ||
            (change->kind == DUE_CHANGE_PUT && revived))
            job->gone_once = true; /* need not be shown again */
        job->stored = change->kind != DUE_CHANGE_DROP;
        if (change->kind != DUE_CHANGE_DROP)
            job->record = change->record;
        job->record.data = len > 0 ? job->bytes : NULL;
        job->record.len = len;
    }
    t->number[s]++;
    t->n_changes = 0;
}

void suite_dropped(struct suite *t)
{
    t->n_changes = 0;
}

/* ---- Jobs ---- */

due_id suite_id(int priority, uint64_t writer, uint64_t sequence)
{
    due_id id = { .byte = { (unsigned char)(255 - priority) } };

    for (int i = 0; i < 6; i++)
        id.byte[1 + i] = (unsigned char)(writer >> (40 - 8 * i));
    for (int i = 0; i < 7; i++)
        id.byte[7 + i] = (unsigned char)(sequence >> (48 - 8 * i));
    return id;
}

static size_t topic_number(struct suite *t, const char *name)
{
    for (size_t i = t->n_topics; i-- > 0;)
        if (strcmp(t->topics[i], name) == 0)
            return i;
    t->topics = need(realloc(t->topics, (t->n_topics + 1) * sizeof *t->topics));
    t->last = need(realloc(t->last, (t->n_topics + 1) * sizeof *t->last));
    t->topics[t->n_topics] = need(strdup(name));
    t->last[t->n_topics] = 0;
    return t->n_topics++;
}

size_t suite_job(struct suite *t, const char *topic, int64_t until_ns, const void *data, size_t len)
{
    if (t->n_jobs == t->jobs_room) {
        t->jobs_room = t->jobs_room == 0 ? 64 : 2 * t->jobs_room;
        t->jobs = need(realloc(t->jobs, t->jobs_room * sizeof *t->jobs));
    }
    struct suite_job *job = &t->jobs[t->n_jobs];
    *job = (struct suite_job){ .topic = topic_number(t, topic) };
    if (len > 0)
        job->bytes = memcpy(need(malloc(len)), data, len);
    job->record = (due_record){
        .id = suite_id(0, t->info[0].writer, t->n_jobs),
        .deadline_ns = until_ns,
        .until_ns = until_ns,
        .topic = t->topics[job->topic],
        .data = job->bytes,
        .len = len,
    };
    return t->n_jobs++;
}

void suite_change(struct suite *t, enum due_change_kind kind, size_t job, const due_record *record)
{
    if (t->n_changes == t->changes_room) {
        t->changes_room = t->changes_room == 0 ? 64 : 2 * t->changes_room;
        t->changes = need(realloc(t->changes, t->changes_room * sizeof *t->changes));
        t->changed = need(realloc(t->changed, t->changes_room * sizeof *t->changed));
    }
    t->changes[t->n_changes] = (due_change){ .kind = kind, .record = *record };
    if (kind != DUE_CHANGE_PUT && kind < DUE_CHANGE_KEEP) {
        const due_record *was = &t->jobs[job].record;
        t->changes[t->n_changes].was_ns = was->cause != 0 ? was->died_ns : was->until_ns;
        t->changes[t->n_changes].was_dead = was->cause != 0;
        t->changes[t->n_changes].record.data = NULL;
        t->changes[t->n_changes].record.len = 0;
    }
    t->changed[t->n_changes++] = job;
}

void suite_put(struct suite *t, size_t job)
{
    suite_change(t, DUE_CHANGE_PUT, job, &t->jobs[job].record);
}

void suite_move(struct suite *t, size_t job, int64_t until_ns)
{
    due_record record = t->jobs[job].record;

    record.until_ns = until_ns;
    suite_change(t, DUE_CHANGE_MOVE, job, &record);
}

void suite_bury(struct suite *t, size_t job, enum due_cause cause, int64_t died_ns,
                const char *reason)
{
    due_record record = t->jobs[job].record;

    record.cause = cause;
    record.died_ns = died_ns;
    record.reason = reason;
    suite_change(t, DUE_CHANGE_BURY, job, &record);
}

void suite_kick(struct suite *t, size_t job, int64_t until_ns)
{
    due_record record = t->jobs[job].record;

    record.attempts = record.failures = 0;
    record.until_ns = until_ns;
    record.cause = 0;
    record.died_ns = 0;
    record.reason = NULL;
    suite_change(t, DUE_CHANGE_MOVE, job, &record);
}

/* A removal says the id, the topic, the priority and the key, and nothing else. */
void suite_drop_keeping(struct suite *t, size_t job, int64_t until_ns)
{
    const due_record *was = &t->jobs[job].record;
    due_record record = { .id = was->id,
                          .topic = was->topic,
                          .priority = was->priority,
                          .key = was->key,
                          .key_len = was->key_len };

    suite_change(t, DUE_CHANGE_DROP, job, &record);
    t->changes[t->n_changes - 1].key_kept_ns = until_ns;
}

void suite_drop(struct suite *t, size_t job)
{
    suite_drop_keeping(t, job, 0);
}

static bool change_all(struct suite *t, int s, bool put)
{
    size_t bytes = 0;

    for (size_t i = 0; i < t->n_jobs; i++) {
        if (t->jobs[i].stored == put)
            continue;
        bytes += put ? t->jobs[i].record.len : 0;
        if (t->n_changes == t->info[s].batch_changes ||
            (t->n_changes > 0 && bytes > t->info[s].batch_bytes)) {
            if (!suite_answers(t, suite_commit(t, s), 0, __FILE__, __LINE__, "commit"))
                return false;
            bytes = put ? t->jobs[i].record.len : 0;
        }
        if (put)
            suite_put(t, i);
        else
            suite_drop(t, i);
    }
    return t->n_changes == 0 ||
           suite_answers(t, suite_commit(t, s), 0, __FILE__, __LINE__, "commit");
}

bool suite_put_all(struct suite *t, int s)
{
    return change_all(t, s, true);
}

bool suite_drop_all(struct suite *t, int s)
{
    return change_all(t, s, false);
}

/* ---- What the store shows ---- */

static struct suite_job *job_of(struct suite *t, due_id id)
{
    uint64_t sequence = 0;

    for (int i = 7; i < 14; i++)
        sequence = sequence << 8 | id.byte[i];
    if (sequence < t->n_jobs && due_id_equal(t->jobs[sequence].record.id, id))
        return &t->jobs[sequence];
    for (size_t i = 0; i < t->n_jobs; i++)
        if (due_id_equal(t->jobs[i].record.id, id))
            return &t->jobs[i];
    return NULL;
}

static bool same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
    if (a_len != b_len)
        return false;
    return a_len == 0 ? a == NULL : a != NULL && memcmp(a, b, a_len) == 0;
}

static bool same_retry(const due_retry *a, const due_retry *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->kind == b->kind && a->attempts_max == b->attempts_max && a->delay_ns == b->delay_ns &&
           a->cap_ns == b->cap_ns && a->rungs == b->rungs &&
           memcmp(a->rung_ns, b->rung_ns, sizeof a->rung_ns) == 0;
}

/* Of what only some jobs have. */
static const char *more_differs(const due_record *known, const due_record *record)
{
    if (!same_bytes(record->headers, record->headers_len, known->headers, known->headers_len))
        return "the headers differ";
    if (!same_bytes(record->key, record->key_len, known->key, known->key_len))
        return "the key differs";
    if (!same_bytes(record->group, record->group_len, known->group, known->group_len))
        return "the group differs";
    if (!same_retry(record->retry, known->retry))
        return "the policy differs";
    if (record->ttl_ns != known->ttl_ns || record->expires_ns != known->expires_ns ||
        record->keep_key_ns != known->keep_key_ns)
        return "a limit differs";
    if (record->every_ns != known->every_ns || record->repeat != known->repeat)
        return "the repetition differs";
    if (record->cause != known->cause)
        return "whether and why it is dead differs";
    const char *reason = known->reason != NULL ? known->reason : "";
    if (known->cause != 0 && (record->died_ns != known->died_ns ||
                              strcmp(record->reason != NULL ? record->reason : "", reason) != 0))
        return "how it died differs";
    return NULL;
}

static const char *differs(const struct suite_job *job, const due_record *record)
{
    const due_record *known = &job->record;

    if (!job->stored)
        return "a job is shown that is not stored";
    if (record->deadline_ns != known->deadline_ns)
        return "deadline_ns differs";
    if (known->cause == 0 && record->until_ns != known->until_ns)
        return "until_ns differs";
    if (record->topic == NULL || strcmp(record->topic, known->topic) != 0)
        return "the topic differs";
    if (!same_bytes(record->data, record->len, known->data, known->len))
        return "the bytes differ";
    if (record->attempts != known->attempts || record->failures != known->failures)
        return "attempts or failures differ";
    if (record->priority != known->priority)
        return "the priority differs";
    if ((record->mark == NULL) != (record->mark_len == 0))
        return "a mark of no length, or none of one";
    return more_differs(known, record);
}

/* Rounded up, as a store may that counts in coarser units. */
static int64_t grained(const struct suite *t, int64_t ns)
{
    int64_t grain = t->maker->grain_ns;

    return grain <= 1 ? ns : ns / grain + (ns % grain != 0);
}

static size_t *last_of(struct suite *t, const struct suite_job *job)
{
    return job->record.cause != 0 ? &t->last_dead : &t->last[job->topic];
}

static int64_t place_of(const struct suite *t, const due_record *r)
{
    return grained(t, r->cause != 0 ? r->died_ns : r->until_ns);
}

static bool in_order(struct suite *t, const struct suite_job *job)
{
    size_t last = *last_of(t, job);

    if (!t->ordered)
        return true;
    if (job->record.cause == 0 && t->last_dead != 0)
        return false; /* the dead come at the end */
    if (last == 0)
        return true;
    const due_record *before = &t->jobs[last - 1].record;
    if (place_of(t, before) != place_of(t, &job->record))
        return place_of(t, before) < place_of(t, &job->record);
    return memcmp(before->id.byte, job->record.id.byte, DUE_STORE_ID_BYTES) <= 0;
}

int suite_visit(void *ctx, const due_record *record)
{
    struct suite *t = ctx;
    struct suite_job *job = job_of(t, record->id);

    if (t->refuse != 0 && t->shown >= t->after)
        return t->refuse;
    t->shown++;
    if (!suite_check(t, job != NULL, __FILE__, __LINE__, "a job of an unknown id is shown"))
        return 0;
    const char *wrong = differs(job, record);
    suite_check(t, wrong == NULL, __FILE__, __LINE__, "%s (job %td)", wrong == NULL ? "" : wrong,
                job - t->jobs);
    suite_check(t, in_order(t, job), __FILE__, __LINE__, "out of order (job %td)", job - t->jobs);
    *last_of(t, job) = (size_t)(job - t->jobs) + 1;
    job->seen++;
    return 0;
}

void suite_begin_load(struct suite *t)
{
    for (size_t i = 0; i < t->n_jobs; i++) {
        t->jobs[i].seen = 0;
        t->jobs[i].gone_once = !t->jobs[i].stored;
    }
    if (t->n_topics > 0)
        memset(t->last, 0, t->n_topics * sizeof *t->last);
    t->last_dead = 0;
    t->shown = 0;
}

int suite_page(struct suite *t, int s, bool rewind, size_t max)
{
    int64_t end_ns = suite_soon();
    int rc;

    if (rewind)
        suite_begin_load(t);
    do {
        rc = t->stores[s]->verbs->load(suite_called(t, s), rewind, max, suite_visit, t, end_ns);
        rewind = false; /* it has begun, also if the answer is DUE_EAGAIN */
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

bool suite_all_seen(struct suite *t)
{
    for (size_t i = 0; i < t->n_jobs; i++)
        if (!suite_check(t, t->jobs[i].gone_once || t->jobs[i].seen > 0, __FILE__, __LINE__,
                         "job %zu was stored all the time, and not shown", i))
            return false;
    return !t->failed;
}

bool suite_same(struct suite *t, int s)
{
    size_t calls = 0;
    int rc = suite_page(t, s, true, 100);

    while (rc == 1 && calls++ < 2 * t->n_jobs + 100)
        rc = suite_page(t, s, false, 100);
    return suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t);
}

int suite_find(struct suite *t, int s, due_id id)
{
    int64_t end_ns = suite_soon();
    int rc;

    t->shown = 0;
    t->last_dead = 0;
    if (t->n_topics > 0)
        memset(t->last, 0, t->n_topics * sizeof *t->last);
    do
        rc = t->stores[s]->verbs->find(suite_called(t, s), id, suite_visit, t, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    if (rc == 0)
        suite_check(t, t->shown == 1, __FILE__, __LINE__, "find showed %zu jobs", t->shown);
    return rc;
}
