/* reach.c - which lines a test reaches: linked into each library whose calls tell it.
 *
 * Where the variable DUE_REACH names a file, each basic block that runs sets a byte of it.  The
 * file is mapped, so that what a process reached before it was killed is told as well, and its
 * children go on in it.  It is not compiled with what tells it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

extern const char __ehdr_start[] HIDDEN; /* where the library was loaded */
void __sanitizer_cov_trace_pc(void) HIDDEN;

enum { SIZE = 1 << 23 }; /* more than the code of a library */

static unsigned char *reached;

__attribute__((constructor(101))) static void open_map(void)
{
    const char *name = getenv("DUE_REACH");
    char path[4096];
    int fd;

    if (name == NULL)
        return;
    snprintf(path, sizeof path, "%s.%s", name, REACH_NAME);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (ftruncate(fd, SIZE) == 0) {
        void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        reached = map == MAP_FAILED ? NULL : map;
    }
    close(fd);
}

/* Called at the beginning of each basic block. */
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;

    if (reached != NULL && at < SIZE && reached[at] == 0)
        reached[at] = 1;
}
