/* system.c - futexes, clocks, timers and threads, simulated.
 *
 * due__futex_wait() compares the word and falls asleep in one step, as futexes do: a wake-up
 * before it is lost, and so is one that finds nobody.  Its caller's store buffer is empty by then.
 *
 * All clocks show the same time, but for the wall clock, which explore_step_clock() sets; a look at
 * a clock is where the time may move on while threads could run.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#include "arena.h"
#include "os/futex.h"
#include "os/lock.h"

#define FIRST_FD 1000
#define NS_PER_S INT64_C(1000000000)

struct world *world;

void system_open(void)
{
    world = arena_new(sizeof *world);
    world->now_ns = EXPLORE_START_NS;
    world->wall_ns = DUE_S(1000000);
}

/* ---- Memory ---- */

void *explore_new(size_t size)
{
    return arena_new(size);
}

void *explore_calloc(size_t n, size_t size);
void explore_free(void *memory);

void *explore_calloc(size_t n, size_t size)
{
    return arena_new(n * size);
}

void explore_free(void *memory)
{
    (void)memory;
}

/* The page that shows a fork. */
void *explore_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int explore_munmap(void *memory, size_t size);
int explore_madvise(void *memory, size_t size, int advice);

void *explore_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    (void)at, (void)protection, (void)flags, (void)fd, (void)offset;
    return arena_new(size);
}

int explore_munmap(void *memory, size_t size)
{
    (void)memory, (void)size;
    return 0;
}

int explore_madvise(void *memory, size_t size, int advice)
{
    (void)memory, (void)size, (void)advice;
    return 0;
}

static void *hook_alloc(void *ctx, size_t size)
{
    (void)ctx;
    return arena_new(size);
}

static void hook_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)memory;
    (void)size;
}

const due_allocator explore_allocator = { .alloc = hook_alloc, .free = hook_free };

/* What is random is the same in each execution, and from run to run. */
ssize_t explore_getrandom(void *buffer, size_t size, unsigned flags);

ssize_t explore_getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    memset(buffer, 0x5a, size);
    return (ssize_t)size;
}

/* ---- futex.h ---- */

static uint32_t word_now(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

void due__futex_wait(const uint32_t *word, uint32_t value, int64_t until_ns, bool precise)
{
    (void)precise;
    memory_empty();
    memory_step(word, false);
    if (word_now(word) == value)
        engine_park(word, until_ns, -1);
}

bool due__threads_fence_ready(void)
{
    return explore_bias > 0;
}

/* All stores that are held reach memory at once, as far as others can tell: nothing is between. */
void due__threads_fence(void)
{
    if (!engine.running)
        return;
    memory_empty();
    for (unsigned i = 0; i < engine.fibers; i++)
        memory_write(&engine.fiber[i], engine.fiber[i].held_count);
    if (engine.trace)
        engine_print("fence of all", "", NULL);
}

uint32_t explore_self(void)
{
    return engine.me != NULL ? (uint32_t)(engine.me - engine.fiber) + 1 : DUE__NO_SELF;
}

void due__futex_wake(const uint32_t *word)
{
    if (!engine.running)
        return; /* at the end: only the library's own threads sleep */
    memory_empty();
    memory_step(word, true);
    if (engine.trace)
        engine_print("unpark", "", NULL);
    engine_unpark(word);
}

long due__slack_tighten(void)
{
    return -1;
}

void due__slack_restore(long slack)
{
    (void)slack;
}

/* ---- Clocks ---- */

int64_t explore_now(void)
{
    return world->now_ns;
}

void explore_instant(int64_t at_ns)
{
    if (world->instants == INSTANTS_MAX)
        exit(2);
    world->instant[world->instants++] = at_ns;
}

void explore_step_clock(int64_t by_ns)
{
    memory_step(world, true);
    world->wall_ns += by_ns;
    if (engine.trace)
        engine_print("wall clock", by_ns > 0 ? "set forward" : "set back", NULL);
}

int explore_clock_gettime(clockid_t id, struct timespec *t);

int explore_clock_gettime(clockid_t id, struct timespec *t)
{
    if (engine.running) {
        memory_step(world, false);
        engine_offer_tick();
    }
    int64_t now = world->now_ns + (id == CLOCK_REALTIME ? world->wall_ns : 0);

    *t = (struct timespec){ .tv_sec = now / NS_PER_S, .tv_nsec = now % NS_PER_S };
    return 0;
}

void explore_yield(void)
{
    explore_spin();
}

void explore_spin(void)
{
    memory_empty();
    memory_step(world, false);
    engine_park(NULL, world->now_ns + 1, -1);
}

/* ---- Timers ---- */

int64_t system_timer_over(int n)
{
    const struct timer *it = &world->timer[n];

    if (it->set_ns == DUE_FOREVER)
        return DUE_FOREVER;
    return it->set_ns - (it->clock == CLOCK_REALTIME ? world->wall_ns : 0);
}

int explore_timerfd_create(clockid_t clock, int flags);
int explore_timerfd_settime(int fd, int how, const struct itimerspec *at, struct itimerspec *old);
int explore_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const void *mask);
int explore_close(int fd);

