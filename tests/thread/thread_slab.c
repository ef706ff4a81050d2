/* thread_slab.c - places of the slab go from thread to thread: each has one holder at a time.
 *
 * Threads take places, more than their shard keeps, hold them and give them back, while one of them
 * lets pages go.  Who has a place writes to it as to its own; in the end all are there again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lab/crew.h"
#include "mem/slab.h"

enum { THREADS = 4, PLACES = 1 << 14, HELD = 400 };

struct world {
    struct due__alloc alloc;
    struct due__slab *slab;
    uint32_t holder[PLACES]; /* not atomic: it is its holder's */
    int64_t end_ns;
    uint64_t seed;
    atomic_uint number; /* of the next thread */
    atomic_ullong taken;
};

static size_t take(struct world *w, uint32_t me, uint32_t *place, size_t n)
{
    size_t got = due__slab_take(w->slab, place, n);

    for (size_t i = 0; i < got; i++) {
        struct due__job *j = due__job_at(w->slab, place[i]);

        CREW_CHECK(w->holder[place[i]] == 0, ": place %u has two holders", place[i]);
        w->holder[place[i]] = me;
        CREW_CHECK(due__word_state(j->word) == DUE__FREE, ": place %u", place[i]);
        due__word_begin(&j->word, due__word_generation(j->word), 0, DUE__CLAIMED, 0);
    }
    return got;
}

static void give(struct world *w, uint32_t me, uint32_t place)
{
    CREW_CHECK(w->holder[place] == me, ": place %u is somebody else's", place);
    w->holder[place] = 0;
    due__slab_give(w->slab, place);
}

static int use(void *arg)
{
    struct world *w = arg;
    uint32_t me = atomic_fetch_add(&w->number, 1) + 1;
    uint64_t seed = w->seed + me;
    uint32_t place[HELD];
    uint64_t taken = 0;
    size_t held = 0;

    while (crew_now_ns() < w->end_ns) {
        size_t want = (size_t)crew_below(&seed, HELD);

        while (held < want) {
            size_t most = want - held < 64 ? want - held : 64;
            size_t got = take(w, me, place + held, most);
            uint32_t places = due__slab_next_places(w->slab);

            if (got == 0 && due__slab_end(w->slab) + places > PLACES)
                break;
            if (got == 0) {
                void *segment = due__slab_segment(w->slab, places);

                CREW_CHECK(segment != NULL, "");
                due__slab_add(w->slab, places, segment);
            }
            held += got;
            taken += got;
        }
        while (held > want)
            give(w, me, place[--held]);
        if (me == 1 && crew_below(&seed, 50) == 0)
            due__slab_trim(w->slab, (uint32_t)crew_below(&seed, 2), true);
    }
    while (held > 0)
        give(w, me, place[--held]);
    atomic_fetch_add(&w->taken, taken);
    return 0;
}

static void count_all(struct world *w)
{
    uint32_t place[64];
    uint32_t n = 0;
    size_t got;

    due__slab_trim(w->slab, 0, true); /* what the shards of the others keep */
    while ((got = take(w, 1, place, 64)) > 0)
        n += (uint32_t)got;
    for (uint32_t k = 0; k < n; k++)
        CREW_CHECK(w->holder[k] == 1, ": place %u is lost", k);
    CREW_CHECK(n == due__slab_end(w->slab), ": %u of %u", n, due__slab_end(w->slab));
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.5);
    static struct world w;
    struct crew_thread threads[THREADS];
    void *slab = NULL;

    CREW_CHECK(posix_memalign(&slab, 128, sizeof(struct due__slab)) == 0, "");
    w.slab = slab;
    w.seed = o.seed;
    w.end_ns = crew_now_ns() + o.ns;
    due__alloc_init(&w.alloc, NULL);
    due__slab_init(w.slab, &w.alloc);
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], use, &w);
    for (int i = 0; i < THREADS; i++)
        crew_join(&threads[i]);
    count_all(&w);
    due__slab_destroy(w.slab);
    free(slab);
    printf("thread_slab: %llu places, each with one holder at a time\n",
           (unsigned long long)atomic_load(&w.taken));
    return 0;
}
