/* rivals_plain.h - what the priority queues of C++ hold: plain values, deadline and number. */
#ifndef BENCH_RIVALS_PLAIN_H
#define BENCH_RIVALS_PLAIN_H

#include <cstdint>

struct plain_item {
    int64_t at_ns;
    uint64_t number;
};

/* The order that puts the earliest deadline on top. */
struct plain_later {
    bool operator()(const plain_item &a, const plain_item &b) const
    {
        return a.at_ns > b.at_ns;
    }
};

#endif
