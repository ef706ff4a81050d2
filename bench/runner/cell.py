"""One run of one cell: a program is started, and its line is read."""

import json
import math
import os
import signal
import subprocess
import time

TIMEOUT_S = 60
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NUMBERS = ("value", "count", "wall_s", "cpu_s", "voluntary", "involuntary")


def arguments(workload, subject, params):
    """The command line of a cell, without the program; a parameter that is True has no value."""
    words = [workload, "--subject", subject]
    for name, value in params.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not False:
            words += [option, str(value)]
    return words


def parse(text, workload, subject):
    """The line that a cell printed: (line, None), or (None, what is wrong with it)."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        return None, f"it printed {len(lines)} lines, not one"
    try:
        line = json.loads(lines[0])
    except ValueError:
        return None, "its line is not JSON"
    if not isinstance(line, dict):
        return None, "its line is not an object"
    for name in NUMBERS:
        if not is_number(line.get(name)):
            return None, f"its line has no number called {name}"
    if (line.get("workload"), line.get("subject")) != (workload, subject):
        return None, "its line is about another workload or subject"
    if not isinstance(line.get("hash"), str) or not isinstance(line.get("unit"), str):
        return None, "its line has no hash or no unit"
    more = line.get("more", {})
    if not isinstance(more, dict) or line["value"] < 0:
        return None, "its line has a wrong value"
    line["more"] = {name: value for name, value in more.items() if is_number(value)}
    return line, None


def is_number(value):
    """Is it a number that can be reckoned with?"""
    return isinstance(value, (int, float)) and not isinstance(value, bool) \
        and math.isfinite(value)


def outcome(status, reason, seconds, line=None):
    """What a run of a cell came to: status is "ok", "cannot" or "error"."""
    return {"status": status, "reason": reason, "seconds": seconds, "line": line}


def run(program, workload, subject, params, timeout=TIMEOUT_S):
    """Run a cell once.  A child that is still there after @timeout is killed, with its own."""
    began = time.monotonic()
    child = None
    try:
        with Held() as mask:
            child = start([program] + arguments(workload, subject, params), mask)
        out, err = child.communicate(timeout=timeout)
    except OSError as error:
        return outcome("error", f"cannot be started: {error.strerror}", 0.0)
    except subprocess.TimeoutExpired:
        kill(child)
        return outcome("error", f"took more than {timeout:g} s", time.monotonic() - began)
    except BaseException:
        if child is not None:
            kill(child)
        raise
    seconds = time.monotonic() - began
    reason = first_line(err)
    if child.returncode == 3:
        return outcome("cannot", reason or "it does not say why", seconds)
    if child.returncode != 0:
        return outcome("error", f"{ending(child.returncode)}: {reason}", seconds)
    line, wrong = parse(out, workload, subject)
    return outcome("error", wrong, seconds) if wrong else outcome("ok", "", seconds, line)


class Held:
    """A signal that would end us is heard behind this, when what was started is known."""

    def __enter__(self):
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        return self.mask

    def __exit__(self, *_):
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def start(words, mask):
    """A child that hears the signals which @mask lets through."""
    return subprocess.Popen(words, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True,
                            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))


def kill(child):
    """End the child and whatever it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.communicate()


def first_line(text):
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def ending(status):
    """How a process ended, for people."""
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"
