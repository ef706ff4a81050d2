"""Count the instructions of bench/instructions.c under valgrind, and compare them with
instructions.txt: a cell that takes over 3 % more than it says fails.

usage: bench/instructions [--accept] [--build DIR]

  --accept      write what was counted to instructions.txt; say in the commit why
  --build DIR   of a release build; default build/release

Exit status: 0 as before or fewer, 1 more, 77 nothing to compare (no valgrind, another compiler).
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from operator import itemgetter

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
KNOWN = os.path.join(BENCH, "instructions.txt")
TOLERANCE = 0.03
SKIPPED = 77

HEAD = """# Instructions of one operation, as bench/instructions counts them, with
# {compiler}
# A cell that takes over 3 % more fails: mend it, or say in the commit why it is worth it and write
# the new numbers with bench/instructions --accept.
"""


def compiler_of(build):
    """What made the programs, in one line: numbers of two compilers cannot be compared."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", f.read(), re.M))
    asked = subprocess.run([cache["CMAKE_C_COMPILER"], "--version"], capture_output=True, text=True,
                           check=True)
    version = asked.stdout.splitlines()[0].split(" ", 1)[1]  # without the name it was called by
    return f"{version}, {cache['CMAKE_BUILD_TYPE']}, {platform.machine()}"


def count(build):
    """Instructions of one operation of each cell, in the order of their names."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=counted_*",
             f"--callgrind-out-file={out}", os.path.join(build, "bench", "bench_instructions")],
            capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"bench_instructions failed:\n{run.stdout}{run.stderr}")
        table = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", out],
            capture_output=True, text=True, check=True).stdout
    operations = int(run.stdout)
    found = re.findall(r"^ *([\d,]+) .*:counted_(\w+)", table, re.M)
    return {name: int(n.replace(",", "")) / operations
            for n, name in sorted(found, key=itemgetter(1))}


def as_result(group, cells):
    """What count() has found, in the form of the result of a group: a row for each."""
    rows = [{"label": name, "subject": "libdue", "params": {}, "status": "ok", "reason": "",
             "unit": "instructions", "median": n, "series": {"value": [n]}}
            for name, n in cells.items()]
    return {"group": group, "params": {}, "rows": rows, "unit": "instructions"}


def read_known():
    """The numbers in the tree, and the compiler that they are of."""
    if not os.path.exists(KNOWN):
        return {}, ""
    with open(KNOWN, encoding="utf-8") as f:
        lines = f.read().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: float(n) for name, n in rows}, lines[1].removeprefix("# ")


def write_known(cells, compiler):
    with open(KNOWN, "w", encoding="utf-8") as f:
        f.write(HEAD.format(compiler=compiler))
        f.writelines(f"{name:<16}{n:8.1f}\n" for name, n in cells.items())


def compare(cells, known):
    """Print the table.  The cells that take too many more, that are new or gone."""
    bad = []
    for name in list(known) + [name for name in cells if name not in known]:
        now, before = cells.get(name), known.get(name)
        if now is None or before is None:
            print(f"{name:<16} {'gone' if now is None else 'new'}")
            bad.append(name)
            continue
        change = now / before - 1 if before else 0.0
        print(f"{name:<16}{before:10.1f}{now:10.1f}{100 * change:+8.1f} %")
        if now > before * (1 + TOLERANCE) + 0.5:
            bad.append(name)
    return bad


def main(words):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--build", default=os.path.join(BENCH, "..", "build", "release"))
    options = parser.parse_args(words)
    if options.help:
        print(__doc__.strip())
        return 0
    if shutil.which("valgrind") is None:
        print("no valgrind: nothing was counted")
        return SKIPPED
    compiler = compiler_of(options.build)
    known, of = read_known()
    if compiler != of and not options.accept:
        print(f"the numbers are of {of}, not of {compiler}")
        return SKIPPED
    cells = count(options.build)
    print(f"{'cell':<16}{'known':>10}{'now':>10}")
    bad = compare(cells, known)
    if options.accept:
        write_known(cells, compiler)
        return 0
    if bad:
        print(f"more than 3 % more, new or gone: {', '.join(bad)}")
        print("if it is worth that, say so in the commit: bench/instructions --accept")
    return 1 if bad else 0
