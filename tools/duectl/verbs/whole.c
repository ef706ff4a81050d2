/* whole.c - all jobs of a topic, or of a queue: `duectl clear`, and what `dead --all` does. */
#include "verbs/verbs.h"

#include <stdio.h>

static const char usage[] =
    "usage: duectl clear [OPTION]... [URL]\n"
    "\n"
    "Takes all jobs that wait out of a stored queue for good; the dead stay.  It says how many "
    "there\n"
    "are, and asks on the terminal.  The queue must not be in use.  URL is a Redis, or the path of "
    "a\n"
    "file; without one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --topic NAME   only those of this topic\n"
    "  --yes          do not ask\n"
    "  --control PATH instead of URL: its owner does it, as `duectl work --control PATH`\n"
    "  --json         how many, as a line of JSON\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 they are gone; 1 there is no such queue, or you did not agree; 2 wrong usage, "
    "or\n"
    "there is no terminal to ask on; 3 no connection, or the queue is somebody else's.\n";

/* What they are worth is asked before the queue is owned: whoever thinks about it holds nobody
 * up. */
static int ask(struct ctl_look *look, const char *what)
{
    struct ctl_counted counted;

    if (look->yes)
        return 0;
    if (look->control != NULL)
        return ctl_ask(look, what, UINT64_MAX);
    int status = ctl_count(&counted, look);
    uint64_t n = what[0] == 'd' ? counted.all.dead : counted.all.waiting + counted.all.reserved;
    ctl_count_free(&counted);
    return status != 0 && status != CTL_FAULTS ? status : ctl_ask(look, what, n);
}

int ctl_whole_go(struct ctl_look *look, const char *done, const char *what,
                 int (*change)(struct ctl_access *a, const char *topic, uint64_t *count))
{
    struct ctl_answers answers = { .look = look, .done = done };
    struct ctl_access access;
    uint64_t count = 0;
    int status = what == NULL ? 0 : ask(look, what);

    if (status == 0)
        status = ctl_access_open(&access, look, true);
    if (status != 0)
        return status;
    int rc = change(&access, look->topic, &count);
    ctl_answer_all(&answers, count, rc);
    return ctl_access_close(&access, ctl_answers_end(&answers, 0));
}

static int clear_them(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return a->verbs->clear(a, topic, count);
}

static int clear_go(struct ctl_look *look)
{
    return ctl_whole_go(look, "cleared", "waiting", clear_them);
}

static const struct ctl_look_option own[] = { { "topic", true, ctl_take_topic, NULL },
                                              { "yes", false, ctl_take_yes, NULL },
                                              { "json", false, ctl_take_json, NULL },
                                              { "control", true, ctl_take_control, "FILE" } };

const struct ctl_command ctl_clear = { "clear", usage, CTL_URL_ONLY, own, 4, clear_go };
