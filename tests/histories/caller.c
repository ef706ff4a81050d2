/* caller.c - a process of a history that calls a queue, in two threads, and writes down what it
 * calls and hears; and the store under the queue writes down its exchanges.
 *
 * Guards     A  atomic      I  set before the threads begin      M  the mutex
 *            K  the queue's own: it makes one exchange at a time
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "due/due.h"
#include "due/redis.h"
#include "due/store_shared.h"
#include "histories/calls.h"
#include "histories/histories.h"
#include "lab/crew.h"
#include "store/share_log.h"

enum {
    THREADS = 2,
    HELD = 6,
    KNOWN = 64,
    MARKS = 64,
    PARTS_MAX = 2048,
    LONG = 18000 /* bytes: such a record is not in the answer to a claim */
};

static struct history_control *control; /* I */
static int index_of_process;            /* I */

/* ---- Exchanges ------------------------------------------------------------------------------- */

static const struct due_store_verbs *real; /* I */
static struct due_store_verbs verbs;       /* I: of the store under the queue */
static struct due_shared_verbs shared;     /* I */
static struct replay history;              /* K */
static uint64_t writer;                    /* K */
static bool begun, doubt;                  /* K: an exchange is; and may have been made */
static unsigned sent;                      /* K: so often */
static atomic_bool lost, fenced;           /* A: the store has said so */

/* An exchange is made as one of each kind, since of one that has several the store tells one moment
 * only: first of new jobs, then of what nobody holds, then of what is held, with the claim. */
static struct {
    uint64_t number[2]; /* K: of the last one of each lane */
    int at;             /* K: the kind that is under way, of three; 3: none is */
    bool done;          /* K: one of an earlier kind is */
    int ends;           /* K: the next call ends so */
    size_t n;           /* K: of its changes, which are the following */
    due_change changes[PARTS_MAX];
    size_t place[PARTS_MAX];
    int results[PARTS_MAX];
} part = { .at = 3 };

/* What was looked at, by its mark. */
static struct {
    uint64_t mark, content;
} marks[MARKS];                                           /* M */
static unsigned n_marks;                                  /* M */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* I */

static uint64_t hash_of(const void *bytes, size_t len)
{
    struct replay r = { .n = 0 };

    replay_seen(&r, &(due_record){ .data = bytes, .len = len });
    return r.seen;
}

static int logged_join(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                       due_error *error)
{
    int rc = real->shared->join(s, how, info, error);

    if (rc != 0)
        return rc;
    writer = info->writer;
    part.number[0] = part.number[1] = 0;
    part.at = 3;
    part.ends = 0;
    begun = doubt = false;
    replay_log_line(history.log, "join %" PRIu64 "\n", writer);
    control->writer[index_of_process] = writer;
    return 0;
}

struct visitor {
    due_store_visit_claimed *claimed;
    due_store_visit *found;
    void *ctx;
};

static int see_claimed(void *ctx, const due_claimed *job)
{
    struct visitor *v = ctx;

    replay_shown(&history, job);
    return v->claimed(v->ctx, job);
}

static int see_found(void *ctx, const due_record *record)
{
    struct visitor *v = ctx;

    pthread_mutex_lock(&mutex);
    unsigned i = n_marks++ % MARKS;
    marks[i].mark = hash_of(record->mark, record->mark_len);
    marks[i].content = hash_of(record->data, record->len);
    pthread_mutex_unlock(&mutex);
    return v->found(v->ctx, record);
}

static int logged_find(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    return real->find(s, id, see_found, &(struct visitor){ .found = visit, .ctx = ctx }, until_ns);
}

/* What a change believes the content to be. */
static void note_mark(const due_change *changes, size_t n)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < MARKS && changes[i].record.mark_len > 0; k++)
            if (marks[k].mark == hash_of(changes[i].record.mark, changes[i].record.mark_len))
                history.seen = marks[k].content;
    pthread_mutex_unlock(&mutex);
}

