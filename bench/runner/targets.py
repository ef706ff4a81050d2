"""What libdue must reach, as ratios of one run.

An absolute figure was measured beside a limit of the same machine: 25 M/s where a raw heap does 77.
It becomes a ratio to that limit in this run, 25/77.  A ratio is taken round by round, and its
median counts.
"""

from collections import namedtuple

from runner.plan import CHECK, every_group

# ours, theirs: (group, label or choice of a label, series).  sign: ">=" or "<=".
Target = namedtuple("Target", "text ours theirs sign bound")

GENERALITY = 1.3

ANY, IDS, VALUES = "best of all", "best that gives ids", "best heap of plain values"
PLAIN_VALUES = ("std-pq", "tbb", "rust-mutex-heap")

CPU = "cpu_us_job"


def enqueue():
    """One by one, and in batches of 32."""
    yield Target("enqueue, 1 producer: 25 M/s where a raw heap does 77",
                 ("enqueue 1", "libdue", "value"), ("enqueue 1", "limit", "value"), ">=", 25 / 77)
    for width in (2, 4, 8):
        name = f"enqueue {width}"
        yield Target(f"enqueue, {width} producers: 1.1 times std::priority_queue",
                     (name, "libdue", "value"), (name, "std-pq", "value"), ">=", 1.1)
    for width in (1, 2, 4, 8):
        name = f"enqueue {width}"
        yield Target(f"enqueue by 32, {width} producers: ahead of all that give ids",
                     (name, "libdue batch 32", "value"), (name, IDS, "value"), ">=", 1.0)
        yield Target(f"enqueue by 32, {width} producers: 0.7 of heaps of plain values",
                     (name, "libdue batch 32", "value"), (name, VALUES, "value"), ">=", 0.7)


def through():
    """Due at once, and with delays."""
    for width, bound in ((1, 1.5), (2, 1.3), (4, 1.3), (8, 1.0)):
        name = f"through {width}"
        yield Target(f"through at once, {width}/{width}: {bound} times the best",
                     (name, "libdue", "value"), (name, ANY, "value"), ">=", bound)
    yield Target("through at once, 1/1: ahead of std::priority_queue on one core",
                 ("through 1", "libdue", "value"), ("through 1", "std-pq pin", "value"), ">=", 1.0)
    for width in (1, 2, 4, 8):
        name = f"through {width}"
        yield Target(f"through by 32, {width}/{width}: 12 M/s where a ring by 32 does 143",
                     (name, "libdue batch 32", "value"), ("through 1", "limit batch 32", "value"),
                     ">=", 12 / 143)
        yield Target(f"through by 32, {width}/{width}: 3 times the best unbatched",
                     (name, "libdue batch 32", "value"), (name, ANY, "value"), ">=", 3.0)
    for width in (1, 2, 4, 8):
        name = f"delayed {width}"
        for other, factor in ((ANY, 1.5), ("java-delayqueue", 2.0), ("go-ekit", 8.0)):
            yield Target(f"through with delays, {width}/{width}: {factor} times {other}",
                         (name, "libdue", "value"), (name, other, "value"), ">=", factor)
        yield Target(f"through with delays, {width}/{width}: 0.8 of the least CPU of a rival",
                     (name, "libdue", CPU), (name, ANY, CPU), "<=", 0.8)
    yield Target("through with delays, 1/1: ahead of std::priority_queue on one core",
                 ("delayed 1", "libdue", "value"), ("delayed 1", "std-pq pin", "value"), ">=", 1.0)


def drain():
    """Put in with delays, then drained, beside a mutex, a heap and malloc."""
    for width in (1, 2, 4):
        name = f"drain {width}"
        yield Target(f"put in by {width} and drained: 1.2 times a mutex, a heap and malloc",
                     (name, "libdue", "value"), (name, "mutex-heap", "value"), ">=", 1.2)


