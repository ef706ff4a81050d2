/* worker.c - the program that the crash tests kill: it uses a stored queue, and says so.
 *
 *     crash_worker URL LIFE SEED FLAGS KNOWN
 *
 * URL is that of a server, or the path of a file.  FLAGS are of: a async, d dequeues too, D takes
 * all out, w waits until all has been read; of a file: e level everysec, n none.
 *
 * It writes a line to descriptor 3 before and after each call (ledger.h), "0 TIME open! ANSWER"
 * when the queue is open, "0 TIME loaded N" when it has read what was stored, and its log as
 * "0 TIME log LEVEL TEXT".  From standard input it reads: q, be quiet, answered with "0 TIME quiet
 * HELD" when everything is confirmed, each time it is asked; g, go on; and the end of it means:
 * close.  KNOWN is a file of ids: jobs of earlier lives.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/crew.h"
#include "lab/take.h"
#include "worker_store.h"

#define TAKE_NS DUE_S(3)
#define THREADS 3
#define TOPICS  3
#define KNOWN   64 /* jobs that a thread remembers */
#define KEYS    24
#define LISTED  8 /* dead jobs that are looked at at a time */
#define OUT     3

struct hand {
    struct crew_thread thread;
    unsigned name;
    uint64_t random;
    due_id known[KNOWN];
    size_t n_known;
};

static due_queue *queue;
static int topic[TOPICS];
static uint64_t life;
static bool dequeues;
static bool async;
static atomic_ullong numbers;
static atomic_bool stop;
static struct hand hands[THREADS];

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void say(unsigned thread, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One write, so that lines stay whole. */
static void say(unsigned thread, const char *format, ...)
{
    char line[480];
    va_list args;
    int n = snprintf(line, sizeof line, "%u %" PRId64 " ", thread, wall_ns());

    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(OUT, line, (size_t)n) != n)
        _exit(4);
}

static void on_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    say(0, "log %d %s", (int)level, text);
}

static void on_settled(void *ctx, due_id id, int rc)
{
    char text[DUE_ID_TEXT];

    (void)ctx;
    if (rc != 0)
        say(0, "settled %s %s", due_id_format(id, text), due_error_name(rc));
}

static void on_restore(void *ctx, uint64_t restored, int finished)
{
    (void)ctx;
    if (finished)
        say(0, "loaded %" PRIu64, restored);
}

/* ---- Payloads: the number, then bytes that follow from it ---- */

static size_t payload_of(uint64_t number, unsigned char *bytes)
{
    size_t len = number % 16 == 0 ? 20000 : 8 + number * 37 % 90;

    memcpy(bytes, &number, 8);
    for (size_t i = 8; i < len; i++)
        bytes[i] = (unsigned char)(number * 31 + i);
    return len;
}

static bool sound(const due_job *job, uint64_t *number)
{
    unsigned char bytes[20000];

    *number = 0;
    if (job->len < 8)
        return false;
    memcpy(number, job->data, 8);
    return job->len == payload_of(*number, bytes) && memcmp(bytes, job->data, job->len) == 0;
}

static int topic_index(int t)
{
    for (int i = 0; i < TOPICS; i++)
        if (topic[i] == t)
            return i;
    return -1;
}

/* ---- The calls ---- */

static void remember(struct hand *h, due_id id)
{
    size_t at = h->n_known < KNOWN ? h->n_known++ : crew_below(&h->random, KNOWN);

    h->known[at] = id;
}

static uint64_t new_number(void)
{
    return life * 1000000 + atomic_fetch_add(&numbers, 1) + 1;
}

/* The id, or "-" if it is none. */
static const char *text_of(due_id id, char text[DUE_ID_TEXT])
{
    return due_id_equal(id, (due_id){ { 0 } }) ? "-" : due_id_format(id, text);
}

static size_t key_of(unsigned key, char text[24])
{
    return (size_t)snprintf(text, 24, "key-%u", key);
}

/* One in three has a key, and its topic and priority follow from that: one that is replaced keeps
 * them. */
