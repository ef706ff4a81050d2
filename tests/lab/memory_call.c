/* memory_call.c - a call of a store in memory: where it waits, and what goes wrong in it. */
#define _GNU_SOURCE
#include <time.h>

#include "lab/memory_disk.h"

struct memory_call memory_call_begin(struct memory_store *s, enum memory_verb verb,
                                     enum memory_lane_of lane, int64_t until_ns)
{
    struct memory_call call = { .verb = verb, .lane = lane, .until_ns = until_ns };
    uint64_t number = ++s->calls[verb];

    if (atomic_exchange(&s->lanes[lane].inside, true))
        memory_wrong(s->disk, "two calls at once");
    if (s->closed && verb != MEMORY_CLOSE && verb != MEMORY_LEAVE)
        memory_wrong(s->disk, "a call after close");
    if (!s->opened && verb != MEMORY_OPEN && verb != MEMORY_CLOSE && verb != MEMORY_JOIN)
        memory_wrong(s->disk, "a call before open");
    memory_choose_faults(s, &call, number);
    pthread_cond_broadcast(&s->disk->test);
    return call;
}

int memory_call_end(struct memory_store *s, enum memory_lane_of lane, int rc)
{
    atomic_store(&s->lanes[lane].inside, false);
    pthread_mutex_unlock(&s->disk->lock);
    return rc;
}

/* ---- Waiting ---- */

int64_t memory_monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return DUE_S(t.tv_sec) + t.tv_nsec;
}

bool memory_interrupted(struct memory_store *s, enum memory_lane_of lane)
{
    bool was = s->lanes[lane].interrupted;

    s->lanes[lane].interrupted = false;
    return was;
}

bool memory_sleep_until(struct memory_store *s, int64_t until_ns)
{
    struct timespec t = { .tv_sec = (time_t)(until_ns / DUE_S(1)),
                          .tv_nsec = (long)(until_ns % DUE_S(1)) };

    if (until_ns <= 0)
        return false;
    if (until_ns == DUE_FOREVER)
        return pthread_cond_wait(&s->wake, &s->disk->lock) == 0;
    return pthread_cond_timedwait(&s->wake, &s->disk->lock, &t) == 0;
}

/* At a limiter (NULL: one that never opens).  Whether it has opened. */
static bool stand(struct memory_store *s, const struct memory_call *call,
                  struct memory_limiter *limiter)
{
    if (limiter != NULL) {
        limiter->reached++;
        pthread_cond_broadcast(&s->disk->test);
    }
    while (limiter == NULL || !limiter->open) {
        if (memory_interrupted(s, call->lane))
            return false;
        if (!memory_sleep_until(s, call->until_ns))
            return limiter != NULL && limiter->open;
    }
    return true;
}

/* False: interrupted, or the time is up before that. */
static bool linger(struct memory_store *s, const struct memory_call *call)
{
    int64_t end_ns = memory_monotonic_ns() + DUE_US((int64_t)call->slow_us);
    bool in_time = end_ns <= call->until_ns;

    while (!memory_interrupted(s, call->lane))
        if (!memory_sleep_until(s, in_time ? end_ns : call->until_ns))
            return in_time;
    return false;
}

int memory_before(struct memory_store *s, struct memory_call *call)
{
    if (call->has[MEMORY_BLOCK] && !stand(s, call, call->limiter))
        return DUE_EAGAIN;
    if (call->has[MEMORY_SLOW] && !linger(s, call))
        return DUE_EAGAIN;
    if (call->has[MEMORY_LOSE])
        memory_lose(s->disk, call->lose);
    if (call->has[MEMORY_FENCE])
        memory_take_over(s->disk, NULL);
    if (call->has[MEMORY_CRASH])
        memory_crash(s);
    if (s->crashed) {
        (void)stand(s, call, NULL);
        return DUE_EAGAIN;
    }
    if (call->has[MEMORY_AWAY])
        return DUE_EAGAIN;
    if (call->has[MEMORY_ANSWER])
        return call->answer;
    return s->fenced ? DUE_EFENCED : 0;
}

bool memory_after(struct memory_store *s, struct memory_call *call)
{
    if (call->has[MEMORY_CRASH_AFTER]) {
        memory_crash(s);
        (void)stand(s, call, NULL);
        return true;
    }
    return call->has[MEMORY_BLOCK_AFTER] && !stand(s, call, call->after_limiter);
}
