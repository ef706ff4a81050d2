/* main.c - the command: prints the lines of a schedule, each at its time. */
#define _GNU_SOURCE
#include "duectl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static const char version[] =
    "duectl " TEXT(DUE_VERSION_MAJOR) "." TEXT(DUE_VERSION_MINOR) "." TEXT(DUE_VERSION_PATCH) "\n";

static const char usage_run[] =
    "usage: duectl run [OPTION]... [FILE]\n"
    "\n"
    "Reads a schedule, one job a line, and prints the text of each line at its time.  Without "
    "FILE\n"
    "it reads standard input, also while that is still being written.\n"
    "\n"
    "  1.5s text                     after a delay, counted from the reading of the line;\n"
    "  1m30s text                    units: ns us ms s m h d\n"
    "  @2026-12-01T08:00:00Z text    on a date (ISO 8601; without a zone: local time)\n"
    "  every 5m text                 again and again; and as a cron line says, in a time zone:\n"
    "  30 8 * * MON-FRI text         five fields, or @hourly @daily @weekly @monthly @yearly\n"
    "  # a comment\n"
    "\n"
    "Before the time may stand topic= priority= key= group= ttl= headers= zone=, each with a\n"
    "value without blanks or in quotation marks.\n"
    "\n"
    "  --zone NAME    the time zone of cron lines that name none (that of TZ)\n"
    "  --exec CMD     hand each text to sh -c CMD: on its standard input, and in DUE_TEXT\n"
    "  --workers N    run up to N commands at a time (1)\n"
    "  --retry WHEN   run failed commands again: after 5s; after 1s..1h, longer each time; or "
    "after\n"
    "                 1m,10m,1h and then no more\n"
    "  --attempts N   how often in all (5); a command that ends with 75 is run again without "
    "limit\n"
    "  --grace TIME   when stopped, how long running commands may take to end (5s)\n"
    "  --replay       FILE is a log: print its lines at the pace of their own timestamps (common\n"
    "                 log format and ISO 8601); the first is now\n"
    "  --speed X      replay X times as fast (1)\n"
    "  --stats        say at the end, on standard error, how many and how late\n"
    "  --store URL    keep the jobs: whatever kills this process, the next one has them; in a\n"
    "                 file (its path) or a Redis (redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or\n"
    "                 unix:///PATH; also as an argument of its own); or as the variable\n"
    "                 DUE_STORE_URL says.  Jobs that are there come out too, each at least once\n"
    "  --queue NAME   the name of the stored queue (duectl)\n"
    "  --control PATH open a socket by which duectl ls, cancel, stats and so on reach this "
    "process\n"
    "  --ack-lines    say \"ack N\" on standard error when line N is stored\n"
    "  --standby      wait until the present owner of the queue is gone\n"
    "  --require WHAT refuse a server that keeps less than WHAT: none, everysec or always\n"
    "  --assume WHAT  what a server keeps that does not say (CONFIG or INFO are forbidden there)\n"
    "  --help\n"
    "\n"
    "With a store and a terminal as standard input, none is read.\n"
    "\n"
    "Exit status: 0 all is well; 1 a line could not be read or a command failed; 2 wrong usage, "
    "or\n"
    "no such input; 3 the output could not be written, or the store fails; 128 and its number:\n"
    "stopped by a signal.\n";

static const char usage_work[] =
    "usage: duectl work --exec CMD [OPTION]... [URL]\n"
    "\n"
    "Hands the jobs of a stored queue to a command, each when it is due, until a signal stops it.\n"
    "\n"
    "  --exec CMD     sh -c CMD, with the text on its standard input, and in DUE_TEXT.  If it "
    "ends\n"
    "                 with 0 the job is done; with 75 it is tried again; with anything else too,\n"
    "                 until that was its last attempt: then the job is dead, and kept\n"
    "  --workers N    run up to N commands at a time (1)\n"
    "  --retry WHEN   when to try again: after 5s; after 1s..1h, longer each time (the default); "
    "or\n"
    "                 after 1m,10m,1h and then no more\n"
    "  --attempts N   how often in all (5); after 75 without limit\n"
    "  --topic NAME   only jobs of this topic; may be given more than once\n"
    "  --grace TIME   when stopped, how long running commands may take to end (5s)\n"
    "  --stats        say at the end, on standard error, how many there were\n"
    "  --control PATH open a socket by which duectl ls, cancel, stats and so on reach this "
    "process\n"
    "  --store URL    the Redis, or the path of a file; or the same as URL, or the variable\n"
    "                 DUE_STORE_URL\n"
    "  --queue NAME   the name of the stored queue (duectl)\n"
    "  --shared       be one of many processes that share the queue, which is made so if there is "
    "none\n"
    "  --standby      wait until the present owner of the queue is gone\n"
    "  --require WHAT refuse a server that keeps less than WHAT: none, everysec or always\n"
    "  --assume WHAT  what a server keeps that does not say (CONFIG or INFO are forbidden there)\n"
    "  --help\n"
    "\n"
    "Exit status: 2 wrong usage; 3 the store fails; 128 and its number: stopped by a signal.\n";

