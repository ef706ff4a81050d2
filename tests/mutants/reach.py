"""reach.py - which test reaches which line.

Each test runs once, a test of Criterion by itself, against a library that marks the basic blocks
that run (reach.c).  What is known of a program stays as long as it and the libraries are the same.
"""

import bisect
import json
import multiprocessing
import os
import re
import subprocess
import tempfile

import build as building
import run as running

FLAGS = ("-O0", "-g", "-fsanitize-coverage=trace-pc")
LIMIT_S = 300


class Test:
    """Something that can be run by itself: a program, or a test of one.  `lines`: of each file a
    number with a bit for each line that it reaches."""

    def __init__(self, program, name, command, wall_s, cpu_s, lines):
        self.program, self.name, self.command = program, name, command
        self.wall_s, self.cpu_s = wall_s, cpu_s
        self.lines = {file: int(bits, 16) for file, bits in lines.items()}
        self.all_lines = sum(bin(bits).count("1") for bits in self.lines.values())


class Blocks:
    """Of a library: the lines of each basic block, by the place where the block tells itself."""

    def __init__(self, library, files):
        rows = sorted(self.rows(building.output(
            ["readelf", "-W", "--debug-dump=decodedline", library]), files))
        starts = [row[0] for row in rows]
        self.lines = {}
        sites, ends = self.sites(library)
        for site in sites:
            end = ends[bisect.bisect_right(ends, site)]
            first = max(bisect.bisect_right(starts, site) - 1, 0)
            last = bisect.bisect_left(starts, end)
            self.lines[site] = {row[1:] for row in rows[first:last] if row[1]}

    @staticmethod
    def rows(text, files):
        """Addresses with file and line.  A source is told by the path that stands over its rows,
        since several have one name; a header by its name."""
        headers = {os.path.basename(file): file for file in files if file.endswith(".h")}
        unit = ""
        for match in re.finditer(r"^(?:CU: (\S+):$|(\S+)\s+(\d+)\s+0x([0-9a-f]+))", text, re.M):
            if match[1] is not None:
                unit = next((file for file in files if match[1].endswith("/" + file)), "")
                continue
            name = os.path.basename(match[2])
            file = unit if os.path.basename(unit) == name else headers.get(name, "")
            yield int(match[4], 16), file, int(match[3])

    @staticmethod
    def sites(library):
        """Where blocks tell themselves, and where whatever follows them begins."""
        text = building.output(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", library])
        sites, ends, called = [], [], False
        for line in text.splitlines():
            match = re.match(r"\s*([0-9a-f]+):\s", line)
            if match is None:
                if re.match(r"[0-9a-f]+ <", line):
                    ends.append(int(line.split()[0], 16))
                continue
            if called:
                sites.append(int(match[1], 16))
                ends.append(sites[-1])
            called = "__sanitizer_cov_trace_pc" in line and "call" in line
        ends.append(1 << 62)
        return sites, sorted(set(ends))


def reach_object(room, directory):
    to = os.path.join(directory, f"reach_{room}.o")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reach.c")
    subprocess.run(["gcc", "-O2", "-fPIC", f'-DREACH_NAME="{room}"', "-o", to, "-c", source],
                   check=True)
    return to


class Mapper:
    def __init__(self, build):
        self.build = build
        self.dir = build.variant("reach", FLAGS, reach_object)
        self.libraries = [os.path.join(self.dir, build.name_of(r)) for r in build.libraries]
        files = building.sources(build.root)
        self.blocks = {room: Blocks(library, files)
                       for room, library in zip(build.libraries, self.libraries)}

    def tests_of(self, program):
        """The commands of a program that can be run by themselves."""
        if not program.is_criterion:
            return [(program.name, program.command)]
        listed = building.output([program.file, "--list"],
                                 env=dict(os.environ, LC_ALL="C"), stderr=subprocess.DEVNULL)
        found, suite = [], None
        for line in listed.splitlines():
            match = re.match(r"(\w+): \d+ tests?", line)
            if match:
                suite = match[1]
            elif suite is not None and re.search(r"\w+\s*$", line):
                name = suite + "/" + re.search(r"(\w+)\s*$", line)[1]
                found.append((name, [*program.command, "--filter", name]))
        return found

    def look(self, task):
        """Run one test: how long it took, and what it reached."""
        program, name, command = task
        with tempfile.TemporaryDirectory(prefix="due_reach_") as directory:
            outcome = running.run(command, self.dir, LIMIT_S,
                                  {"DUE_REACH": os.path.join(directory, "map")})
            lines = {}
            for room in self.blocks:
                self.add_lines(lines, os.path.join(directory, f"map.{room}"),
                               self.blocks[room].lines)
        return {"program": program, "name": name, "command": command, "how": outcome.how,
                "wall_s": outcome.wall_s, "cpu_s": outcome.cpu_s,
                "lines": {file: hex(bits) for file, bits in lines.items()}}

    @staticmethod
    def add_lines(lines, path, blocks):
        try:
            with open(path, "rb") as file:
                reached = file.read()
        except OSError:
            return
        for match in re.finditer(b"\x01", reached):
            for file, line in blocks.get(match.start(), ()):
                lines[file] = lines.get(file, 0) | 1 << line


MAPPER = None


def look(task):
    return MAPPER.look(task)


def read_map(build, programs, jobs, tell, stale=False):
    """All tests, with what they reach; those that do not pass by themselves are left out.  Stale:
    what a program reached in another library will do."""
    global MAPPER
    MAPPER = Mapper(build)
    path = os.path.join(build.dir, "reach.json")
    known = building.read_json(path)
    library = building.digest(*MAPPER.libraries)
    stamps = {p.name: library + building.digest(p.file) + " ".join(p.command)
              for p in programs}
    ignored = len(library) if stale else 0
    missing = [p for p in programs
               if known.get(p.name, {}).get("stamp", "")[ignored:] != stamps[p.name][ignored:]]
    tasks = [(p.name, *test) for p in missing for test in MAPPER.tests_of(p)]
    for program in missing:
        known[program.name] = {"stamp": stamps[program.name], "tests": []}
    if tasks:
        with multiprocessing.Pool(jobs, running.adopt) as pool:
            for n, found in enumerate(pool.imap_unordered(look, tasks), 1):
                known[found["program"]]["tests"].append(found)
                tell(f"looking what each test reaches: {n} of {len(tasks)}")
                if found["how"] != running.PASSED:
                    print(f"note: {found['program']}: {found['name']} {found['how']} while its "
                          "lines were looked at, and is left out", flush=True)
        # Beside and renamed: a run that is stopped here leaves what was there before.
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(f"{path}.{os.getpid()}", path)
    tests = []
    for program in programs:
        for t in known[program.name]["tests"]:
            if t["how"] == running.PASSED and t["lines"]:
                tests.append(Test(program, t["name"], t["command"], t["wall_s"], t["cpu_s"],
                                  t["lines"]))
    return tests
