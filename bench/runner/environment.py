"""Where and with what a run was made, and how much others used the processors meanwhile."""

import datetime
import glob
import os
import platform
import re
import resource
import subprocess
import time

SHORTEST_S = 0.25


def read(path):
    """The text of a file, or nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def found(pattern, text, otherwise="unknown"):
    """What the pattern's group matches."""
    match = re.search(pattern, text, re.M)
    return match.group(1).strip() if match else otherwise


def cores():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def compiler(build):
    """What built the programs, from the build directory's cache: text."""
    cache = read(os.path.join(build, "CMakeCache.txt"))
    if not cache:
        return "unknown: no CMakeCache.txt"
    kind = found(r"^CMAKE_BUILD_TYPE:[^=]*=(.*)$", cache)
    words = []
    for path in sorted(glob.glob(os.path.join(build, "CMakeFiles", "*", "CMake*Compiler.cmake"))):
        text = read(path)
        for language in ("C", "CXX"):
            name = found(rf'^set\(CMAKE_{language}_COMPILER_ID "(.*)"\)', text, "")
            version = found(rf'^set\(CMAKE_{language}_COMPILER_VERSION "(.*)"\)', text, "")
            if name:
                words.append(f"{language.replace('CXX', 'C++')} {name} {version}")
    flags = [found(rf"^CMAKE_C_FLAGS{part}:[^=]*=(.*)$", cache, "")
             for part in ("", "_" + kind.upper())]
    return f"{', '.join(words)}; {kind} {' '.join(flag for flag in flags if flag)}".strip()


def commit(directory):
    """The commit of the checkout that holds @directory, with a mark if it was changed since."""
    def git(*words):
        """What git answers, or None."""
        try:
            answer = subprocess.run(["git", "-C", directory, *words], capture_output=True,
                                    text=True, check=False)
        except OSError:
            return None
        return answer.stdout.strip() if answer.returncode == 0 else None

    name = git("rev-parse", "--short=12", "HEAD")
    if not name:
        return "unknown: not a checkout"
    return name + (", with changes" if git("status", "--porcelain") else "")


def describe(build, directory, subjects, size):
    """Everything about the surroundings that a figure needs, as one object."""
    cpu = read("/proc/cpuinfo")
    model = found(r"^model name\s*:\s*(.*)$", cpu, platform.machine() or "unknown")
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": commit(directory),
        "cpu": model,
        "cores": cores(),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "compiler": compiler(build),
        "load": round(os.getloadavg()[0], 2),
        "size": size,
        "subjects": {name: subject["about"] for name, subject in subjects.items()},
    }


def busy_seconds():
    """Processor time that the machine has spent since it started, stolen time included."""
    words = found(r"^cpu\s+(.*)$", read("/proc/stat"), "").split()
    if len(words) < 8:
        return None
    user, nice, system, _, _, interrupts, soft, stolen = (int(word) for word in words[:8])
    ticks = user + nice + system + interrupts + soft + stolen
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Processor time of this process and of the children it has waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def moment():
    """The three counts that neighbours_percent() takes the difference of."""
    return time.monotonic(), busy_seconds(), own_seconds()


def neighbours_percent(before, after, machine_cores=None):
    """How much of the machine others used between two moments; None where it cannot be known, or
    the time was too short for the kernel's ticks."""
    wall = after[0] - before[0]
    if before[1] is None or after[1] is None or wall < SHORTEST_S:
        return None
    others = (after[1] - before[1]) - (after[2] - before[2])
    return max(0.0, 100.0 * others / (wall * (machine_cores or os.cpu_count() or 1)))
