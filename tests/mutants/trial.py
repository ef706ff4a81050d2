"""trial.py - plant one fault, and look who sees it.

A worker has a copy of the sources.  It compiles what the fault changes, links the library that it
is in, and runs the tests that reach the line against it: first those that are named like the room
or reach little else, one at a time; then the models, then the others of each program together, and
last those that take long.  The first that fails ends it, if the library without the fault passes
the same test at once after it.  What nobody sees so is compiled once more with AddressSanitizer and
UBSan, as every test is run in tools/check, for the nearest; a call that is left out may also lose
memory.  Then come ThreadSanitizer, with the nearest programs of many threads, and the explorer, for
what threads share.
"""

import contextlib
import os
import re
import shutil
import tempfile
import time

import build as building
import run as running

KILLED, SAME, SURVIVED, UNREACHED, BROKEN = "killed", "same", "survived", "unreached", "broken"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SANITIZED = 4  # so many tests are tried with sanitizers
THREADS = ("-fsanitize=thread",)
RACE = re.compile(
    "WARNING: ThreadSanitizer: (?:data race|thread leak|unlock of an unlocked mutex)")
HANGS = ": hangs; it was "  # by the watchdog of a program, whose threads leak in any case
THREAD_VARIANT = "threads"  # the libraries as ThreadSanitizer wants them
THREADED = 3  # so many programs of many threads are run with ThreadSanitizer
LEAKING = 4  # so many programs are looked at for memory that nobody has any more
LEAK = "ERROR: LeakSanitizer: "
LONG_S = 10  # so long a model may take, and a program that is looked at for leaks
SLOW_S = 3  # who takes longer goes last,
SLOW_CPU_S = 0.15  # or longer than that of a processor: where much else runs, it says more
NEAREST = 8  # so many first: they are named like the room, or reach little else
NAMED = 20  # so many more that are named like it
ALONE = 4  # so many tests are tried one at a time
BATCH = 40  # so many of a program together
PATIENCE = 5  # so many times as long is waited for what did not end
BEFORE = 8  # so many lines a statement may have before one that has no code of its own
BEHIND = 3  # so many may be between a static array of a function and its first statement


def room_name(file):
    """src/job/claim.c and src/job/claim.h: src/job/claim."""
    return os.path.splitext(file)[0]


def is_named_like(test, room):
    """test_heap.c and heap_model.c are of heap.c, test_redis_link.c and test_sqlite_load.c of
    link.c and load.c; and so are those whose suite is.  test_keys_between.c is of key_table.c."""
    name = re.sub(r"^(test|thread|store|liveness)_|_model$", "", test.program.name)
    suite = test.name.split("/")[0]
    room = os.path.basename(room)
    return (bool({room, "redis_" + room, "sqlite_" + room} & {name, suite}) or
            name == room.rsplit("_", 1)[0] or
            name.split("_")[0].removesuffix("s") == room.split("_")[0].removesuffix("s"))


def is_slow(test):
    return test.wall_s > SLOW_S or test.cpu_s > SLOW_CPU_S


def spread(tests):
    """The models, which compare with all that is promised; then those that are fast, of each
    program one, then of each another; then the slow ones."""
    seen, ranks = {}, []
    for i, test in enumerate(tests):
        rank = seen[test.program.name] = seen.get(test.program.name, -1) + 1
        is_model = test.program.label == "model" and test.wall_s < LONG_S
        ranks.append((not is_model, is_slow(test), rank, i))
    return [tests[rank[-1]] for rank in sorted(ranks)]


class Verdict:
    def __init__(self, how, by="", output="", cpu_s=0.0, tried=0):
        self.how, self.by, self.output = how, by, output
        self.cpu_s, self.tried = cpu_s, tried
        self.spent_s = {}  # on what, how long


