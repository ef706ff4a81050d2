/* A queue whose store has lost jobs: what is put again takes no more batches than it must. */
#include "lab/shop.h"
#include "queue/queue.h"
#include "store/sender.h"

#define JOBS 5

static struct shop shop_of(size_t batch_changes)
{
    struct memory_disk_options disk = { .batch_changes = batch_changes };
    struct shop s =
        shop_new(&disk, (struct lab_options){ .start_ns = 5, .with.store_timeout_ns = DUE_S(30) });

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 100 + i);
    memory_disk_lose(s.disk, SIZE_MAX);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    return s;
}

/* Everything is there again: how many batches it took. */
static uint64_t mended(struct shop *s, uint64_t before)
{
    cr_expect_eq(due__commit_mended(s->lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect_eq(memory_disk_jobs(s->disk), JOBS + 1u);
    cr_expect_eq(lab_stats(&s->lab).mirrored, (uint64_t)JOBS);
    return memory_disk_batches(s->disk) - before;
}

Test(stored_again, jobs_go_with_what_waits, .timeout = 60)
{
    for (size_t room = JOBS + 1; room < 100; room += 60) {
        struct shop s = shop_of(room);
        uint64_t before = memory_disk_batches(s.disk);

        lab_enqueue(&s.lab, "cake", .at_ns = 50);
        cr_expect_eq(mended(&s, before), 1u, "%zu", room);
        shop_close(&s);
    }
}

/* In batches that are full. */
Test(stored_again, jobs_fill_the_batches, .timeout = 60)
{
    struct shop s = shop_of(2);
    uint64_t before = memory_disk_batches(s.disk);

    lab_enqueue(&s.lab, "cake", .at_ns = 50);
    cr_expect_eq(mended(&s, before), 3u);
    shop_close(&s);
}
