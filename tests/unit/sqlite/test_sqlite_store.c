/* The figures of a store on a file: they are changed under their lock, so that who reads them
 * meanwhile sees all of a batch, or nothing. */
#include <criterion/criterion.h>

#include "lab/crew.h"
#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/session.h"

static int put_one(void *arg)
{
    return sqlite_desk_put(arg, 1, DUE_S(20));
}

Test(sqlite_store, counts_a_batch_under_the_lock_of_its_figures, .timeout = 60)
{
    struct sqlite_desk desk;
    struct crew_thread thread;
    struct due_store_stats stats;

    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    struct due__sqlite *s = (struct due__sqlite *)desk.store;
    pthread_mutex_lock(&s->counters);
    crew_go(&thread, put_one, &desk);
    crew_until_asleep(&thread);
    for (int i = 0; i < 50 && !atomic_load(&thread.back); i++)
        crew_sleep(DUE_MS(2)); /* it may sleep for its file before that */
    cr_expect_not(atomic_load(&thread.back));
    cr_expect_eq(s->shown.batches, 0u);
    cr_expect_eq(s->shown.round_trip_ns, 0);
    pthread_mutex_unlock(&s->counters);
    cr_expect_eq(crew_join(&thread), 0);
    desk.store->verbs->stats(desk.store, &stats);
    cr_expect_eq(stats.batches, 1u);
    cr_expect_gt(stats.round_trip_ns, 0);
    cr_expect_eq(stats.connects, 1u);
    cr_expect(stats.connected);
    sqlite_desk_end(&desk);
}