class Worker:
    """texts: the sources as they were when the mutants were made of them."""

    def __init__(self, build, tests, options, texts, explorer=None):
        self.build, self.tests, self.options = build, tests, options
        self.texts, self.explorer = texts, explorer
        self.plain = {}  # file: its object without a fault
        self.spent_s = {}  # this mutant's time by what it was spent on
        self.runtime = building.output(["gcc", "-print-file-name=libasan.so"]).strip()
        self.thread_runtime = building.output(["gcc", "-print-file-name=libtsan.so"]).strip()
        running.adopt()
        self.dir = tempfile.mkdtemp(prefix="due_mutants_")
        self.tree = os.path.join(self.dir, "tree")
        self.libraries = os.path.join(self.dir, "lib")
        os.makedirs(self.libraries)
        for file in texts:
            self.write(file, texts[file])

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    @contextlib.contextmanager
    def spending(self, what):
        began = time.monotonic()
        yield
        self.spent_s[what] = round(self.spent_s.get(what, 0) + time.monotonic() - began, 2)

    def write(self, file, text):
        path = os.path.join(self.tree, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(text)

    # ---- The library with the fault ----

    def plant(self, mutant, flags=(), among=None):
        """Compile and link it, among other objects than the plain ones if there are some.  SAME: it
        is the same code; BROKEN: it is no code, or not built."""
        if not all(file in self.build.compiled for file in self.build.affected(mutant.file)):
            return BROKEN
        for file in self.build.affected(mutant.file):
            self.compile_plain(file)
        self.write(mutant.file, mutant.plant(self.texts[mutant.file]))
        try:
            return self.make(mutant, flags, among)
        finally:
            self.write(mutant.file, self.texts[mutant.file])

    def compile_plain(self, file):
        """Without a fault and from the same place, to compare with."""
        if file not in self.plain:
            self.plain[file] = os.path.join(self.dir, file.replace("/", "_") + ".plain.o")
            if not self.build.compile(file, self.plain[file], self.tree):
                raise RuntimeError(f"{file} does not compile")

    def make(self, mutant, flags, among):
        changed = {}
        for file in self.build.affected(mutant.file):
            to = os.path.join(self.dir, file.replace("/", "_") + ".o")
            if not self.build.compile(file, to, self.tree, flags):
                return BROKEN
            if flags or not same_bytes(to, self.plain[file]):
                changed[file] = to
        if not changed:
            return SAME
        for room, library in self.build.libraries.items():
            there = os.path.join(self.libraries, self.build.name_of(room))
            if os.path.lexists(there):
                os.unlink(there)
            if among is not None or any(self.build.holds(room, file) for file in changed):
                self.build.link(room, there, {**(among or {}), **changed}, flags)
            else:
                os.symlink(os.path.join(self.build.dir, library["path"]), there)
        return None

    # ---- Who sees it ----

    def reaching(self, mutant, lines_of_constants):
        """The tests that reach it, nearest first."""
        wanted = {mutant.file: range_bits(mutant.line, mutant.last)}
        if mutant.constant is not None:
            wanted = lines_of_constants(mutant)
        found = [t for t in self.tests
                 if any(t.lines.get(file, 0) & bits for file, bits in wanted.items())]
        if not found:  # no code of its own, as a label; a constant: within an initializer
            before = 1 if mutant.constant is None else BEFORE
            behind = BEHIND if mutant.old_line.startswith("static ") else 1
            found = [t for t in self.tests
                     if any(t.lines.get(file, 0) & around(bits, before, behind)
                            for file, bits in wanted.items())]
        room = room_name(mutant.file)
        found.sort(key=lambda t: (is_slow(t), not is_named_like(t, room),
                                  t.program.label == "thread", round(t.wall_s, 1), t.all_lines))
        named = [t for t in found[NEAREST:] if is_named_like(t, room) and t.wall_s < LONG_S]
        near = found[:NEAREST] + named[:NAMED]
        return near + spread([t for t in found if t not in near])

    def groups(self, tests):
        """What is run at once: some alone, then the others of the same program together."""
        for test in tests[:ALONE]:
            yield [test]
        rest = {}
        for test in tests[ALONE:]:
            rest.setdefault(test.program.name, []).append(test)
        for group in rest.values():
            for i in range(0, len(group), BATCH):
                yield group[i:i + BATCH]

    def run_group(self, group, libraries, patience=1):
        limit_s = patience * (2 + 3 * sum(t.wall_s for t in group))
        return running.run(command_of(group), libraries, limit_s)

    def sees(self, group):
        """Does the group fail with the fault, and pass without it?"""
        with self.spending("tests"):
            with_it = self.run_group(group, self.libraries)
        if with_it.how == running.PASSED:
            return None, with_it
        with self.spending("without it"):
            without = self.run_group(group, self.plain_libraries())
        if without.how != running.PASSED:
            return None, with_it
        if with_it.how == running.HUNG:  # or the machine was busy just then
            with self.spending("patience"):
                with_it = self.run_group(group, self.libraries, PATIENCE)
            if with_it.how == running.PASSED:
                return None, with_it
        return killer(group, with_it), with_it

    def sanitizer_sees(self, mutant, tests):
        """Which test breaks a rule of the language or of memory, in the file that was changed."""
        if self.plant(mutant, SANITIZE) is not None:
            return None, ""
        for test in tests[:SANITIZED]:
            outcome = self.run_sanitized(test, self.libraries, leaks=False)
            if outcome.how == running.FAILED and re.search(
                    r"ERROR: AddressSanitizer: |runtime error: ", outcome.output):
                return full_name(test) + ", sanitized", outcome.output
        return self.leaks(mutant, tests)

    def leaks(self, mutant, tests):
        """Which program loses memory that it does not lose without the fault.  Not those of
        Criterion: what is lost in a process of its own is not looked for."""
        programs = [t for t in tests if not t.program.is_criterion and t.wall_s < LONG_S]
        for test in programs[:LEAKING] if mutant.rule == "call" else []:
            outcome = self.run_sanitized(test, self.libraries, leaks=True)
            if (LEAK in outcome.output and
                    LEAK not in self.run_sanitized(test, self.plain_libraries(), True).output):
                return full_name(test) + ", leaks", outcome.output
        return None, ""

    def run_sanitized(self, test, libraries, leaks):
        extra = {"LD_PRELOAD": self.runtime,
                 "ASAN_OPTIONS": f"detect_leaks={int(leaks)}:hard_rss_limit_mb=4096"}
        return running.run(command_of([test]), libraries, 10 + 10 * test.wall_s, extra)

    def races(self, mutant, tests):
        """Which program of many threads shows ThreadSanitizer a race that is not there without the
        fault."""
        programs = [t for t in tests if t.program.label == "thread"][:THREADED]
        if not programs:
            return None, ""
        if self.plant(mutant, THREADS, self.build.variant_objects(THREAD_VARIANT)) is not None:
            return None, ""
        for test in programs:
            outcome = self.run_threads(test, self.libraries)
            plain = os.path.join(self.build.dir, THREAD_VARIANT)
            if (RACE.search(outcome.output) and HANGS not in outcome.output and
                    not RACE.search(self.run_threads(test, plain).output)):
                return full_name(test) + ", ThreadSanitizer", outcome.output
        return None, ""

    def run_threads(self, test, libraries):
        """At addresses that do not change: not every ThreadSanitizer copes with others."""
        extra = {"LD_PRELOAD": self.thread_runtime, "TSAN_OPTIONS": "halt_on_error=1"}
        return running.run(["setarch", "-R", *command_of([test])], libraries,
                           10 + 10 * test.wall_s, extra)

    def plain_libraries(self):
        return os.pathsep.join(os.path.join(self.build.dir, top) for top in building.FOLDERS)

    def try_mutant(self, mutant, lines_of_constants, first=None):
        """What becomes of it.  first: the test that saw it the last time."""
        self.spent_s = {}
        verdict = self.look_at(mutant, lines_of_constants, first)
        verdict.spent_s = self.spent_s
        return verdict

    def look_at(self, mutant, lines_of_constants, first):
        with self.spending("build"):
            how = self.plant(mutant)
        if how is not None:
            return Verdict(how)
        tests = self.reaching(mutant, lines_of_constants)
        if first is not None:
            tests.sort(key=lambda t: full_name(t) != first)
        if not tests:
            return Verdict(UNREACHED)
        spent, tried = 0.0, 0
        for group in self.groups(tests[:self.options.near]):
            by, outcome = self.sees(group)
            spent += outcome.cpu_s
            tried += len(group)
            if by is not None:
                return Verdict(KILLED, by, outcome.output, spent, tried)
            if self.options.budget and spent > self.options.budget:
                break
        with self.spending("sanitizers"):
            by, output = self.sanitizer_sees(mutant, tests)
            if by is None:
                by, output = self.races(mutant, tests)
        if by is not None:
            return Verdict(KILLED, by, output, spent, tried)
        if self.explorer is not None and self.explorer.knows(mutant):
            with self.spending("explorer"):
                by, output = self.explorer.try_mutant(mutant, self.texts)
            if by is not None:
                return Verdict(KILLED, by, output, spent, tried)
        by = "" if tried == len(tests) else f"{tried} of {len(tests)} tests tried"
        return Verdict(SURVIVED, by, "", spent, tried)


def range_bits(first, last):
    return (1 << (last + 1)) - (1 << first)


def around(bits, before, behind):
    """The lines behind too, and those before, in which the statement may have begun."""
    wide = 0
    for n in range(before + 1):
        wide |= bits >> n
    for n in range(behind + 1):
        wide |= bits << n
    return wide


def same_bytes(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read()


def command_of(group):
    if len(group) == 1 or not group[0].program.is_criterion:
        return group[0].command + (["--fail-fast"] if group[0].program.is_criterion else [])
    names = "|".join(t.name for t in group)
    return [*group[0].program.command, "--fail-fast", "--filter", f"@({names})"]


def full_name(test, name=None):
    program = test.program.name
    name = name or test.name
    return program if name == program else f"{program}: {name}"


def killer(group, outcome):
    """Which test of the group it was, and how."""
    name = group[0].name if len(group) == 1 else f"one of {len(group)} tests"
    match = re.search(r"\[(?:FAIL|----)\][^\n]*?(\w+::\w+)", outcome.output)
    if len(group) > 1 and match is not None:
        name = match[1].replace("::", "/")
    return full_name(group[0], name) + (", hangs" if outcome.how == running.HUNG else "")

