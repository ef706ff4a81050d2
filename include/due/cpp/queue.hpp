// queue.hpp - a queue.
#ifndef DUE_CPP_QUEUE_HPP
#define DUE_CPP_QUEUE_HPP

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "due/cpp/job.hpp"
#include "due/cpp/options.hpp"
#include "due/cpp/spec.hpp"
#include "due/figures.h"

namespace due
{

class queue
{
  public:
    explicit queue(options o = {})
    {
        due_error why = due_error();
        const int rc = open(std::move(o), &why);

        if (rc != 0)
            throw error(rc, why.text, why.hint);
    }
    static result<queue> try_open(options o = {}, due_error *why = nullptr) noexcept
    {
        queue q(nullptr);
        const int rc = q.open(std::move(o), why);

        return rc == 0 ? result<queue>(std::move(q)) : result<queue>(failure{ rc });
    }
    queue(queue &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), hooks_(std::move(other.hooks_)),
          clock_(other.clock_)
    {
    }
    queue &operator=(queue &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        hooks_.swap(other.hooks_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~queue()
    {
        if (raw_ == nullptr)
            return;
        (void)!due_close(raw_, DUE_CLOSE_DISCARD, hooks_->set.close_timeout.ns());
        if (due_free(raw_) != 0)
            (void)hooks_.release(); // it stays, and so do they
    }

    due_queue *get() const noexcept { return raw_; }

    // Close it: without a timeout when all is delivered, however long that takes.
    void close(due_close_mode mode = DUE_CLOSE_DRAIN, interval timeout = forever)
    {
        try_close(mode, timeout).value();
    }
    result<void> try_close(due_close_mode mode = DUE_CLOSE_DRAIN,
                           interval timeout = forever) noexcept
    {
        return detail::done(due_close(raw_, mode, timeout.ns()));
    }

    std::chrono::nanoseconds now() const noexcept
    {
        return std::chrono::nanoseconds(due_now(raw_));
    }

    // ---- Topics ---------------------------------------------------------------------------------

    int topic(const std::string &name) { return try_topic(name.c_str()).value(); }
    result<int> try_topic(const char *name) noexcept
    {
        return detail::number(due_topic(raw_, name));
    }
    const char *topic_name(int topic) const noexcept // NULL: there is none
    {
        return due_topic_name(raw_, topic);
    }
    void pause(int topic = DUE_ALL_TOPICS) { try_pause(topic).value(); }
    result<void> try_pause(int topic = DUE_ALL_TOPICS) noexcept
    {
        return detail::done(due_pause(raw_, topic));
    }
    void resume(int topic = DUE_ALL_TOPICS) { try_resume(topic).value(); }
    result<void> try_resume(int topic = DUE_ALL_TOPICS) noexcept
    {
        return detail::done(due_resume(raw_, topic));
    }
    void limit(int topic, std::size_t max_running) { try_limit(topic, max_running).value(); }
    result<void> try_limit(int topic, std::size_t max_running) noexcept
    {
        return detail::done(due_topic_limit(raw_, topic, max_running));
    }
    void retry(int topic, const due_retry &policy) { try_retry(topic, policy).value(); }
    result<void> try_retry(int topic, const due_retry &policy) noexcept
    {
        return detail::done(due_topic_retry(raw_, topic, &policy));
    }

    // ---- Putting in -----------------------------------------------------------------------------

    // @timeout: how long to wait for room.  The text of the error names the field that is wrong.
    due::id enqueue(const spec &job, interval timeout = {})
    {
        auto answer = try_enqueue(job, timeout);

        if (!answer)
            refuse(job, answer.code());
        return *answer;
    }
    // other(): with DUE_EEXIST who has the key, with DUE_EINDOUBT the job.
    result<due::id> try_enqueue(const spec &job, interval timeout = {}) noexcept
    {
        due_id id = due_id();
        due_extra more;
        const due_spec raw = job.raw(more);
        const int rc =
            job.fits(clock_) ? due_enqueue(raw_, &raw, timeout.ns(), &id) : int(DUE_EINVAL);

        if (rc == DUE_EEXIST || rc == DUE_EINDOUBT)
            return { failure{ rc }, due::id(id) };
        return named(rc, id);
    }

    // Timers: a pointer, at a time or after a delay.
    due::id enqueue_after(interval delay, void *ptr = nullptr)
    {
        return try_enqueue_after(delay, ptr).value();
    }
    result<due::id> try_enqueue_after(interval delay, void *ptr = nullptr) noexcept
    {
        due_id id = due_id();
        const int rc = due_enqueue_after(raw_, delay.ns(), ptr, &id);

        return named(rc, id);
    }
    due::id enqueue_at(interval when, void *ptr = nullptr)
    {
        return try_enqueue_at(when, ptr).value();
    }
    result<due::id> try_enqueue_at(interval when, void *ptr = nullptr) noexcept
    {
        due_id id = due_id();
        const int rc = due_enqueue_at(raw_, when.ns(), ptr, &id);

        return named(rc, id);
    }

    // Several at once; the ids of those that were taken, from the front.  Throws if none was.
    std::vector<due::id> enqueue(const std::vector<spec> &jobs, interval timeout = {})
    {
        std::vector<due_extra> more(jobs.size());
        std::vector<due_spec> raw(jobs.size());
        std::vector<due_id> ids(jobs.size());
        std::vector<due::id> out;

        for (std::size_t i = 0; i < jobs.size(); i++) {
            raw[i] = jobs[i].raw(more[i]);
            if (!jobs[i].fits(clock_))
                throw error(DUE_EINVAL, wrong_clock);
        }
        out.reserve(jobs.size());
        if (jobs.empty())
            return out;
        const int n = due_enqueue_batch(raw_, raw.data(), raw.size(), timeout.ns(), ids.data());
        if (n < 0)
            throw error(n);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); i++)
            out.push_back(due::id(ids[i]));
        return out;
    }