static const char usage_check[] = "usage: duectl check [--zone NAME] [--json] [FILE]\n"
                                  "\n"
                                  "Reads a schedule and says which lines cannot be read, and why.\n"
                                  "\n"
                                  "  --zone NAME  as of `run`\n"
                                  "  --json       each fault is a line of JSON on standard output, "
                                  "and the last has the numbers\n"
                                  "  --help\n"
                                  "\n"
                                  "Exit status: 0 none; 1 some; 2 wrong usage, or no such input.\n";

/* A file that is opened later must not become standard output. */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/* Print a text that was asked for. */
static int print_text(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? CTL_BROKEN : CTL_FINE;
}

static const char usage_completion[] = "usage: duectl completion bash|zsh|fish\n"
                                       "\n"
                                       "Writes a script by which that shell completes the words of "
                                       "a duectl command.  An installation\n"
                                       "has put them where the shells look for them.\n"
                                       "\n"
                                       "Exit status: 0 it is written; 2 wrong usage.\n";

static const struct ctl_listed commands[] = {
    { "run", "[OPTION]... [FILE]", "print each line of a schedule at its time", ctl_run, usage_run,
      NULL, NULL },
    { "work", "[OPTION]... [URL]", "hand the jobs of a stored queue to a command", ctl_work,
      usage_work, NULL, NULL },
    { "check", "[OPTION]... [FILE]", "only say which lines cannot be read", ctl_check, usage_check,
      NULL, NULL },
    { "push", "[OPTION]... [URL] [FILE]", "put jobs into a stored queue", NULL, NULL, &ctl_push,
      NULL },
    { "ls", "[OPTION]... [URL]", "list its jobs", NULL, NULL, &ctl_ls, NULL },
    { "show", "[OPTION]... [URL] ID...", "show all that is known of a job", NULL, NULL, &ctl_show,
      NULL },
    { "cancel", "[OPTION]... [URL] ID...", "take jobs out", NULL, NULL, &ctl_cancel, NULL },
    { "reschedule", "[OPTION]... [URL] ID... TIME", "give jobs another time", NULL, NULL,
      &ctl_reschedule, NULL },
    { "promote", "[OPTION]... [URL] ID...", "jobs are due now", NULL, NULL, &ctl_promote, NULL },
    { "kick", "[OPTION]... [URL] ID...", "dead jobs are due again", NULL, NULL, &ctl_kick, NULL },
    { "dead ls", "[OPTION]... [URL]", "list the dead, and why they died", NULL, NULL, &ctl_dead_ls,
      NULL },
    { "dead kick", "[OPTION]... [URL] ID...|--all", "they are due again", NULL, NULL,
      &ctl_dead_kick, NULL },
    { "dead drop", "[OPTION]... [URL] ID...|--all", "they are gone for good", NULL, NULL,
      &ctl_dead_drop, NULL },
    { "clear", "[OPTION]... [URL]", "take all jobs out that wait", NULL, NULL, &ctl_clear, NULL },
    { "pause", "[OPTION]... [URL]", "hand out no more jobs", NULL, NULL, &ctl_pause, NULL },
    { "resume", "[OPTION]... [URL]", "and go on", NULL, NULL, &ctl_resume, NULL },
    { "stats", "[OPTION]... [URL]", "what a stored queue holds, by topic", NULL, NULL, &ctl_stats,
      NULL },
    { "metrics", "[OPTION]... [URL]", "the same for Prometheus", NULL, NULL, &ctl_metrics, NULL },
    { "ps", "[OPTION]... [URL]", "list the processes that share it", NULL, NULL, &ctl_ps, NULL },
    { "evict", "[OPTION]... [URL] NUMBER...", "turn processes out of it", NULL, NULL, &ctl_evict,
      NULL },
    { "top", "[OPTION]... [URL]", "what a queue does, again and again", NULL, NULL, &ctl_top,
      NULL },
    { "web", "[OPTION]... [URL]...", "the same as a page in a browser", NULL, NULL,
      &ctl_web_command, NULL },
    { "restore", "[OPTION]... [URL]", "the same, and who owns it", NULL, NULL, &ctl_restore, NULL },
    { "verify", "[OPTION]... [URL]", "look whether a stored queue is whole", NULL, NULL,
      &ctl_verify, NULL },
    { "doctor", "[OPTION]... [URL]", "say what a server keeps, and what to change there", NULL,
      NULL, &ctl_doctor, NULL },
    { "export", "[OPTION]... [URL]", "write a stored queue to standard output", NULL, NULL,
      &ctl_export, NULL },
    { "import", "[OPTION]... [URL]", "put that into another store", NULL, NULL, &ctl_import, NULL },
    { "bench", "[OPTION]...", "compare libdue with other queues, on this machine", NULL, NULL, NULL,
      ctl_bench },
    { "completion", "bash|zsh|fish", "write a script for a shell", NULL, usage_completion, NULL,
      NULL },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* All commands, a line each. */
static void print_usage(FILE *to)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct ctl_listed *c = &commands[i];
        int n = fprintf(to, "%s duectl %s %s", i == 0 ? "usage:" : "      ", c->name, c->takes);

        fprintf(to, "%*s%s\n", n < 48 ? 48 - n : 2, "", c->about);
    }
    fputs("       duectl --version | --help\n"
          "\n"
          "`duectl COMMAND --help` has the options.\n",
          to);
}

