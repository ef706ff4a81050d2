/* command.c - `duectl web`: what it takes. */
#include "web/web.h"

#include <string.h>

static const char usage[] =
    "usage: duectl web [OPTION]... [URL]\n"
    "\n"
    "Serves a page for a browser on this machine: what a stored queue holds, by topic and state, "
    "how\n"
    "much comes and goes and how late that is, its jobs and its dead.  It prints the page's "
    "address,\n"
    "with a random word in it without which nothing is shown, and serves it until a signal comes.\n"
    "The queue may be in use.  URL is a Redis, or the path of a file; without one it is that of "
    "the\n"
    "environment variable DUE_STORE_URL.\n"
    "\n"
    "  --port N       the port at 127.0.0.1; 0 is any that is free (0)\n"
    "  --allow-writes the page can kick and drop dead jobs\n"
    "  --control PATH ask its owner too, as `duectl work --control PATH`: for what it has counted, "
    "and\n"
    "                 for changes; without a URL there are only the figures\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 1 there is no such queue; 2 wrong usage, or built without libmicrohttpd; 3 no\n"
    "connection, the server refuses, or the port is taken; 128 and its number: stopped by a "
    "signal.\n";

static bool take_port(struct ctl_look *look, const char *value)
{
    struct ctl_cursor c = { .text = value, .len = strlen(value) };
    int64_t port = 0;

    if (ctl_digits_read(&c, 5, &port) == 0 || c.at < c.len || port > UINT16_MAX)
        return ctl_look_wrong(look, "--port takes a number from 0 to 65535", value);
    look->port = (uint16_t)port;
    return true;
}

static bool take_writes(struct ctl_look *look, const char *value)
{
    (void)value;
    look->writes = true;
    return true;
}

static const struct ctl_look_option own[] = { { "port", true, take_port, NULL },
                                              { "allow-writes", false, take_writes, NULL },
                                              { "control", true, ctl_take_control, "FILE" } };

const struct ctl_command ctl_web_command = { "web", usage, CTL_EITHER, own, 3, ctl_web_serve };
