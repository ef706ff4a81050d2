/* named.c - jobs that are named: `duectl cancel`, `kick`, `promote`, `reschedule`. */
#include "verbs/verbs.h"

#include <stdio.h>
#include <time.h>

#define OPTIONS                                                                                   \
    "URL is a Redis, or the path of a file; without one it is that of the environment variable\n" \
    "DUE_STORE_URL.  An ID of - stands for those on standard input: the first word of each "      \
    "line.\n"                                                                                     \
    "The queue must not be in use, unless its owner does it.\n"                                   \
    "\n"                                                                                          \
    "  --json         what became of each, a line of JSON a job\n"                                \
    "  --control PATH instead of URL: its owner does it, as `duectl work --control PATH`\n"       \
    "  --store URL    the same as URL\n"                                                          \
    "  --queue NAME   which queue (duectl)\n"                                                     \
    "  --help\n"                                                                                  \
    "\n"                                                                                          \
    "Exit status: 0 all of them; 1 not all, or there is no such queue; 2 wrong usage; 3 no\n"     \
    "connection, or the queue is somebody else's.\n"

static const char usage_cancel[] =
    "usage: duectl cancel [OPTION]... [URL] ID...\n"
    "\n"
    "Takes jobs out of a stored queue for good: those that wait, and dead ones.  One that\n"
    "somebody has does not come again, and is gone when he has answered, or his lease is "
    "over.\n" OPTIONS;

static const char usage_kick[] =
    "usage: duectl kick [OPTION]... [URL] ID...\n"
    "\n"
    "Dead jobs are due again, at once, as if they had never been tried.\n" OPTIONS;

static const char usage_promote[] = "usage: duectl promote [OPTION]... [URL] ID...\n"
                                    "\n"
                                    "Jobs that wait are due now.\n" OPTIONS;

static const char usage_reschedule[] =
    "usage: duectl reschedule [OPTION]... [URL] ID... TIME\n"
    "\n"
    "Gives waiting jobs another time: from now, such as 1h30m or 0s, or a date, such as\n"
    "@2026-12-01T08:00:00Z.\n" OPTIONS;

static const struct ctl_look_option own[] = { { "json", false, ctl_take_json, NULL },
                                              { "control", true, ctl_take_control, "FILE" } };

typedef int change_ids(struct ctl_access *a, const due_id *ids, size_t n, int *results);

struct naming {
    struct ctl_access access;
    struct ctl_answers answers;
    change_ids *change; /* NULL: they get another time */
    int64_t at_ns;
};

static int change(void *ctx, const due_id *ids, size_t n)
{
    struct naming *c = ctx;
    int results[CTL_NAMED];
    int rc = c->change != NULL ? c->change(&c->access, ids, n, results)
                               : c->access.verbs->move(&c->access, ids, n, c->at_ns, results);

    for (size_t i = 0; i < n; i++)
        ctl_answer(&c->answers, ids[i], rc == 0 ? results[i] : rc);
    return c->answers.status;
}

static int naming_go(struct naming *c, struct ctl_look *look, const char *done, const char *busy)
{
    if (look->word_count == 0) {
        (void)ctl_look_wrong(look, "which job? an id has 32 hexadecimal digits", "no id");
        return CTL_USAGE;
    }
    c->answers = (struct ctl_answers){ .look = look, .done = done, .busy = busy };
    int status = ctl_access_open(&c->access, look, true);
    if (status != 0)
        return status;
    status = ctl_ids(look, change, c);
    return ctl_access_close(&c->access, ctl_answers_end(&c->answers, status));
}

int ctl_named_go(struct ctl_look *look, const char *done, const char *busy, change_ids *how)
{
    struct naming c = { .change = how };

    return naming_go(&c, look, done, busy);
}

/* ---- The commands ---------------------------------------------------------------------------- */

static int cancel_them(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return a->verbs->cancel(a, ids, n, results);
}

static int kick_them(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return a->verbs->kick(a, ids, n, results);
}

static int promote_them(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return a->verbs->promote(a, ids, n, results);
}

static int promote_go(struct ctl_look *look)
{
    return ctl_named_go(look, "promoted", NULL, promote_them);
}

static int cancel_go(struct ctl_look *look)
{
    return ctl_named_go(look, "cancelled", "somebody has it, and it will not come again",
                        cancel_them);
}

static int kick_go(struct ctl_look *look)
{
    return ctl_named_go(look, "kicked", NULL, kick_them);
}

static int reschedule_go(struct ctl_look *look)
{
    struct naming c = { .at_ns = 0 };
    struct ctl_entry entry;

    if (look->time == NULL || !ctl_time_read(&entry, look->time)) {
        (void)ctl_look_wrong(look, look->time == NULL ? "give it behind the ids" : entry.reason,
                             look->time == NULL ? "no time" : look->time);
        return CTL_USAGE;
    }
    c.at_ns = ctl_at_ns(&entry);
    return naming_go(&c, look, "rescheduled", NULL);
}

const struct ctl_command ctl_cancel = { "cancel", usage_cancel, CTL_IDS, own, 2, cancel_go };
const struct ctl_command ctl_kick = { "kick", usage_kick, CTL_IDS, own, 2, kick_go };
const struct ctl_command ctl_promote = { "promote", usage_promote, CTL_IDS, own, 2, promote_go };
const struct ctl_command ctl_reschedule = { "reschedule", usage_reschedule, CTL_IDS_TIME, own, 2,
                                            reschedule_go };
