"""The table of cells: which workloads, with which parameters, who takes part, in which size.

A group is what is compared: one workload with one set of parameters.  Its contenders are words,
SUBJECT or SUBJECT/NAME=VALUE, in three parts with a bar between: those of every run, those that a
check and a full run have too, and those of a full run alone.  Foreign subjects take seconds to
start and to warm up; that is why the quick run has few of them.
"""

from collections import namedtuple

QUICK, CHECK, FULL = 0, 1, 2  # from which kind of run on a group or a contender takes part

Contender = namedtuple("Contender", "label subject params")
Group = namedtuple("Group", "name workload params contenders level")
Size = namedtuple("Size",
                  "runs jobs through some lateness handoff bursts live looks widths hold "
                  "shared")

# jobs: of most groups; through: of those with consumers; some: where only the breadth is looked
# at; looks: of the cells whose thread waits for each.  widths, hold: threads, and jobs that wait,
# each with the level of its group.  shared: jobs of shared queues, of those one by one, and of
# those that are timed.
SIZES = {
    "tiny": Size(runs=1, jobs=1000, through=1000, some=1000, lateness=20, handoff=20, bursts=200,
                 live=1000, looks=1000, widths=((1, QUICK), (2, QUICK)), hold=((1000, QUICK),),
                 shared=(512, 50, 5)),
    "quick": Size(runs=5, jobs=300_000, through=200_000, some=100_000, lateness=400, handoff=500,
                  bursts=20_000, live=100_000, looks=100_000,
                  widths=((1, QUICK), (2, QUICK), (4, QUICK), (8, CHECK), (64, CHECK)),
                  hold=((1000, QUICK), (10_000, CHECK), (100_000, QUICK), (1_000_000, QUICK)),
                  shared=(20_000, 2000, 100)),
    "full": Size(runs=5, jobs=1_000_000, through=600_000, some=300_000, lateness=1500,
                 handoff=1000, bursts=20_000, live=100_000, looks=200_000,
                 widths=tuple((width, QUICK) for width in (1, 2, 4, 8, 64)),
                 hold=tuple((10 ** power, QUICK) for power in (3, 4, 5, 6, 7)),
                 shared=(100_000, 10_000, 200)),
}

SHAPES = ("exponential", "clustered", "heavy", "sawtooth", "equal", "decades")
BATCH = "libdue/batch=32"

C_QUEUES = "libdue mutex-heap std-pq tbb"
LOOPS = "libevent libev libuv"
BOTH = "java-delayqueue rust-mutex-heap"  # the best of other languages where threads meet
REST = "java-scheduler go-ekit go-timers rust-tokio"
CANCELLERS = "go-timers | java-scheduler rust-tokio"
DELAY_NS = 100  # between the deadlines of two jobs, where they are spread


def contender(word):
    """What "SUBJECT/NAME=VALUE/NAME" stands for."""
    subject, *options = word.split("/")
    params, label = {}, [subject]
    for option in options:
        name, _, value = option.partition("=")
        params[name] = int(value) if value else True
        label += [name.replace("_", "-")] + ([value] if value else [])
    return Contender(" ".join(label), subject, params)


def group(name, workload, words, level=QUICK, **params):
    """A group, its contenders still in the three parts: [(level, contender)]."""
    members = [(part, contender(word)) for part, text in enumerate(words.split("|"))
               for word in text.split()]
    return Group(name, workload, params, members, level)


def enqueue(size):
    """By threads, then by shape."""
    for width, level in size.widths:
        alone, rest = (f"libdue/spec {LOOPS} limit empty {BOTH}", REST) if width == 1 else ("", "")
        foreign = "rust-mutex-heap" if width <= 8 else ""
        yield group(f"enqueue {width}", "enqueue",
                    f"{C_QUEUES} {BATCH} {alone} | {foreign} | {rest}",
                    level, jobs=size.jobs, producers=width)
    for shape in SHAPES:
        yield group(f"enqueue {shape}", "enqueue", "libdue mutex-heap std-pq libev empty | tbb",
                    CHECK, jobs=size.some, producers=1, shape=shape)


def through(size):
    """Due at once, by threads."""
    for width, level in size.widths:
        alone, rest = (f"libdue/spec limit limit/batch=32 {BOTH}", REST) if width == 1 else ("", "")
        yield group(f"through {width}", "through", f"{C_QUEUES} {BATCH} {alone} | {BOTH} | {rest}",
                    level, jobs=size.through, producers=width, consumers=width, spread_ns=0)
    yield group("through pinned", "through", "libdue libdue/spec mutex-heap std-pq", QUICK,
                jobs=size.some, producers=1, consumers=1, spread_ns=0, pin=True)


