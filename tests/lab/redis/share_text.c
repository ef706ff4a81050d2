/* share_text.c - the text of a script as the tests of scripts load it: with a clock that they turn,
 * or torn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/share_lab.h"

static void stop_with(const char *what)
{
    fprintf(stderr, "share_lab: %s\n", what);
    abort();
}

const struct share_fault *share_fault;
int share_faults_placed;

#define MORE 512 /* what a text may be longer with another clock, and torn */

/* False: that is not in it. */
static int replace(char *text, const char *what, const char *with)
{
    char *found = strstr(text, what);

    if (found == NULL)
        return 0;
    memmove(found + strlen(with), found + strlen(what), strlen(found + strlen(what)) + 1);
    memcpy(found, with, strlen(with));
    return 1;
}

char *share_text(const struct due__script *script, const char *clock, int torn, size_t *len)
{
    char *text = malloc(script->len + MORE);
    char with[MORE / 2];

    if (text == NULL)
        stop_with("no memory");
    memcpy(text, script->text, script->len + 1);
    snprintf(with, sizeof with, "call('LRANGE','%s',0,1)", clock != NULL ? clock : "");
    if (clock != NULL && !replace(text, "call('TIME')", with) && script != &due__script_page)
        stop_with("a script reads no clock");
    snprintf(with, sizeof with,
             "local form,left=string.format,%d local function call(...) left=left-1 "
             "if left==0 then error('torn') end return redis.call(...) end",
             torn);
    if (torn > 0 && !replace(text, "local call, form = redis.call, string.format", with))
        stop_with("a script calls nothing");
    for (int i = 0; share_fault != NULL && i < 2 && share_fault->text[i].is != NULL; i++)
        share_faults_placed += replace(text, share_fault->text[i].is, share_fault->text[i].becomes);
    *len = strlen(text);
    return text;
}
