/* turned.c - loaded into a redis-server before the C library (LD_PRELOAD): its clock is ahead by so
 * many seconds, and nanoseconds behind them, as a file says, whose name is in DUE_TURNED and which
 * the test writes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead; /* two words: of a shorter file the second is 0 */

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("DUE_TURNED");
    int fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at != MAP_FAILED)
        ahead = at;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    long rc = syscall(SYS_clock_gettime, which, now);

    if (rc == 0 && which == CLOCK_REALTIME && ahead != NULL) {
        int64_t ns = (ahead[1] + now->tv_nsec) % 1000000000;
        int64_t s = (ahead[1] + now->tv_nsec) / 1000000000;

        now->tv_sec += (time_t)(ahead[0] + s - (ns < 0));
        now->tv_nsec = (long)(ns < 0 ? ns + 1000000000 : ns);
    }
    return (int)rc;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &t) != 0)
        return -1;
    *now = (struct timeval){ .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *now)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (now != NULL)
        *now = t.tv_sec;
    return t.tv_sec;
}
