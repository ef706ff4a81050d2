// due.hpp - libdue for C++17: queues, jobs and pools as objects.
//
//     due::queue q;
//     q.enqueue(due::spec("the tea").after(300ms));
//     while (auto job = q.dequeue())
//         std::cout << job->bytes() << '\n';
//
// Header only, over the calls of due/due.h, which says what each does; here stands what is added.
//
//   Errors   Each call has two forms.  The plain one throws due::error, which has the code and the
//            text.  try_...() is noexcept and answers a due::result: the value, or the code.  That
//            nothing came in time is no error: the plain form answers an empty optional.
//   Time     Any std::chrono duration.  What is shorter than a nanosecond is rounded up, so that
//            nothing is early; what is too long is due::forever.
//   Bytes    A std::string_view of any bytes, which libdue copies; or a pointer, which it carries
//            and never follows: what is behind it stays yours.
//   Owners   queue, job, workers, store, figures and manual_clock can be moved and not copied.  One
//            that was moved from may be given another value or go away, and nothing else.  While
//            other threads use a queue it may be moved only if they are the pool's that was started
//            on it.
//   Enums    DUE_ORDER_PRIORITY and all others are those of C.
//
// Before you start
//   1. A job that was dequeued and goes away is done with.  A job that was reserved and goes away
//      without an answer has failed: it is given back as by nack(), to be tried again as its retry
//      policy says; with a store that waits for it.  If it is refused, the lease runs out.
//   2. A queue that goes away is closed first: what waits is discarded, as due_close() does, which
//      waits for up to options::close_timeout.  If it cannot be closed or freed then (a job is
//      still lent, a pool still runs) it stays, with its memory, as long as the process: what is
//      lent stays valid.  Call close() to hear of errors.
//   3. A pool that goes away waits until its handlers have returned.  Make it after its queue.
//   4. Hooks must not throw, a handler may: see due/cpp/workers.hpp.
#ifndef DUE_DUE_HPP
#define DUE_DUE_HPP

#if __cplusplus < 201703L
#error "due.hpp needs C++17"
#endif

#include "due/cpp/base.hpp"
#include "due/cpp/job.hpp"
#include "due/cpp/spec.hpp"
#include "due/cpp/options.hpp"
#include "due/cpp/queue.hpp"
#include "due/cpp/workers.hpp"
#include "due/cpp/figures.hpp"

#endif
