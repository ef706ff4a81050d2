/* look.c - the command line of what looks into stores, or moves jobs between them. */
#define _GNU_SOURCE
#include "inspect/inspect.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OWN_MAX = 16, COMMON = 3, ID_DIGITS = DUE_ID_TEXT - 1, NUMBER_DIGITS = 15 };
enum { QUEUE = 256, STORE, HELP, OWN };

static const char any_queue[] = "duectl"; /* where none is named */

bool ctl_look_wrong(const struct ctl_look *look, const char *what, const char *value)
{
    fprintf(stderr, "duectl: %s: %s\nduectl: `duectl %s --help` says more\n", value, what,
            look->command);
    return false;
}

/* ---- What stands alone ----------------------------------------------------------------------- */

static bool is_id(const char *word)
{
    return strcmp(word, "-") == 0 ||
           (strlen(word) == ID_DIGITS && strspn(word, "0123456789abcdefABCDEF") == ID_DIGITS);
}

/* Of a process. */
static bool is_number(const char *word)
{
    size_t n = strspn(word, "0123456789");

    return n > 0 && n <= NUMBER_DIGITS && word[n] == '\0' && word[0] != '0';
}

/* The ids, or numbers, go to the front of @words; another word is the URL, of which there is one at
 * most. */
static bool take_ids(struct ctl_look *look, bool numbers, char **words, size_t n, const char **url)
{
    look->words = words;
    for (size_t i = 0; i < n; i++) {
        if (numbers ? is_number(words[i]) : is_id(words[i]))
            words[look->word_count++] = words[i];
        else if (*url != NULL)
            return ctl_look_wrong(look,
                                  numbers ? "one URL at most, and duectl ps has the numbers"
                                          : "one URL at most, and an id has 32 hexadecimal digits",
                                  words[i]);
        else
            *url = words[i];
    }
    return true;
}

/* A single word is the file, unless it is a URL, or there is no other store. */
static bool take_input(struct ctl_look *look, char **words, size_t n, const char **url)
{
    bool needed = look->control == NULL && ctl_url_of(NULL) == NULL;
    bool first = *url == NULL && n > 0 && (n > 1 || ctl_is_url(words[0]) || needed);

    if (first)
        *url = words[0];
    if (n > 1 + (size_t)first)
        return ctl_look_wrong(look, "one file at most", words[1 + first]);
    if (n > first)
        look->push.file = words[first];
    return true;
}

/* False: said that there are too many. */
static bool note(struct ctl_look *look, const char *list[CTL_QUEUES], size_t *n, const char *what,
                 const char *value)
{
    if (*n == CTL_QUEUES)
        return ctl_look_wrong(look, what, value);
    list[(*n)++] = value;
    return true;
}

static bool note_url(struct ctl_look *look, const char *shown)
{
    return note(look, look->several.urls, &look->several.url_count, "16 URLs at most",
                ctl_url_of(shown));
}

static bool note_queue(struct ctl_look *look, const char *name)
{
    return note(look, look->several.queues, &look->several.queue_count, "16 queues at most", name);
}

/* The first URL stands for all, where one is asked for. */
static bool take_urls(struct ctl_look *look, char **words, size_t n, const char **url)
{
    for (size_t i = 0; i < n; i++) {
        if (!note_url(look, words[i]))
            return false;
        *url = *url == NULL ? words[i] : *url;
    }
    return true;
}

/* @url is that of --store, or NULL. */
static bool take_words(struct ctl_look *look, enum ctl_operands operands, char **words, size_t n,
                       const char *url)
{
    bool fine = true;

    if (operands == CTL_IDS_TIME && n > 0)
        look->time = words[--n];
    if (operands == CTL_INPUT)
        fine = take_input(look, words, n, &url);
    else if (operands == CTL_SEVERAL)
        fine = take_urls(look, words, n, &url);
    else if (operands == CTL_IDS || operands == CTL_IDS_TIME || operands == CTL_NUMBERS)
        fine = take_ids(look, operands == CTL_NUMBERS, words, n, &url);
    else if (n > (url == NULL))
        fine = ctl_look_wrong(look, "one URL at most", words[url == NULL]);
    else if (url == NULL && n > 0)
        url = words[0];
    if (!fine)
        return false;
    if (look->control != NULL && operands != CTL_SEVERAL)
        return url == NULL || ctl_look_wrong(look, "goes without a URL", "--control");
    if (look->top.figures != NULL || look->top.pid != 0)
        return (url == NULL && look->topic == NULL &&
                (look->top.figures == NULL || look->top.pid == 0)) ||
               ctl_look_wrong(look, "one of the two alone, and no URL or --topic besides",
                              "--pid and --figures");
    look->url = ctl_url_of(url);
    if (look->control != NULL || look->url != NULL || look->help || look->check)
        return true;
    return ctl_look_wrong(
        look, "give it after the command, with --store, or in the variable DUE_STORE_URL",
        "no store");
}

/* ---- Options --------------------------------------------------------------------------------- */

static bool take_queue(struct ctl_look *look, const char *name, bool several)
{
    look->queue = name;
    look->top.named = true;
    if (!ctl_is_name(name))
        return ctl_look_wrong(look, "--queue takes 1 to 64 of A-Z a-z 0-9 . _ -", name);
    return !several || note_queue(look, name);
}

static bool take_store(struct ctl_look *look, const char **url, const char *value, bool several)
{
    if (*url == NULL)
        *url = value;
    else if (!several)
        return ctl_look_wrong(look, "one URL at most", value);
    return !several || note_url(look, value);
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

static bool look_read(struct ctl_look *look, int argc, char **argv,
                      const struct ctl_look_option *own, size_t n, enum ctl_operands operands)
{
    struct option known[COMMON + OWN_MAX + 1];
    bool several = operands == CTL_SEVERAL;
    const char *url = NULL;
    int option;

    options_fill(known, own, n);
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == ':')
            return ctl_look_wrong(look, "an argument is missing", argv[optind - 1]);
        if (option == '?')
            return ctl_look_wrong(look, "no such option", argv[optind - 1]);
        look->help = look->help || option == HELP || option == 'h';
        if ((option == QUEUE && !take_queue(look, optarg, several)) ||
            (option == STORE && !take_store(look, &url, optarg, several)) ||
            (option >= OWN && !own[option - OWN].take(look, optarg)))
            return false;
    }
    return take_words(look, operands, argv + optind, (size_t)(argc - optind), url);
}

void ctl_command_options(const struct ctl_command *command, ctl_option_visit *visit, void *ctx)
{
    visit(ctx, "queue", true, NULL);
    visit(ctx, "store", true, "FILE");
    visit(ctx, "help", false, NULL);
    for (size_t i = 0; i < command->own_count; i++)
        visit(ctx, command->own[i].name, command->own[i].has_value, command->own[i].values);
}

int ctl_command_go(const struct ctl_command *command, int argc, char **argv)
{
    struct ctl_look look = { .command = command->name, .queue = any_queue };

    if (!look_read(&look, argc, argv, command->own, command->own_count, command->operands))
        return CTL_USAGE;
    if (look.help)
        return fputs(command->usage, stdout) < 0 || fflush(stdout) != 0 ? CTL_BROKEN : CTL_FINE;
    return command->go(&look);
}