def delayed(size):
    """With delays, by threads, then by shape."""
    for width, level in size.widths:
        alone, rest = ("libdue/spec", REST) if width == 1 else ("", "")
        some = "java-delayqueue go-ekit" if width <= 8 else "java-delayqueue"
        yield group(f"delayed {width}", "through",
                    f"libdue {BATCH} mutex-heap std-pq {alone} | {some} | {rest}", level,
                    jobs=size.through, producers=width, consumers=width,
                    spread_ns=size.through * DELAY_NS)
    yield group("delayed pinned", "through", "libdue libdue/spec mutex-heap std-pq", QUICK,
                jobs=size.some, producers=1, consumers=1, spread_ns=size.some * DELAY_NS, pin=True)
    for shape in SHAPES:
        yield group(f"delayed {shape}", "through", "libdue mutex-heap std-pq", CHECK,
                    jobs=size.some, producers=1, consumers=1, spread_ns=size.some * DELAY_NS,
                    shape=shape)


def drain(size):
    """With delays up to 20 ms, by threads a side; then taken until nothing is left."""
    for width in (1, 2, 4):
        yield group(f"drain {width}", "drain", "libdue mutex-heap", CHECK, jobs=size.through,
                    producers=width, consumers=width, spread_ns=20_000_000)


def late(size):
    """How late, and what a hand-over costs."""
    for consumers in (1, 4):
        alone, rest = ("libdue/spin_ns=60000 limit limit/spin_ns=60000", REST) \
            if consumers == 1 else ("", "")
        yield group(f"lateness {consumers}", "lateness",
                    f"libdue mutex-heap std-pq {alone} | java-delayqueue | {rest}",
                    QUICK if consumers == 1 else CHECK, jobs=size.lateness, gap_ns=1_000_000,
                    consumers=consumers)
    for where in ("asleep", "same", "awake"):
        yield group(f"handoff {where}", "handoff",
                    "libdue mutex-heap std-pq limit | | java-delayqueue go-ekit",
                    QUICK if where == "asleep" else CHECK, jobs=size.handoff, where=where)


