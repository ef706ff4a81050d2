/* retry.c - when a command that failed is run again: "5s", "1s..1h" or "1m,10m,1h". */
#include "base/base.h"

#include <string.h>

enum { ATTEMPTS_MOST = 1000000000 }; /* no limit: 75 has none, and duectl sees to the rest */

/* A whole text that is a time. */
static bool read_time(const char *text, size_t len, int64_t *ns)
{
    struct ctl_cursor c = { .text = text, .len = len };

    return len > 0 && ctl_delay_read(&c, ns) && c.at == len;
}

/* TIME,TIME...: the first after the first failure, and so on; then it is given up. */
static bool read_ladder(const char *text, due_retry *retry)
{
    retry->kind = DUE_RETRY_LADDER;
    while (retry->rungs < DUE_RUNGS_MAX) {
        size_t len = strcspn(text, ",");

        if (!read_time(text, len, &retry->rung_ns[retry->rungs++]))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
    return false;
}

bool ctl_retry_read(const char *text, due_retry *retry)
{
    const char *dots = strstr(text, "..");

    *retry = (due_retry){ .kind = DUE_RETRY_FIXED };
    if (strchr(text, ',') != NULL)
        return read_ladder(text, retry);
    if (dots == NULL)
        return read_time(text, strlen(text), &retry->delay_ns);
    retry->kind = DUE_RETRY_EXPONENTIAL;
    return read_time(text, (size_t)(dots - text), &retry->delay_ns) && retry->delay_ns > 0 &&
           read_time(dots + 2, strlen(dots + 2), &retry->cap_ns) &&
           retry->cap_ns >= retry->delay_ns;
}

due_retry ctl_retry_stored(const struct ctl_options *o)
{
    due_retry retry = o->retry;

    if (retry.kind != DUE_RETRY_LADDER) /* whose end is a limit already */
        retry.attempts_max = ATTEMPTS_MOST;
    return retry;
}
