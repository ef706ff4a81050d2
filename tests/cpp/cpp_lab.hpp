// cpp_lab.hpp - what the tests of due.hpp share.
#ifndef CPP_LAB_HPP
#define CPP_LAB_HPP

#include <due/due.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

using namespace std::chrono_literals;

inline const char *running = "";
inline std::atomic<long> allocated{ 0 };

#define EXPECT(what)                                                              \
    do {                                                                          \
        if (!(what)) {                                                            \
            std::printf("%s: line %d: %s is not so\n", running, __LINE__, #what); \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

// The code that is thrown; 0: none.
template <class F> int thrown(F f)
{
    try {
        f();
    } catch (const due::error &e) {
        return e.code();
    }
    return 0;
}

// A queue on a clock of its own, whose memory is counted.
struct lab {
    static void *alloc(void *, std::size_t size)
    {
        allocated++;
        return std::malloc(size);
    }
    static void give_back(void *, void *memory, std::size_t)
    {
        allocated--;
        std::free(memory);
    }
    static due::options with(due::options o, const due::manual_clock &clock)
    {
        static const due_allocator allocator = { alloc, give_back, nullptr };

        o.manual = &clock;
        o.allocator = &allocator;
        return o;
    }

    explicit lab(due::options o = {}) : clock(1s), q(with(std::move(o), clock)) {}

    due::manual_clock clock;
    due::queue q;
};

// The tests of cpp_owners.cpp, as a list that ends with an empty name.
struct named_test {
    const char *name;
    void (*run)();
};
extern const named_test owner_tests[];

#endif
