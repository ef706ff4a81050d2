"""What libdue must reach, and what is aimed at, as ratios of one run.

An absolute figure was measured beside a limit of the same machine: 12 M/s where a ring by 32 does
143.  It becomes a ratio to that limit in this run, 12/143.  A ratio is taken round by round, and
its median counts.
"""

from collections import namedtuple

from runner.plan import CHECK, every_group

# ours, theirs: (group, label or choice of a label, series).  sign: ">=" or "<=".  goal: the bound
# that is aimed at, or None.
Target = namedtuple("Target", "text ours theirs sign bound goal", defaults=(None,))

ANY, IDS, VALUES = "best of all", "best that gives ids", "best heap of plain values"
REDIS, LOGGED = "best other on Redis", "beanstalkd at its best"
MEMBERS = {VALUES: ("std-pq", "tbb", "rust-mutex-heap"), REDIS: ("asynq", "bullmq"),
           LOGGED: ("beanstalkd",)}  # of the kinds that have names
KINDS = (ANY, IDS, VALUES, REDIS, LOGGED)

CPU = "cpu_us_job"
COUNTED = "instructions"  # the group of what bench/instructions counts

SHAPES = ("exponential", "clustered", "heavy", "sawtooth", "equal", "decades")


def value(group, label="libdue"):
    """A row's figure."""
    return (group, label, "value")


def cost(group, label="libdue"):
    """The same, less being better."""
    return (group, label, "cost")


def rate(text, group, choice, bounds, label="libdue"):
    """At least so many times as much as @choice of the same group."""
    return Target(text, value(group, label), value(group, choice), ">=", *bounds)


def at_most(text, group, choice, bounds, label="libdue"):
    """At most so many times the cost of @choice of the same group."""
    return Target(text, cost(group, label), cost(group, choice), "<=", *bounds)


def enqueue():
    """One by one, and in batches of 32."""
    for what in ("1",) + SHAPES:
        name = f"enqueue {what}"
        said = "uniform" if what == "1" else what
        yield rate(f"enqueue, 1 producer, {said}: beside the best that gives ids", name, IDS,
                   (0.9, 1.1))
        yield rate(f"enqueue, 1 producer, {said}: beside the best", name, ANY, (0.8, 1.0))
    for width in (2, 4, 8, 64):
        yield rate(f"enqueue, {width} producers: beside the best", f"enqueue {width}", ANY,
                   (1.1, 1.5))
    yield rate("enqueue by 32, 1 producer: beside heaps of plain values", "enqueue 1", VALUES,
               (0.75, 1.0), "libdue batch 32")


def through():
    """Due at once, and with delays."""
    for width in (1, 2, 4, 8, 64):
        yield rate(f"through at once, {width}/{width}: beside the best", f"through {width}", ANY,
                   (1.0, 1.3))
    for kind, said in (("through", "at once"), ("delayed", "with delays")):
        yield rate(f"through {said}, one core: beside std::priority_queue", f"{kind} pinned",
                   "std-pq", (1.0, 1.2))
    for width in (1, 2, 4, 8):
        yield Target(f"through by 32, {width}/{width}: 12 M/s where a ring by 32 does 143",
                     value(f"through {width}", "libdue batch 32"),
                     value("through 1", "limit batch 32"), ">=", 12 / 143, 18 / 143)
        yield rate(f"through by 32, {width}/{width}: beside the best unbatched",
                   f"through {width}", ANY, (1.6, 3.0), "libdue batch 32")
    for width in (1, 2, 4, 8):
        yield rate(f"through with delays, {width}/{width}: beside the best", f"delayed {width}",
                   ANY, (1.2, 1.5))


def hold():
    """By the number that wait, then by shape."""
    for power, bounds in ((3, (1.2, 1.0)), (4, (1.0, 0.85)), (5, (0.85, 0.7)), (6, (0.5, 0.4)),
                          (7, (0.4, 0.3))):
        yield at_most(f"hold, 1e{power} waiting: beside the best", f"hold {10 ** power}", ANY,
                      bounds)
    for shape in ("uniform",) + SHAPES[1:]:
        yield at_most(f"hold, 1e5 waiting, {shape}: beside the best", f"hold {shape}", ANY,
                      (1.5, 1.2) if shape == "equal" else (1.0, 0.85))


def names():
    """The timeout pattern, cancel, reschedule."""
    for name, said in (("timeout", "100,000"), ("timeout-10k", "10,000")):
        for width in (1, 2, 4):
            yield rate(f"timeout pairs, {said} live, on {width}: beside the best",
                       f"{name} {width}", ANY, (0.8, 1.0) if width == 1 else (2.0, 3.0))
    for label, said, ours, goal in (("libdue", "one by one", 25, 33),
                                    ("libdue batch 32", "by 32", 38, 45)):
        yield Target(f"cancel at random, {said}: {ours} M/s where a swap in lines of 64 does 50",
                     value("cancel 1", label), value("cancel 1", "limit line 64"), ">=", ours / 50,
                     goal / 50)
    yield at_most("reschedule, 100,000 live: beside the same heap", "reschedule 1", "mutex-heap",
                  (1.3, 1.0))


