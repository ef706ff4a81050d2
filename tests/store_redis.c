/* store_redis.c - the suite on the Redis store, with a server of its own behind the fault proxy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DUE_HAVE_REDIS

#include "crew.h"
#include "due/redis.h"
#include "fault_proxy.h"
#include "redis_server.h"
#include "store_suite.h"

struct place {
    struct redis_server server;
    struct fault_proxy *proxy;
    char proxy_path[112];
    char url[128];
    due_redis_options options;
};

static void ask(struct place *p, const char *one, const char *two, const char *three,
                const char *four)
{
    const char *const words[] = { one, two, three, four, NULL };
    char answer[128];
    long n = redis_server_ask(&p->server, words, answer, sizeof answer);

    CREW_CHECK(n > 0 && answer[0] != '-', ": %s", n > 0 ? answer : one);
}

static due_store *make(void *ctx)
{
    struct place *p = ctx;
    due_store *store = NULL;
    due_error error = { .text = "" };
    int rc = due_redis_open(&store, p->url, &p->options, &error);

    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

static void cut(void *ctx)
{
    struct place *p = ctx;

    fault_proxy_cut(p->proxy);
}

static void lose(void *ctx)
{
    struct place *p = ctx;

    ask(p, "FLUSHALL", NULL, NULL, NULL);
    fault_proxy_cut(p->proxy);
}

static void full(void *ctx, bool is_full)
{
    struct place *p = ctx;

    ask(p, "CONFIG", "SET", "maxmemory", is_full ? "1" : "0");
}

static void doubt(void *ctx, bool lands)
{
    struct place *p = ctx;
    struct fault_cell cell = { .command = 1,
                               .name = "EXEC",
                               .where = lands ? FAULT_SENT : FAULT_BEFORE,
                               .what = FAULT_RESET };

    fault_proxy_plan(p->proxy, &cell, 1);
}

/* ---- Every fault at every command of a batch ---- */

struct cell_name {
    enum fault_where where;
    enum fault_what what;
    const char *text;
};

static const struct cell_name faults[] = {
    { FAULT_BEFORE, FAULT_RESET, "reset before" },
    { FAULT_MID_COMMAND, FAULT_RESET, "reset in the middle" },
    { FAULT_SENT, FAULT_RESET, "reset after" },
    { FAULT_MID_REPLY, FAULT_RESET, "reset in the reply" },
    { FAULT_BEFORE, FAULT_CLOSE, "closed before" },
    { FAULT_SENT, FAULT_CLOSE, "closed after" },
    { FAULT_MID_REPLY, FAULT_CLOSE, "truncated reply" },
    { FAULT_BEFORE, FAULT_HALF, "half-closed before" },
    { FAULT_SENT, FAULT_HALF, "half-closed after" },
    { FAULT_BEFORE, FAULT_STALL, "stalled before" },
    { FAULT_SENT, FAULT_STALL, "stalled after" },
    { FAULT_BEFORE, FAULT_TRICKLE, "one byte at a time" },
    { FAULT_SENT, FAULT_TRICKLE, "one byte of the reply at a time" },
    { FAULT_SENT, FAULT_DELAY, "late reply" },
};

#define BATCHES 3
#define SOON    (crew_now_ns() + DUE_S(20))

static due_id id_of(uint64_t writer, unsigned char n)
{
    due_id id = { .byte = { [0] = 255, [13] = n } };

    for (int i = 0; i < 6; i++)
        id.byte[1 + i] = (unsigned char)(writer >> (40 - 8 * i));
    return id;
}

/* What was shown: jobs by number, of them the dead, and kept keys. */
struct seen {
    unsigned jobs[16], dead[16], keys[16];
};

static int count(void *ctx, const due_record *record)
{
    struct seen *seen = ctx;

    seen->jobs[record->id.byte[13] % 16]++;
    seen->dead[record->id.byte[13] % 16] += record->cause != 0;
    return 0;
}

static int count_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct seen *seen = ctx;
    unsigned char n = id.byte[13];

    seen->keys[n % 16] += len == 1 && *(const unsigned char *)key == n && until_ns == DUE_S(n);
    return 0;
}

static due_change change(enum due_change_kind kind, uint64_t writer, unsigned char n)
{
    static const unsigned char keys[] = { 0, 1, 2, 3 };

    return (due_change){ .kind = kind,
                         .was_ns = n,
                         .record = { .id = id_of(writer, n),
                                     .topic = "t",
                                     .data = "payload",
                                     .len = 7,
                                     .key = &keys[n],
                                     .key_len = 1,
                                     .until_ns = n,
                                     .deadline_ns = n } };
}

/* Batch k puts job k.  The second drops the first job, whose key stays, the third buries the second
 * job. */
