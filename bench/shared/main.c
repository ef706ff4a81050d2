/* main.c - one cell of a queue that is one server's: the options, the check, the line.
 *
 * bench_shared_cell WORKLOAD --subject NAME [--option VALUE]...; README.md of the benchmarks says
 * what the options, the line and the exit status mean.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "shared_cell.h"

static const struct shared_subject *const subjects[] = { &shared_libdue, &shared_beanstalkd };

#define SUBJECTS (sizeof subjects / sizeof *subjects)

void shared_die(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(status);
}

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || n < least || n > most)
        shared_die(SHARED_USAGE, "%s: a number between %" PRIu64 " and %" PRIu64 ", not %s", name,
                   least, most, text);
    return n;
}

static bool set(struct shared_options *o, const char *name, const char *value)
{
    if (strcmp(name, "--jobs") == 0)
        o->jobs = number(name, value, 1, UINT32_MAX / 2);
    else if (strcmp(name, "--producers") == 0)
        o->producers = (unsigned)number(name, value, 1, SHARED_CREW);
    else if (strcmp(name, "--consumers") == 0)
        o->consumers = (unsigned)number(name, value, 1, SHARED_CREW);
    else if (strcmp(name, "--processes") == 0)
        o->processes = (unsigned)number(name, value, 1, SHARED_CREW);
    else if (strcmp(name, "--batch") == 0)
        o->batch = number(name, value, 0, SHARED_BATCH);
    else if (strcmp(name, "--payload") == 0)
        o->payload = number(name, value, 8, SHARED_PAYLOAD);
    else if (strcmp(name, "--gap-ns") == 0)
        o->gap_ns = (int64_t)number(name, value, 1, 60 * (uint64_t)SHARED_S);
    else if (strcmp(name, "--poll-ns") == 0)
        (void)number(name, value, 1, 60 * (uint64_t)SHARED_S); /* nobody here looks at intervals */
    else
        return false;
    return true;
}

static const struct shared_subject *options(struct shared_options *o, int argc, char **argv)
{
    const struct shared_subject *found = NULL;

    for (int i = 2; i < argc; i += 2) {
        if (i + 1 == argc)
            shared_die(SHARED_USAGE, "%s: no value", argv[i]);
        if (strcmp(argv[i], "--subject") == 0) {
            for (size_t s = 0; s < SUBJECTS; s++)
                if (strcmp(subjects[s]->name, argv[i + 1]) == 0)
                    found = subjects[s];
        } else if (!set(o, argv[i], argv[i + 1])) {
            shared_die(SHARED_USAGE, "no such option: %s", argv[i]);
        }
    }
    if (found == NULL)
        shared_die(SHARED_USAGE, "which --subject?");
    if (o->consumers % o->processes != 0)
        shared_die(SHARED_USAGE, "--consumers: a multiple of --processes");
    return found;
}

static const struct shared_workload *workload(const char *name)
{
    for (const struct shared_workload *w = shared_workloads; w->name != NULL; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    shared_die(SHARED_USAGE, "no such workload: %s", name);
}

static int list(const char *what)
{
    if (strcmp(what, "--list") == 0)
        for (size_t i = 0; i < SUBJECTS; i++)
            printf("%s\t%s\t\n", subjects[i]->name, subjects[i]->about);
    else
        for (const struct shared_workload *w = shared_workloads; w->name != NULL; w++)
            printf("%s\t%s\t%s\n", w->name, w->about, w->unit);
    return SHARED_OK;
}

static void check(const struct shared_options *o, const struct shared_line *line)
{
    uint64_t hash = 0;

    for (uint64_t i = 0; i < o->jobs; i++)
        hash += cell_mix(i);
    if (line->count != o->jobs)
        shared_die(SHARED_WRONG, "%" PRIu64 " jobs came out, not %" PRIu64, line->count, o->jobs);
    if (line->hash != hash)
        shared_die(SHARED_WRONG, "jobs are lost and others doubled");
}

int main(int argc, char **argv)
{
    struct shared_options o = { .producers = 1,
                                .consumers = 1,
                                .processes = 1,
                                .payload = 64,
                                .gap_ns = 20 * SHARED_S / 1000 };
    struct shared_line line = { 0 };

    if (argc == 2 && strncmp(argv[1], "--list", 6) == 0)
        return list(argv[1]);
    if (argc < 2)
        shared_die(SHARED_USAGE, "usage: %s WORKLOAD --subject NAME [--option VALUE]...", argv[0]);
    const struct shared_workload *w = workload(argv[1]);
    o.jobs = w->jobs;
    const struct shared_subject *s = options(&o, argc, argv);

    w->run(s, &o, &line);
    check(&o, &line);
    printf("{\"workload\":\"%s\",\"subject\":\"%s\",\"value\":%.6g,\"unit\":\"%s\","
           "\"count\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"wall_s\":%.6f,\"cpu_s\":%.6f,"
           "\"voluntary\":%ld,\"involuntary\":%ld,\"more\":{",
           w->name, s->name, line.value, w->unit, line.count, line.hash, line.wall_s, line.cpu_s,
           line.voluntary, line.involuntary);
    for (size_t i = 0; i < line.more_count; i++)
        printf("%s\"%s\":%.6g", i > 0 ? "," : "", line.more_name[i], line.more[i]);
    printf("}}\n");
    return fflush(stdout) == 0 ? SHARED_OK : SHARED_WRONG;
}
