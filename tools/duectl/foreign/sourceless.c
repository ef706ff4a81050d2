/* sourceless.c - what is said of another library's server where there is no hiredis. */
#include "foreign/foreign.h"

#include <stdio.h>

int ctl_foreign_import(const struct ctl_look *look)
{
    (void)look;
    fputs("duectl: this duectl was built without hiredis, and so without servers; install "
          "libhiredis-dev and build it again\n",
          stderr);
    return CTL_USAGE;
}