    // ---- Taking out -----------------------------------------------------------------------------

    // Wait for a job, without end.  Nothing: the queue is closed.
    std::optional<job> dequeue() { return next(due_dequeue); }
    std::optional<job> reserve() { return next(due_reserve); }

    // Wait so long.  Nothing: no job came; of a closed queue DUE_ECLOSED is thrown.
    std::optional<job> dequeue(interval timeout) { return in_time(try_dequeue(timeout)); }
    std::optional<job> reserve(interval timeout) { return in_time(try_reserve(timeout)); }

    result<job> try_dequeue(interval timeout = {}) noexcept { return one(due_dequeue, timeout); }
    result<job> try_reserve(interval timeout = {}) noexcept { return one(due_reserve, timeout); }

    // Up to @max that are due now, of these topics (none: of any), on a lease or, if that is 0, for
    // good; waits only for the first.  None: no job came.
    std::vector<job> take(std::size_t max, interval timeout = {},
                          const std::vector<int> &topics = {}, interval lease = {})
    {
        if (max == 0)
            throw error(DUE_EINVAL);
        std::vector<due_job> raw(max);
        std::vector<job> out;
        due_take_options how = due_take_options();

        out.reserve(max);
        how.size = sizeof how;
        how.topics = topics.empty() ? nullptr : topics.data();
        how.topic_count = topics.size();
        how.lease_ns = lease.ns();
        const int n = due_take(raw_, &how, raw.data(), max, timeout.ns());
        if (n < 0 && n != DUE_EAGAIN && n != DUE_ETIMEDOUT)
            throw error(n);
        for (int i = 0; i < n; i++)
            out.emplace_back(raw[static_cast<std::size_t>(i)]);
        return out;
    }

    // ---- Naming a job ---------------------------------------------------------------------------

