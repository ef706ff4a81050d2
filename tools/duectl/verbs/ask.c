/* ask.c - what destroys says what it will do, and asks. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool says_yes(void)
{
    char answer[16] = "";

    if (fgets(answer, sizeof answer, stdin) == NULL)
        fputc('\n', stderr);
    return strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0;
}

/* What will happen was said.  0: it is agreed; else the exit status. */
static int confirm(void)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fputs("duectl: nothing was done: without a terminal to ask on it needs --yes\n", stderr);
        return CTL_USAGE;
    }
    fputs("duectl: go on? [y/N] ", stderr);
    if (says_yes())
        return 0;
    fputs("duectl: nothing was done\n", stderr);
    return CTL_FAULTS;
}

int ctl_ask(const struct ctl_look *look, const char *what, uint64_t count)
{
    char shown[2 * CTL_EXCERPT] = "";
    bool named = look->topic != NULL;

    if (look->yes)
        return 0;
    if (named)
        ctl_text_show(shown, sizeof shown, look->topic, strlen(look->topic));
    fprintf(stderr, "duectl: %s: ", look->control != NULL ? look->control : look->queue);
    if (count == UINT64_MAX)
        fputs("all", stderr);
    else
        fprintf(stderr, "%" PRIu64, count);
    fprintf(stderr, " %s jobs %s%s will be gone for good\n", what,
            named ? "of the topic " : "of all topics", named && shown[0] == '\0' ? "-" : shown);
    return confirm();
}

int ctl_ask_for(const struct ctl_look *look, const char *what)
{
    if (look->yes)
        return 0;
    fprintf(stderr, "duectl: %s: %s\n", look->queue, what);
    return confirm();
}
