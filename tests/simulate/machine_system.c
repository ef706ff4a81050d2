/* machine_system.c - futexes, clocks, timers and threads, simulated: for the library, and for the
 * store in memory.
 *
 * due__futex_wait() compares the word and falls asleep in one step, as futexes do: a wake-up
 * before it is lost, and so is one that finds nobody.  The store's calls are no steps but where
 * they wait: a server that is alone with its disk.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#include "machine.h"
#include "os/futex.h"
#include "os/lock.h"
#include "system.h"

#define FIRST_FD 1000
#define NS_PER_S INT64_C(1000000000)
#define TICK_NS  DUE_MS(4) /* how often the kernel notes the time */

/* A timerfd. */
struct timer {
    bool used;
    clockid_t clock;
    int64_t set_ns; /* on its clock; DUE_FOREVER: stopped */
    unsigned process;
};

static struct timer timers[TIMERS_MAX];

unsigned explore_budget; /* as many as the library says */
unsigned explore_bias;   /* of tenures in a row, after which a lock is biased */

void system_begin(void)
{
    memset(timers, 0, sizeof timers);
    explore_budget = 0;
    explore_bias = 2;
}

void system_forget_process(unsigned process)
{
    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (timers[i].process == process)
            timers[i].used = false;
}

/* ---- Memory ---- */

void *explore_calloc(size_t n, size_t size);
void explore_free(void *memory);
void *explore_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int explore_munmap(void *memory, size_t size);
int explore_madvise(void *memory, size_t size, int advice);
ssize_t explore_getrandom(void *buffer, size_t size, unsigned flags);

void *explore_calloc(size_t n, size_t size)
{
    return memory_new(n * size);
}

void explore_free(void *memory)
{
    memory_free(memory);
}

/* The page that shows a fork. */
void *explore_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    (void)at, (void)protection, (void)flags, (void)fd, (void)offset;
    return memory_new(size);
}

int explore_munmap(void *memory, size_t size)
{
    (void)size;
    memory_free(memory);
    return 0;
}

int explore_madvise(void *memory, size_t size, int advice)
{
    (void)memory, (void)size, (void)advice;
    return 0;
}

ssize_t explore_getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)buffer)[i] = (unsigned char)machine_below(256);
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
    machine_step();
    if (word_now(word) == value)
        machine_park(word, until_ns, -1);
}

bool due__threads_fence_ready(void)
{
    return explore_bias > 0;
}

void due__threads_fence(void)
{
    machine_step();
    memory_empty_all();
}

/* A fibre of another program is another thread. */
uint32_t explore_self(void)
{
    return machine.me != NULL ? (uint32_t)(machine.me - machine.fiber) + 1 : DUE__NO_SELF;
}

void due__futex_wake(const uint32_t *word)
{
    memory_empty();
    machine_step();
    machine_unpark(word);
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

int explore_clock_gettime(clockid_t id, struct timespec *t);

int64_t machine_wall(void)
{
    return machine.now_ns + machine.wall_ns;
}

static int64_t now_of(clockid_t id)
{
    switch (id) {
    case CLOCK_REALTIME:
        return machine_wall();
    case CLOCK_REALTIME_COARSE:
        return machine_wall() - machine.now_ns % TICK_NS;
    case CLOCK_MONOTONIC_COARSE:
        return machine.now_ns - machine.now_ns % TICK_NS;
    case CLOCK_BOOTTIME:
        return machine.now_ns + machine.boot_ns;
    case CLOCK_THREAD_CPUTIME_ID:
        return (int64_t)machine.steps;
    default:
        return machine.now_ns;
    }
}

int explore_clock_gettime(clockid_t id, struct timespec *t)
{
    machine_step();
    if (machine.running && machine_chance(machine.o.drift_every))
        machine.now_ns += 1 + (int64_t)machine_below(1000);
    int64_t now = now_of(id) + (machine.o.plant == PLANT_EARLY);

    *t = (struct timespec){ .tv_sec = now / NS_PER_S, .tv_nsec = now % NS_PER_S };
    return 0;
}

void explore_yield(void)
{
    memory_empty();
    machine_step();
}

/* Who spins: others go on for a microsecond. */
void explore_spin(void)
{
    memory_empty();
    machine_step();
    machine_park(NULL, machine.now_ns + 1000, -1);
}

/* ---- Timers ---- */

int64_t system_timer_over(int n)
{
    const struct timer *it = &timers[n];

    if (it->set_ns == DUE_FOREVER)
        return DUE_FOREVER;
    return it->set_ns - (now_of(it->clock) - machine.now_ns);
}

int explore_timerfd_create(clockid_t clock, int flags);
int explore_timerfd_settime(int fd, int how, const struct itimerspec *at, struct itimerspec *old);
int explore_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const void *mask);
int explore_close(int fd);

int explore_timerfd_create(clockid_t clock, int flags)
{
    int n = 0;

    (void)flags;
    while (n < (int)TIMERS_MAX && timers[n].used)
        n++;
    if (n == (int)TIMERS_MAX ||
        (machine.plenty == 0 && machine_chance(machine.o.no_descriptor_every))) {
        errno = EMFILE;
        return -1;
    }
    timers[n] = (struct timer){ .used = true, .clock = clock, .set_ns = DUE_FOREVER };
    timers[n].process = machine.me != NULL ? machine.me->process : machine.process;
    return FIRST_FD + n;
}

