// base.hpp - what the other parts of due.hpp share: times, errors, results, ids, a clock for tests.
#ifndef DUE_CPP_BASE_HPP
#define DUE_CPP_BASE_HPP

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "due/cron.h"
#include "due/due.h"

namespace due
{

// ---- Time ---------------------------------------------------------------------------------------

inline constexpr std::chrono::nanoseconds forever{ DUE_FOREVER };
inline constexpr std::chrono::nanoseconds by_policy{ DUE_DELAY_POLICY };

// A duration as the library counts it: any of std::chrono becomes one.
class interval
{
  public:
    constexpr interval() noexcept = default;
    template <class Rep, class Period>
    constexpr interval(std::chrono::duration<Rep, Period> d) noexcept : ns_(count(d))
    {
    }
    constexpr std::int64_t ns() const noexcept { return ns_; }

  private:
    template <class Rep, class Period>
    static constexpr std::int64_t count(std::chrono::duration<Rep, Period> d) noexcept
    {
        using wide = std::chrono::duration<long double, std::nano>;
        const long double about = std::chrono::duration_cast<wide>(d).count();

        if (!(about < 9223372036854775807.0L)) // nor is what is no number
            return DUE_FOREVER;
        if (about <= -9223372036854775807.0L)
            return -DUE_FOREVER;
        return static_cast<std::int64_t>(std::chrono::ceil<std::chrono::nanoseconds>(d).count());
    }

    std::int64_t ns_ = 0;
};

// ---- Errors -------------------------------------------------------------------------------------

// What the plain calls throw.
class error : public std::runtime_error
{
  public:
    explicit error(int code, const char *text = nullptr, const char *hint = "")
        : std::runtime_error(std::string(due_error_name(code)) + ": " +
                             (text != nullptr && *text != '\0' ? text : due_error_text(code))),
          code_(code), hint_(hint)
    {
    }
    int code() const noexcept { return code_; } // DUE_E*
    const char *name() const noexcept { return due_error_name(code_); }
    const char *hint() const noexcept { return hint_.what(); } // what to do about it, or empty

  private:
    int code_;
    std::runtime_error hint_; // a string that is copied without throwing
};

// An error as a value.
struct failure {
    int code;
};

// What a call that does not throw answers: a value, or why there is none.
template <class T> class [[nodiscard]] result
{
  public:
    result(T value) noexcept : value_(std::move(value)) {}
    result(failure f) noexcept : code_(f.code) {}
    result(failure f, T other) noexcept : code_(f.code), value_(std::move(other)) {}

    explicit operator bool() const noexcept { return code_ == 0; }
    int code() const noexcept { return code_; } // 0, or DUE_E*
    const char *text() const noexcept { return due_error_text(code_); }

    // The value; of an error, throws it.
    T &value() &
    {
        check();
        return *value_;
    }
    T value() &&
    {
        check();
        return std::move(*value_);
    }
    T &operator*() noexcept { return *value_; }
    T *operator->() noexcept { return &*value_; }

    // What an error says besides; NULL: nothing.
    const T *other() const noexcept { return code_ != 0 && value_ ? &*value_ : nullptr; }

  private:
    void check() const
    {
        if (code_ != 0)
            throw error(code_);
    }

    int code_ = 0;
    std::optional<T> value_;
};

template <> class [[nodiscard]] result<void>
{
  public:
    result() noexcept = default;
    result(failure f) noexcept : code_(f.code) {}
    explicit operator bool() const noexcept { return code_ == 0; }
    int code() const noexcept { return code_; }
    const char *text() const noexcept { return due_error_text(code_); }
    void value() const
    {
        if (code_ != 0)
            throw error(code_);
    }

  private:
    int code_ = 0;
};

namespace detail
{
// What the library answers: 0 or more, or an error.
inline result<void> done(int rc) noexcept
{
    return rc < 0 ? result<void>(failure{ rc }) : result<void>();
}

inline result<int> number(int rc) noexcept
{
    return rc < 0 ? result<int>(failure{ rc }) : result<int>(rc);
}

inline std::string_view view(const void *data, std::size_t size) noexcept
{
    return { size != 0 ? static_cast<const char *>(data) : "", size };
}
} // namespace detail

// ---- Local times --------------------------------------------------------------------------------

// The first instant after @after that a cron expression names in a time zone; zone "UTC" or a name
// of the system's database.  What is wrong is the text of the error.
inline result<std::chrono::system_clock::time_point> try_cron_next(
    const char *expression, const char *zone, std::chrono::system_clock::time_point after) noexcept
{
    using clock = std::chrono::system_clock;
    std::int64_t next = 0;
    const int rc = due_cron_next(expression, zone, interval(after.time_since_epoch()).ns(), &next);

    if (rc != 0)
        return failure{ rc };
    return clock::time_point(
        std::chrono::duration_cast<clock::duration>(std::chrono::nanoseconds(next)));
}
inline std::chrono::system_clock::time_point cron_next(const char *expression, const char *zone,
                                                       std::chrono::system_clock::time_point after)
{
    auto next = try_cron_next(expression, zone, after);

    if (!next)
        throw error(next.code(), due_cron_error(expression, zone, nullptr));
    return *next;
}

// ---- Ids ----------------------------------------------------------------------------------------

// The name of a job.  It can be compared, ordered (without a meaning), hashed and printed.
class id
{
  public:
    id() noexcept : raw_() {}
    explicit id(due_id raw) noexcept : raw_(raw) {}
    const due_id &get() const noexcept { return raw_; }