static void enqueue(struct hand *h)
{
    unsigned char bytes[20000];
    char text[DUE_ID_TEXT];
    char name[24];
    due_id id = { { 0 } };
    uint64_t number = new_number();
    int64_t at = due_now(queue) + (int64_t)crew_below(&h->random, 300) * 1000000;
    unsigned key = crew_below(&h->random, 3) == 0 ? 1 + (unsigned)crew_below(&h->random, KEYS) : 0;
    uint64_t kind = key != 0 ? key : crew_below(&h->random, 9);
    int t = (int)(kind % TOPICS);
    bool replaces = key != 0 && crew_below(&h->random, 2) == 0;

    if (crew_below(&h->random, 2) == 0)
        at = at / 10000000 * 10000000 + 10000000;
    due_spec spec = { DUE_SPEC_INIT,
                      .at_ns = at,
                      .topic = topic[t],
                      .priority = (int)(kind / TOPICS % 3) * 100,
                      .data = bytes,
                      .len = payload_of(number, bytes),
                      .more = EXTRA(.key = key != 0 ? name : NULL,
                                    .key_len = key != 0 ? key_of(key, name) : 0,
                                    .on_key = replaces ? DUE_KEY_REPLACE : DUE_KEY_REFUSE) };
    say(h->name, "enqueue? %" PRIu64 " %" PRId64 " %d %d %u %s", number, at, spec.priority, t, key,
        replaces ? "replace" : "refuse");
    int rc = due_enqueue(queue, &spec, 0, &id);
    say(h->name, "enqueue! %" PRIu64 " %s %s", number, due_error_name(rc), text_of(id, text));
    if (rc == 0)
        remember(h, id);
}

/* Whose is a key? */
static void find(const struct hand *h, unsigned key)
{
    char text[DUE_ID_TEXT];
    char name[24];
    due_id id = { { 0 } };

    say(h->name, "find? %u", key);
    int rc = due_id_of_key(queue, name, key_of(key, name), &id);
    say(h->name, "find! %u %s %s", key, due_error_name(rc), text_of(id, text));
}

static void say_taken(const struct hand *h, const char *verb, int rc, const due_job *job)
{
    char text[DUE_ID_TEXT];
    uint64_t number = 0;

    if (rc != 0) {
        say(h->name, "%s! %s %s", verb, due_error_name(rc),
            rc == DUE_EINDOUBT ? due_id_format(job->id, text) : "");
        return;
    }
    bool whole = sound(job, &number);
    say(h->name, "%s! DUE_OK %" PRIu64 " %s %d %d %d", verb, number, due_id_format(job->id, text),
        job->priority, topic_index(job->topic), whole);
}

/* How long to wait for a job.  If one is there, as long as the store may take to let it go: a call
 * that polls leaves what it has begun for the next one, which a kill may cut short between two. */
static int64_t patience(void)
{
    return due_poll(queue, NULL) > 0 ? TAKE_NS : 0;
}

static bool dequeue(struct hand *h)
{
    due_job job;
    int64_t timeout = patience();

    if (timeout == 0)
        return false;
    say(h->name, "dequeue?");
    int rc = due_dequeue(queue, &job, timeout);
    say_taken(h, "dequeue", rc, &job);
    if (rc == 0)
        due_job_done(&job);
    return rc == 0;
}

static void ack(const struct hand *h, due_job *job)
{
    char id[DUE_ID_TEXT];

    say(h->name, "ack? %s", due_id_format(job->id, id));
    int rc = due_ack(job);
    say(h->name, "ack! %s %s", id, due_error_name(rc));
    due_job_done(job);
}

static void nack(struct hand *h, due_job *job)
{
    int64_t delay = (int64_t)crew_below(&h->random, 50) * 1000000;
    char id[DUE_ID_TEXT];

    say(h->name, "nack? %s %" PRId64, due_id_format(job->id, id), delay);
    int rc = due_nack(job, delay);
    say(h->name, "nack! %s %s", id, due_error_name(rc));
    due_job_done(job);
}

static void bury(const struct hand *h, due_job *job)
{
    char id[DUE_ID_TEXT];

    say(h->name, "bury? %s", due_id_format(job->id, id));
    int rc = due_bury(job, id);
    say(h->name, "bury! %s %s", id, due_error_name(rc));
    due_job_done(job);
}

