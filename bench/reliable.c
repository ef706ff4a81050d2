/* reliable.c - what it costs in memory to answer for a job: what was reserved, may die, has a key.
 *
 *   reliable [--tiny]      2^20 jobs, which fill their segments (tiny: 2^13)
 *
 * Memory comes from the kernel's pages, of which only those that are touched become resident; or
 * from a user's allocator, which is asked for whole segments.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

/* What is done with all of them, one after the other. */
enum then { NOTHING, RESERVE, GIVE_BACK, BURY };

static const struct kind {
    const char *name;
    uint32_t attempts_max; /* the queue's */
    bool own;              /* the jobs' instead */
    bool key;              /* of 16 bytes */
    enum then then;
} kinds[] = {
    { "plain, pending", 0, false, false, NOTHING },
    { "pending, attempts limited", 9, false, false, NOTHING },
    { "pending, a policy of its own", 9, true, false, NOTHING },
    { "pending, a key", 0, false, true, NOTHING },
    { "pending, attempts limited, a key", 9, false, true, NOTHING },
    { "reserved", 0, false, false, RESERVE },
    { "reserved, attempts limited", 9, false, false, RESERVE },
    { "given back", 0, false, false, GIVE_BACK },
    { "given back, attempts limited", 9, false, false, GIVE_BACK },
    { "dead", 0, false, false, BURY },
};

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    printf("reliable: %s: %s\n", what, due_error_text(rc));
    exit(1);
}

static void put(due_queue *q, const struct kind *kind, uint64_t i)
{
    const due_retry own = { .kind = DUE_RETRY_FIXED, .attempts_max = kind->attempts_max };
    uint64_t key[2] = { i * UINT64_C(0x9e3779b97f4a7c15), i };
    due_extra more = { DUE_EXTRA_INIT };
    due_spec s = { DUE_SPEC_INIT, .at_ns = DUE_S(10), .data = "sixteen bytes...", .len = 16 };

    if (kind->own)
        more.retry = &own, s.more = &more;
    if (kind->key)
        more.key = key, more.key_len = sizeof key, s.more = &more;
    must(due_enqueue(q, &s, 0, NULL), "an enqueue");
}

/* One job of those that are due. */
static void answer(due_queue *q, enum then then)
{
    due_job job;

    must(due_reserve(q, &job, 0), "a reserve");
    if (then == GIVE_BACK)
        must(due_nack(&job, DUE_S(1000)), "a nack");
    else if (then == BURY)
        must(due_bury(&job, "it costs what it costs"), "a bury");
    due_job_done(&job); /* if it was answered for, nothing; else its lease goes on */
}

static void fill(due_queue *q, due_clock *clock, const struct kind *kind, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(q, kind, i);
    if (kind->then == NOTHING)
        return;
    must(due_clock_turn_to(clock, DUE_S(10)), "turning the clock");
    for (size_t i = 0; i < n; i++)
        answer(q, kind->then);
}

static size_t resident(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    must(f != NULL && fscanf(f, "%*u %lu", &pages) == 1 ? 0 : DUE_ESYS, "reading statm");
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes that all of them take: what was asked of an allocator, or what became resident. */
static size_t measure(const struct kind *kind, size_t n, bool asked)
{
    size_t bytes;
    due_allocator allocator = measure_memory(&bytes);
    due_clock *clock = due_clock_manual(DUE_S(1));
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .proxies = DUE_PROXIES_NEVER,
                            .lease_ns = DUE_S(1000) };
    due_queue *q = NULL;

    options.allocator = asked ? &allocator : NULL;
    options.retry.kind = kind->attempts_max > 0 && !kind->own ? DUE_RETRY_FIXED : 0;
    options.retry.attempts_max = kind->own ? 0 : kind->attempts_max;
    size_t before = resident();
    must(clock != NULL ? due_open(&q, &options, NULL) : DUE_ENOMEM, "opening");
    fill(q, clock, kind, n);
    size_t taken = asked ? bytes : resident() - before;
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), "closing");
    must(due_free(q), "closing");
    must(due_clock_free(clock), "closing");
    must(bytes == 0 ? 0 : DUE_EBUSY, "giving memory back");
    return taken;
}

/* The same in a process of its own, where nothing is resident from before. */
static double measured(const struct kind *kind, size_t n, bool asked)
{
    int ends[2];
    size_t bytes = 0;

    fflush(stdout);
    must(pipe(ends) == 0 ? 0 : DUE_ESYS, "a pipe");
    pid_t pid = fork();
    must(pid >= 0 ? 0 : DUE_ESYS, "a fork");
    if (pid == 0) {
        bytes = measure(kind, n, asked);
        _exit(write(ends[1], &bytes, sizeof bytes) == (ssize_t)sizeof bytes ? 0 : 1);
    }
    close(ends[1]);
    must(read(ends[0], &bytes, sizeof bytes) == (ssize_t)sizeof bytes ? 0 : DUE_ESYS, "a child");
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return (double)bytes / (double)n;
}

int main(int argc, char **argv)
{
    size_t n = measure_option(argc, argv, "--tiny") ? 1 << 13 : 1 << 20;
    double plain[2] = { 0 };

    printf("reliable n=%zu: bytes a job, beside a plain one; resident, and asked of an allocator\n",
           n);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double bytes[2] = { measured(&kinds[i], n, false), measured(&kinds[i], n, true) };

        if (i == 0)
            plain[0] = bytes[0], plain[1] = bytes[1];
        printf("reliable  %-34s %6.1f  %+6.1f   %6.1f  %+6.1f\n", kinds[i].name, bytes[0],
               bytes[0] - plain[0], bytes[1], bytes[1] - plain[1]);
    }
    return 0;
}
