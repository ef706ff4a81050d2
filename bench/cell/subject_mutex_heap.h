/* subject_mutex_heap.h - its operations, for subjects made of it. */
#ifndef BENCH_SUBJECT_MUTEX_HEAP_H
#define BENCH_SUBJECT_MUTEX_HEAP_H

#include "subject.h"

extern const struct bench_subject bench_mutex_heap;

void *mutex_heap_open(const struct bench_setup *setup);
void mutex_heap_close(void *q);
void mutex_heap_enqueue(void *q, unsigned thread, const struct bench_job *in,
                        union bench_handle *handle);
bool mutex_heap_dequeue(void *q, unsigned thread, struct bench_job *out, bool wait);
void mutex_heap_done(void *q, unsigned thread, struct bench_job *jobs, size_t n);
void mutex_heap_drain(void *q);
bool mutex_heap_reschedule(void *q, unsigned thread, union bench_handle handle, int64_t at_ns);
bool mutex_heap_cancel(void *q, unsigned thread, union bench_handle handle);

#endif
