// job.hpp - a job that was handed out.
#ifndef DUE_CPP_JOB_HPP
#define DUE_CPP_JOB_HPP

#include <climits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "due/cpp/base.hpp"
#include "due/workers.h"

namespace due
{

// What can be read of a job.
template <class Self> class job_facts
{
  public:
    due::id id() const noexcept { return due::id(raw().id); }

    // Valid as long as the job is, wherever that is moved.
    std::string_view bytes() const noexcept { return detail::view(raw().data, raw().len); }
    const void *data() const noexcept { return raw().data; }
    std::size_t size() const noexcept { return raw().len; }
#if __cplusplus >= 202002L
    std::span<const std::byte> span() const noexcept
    {
        return { static_cast<const std::byte *>(raw().data), raw().len };
    }
#endif
    std::string_view headers() const noexcept
    {
        return detail::view(raw().headers, raw().headers_len);
    }

    // The pointer that was carried; of the type that was enqueued.
    template <class T> T *pointer() const noexcept
    {
        return static_cast<T *>(raw().ptr);
    }

    std::chrono::nanoseconds deadline() const noexcept // on the queue's clock
    {
        return std::chrono::nanoseconds(raw().deadline_ns);
    }
    std::chrono::nanoseconds lateness() const noexcept
    {
        return std::chrono::nanoseconds(raw().lateness_ns);
    }
    int topic() const noexcept
    {
        return raw().topic;
    }
    int priority() const noexcept
    {
        return raw().priority;
    }
    std::uint32_t attempts() const noexcept
    {
        return raw().attempts;
    }
    std::uint32_t failures() const noexcept
    {
        return raw().failures;
    }
    bool reserved() const noexcept
    {
        return raw().token != 0;
    }
    bool stopping() const noexcept
    {
        return due_job_stopping(&raw()) != 0;
    }

  private:
    const due_job &raw() const noexcept
    {
        return static_cast<const Self *>(this)->get();
    }
};

// A job that somebody else has: what a handler or a hook is shown, for the length of its call.
class job_view : public job_facts<job_view>
{
  public:
    explicit job_view(const due_job &raw) noexcept : raw_(&raw) {}
    const due_job &get() const noexcept { return *raw_; }

  private:
    const due_job *raw_;
};

// A job that is yours: see "Before you start" in due.hpp for what becomes of it when it goes away.
class job : public job_facts<job>
{
  public:
    job() noexcept : raw_() {}
    explicit job(const due_job &raw) noexcept : raw_(raw) {} // which is this one's from now on
    job(job &&other) noexcept : raw_(other.release()) {}
    job &operator=(job &&other) noexcept
    {
        if (this != &other) {
            drop();
            raw_ = other.release();
        }
        return *this;
    }
    ~job() { drop(); }

    explicit operator bool() const noexcept { return raw_.queue != nullptr; }
    const due_job &get() const noexcept { return raw_; }

    // Give it to who answers for it otherwise; this one has none then.
    due_job release() noexcept { return std::exchange(raw_, due_job()); }

    // It is done with, now rather than when it goes away; of a reserved one: without an answer.
    void done() noexcept { due_job_done(&raw_); }

    // Answers for a reserved job.  After one of these it has none, unless an error has changed
    // nothing; see due.h.
    void ack() { try_ack().value(); }
    result<void> try_ack() noexcept { return detail::done(due_ack(&raw_)); }
    void nack(interval delay = by_policy) { try_nack(delay).value(); }
    result<void> try_nack(interval delay = by_policy) noexcept
    {
        return detail::done(due_nack(&raw_, delay.ns()));
    }
    void snooze(interval delay) { try_snooze(delay).value(); }
    result<void> try_snooze(interval delay) noexcept
    {
        return detail::done(due_snooze(&raw_, delay.ns()));
    }
    void bury(const char *reason = nullptr) { try_bury(reason).value(); }
    void bury(const std::string &reason) { bury(reason.c_str()); }
    result<void> try_bury(const char *reason = nullptr) noexcept
    {
        return detail::done(due_bury(&raw_, reason));
    }
    void extend(interval lease) { try_extend(lease).value(); }
    result<void> try_extend(interval lease) noexcept
    {
        return detail::done(due_extend(&raw_, lease.ns()));
    }

  private:
    void drop() noexcept
    {
        if (raw_.queue != nullptr && raw_.token != 0)
            (void)!due_nack(&raw_, DUE_DELAY_POLICY);
        due_job_done(&raw_); // of a job that was answered for: nothing
    }

    due_job raw_;
};

// Acks them all, as due_ack_batch(): with a store in few changes.  Answers what became of each,
// 0 or a code; a job whose answer has changed nothing is still there.
inline std::vector<int> ack(std::vector<job> &jobs)
{
    std::vector<int> answers(jobs.size());
    std::vector<due_job> raw(jobs.size());

    if (jobs.empty())
        return answers;
    if (jobs.size() > INT_MAX)
        throw error(DUE_EINVAL);
    for (std::size_t i = 0; i < jobs.size(); i++)
        raw[i] = jobs[i].release();
    (void)due_ack_batch(raw.data(), raw.size(), answers.data());
    for (std::size_t i = 0; i < jobs.size(); i++)
        jobs[i] = job(raw[i]);
    return answers;
}

} // namespace due

#endif
