/* core_look.c - looks through the memory of another process that the kernel would dump. */
#define _GNU_SOURCE
#include "lab/core_look.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK     ((size_t)1 << 20)
#define REGISTERS ((size_t)16384) /* of a thread, at most */
#define PIECE     8               /* letters: a register's half holds one at least */

void core_spell(const char *as, char text[CORE_SECRET + 1])
{
    for (int i = 0; i < CORE_SECRET; i++)
        ((volatile char *)text)[i] = (char)(as[i] - 1);
    text[CORE_SECRET] = '\0';
}

static unsigned times(const char *bytes, size_t n, const char *what)
{
    unsigned found = 0;

    for (const char *at = bytes;
         (at = memmem(at, n - (size_t)(at - bytes), what, CORE_SECRET)) != NULL; at++)
        found++;
    return found;
}

/* The pages from @from to @to; pieces overlap by less than what is looked for. */
static void look_at(struct core_look *l, uint64_t from, uint64_t to)
{
    static char bytes[CHUNK];

    for (uint64_t at = from; at < to;) {
        size_t most = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
        ssize_t n = pread(l->memory, bytes, most, (off_t)at);

        if (n < CORE_SECRET)
            return; /* none that could be dumped */
        l->bytes += (uint64_t)n;
        l->canaries += times(bytes, (size_t)n, l->canary);
        l->controls += times(bytes, (size_t)n, l->control);
        if (at + (uint64_t)n >= to)
            return;
        at += (uint64_t)n - (CORE_SECRET - 1);
    }
}

/* The registers are in a core dump too.  A password lies in several, so pieces are looked for that
 * the control has not.  Without wide registers those of the floating point are all there are. */
static void look_at_registers(struct core_look *l, pid_t thread)
{
    static char bytes[REGISTERS];
    struct iovec all = { bytes, sizeof bytes };

    if (ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &all) != 0) {
        all = (struct iovec){ bytes, sizeof bytes };
        if (ptrace(PTRACE_GETREGSET, thread, NT_PRFPREG, &all) != 0)
            return;
    }
    l->registers++;
    for (int i = 0; i + PIECE <= CORE_SECRET; i++) {
        bool shared = memmem(l->control, CORE_SECRET, l->canary + i, PIECE) != NULL;

        if (!shared && memmem(bytes, all.iov_len, l->canary + i, PIECE) != NULL) {
            l->canaries++;
            return;
        }
    }
}

static bool look_at_threads(struct core_look *l, pid_t pid)
{
    char path[64];
    const struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        return false;
    while ((entry = readdir(threads)) != NULL) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread <= 0 || ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
            continue;
        if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 &&
            waitpid(thread, NULL, __WALL) == thread)
            look_at_registers(l, thread);
        ptrace(PTRACE_DETACH, thread, NULL, NULL);
    }
    closedir(threads);
    return true;
}

bool core_look_through(struct core_look *l, pid_t pid)
{
    char path[64];
    char line[512];
    uint64_t from = 0;
    uint64_t to = 0;
    char may = '-';

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    l->memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *maps = fopen(path, "r");
    if (l->memory < 0 || maps == NULL)
        return false;
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strncmp(line, "VmFlags:", 8) != 0) {
            uint64_t a, b;
            char c;
            if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &a, &b, &c) == 3) {
                from = a;
                to = b;
                may = c;
            }
        } else if (may == 'r' && strstr(line, " dd") == NULL && strstr(line, " io") == NULL) {
            look_at(l, from, to);
        }
    }
    fclose(maps);
    close(l->memory);
    return look_at_threads(l, pid);
}
