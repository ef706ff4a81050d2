/* main.c - one cell: one subject does one workload once, and prints one line.
 *
 *   bench_cell WORKLOAD --subject NAME [--option VALUE]...
 *   bench_cell --list | --list-workloads
 *
 * README.md of the benchmarks says what the options, the line and the exit status mean.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "subjects.h"

#define HOUR CELL_FAR

const struct cell_workload cell_workloads[] = {
    { "enqueue", "putting in jobs far away", "M/s", 1000000, HOUR, BENCH_VIRTUAL, 0, work_enqueue,
      limit_enqueue },
    { "through", "putting in while others take", "M/s", 1000000, 0, 0, BENCH_ONE_THREAD,
      work_through, limit_through },
    { "lateness", "how late a job is taken", "us", 10000, CELL_DEFAULT, 0, BENCH_NO_TIME,
      work_lateness, limit_lateness },
    { "handoff", "from putting in to a blocked consumer", "us", 2000, 0, 0, BENCH_ONE_THREAD,
      work_handoff, limit_handoff },
    { "cancel", "cancelling jobs in random order", "M/s", 1000000, HOUR, BENCH_CANCEL, 0,
      work_cancel, limit_cancel },
    { "timeout", "putting in a job and cancelling the oldest", "M pairs/s", 1000000, CELL_S,
      BENCH_CANCEL, 0, work_timeout, NULL },
    { "hold", "taking the head and putting it back later", "ns", 1000000, CELL_DEFAULT,
      BENCH_VIRTUAL, 0, work_hold, limit_hold },
    { "memory", "resident memory of a pending job", "bytes", 1000000, HOUR, 0, 0, work_memory,
      NULL },
    { "mixed", "putting in, cancelling some, taking the rest", "ns a job", 1000000, HOUR,
      BENCH_VIRTUAL, 0, work_mixed, NULL },
    { "burst", "many jobs at once after a pause", "ns a job", 100000, 0, 0, BENCH_ONE_THREAD,
      work_burst, NULL },
    { "slow", "putting in while the consumers are busy", "M/s", 1000000, 0, 0, BENCH_ONE_THREAD,
      work_slow, NULL },
    { "drain", "putting in, then taking until nothing is left", "M/s", 1000000, 20000000, 0,
      BENCH_ONE_THREAD | BENCH_NO_TIME, work_drain, NULL },
    { "reschedule", "giving a waiting job another deadline", "ns", 1000000, HOUR, BENCH_VIRTUAL,
      BENCH_NO_TIME, work_reschedule, NULL },
    { "nothing", "a look while nothing is due", "ns", 1000000, HOUR, 0, BENCH_NO_TIME, work_nothing,
      NULL },
    { 0 },
};

void cell_die(int status, const char *format, ...)
{
    va_list args;
    char text[400];

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "bench: %s\n", text);
    _exit(status);
}

void *cell_alloc(size_t n, size_t size)
{
    size_t bytes = (n * size + 127) / 128 * 128 + 128;
    void *memory = aligned_alloc(128, bytes);

    if (memory == NULL)
        cell_die(CELL_WRONG, "no memory for %zu bytes of the cell's own", bytes);
    memset(memory, 1, bytes); /* a page that was only ever zeroed might not be there */
    memset(memory, 0, bytes);
    return memory;
}

/* ---- Options --------------------------------------------------------------------------------- */

static const char *const shapes[] = { "uniform",  "exponential", "clustered", "heavy",
                                      "sawtooth", "equal",       "decades",   NULL };
static const char *const places[] = { "asleep", "same", "awake", NULL };

static int choice(const char *name, const char *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(value, words[i]) == 0)
            return i;
    }
    cell_die(CELL_USAGE, "%s: not known: %s", name, value);
}

static int64_t number(const char *name, const char *value, int64_t min, int64_t max)
{
    char *end;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || n < min || n > max)
        cell_die(CELL_USAGE, "%s: a number between %lld and %lld, not %s", name, (long long)min,
                 (long long)max, value);
    return n;
}

