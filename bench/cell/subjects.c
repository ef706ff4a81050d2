/* subjects.c - the tables of both programs: bench_cell, and bench_loops with BENCH_LOOPS. */
#include "subjects.h"

#ifdef BENCH_LOOPS

extern const struct bench_subject bench_libevent;
extern const struct bench_subject bench_libev;
extern const struct bench_subject bench_libuv;

const bool bench_has_limits = false;

const struct bench_subject *const bench_subjects[] = {
#ifdef BENCH_HAS_LIBEVENT
    &bench_libevent,
#endif
#ifdef BENCH_HAS_LIBEV
    &bench_libev,
#endif
#ifdef BENCH_HAS_LIBUV
    &bench_libuv,
#endif
    0,
};

const struct bench_subject *const bench_broken[] = { 0 };

#else

extern const struct bench_subject bench_libdue;
extern const struct bench_subject bench_mutex_heap;
extern const struct bench_subject bench_std_pq;
extern const struct bench_subject bench_tbb;

const bool bench_has_limits = true;

const struct bench_subject *const bench_subjects[] = {
    &bench_libdue,
    &bench_mutex_heap,
#ifdef BENCH_HAS_STD
    &bench_std_pq,
#endif
#ifdef BENCH_HAS_TBB
    &bench_tbb,
#endif
    0,
};

extern const struct bench_subject bench_broken_lost;
extern const struct bench_subject bench_broken_double;
extern const struct bench_subject bench_broken_early;
extern const struct bench_subject bench_broken_order;
extern const struct bench_subject bench_broken_cancel;
extern const struct bench_subject bench_broken_bytes;

const struct bench_subject *const bench_broken[] = {
    &bench_broken_lost,
    &bench_broken_double,
    &bench_broken_early,
    &bench_broken_order,
    &bench_broken_cancel,
    &bench_broken_bytes,
    0,
};

#endif
