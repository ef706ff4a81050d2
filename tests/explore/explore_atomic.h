/* explore_atomic.h - the operations of src/os/atomic.h, each a step of the explorer.
 *
 * Included by src/os/atomic.h in a build with DUE__EXPLORE.  What each order means here:
 *
 *   load (any order)           the newest of one's own stores still in the buffer, else memory
 *   store, relaxed or release  into one's own buffer; reaches memory at once, or later
 *   store, seq                 empties the buffer, then writes memory: x86's xchg
 *   xchg, cas, add_seq ...     the same
 *   add_relaxed                memory, past the buffer: weaker than x86, where it is a fence too,
 *                              so that nothing can come to rely on a counter for its order
 */
#ifndef DUE__EXPLORE_ATOMIC_H
#define DUE__EXPLORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

enum explore_op {
    EXPLORE_LOAD,
    EXPLORE_STORE,
    EXPLORE_STORE_SEQ,
    EXPLORE_XCHG,
    EXPLORE_ADD,
    EXPLORE_ADD_RELAXED,
    EXPLORE_SUB,
    EXPLORE_OR,
    EXPLORE_AND,
    EXPLORE_CAS
};

/* A place in the source, for traces. */
struct explore_site {
    const char *file;
    int line;
    const char *op;    /* "store_release" */
    const char *place; /* "&w->ends" */
};

uint64_t explore_load(const volatile void *p, unsigned size, const struct explore_site *at);
void explore_store(volatile void *p, unsigned size, uint64_t value, const struct explore_site *at);
/* Read, change and write at once; answers what was there. */
uint64_t explore_change(volatile void *p, unsigned size, enum explore_op op, uint64_t value,
                        const struct explore_site *at);
bool explore_swap(volatile void *p, unsigned size, uint64_t *expected, uint64_t value,
                  const struct explore_site *at);

/* Who spins: others go on, and if nobody can, a nanosecond passes. */
void explore_spin(void);
/* Who looks again and again until another has gone on, who can: no time passes. */
void explore_yield(void);

#define EXPLORE_SITE(name, place_text) \
    static const struct explore_site explore_at = { __FILE__, __LINE__, (name), (place_text) }

#define EXPLORE_READ(name, p)                                          \
    __extension__({                                                    \
        EXPLORE_SITE(name, #p);                                        \
        (__typeof__(*(p)))explore_load((p), sizeof *(p), &explore_at); \
    })
#define EXPLORE_WRITE(name, p, v)                                    \
    __extension__({                                                  \
        EXPLORE_SITE(name, #p);                                      \
        explore_store((p), sizeof *(p), (uint64_t)(v), &explore_at); \
    })
#define EXPLORE_CHANGE(name, op, p, v)                                                        \
    __extension__({                                                                           \
        EXPLORE_SITE(name, #p);                                                               \
        (__typeof__(*(p)))explore_change((p), sizeof *(p), (op), (uint64_t)(v), &explore_at); \
    })
#define EXPLORE_SWAP(name, p, e, v)                                                        \
    __extension__({                                                                        \
        EXPLORE_SITE(name, #p);                                                            \
        uint64_t explore_expected = (uint64_t) * (e);                                      \
        bool explore_done =                                                                \
            explore_swap((p), sizeof *(p), &explore_expected, (uint64_t)(v), &explore_at); \
        *(e) = (__typeof__(*(e)))explore_expected;                                         \
        explore_done;                                                                      \
    })

#define due__load_relaxed(p)      EXPLORE_READ("load_relaxed", p)
#define due__load_acquire(p)      EXPLORE_READ("load_acquire", p)
#define due__load_seq(p)          EXPLORE_READ("load_seq", p)
#define due__store_relaxed(p, v)  EXPLORE_WRITE("store_relaxed", p, v)
#define due__store_release(p, v)  EXPLORE_WRITE("store_release", p, v)
#define due__store_seq(p, v)      ((void)EXPLORE_CHANGE("store_seq", EXPLORE_STORE_SEQ, p, v))
#define due__xchg_seq(p, v)       EXPLORE_CHANGE("xchg_seq", EXPLORE_XCHG, p, v)
#define due__add_relaxed(p, v)    EXPLORE_CHANGE("add_relaxed", EXPLORE_ADD_RELAXED, p, v)
#define due__add_seq(p, v)        EXPLORE_CHANGE("add_seq", EXPLORE_ADD, p, v)
#define due__sub_seq(p, v)        EXPLORE_CHANGE("sub_seq", EXPLORE_SUB, p, v)
#define due__or_seq(p, v)         EXPLORE_CHANGE("or_seq", EXPLORE_OR, p, v)
#define due__and_seq(p, v)        EXPLORE_CHANGE("and_seq", EXPLORE_AND, p, v)
#define due__cas_acq_rel(p, e, v) EXPLORE_SWAP("cas_acq_rel", p, e, v)
#define due__cas_seq(p, e, v)     EXPLORE_SWAP("cas_seq", p, e, v)

#endif
