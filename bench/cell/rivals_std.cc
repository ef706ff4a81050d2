/* rivals_std.cc - the containers of C++: a mutex, a condition variable, and a priority queue of
 * plain values, the deadline and the number.
 *
 * Who waits, waits until the head's deadline.  A new head wakes one waiter, if there is any; so
 * does who takes a job and leaves others, for the waiter that the head had woken may be this one.
 */
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <queue>
#include <utility>
#include <vector>

#include "rivals_plain.h"
#include "subject.h"

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

extern "C" {
extern const bench_subject bench_std_pq;
}

namespace
{

using item = plain_item;
using later = plain_later;
using heap_of_items = std::priority_queue<item, std::vector<item>, later>;

struct delay_queue {
    std::mutex lock;
    std::condition_variable changed;
    unsigned waiting = 0; /* threads in a wait */
    heap_of_items heap;
};

std::chrono::steady_clock::time_point instant(int64_t at_ns)
{
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at_ns));
}

/* A vector that was full once has its memory, and the memory was touched. */
void *queue_open(const bench_setup *setup)
try {
    std::vector<item> room(setup->lean ? 0 : setup->jobs);
    auto *q = new delay_queue;

    room.clear();
    q->heap = heap_of_items(later(), std::move(room));
    return q;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void queue_close(void *queue)
{
    delete static_cast<delay_queue *>(queue);
}

void queue_enqueue(void *queue, unsigned, const bench_job *job, bench_handle *)
{
    auto *q = static_cast<delay_queue *>(queue);
    const item one = { job->at_ns != 0 ? job->at_ns : bench_now(), job->number };
    std::unique_lock<std::mutex> hold(q->lock);
    const bool head = q->heap.empty() || one.at_ns < q->heap.top().at_ns;
    const bool wake = head && q->waiting > 0;

    q->heap.push(one);
    hold.unlock();
    if (wake)
        q->changed.notify_one();
}

/* Wait for the head's deadline, or for a head. */
void wait_for_head(delay_queue *q, std::unique_lock<std::mutex> &hold)
{
    q->waiting++;
    if (q->heap.empty())
        q->changed.wait(hold);
    else
        q->changed.wait_until(hold, instant(q->heap.top().at_ns));
    q->waiting--;
}

/* With the lock: true, the head is due.  @now_ns: some time that has passed. */
bool head_is_due(delay_queue *q, std::unique_lock<std::mutex> &hold, bool wait, int64_t now_ns)
{
    for (;;) {
        if (!q->heap.empty() &&
            (q->heap.top().at_ns <= now_ns || q->heap.top().at_ns <= bench_now()))
            return true;
        if (!wait)
            return false;
        wait_for_head(q, hold);
    }
}

bool queue_dequeue(void *queue, unsigned, bench_job *job, bool wait)
{
    auto *q = static_cast<delay_queue *>(queue);
    const int64_t now_ns = bench_now(); /* while nobody waits for the lock */
    std::unique_lock<std::mutex> hold(q->lock);

    if (!head_is_due(q, hold, wait, now_ns))
        return false;
    const item one = q->heap.top();
    q->heap.pop();
    const bool wake = !q->heap.empty() && q->waiting > 0;
    hold.unlock();
    if (wake)
        q->changed.notify_one();
    *job = bench_job{ one.number, one.at_ns, nullptr, 0, 0 };
    return true;
}

} // namespace

const bench_subject bench_std_pq = {
    "std-pq",
    "std::priority_queue of plain values, std::mutex, std::condition_variable (libstdc++ " VALUE(
        _GLIBCXX_RELEASE) ")",
    BENCH_VIRTUAL,
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
