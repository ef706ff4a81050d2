"""run.py - run one test and leave nothing of it behind."""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
MOST_BYTES = 4 << 30  # of data: a fault may ask for any amount
FAILED, PASSED, HUNG = "failed", "passed", "hung"


def adopt():
    """From now on whoever loses its parent below this process becomes a child of it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))


def no_core():  # sanitizers reserve far more than they use
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def children(pid):
    """All below a process, the nearest last."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += children(int(child)) + [int(child)]
    except OSError:
        pass
    return found


def sweep():
    """End whatever a test has left: servers, processes that hang.  Only those below this one."""
    for _ in range(100):
        left = children(os.getpid())
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


class Outcome:
    def __init__(self, how, wall_s, cpu_s, output):
        self.how, self.wall_s, self.cpu_s, self.output = how, wall_s, cpu_s, output


def run(command, libraries, limit_s, extra=None):
    """Run a test against the libraries of a directory, in an empty directory of its own."""
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, **(extra or {}))
    cwd = tempfile.mkdtemp(prefix="due_mutant_")
    env["TMPDIR"] = cwd
    log = os.path.join(cwd, "output")
    began = time.monotonic()
    with open(log, "wb") as out:
        child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, start_new_session=True,
                                 preexec_fn=no_core if "LD_PRELOAD" in env else limits)
        status, usage = wait(child, began + limit_s)
    wall_s = time.monotonic() - began
    sweep()
    with open(log, "rb") as file:
        output = file.read()[-4000:].decode(errors="replace")
    shutil.rmtree(cwd, ignore_errors=True)
    how = HUNG if status is None else PASSED if status in (0, 77) else FAILED
    return Outcome(how, wall_s, usage, output)


def wait(child, until):
    """Its exit status, or None if it was not through; and its time on a processor."""
    pause = 0.002
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > until:
            child.returncode = -signal.SIGKILL
            return None, 0.0
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