    // Take a job back: what was in it.  Throws DUE_EBUSY if somebody has it, DUE_ENOENT if it is
    // gone.
    job cancel(due::id id) { return try_cancel(id).value(); }
    result<job> try_cancel(due::id id) noexcept
    {
        due_job raw = due_job();
        const int rc = due_cancel(raw_, id.get(), &raw);

        return lent(rc, raw);
    }
    job cancel_key(std::string_view key) { return try_cancel_key(key).value(); }
    result<job> try_cancel_key(std::string_view key) noexcept
    {
        due_job raw = due_job();
        const int rc = due_cancel_key(raw_, bytes_of(key), key.size(), &raw);

        return lent(rc, raw);
    }
    due::id id_of_key(std::string_view key) { return try_id_of_key(key).value(); }
    result<due::id> try_id_of_key(std::string_view key) noexcept
    {
        due_id id = due_id();
        const int rc = due_id_of_key(raw_, bytes_of(key), key.size(), &id);

        return named(rc, id);
    }
    void reschedule(due::id id, interval when) { try_reschedule(id, when).value(); }
    result<void> try_reschedule(due::id id, interval when) noexcept
    {
        return detail::done(due_reschedule(raw_, id.get(), when.ns()));
    }
    void promote(due::id id) { try_promote(id).value(); }
    result<void> try_promote(due::id id) noexcept
    {
        return detail::done(due_promote(raw_, id.get()));
    }
    void update(due::id id, std::string_view bytes) { try_update(id, bytes).value(); }
    result<void> try_update(due::id id, std::string_view bytes) noexcept
    {
        return detail::done(due_update(raw_, id.get(), bytes.data(), bytes.size()));
    }
    // @what: DUE_SET_* of what @to says.
    void amend(due::id id, const spec &to, unsigned what) { try_amend(id, to, what).value(); }
    result<void> try_amend(due::id id, const spec &to, unsigned what) noexcept
    {
        due_extra more;
        const due_spec raw = to.raw(more);

        if (!to.fits(clock_))
            return failure{ DUE_EINVAL };
        return detail::done(due_amend(raw_, id.get(), &raw, what));
    }
    due_info find(due::id id) { return try_find(id).value(); }
    result<due_info> try_find(due::id id) noexcept
    {
        due_info info = due_info();

        return look(due_find(raw_, id.get(), &info), info);
    }
    std::chrono::nanoseconds remaining(due::id id) { return try_remaining(id).value(); }
    result<std::chrono::nanoseconds> try_remaining(due::id id) noexcept
    {
        std::int64_t ns = 0;
        const int rc = due_remaining(raw_, id.get(), &ns);

        return look(rc, std::chrono::nanoseconds(ns));
    }
    // The bytes of a job that waits or is dead.
    std::string read(due::id id)
    {
        std::string out;

        for (;;) {
            std::size_t size = 0;
            detail::done(due_read(raw_, id.get(), out.data(), out.size(), &size)).value();
            if (size <= out.size())
                return out.erase(size);
            out.resize(size); // it may have been given other bytes meanwhile
        }
    }

    // ---- The whole queue ------------------------------------------------------------------------

    std::optional<due_info> peek()
    {
        due_info info = due_info();
        const int rc = due_peek(raw_, &info);

        if (rc == DUE_EAGAIN)
            return std::nullopt;
        return look(rc, info).value();
    }
    std::vector<due_info> list() { return all<due_info>(due_list); }
    std::vector<due_dead> list_dead() { return all<due_dead>(due_list_dead); }
    std::uint64_t clear(int topic = DUE_ALL_TOPICS) { return many(due_clear, topic); }
    std::uint64_t clear_dead(int topic = DUE_ALL_TOPICS) { return many(due_clear_dead, topic); }
    std::uint64_t kick_all(int topic = DUE_ALL_TOPICS) { return many(due_kick_all, topic); }
    void kick(due::id id) { try_kick(id).value(); }
    result<void> try_kick(due::id id) noexcept { return detail::done(due_kick(raw_, id.get())); }
    void flush(interval timeout = forever) { try_flush(timeout).value(); }
    result<void> try_flush(interval timeout = forever) noexcept
    {
        return detail::done(due_flush(raw_, timeout.ns()));
    }
    void trim() { detail::done(due_trim(raw_)).value(); }
    due_stats stats()
    {
        due_stats out = due_stats();

        detail::done(due_stats_read(raw_, &out)).value();
        return out;
    }
    // Of the whole queue, whoever shares it; DUE_ALL_TOPICS, or a topic's number.
    due_queue_census census(int topic = DUE_ALL_TOPICS, interval timeout = forever)
    {
        due_queue_census out = due_queue_census();

        detail::done(due_census(raw_, topic, &out, timeout.ns())).value();
        return out;
    }
    std::vector<due_process> processes(interval timeout = forever)
    {
        std::vector<due_process> out;
        std::uint64_t cursor = 0;

        for (;;) {
            const std::size_t had = out.size();
            out.resize(had + 64);
            const int n = due_processes(raw_, &cursor, out.data() + had, 64, timeout.ns());
            out.resize(had + static_cast<std::size_t>(std::max(n, 0)));
            if (detail::number(n).value() == 0)
                return out;
        }
    }
    // For Prometheus.
    std::string metrics()
    {
        std::string out(4096, '\0');

        for (;;) {
            const int n = detail::number(due_metrics_write(raw_, out.data(), out.size())).value();
            if (static_cast<std::size_t>(n) < out.size())
                return out.erase(static_cast<std::size_t>(n));
            out.resize(static_cast<std::size_t>(n) + 1024);
        }
    }