    std::string str() const
    {
        char text[DUE_ID_TEXT];

        return due_id_format(raw_, text);
    }
    static result<id> try_parse(const char *text) noexcept
    {
        id out;
        const int rc = due_id_parse(text, &out.raw_);

        return rc == 0 ? result<id>(out) : result<id>(failure{ rc });
    }
    static id parse(const std::string &text) { return try_parse(text.c_str()).value(); }

    friend bool operator==(const id &a, const id &b) noexcept
    {
        return due_id_equal(a.raw_, b.raw_) != 0;
    }
    friend bool operator!=(const id &a, const id &b) noexcept { return !(a == b); }
    friend bool operator<(const id &a, const id &b) noexcept
    {
        return std::memcmp(a.raw_.byte, b.raw_.byte, sizeof a.raw_.byte) < 0;
    }

  private:
    due_id raw_;
};

// ---- A clock for tests --------------------------------------------------------------------------

// Stands still until it is turned.  It must outlive the queues that were opened on it.
class manual_clock
{
  public:
    explicit manual_clock(interval start = {}) : raw_(due_clock_manual(start.ns()))
    {
        if (raw_ == nullptr)
            throw error(start.ns() < 0 ? DUE_EINVAL : DUE_ENOMEM);
    }
    manual_clock(manual_clock &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    manual_clock &operator=(manual_clock &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~manual_clock() { (void)due_clock_free(raw_); } // while a queue is on it, it stays

    void advance(interval by) { try_advance(by).value(); }
    result<void> try_advance(interval by) noexcept
    {
        return detail::done(due_clock_advance(raw_, by.ns()));
    }
    void turn_to(interval to) { try_turn_to(to).value(); }
    result<void> try_turn_to(interval to) noexcept
    {
        return detail::done(due_clock_turn_to(raw_, to.ns()));
    }
    std::chrono::nanoseconds now() const noexcept
    {
        return std::chrono::nanoseconds(due_clock_now(raw_));
    }
    due_clock *get() const noexcept { return raw_; }

  private:
    due_clock *raw_;
};

} // namespace due

template <> struct std::hash<due::id> {
    std::size_t operator()(const due::id &id) const noexcept
    {
        return std::hash<std::string_view>()(due::detail::view(id.get().byte, sizeof(due_id)));
    }
};

#endif
