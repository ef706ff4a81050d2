"""trial.py - plant one fault, and look who sees it.

A worker has a copy of the sources.  It compiles what the fault changes, links the library that it
is in, and runs the tests that reach the line against it: first those that are named like the room,
then those that reach little else, one at a time; then the rest of each program together.  The first
that fails ends it, if the library without the fault passes the same test at once after it.  What
nobody sees so is compiled once more with AddressSanitizer and UBSan, as every test is run in
tools/check, for the nearest; last comes the explorer, for what threads share.
"""

import os
import re
import shutil
import tempfile

import build as building
import run as running

KILLED, SAME, SURVIVED, UNREACHED, BROKEN = "killed", "same", "survived", "unreached", "broken"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SANITIZED = 8  # so many tests are tried with sanitizers
ALONE = 4  # so many tests are tried one at a time
BATCH = 40  # so many of a program together


def room_name(file):
    return os.path.splitext(os.path.basename(file))[0]


def is_named_like(test, room):
    """test_heap.c and heap_model.c are of heap.c, test_redis_link.c of redis_link.c; and so are
    those whose suite is."""
    name = re.sub(r"^(test|thread|store|liveness)_|_model$", "", test.program.name)
    suite = test.name.split("/")[0]
    return room in (name, suite) or name == room.rsplit("_", 1)[0]


class Verdict:
    def __init__(self, how, by="", output="", cpu_s=0.0, tried=0):
        self.how, self.by, self.output = how, by, output
        self.cpu_s, self.tried = cpu_s, tried


class Worker:
    """texts: the sources as they were when the mutants were made of them."""

    def __init__(self, build, tests, options, texts, explorer=None):
        self.build, self.tests, self.options = build, tests, options
        self.texts, self.explorer = texts, explorer
        self.plain = {}  # file: its object without a fault
        self.runtime = building.output(["gcc", "-print-file-name=libasan.so"]).strip()
        running.adopt()
        self.dir = tempfile.mkdtemp(prefix="due_mutants_")
        self.tree = os.path.join(self.dir, "tree")
        self.libraries = os.path.join(self.dir, "lib")
        os.makedirs(self.libraries)
        for file in texts:
            self.write(file, texts[file])

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def write(self, file, text):
        path = os.path.join(self.tree, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(text)

    # ---- The library with the fault ----

    def plant(self, mutant, flags=()):
        """Compile and link it.  SAME: it is the same code; BROKEN: it is no code."""
        for file in self.build.affected(mutant.file):
            self.compile_plain(file)
        self.write(mutant.file, mutant.plant(self.texts[mutant.file]))
        try:
            return self.make(mutant, flags)
        finally:
            self.write(mutant.file, self.texts[mutant.file])

    def compile_plain(self, file):
        """Without a fault and from the same place, to compare with."""
        if file not in self.plain:
            self.plain[file] = os.path.join(self.dir, file.replace("/", "_") + ".plain.o")
            if not self.build.compile(file, self.plain[file], self.tree):
                raise RuntimeError(f"{file} does not compile")

    def make(self, mutant, flags=()):
        changed = {}
        for file in self.build.affected(mutant.file):
            to = os.path.join(self.dir, file.replace("/", "_") + ".o")
            if not self.build.compile(file, to, self.tree, flags):
                return BROKEN
            if flags or not same_bytes(to, self.plain[file]):
                changed[file] = to
        if not changed:
            return SAME
        for room in building.ROOMS:
            name = self.build.libraries[room]["name"]
            there = os.path.join(self.libraries, name)
            if os.path.lexists(there):
                os.unlink(there)
            if any(self.build.room_of(file) == room for file in changed):
                self.build.link(room, there, changed, flags)
            else:
                os.symlink(os.path.join(self.build.dir, room, name), there)
        return None

    # ---- Who sees it ----

    def reaching(self, mutant, lines_of_constants):
        """The tests that reach it, nearest first."""
        wanted = {mutant.file: range_bits(mutant.line, mutant.last)}
        if mutant.constant is not None:
            wanted = lines_of_constants(mutant)
        found = [t for t in self.tests
                 if any(t.lines.get(file, 0) & bits for file, bits in wanted.items())]
        room = room_name(mutant.file)
        found.sort(key=lambda t: (not is_named_like(t, room), t.program.label == "thread",
                                  round(t.cpu_s, 1), t.all_lines))
        return found

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

    def run_group(self, group, libraries):
        limit_s = 2 + 3 * sum(t.wall_s for t in group)
        return running.run(command_of(group), libraries, limit_s)

    def sees(self, group):
        """Does the group fail with the fault, and pass without it?"""
        with_it = self.run_group(group, self.libraries)
        if with_it.how == running.PASSED:
            return None, with_it
        without = self.run_group(group, os.pathsep.join(
            os.path.join(self.build.dir, room) for room in building.ROOMS))
        if without.how != running.PASSED:
            return None, with_it
        return killer(group, with_it), with_it

    def sanitizer_sees(self, mutant, tests):
        """Which test breaks a rule of the language or of memory, in the file that was changed."""
        if self.plant(mutant, SANITIZE) is not None:
            return None, ""
        extra = {"LD_PRELOAD": self.runtime,
                 "ASAN_OPTIONS": "detect_leaks=0:hard_rss_limit_mb=4096"}
        for test in tests[:SANITIZED]:
            outcome = running.run(command_of([test]), self.libraries, 10 + 10 * test.wall_s, extra)
            if outcome.how == running.FAILED and re.search(
                    r"ERROR: AddressSanitizer: |runtime error: ", outcome.output):
                return full_name(test) + ", sanitized", outcome.output
        return None, ""

    def try_mutant(self, mutant, lines_of_constants, first=None):
        how = self.plant(mutant)
        if how is not None:
            return Verdict(how)
        tests = self.reaching(mutant, lines_of_constants)
        if first is not None:  # who saw it the last time
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
        by, output = self.sanitizer_sees(mutant, tests)
        if by is not None:
            return Verdict(KILLED, by, output, spent, tried)
        if self.explorer is not None and self.explorer.knows(mutant):
            by, output = self.explorer.try_mutant(mutant, self.texts)
            if by is not None:
                return Verdict(KILLED, by, output, spent, tried)
        by = "" if tried == len(tests) else f"{tried} of {len(tests)} tests tried"
        return Verdict(SURVIVED, by, "", spent, tried)


def range_bits(first, last):
    return (1 << (last + 1)) - (1 << first)


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

