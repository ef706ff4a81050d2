/* system.h - comes before every file of the store in memory in the simulation: what it asks of the
 * system goes to machine_system.c.  Its calls are no steps of the machine but where they wait.
 */
#ifndef SIMULATE_SYSTEM_H
#define SIMULATE_SYSTEM_H

/* What is declared with these names must be seen first. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int store_mutex(void *mutex);
int store_cond_wait(void *cond, void *mutex);
int store_cond_timedwait(void *cond, void *mutex, const struct timespec *until);
int store_cond_broadcast(void *cond);
int store_clock_gettime(clockid_t id, struct timespec *t);
void *store_realloc(void *memory, size_t size);
char *store_strdup(const char *text);
void *memory_new(size_t size);
void memory_free(void *memory);

#ifdef SIMULATE_STORE
#include <stdio.h>
#define fprintf(...) \
    ((void)0) /* what is wrong is asked for; a failing run is run again and again */
#undef strdup
#define malloc(size)                       memory_new(size)
#define calloc(n, size)                    memory_new((n) * (size))
#define realloc(memory, size)              store_realloc(memory, size)
#define free(memory)                       memory_free(memory)
#define strdup(text)                       store_strdup(text)
#define clock_gettime(id, t)               store_clock_gettime(id, t)
#define pthread_mutex_init(mutex, attr)    store_mutex(mutex)
#define pthread_mutex_destroy(mutex)       store_mutex(mutex)
#define pthread_mutex_lock(mutex)          store_mutex(mutex)
#define pthread_mutex_unlock(mutex)        store_mutex(mutex)
#define pthread_cond_init(cond, attr)      store_mutex(cond)
#define pthread_cond_destroy(cond)         store_mutex(cond)
#define pthread_cond_wait(cond, mutex)     store_cond_wait(cond, mutex)
#define pthread_cond_timedwait(cond, m, t) store_cond_timedwait(cond, m, t)
#define pthread_cond_broadcast(cond)       store_cond_broadcast(cond)
#endif

#endif
