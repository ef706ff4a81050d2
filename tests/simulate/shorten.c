/* shorten.c - leaves out kinds, then threads, then verbs, as long as the run still fails. */
#include "shorten.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ORDERS 24
#define MOST_S 20.0

struct search {
    uint64_t seed;
    struct plan_wishes *w;
    const char *failure;
    double until_s;
};

static unsigned char skip[SHORTEN_VERBS];

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Are these the same but for their numbers? */
static bool same_failure(const char *a, const char *b)
{
    for (;;) {
        while (isdigit((unsigned char)*a))
            a++;
        while (isdigit((unsigned char)*b))
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
        a++, b++;
    }
}

static bool fails_so(const struct search *s, const struct plan_wishes *w)
{
    static struct plan plan;
    struct run_result r;

    plan_draw(&plan, s->seed, w);
    run(&plan, false, &r);
    return r.failed && same_failure(r.failure, s->failure);
}

/* With these wishes, in some order of the steps?  Then they are kept. */
static bool keep(struct search *s, struct plan_wishes try)
{
    for (uint64_t i = 0; i < ORDERS && now_s() < s->until_s; i++) {
        try.schedule = i == 0 ? s->w->schedule : i;
        if (fails_so(s, &try)) {
            *s->w = try;
            return true;
        }
    }
    return false;
}

static void leave_out_kinds(struct search *s)
{
    struct plan plan;

    for (unsigned k = 0; k < KINDS; k++) {
        struct plan_wishes try = *s->w;

        plan_draw(&plan, s->seed, &try);
        if (!plan_has(&plan, (enum plan_kind)k))
            continue;
        try.without |= UINT64_C(1) << k;
        keep(s, try);
    }
}

static void fewer_threads(struct search *s)
{
    for (unsigned n = 1; n < PLAN_THREADS_MAX; n++) {
        struct plan_wishes try = *s->w;

        try.threads = n;
        if ((s->w->threads != 0 && n >= s->w->threads) || keep(s, try))
            return;
    }
}

static void fewer_verbs(struct search *s)
{
    for (unsigned n = 1; n < PLAN_VERBS_MAX; n = n * 3 / 2 + 1) {
        struct plan_wishes try = *s->w;

        try.verbs = n;
        if ((s->w->verbs != 0 && n >= s->w->verbs) || keep(s, try))
            return;
    }
}

static void leave_out_verbs(struct search *s)
{
    struct plan plan;

    plan_draw(&plan, s->seed, s->w);
    s->w->skip = skip;
    for (size_t cut = plan.verbs; cut > 0; cut /= 2)
        for (unsigned t = 0; t < plan.threads; t++)
            for (size_t at = 0; at < plan.verbs; at += cut) {
                unsigned char was[PLAN_VERBS_MAX];
                unsigned char *row = &skip[t * PLAN_VERBS_MAX];
                size_t n = at + cut <= plan.verbs ? cut : plan.verbs - at;

                if (memchr(row + at, 0, n) == NULL)
                    continue;
                memcpy(was, row, sizeof was);
                memset(row + at, 1, n);
                if (!keep(s, *s->w))
                    memcpy(row, was, sizeof was);
            }
}

void shorten(uint64_t seed, struct plan_wishes *w, const char *failure)
{
    struct search s = { .seed = seed, .w = w, .failure = failure, .until_s = now_s() + MOST_S };

    if (w->skip != NULL)
        memcpy(skip, w->skip, sizeof skip);
    leave_out_kinds(&s);
    fewer_threads(&s);
    fewer_verbs(&s);
    leave_out_verbs(&s);
    leave_out_kinds(&s);
}

void shorten_print_command(uint64_t seed, const struct plan_wishes *w)
{
    struct plan plan;
    const char *between = " --only ";

    plan_draw(&plan, seed, w);
    printf("simulate --seed %" PRIu64, seed);
    for (unsigned k = 0; k < KINDS; k++)
        if (w->without >> k & 1)
            printf(" --without %s", plan_names[k]);
    printf(" --threads %u --verbs %u --schedule %" PRIu64, plan.threads, plan.verbs, w->schedule);
    for (unsigned t = 0; w->skip != NULL && t < plan.threads; t++)
        for (unsigned n = 0; n < plan.verbs; n++)
            if (!w->skip[t * PLAN_VERBS_MAX + n]) {
                printf("%s%u.%u", between, t + 1, n);
                between = ",";
            }
    printf("\n");
}
