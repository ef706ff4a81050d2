/* look.c - the command line of what looks into stores, or moves jobs between them. */
#define _GNU_SOURCE
#include "inspect/inspect.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OWN_MAX = 8, COMMON = 3 };
enum { QUEUE = 256, STORE, HELP, OWN };

bool ctl_look_wrong(const struct ctl_look *look, const char *what, const char *value)
{
    fprintf(stderr, "duectl: %s: %s\nduectl: `duectl %s --help` says more\n", value, what,
            look->command);
    return false;
}

/* One that stands alone, or @option, that of --store. */
static bool find_url(struct ctl_look *look, int argc, char **argv, const char *option)
{
    if (optind + (option == NULL) < argc)
        return ctl_look_wrong(look, "one URL at most", argv[optind + (option == NULL)]);
    look->url = ctl_url_of(option != NULL ? option : argv[optind]);
    if (look->url != NULL || look->help || look->check)
        return true;
    return ctl_look_wrong(
        look, "give it after the command, with --store, or in the variable DUE_STORE_URL",
        "no store");
}

/* Those that all have, then @own. */
static void options_fill(struct option known[COMMON + OWN_MAX + 1],
                         const struct ctl_look_option *own, size_t n)
{
    known[0] = (struct option){ "queue", required_argument, NULL, QUEUE };
    known[1] = (struct option){ "store", required_argument, NULL, STORE };
    known[2] = (struct option){ "help", no_argument, NULL, HELP };
    for (size_t i = 0; i < n; i++)
        known[COMMON + i] =
            (struct option){ own[i].name, own[i].has_value ? required_argument : no_argument, NULL,
                             OWN + (int)i };
    known[COMMON + n] = (struct option){ NULL, 0, NULL, 0 };
}

bool ctl_look_read(struct ctl_look *look, int argc, char **argv, const struct ctl_look_option *own,
                   size_t n)
{
    struct option known[COMMON + OWN_MAX + 1];
    const char *url = NULL;
    int option;

    *look = (struct ctl_look){ .command = argv[0], .queue = "duectl" };
    options_fill(known, own, n);
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == ':')
            return ctl_look_wrong(look, "an argument is missing", argv[optind - 1]);
        if (option == '?')
            return ctl_look_wrong(look, "no such option", argv[optind - 1]);
        look->help = look->help || option == HELP || option == 'h';
        if (option == QUEUE)
            look->queue = optarg;
        else if (option == STORE && url != NULL)
            return ctl_look_wrong(look, "one URL at most", optarg);
        else if (option == STORE)
            url = optarg;
        else if (option >= OWN && !own[option - OWN].take(look, optarg))
            return false;
    }
    if (!ctl_is_name(look->queue))
        return ctl_look_wrong(look, "--queue takes 1 to 64 of A-Z a-z 0-9 . _ -", look->queue);
    return find_url(look, argc, argv, url);
}
