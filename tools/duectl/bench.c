/* bench.c - finds the program that runs the benchmarks, and becomes it.
 *
 * It lies where DUE_BENCH_DIR says, else beside this command: in `bench` of a build directory, or
 * where an installation has put it.  The places are relative, so that a tree may be moved.
 */
#define _GNU_SOURCE
#include "duectl.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: duectl bench [OPTION]...\n"
    "\n"
    "Compares libdue with other queues, on this machine.  The benchmarks are not installed here:\n"
    "a build directory has them in `bench`, an installation if it was configured with\n"
    "-DDUE_INSTALL_BENCH=ON, and the variable DUE_BENCH_DIR says where else they are.  Where they\n"
    "are found, this lists their options.\n"
    "\n"
    "Exit status: that of the benchmarks; 2 they are not found.\n";

/* Make a path of the three: is there such a program? */
static bool is_program(char path[PATH_MAX], const char *dir, const char *below, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%s%s%s", dir, below, name);

    return n > 0 && n < PATH_MAX && access(path, X_OK) == 0;
}

/* The directory that this command lies in. */
static bool own_directory(char dir[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    char *slash;

    if (n <= 0)
        return false;
    dir[n] = '\0';
    slash = strrchr(dir, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

static bool find_beside(char path[PATH_MAX])
{
    char dir[PATH_MAX];

    return own_directory(dir) && (is_program(path, dir, "/bench", "/run") ||
                                  is_program(path, dir, "/" CTL_BENCH_DIR, "/run"));
}

static bool asks_for_help(char **argv)
{
    return argv[1] != NULL && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static bool find(char path[PATH_MAX], bool help)
{
    const char *named = getenv("DUE_BENCH_DIR");

    if (named != NULL && named[0] != '\0') {
        if (is_program(path, named, "", "/run"))
            return true;
        fprintf(stderr, "duectl: DUE_BENCH_DIR: there is no program run in %s\n", named);
        return false;
    }
    if (find_beside(path))
        return true;
    if (!help)
        fprintf(stderr, "duectl: the benchmarks are not here: a build directory has them, and an "
                        "installation with DUE_INSTALL_BENCH; DUE_BENCH_DIR says where else\n");
    return false;
}

int ctl_bench(int argc, char **argv)
{
    char path[PATH_MAX];
    bool help = asks_for_help(argv);

    (void)argc; /* they end with NULL */
    if (!find(path, help))
        return !help ? CTL_USAGE : fputs(usage, stdout) < 0 ? CTL_BROKEN : CTL_FINE;
    signal(SIGPIPE, SIG_DFL);
    argv[0] = path;
    execv(path, argv);
    fprintf(stderr, "duectl: %s: %s\n", path, strerror(errno));
    return CTL_USAGE;
}
