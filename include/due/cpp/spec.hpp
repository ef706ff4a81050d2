// spec.hpp - a job to be enqueued, and how one is tried again.
#ifndef DUE_CPP_SPEC_HPP
#define DUE_CPP_SPEC_HPP

#include <initializer_list>
#include <type_traits>
#if __cplusplus >= 202002L
#include <cstddef>
#include <span>
#endif

#include "due/cpp/base.hpp"

namespace due
{

// Retry policies.  @attempts 0: without end.
inline due_retry retry_fixed(interval delay, std::uint32_t attempts = 0) noexcept
{
    due_retry retry = due_retry();

    retry.kind = DUE_RETRY_FIXED;
    retry.delay_ns = delay.ns();
    retry.attempts_max = attempts;
    return retry;
}

inline due_retry retry_exponential(interval first, interval cap = {},
                                   std::uint32_t attempts = 0) noexcept
{
    due_retry retry = retry_fixed(first, attempts);

    retry.kind = DUE_RETRY_EXPONENTIAL;
    retry.cap_ns = cap.ns();
    return retry;
}

// One that has more rungs than DUE_RUNGS_MAX is refused where it is used: DUE_EINVAL.
inline due_retry retry_ladder(std::initializer_list<interval> rungs,
                              std::uint32_t attempts = 0) noexcept
{
    due_retry retry = retry_fixed({}, attempts);

    retry.kind = DUE_RETRY_LADDER;
    for (const interval &rung : rungs) {
        if (retry.rungs < DUE_RUNGS_MAX)
            retry.rung_ns[retry.rungs] = rung.ns();
        retry.rungs++;
    }
    return retry;
}

// A job to be enqueued: due::spec("tea").after(5min).priority(7).  What it is given to look at
// (bytes, headers, key, group) must be there until it is enqueued; libdue copies it then.
class spec
{
  public:
    spec() noexcept : raw_(), extra_(), retry_()
    {
        raw_.size = sizeof raw_;
        extra_.size = sizeof extra_;
    }
    explicit spec(std::string_view payload) noexcept : spec() { bytes(payload); }

    spec &bytes(std::string_view payload) noexcept { return bytes(payload.data(), payload.size()); }
    spec &bytes(const void *data, std::size_t size) noexcept
    {
        raw_.data = size != 0 ? data : nullptr;
        raw_.len = size;
        return *this;
    }
#if __cplusplus >= 202002L
    explicit spec(std::span<const std::byte> payload) noexcept : spec()
    {
        bytes(payload);
    }
    spec &bytes(std::span<const std::byte> payload) noexcept
    {
        return bytes(payload.data(), payload.size());
    }
#endif
    // Instead of bytes; for queues in memory.
    template <class T> spec &pointer(T *what) noexcept
    {
        static_assert(std::is_object_v<T> || std::is_void_v<T>, "a pointer to an object");
        raw_.ptr = what;
        return *this;
    }

    // When: so long after it is enqueued, or at a time of the queue's clock.
    spec &after(interval delay) noexcept
    {
        return time(delay.ns(), 0, 0, any_clock);
    }
    spec &at(interval when) noexcept
    {
        return time(0, when.ns(), DUE_SPEC_AT, any_clock);
    }

    // The same as a time of a clock of std::chrono.  A queue of another clock refuses the job with
    // DUE_EINVAL: steady_clock is DUE_CLOCK_MONOTONIC, system_clock is DUE_CLOCK_REALTIME, which
    // stored queues have.
    template <class D> spec &at(std::chrono::time_point<std::chrono::steady_clock, D> when) noexcept
    {
        return time(0, interval(when.time_since_epoch()).ns(), DUE_SPEC_AT, DUE_CLOCK_MONOTONIC);
    }
    template <class D> spec &at(std::chrono::time_point<std::chrono::system_clock, D> when) noexcept
    {
        return time(0, interval(when.time_since_epoch()).ns(), DUE_SPEC_AT, DUE_CLOCK_REALTIME);
    }

    spec &topic(int number) noexcept
    {
        raw_.topic = number;
        return *this;
    }
    spec &priority(int level) noexcept
    {
        raw_.priority = level;
        return *this;
    }

    spec &headers(std::string_view text) noexcept
    {
        has_extra_ = true;
        extra_.headers = text.size() != 0 ? text.data() : nullptr;
        extra_.headers_len = text.size();
        return *this;
    }
    spec &retry(const due_retry &policy) noexcept
    {
        has_extra_ = has_retry_ = true;
        retry_ = policy;
        return *this;
    }
    spec &ttl(interval after_deadline) noexcept
    {
        has_extra_ = true;
        extra_.ttl_ns = after_deadline.ns();
        return *this;
    }
    spec &expires(interval when) noexcept // on the queue's clock
    {
        has_extra_ = true;
        extra_.expires_ns = when.ns();
        return *this;
    }
    spec &key(std::string_view unique, due_key_policy on_key = DUE_KEY_REFUSE) noexcept
    {
        has_extra_ = true;
        extra_.key = unique.data() != nullptr ? unique.data() : ""; // an empty key is refused
        extra_.key_len = unique.size();
        extra_.on_key = on_key;
        return *this;
    }
    spec &keep_key(interval after_done) noexcept
    {
        has_extra_ = true;
        extra_.keep_key_ns = after_done.ns();
        return *this;
    }
    spec &every(interval period, due_repeat how = DUE_REPEAT_SKIP) noexcept
    {
        has_extra_ = true;
        extra_.every_ns = period.ns();
        extra_.repeat = how;
        return *this;
    }
    spec &group(std::string_view name) noexcept
    {
        has_extra_ = true;
        extra_.group = name.data() != nullptr ? name.data() : "";
        extra_.group_len = name.size();
        return *this;
    }

    // As C has it, for the length of a call; @more is what it points to.
    due_spec raw(due_extra &more) const noexcept
    {
        due_spec out = raw_;

        more = extra_;
        if (has_retry_)
            more.retry = &retry_;
        if (has_extra_)
            out.more = &more;
        return out;
    }

    // May a queue of this clock take it?  -1: one that is turned by hand.
    bool fits(int clock) const noexcept
    {
        return clock_ == any_clock || clock_ == clock;
    }

  private:
    static constexpr int any_clock = -2;

    spec &time(std::int64_t delay, std::int64_t at, unsigned flags, int clock) noexcept
    {
        raw_.delay_ns = delay;
        raw_.at_ns = at;
        raw_.flags = flags;
        clock_ = clock;
        return *this;
    }

    due_spec raw_;
    due_extra extra_;
    due_retry retry_;
    int clock_ = any_clock;
    bool has_extra_ = false;
    bool has_retry_ = false;
};

} // namespace due

#endif