    // From now on its figures stand in a file there, until it goes away: for due::figures, and
    // `duectl top`.
    void show_figures(const std::string &path) { try_show_figures(path.c_str()).value(); }
    result<void> try_show_figures(const char *path) noexcept
    {
        return detail::done(due_figures_open(raw_, path));
    }

    // ---- Event loops ----------------------------------------------------------------------------

    int fd() { return detail::number(due_fd(raw_)).value(); }
    int poll() { return detail::number(due_poll(raw_, nullptr)).value(); }
    std::chrono::nanoseconds next_deadline() noexcept
    {
        return std::chrono::nanoseconds(due_next_deadline(raw_));
    }

  private:
    explicit queue(std::nullptr_t) noexcept {}

    int open(options o, due_error *why) noexcept
    {
        hooks_.reset(new (std::nothrow) detail::hooks{ std::move(o) });
        if (hooks_ == nullptr)
            return DUE_ENOMEM;
        const due_options raw = hooks_->raw();
        const int rc = due_open(&raw_, &raw, why);
        clock_ = hooks_->clock();
        if (rc == 0)
            (void)hooks_->set.store.release();
        return rc;
    }

    [[noreturn]] void refuse(const spec &job, int code) const
    {
        due_extra more;
        const due_spec raw = job.raw(more);

        if (code == DUE_EINVAL && !job.fits(clock_))
            throw error(code, wrong_clock);
        if (code == DUE_EINVAL || code == DUE_ENOTSUP || code == DUE_ELIMIT)
            throw error(code, due_spec_error(raw_, &raw));
        throw error(code);
    }

    using taking = int(due_queue *, due_job *, std::int64_t);

    result<job> one(taking *how, interval timeout) noexcept
    {
        due_job raw = due_job();
        const int rc = how(raw_, &raw, timeout.ns());

        return lent(rc, raw);
    }
    std::optional<job> next(taking *how)
    {
        auto answer = one(how, forever);

        if (answer.code() == DUE_ECLOSED)
            return std::nullopt;
        return std::move(answer).value();
    }
    static std::optional<job> in_time(result<job> answer)
    {
        if (answer.code() == DUE_EAGAIN || answer.code() == DUE_ETIMEDOUT)
            return std::nullopt;
        return std::move(answer).value();
    }

    static result<job> lent(int rc, const due_job &raw) noexcept
    {
        return rc == 0 ? result<job>(job(raw)) : result<job>(failure{ rc });
    }
    static result<due::id> named(int rc, due_id id) noexcept
    {
        return rc == 0 ? result<due::id>(due::id(id)) : result<due::id>(failure{ rc });
    }
    template <class T> static result<T> look(int rc, const T &what) noexcept
    {
        return rc < 0 ? result<T>(failure{ rc }) : result<T>(what);
    }
    static const char *bytes_of(std::string_view text) noexcept
    {
        return text.data() != nullptr ? text.data() : "";
    }

    template <class T>
    std::vector<T> all(int (*how)(due_queue *, std::uint64_t *, T *, std::size_t))
    {
        std::vector<T> out;
        std::uint64_t cursor = 0;

        for (;;) {
            const std::size_t had = out.size();
            out.resize(had + 256);
            const int n = how(raw_, &cursor, out.data() + had, 256);
            out.resize(had + static_cast<std::size_t>(std::max(n, 0)));
            if (detail::number(n).value() == 0)
                return out;
        }
    }
    std::uint64_t many(int (*how)(due_queue *, int, std::uint64_t *), int topic)
    {
        std::uint64_t n = 0;

        detail::done(how(raw_, topic, &n)).value();
        return n;
    }

    static constexpr const char *wrong_clock = "the time is of another clock than the queue's";

    due_queue *raw_ = nullptr;
    std::unique_ptr<detail::hooks> hooks_;
    int clock_ = DUE_CLOCK_MONOTONIC;
};

} // namespace due

#endif