static int logged_beat(due_store *s, struct due_beat *beat, int64_t until_ns)
{
    int rc = real->shared->beat(s, beat, until_ns);

    lost = lost || rc == DUE_ELOST;
    fenced = fenced || rc == DUE_EFENCED;
    return rc;
}

static int kind_of(const due_change *c)
{
    return c->held != 0 ? 2 : c->kind != DUE_CHANGE_PUT;
}

static void part_begin(const due_change *changes, size_t n, const struct due_claim *claim)
{
    part.n = 0;
    for (size_t i = 0; i < n; i++)
        if (kind_of(&changes[i]) == part.at) {
            CREW_CHECK(part.n < PARTS_MAX, "");
            part.place[part.n] = i;
            part.changes[part.n++] = changes[i];
        }
    if (part.n == 0 && claim == NULL)
        return;
    note_mark(part.changes, part.n);
    replay_asked(&history, part.changes, part.n, claim);
    begun = true;
    sent = 0;
}

static void part_end(int rc, int *results, const struct due_exchange *answer, bool claims)
{
    if (rc == DUE_EINDOUBT || (rc == DUE_EAGAIN && doubt)) {
        doubt = true;
        return;
    }
    lost = lost || rc == DUE_ELOST;
    fenced = fenced || rc == DUE_EFENCED;
    if (rc == DUE_EFENCED && doubt) /* nobody knows */
        return;
    begun = doubt = false;
    if (rc != 0) {
        replay_unanswered(&history);
        return;
    }
    for (size_t i = 0; i < part.n; i++)
        results[part.place[i]] = part.results[i];
    replay_answered(&history, part.results, answer);
    control->steps[index_of_process]++;
    while (claims && sent > 1 && /* what is over by now is not shown */
           !history_remember(control->server, writer, true, 0, answer->stamp, history.log))
        crew_sleep(DUE_MS(2));
}

static int logged_exchange(due_store *s, const due_change *changes, size_t n, uint64_t number,
                           int *results, const struct due_claim *claim,
                           due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                           int64_t until_ns)
{
    struct visitor v = { .claimed = visit, .ctx = ctx };
    int rc = 0;

    (void)number;
    if (fenced || part.ends != 0) {
        rc = part.ends != 0 ? part.ends : DUE_EFENCED;
        part.ends = 0;
        part.at = 3;
        return rc;
    }
    if (part.at == 3) {
        part.at = 0;
        part.done = false;
    }
    for (; part.at < 3; part.at++) {
        const struct due_claim *claims = part.at == 2 ? claim : NULL;
        size_t lane = part.at == 2;

        if (!begun)
            part_begin(changes, n, claims);
        if (!begun)
            continue;
        replay_again(&history);
        sent++;
        rc = real->shared->exchange(s, part.changes, part.n, part.number[lane] + 1, part.results,
                                    claims, see_claimed, &v, answer, until_ns);
        part_end(rc, results, answer, claims != NULL);
        if (rc != 0)
            break;
        part.number[lane]++;
        part.done = true;
    }
    if (rc == DUE_EAGAIN && (part.done || begun))
        return DUE_EINDOUBT; /* it is to come again, as it is */
    if ((rc == DUE_EFENCED || rc == DUE_ELOST) && part.done) {
        part.ends = rc; /* in the next call, as the store has it */
        return DUE_EINDOUBT;
    }
    if (rc != DUE_EINDOUBT)
        part.at = 3;
    return rc;
}

static due_store *logged_store(const char *url)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .connect_ns = DUE_MS(500),
                                  .answer_ns = DUE_MS(400), .backoff_min_ns = DUE_MS(1),
                                  .backoff_max_ns = DUE_MS(20) };
    due_store *store = NULL;
    due_error error = { .text = "" };
    int rc = due_redis_open(&store, url, &options, &error);

    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    real = store->verbs;
    verbs = *real;
    shared = *real->shared;
    verbs.find = logged_find;
    verbs.shared = &shared;
    shared.join = logged_join;
    shared.beat = logged_beat;
    shared.exchange = logged_exchange;
    store->verbs = &verbs;
    return store;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int calls_log;         /* I */
