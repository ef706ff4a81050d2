/* extras.h - what only some jobs have: headers, a key, a group, limits of their own.
 *
 * It stands in the job's block, before the payload, and the job's facts say so (DUE__EXTRAS).  So a
 * plain job pays nothing for it, and it is released with the payload.
 */
#ifndef DUE__EXTRAS_H
#define DUE__EXTRAS_H

#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/slab.h"
#include "os/sized.h"

struct due__key;
struct due__limiter;

struct due__extras {
    void *ptr;                    /* O  carried */
    struct due__key *key;         /* O  key_table.c */
    struct due__limiter *limiter; /* O  limit.c: its group's */
    int64_t ttl_ns;               /* O  0: none */
    int64_t expires_ns;           /* O  0: never */
    int64_t every_ns;             /* O  0: it does not come again */
    uint16_t headers_len;         /* O */
    uint16_t retry;               /* O  its policy: retry.c; 0: inherited */
    uint8_t repeat;               /* O  enum due_repeat */
    uint8_t passes;               /* O  limit.c: DUE__PASS_*; under the timeline lock */
    unsigned char bytes[];        /* O  headers, then the payload */
};

#define DUE__EXTRAS_BYTES offsetof(struct due__extras, bytes)

/* Has it a time of its own, on the queue's clock? */
static inline bool due__timed(const due_spec *s)
{
    return s->at_ns != 0 || (s->flags & DUE_SPEC_AT);
}

/* Is its time allowed, and are its flags known? */
static inline bool due__time_ok(const due_spec *s)
{
    return s->delay_ns >= 0 && s->at_ns >= 0 && !(s->delay_ns != 0 && due__timed(s)) &&
           !(s->flags & ~(unsigned)DUE_SPEC_AT);
}

/* *@from as of this header, with *@more behind it unless it has none: as due__sized_read(). */
static inline int due__spec_read(due_spec *to, due_extra *more, const void *from)
{
    int rc = due__sized_read(to, sizeof *to, from);

    if (rc == 0 && to->more != NULL) {
        rc = due__sized_read(more, sizeof *more, to->more);
        to->more = more;
    }
    return rc;
}

/* Is anything asked for that needs one? */
static inline bool due__extras_needed(const due_spec *s)
{
    const due_extra *x = s->more;

    if (x == NULL)
        return false;
    uint64_t numbers = (uint64_t)x->ttl_ns | (uint64_t)x->expires_ns | (uint64_t)x->every_ns |
                       (uint64_t)x->keep_key_ns | (uint64_t)x->headers_len | (uint64_t)x->key_len |
                       (uint64_t)x->group_len | (uint64_t)x->on_key | (uint64_t)x->repeat;

    return (numbers | (uintptr_t)x->retry | (uintptr_t)x->key | (uintptr_t)x->group) != 0;
}

/* The unique key that is asked for, or NULL. */
static inline const void *due__spec_key(const due_spec *s)
{
    return s->more != NULL ? s->more->key : NULL;
}

/* What is wrong with what a call asks for, in words; NULL: nothing, else it is DUE_EINVAL. */
const char *due__extras_wrong(const due_extra *x);

/* The block of a job that has s->more: front, headers and payload.  DUE_ENOMEM, DUE_ELIMIT
 * (policies). */
int due__extras_new(struct due_queue *q, const due_spec *s, struct due__extras **extras);

/* The front of a job that gets other content: what of the old one stays. */
void due__extras_inherit(struct due__extras *extras, const struct due__extras *old);
/* One that no job has, with its block; @len: of its payload. */
void due__extras_drop(struct due_queue *q, struct due__extras *extras, size_t len);

/* Of a job whose facts say that it has one. */
static inline struct due__extras *due__extras_at(const struct due__job *j)
{
    return j->payload.ptr;
}

/* The job's, or NULL.  The caller owns the job. */
static inline struct due__extras *due__extras_of(const struct due__job *j)
{
    return (due__facts_load(j).payload & DUE__EXTRAS) ? due__extras_at(j) : NULL;
}

/* The bytes of a job of the caller's; what it carries, or NULL; and its block, if it has one. */
const void *due__job_bytes(const struct due__job *j, struct due__facts f);
void *due__job_pointer(const struct due__job *j, struct due__facts f);
size_t due__block_bytes(const struct due__job *j, struct due__facts f);
void due__block_free(struct due__slab *s, struct due__job *j, struct due__facts f);

static inline bool due__job_has_block(struct due__facts f)
{
    return (f.payload & (DUE__EXTRAS | DUE__BYTES_APART)) != 0;
}

static inline void due__job_release(struct due__slab *s, struct due__job *j)
{
    struct due__facts f = due__facts_load(j);

    if (due__job_has_block(f))
        due__block_free(s, j, f);
}

#endif
