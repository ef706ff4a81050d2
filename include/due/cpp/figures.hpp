// figures.hpp - the file in which a program shows the figures of a queue, for who looks into it.
//
//     q.show_figures("/run/me/orders.figures");
//     ...
//     const due::figures file("/run/me/orders.figures"); // of a program in any language
//     const auto set = file.read();
//     std::cout << set->queue << ": " << set->stats.waiting << (file.alive() ? "" : ", gone");
//
// The program does not notice that it is read.  The file is read, not mapped, so that one that
// somebody makes shorter is an error and no signal.  Nothing in it is believed.
//
// Edges   B1, B2 of figures_file.c, of which this is the reader's end: the number, the set and the
//         number again are read by one call each, with a fence between them.
#ifndef DUE_CPP_FIGURES_HPP
#define DUE_CPP_FIGURES_HPP

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>

#include "due/cpp/base.hpp"
#include "due/figures.h"

namespace due
{

class figures
{
  public:
    // The file that is at this path now.  Throws DUE_ENOENT, DUE_EACCES, DUE_EINVAL (it is no file
    // of figures), DUE_ENOTSUP (of another version), DUE_ESYS.
    explicit figures(const std::string &path) : figures(try_open(path.c_str()).value()) {}
    static result<figures> try_open(const char *path) noexcept
    {
        due_figures_head head;
        figures file;

        file.fd_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file.fd_ < 0)
            return failure{ errno == ENOENT   ? int(DUE_ENOENT)
                            : errno == EACCES ? int(DUE_EACCES)
                                              : int(DUE_ESYS) };
        const int rc = file.read_head(head);
        return rc == 0 ? result<figures>(std::move(file)) : result<figures>(failure{ rc });
    }
    figures(figures &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    figures &operator=(figures &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~figures()
    {
        if (fd_ >= 0)
            (void)::close(fd_);
    }

    // Does a program write it?
    bool alive() const noexcept
    {
        struct flock lock = {};

        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_len = 1;
        return ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
    }

    // The set that was written last, whole: of its topics there are topics_here, of its pools
    // pools_here.  Throws DUE_EAGAIN if there is none for half a second, DUE_EINVAL if it makes no
    // sense, DUE_ENOTSUP, DUE_ENOMEM.
    std::unique_ptr<due_figures> read() const { return try_read().value(); }
    result<std::unique_ptr<due_figures>> try_read() const noexcept
    {
        std::unique_ptr<due_figures> set(new (std::nothrow) due_figures);
        int rc = set == nullptr ? int(DUE_ENOMEM) : int(DUE_EAGAIN);

        for (int tries = 0; rc == DUE_EAGAIN && tries < 100; tries++) {
            if (tries > 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            rc = read_set(*set);
        }
        if (rc != 0)
            return failure{ rc };
        return result<std::unique_ptr<due_figures>>(std::move(set));
    }

    int fd() const noexcept { return fd_; }

  private:
    figures() noexcept = default;

    bool read_at(void *to, std::size_t size, std::size_t at) const noexcept
    {
        return ::pread(fd_, to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
    }

    int read_head(due_figures_head &head) const noexcept
    {
        if (!read_at(&head, sizeof head, 0) ||
            std::memcmp(head.magic, DUE_FIGURES_MAGIC, sizeof head.magic) != 0)
            return DUE_EINVAL;
        return head.version == DUE_FIGURES_VERSION && head.head_bytes == sizeof head &&
                       head.set_bytes == sizeof(due_figures)
                   ? 0
                   : int(DUE_ENOTSUP);
    }

    // DUE_EAGAIN: it was written over meanwhile, or there is none.
    int read_set(due_figures &set) const noexcept
    {
        due_figures_head head;
        std::uint64_t number = 0;
        const int rc = read_head(head);

        if (rc != 0)
            return rc;
        fence(); // B1 of figures_file.c
        if (!read_at(&set, sizeof set, sizeof head + head.number % 2 * sizeof set))
            return DUE_EINVAL;
        fence(); // B2 of figures_file.c
        if (!read_at(&number, sizeof number, offsetof(due_figures_head, number)))
            return DUE_EINVAL;
        if (number == 0 || number != head.number)
            return DUE_EAGAIN;
        return check(set, number);
    }

    // Counts are within bounds, names have an end.
    static int check(due_figures &set, std::uint64_t number) noexcept
    {
        if (set.number != number || set.topics_here > DUE_FIGURES_TOPICS ||
            set.topics_here > set.topics || set.pools_here > DUE_FIGURES_POOLS)
            return DUE_EINVAL;
        set.queue[sizeof set.queue - 1] = '\0';
        for (due_figures_topic &topic : set.topic)
            topic.name[sizeof topic.name - 1] = '\0';
        for (due_figures_pool &pool : set.pool)
            pool.name[sizeof pool.name - 1] = '\0';
        for (due_histogram *h : { &set.late, &set.held }) {
            h->count = 0;
            for (const std::uint64_t n : h->bucket)
                h->count += n;
        }
        return 0;
    }

    // ThreadSanitizer knows none, and has nothing to see here: calls of the kernel read the file.
    static void fence() noexcept
    {
#ifndef __SANITIZE_THREAD__
        std::atomic_thread_fence(std::memory_order_acquire); // B1, B2 of figures_file.c
#endif
    }

    int fd_ = -1;
};

} // namespace due

#endif