static struct timer *timer_of(int fd)
{
    struct timer *it = &timers[fd - FIRST_FD];

    if (fd < FIRST_FD || fd >= FIRST_FD + (int)TIMERS_MAX || !it->used)
        machine_fail("descriptor %d is used, and not open", fd);
    return it;
}

int explore_timerfd_settime(int fd, int how, const struct itimerspec *at, struct itimerspec *old)
{
    int64_t ns = (int64_t)at->it_value.tv_sec * NS_PER_S + at->it_value.tv_nsec;

    (void)how;
    (void)old;
    memory_empty();
    machine_step();
    timer_of(fd)->set_ns = ns == 0 ? DUE_FOREVER : ns;
    return 0;
}

bool machine_readable(int fd)
{
    (void)timer_of(fd);
    return system_timer_over(fd - FIRST_FD) <= machine.now_ns;
}

void machine_wait_readable(int fd, int64_t until_ns)
{
    memory_empty();
    machine_step();
    if (!machine_readable(fd) && until_ns > machine.now_ns)
        machine_park(NULL, until_ns, fd - FIRST_FD);
}

int explore_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const void *mask)
{
    int64_t until = DUE_FOREVER;

    (void)n;
    (void)mask;
    if (limit != NULL)
        until = machine.now_ns + (int64_t)limit->tv_sec * NS_PER_S + limit->tv_nsec;
    if (machine_chance(machine.o.interrupt_every)) {
        errno = EINTR;
        return -1;
    }
    machine_wait_readable(fds[0].fd, until);
    return machine_readable(fds[0].fd);
}

int explore_close(int fd)
{
    timer_of(fd)->used = false;
    return 0;
}

/* ---- Threads ---- */

/* How slab.c numbers threads.  It counts those that it has ever seen: here each run begins anew. */
void due__thread_be(uint32_t number);

void system_thread(uint32_t number)
{
    due__thread_be(number);
}

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
    struct start start = *(struct start *)arg;

    memory_free(arg);
    start.run(start.arg);
}

int explore_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                           void *arg)
{
    (void)attr;
    memory_empty();
    machine_step();
    if (machine.plenty == 0 && machine_chance(machine.o.no_thread_every))
        return EAGAIN;
    struct start *start = memory_new(sizeof *start);
    *start = (struct start){ run, arg };
    *id = (pthread_t)(machine_start("library", thread_run, start, true) - machine.fiber);
    return 0;
}

int explore_pthread_join(pthread_t id, void **result)
{
    (void)result;
    machine_join(&machine.fiber[id]);
    return 0;
}

int explore_pthread_setname(pthread_t id, const char *name)
{
    (void)id;
    snprintf(machine.me->name, sizeof machine.me->name, "%s", name);
    return 0;
}

/* A mutex is its first word: 0 free, 1 held, 2 held and somebody may sleep. */
int explore_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    uint32_t *word = (uint32_t *)(void *)mutex;
    uint64_t free_word = 0;

    if (explore_swap(word, sizeof *word, &free_word, 1, NULL))
        return 0;
    while (explore_change(word, sizeof *word, EXPLORE_XCHG, 2, NULL) != 0)
        due__futex_wait(word, 2, DUE_FOREVER, false);
    return 0;
}

int explore_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    uint32_t *word = (uint32_t *)(void *)mutex;

    if (explore_change(word, sizeof *word, EXPLORE_XCHG, 0, NULL) == 2)
        due__futex_wake(word);
    return 0;
}

/* ---- For the store in memory: system.h ---- */

int store_mutex(void *mutex)
{
    (void)mutex;
    return 0;
}

int store_cond_wait(void *cond, void *mutex)
{
    (void)mutex;
    memory_empty();
    machine_park(cond, DUE_FOREVER, -1);
    return 0;
}

int store_cond_timedwait(void *cond, void *mutex, const struct timespec *until)
{
    int64_t until_ns = (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;

    (void)mutex;
    memory_empty();
    if (until_ns <= machine.now_ns)
        return ETIMEDOUT;
    machine_park(cond, until_ns, -1);
    return machine.now_ns >= until_ns ? ETIMEDOUT : 0;
}

int store_cond_broadcast(void *cond)
{
    machine_unpark_all(cond);
    return 0;
}

int store_clock_gettime(clockid_t id, struct timespec *t)
{
    int64_t now = now_of(id);

    *t = (struct timespec){ .tv_sec = now / NS_PER_S, .tv_nsec = now % NS_PER_S };
    return 0;
}

void *store_realloc(void *memory, size_t size)
{
    void *larger = memory_new(size);

    if (memory != NULL) {
        size_t was = memory_size(memory);

        memcpy(larger, memory, was < size ? was : size);
        memory_free(memory);
    }
    return larger;
}

char *store_strdup(const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(memory_new(n), text, n);
}