static int give_batches(due_store *s, uint64_t writer)
{
    for (unsigned char k = 1; k <= BATCHES; k++) {
        unsigned char before = (unsigned char)(k - 1);
        due_change c[2] = { change(DUE_CHANGE_PUT, writer, k),
                            change(k == 2 ? DUE_CHANGE_DROP : DUE_CHANGE_BURY, writer, before) };
        int64_t end_ns = SOON;
        int rc;

        if (k == 2)
            c[1].key_kept_ns = DUE_S(1);
        c[1].record.cause = k == 3 ? DUE_CAUSE_BURIED : 0;
        do {
            rc = s->verbs->ready(s, end_ns);
            if (rc == 0)
                rc = s->verbs->commit(s, c, k > 1 ? 2 : 1, k, end_ns);
        } while ((rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && crew_now_ns() < end_ns);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int load_all(due_store *s, struct seen *seen)
{
    int64_t end_ns = SOON;
    int rc = 1;

    for (int first = 1; (rc == 1 || rc == DUE_EAGAIN) && crew_now_ns() < end_ns; first = 0)
        rc = s->verbs->load(s, first, 4, count, seen, end_ns);
    if (rc != 0)
        return rc;
    rc = 1;
    for (int first = 1; (rc == 1 || rc == DUE_EAGAIN) && crew_now_ns() < end_ns; first = 0)
        rc = s->verbs->keys(s, first, 4, count_key, seen, end_ns);
    return rc;
}

/* Whether everything landed once, and is there for the next owner. */
static bool run_cell(struct place *p, const struct fault_cell *cell, unsigned number,
                     uint64_t *commands)
{
    char name[32];
    struct due_store_info info;
    struct seen seen = { .jobs = { 0 } };
    due_store *s = make(p);

    snprintf(name, sizeof name, "cell-%u", number);
    struct due_store_open how = { .name = name, .until_ns = SOON };
    int rc = s->verbs->open(s, &how, &info, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    fault_proxy_plan(p->proxy, cell, cell != NULL);
    rc = give_batches(s, info.writer);
    if (rc == 0)
        rc = load_all(s, &seen);
    *commands = fault_proxy_commands(p->proxy);
    fault_proxy_plan(p->proxy, NULL, 0);
    (void)s->verbs->close(s, SOON);
    s->verbs->free(s);
    if (rc != 0)
        printf("  answered %s\n", due_error_name(rc));
    return rc == 0 && seen.jobs[3] > 0 && seen.dead[3] == 0 && seen.jobs[2] == seen.dead[2] &&
           seen.dead[2] > 0 && seen.jobs[1] == 0 && seen.keys[1] > 0 && seen.keys[2] == 0;
}

static unsigned matrix(struct place *p)
{
    const size_t kinds = sizeof faults / sizeof faults[0];
    unsigned wrong = 0;
    unsigned number = 0;
    uint64_t commands;
    uint64_t ignored;

    p->options.answer_ns = DUE_MS(150);
    p->options.lease_ns = 0;
    CREW_CHECK(run_cell(p, NULL, number++, &commands), ": without a fault");
    for (uint64_t command = 1; command <= commands; command++)
        for (size_t i = 0; i < kinds; i++) {
            struct fault_cell cell = {
                .command = command, .where = faults[i].where, .what = faults[i].what, .delay_ms = 20
            };

            crew_doing(faults[i].text);
            if (run_cell(p, &cell, number++, &ignored))
                continue;
            printf("  WRONG: %s, command %llu of %llu\n", faults[i].text,
                   (unsigned long long)command, (unsigned long long)commands);
            wrong++;
        }
    printf("fault matrix: %llu commands, %u cells, %u wrong\n", (unsigned long long)commands,
           number - 1, wrong);
    return wrong;
}

int main(void)
{
    static struct place place;
    int rc = redis_server_start(&place.server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("store_redis", 115);
    snprintf(place.proxy_path, sizeof place.proxy_path, "%s/proxy", place.server.dir);
    snprintf(place.url, sizeof place.url, "unix://%s", place.proxy_path);
    place.proxy = fault_proxy_start(place.proxy_path, place.server.socket);
    CREW_CHECK(place.proxy != NULL, ": no proxy");
    place.options = (due_redis_options){ .size = DUE_REDIS_OPTIONS_INIT,
                                         .lease_ns = DUE_S(1),
                                         .backoff_min_ns = DUE_MS(1) };
    struct store_maker maker = { .name = "redis store",
                                 .make = make,
                                 .ctx = &place,
                                 .lease_ns = DUE_S(1),
                                 .grain_ns = 1000,
                                 .cut = cut,
                                 .lose = lose,
                                 .full = full,
                                 .doubt = doubt };
    int failed = store_suite_run(&maker, getenv("STORE_SUITE_ONLY"));
    failed |= matrix(&place) > 0;
    fault_proxy_stop(place.proxy);
    redis_server_stop(&place.server);
    return failed;
}

#else

int main(void)
{
    printf("store_redis: built without the Redis store\n");
    return 77;
}

#endif
