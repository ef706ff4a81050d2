/* webless.c - what is said where duectl was built without libmicrohttpd. */
#include "web/web.h"

#include <stdio.h>

static int missing(const char *what)
{
    fprintf(stderr,
            "duectl: this duectl was built without libmicrohttpd, and so without %s; install "
            "libmicrohttpd-dev and build it again\n",
            what);
    return CTL_USAGE;
}

int ctl_web_serve(struct ctl_look *look)
{
    (void)look;
    return missing("the page");
}

int ctl_scrape_serve(struct ctl_look *look)
{
    (void)look;
    return missing("--listen");
}
