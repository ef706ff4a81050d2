/* complete.c - `duectl completion`: scripts by which shells complete words, made of the tables of
 * options by which the words are read.
 *
 * What an option is for is taken from the help of its command: the rest of the line that begins
 * with its name.  Everything goes between quotes that nothing in it can end.
 */
#include "duectl.h"

#include <stdio.h>
#include <string.h>

/* ---- What is known of a command -------------------------------------------------------------- */

static const char *help_of(const struct ctl_listed *c)
{
    return c->command != NULL ? c->command->usage : c->usage != NULL ? c->usage : "";
}

/* What its help says of an option: the words behind the widest gap; *@len is 0: nothing. */
static const char *about(const struct ctl_listed *c, const char *name, size_t *len)
{
    const char *at = help_of(c);
    char wanted[64];

    snprintf(wanted, sizeof wanted, "\n  --%s ", name);
    at = strstr(at, wanted);
    *len = 0;
    if (at == NULL)
        return "";
    at += strlen(wanted);
    size_t end = strcspn(at, "\n");
    while (*len < end && *at != ' ' && *at != '\0') { /* the name of its value */
        at++;
        end--;
    }
    while (end > 0 && *at == ' ') {
        at++;
        end--;
    }
    *len = end;
    return at;
}

/* Print a text for a place between single quotes: without what ends them, or means something in
 * the lists of zsh. */
static void print_quoted(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        putchar(strchr("'\\[]:`", text[i]) != NULL ? ' ' : text[i]);
}

/* The form in which one shell is told of an option. */
struct form {
    void (*option)(const struct ctl_listed *c, const char *name, bool has_value,
                   const char *values);
    const struct ctl_listed *command;
};

static void visit(void *ctx, const char *name, bool has_value, const char *values)
{
    const struct form *f = ctx;

    f->option(f->command, name, has_value, values);
}

static void each_option(const struct ctl_listed *c,
                        void (*option)(const struct ctl_listed *c, const char *name, bool has_value,
                                       const char *values))
{
    struct form f = { option, c };

    if (c->command != NULL)
        ctl_command_options(c->command, visit, &f);
    else if (c->of_options != NULL)
        ctl_options_show(c->name, visit, &f);
    else
        visit(&f, "help", false, NULL);
}

/* The first word of its name, if the command before has another one. */
static bool is_first(const struct ctl_listed *commands, size_t i, size_t *len)
{
    *len = strcspn(commands[i].name, " ");
    return i == 0 || strncmp(commands[i].name, commands[i - 1].name, *len) != 0 ||
           strcspn(commands[i - 1].name, " ") != *len;
}