def late():
    """Lateness, and the hand-over to one that waits."""
    limit = ("lateness 1", "limit")
    for series, name in (("value", "p50"), ("more.p99_us", "p99")):
        yield Target(f"lateness {name}: 1.1 times an absolute sleep",
                     ("lateness 1", "libdue", series), limit + (series,), "<=", 1.1)
    spinning = ("lateness 1", "limit spin-ns 60000")
    for series, name, ours, theirs in (("value", "p50", 0.1, 0.04),
                                       ("more.p99_us", "p99", 15, 3.5)):
        yield Target(f"lateness {name} with spin_ns: {ours} us where a bare spin is {theirs} late",
                     ("lateness 1", "libdue spin-ns 60000", series), spinning + (series,), "<=",
                     ours / theirs)
    for consumers in (1, 4):
        name = f"lateness {consumers}"
        yield Target(f"lateness, CPU a job, {consumers} consumers: 23 us where a sleep takes 21",
                     (name, "libdue", CPU), limit + (CPU,), "<=", 23 / 21)
    for where in ("asleep", "same", "awake"):
        name = f"handoff {where}"
        yield Target(f"hand-over, {where}: 1.1 times a futex",
                     (name, "libdue", "value"), (name, "limit", "value"), "<=", 1.1)
    call, alone = "more.call_p50_us", "more.call_alone_p50_us"
    for where in ("asleep", "awake"):
        name = f"handoff {where}"
        yield Target(f"cost of that enqueue, {where}: 1.05 times the futex call",
                     (name, "libdue", call), (name, "limit", call), "<=", 1.05)
    yield Target("cost of an enqueue while nobody waits: 0.1 us where a futex call takes 10.8",
                 ("handoff asleep", "libdue", alone), ("handoff asleep", "limit", call), "<=",
                 0.1 / 10.8)


def names():
    """Cancel, the timeout pattern, hold and memory."""
    for width, rate in ((1, 40), (2, 25)):
        yield Target(f"cancel, {width} threads: {rate} M/s where a compare-and-swap takes 6 ns",
                     (f"cancel {width}", "libdue", "value"), ("cancel 1", "limit", "value"), ">=",
                     rate * 0.006)
    for width, rate in ((1, 12), (2, 8), (4, 8)):
        yield Target(f"timeout, {width} threads: {rate} M pairs/s where a raw heap inserts 77",
                     (f"timeout {width}", "libdue", "value"), ("enqueue 1", "limit", "value"),
                     ">=", rate / 77)
    for power, ours, raw in ((3, 75, 35), (4, 80, 57), (5, 85, 84), (6, 95, 228), (7, 130, 730)):
        name = f"hold {10 ** power}"
        yield Target(f"hold, 1e{power} waiting: {ours} ns where a raw heap takes {raw}",
                     (name, "libdue", "value"), (name, "limit", "value"), "<=", ours / raw)
    yield Target("memory: 88 bytes a pending job with 32 bytes of payload",
                 ("memory 32", "libdue", "value"), None, "<=", 88)


def is_breadth(group):
    """Does the rule of generality hold for this group?"""
    kind, what = group.name.split()
    return kind in ("payload", "topics", "mixed", "burst", "slow") \
        or (kind in ("enqueue", "delayed", "hold") and not what.isdigit()) \
        or (kind in ("enqueue", "through", "delayed") and what.isdigit())


def generality(size):
    """Nowhere does libdue cost much more than the best that can do the same at all."""
    for group in every_group(size):
        if is_breadth(group) and (size == "full" or group.level <= CHECK):
            yield Target(f"{group.name}: at most {GENERALITY} times the cost of the best",
                         (group.name, "libdue", "cost"), (group.name, ANY, "cost"), "<=",
                         GENERALITY)


def every_target(size):
    """All of them, the general rule last."""
    return [one for part in (enqueue(), through(), drain(), late(), names(), generality(size))
            for one in part]


def groups_needed(size):
    """The names of the groups that the targets are about."""
    needed = set()
    for one in every_target(size):
        needed.add(one.ours[0])
        if one.theirs:
            needed.add(one.theirs[0])
    return needed