static atomic_uint n_calls;   /* A */
static due_id known[KNOWN];   /* M: ids of some jobs, of all processes */
static unsigned n_known;      /* M */
static atomic_uint n_content; /* A */
static char who[32];          /* I: what the bytes of its jobs begin with */

struct caller {
    due_queue *queue;
    uint64_t random;
    int topic[3];
    due_job held[HELD];
    int n;
    unsigned number; /* of the call */
    char bytes[LONG + 1];
};

static uint64_t below(struct caller *c, uint64_t n)
{
    return crew_below(&c->random, n);
}

static void text_of(char text[2 * DUE_STORE_ID_BYTES + 1], due_id id)
{
    for (int i = 0; i < DUE_STORE_ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", id.byte[i]);
}

static void begin(struct caller *c, enum call_verb verb, uint64_t content, due_id id,
                  uint64_t token)
{
    char text[2 * DUE_STORE_ID_BYTES + 1];

    text_of(text, id);
    c->number = atomic_fetch_add(&n_calls, 1);
    replay_log_line(calls_log, "c %u %" PRId64 " %d %" PRIu64 " %s %" PRIu64 "\n", c->number,
                    replay_log_now(), (int)verb, content, text, token);
}

static void end(struct caller *c, int rc, due_id id)
{
    char text[2 * DUE_STORE_ID_BYTES + 1];

    text_of(text, id);
    replay_log_line(calls_log, "a %u %" PRId64 " %d %s 0\n", c->number, replay_log_now(), rc, text);
}

static void handed(struct caller *c, const due_job *job)
{
    char text[2 * DUE_STORE_ID_BYTES + 1];

    text_of(text, job->id);
    replay_log_line(calls_log, "h %u %" PRId64 " %s %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
                    c->number, replay_log_now(), text, job->token, hash_of(job->data, job->len),
                    job->deadline_ns);
}

static void know(due_id id)
{
    pthread_mutex_lock(&mutex);
    known[n_known++ % KNOWN] = id;
    pthread_mutex_unlock(&mutex);
}

static bool any_known(struct caller *c, due_id *id)
{
    pthread_mutex_lock(&mutex);
    unsigned n = n_known < KNOWN ? n_known : KNOWN;
    if (n > 0)
        *id = known[below(c, n)];
    pthread_mutex_unlock(&mutex);
    return n > 0;
}

/* Bytes that no other call has: how many. */
static size_t write_bytes(struct caller *c)
{
    memset(c->bytes, 'x', sizeof c->bytes);
    int n = snprintf(c->bytes, sizeof c->bytes, "%s-%u", who, atomic_fetch_add(&n_content, 1));

    if (below(c, 40) != 0)
        return (size_t)n;
    c->bytes[n] = 'x';
    return LONG - (size_t)below(c, 2 * 1616); /* 16 KiB, and so much more or less */
}

static void call_enqueue(struct caller *c)
{
    static const char *const keys[] = { "k", "l", "m", "n" };
    static const char *const groups[] = { "g", "h" };
    static const due_retry thrice = { .kind = DUE_RETRY_FIXED,
                                      .attempts_max = 3,
                                      .delay_ns = DUE_MS(5) };
    static const enum due_key_policy policies[] = { DUE_KEY_REFUSE, DUE_KEY_REFUSE, DUE_KEY_REPLACE,
                                                    DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE };
    due_extra more = { DUE_EXTRA_INIT };
    due_id id = { .byte = { 0 } };
    enum call_verb verb = CALL_ENQUEUE;

    due_spec spec = { DUE_SPEC_INIT,
                      .data = c->bytes,
                      .len = write_bytes(c),
                      .topic = c->topic[below(c, 3)],
                      .more = &more,
                      .priority = below(c, 3) == 0 ? 9 : 0,
                      .delay_ns = DUE_US(below(c, 40000)) };
    if (below(c, 4) == 0)
        spec.delay_ns = 0;
    if (below(c, 4) == 0) {
        more.key = keys[below(c, 4)];
        more.key_len = 1;
        more.on_key = policies[below(c, 5)];
        more.keep_key_ns = below(c, 2) == 0 ? 0 : DUE_MS(below(c, 60));
        if (more.on_key != DUE_KEY_REFUSE)
            verb = more.on_key == DUE_KEY_EARLIEST ? CALL_EARLIEST : CALL_REPLACE;
    }
    if (below(c, 5) == 0) {
        more.group = groups[below(c, 2)];
        more.group_len = 1;
    }
    if (below(c, 3) == 0)
        more.retry = &thrice;
    begin(c, verb, hash_of(spec.data, spec.len), id, 0);
    int rc = due_enqueue(c->queue, &spec, DUE_MS(below(c, 20)), &id);
    end(c, rc, id);
    if (rc == 0)
        know(id);
}

static void call_take(struct caller *c)
{
    due_id none = { .byte = { 0 } };
    int topics[2] = { c->topic[below(c, 3)], c->topic[0] };
    due_take_options options = { DUE_TAKE_INIT, .topics = below(c, 3) == 0 ? topics : NULL,
                                 .topic_count = 1, .lease_ns = DUE_MS(10 + below(c, 90)) };
    bool for_good = below(c, 6) == 0;
    size_t most = 1 + (size_t)below(c, (uint64_t)(HELD - c->n));
    int64_t timeout_ns = DUE_MS(below(c, 25));

    begin(c, for_good ? CALL_DEQUEUE : CALL_RESERVE, 0, none, 0);
    due_job *jobs = &c->held[c->n];
    int rc = for_good ? due_dequeue(c->queue, jobs, timeout_ns)
                      : due_take(c->queue, &options, jobs, most, timeout_ns);
    int n = for_good ? rc == 0 : rc > 0 ? rc : 0;
    for (int i = 0; i < n; i++) {
        handed(c, &jobs[i]);
        know(jobs[i].id);
    }
    end(c, rc < 0 ? rc : 0, rc == DUE_EINDOUBT ? jobs->id : none);
    if (for_good && n > 0)
        due_job_done(jobs);
    else
        c->n += n;
}

/* What is said of a job that it has; perhaps nothing, and the lease ends. */
static void call_answer(struct caller *c, int i)
{
    due_job *job = &c->held[i];
    due_id id = job->id;
    uint64_t token = job->token;
    int64_t later_ns = DUE_MS(below(c, 40));
    uint64_t what = below(c, 16);
    int rc;

    if (what == 0) {
        due_job_done(job);
    } else if (what == 1) {
        begin(c, CALL_EXTEND, 0, id, token);
        rc = due_extend(job, DUE_MS(10 + below(c, 60)));
        end(c, rc, id);
        return;
    } else {
        begin(c,
              what < 5   ? CALL_NACK
              : what < 6 ? CALL_SNOOZE
              : what < 7 ? CALL_BURY
                         : CALL_ACK,
              0, id, token);
        rc = what < 5   ? due_nack(job, later_ns)
             : what < 6 ? due_snooze(job, later_ns)
             : what < 7 ? due_bury(job, "no good")
                        : due_ack(job);
        end(c, rc, id);
        if (job->queue != NULL)
            due_job_done(job); /* it was not answered for */
    }
    c->held[i] = c->held[--c->n];
}

static void call_update(struct caller *c)
{
    due_spec spec = { DUE_SPEC_INIT, .data = c->bytes, .len = write_bytes(c),
                      .delay_ns = DUE_US(below(c, 20000)) };
    bool moves = below(c, 2) == 0;
    due_id id;

    if (!any_known(c, &id))
        return;
    begin(c, CALL_UPDATE, hash_of(spec.data, spec.len), id, 0);
    int rc = moves ? due_amend(c->queue, id, &spec, DUE_SET_DATA | DUE_SET_TIME)
                   : due_update(c->queue, id, spec.data, spec.len);
    end(c, rc, id);
}

static void call_name(struct caller *c)
{
    due_id id;
    uint64_t what = below(c, 5);
    int rc;

    if (!any_known(c, &id))
        return;
    begin(c, what < 2 ? CALL_CANCEL : CALL_MOVE, 0, id, 0);
    if (what < 2)
        rc = due_cancel(c->queue, id, NULL);
    else if (what == 2)
        rc = due_promote(c->queue, id);
    else if (what == 3)
        rc = due_reschedule(c->queue, id, due_now(c->queue) + DUE_MS(below(c, 40)));
    else
        rc = due_kick(c->queue, id);
    end(c, rc, id);
}

static void *go(void *ctx)
{
    struct caller *c = ctx;
    const char *const names[] = { "a", "b", "c" };

    for (int i = 0; i < 3; i++)
        c->topic[i] = due_topic(c->queue, names[i]);
    while (!control->stop && !lost && !fenced) {
        uint64_t what = below(c, 20);

        if (what < 8)
            call_enqueue(c);
        else if (what < 9)
            call_name(c);
        else if (what < 10)
            below(c, 2) == 0 ? call_name(c) : call_update(c);
        else if (what < 12)
            crew_sleep(DUE_US(below(c, 4000)));
        else if (c->n < HELD)
            call_take(c);
        for (int i = c->n; i-- > 0;)
            if (below(c, 3) == 0)
                call_answer(c, i);
    }
    for (int i = 0; i < c->n; i++)
        due_job_done(&c->held[i]);
    return NULL;
}

/* ---- The process ----------------------------------------------------------------------------- */

static due_queue *open_queue(const char *url)
{
    due_error error = { "", "" };
    int64_t end_ns = crew_now_ns() + DUE_S(30);
    due_queue *q = NULL;
    int rc;

    do {
        due_options options = { DUE_OPTIONS_INIT, .name = HISTORY_QUEUE, .share = DUE_SHARED };

        options.store = logged_store(url);
        options.prefetch_max = 1 + (size_t)(control->seed % 3) * 4;
        options.lease_ns = DUE_MS(100);
        options.open_timeout_ns = DUE_S(20);
        options.store_timeout_ns = DUE_S(3);
        options.retry = (due_retry){ .kind = DUE_RETRY_FIXED, .delay_ns = DUE_MS(3) };
        options.capacity = control->capacity;
        options.order = control->by_rank ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE;
        rc = due_open(&q, &options, &error);
        if (rc != 0)
            options.store->verbs->free(options.store);
    } while ((rc == DUE_ESTORE || rc == DUE_EAGAIN) && crew_now_ns() < end_ns);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

/* One opening of the queue, to its end. */
static void be_one(const char *url, uint64_t *random)
{
    struct caller callers[THREADS] = { { .n = 0 } };
    pthread_t threads[THREADS];
    due_queue *q = open_queue(url);

    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){ .queue = q, .random = crew_random(random) };
        CREW_CHECK(pthread_create(&threads[i], NULL, go, &callers[i]) == 0, "");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_S(30));
    CREW_CHECK(rc == 0, ": close: %s", due_error_name(rc));
    CREW_CHECK(due_free(q) == 0, "");
}

int history_caller(const char *folder, int index, unsigned life)
{
    char path[256];
    char url[200];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    control = history_control_map(folder, false);
    index_of_process = index;
    history_skew(&control->skew_ns[index]);
    snprintf(who, sizeof who, "%d.%u", index, life);
    snprintf(url, sizeof url, "unix://due:canary@%s/proxy-%d", folder, index);
    crew_watchdog("histories", 280);
    snprintf(path, sizeof path, "%s/process-%d-%u.log", folder, index, life);
    history.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/process-%d-%u.calls", folder, index, life);
    calls_log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CREW_CHECK(history.log > 0 && calls_log > 0, ": %s", path);
    uint64_t random = control->seed + 1000 * (uint64_t)index + life;
    while (!control->stop && !fenced) {
        lost = false;
        be_one(url, &random);
        control->lost[index] += lost;
    }
    replay_free(&history);
    return fenced ? HISTORY_FENCED : 0;
}
