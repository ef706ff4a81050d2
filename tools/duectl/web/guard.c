/* guard.c - who may see the page: whoever knows its address, and only under a name of this machine.
 *
 * The token keeps other users and other pages out.  A page whose own name is made to lead to
 * 127.0.0.1 would be of the same origin; its browser says that name as the Host.  So only localhost
 * and the address that is listened at are answered.
 */
#include "web/web.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static const char scheme[] = "http://";

bool ctl_token_make(char token[CTL_TOKEN + 1])
{
    unsigned char bytes[CTL_TOKEN / 2];
    ssize_t n;

    do
        n = getrandom(bytes, sizeof bytes, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Every byte is looked at, and the compiler must not know what that is for. */
bool ctl_token_opens(const char *token, const char *path)
{
    volatile unsigned char differs = 0;
    size_t len = strlen(path);

    if (len < 1 + CTL_TOKEN || path[0] != '/')
        return false;
    for (size_t i = 0; i < CTL_TOKEN; i++)
        differs = (unsigned char)(differs | (token[i] ^ path[1 + i]));
    return differs == 0 && (path[1 + CTL_TOKEN] == '/' || path[1 + CTL_TOKEN] == '\0');
}

bool ctl_host_is_ours(const char *host, const char *address, int port)
{
    const char *const names[] = { address, "localhost" };
    char ours[32];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(ours, sizeof ours, "%s:%d", names[i], port);
        if (strcasecmp(host, ours) == 0 || (port == 80 && strcasecmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

bool ctl_origin_is_ours(const char *origin, const char *address, int port)
{
    return strncasecmp(origin, scheme, sizeof scheme - 1) == 0 &&
           ctl_host_is_ours(origin + sizeof scheme - 1, address, port);
}
