/* store_faults.c - every fault at every command of batches and of reading them back, on the Redis
 * store.
 *
 * Each cell is three batches and a load with one fault at one command.  Whatever the fault, the
 * calls come to their end by themselves, everything has landed once, and what the server gets late,
 * on a connection that was given up, changes nothing.
 */
#include <stdio.h>
#include <string.h>

#ifdef DUE_HAVE_REDIS

#include "redis_place.h"

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
    due_store *s = place_store(p);

    snprintf(name, sizeof name, "cell-%u", number);
    struct due_store_open how = { .name = name, .until_ns = SOON };
    int rc = s->verbs->open(s, &how, &info, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    fault_proxy_plan(p->proxy, cell, cell != NULL);
    rc = give_batches(s, info.writer);
    if (rc == 0)
        rc = load_all(s, &seen);
    *commands = fault_proxy_commands(p->proxy);
    CREW_CHECK(fault_proxy_settle(p->proxy, 20000), ": what came late");
    if (rc == 0)
        rc = load_all(s, &seen);
    fault_proxy_plan(p->proxy, NULL, 0);
    (void)s->verbs->close(s, SOON);
    s->verbs->free(s);
    bool right = rc == 0 && seen.jobs[3] > 0 && seen.dead[3] == 0 && seen.jobs[2] == seen.dead[2] &&
                 seen.dead[2] > 0 && seen.jobs[1] == 0 && seen.keys[1] > 0 && seen.keys[2] == 0;
    if (!right)
        for (int k = 0; k <= BATCHES; k++)
            printf("  answered %s; job %d: shown %u times, dead %u, its key %u\n",
                   due_error_name(rc), k, seen.jobs[k], seen.dead[k], seen.keys[k]);
    return right;
}

static unsigned matrix(struct place *p)
{
    const size_t kinds = sizeof faults / sizeof faults[0];
    unsigned wrong = 0;
    unsigned number = 0;
    uint64_t commands;
    uint64_t ignored;

    p->options.answer_ns = DUE_MS(150);
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

    if (!place_open(&place))
        return 77;
    crew_watchdog("store_faults", 280);
    unsigned wrong = matrix(&place);
    place_close(&place);
    return wrong > 0;
}

#else

int main(void)
{
    printf("store_faults: built without the Redis store\n");
    return 77;
}

#endif
