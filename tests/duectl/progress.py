"""Commands at a terminal that take more than a second: what they say of how far they are.

usage: progress.py DUECTL SOCKET URL DIR

In DIR are store.db, and the same jobs are in the queue `many` of the server.
"""

import os
import pty
import re
import select
import sqlite3
import subprocess
import sys
import threading
import time

duectl, socket, url, folder = sys.argv[1:5]
failures = []
JOB = '{"id":"ff00000000010000%016x","topic":"","deadline":"2030-01-01T00:00:00Z","data":"tea"}\n'


def fail(text):
    failures.append(text)
    print("FAILED:", text, file=sys.stderr)


class Seen:
    """A command whose standard error is a terminal."""

    def __init__(self, *words, term="xterm", **more):
        self.text = b""
        self.master, slave = pty.openpty()
        self.child = subprocess.Popen([duectl, *words], stderr=slave, stdout=subprocess.PIPE,
                                      env=dict(os.environ, TERM=term), **more)
        os.close(slave)

    def look(self, seconds=0):
        """Read what is there; False: its end."""
        try:
            while select.select([self.master], [], [], seconds)[0]:
                more = os.read(self.master, 65536)
                if not more:
                    return False
                self.text += more
                seconds = 0
            return True
        except OSError:  # all of its other ends are closed
            return False

    def end(self, wanted):
        out = []
        reader = threading.Thread(target=lambda: out.append(self.child.stdout.read()))
        reader.start()
        while self.look(1) or self.child.poll() is None:
            pass
        reader.join()
        if self.child.wait() != wanted:
            fail(f"{self.child.args}: status {self.child.returncode}: {self.text!r}")
        os.close(self.master)
        return out[0]

    def lines(self):
        return re.findall(rb"\r(duectl: [^\x1b]*)\x1b\[K\r", self.text)

    def check(self, what, pattern):
        said = self.lines()
        if not said or not re.fullmatch(pattern, said[-1]):
            fail(f"{what}: {self.text!r}")
        for done, every, percent in re.findall(rb"(\d+) of (\d+), (\d+) %", self.text):
            if int(percent) != int(done) * 100 // int(every):
                fail(f"{what}: {done} of {every} are not {percent} %")
        if b"\n" in self.text.replace(b"\r\n", b"") or not self.text.endswith(b"\r\x1b[K"):
            fail(f"{what}: the line stays: {self.text[-100:]!r}")


def lines_that_come():
    """One at a terminal, one at a dumb one, one whose standard error is a file."""
    with open(os.path.join(folder, "said"), "wb+") as said:
        # The one that is waited for begins last.
        plain = subprocess.Popen([duectl, "import", os.path.join(folder, "c.db")], stderr=said,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=dict(os.environ, TERM="xterm"))
        dumb = Seen("import", os.path.join(folder, "b.db"), stdin=subprocess.PIPE, term="dumb")
        runs = [Seen("import", os.path.join(folder, "a.db"), stdin=subprocess.PIPE), dumb]
        inputs = [run.child.stdin for run in runs] + [plain.stdin]
        for pipe in inputs:
            pipe.write(b'{"due_export":1}\n')
        jobs = 0
        until = time.monotonic() + 90
        while not runs[0].lines() and time.monotonic() < until:
            for pipe in inputs:
                pipe.write((JOB % (jobs << 16)).encode())
                pipe.flush()
            jobs += 1
            runs[0].look(0.01)
        for pipe in inputs:
            pipe.write(b'{"jobs":%d,"kept_keys":0}\n' % jobs)
            pipe.close()
        put = b"put     %d jobs, 0 kept keys\n" % jobs
        outs = [run.end(0) for run in runs] + [plain.stdout.read()]
        if plain.wait() != 0 or any(out != put for out in outs):
            fail(f"{jobs} jobs: {outs}")
        runs[0].check("import", rb"duectl: import: (lines: \d+|jobs read back: \d+ of \d+, \d+ %)")
        said.seek(0)
        if runs[1].text or said.read():
            fail("something is said where there is no terminal")


def slow(what, pattern, words, hold, wanted=0):
    """Run it while it is held up, for longer each time, until that took it a second."""
    for seconds in (1.5, 3, 6, 12):
        release = hold(seconds)
        run = Seen(*words, stdin=subprocess.DEVNULL)
        run.end(wanted)
        release()
        if run.lines():
            break
    # What it says of the wait itself is no line of progress.
    run.text = re.sub(rb"duectl: [^\r\n]*waits for[^\r\n]*\r\n", b"", run.text)
    run.check(what, pattern)


def read_slowly(of):
    run = Seen("export", *of, stdin=subprocess.DEVNULL)
    run.child.stdout.read(1000)
    time.sleep(1.2)
    run.end(0)
    run.check("export", rb"duectl: export: jobs: \d+ of 30000, \d+ %")


def hold_server(seconds):
    subprocess.run(["redis-cli", "-s", socket, "client", "pause", str(int(seconds * 1000)), "all"],
                   check=True, stdout=subprocess.DEVNULL)
    return lambda: None


def hold_file(seconds):
    begun = threading.Event()

    def hold():
        db = sqlite3.connect(os.path.join(folder, "store.db"), isolation_level=None, timeout=60)
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        begun.set()
        time.sleep(min(seconds, 4))
        db.execute("ROLLBACK")
        db.close()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    return thread.join


lines_that_come()
store = os.path.join(folder, "store.db")
of = ["--queue", "many", url]
share = rb": \d+ of \d+, \d+ %"
slow("verify", rb"duectl: verify: (jobs|records)" + share, ["verify", *of], hold_server)
slow("restore", rb"duectl: restore: jobs" + share, ["restore", *of], hold_server)
slow("doctor", rb"duectl: doctor: PINGs" + share, ["doctor", *of], hold_server, wanted=1)
read_slowly(of)
slow("verify of a file", rb"duectl: verify: (jobs" + share + rb"|reads the file)",
     ["verify", store], hold_file)
slow("restore of a file", rb"duectl: restore: reads the file", ["restore", store], hold_file)
sys.exit(1 if failures else 0)
