"""Instructions of one operation of the one-thread cells, of every subject, counted by valgrind.

Unlike bench/instructions, which knows libdue alone, this runs the cells themselves: what they count
includes the cell's own loop, which the subject "empty" shows alone.  Other threads do not count.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections import namedtuple

TIMEOUT_S = 60
JOBS, LIVE = 10_000, 1000

Count = namedtuple("Count", "workload function jobs options")  # jobs: operations that count

CELLS = (
    Count("enqueue", "put_own", JOBS, ()),
    Count("hold", "holds*", 2 * JOBS, ("--live", str(LIVE), "--shape", "exponential")),
    Count("timeout", "pairs", JOBS, ("--live", str(LIVE))),
    Count("cancel", "cancel_own", JOBS, ()),
    Count("reschedule", "reschedule_all", JOBS, ("--live", str(LIVE))),
    Count("nothing", "look_in_vain*", 2 * JOBS, ("--live", str(LIVE))),
)
SUBJECTS = ("libdue", "mutex-heap", "std-pq", "tbb", "libevent", "libev", "libuv", "limit", "empty")


def count_one(program, cell, subject, folder):
    """Instructions of one operation; None if this subject cannot, or nothing could be counted."""
    words = ["valgrind", "--tool=callgrind", f"--toggle-collect={cell.function}",
             f"--callgrind-out-file={os.path.join(folder, 'out')}", program, cell.workload,
             "--subject", subject, "--jobs", str(JOBS), *cell.options]
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
                             stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"Collected *: *(\d+)", run.stderr)
    if run.returncode != 0 or not found or found.group(1) == "0":
        return None
    return int(found.group(1)) / cell.jobs


def count(subjects, say):
    """{(workload, subject): instructions} of the subjects that are there."""
    if shutil.which("valgrind") is None:
        say("no instructions: there is no valgrind here")
        return {}
    found = {}
    say("counting instructions")
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS:
            for subject in SUBJECTS:
                if subject in subjects:
                    n = count_one(subjects[subject]["program"], cell, subject, folder)
                    if n is not None:
                        found[cell.workload, subject] = n
    return found