static void option(struct cell_options *o, const char *name, const char *value)
{
    if (strcmp(name, "--jobs") == 0)
        o->jobs = number(name, value, 1, UINT32_MAX / 2);
    else if (strcmp(name, "--producers") == 0)
        o->producers = (unsigned)number(name, value, 1, 512);
    else if (strcmp(name, "--consumers") == 0)
        o->consumers = (unsigned)number(name, value, 1, 512);
    else if (strcmp(name, "--batch") == 0)
        o->batch = (size_t)number(name, value, 0, 4096);
    else if (strcmp(name, "--shape") == 0)
        o->shape = (enum cell_shape)choice(name, value, shapes);
    else if (strcmp(name, "--spread-ns") == 0)
        o->spread_ns = number(name, value, 0, 1000 * CELL_FAR);
    else if (strcmp(name, "--payload") == 0)
        o->payload = (size_t)number(name, value, 0, 4096);
    else if (strcmp(name, "--topics") == 0)
        o->topics = (unsigned)number(name, value, 1, 60000);
    else if (strcmp(name, "--seed") == 0)
        o->seed = (uint64_t)number(name, value, 0, INT64_MAX);
    else if (strcmp(name, "--live") == 0)
        o->live = number(name, value, 1, UINT32_MAX / 2);
    else if (strcmp(name, "--gap-ns") == 0)
        o->gap_ns = number(name, value, 1, 60 * CELL_S);
    else if (strcmp(name, "--where") == 0)
        o->where = (enum cell_where)choice(name, value, places);
    else if (strcmp(name, "--percent") == 0)
        o->percent = (unsigned)number(name, value, 0, 100);
    else if (strcmp(name, "--think-ns") == 0)
        o->think_ns = number(name, value, 0, 60 * CELL_S);
    else if (strcmp(name, "--line") == 0)
        o->line = (size_t)number(name, value, 8, 64);
    else if (strcmp(name, "--spin-ns") == 0)
        o->spin_ns = number(name, value, 0, CELL_S);
    else
        cell_die(CELL_USAGE, "no such option: %s", name);
}

static const char *options(struct cell_options *o, int argc, char **argv)
{
    const char *subject = NULL;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--pin") == 0) {
            o->pin = true;
            continue;
        }
        if (strcmp(argv[i], "--spec") == 0) {
            o->spec = true;
            continue;
        }
        if (strcmp(argv[i], "--real") == 0) {
            o->real = true;
            continue;
        }
        if (i + 1 == argc)
            cell_die(CELL_USAGE, "%s: no value", argv[i]);
        if (strcmp(argv[i], "--subject") == 0)
            subject = argv[i + 1];
        else
            option(o, argv[i], argv[i + 1]);
        i++;
    }
    if (subject == NULL)
        cell_die(CELL_USAGE, "which --subject?");
    if (o->payload > 0 && o->payload < 8)
        cell_die(CELL_USAGE, "--payload: 0, or 8 and more");
    return subject;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static int list_subjects(void)
{
    static const char *const words[] = { "one-thread", "cancel",  "virtual", "topics",
                                         "payload",    "no-time", "spins",   "spin-ns" };

    for (size_t i = 0; bench_subjects[i] != NULL; i++) {
        const struct bench_subject *s = bench_subjects[i];
        const char *between = "";

        printf("%s\t%s\t", s->name, s->about);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            if (s->can & 1u << k) {
                printf("%s%s", between, words[k]);
                between = " ";
            }
        }
        puts("");
    }
    if (bench_has_limits)
        puts("limit\tthe machine's own limit: what could be had at most\tlimit\n"
             "empty\tdoes nothing: what the cell itself costs\tempty");
    return CELL_OK;
}

static int list_workloads(void)
{
    for (const struct cell_workload *w = cell_workloads; w->name != NULL; w++)
        printf("%s\t%s\t%s\n", w->name, w->about, w->unit);
    return CELL_OK;
}

/* ---- One cell -------------------------------------------------------------------------------- */

static const struct cell_workload *workload_named(const char *name)
{
    const struct cell_workload *w = cell_workloads;

    while (w->name != NULL && strcmp(w->name, name) != 0)
        w++;
    if (w->name == NULL)
        cell_die(CELL_USAGE, "no such workload: %s", name);
    return w;
}

static const struct bench_subject *subject_named(const char *name)
{
    const struct bench_subject *const *s = bench_subjects;

    while (*s != NULL && strcmp((*s)->name, name) != 0)
        s++;
    if (*s != NULL)
        return *s;
    for (s = bench_broken; *s != NULL && strcmp((*s)->name, name) != 0; s++)
        ;
    if (*s == NULL)
        cell_die(CELL_USAGE, "no such subject: %s", name);
    return *s;
}

