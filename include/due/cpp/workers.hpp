// workers.hpp - threads that take jobs from a queue and hand each to a function.
//
//     due::workers w(q, 4, [&](const due::job_view &job) {
//         return send(job.bytes()) ? due::answer_ack() : due::answer_nack();
//     });
//
// The handler answers a due_answer, or nothing, which is an ack.  If it throws, the job is given
// back to be tried again as its retry policy says, unless on_exception answers otherwise.
#ifndef DUE_CPP_WORKERS_HPP
#define DUE_CPP_WORKERS_HPP

#include <exception>

#include "due/cpp/queue.hpp"

namespace due
{

inline due_answer answer_ack() noexcept
{
    return due_answer_ack();
}

inline due_answer answer_nack(interval delay = by_policy) noexcept
{
    return due_answer_nack(delay.ns());
}

inline due_answer answer_snooze(interval delay) noexcept
{
    return due_answer_snooze(delay.ns());
}

inline due_answer answer_bury(const char *why = nullptr) noexcept
{
    return due_answer_bury(why);
}

struct workers_options {
    std::vector<int> topics = {}; // none: of any
    interval lease = {};
    interval extend_max = {};
    std::size_t in_flight_max = 0;
    std::string name = {};

    // What becomes of a job whose handler has thrown; called in its catch block.
    std::function<due_answer(const job_view &, std::exception_ptr)> on_exception = {};
};

class workers
{
  public:
    template <class Handler>
    workers(queue &q, std::size_t threads, Handler handler, const workers_options &o = {})
        : body_(new body<Handler>{ std::move(handler), o.on_exception }, free_body<Handler>)
    {
        due_workers_options raw = due_workers_options();

        raw.size = sizeof raw;
        raw.lease_ns = o.lease.ns();
        raw.extend_max_ns = o.extend_max.ns();
        raw.in_flight_max = o.in_flight_max;
        raw.name = o.name.empty() ? nullptr : o.name.c_str();
        const int rc =
            due_workers_start(&raw_, q.get(), o.topics.empty() ? nullptr : o.topics.data(),
                              o.topics.size(), threads, handle<Handler>, body_.get(), &raw);
        if (rc != 0)
            throw error(rc);
    }
    template <class Handler>
    static result<workers> try_start(queue &q, std::size_t threads, Handler handler,
                                     const workers_options &o = {}) noexcept
    {
        try {
            return workers(q, threads, std::move(handler), o);
        } catch (const error &e) {
            return failure{ e.code() };
        } catch (...) {
            return failure{ DUE_ENOMEM };
        }
    }
    workers(workers &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), body_(std::move(other.body_))
    {
    }
    workers &operator=(workers &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        body_.swap(other.body_);
        return *this;
    }
    ~workers()
    {
        if (raw_ == nullptr)
            return;
        (void)!due_workers_stop(raw_, DUE_FOREVER);
        if (due_workers_free(raw_) != 0)
            (void)body_.release(); // in one of its own handlers: it stays
    }

    // Stop, and wait for the handlers that run.
    void stop(interval timeout = forever) { try_stop(timeout).value(); }
    result<void> try_stop(interval timeout = forever) noexcept
    {
        return detail::done(due_workers_stop(raw_, timeout.ns()));
    }
    due_workers_stats stats() const
    {
        due_workers_stats out = due_workers_stats();

        detail::done(due_workers_stats_read(raw_, &out)).value();
        return out;
    }
    due_workers *get() const noexcept { return raw_; }

  private:
    template <class Handler> struct body {
        Handler handler;
        std::function<due_answer(const job_view &, std::exception_ptr)> on_exception;
    };

    template <class Handler> static void free_body(void *what)
    {
        delete static_cast<body<Handler> *>(what);
    }

    template <class Handler>
    static void handle(void *ctx, const due_job *raw, due_answer *answer) noexcept
    {
        auto &self = *static_cast<body<Handler> *>(ctx);
        const job_view job(*raw);

        *answer = due_answer_nack(DUE_DELAY_POLICY);
        try {
            if constexpr (std::is_void_v<std::invoke_result_t<Handler &, const job_view &>>) {
                self.handler(job);
                *answer = due_answer_ack();
            } else {
                *answer = self.handler(job);
            }
        } catch (...) {
            if (self.on_exception)
                *answer = self.on_exception(job, std::current_exception());
        }
    }

    due_workers *raw_ = nullptr;
    std::unique_ptr<void, void (*)(void *)> body_;
};

} // namespace due

#endif
