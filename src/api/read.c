/* read.c - due_read(): the bytes of a job that is waiting or dead.
 *
 * Short ones are copied under the lock, while the job is MOVING, and its word is then what it was:
 * it keeps its slot.  For long ones it becomes the caller's, and waits again after that.
 *
 * Edges      described elsewhere: J1 slab.h, C1 inside.c
 */
#include <string.h>

#include "job/amend.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

#define UNDER_LOCK 4096u /* bytes copied there */

struct excerpt {
    struct due__amendment a; /* first: of a long one */
    void *buffer;
    size_t size;
    size_t len; /* of the whole payload */
};

/* Of a job of the caller's own. */
static void excerpt_copy(const struct due__job *j, struct excerpt *e)
{
    struct due__facts f = due__facts_load(j);

    e->len = f.len;
    if (f.len > 0 && e->size > 0)
        memcpy(e->buffer, due__job_bytes(j, f), f.len < e->size ? f.len : e->size);
}

static int excerpt_obstacle(uint64_t w, uint32_t generation)
{
    if (due__word_generation(w) != generation)
        return DUE_ENOENT;
    switch (due__word_state(w)) {
    case DUE__WAITING:
    case DUE__DEAD:
        return 0;
    case DUE__SENT:
        return DUE_EAGAIN;
    case DUE__CLAIMED:
    case DUE__DEFERRED:
    case DUE__CHANGING:
    case DUE__LEASED:
        return DUE_EBUSY;
    default:
        return DUE_ENOENT;
    }
}

/* DUE_ELIMIT: it is too long for that. */
static int read_locked(struct due_queue *q, uint32_t number, uint32_t generation, struct excerpt *e)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;
    int rc;

    due__enter(q, &t);
    due__drain_or_say(q, DUE__FOREIGN_MAX);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    do {
        rc = excerpt_obstacle(w, generation);
        if (rc == 0 && (w & q->journal->unsent))
            rc = DUE_EAGAIN; /* its node is with whoever sends, without this lock */
    } while (rc == 0 && !due__word_claim(&j->word, &w, DUE__MOVING)); /* J1 */
    if (rc == 0 && e->size > UNDER_LOCK && due__facts_load(j).len > UNDER_LOCK)
        rc = DUE_ELIMIT;
    else if (rc == 0)
        excerpt_copy(j, e);
    if (rc == 0 || rc == DUE_ELIMIT)
        due__word_set(&j->word, w); /* J1: nothing has changed */
    due__tenure_end(q, &t);
    return rc;
}

/* Nothing becomes of it. */
static int read_decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    struct excerpt *e = (struct excerpt *)(void *)a;

    (void)w;
    (void)now_ns;
    excerpt_copy(due__job_at(&q->slab, a->number), e);
    return 0;
}

int due_read(due_queue *q, due_id id, void *buffer, size_t size, size_t *len)
{
    struct excerpt e = { .buffer = buffer, .size = size };
    struct due__deadline by = { 0 };
    uint32_t number;
    uint32_t generation;

    if (due__forked(q))
        return DUE_EFORK;
    if (buffer == NULL && size > 0)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc == 0) {
        due__lapse(q, number, &by);
        rc = read_locked(q, number, generation, &e);
    }
    while (rc == DUE_EAGAIN) { /* it is on its way to the store */
        rc = q->journal->flush(q, &by);
        if (rc == 0)
            rc = read_locked(q, number, generation, &e);
    }
    if (rc == DUE_ELIMIT) {
        e.a = (struct due__amendment){ .number = number,
                                       .generation = generation,
                                       .of = DUE__IF_WAITING | DUE__IF_DEAD,
                                       .lengthy = true,
                                       .decide = read_decide };
        rc = q->journal->amend(q, &e.a, &by);
    }
    if (due__is_elsewhere(q, rc)) {
        struct due__ask ask = { .kind = DUE__ASK_READ, .id = id, .buffer = buffer, .size = size };

        rc = q->journal->ask(q, &ask, &by);
        e.len = ask.got;
    }
    if (rc == 0 && len != NULL)
        *len = e.len;
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}