/* Can this subject do what is asked for? */
static void qualify(const struct cell *c, const struct cell_workload *w)
{
    const struct cell_options *o = &c->o;
    unsigned can = c->s->can;
    const char *name = c->s->name;

    if (can & BENCH_NO_TIME)
        can |= BENCH_VIRTUAL; /* it gives its head, whatever the clock shows */
    if (w->needs & ~can & BENCH_CANCEL ||
        (o->percent > 0 && w->run == work_mixed && !(can & BENCH_CANCEL)))
        cell_die(CELL_CANNOT, "%s cannot cancel", name);
    if (w->needs & ~can)
        cell_die(CELL_CANNOT, "%s cannot be given a virtual clock", name);
    if (w->refuses & can & BENCH_ONE_THREAD)
        cell_die(CELL_CANNOT, "%s is of one thread", name);
    if (w->refuses & can & BENCH_NO_TIME ||
        (can & BENCH_NO_TIME && w->run == work_through && o->spread_ns > 0))
        cell_die(CELL_CANNOT, "%s knows no time", name);
    if (can & BENCH_ONE_THREAD &&
        (o->producers > 1 || (w->run == work_lateness && o->consumers > 1)))
        cell_die(CELL_CANNOT, "%s is of one thread", name);
    if (w->run == work_reschedule && c->s->reschedule == NULL)
        cell_die(CELL_CANNOT, "%s cannot give a job another deadline", name);
    if (w->run == work_drain && c->s->drain == NULL)
        cell_die(CELL_CANNOT, "%s cannot drain", name);
    if (o->topics > 1 && !(can & BENCH_TOPICS))
        cell_die(CELL_CANNOT, "%s has no topics", name);
    if (o->payload > 0 && !(can & BENCH_PAYLOAD))
        cell_die(CELL_CANNOT, "%s carries no payload", name);
    if (o->spec && !(can & BENCH_SPEC))
        cell_die(CELL_CANNOT, "%s has no other way to put in", name);
    if (o->spin_ns > 0 && !(can & BENCH_SPIN_NS))
        cell_die(CELL_CANNOT, "%s cannot take early and spin", name);
}

static void run(struct cell *c, const struct cell_workload *w, const char *subject)
{
    unsigned core;

    cell_idle_thread(); /* who has no other thread is spared a mutex's locked instructions */
    if (c->o.jobs == CELL_DEFAULT)
        c->o.jobs = w->jobs;
    if (c->o.spread_ns == CELL_DEFAULT)
        c->o.spread_ns = w->spread_ns;
    if (c->o.pin && (cell_cores(&core, 1) != 1 || !cell_pin(&core, 1)))
        cell_die(CELL_CANNOT, "this process cannot be pinned");
    if (bench_has_limits && strcmp(subject, "limit") == 0) {
        if (w->limit == NULL)
            cell_die(CELL_CANNOT, "no limit is known for %s", w->name);
        w->limit(c);
        return;
    }
    if (bench_has_limits && strcmp(subject, "empty") == 0) {
        work_empty(c, w);
        return;
    }
    c->s = subject_named(subject);
    qualify(c, w);
    w->run(c);
}

int main(int argc, char **argv)
{
    static struct cell c = { .o = { .jobs = CELL_DEFAULT,
                                    .producers = 1,
                                    .consumers = 1,
                                    .spread_ns = CELL_DEFAULT,
                                    .topics = 1,
                                    .line = 8,
                                    .seed = 42,
                                    .live = 100000,
                                    .gap_ns = 1000000,
                                    .percent = 50,
                                    .think_ns = 1000000 } };

    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_subjects();
    if (argc == 2 && strcmp(argv[1], "--list-workloads") == 0)
        return list_workloads();
    if (argc < 2)
        cell_die(CELL_USAGE, "usage: %s WORKLOAD --subject NAME [--option VALUE]...", argv[0]);
    const struct cell_workload *w = workload_named(argv[1]);
    const char *subject = options(&c.o, argc, argv);

    run(&c, w, subject);
    cell_print(&c, w, subject);
    return fflush(stdout) == 0 ? CELL_OK : CELL_WRONG;
}