def late():
    """Lateness, bursts, slow consumers, looks in vain."""
    yield Target("lateness p50 with spin_ns: beside a bare spin",
                 value("lateness 1", "libdue spin-ns 60000"),
                 value("lateness 1", "limit spin-ns 60000"), "<=", 3.0, 1.5)
    for consumers in (1, 4):
        yield at_most(f"burst of 100, {consumers} to take it: beside the best",
                      f"burst {consumers}", ANY, (1.2, 1.0))
    for producers in (1, 8):
        yield at_most(f"slow consumer, {producers} who put in: beside the best",
                      f"slow {producers}", ANY, (1.2, 1.0))
    yield Target("a look with nothing due, ns", value("nothing 1"), None, "<=", 25, 12)


def counted():
    """Instructions of one operation by the short verbs, as bench/instructions counts them."""
    for name, said, bounds in (("far_at", "enqueue, far", (220, 120)),
                               ("round_short", "round due at once", (800, 500)),
                               ("hold_short", "hold", (900, 600)),
                               ("timeout_short", "timeout pair", (350, 220))):
        yield Target(f"instructions: {said}", value(COUNTED, name), None, "<=", *bounds)


def ends():
    """Put in with delays, then drained; memory."""
    for width in (1, 2, 4):
        yield rate(f"put in by {width} and drained: beside a mutex, a heap and malloc",
                   f"drain {width}", "mutex-heap", (1.2, 1.5))
    yield Target("memory: bytes of a pending job with 32 bytes of payload", value("memory 32"),
                 None, "<=", 82, 76)


def shared():
    """Queues of many processes, beside others that are one server's."""
    for group, label, said, on_redis, logged in (
            ("shared put 256", "libdue-shared batch 256 producers 4",
             "put by 256, four callers", 4.0, 1.5),
            ("shared work 8", "libdue-shared batch 100",
             "claim and ack, 100 ahead, 8 consumers in 4 processes", 8.0, 4.0)):
        yield rate(f"shared queue, {said}: beside the best other on Redis", group, REDIS,
                   (on_redis,), label)
        yield rate(f"shared queue, {said}: beside beanstalkd with its log", group, LOGGED,
                   (logged,), label)
        yield Target(f"shared queue, {said}: jobs/s", value(group, label), None, ">=", 180_000)
    yield Target("shared queue: processor time of the server for a job's whole life, us",
                 ("shared work 8", "libdue-shared batch 100", "more.life_server_us"), None, "<=",
                 10)
    for series, name, bound in (("value", "p50", 500), ("more.p99_us", "p99", 3000)):
        yield Target(f"shared queue, lateness {name}, us", ("shared late", "libdue-shared", series),
                     None, "<=", bound)


def owed():
    """What this version must reach."""
    return [one for part in (enqueue(), through(), hold(), names(), late(), counted(), ends(),
                              shared()) for one in part]


def sleeping():
    """Kept from before: how late without spinning, and the hand-over to one that waits."""
    limit = ("lateness 1", "limit")
    for series, name in (("value", "p50"), ("more.p99_us", "p99")):
        yield Target(f"lateness {name}: 1.1 times an absolute sleep",
                     ("lateness 1", "libdue", series), limit + (series,), "<=", 1.1)
    for consumers in (1, 4):
        name = f"lateness {consumers}"
        yield Target(f"lateness, CPU a job, {consumers} waiting: 23 us where a sleep takes 21",
                     (name, "libdue", CPU), limit + (CPU,), "<=", 23 / 21)
    for where in ("asleep", "same", "awake"):
        name = f"handoff {where}"
        yield Target(f"hand-over, {where}: 1.1 times a futex", value(name), value(name, "limit"),
                     "<=", 1.1)


def generality(size):
    """Kept from before: nowhere does libdue cost much more than the best that can do the same."""
    for group in every_group(size):
        if group.name.split()[0] in ("payload", "topics", "mixed", "hold-real", "delayed") \
                and not group.name.startswith("delayed p") \
                and (size == "full" or group.level <= CHECK):
            yield at_most(f"{group.name}: at most 1.3 times the cost of the best", group.name, ANY,
                          (1.3,))


def kept(size):
    """Bounds of earlier versions, on what is not owed anew."""
    return list(sleeping()) + list(generality(size))


def every_target(size):
    """All of them, what is owed first."""
    return owed() + kept(size)


def groups_needed(size):
    """The names of the groups that the targets are about, and those that show what they mean."""
    needed = {"cancel pinned", "timeout pinned", "cancel 2", "shared put 1", "shared work 1",
              "shared late"}
    for one in every_target(size):
        needed.add(one.ours[0])
        if one.theirs:
            needed.add(one.theirs[0])
    return needed - {COUNTED}