int explore_timerfd_create(clockid_t clock, int flags)
{
    (void)flags;
    if (world->timers == TIMERS_MAX) {
        errno = EMFILE;
        return -1;
    }
    world->timer[world->timers] = (struct timer){ .clock = clock, .set_ns = DUE_FOREVER };
    return FIRST_FD + world->timers++;
}

int explore_timerfd_settime(int fd, int how, const struct itimerspec *at, struct itimerspec *old)
{
    struct timer *it = &world->timer[fd - FIRST_FD];
    int64_t ns = (int64_t)at->it_value.tv_sec * NS_PER_S + at->it_value.tv_nsec;

    (void)how;
    (void)old;
    if (engine.running) {
        memory_empty();
        memory_step(it, true);
        if (engine.trace)
            engine_print("timer", ns == 0 ? "stopped" : "set", NULL);
    }
    it->set_ns = ns == 0 ? DUE_FOREVER : ns;
    return 0;
}

bool explore_readable(int fd)
{
    return system_timer_over(fd - FIRST_FD) <= world->now_ns;
}

void explore_wait_readable(int fd, int64_t until_ns)
{
    memory_empty();
    memory_step(&world->timer[fd - FIRST_FD], false);
    if (!explore_readable(fd))
        engine_park(NULL, until_ns, fd - FIRST_FD);
}

int explore_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const void *mask)
{
    int64_t until = DUE_FOREVER;

    (void)n;
    (void)mask;
    if (limit != NULL)
        until = world->now_ns + (int64_t)limit->tv_sec * NS_PER_S + limit->tv_nsec;
    explore_wait_readable(fds[0].fd, until);
    return explore_readable(fds[0].fd);
}

int explore_close(int fd)
{
    (void)fd;
    return 0;
}

/* ---- Threads ---- */

struct start {
    void *(*run)(void *);
    void *arg;
};

int explore_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                           void *arg);
int explore_pthread_join(pthread_t id, void **result);
int explore_pthread_setname(pthread_t id, const char *name);
int explore_pthread_mutex_lock(pthread_mutex_t *mutex);
int explore_pthread_mutex_unlock(pthread_mutex_t *mutex);

static void thread_run(void *arg)
{
    struct start *start = arg;

    start->run(start->arg);
}

int explore_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                           void *arg)
{
    struct start *start = arena_new(sizeof *start);

    (void)attr;
    if (engine.running)
        memory_empty();
    *start = (struct start){ run, arg };
    *id = (pthread_t)(engine_start("proxy", thread_run, start, true) - engine.fiber);
    return 0;
}

int explore_pthread_join(pthread_t id, void **result)
{
    (void)result;
    memory_empty();
    engine_join(&engine.fiber[id]);
    return 0;
}

int explore_pthread_setname(pthread_t id, const char *name)
{
    (void)id;
    engine.me->name = name;
    return 0;
}

/* A mutex is its first word: 0 free, 1 held, 2 held and somebody may sleep. */
int explore_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static const struct explore_site at = { __FILE__, __LINE__, "mutex_lock", "" };
    uint32_t *word = (uint32_t *)(void *)mutex;
    uint64_t free = 0;

    if (explore_swap(word, sizeof *word, &free, 1, &at))
        return 0;
    while (explore_change(word, sizeof *word, EXPLORE_XCHG, 2, &at) != 0)
        due__futex_wait(word, 2, DUE_FOREVER, false);
    return 0;
}

int explore_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static const struct explore_site at = { __FILE__, __LINE__, "mutex_unlock", "" };
    uint32_t *word = (uint32_t *)(void *)mutex;

    if (explore_change(word, sizeof *word, EXPLORE_XCHG, 0, &at) == 2)
        due__futex_wake(word);
    return 0;
}