static int say_usage(void)
{
    print_usage(stderr);
    return CTL_USAGE;
}

static int complete(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_text(usage_completion);
    if (argc == 2 && ctl_complete(argv[1], commands, COMMANDS))
        return fflush(stdout) != 0 || ferror(stdout) ? CTL_BROKEN : CTL_FINE;
    fputs(usage_completion, stderr);
    return CTL_USAGE;
}

static int carry_out(const struct ctl_listed *c, int argc, char **argv)
{
    struct ctl_options options;

    if (c->command != NULL)
        return ctl_command_go(c->command, argc, argv);
    if (c->of_words != NULL)
        return c->of_words(argc, argv);
    if (c->of_options == NULL)
        return complete(argc, argv);
    if (!ctl_options_read(&options, argc, argv)) {
        fprintf(stderr, "duectl: `duectl %s --help` says more\n", argv[0]);
        return CTL_USAGE;
    }
    return options.help ? print_text(c->usage) : c->of_options(&options);
}

/* The exit status.  @argv[1] is there. */
static int carry_out_named(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return carry_out(&commands[i], argc - 1, argv + 1);
    }
    if (strcmp(argv[1], "dead") == 0)
        return ctl_dead(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0)
        return print_text(version);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return fflush(stdout) != 0 ? CTL_BROKEN : CTL_FINE;
    }
    fprintf(stderr, "duectl: %s: no such command\n", argv[1]);
    return say_usage();
}

/* Say that standard output could not be written, unless it is that its reader has gone. */
static void say_unwritten(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    if (!ferror(stdout) || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0))
        return;
    fputs("duectl: standard output: not all could be written\n", stderr);
}

int main(int argc, char **argv)
{
    ctl_urls_hide(argc, argv);
    hold_standard_descriptors();
    signal(SIGPIPE, SIG_IGN); /* a write answers EPIPE instead */
    signal(SIGCHLD, SIG_DFL); /* so that children can be waited for */
    ctl_progress_begin();

    int status = argc < 2 ? say_usage() : carry_out_named(argc, argv);
    if (status == CTL_BROKEN)
        say_unwritten();
    return status;
}
