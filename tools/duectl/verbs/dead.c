/* dead.c - `duectl dead ls`, `kick`, `drop`: jobs that are dead. */
#include "verbs/verbs.h"

#include <stdio.h>
#include <string.h>

#define CONTROL \
    "  --control PATH instead of URL: its owner does it, as `duectl work --control PATH`\n"

#define CONTROL_LS "  --control PATH instead of URL: those that its owner tells of, in no order\n"

#define COMMON                                                                   \
    "  --topic NAME   only those of this topic\n"                                \
    "  --json         lines of JSON\n"                                           \
    "  --store URL    the same as URL\n"                                         \
    "  --queue NAME   which queue (duectl)\n"                                    \
    "  --help\n"                                                                 \
    "\n"                                                                         \
    "Exit status: 0 all is done; 1 not all, or there is no such queue, or you\n" \
    "did not agree; 2 wrong usage, or there is no terminal to ask on; 3 no\n"    \
    "connection, or the queue is somebody else's.\n"

static const char usage[] =
    "usage: duectl dead ls [OPTION]... [URL]                 list the dead jobs, and why they "
    "died\n"
    "       duectl dead kick [OPTION]... [URL] ID...|--all   they are due again, at once\n"
    "       duectl dead drop [OPTION]... [URL] ID...|--all   they are gone for good\n"
    "\n"
    "`duectl dead ls --help` and so on have the options.\n";

static const char usage_ls[] =
    "usage: duectl dead ls [OPTION]... [URL]\n"
    "\n"
    "Lists the dead jobs of a stored queue, which may be in use: id, when it died, cause, "
    "attempts,\n"
    "topic, reason, and the beginning of its text.  With --json they are as `duectl ls` has them.\n"
    "\n" CONTROL_LS COMMON;

static const char usage_kick[] =
    "usage: duectl dead kick [OPTION]... [URL] ID...|--all\n"
    "\n"
    "Dead jobs are due again, at once, as if they had never been tried.  An ID of - stands for\n"
    "those on standard input: the first word of each line.  The queue must not be in use.\n"
    "\n"
    "  --all          all that are dead\n" CONTROL COMMON;

static const char usage_drop[] =
    "usage: duectl dead drop [OPTION]... [URL] ID...|--all\n"
    "\n"
    "Dead jobs are gone for good.  An ID of - stands for those on standard input: the first word\n"
    "of each line.  The queue must not be in use.  With --all it says how many there are, and "
    "asks\n"
    "on the terminal.\n"
    "\n"
    "  --all          all that are dead\n"
    "  --yes          do not ask\n" CONTROL COMMON;

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_plain(struct due__ctl_buffer *b, const due_record *r)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    const char *reason = r->reason == NULL ? "" : r->reason;
    char id[DUE_ID_TEXT];
    char date[CTL_DUMP_DATE];
    char text[2 * CTL_EXCERPT];
    size_t len = strlen(r->topic);

    due__ctl_buffer_text(b, "%s  %s  %-8s  %3u  ", due_id_format(r->id, id),
                         ctl_dump_date(date, r->died_ns), causes[r->cause], r->attempts);
    due__ctl_buffer_text(b, "%-12s  ",
                         len == 0 ? "-" : ctl_text_show(text, sizeof text, r->topic, len));
    due__ctl_buffer_text(
        b, "%s  ",
        reason[0] == '\0' ? "-" : ctl_text_show(text, sizeof text, reason, strnlen(reason, 47)));
    due__ctl_buffer_text(b, "%s\n",
                         r->len == 0 ? "" : ctl_text_show(text, CTL_EXCERPT, r->data, r->len));
}

static int ls_go(struct ctl_look *look)
{
    static const struct ctl_form form = {
        "id                                died                            cause     tries  topic  "
        "       reason  text\n",
        add_plain
    };

    look->state = "dead";
    return ctl_list(look, &form);
}

/* ---- kick, drop ------------------------------------------------------------------------------ */

static int kick_them(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return a->verbs->kick(a, ids, n, results);
}

static int drop_them(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return a->verbs->drop(a, ids, n, results);
}

static int kick_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return a->verbs->kick_all(a, topic, count);
}

static int drop_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return a->verbs->drop_all(a, topic, count);
}

/* Either all, of a topic perhaps, or those that are named. */
static bool fits(struct ctl_look *look)
{
    if (look->all && look->word_count > 0)
        return ctl_look_wrong(look, "goes without ids", "--all");
    if (look->topic != NULL && !look->all)
        return ctl_look_wrong(look, "goes with --all", "--topic");
    return true;
}

static int kick_go(struct ctl_look *look)
{
    if (!fits(look))
        return CTL_USAGE;
    return look->all ? ctl_whole_go(look, "kicked", NULL, kick_all)
                     : ctl_named_go(look, "kicked", NULL, kick_them);
}

static int drop_go(struct ctl_look *look)
{
    if (!fits(look))
        return CTL_USAGE;
    return look->all ? ctl_whole_go(look, "dropped", "dead", drop_all)
                     : ctl_named_go(look, "dropped", NULL, drop_them);
}

static const struct ctl_look_option own[] = { { "topic", true, ctl_take_topic, NULL },
                                              { "json", false, ctl_take_json, NULL },
                                              { "control", true, ctl_take_control, "FILE" },
                                              { "all", false, ctl_take_all, NULL },
                                              { "yes", false, ctl_take_yes, NULL } };

const struct ctl_command ctl_dead_ls = { "dead ls", usage_ls, CTL_URL_ONLY, own, 3, ls_go };
const struct ctl_command ctl_dead_kick = { "dead kick", usage_kick, CTL_IDS, own, 4, kick_go };
const struct ctl_command ctl_dead_drop = { "dead drop", usage_drop, CTL_IDS, own, 5, drop_go };

int ctl_dead(int argc, char **argv)
{
    static const struct ctl_command *const commands[] = { &ctl_dead_ls, &ctl_dead_kick,
                                                          &ctl_dead_drop };
    static const size_t word = sizeof "dead";

    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i]->name + word) == 0)
            return ctl_command_go(commands[i], argc - 1, argv + 1);
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? CTL_BROKEN : CTL_FINE;
    if (argc > 1)
        fprintf(stderr, "duectl: %s: dead takes ls, kick or drop\n", argv[1]);
    fputs(usage, stderr);
    return CTL_USAGE;
}
