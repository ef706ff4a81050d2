/* command.c - `duectl web` and `metrics`: what they take. */
#include "web/web.h"

#include <arpa/inet.h>
#include <string.h>

static const char usage_web[] =
    "usage: duectl web [OPTION]... [URL]...\n"
    "\n"
    "Serves a page for a browser on this machine: what a stored queue holds, by topic and state, "
    "how\n"
    "much comes and goes and how late that is, its jobs and its dead.  It prints the page's "
    "address,\n"
    "with a random word in it without which nothing is shown, and serves it until a signal comes.\n"
    "The queue may be in use.  URL is a Redis, or the path of a file; without one it is that of "
    "the\n"
    "environment variable DUE_STORE_URL.  Of several URLs, and several --queue of a Redis, the "
    "page\n"
    "has a list, 16 at most, and shows the one that is chosen there.\n"
    "\n"
    "  --port N       the port at 127.0.0.1; 0 is any that is free (0)\n"
    "  --allow-writes the page can kick and drop dead jobs\n"
    "  --control PATH ask its owner too, as `duectl work --control PATH`: for what it has counted, "
    "and\n"
    "                 for changes; without a URL there are only the figures; with several "
    "queues\n"
    "                 one for each, in their order, or - for none\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 1 there is no such queue; 2 wrong usage, or built without libmicrohttpd; 3 no\n"
    "connection, the server refuses, or the port is taken; 128 and its number: stopped by a "
    "signal.\n";

static const char usage_metrics[] =
    "usage: duectl metrics [OPTION]... [URL]\n"
    "\n"
    "Writes what a stored queue holds as text that Prometheus reads, under the names that the "
    "library\n"
    "gives these figures; with --listen it serves that, made anew each time, until a signal "
    "comes.\n"
    "The queue may be in use: every job is looked at, one after another.  URL is a Redis, or "
    "the\n"
    "path of a file; without one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --topic NAME   only this topic\n"
    "  --control PATH instead of URL: what its owner says, as `duectl work --control PATH`\n"
    "  --listen WHERE serve it at http://WHERE/metrics, where WHERE is [ADDRESS:]PORT; the "
    "address\n"
    "                 is one of this machine alone (127.0.0.1), port 0 any that is free\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 shown; 1 some cannot be read, or there is no such queue; 2 wrong usage, or\n"
    "--listen and built without libmicrohttpd; 3 no connection, the server refuses, or the port "
    "is\n"
    "taken; with --listen 128 and its number: stopped by a signal.\n";

static bool read_port(const char *text, uint16_t *port)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };
    int64_t number = 0;

    if (ctl_digits_read(&c, 5, &number) == 0 || c.at < c.len || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}

static bool take_port(struct ctl_look *look, const char *value)
{
    return read_port(value, &look->port) ||
           ctl_look_wrong(look, "--port takes a number from 0 to 65535", value);
}

static bool take_writes(struct ctl_look *look, const char *value)
{
    (void)value;
    look->writes = true;
    return true;
}

static bool take_control(struct ctl_look *look, const char *path)
{
    struct ctl_several *s = &look->several;

    if (s->control_count == CTL_QUEUES)
        return ctl_look_wrong(look, "16 queues at most", path);
    s->controls[s->control_count++] = path;
    return ctl_take_control(look, path);
}

/* An address that only this machine can reach, as it stands in a URL.  A name is not looked up. */
static bool read_loopback(const char *text, size_t len, char address[16])
{
    struct in_addr at;

    if (len >= 16)
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    if (strcmp(address, "localhost") == 0)
        strcpy(address, "127.0.0.1");
    return strcmp(address, "[::1]") == 0 ||
           (inet_pton(AF_INET, address, &at) == 1 && ntohl(at.s_addr) >> 24 == IN_LOOPBACKNET);
}

static bool take_listen(struct ctl_look *look, const char *value)
{
    const char *colon = strrchr(value, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - value);

    if (!read_port(colon == NULL ? value : colon + 1, &look->port))
        return ctl_look_wrong(look, "--listen takes a port from 0 to 65535, or ADDRESS:PORT",
                              value);
    if (colon == NULL)
        strcpy(look->address, "127.0.0.1");
    else if (!read_loopback(value, len, look->address))
        return ctl_look_wrong(look,
                              "--listen takes an address of this machine alone (127.0.0.0/8, "
                              "[::1], localhost), since it asks for no password",
                              value);
    return true;
}

static int metrics_go(struct ctl_look *look)
{
    if (look->address[0] == '\0')
        return ctl_metrics_show(look);
    return ctl_live_fits(look) ? ctl_scrape_serve(look) : CTL_USAGE;
}

static const struct ctl_look_option of_web[] = { { "port", true, take_port, NULL },
                                                 { "allow-writes", false, take_writes, NULL },
                                                 { "control", true, take_control, "FILE" } };
static const struct ctl_look_option of_metrics[] = { { "topic", true, ctl_take_topic, NULL },
                                                     { "control", true, ctl_take_control, "FILE" },
                                                     { "listen", true, take_listen, NULL } };

const struct ctl_command ctl_web_command = {
    "web", usage_web, CTL_SEVERAL, of_web, 3, ctl_web_serve
};
const struct ctl_command ctl_metrics = { "metrics", usage_metrics, CTL_URL_ONLY, of_metrics,
                                         3,         metrics_go };
