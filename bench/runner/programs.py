"""The programs that run cells: where they are, and what their subjects can."""

import os
import subprocess

C_PROGRAMS = ("bench_cell", "bench_loops", "bench_shared_cell")
LANGUAGES = ("java", "go", "rust")
SHARED = ("asynq", "bullmq")  # rivals of shared queues, each a program of its own
PARTS = {"bench_loops": ("libevent", "libev", "libuv"),
         "bench_shared_cell": ("libdue-shared", "beanstalkd")}  # subjects of a C program
BUILD_TIMEOUT_S = 900


def default_build(place):
    """The build directory if none is named: that with the runner in it, or where the programs are
    installed with it, or the release."""
    above = os.path.dirname(place)
    if os.path.exists(os.path.join(above, "CMakeCache.txt")):
        return above
    if os.path.exists(os.path.join(place, C_PROGRAMS[0])):
        return place
    return os.path.join(above, "build", "release")


def find(build, name):
    """The path of a program in a build directory, or beside an installed runner; or None."""
    for place in (os.path.join(build, "bench"), build):
        path = os.path.join(place, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def newest(directory):
    """When anything below this directory was changed last."""
    times = [os.path.getmtime(directory)]
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders
                      if name not in ("target", "__pycache__", "node_modules")]
        times += [os.path.getmtime(os.path.join(folder, name)) for name in names]
    return max(times)


def build_foreign(sources, build, language, may_build, say):
    """The path of a foreign program, built if its sources are newer; or (None, why not)."""
    source = os.path.join(sources, "rivals", language)
    output = os.path.join(build, "bench", "rivals", language)
    program = os.path.join(output, "bench_" + language)
    script = os.path.join(source, "build")
    built = os.path.isfile(program)
    if not os.path.isfile(script):
        return (program, "") if built else (None, "its sources are not here")
    if built and os.path.getmtime(program) >= newest(source):
        return program, ""
    if not may_build:
        return None, "it is not built, or older than its sources"
    say(f"building {language}" if language in SHARED else
        f"building the rivals in {language.capitalize()}")
    os.makedirs(output, exist_ok=True)
    try:
        answer = subprocess.run(["sh", script, output], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=BUILD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"building it took more than {BUILD_TIMEOUT_S} s"
    if answer.returncode == 0 and os.path.isfile(program):
        os.utime(program)  # a build that changed nothing counts as new
        return program, ""
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"the build ended with status {answer.returncode}"
    return None, reason if answer.returncode == 3 else f"it does not compile: {reason}"


def list_subjects(program):
    """What a program says of its subjects: {name: {program, about, abilities}}."""
    answer = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=30,
                            stdin=subprocess.DEVNULL, check=False)
    if answer.returncode != 0:
        raise ValueError(f"{program} --list: exit status {answer.returncode}")
    found = {}
    for line in answer.stdout.splitlines():
        name, *rest = line.split("\t")
        if name.strip():
            found[name] = {"program": program, "about": rest[0] if rest else "",
                           "abilities": rest[1].split() if len(rest) > 1 else []}
    return found


def gather(sources, build, may_build, wants, say):
    """All subjects, and {name: why} of the programs and languages that are absent.

    @wants tells whether anything from a language is to be run at all."""
    subjects, absent = {}, {}
    for name in C_PROGRAMS:
        program = find(build, name)
        if program:
            subjects.update(list_subjects(program))
        else:
            absent[name] = f"it is not in {build}"
    for language in LANGUAGES + SHARED:
        if not wants(language):
            continue
        program, reason = build_foreign(sources, build, language, may_build, say)
        if program:
            subjects.update(list_subjects(program))
        else:
            absent[language] = reason
    return subjects, absent


def home(subject, absent):
    """Why a subject that nobody listed is not there."""
    language = subject.split("-")[0]
    if language in absent:
        return f"absent: {absent[language]}"
    for program, parts in PARTS.items():
        if program in absent and subject in parts:
            return f"absent: {program}: {absent[program]}"
    return "absent: left out of this build"