static void reserve(struct hand *h)
{
    due_job job;
    uint64_t fate = crew_below(&h->random, 20);
    int64_t lease = fate == 19 ? DUE_MS(200) : DUE_S(60);
    int64_t timeout = patience();

    if (timeout == 0)
        return;
    say(h->name, "reserve? %" PRId64, lease);
    int rc = take_leased(queue, &job, lease, timeout);
    say_taken(h, "reserve", rc, &job);
    if (rc != 0)
        return;
    if (fate < 12)
        ack(h, &job);
    else if (fate < 14)
        nack(h, &job);
    else if (fate < 17)
        bury(h, &job);
    else
        due_job_done(&job); /* it comes back when the lease ends, or in the next life */
}

/* Other bytes for a job. */
static int update(const struct hand *h, due_id job, const char *id)
{
    unsigned char bytes[20000];
    uint64_t number = new_number();
    size_t len = payload_of(number, bytes);

    say(h->name, "update? %s %" PRIu64, id, number);
    return due_update(queue, job, bytes, len);
}

/* Another time for it. */
static int move(struct hand *h, due_id job, const char *id)
{
    int64_t to = due_now(queue) + (int64_t)crew_below(&h->random, 300) * 1000000;

    say(h->name, "move? %s %" PRId64, id, to);
    return due_reschedule(queue, job, to);
}

static int cancel(const struct hand *h, due_id job, const char *id)
{
    say(h->name, "cancel? %s", id);
    return due_cancel(queue, job, NULL);
}

/* Something is done to a job that this thread knows. */
static void meddle(struct hand *h)
{
    static const char *const verbs[] = { "update", "move", "cancel" };
    char id[DUE_ID_TEXT];
    uint64_t verb = crew_below(&h->random, 3);

    if (h->n_known == 0)
        return;
    size_t at = crew_below(&h->random, h->n_known);
    due_id job = h->known[at];
    due_id_format(job, id);
    int rc = verb == 0 ? update(h, job, id) : verb == 1 ? move(h, job, id) : cancel(h, job, id);
    say(h->name, "%s! %s %s", verbs[verb], id, due_error_name(rc));
    if (verb == 2 || rc == DUE_ENOENT)
        h->known[at] = h->known[--h->n_known];
}

static void kick(const struct hand *h, due_id job)
{
    char id[DUE_ID_TEXT];

    say(h->name, "kick? %s", due_id_format(job, id));
    int rc = due_kick(queue, job);
    say(h->name, "kick! %s %s", id, due_error_name(rc));
}

/* Some of the dead; answers how many. */
static int list_dead(const struct hand *h, uint64_t *cursor, due_dead *dead)
{
    char id[DUE_ID_TEXT];

    say(h->name, "list?");
    int n = due_list_dead(queue, cursor, dead, LISTED);
    for (int i = 0; i < n; i++) {
        /* Whoever buried it has given its id for the reason. */
        bool right = dead[i].cause == DUE_CAUSE_BURIED &&
                     strcmp(dead[i].reason, due_id_format(dead[i].id, id)) == 0;
        say(h->name, "dead %s", right ? id : "-");
    }
    say(h->name, "list! %s", due_error_name(n < 0 ? n : 0));
    return n;
}

static void kick_one(struct hand *h)
{
    due_dead dead[LISTED];
    uint64_t cursor = 0;
    int n = list_dead(h, &cursor, dead);

    if (n > 0)
        kick(h, dead[crew_below(&h->random, (uint64_t)n)].id);
}

static void flush(const struct hand *h)
{
    say(h->name, "flush?");
    int rc = due_flush(queue, DUE_S(5));
    say(h->name, "flush! %s", due_error_name(rc));
}

static int work(void *arg)
{
    struct hand *h = arg;

    while (!atomic_load(&stop)) {
        uint64_t dice = crew_below(&h->random, 100);

        if (dice < 36)
            enqueue(h);
        else if (dice < 50 && dequeues)
            dequeue(h);
        else if (dice < 76)
            reserve(h);
        else if (dice < 90)
            meddle(h);
        else if (dice < 93)
            kick_one(h);
        else if (dice < 95)
            find(h, 1 + (unsigned)crew_below(&h->random, KEYS));
        else
            flush(h);
    }
    return 0;
}

/* ---- Lives ---- */

static struct due_stats stats(void)
{
    struct due_stats s;

    if (due_stats_read(queue, &s) != 0)
        exit(5);
    return s;
}

/* Jobs that the store should have. */
static uint64_t held(void)
{
    struct due_stats s = stats();

    return s.waiting + s.leased + s.dead;
}

