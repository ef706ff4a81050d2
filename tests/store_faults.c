/* store_faults.c - every fault at every command of batches and of reading them back, on the Redis
 * store.
 *
 * Each cell is three batches and a load with one fault at one command.  Whatever the fault, each
 * call is back in its time, and waits without burning the processor; everything has landed once;
 * and what the server gets late, on a connection that was given up, changes nothing.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef DUE_HAVE_REDIS

#include "redis_batches.h"

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

/* ---- Calls: each is back in its time ---- */

#define ONCE DUE_MS(400) /* a call has so long */
#define LATE DUE_S(3)    /* and is back so long after that, on a busy machine */

static int64_t called_ns; /* when the last one was made */

static int64_t until(void)
{
    called_ns = crew_now_ns();
    return called_ns + ONCE;
}

/* The call has answered @rc.  True: it is to be made again. */
static bool again(int rc, int64_t end_ns)
{
    int64_t now = crew_now_ns();

    CREW_CHECK(now < called_ns + ONCE + LATE, ": a call was not back in its time");
    return (rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && now < end_ns;
}

static int give_batches(due_store *s, uint64_t writer)
{
    for (unsigned char k = 1; k <= BATCHES; k++) {
        due_change c[2];
        size_t n = batch(c, writer, k);
        int64_t end_ns = SOON;
        int rc;

        do {
            rc = s->verbs->ready(s, until());
            if (rc == 0)
                rc = s->verbs->commit(s, c, n, k, until());
        } while (again(rc, end_ns));
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int load_all(due_store *s, struct seen *seen)
{
    int64_t end_ns = SOON;
    int rc = 1;

    for (int first = 1; rc == 1 || again(rc, end_ns); first = 0)
        rc = s->verbs->load(s, first, 4, count, seen, until());
    if (rc != 0)
        return rc;
    rc = 1;
    for (int first = 1; rc == 1 || again(rc, end_ns); first = 0)
        rc = s->verbs->keys(s, first, 4, count_key, seen, until());
    return rc;
}

/* Of this thread: the proxy has its own. */
static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define CPU DUE_MS(100) /* for a cell, most of which stall for 150 ms */

static int64_t cpu_most_ns;

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
    int64_t cpu = cpu_ns();
    rc = give_batches(s, info.writer);
    if (rc == 0)
        rc = load_all(s, &seen);
    cpu = cpu_ns() - cpu;
    cpu_most_ns = cpu > cpu_most_ns ? cpu : cpu_most_ns;
    *commands = fault_proxy_commands(p->proxy);
    CREW_CHECK(fault_proxy_settle(p->proxy, 20000), ": what came late");
    if (rc == 0)
        rc = load_all(s, &seen);
    fault_proxy_plan(p->proxy, NULL, 0);
    (void)s->verbs->close(s, SOON);
    s->verbs->free(s);
    bool right = rc == 0 && all_right(&seen);
    if (!right)
        show_seen(&seen, rc);
    if (cpu > CPU)
        printf("  it took %lld ms of the processor\n", (long long)cpu / 1000000);
    right &= cpu <= CPU;
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
    printf("fault matrix: %llu commands, %u cells, %u wrong; at most %lld us of the processor\n",
           (unsigned long long)commands, number - 1, wrong, (long long)cpu_most_ns / 1000);
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
