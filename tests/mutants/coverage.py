"""coverage.py - which lines and branches the unit and model tests reach together, by room.

Measured by gcov, with both libraries compiled without optimization.  An assert has no branch: who
takes it has found a fault.  What no test reaches stands in unreached.txt, by function ("inline":
one that is always part of another), in groups with the reason.
"""

import collections
import json
import multiprocessing
import os
import re
import subprocess

import build as building
import rules
import run as running

FLAGS = ("-O0", "-g", "--coverage", "-fprofile-update=atomic")
LABELS = ("unit", "model")
LIMIT_S = 600
INLINE = "inline"
HERE = os.path.dirname(os.path.abspath(__file__))
UNREACHED = os.path.join(HERE, "unreached.txt")
DEFECT = re.compile(r"\bassert\(|__builtin_unreachable")


def end_object(room, directory):
    """What writes the counts of a test that ends itself."""
    to = os.path.join(directory, f"end_{room}.o")
    subprocess.run(["gcc", "-O2", "-fPIC", "-o", to, "-c", os.path.join(HERE, "end.c")],
                   check=True)
    return to


class Line:
    def __init__(self, file, number, function, text):
        self.file, self.number, self.function, self.text = file, number, function, text
        self.count, self.branches = 0, []

    def add(self, count, branches):
        """A line of a header is compiled into many files; a branch is taken if it is in one."""
        self.count += count
        if len(self.branches) == len(branches):
            self.branches = [a + b for a, b in zip(self.branches, branches)]
        elif not self.branches or sum(branches) > sum(self.branches):
            self.branches = branches


DIRECTORY = None


def begin(directory):
    global DIRECTORY
    DIRECTORY = directory
    running.adopt()


def run_one(program):
    outcome = running.run(program.command, DIRECTORY, LIMIT_S)
    return program.name, outcome.how


def measure(build, programs, jobs, tell):
    """Run them, and read what they have counted: the lines of each file."""
    directory = build.variant("coverage", FLAGS, end_object)
    for name in os.listdir(directory):
        if name.endswith(".gcda"):
            os.unlink(os.path.join(directory, name))
    programs = [p for p in programs if p.label in LABELS]
    with multiprocessing.Pool(jobs, begin, (directory,)) as pool:
        for n, (name, how) in enumerate(pool.imap_unordered(run_one, programs), 1):
            if how != running.PASSED:
                print(f"note: {name} {how}; what it reached may be missing")
            tell(f"{n} of {len(programs)} programs")
    return read_counts(build, directory)


def read_counts(build, directory):
    lines = {}
    texts = {}
    for file in sorted(build.compiled):
        counts = os.path.join(directory, file.replace("/", "_")[:-2] + ".gcda")
        notes = counts[:-4] + "gcno"
        given = counts if os.path.exists(counts) else notes
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                               given], cwd=directory, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        for row in done.stdout.splitlines():
            for found in json.loads(row)["files"]:
                take_file(build, found, lines, texts)
    return lines


def take_file(build, found, lines, texts):
    file = os.path.relpath(os.path.join(build.dir, found["file"]), build.root)
    if file.split(os.sep)[0] not in building.FOLDERS:
        return
    if file not in texts:
        with open(os.path.join(build.root, file), encoding="utf-8") as opened:
            texts[file] = opened.read().split("\n")
    for entry in found["lines"]:
        text = texts[file][entry["line_number"] - 1]
        if DEFECT.search(text):
            continue
        key = file, entry["line_number"]
        if key not in lines:
            lines[key] = Line(file, entry["line_number"], entry.get("function_name") or INLINE,
                              rules.tidy(text))
        lines[key].add(entry["count"], [b["count"] for b in entry["branches"]])


def read_reasons():
    """What is known not to be reached: of (file, function) how many lines."""
    known = collections.Counter()
    with open(UNREACHED, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["-"]:
                known[words[1], words[2]] += int(words[3])
    return known


def stale(texts):
    """Functions that are said not to be reached, and are gone."""
    for file, function in read_reasons():
        if function == INLINE and file in texts:
            continue
        if not re.search(rf"\b{re.escape(function)}\(", texts.get(file, "")):
            yield f"{UNREACHED}: {file} has no {function}()"


def room_of(file):
    return os.path.splitext(file)[0]


def show(lines, wanted):
    """The table.  Answers the lines without a reason: of a function all, if there are more."""
    rooms, missed = {}, collections.defaultdict(list)
    for (file, _), line in sorted(lines.items()):
        row = rooms.setdefault(room_of(file), [0, 0, 0, 0])
        row[0] += 1
        row[1] += line.count > 0
        row[2] += len(line.branches)
        row[3] += sum(b > 0 for b in line.branches)
        if line.count == 0:
            missed[file, line.function].append(line)
    print(f"{'room':<28}{'lines':>8}{'reached':>9}{'':>8}{'branches':>10}{'taken':>8}")
    total = [sum(row[i] for row in rooms.values()) for i in range(4)]
    for name in sorted(rooms, key=lambda n: (not n.startswith("src"), n)):
        if not wanted or os.path.basename(name) in wanted:
            print(row_text(name, rooms[name]))
    print(row_text("all", total))
    known = read_reasons()
    return [line for place, those in missed.items() if len(those) > known[place]
            for line in those], total[0]


def row_text(name, row):
    def share(part, whole):
        return f"{100.0 * part / whole:7.1f}%" if whole else " " * 8

    return (f"{name:<28}{row[0]:>8}{row[1]:>9}{share(row[1], row[0])}{row[2]:>10}{row[3]:>8}"
            f"{share(row[3], row[2])}")

