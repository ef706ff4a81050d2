/* webless.c - what is said where duectl was built without libmicrohttpd. */
#include "web/web.h"

#include <stdio.h>

int ctl_web_serve(struct ctl_look *look)
{
    (void)look;
    fputs("duectl: this duectl was built without libmicrohttpd, and so without the page; install "
          "libmicrohttpd-dev and build it again\n",
          stderr);
    return CTL_USAGE;
}