static bool is_file(const char *values)
{
    return values != NULL && strcmp(values, "FILE") == 0;
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_name(const struct ctl_listed *c, const char *name, bool has_value,
                      const char *values)
{
    (void)c;
    (void)has_value;
    (void)values;
    printf(" --%s", name);
}

static void bash_value(const struct ctl_listed *c, const char *name, bool has_value,
                       const char *values)
{
    if (has_value && !is_file(values))
        printf("    '%s --%s') words='%s'; only=1 ;;\n", c->name, name,
               values == NULL ? "" : values);
}

static void print_bash(const struct ctl_listed *commands, size_t n)
{
    size_t len;

    puts("# Completion of duectl in bash, made by `duectl completion bash`.\n"
         "_duectl()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= only= names=\n"
         "    if [ \"$command\" = dead ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
         "        command=\"dead ${COMP_WORDS[2]}\"\n"
         "    fi");
    printf("    if [ \"$COMP_CWORD\" = 1 ]; then words='--help --version");
    for (size_t i = 0; i < n; i++) {
        if (is_first(commands, i, &len))
            printf(" %.*s", (int)len, commands[i].name);
    }
    puts("'; only=1\n"
         "    elif [ \"$command\" = dead ]; then words='ls kick drop --help'; only=1\n"
         "    elif [ \"$command\" = completion ]; then words='bash zsh fish --help'; only=1\n"
         "    fi\n"
         "    case \"$command\" in");
    for (size_t i = 0; i < n; i++) {
        printf("    '%s') names='", commands[i].name);
        each_option(&commands[i], bash_name);
        puts("' ;;");
    }
    puts("    esac\n"
         "    case \"$command ${COMP_WORDS[COMP_CWORD-1]}\" in");
    for (size_t i = 0; i < n; i++)
        each_option(&commands[i], bash_value);
    puts("    esac\n"
         "    case \"$only$word\" in\n"
         "    -*) words=$names; only=1 ;;\n"
         "    esac\n"
         "    if [ -n \"$only\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    else\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "        compopt -o filenames 2>/dev/null\n"
         "    fi\n"
         "}\n"
         "complete -F _duectl duectl");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_option(const struct ctl_listed *c, const char *name, bool has_value,
                       const char *values)
{
    size_t len;
    const char *text = about(c, name, &len);

    printf(" \\\n            '%s--%s%s[", has_value ? "*" : "", name, has_value ? "=" : "");
    print_quoted(text, len);
    if (!has_value)
        printf("]'");
    else if (is_file(values))
        printf("]:store:_files'");
    else if (values != NULL)
        printf("]:value:(%s)'", values);
    else
        printf("]:value: '");
}

static void print_zsh(const struct ctl_listed *commands, size_t n)
{
    size_t len;

    puts("#compdef duectl\n"
         "# Completion of duectl in zsh, made by `duectl completion zsh`.\n"
         "_duectl()\n"
         "{\n"
         "    local -a commands\n"
         "    local command\n"
         "    commands=(");
    for (size_t i = 0; i < n; i++) {
        if (!is_first(commands, i, &len))
            continue;
        printf("        '%.*s:", (int)len, commands[i].name);
        print_quoted(commands[i].about, strlen(commands[i].about));
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    if [[ $command == dead ]]; then\n"
         "        if (( CURRENT == 2 )); then\n"
         "            compadd ls kick drop\n"
         "            return\n"
         "        fi\n"
         "        command=\"dead $words[2]\"\n"
         "        shift words\n"
         "        (( CURRENT-- ))\n"
         "    fi\n"
         "    case $command in\n"
         "    completion) compadd bash zsh fish ;;");
    for (size_t i = 0; i < n; i++) {
        printf("    '%s')\n        _arguments", commands[i].name);
        each_option(&commands[i], zsh_option);
        puts(" \\\n            '*:file:_files' ;;");
    }
    puts(
        "    esac\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _duectl ]; then _duectl \"$@\"; else compdef _duectl duectl; fi");
}

/* ---- fish ------------------------------------------------------------------------------------ */

/* The words that stand before, and none behind them. */
static void fish_when(const struct ctl_listed *c)
{
    size_t len = strcspn(c->name, " ");

    printf("complete -c duectl -n '__fish_seen_subcommand_from %.*s", (int)len, c->name);
    if (c->name[len] == ' ')
        printf("; and __fish_seen_subcommand_from %s", c->name + len + 1);
    printf("'");
}

static void fish_option(const struct ctl_listed *c, const char *name, bool has_value,
                        const char *values)
{
    size_t len;
    const char *text = about(c, name, &len);

    fish_when(c);
    printf(" -l %s", name);
    if (is_file(values))
        printf(" -r -F");
    else if (has_value)
        printf(" -x");
    if (values != NULL && !is_file(values))
        printf(" -a '%s'", values);
    printf(" -d '");
    print_quoted(text, len);
    puts("'");
}

static void print_fish(const struct ctl_listed *commands, size_t n)
{
    size_t len;

    puts("# Completion of duectl in fish, made by `duectl completion fish`.");
    for (size_t i = 0; i < n; i++) {
        if (!is_first(commands, i, &len))
            continue;
        printf("complete -c duectl -n __fish_use_subcommand -f -a %.*s -d '", (int)len,
               commands[i].name);
        print_quoted(commands[i].about, strlen(commands[i].about));
        puts("'");
    }
    puts("complete -c duectl -n '__fish_seen_subcommand_from dead; and not "
         "__fish_seen_subcommand_from ls kick drop' -f -a 'ls kick drop'\n"
         "complete -c duectl -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'");
    for (size_t i = 0; i < n; i++)
        each_option(&commands[i], fish_option);
}

bool ctl_complete(const char *shell, const struct ctl_listed *commands, size_t n)
{
    static const struct {
        const char *name;
        void (*print)(const struct ctl_listed *commands, size_t n);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print(commands, n);
            return true;
        }
    }
    return false;
}