/* Everything out that waits, in order, by reserve and by dequeue. */
static void take_waiting_out(struct hand *h)
{
    for (bool by_dequeue = false;; by_dequeue = !by_dequeue) {
        due_job job;
        bool some;

        if (by_dequeue) {
            some = dequeue(h);
        } else {
            say(h->name, "reserve? %" PRId64, DUE_S(60));
            int rc = take_leased(queue, &job, DUE_S(60), DUE_MS(5));
            say_taken(h, "reserve", rc, &job);
            some = rc == 0;
            if (some)
                ack(h, &job);
        }
        if (!some && stats().waiting + stats().leased == 0)
            break;
    }
}

/* And then the dead. */
static void take_all_out(struct hand *h)
{
    due_dead dead[LISTED];
    uint64_t cursor = 0;
    int n;

    while (stats().loading)
        crew_sleep(DUE_MS(1));
    for (unsigned key = 1; key <= KEYS; key++)
        find(h, key);
    take_waiting_out(h);
    while ((n = list_dead(h, &cursor, dead)) > 0) {
        for (int i = 0; i < n; i++)
            kick(h, dead[i].id);
    }
    take_waiting_out(h);
    flush(h);
}

static void go(void)
{
    atomic_store(&stop, false);
    for (unsigned i = 0; i < THREADS; i++)
        crew_go(&hands[i].thread, work, &hands[i]);
}

/* Until the store has confirmed everything, also what was in doubt when its call had no more time,
 * and what follows from that. */
static void settle(const struct hand *h)
{
    do
        flush(h);
    while (stats().unsettled > 0);
}

static void quiet(void)
{
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++)
        crew_join(&hands[i].thread);
    while (stats().loading)
        crew_sleep(DUE_MS(1));
    settle(&hands[0]);
}

static void read_known(const char *path)
{
    FILE *file = fopen(path, "r");
    char text[64];
    due_id id;

    for (size_t i = 0; file != NULL && fscanf(file, "%63s", text) == 1; i++)
        if (due_id_parse(text, &id) == 0)
            remember(&hands[i % THREADS], id);
    if (file != NULL)
        fclose(file);
}

static void open_queue(const char *url, const char *flags)
{
    due_options options = { DUE_OPTIONS_INIT,
                            .name = "crash",
                            .confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC,
                            .on_log = on_log,
                            .on_settled = on_settled,
                            .on_restore = on_restore,
                            .open_timeout_ns = DUE_S(20) };
    due_error error = { "", "" };

    int rc = worker_store(&options.store, url, flags, &error);
    if (rc == 0)
        rc = due_open(&queue, &options, &error);
    if (rc != 0) {
        say(0, "open! %s %s", due_error_name(rc), error.text);
        exit(3);
    }
    topic[0] = 0;
    topic[1] = due_topic(queue, "a");
    topic[2] = due_topic(queue, "b");
    say(0, "open! DUE_OK");
}

static int close_queue(void)
{
    int rc = due_close(queue, DUE_CLOSE_DISCARD, DUE_S(10));

    if (rc == 0)
        rc = due_free(queue);
    say(0, "close! %s", due_error_name(rc));
    return rc == 0 ? 0 : 6;
}

static void obey(void)
{
    bool working = true;
    char order;

    go();
    while (read(STDIN_FILENO, &order, 1) == 1) {
        if (order == 'q') {
            if (working)
                quiet();
            working = false;
            say(0, "quiet %" PRIu64, held());
        } else if (order == 'g' && !working) {
            working = true;
            go();
        }
    }
    if (working)
        quiet();
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    life = strtoull(argv[2], NULL, 10);
    async = strchr(argv[4], 'a') != NULL;
    dequeues = strchr(argv[4], 'd') != NULL;
    for (unsigned i = 0; i < THREADS; i++) {
        hands[i].name = i + 1;
        hands[i].random = strtoull(argv[3], NULL, 10) * THREADS + i + 1;
    }
    read_known(argv[5]);
    open_queue(argv[1], argv[4]);
    while (strchr(argv[4], 'w') != NULL && stats().loading)
        crew_sleep(DUE_MS(1));
    if (strchr(argv[4], 'D') != NULL)
        take_all_out(&hands[0]);
    else
        obey();
    return close_queue();
}
