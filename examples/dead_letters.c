/* dead_letters.c - what becomes of jobs that cannot be done.
 *
 * A postman tries to deliver each letter three times, a day apart.  A letter is dead when the last
 * attempt has failed, when the postman gives it up because trying again would not help, or when
 * its time has passed before anybody took it.  Dead letters are kept, so that somebody may look at
 * them: one is sent once more, the others are cleared.  What nobody looks at goes after 30 days.
 *
 * The clock is turned by hand, so that the example takes no time.
 */
#include <due/due.h>
#include <stdio.h>
#include <string.h>

#define DAY DUE_S(86400)

enum letter { ANN, BEN, NOBODY, VOUCHER, LETTERS };

static const char *const address[] = { "Ann, Mill Lane", "Ben, High Street", "Nobody, Nowhere",
                                       "a voucher for today" };
static const char *const cause[] = { "", "given up", "no attempt left", "too late" };

static int ben_is_away = 1;
static int wrong;

static int is_to(const due_job *job, enum letter letter)
{
    return job->len == strlen(address[letter]) && memcmp(job->data, address[letter], job->len) == 0;
}

/* NULL: delivered.  Else why not; "" is what may be different tomorrow. */
static const char *deliver(const due_job *job)
{
    if (is_to(job, NOBODY))
        return "no such street";
    return is_to(job, BEN) && ben_is_away ? "" : NULL;
}

/* One day's round: every letter that is due, and an answer for each. */
static void go_round(due_queue *q)
{
    due_job job;

    while (due_reserve(q, &job, 0) == 0) {
        const char *why_not = deliver(&job);

        printf("day %2d: %.*s, attempt %u: %s\n", (int)(due_now(q) / DAY), (int)job.len,
               (const char *)job.data, job.attempts, why_not == NULL ? "delivered" : "failed");
        if (why_not == NULL)
            wrong += due_ack(&job) != 0;
        else if (*why_not != '\0')
            wrong += due_bury(&job, why_not) != 0; /* hopeless: dead at once */
        else
            wrong += due_nack(&job, DUE_DELAY_POLICY) != 0; /* tomorrow, if an attempt is left */
    }
}

static void post(due_queue *q, enum letter letter, due_id *id)
{
    due_extra today = { DUE_EXTRA_INIT, .ttl_ns = DAY - 1 };
    due_spec spec = { DUE_SPEC_INIT, .data = address[letter], .len = strlen(address[letter]) };

    if (letter == VOUCHER)
        spec.more = &today;
    wrong += due_enqueue(q, &spec, 0, id) != 0;
}

/* The listing has no order, so it is looked at once for each letter. */
static void show_dead(due_queue *q, const due_id ids[LETTERS])
{
    uint64_t cursor = 0;
    due_dead dead[LETTERS];
    int n = due_list_dead(q, &cursor, dead, LETTERS);

    printf("dead letters: %d\n", n);
    for (int i = 0; i < LETTERS; i++)
        for (int k = 0; k < n; k++)
            if (due_id_equal(dead[k].id, ids[i]))
                printf("  %-20s since day %d, %u attempts: %s%s%s\n", address[i],
                       (int)(dead[k].died_ns / DAY), dead[k].attempts, cause[dead[k].cause],
                       dead[k].reason[0] != '\0' ? ", " : "", dead[k].reason);
}

static void work(due_queue *q, due_clock *clock)
{
    due_id ids[LETTERS];
    uint64_t cleared;

    for (int i = 0; i < LETTERS; i++)
        post(q, (enum letter)i, &ids[i]);
    for (int day = 1; day <= 3; day++) { /* on day 0 nobody works, so the voucher is too late */
        due_clock_advance(clock, DAY);
        go_round(q);
    }
    show_dead(q, ids);

    ben_is_away = 0;
    wrong += due_kick(q, ids[BEN]) != 0; /* as if it had just been posted */
    go_round(q);
    wrong += due_clear_dead(q, DUE_ALL_TOPICS, &cleared) != 0;
    printf("cleared: %d\n", (int)cleared);
    show_dead(q, ids);

    post(q, NOBODY, &ids[NOBODY]);
    go_round(q);
    due_clock_advance(clock, 30 * DAY - 1);
    go_round(q); /* nothing to do; but whoever looks for jobs also sees to what is over */
    show_dead(q, ids);
    due_clock_advance(clock, 1);
    go_round(q);
    show_dead(q, ids);
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = {
        DUE_OPTIONS_INIT, .manual = clock,
        .retry = { .kind = DUE_RETRY_FIXED, .delay_ns = DAY, .attempts_max = 3 },
        .lease_ns = DUE_S(600), .dead_keep_ns = 30 * DAY
    };
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    work(q, clock);
    wrong += due_close(q, DUE_CLOSE_DRAIN, 0) != 0 || due_free(q) != 0;
    return due_clock_free(clock) != 0 || wrong > 0;
}
