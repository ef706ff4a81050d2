// cpp_orders.cpp - a queue, a pool and jobs of one's own thread, in C++17.
//
// An order that is not paid within the hour is reminded of, and given up after the second reminder.
// The clock is turned by hand, so that the hours take no time.
#include <due/due.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;

// Says what is wrong, instead of a code.
static void too_many(due::queue &q)
{
    try {
        q.enqueue(due::spec("order 4").after(1h).priority(1000));
    } catch (const due::error &e) {
        std::cout << e.what() << '\n';
    }
}

// One that does not throw, for who is not to be surprised.
static void pay(due::queue &q, const std::string &order)
{
    due::result<due::job> job = q.try_cancel_key(order);

    if (job)
        std::cout << job->bytes() << " is paid\n";
    else if (job.code() == DUE_ENOENT)
        std::cout << order << " is not waited for\n";
    else
        std::cout << order << ": " << job.text() << '\n';
}

// A job that goes away without an answer, here by an exception, is tried again.
static void remind(due::queue &q)
{
    while (auto job = q.reserve(0s)) {
        try {
            if (job->attempts() == 1 && job->bytes() == "order 2")
                throw std::runtime_error("the mail server is away");
            std::cout << "a reminder of " << job->bytes() << ", attempt " << job->attempts()
                      << '\n';
            job->ack();
        } catch (const std::runtime_error &e) {
            std::cout << job->bytes() << ": " << e.what() << '\n';
        }
    }
}

// Threads instead: the queue is drained, so every job is handled before it is closed.
static void pool()
{
    due::queue q;
    due::workers w(q, 2, [](const due::job_view &job) {
        if (job.attempts() == 1)
            throw std::runtime_error("tried again at once, as nothing else was said");
        *job.pointer<int>() += 1;
    });
    int count = 0;

    q.enqueue(due::spec().pointer(&count).after(1ms));
    q.close();
    std::cout << count << " by the pool\n";
}

int main()
{
    due::manual_clock clock;
    due::options options;
    options.name = "orders";
    options.manual = &clock;
    options.on_discard = [](const due::job_view &job) {
        std::cout << job.bytes() << " is left over\n";
    };
    due::queue q(std::move(options));

    for (const char *order : { "order 1", "order 2", "order 3" })
        q.enqueue(due::spec(order).after(1h).key(order).retry(due::retry_fixed(10min, 3)));
    too_many(q);
    clock.advance(30min);
    pay(q, "order 1");
    pay(q, "order 9");
    clock.advance(30min);
    remind(q);
    clock.advance(10min);
    remind(q);
    q.enqueue(due::spec("order 5").after(1h));
    pool();
}
