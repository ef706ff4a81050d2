// options.hpp - how a queue is opened, and where its jobs are kept.
#ifndef DUE_CPP_OPTIONS_HPP
#define DUE_CPP_OPTIONS_HPP

#include "due/cpp/base.hpp"
#include "due/cpp/job.hpp"
#include "due/metrics.h"
#if __has_include("due/sqlite.h")
#include "due/sqlite.h"
#endif
#if __has_include("due/redis.h")
#include "due/redis.h"
#endif

namespace due
{

// A store that no queue has yet: for options::store.
class store
{
  public:
    store() noexcept = default;
    store(due_store *raw, void (*free)(due_store *)) noexcept : raw_(raw), free_(free) {}
    store(store &&other) noexcept : raw_(other.release()), free_(other.free_) {}
    store &operator=(store &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        std::swap(free_, other.free_);
        return *this;
    }
    ~store()
    {
        if (raw_ != nullptr)
            free_(raw_);
    }
    due_store *get() const noexcept { return raw_; }
    due_store *release() noexcept { return std::exchange(raw_, nullptr); }

  private:
    due_store *raw_ = nullptr;
    void (*free_)(due_store *) = nullptr;
};

#ifdef DUE_SQLITE_H
// A store in a file.  Link due-sqlite.  @more, unless NULL, begins with its size.
inline store sqlite_store(const std::string &path, const due_sqlite_options *more = nullptr)
{
    due_store *raw = nullptr;
    due_error why = due_error();
    const int rc = due_sqlite_open(&raw, path.c_str(), more, &why);

    if (rc != 0)
        throw error(rc, why.text, why.hint);
    return store(raw, due_sqlite_free);
}
#endif

#ifdef DUE_REDIS_H
// A store in a Redis.  Link due-redis.
inline store redis_store(const std::string &url, const due_redis_options *more = nullptr)
{
    due_store *raw = nullptr;
    due_error why = due_error();
    const int rc = due_redis_open(&raw, url.c_str(), more, &why);

    if (rc != 0)
        throw error(rc, why.text, why.hint);
    return store(raw, due_redis_free);
}
#endif

// As due_options: what is not said is default.  Hooks are called from any thread, must not throw
// (that ends the program), and must not call their queue.
struct options {
    std::string name = {};
    std::size_t capacity = 0;
    std::size_t reserve = 0;
    due_clock_kind clock = DUE_CLOCK_MONOTONIC; // with a store always the wall clock
    const manual_clock *manual = nullptr;       // instead of it; must outlive the queue
    due_proxies proxies = DUE_PROXIES_ADAPTIVE;
    due_order order = DUE_ORDER_DEADLINE;
    interval spin = {};
    const due_allocator *allocator = nullptr;
    bool metrics = false;

    interval lease = {};
    due_retry retry = due_retry();
    interval dead_keep = {};
    std::size_t dead_max = 0;
    bool attempts_lazy = false;

    due::store store = {};
    due_confirm confirm = DUE_CONFIRM_SYNC;
    interval store_timeout = {};
    interval open_timeout = {};
    std::size_t unsettled_max = 0;
    std::size_t unsettled_bytes_max = 0;

    interval close_timeout = std::chrono::seconds(15); // of a queue that goes away

    std::function<void(due_log_level, const char *text)> on_log = {};
    std::function<void(const char *name)> on_thread_start = {};
    std::function<void(const job_view &)> on_discard = {}; // the pointer of the job is the hook's
    std::function<void(const due_event &)> on_event = {};
    std::function<void(due::id, int code)> on_settled = {};
    std::function<void(std::uint64_t restored, bool finished)> on_restore = {};
};

namespace detail
{

// What a queue keeps of its options: the hooks are called until it is freed.
struct hooks {
    options set;

    static const options &of(void *ctx) noexcept { return static_cast<hooks *>(ctx)->set; }

    due_options raw() noexcept
    {
        due_options o = due_options();

        o.size = sizeof o;
        o.name = set.name.empty() ? nullptr : set.name.c_str();
        o.capacity = set.capacity;
        o.reserve = set.reserve;
        o.clock = set.clock;
        if (set.store.get() != nullptr && set.clock == DUE_CLOCK_MONOTONIC)
            o.clock = DUE_CLOCK_REALTIME;
        o.manual = set.manual != nullptr ? set.manual->get() : nullptr;
        o.proxies = set.proxies;
        o.order = set.order;
        o.spin_ns = set.spin.ns();
        o.allocator = set.allocator;
        o.metrics = set.metrics;
        o.lease_ns = set.lease.ns();
        o.retry = set.retry;
        o.dead_keep_ns = set.dead_keep.ns();
        o.dead_max = set.dead_max;
        o.attempts_lazy = set.attempts_lazy;
        o.store = set.store.get();
        o.confirm = set.confirm;
        o.store_timeout_ns = set.store_timeout.ns();
        o.open_timeout_ns = set.open_timeout.ns();
        o.unsettled_max = set.unsettled_max;
        o.unsettled_bytes_max = set.unsettled_bytes_max;
        hook(o);
        return o;
    }

    void hook(due_options &o) noexcept
    {
        o.ctx = this;
        if (set.on_log)
            o.on_log = [](void *ctx, due_log_level level, const char *text) noexcept {
                of(ctx).on_log(level, text);
            };
        if (set.on_thread_start)
            o.on_thread_start = [](void *ctx, const char *name) noexcept {
                of(ctx).on_thread_start(name);
            };
        if (set.on_discard)
            o.on_discard = [](void *ctx, const due_job *job) noexcept {
                of(ctx).on_discard(job_view(*job));
            };
        if (set.on_event)
            o.on_event = [](void *ctx, const due_event *event) noexcept {
                of(ctx).on_event(*event);
            };
        if (set.on_settled)
            o.on_settled = [](void *ctx, due_id id, int rc) noexcept {
                of(ctx).on_settled(due::id(id), rc);
            };
        if (set.on_restore)
            o.on_restore = [](void *ctx, std::uint64_t restored, int finished) noexcept {
                of(ctx).on_restore(restored, finished != 0);
            };
    }

    // The clock that the queue has, or -1 if that is turned by hand.
    int clock() noexcept { return set.manual != nullptr ? -1 : static_cast<int>(raw().clock); }
};

} // namespace detail

} // namespace due

#endif
