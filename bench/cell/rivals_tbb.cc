/* rivals_tbb.cc - oneTBB's concurrent priority queue of plain values, the deadline and the number.
 *
 * It knows no time: its head is the earliest deadline, due or not.  It cannot wait either, so a
 * blocking take tries, and yields, until it gets something.
 */
#include <new>
#include <thread>
#include <vector>

#include <oneapi/tbb/concurrent_priority_queue.h>
#include <oneapi/tbb/version.h>

#include "rivals_plain.h"
#include "subject.h"

extern "C" {
extern const bench_subject bench_tbb;
}

namespace
{

using item = plain_item;
using later = plain_later;
using heap_of_items = oneapi::tbb::concurrent_priority_queue<item, later>;

/* What was full once has its memory, and the memory was touched. */
void *queue_open(const bench_setup *setup)
try {
    auto *q = new heap_of_items;

    if (!setup->lean) {
        const std::vector<item> room(setup->jobs);

        q->assign(room.begin(), room.end());
        q->clear();
    }
    return q;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void queue_close(void *queue)
{
    delete static_cast<heap_of_items *>(queue);
}

/* What is due at once is given the time as its deadline, or later ones might overtake it. */
void queue_enqueue(void *queue, unsigned, const bench_job *job, bench_handle *)
{
    static_cast<heap_of_items *>(queue)->push(
        item{ job->at_ns != 0 ? job->at_ns : bench_now(), job->number });
}

bool queue_dequeue(void *queue, unsigned, bench_job *job, bool wait)
{
    auto *q = static_cast<heap_of_items *>(queue);
    item one;

    while (!q->try_pop(one)) {
        if (!wait)
            return false;
        std::this_thread::yield();
    }
    *job = bench_job{ one.number, one.at_ns, nullptr, 0, 0 };
    return true;
}

} // namespace

const bench_subject bench_tbb = {
    "tbb",
    "oneTBB " TBB_VERSION_STRING " concurrent_priority_queue of plain values; spins, knows no time",
    BENCH_NO_TIME | BENCH_SPINS,
    queue_open,
    queue_close,
    queue_enqueue,
    nullptr, /* enqueue_batch */
    queue_dequeue,
    nullptr, /* dequeue_batch */
    nullptr, /* done */
    nullptr, /* cancel */
    nullptr, /* drain */
    nullptr, /* turned */
    nullptr, /* trim */
    0,
    nullptr, /* cancel_batch */
    nullptr, /* reschedule */
};