def cancel(size):
    """Cancelling, alone and after an enqueue; and what else is done to jobs that wait."""
    limits = "limit limit/line=64 empty"
    for width, level in ((1, QUICK), (2, CHECK), (4, FULL)):
        alone = f"{LOOPS} {limits}" if width == 1 else ""
        rest = CANCELLERS if width == 1 else ""
        yield group(f"cancel {width}", "cancel", f"libdue {BATCH} mutex-heap {alone} | {rest}",
                    level, jobs=size.jobs, producers=width)
    yield group("cancel pinned", "cancel", f"libdue {BATCH} mutex-heap {limits}", CHECK,
                jobs=size.jobs, producers=1, pin=True)
    for name, live in (("timeout", size.live), ("timeout-10k", size.live // 10)):
        for width, level in ((1, QUICK), (2, QUICK), (4, CHECK)):
            alone = f"libdue/spec {LOOPS} empty" if width == 1 else ""
            rest = CANCELLERS if width == 1 else "go-timers"
            rest = rest if live == size.live else ""
            yield group(f"{name} {width}", "timeout", f"libdue mutex-heap {alone} | {rest}",
                        level if live == size.live else CHECK, jobs=size.jobs, producers=width,
                        live=live)
    yield group("timeout pinned", "timeout", "libdue mutex-heap libev empty", CHECK,
                jobs=size.jobs, producers=1, live=size.live, pin=True)
    yield group("reschedule 1", "reschedule", "libdue mutex-heap empty", CHECK, jobs=size.some,
                live=size.live)
    yield group("nothing 1", "nothing", "libdue mutex-heap std-pq empty", CHECK, jobs=size.some,
                live=size.live)


def hold(size):
    """By the number that wait, on a clock turned by hand and on the machine's, then by shape."""
    for live, level in size.hold:
        # Filling it with millions takes longer than what is measured: fewer rivals there.
        more = "mutex-heap tbb | libev libevent libuv | java-delayqueue rust-mutex-heap"
        if live < 100_000:
            more += " go-ekit"
        if live > 100_000:
            more = "mutex-heap tbb | | libev" if live <= 1_000_000 else ""
        spec = "libdue/spec" if live == 1000 else ""
        yield group(f"hold {live}", "hold", f"libdue {spec} std-pq limit empty {more}", level,
                    jobs=size.jobs, live=live, shape="exponential")
    for live in sorted({1000, size.live}):
        yield group(f"hold-real {live}", "hold", "libdue mutex-heap std-pq limit empty", CHECK,
                    jobs=size.looks, live=live, shape="exponential", real=True)
    for shape in ("uniform",) + SHAPES[1:]:
        yield group(f"hold {shape}", "hold", "libdue mutex-heap std-pq empty | tbb libev", CHECK,
                    jobs=size.some, live=size.live, shape=shape)


def breadth(size):
    """What people do besides: payloads, topics, cancelling a part, bursts, slow consumers."""
    for payload in (0, 32, 256, 4096):
        yield group(f"payload {payload}", "through", "libdue mutex-heap | java-delayqueue", CHECK,
                    jobs=size.some // 10 if payload == 4096 else size.some, producers=1,
                    consumers=1, spread_ns=0, payload=payload)
    yield group("topics 1000", "through", "libdue mutex-heap | java-delayqueue", CHECK,
                jobs=size.some, producers=2, consumers=2, spread_ns=0, topics=1000)
    for percent, level in ((10, CHECK), (30, FULL), (50, QUICK), (70, FULL), (90, CHECK)):
        rest = "| go-timers" if percent == 50 else ""
        yield group(f"mixed {percent}", "mixed", f"libdue mutex-heap libev | libevent libuv {rest}",
                    level, jobs=size.some, percent=percent)
    for consumers in (1, 4):
        yield group(f"burst {consumers}", "burst", f"libdue mutex-heap std-pq | {BOTH}", CHECK,
                    jobs=size.bursts, consumers=consumers)
    for producers in (1, 8):
        yield group(f"slow {producers}", "slow", f"libdue mutex-heap std-pq | {BOTH}", CHECK,
                    jobs=size.some, producers=producers, consumers=1, spread_ns=0,
                    think_ns=1_000_000)
    for payload, level in ((0, CHECK), (32, QUICK), (256, FULL)):
        plain = "std-pq" if payload == 0 else ""
        rest = f"{BOTH} {REST}" if payload == 32 else ""
        yield group(f"memory {payload}", "memory", f"libdue mutex-heap {plain} {LOOPS} | | {rest}",
                    level, jobs=size.jobs, payload=payload)


def shared(size):
    """Queues that are one server's: libdue beside what else keeps its jobs in Redis, and
    beanstalkd.  Who has no call for many puts in from more threads instead, and who takes nothing
    ahead runs more handlers at once (a batch of a consumer)."""
    many, few, timed = size.shared
    yield group("shared put 256", "shared-put",
                "libdue-shared/batch=256 libdue-shared/batch=256/producers=4 beanstalkd/batch=256 "
                "beanstalkd/batch=256/producers=4 | bullmq/batch=256 "
                "bullmq/batch=256/producers=4 asynq/producers=8 asynq/producers=64",
                CHECK, jobs=many)
    yield group("shared put 1", "shared-put", "libdue-shared beanstalkd | bullmq asynq", CHECK,
                jobs=few)
    yield group("shared work 8", "shared-work",
                "libdue-shared/batch=100 beanstalkd beanstalkd/batch=100 | "
                "bullmq bullmq/batch=100 asynq asynq/batch=100",
                CHECK, jobs=many, consumers=8, processes=4)
    yield group("shared work 1", "shared-work", "libdue-shared beanstalkd | bullmq asynq", CHECK,
                jobs=few)
    yield group("shared late", "shared-late",
                "libdue-shared beanstalkd | bullmq asynq asynq/poll_ns=10000000", CHECK, jobs=timed)


def every_group(size_name):
    """All groups there are in this size."""
    size = SIZES[size_name]
    return [one for part in (enqueue, through, delayed, drain, late, cancel, hold, breadth,
                             shared)
            for one in part(size)]


def levels(size_name, needed, named, subjects):
    """From which level on groups, and contenders, take part."""
    if size_name == "full":
        return FULL, FULL
    if size_name == "tiny":
        return FULL, FULL if subjects else QUICK
    if needed is None and not named and not subjects:
        return QUICK, QUICK
    return CHECK, FULL if subjects else CHECK


def chosen(size_name, needed=None, workloads=(), subjects=(), names=()):
    """The groups of a run.  @needed: names of the groups that a check is about.  What is asked for
    by its name takes part also where a quick run would leave it out."""
    group_level, level = levels(size_name, needed, workloads or names, subjects)
    found = []
    for one in every_group(size_name):
        if one.level > group_level or (needed is not None and one.name not in needed) \
                or (workloads and one.workload not in workloads) \
                or (names and one.name not in names):
            continue
        members = {member.label: member for part, member in one.contenders
                   if part <= level and (not subjects or member.subject in subjects)}
        if members:
            found.append(one._replace(contenders=list(members.values())))
    return found
