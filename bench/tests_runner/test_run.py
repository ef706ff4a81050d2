"""bench/run as a whole, with a program that measures nothing."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import BENCH, FAKE
from runner import environment, programs
from runner.rounds import Progress


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name
        os.mkdir(os.path.join(self.build, "bench"))
        os.symlink(FAKE, os.path.join(self.build, "bench", "bench_cell"))

    def run_it(self, *words, wrong="", build=None, program=None):
        given = [] if build == "" else ["--build", build or self.build]
        runner = program or os.path.join(BENCH, "run")
        return subprocess.run([sys.executable, runner, *given, "--no-build", *words],
                              capture_output=True, text=True, timeout=100, check=False,
                              env={**os.environ, "FAKE_WRONG": wrong})

    def path(self, name):
        return os.path.join(self.build, name)

    def test_a_tiny_run_prints_tables_and_writes_every_file(self):
        answer = self.run_it("--tiny", "--workload", "enqueue", "--workload", "lateness",
                             "--json", self.path("j"), "--csv", self.path("c"),
                             "--markdown", self.path("m"))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("enqueue  jobs 1000, producers 2\n", answer.stdout)
        self.assertIn("p99_us", answer.stdout)
        self.assertIn("absent    bench_loops: ", answer.stdout)
        with open(self.path("j"), encoding="utf-8") as file:
            things = [json.loads(text) for text in file]
        self.assertEqual(things[0]["environment"]["subjects"]["libdue"], "a fake")
        self.assertEqual(things[1]["label"], "libdue")
        for name in "cm":
            self.assertGreater(os.path.getsize(self.path(name)), 100)

    def test_what_is_absent_is_said_with_the_reason_of_its_program(self):
        absent = {"bench_shared_cell": "it is not in build", "asynq": "no module"}
        for subject, said in (("libdue-shared", "absent: bench_shared_cell: it is not in build"),
                              ("beanstalkd", "absent: bench_shared_cell: it is not in build"),
                              ("asynq", "absent: no module"),
                              ("std-pq", "absent: left out of this build")):
            self.assertEqual(programs.home(subject, absent), said)

    def test_whatever_goes_wrong_in_a_cell_is_an_error_of_the_run(self):
        for how, reason in (("lost", "not all did the same work"), ("status", "came out twice"),
                            ("crash", "ended by signal 6"), ("garbage", "not JSON")):
            answer = self.run_it("--tiny", "--group", "enqueue 1", wrong=f"std-pq:{how}")
            self.assertEqual(answer.returncode, 1, how)
            self.assertIn(reason, answer.stderr)
            self.assertIn("ERROR", answer.stdout)

    def test_a_signal_ends_it_and_the_cell_that_runs(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            runner = subprocess.Popen(
                [sys.executable, os.path.join(BENCH, "run"), "--build", self.build, "--no-build",
                 "--tiny", "--group", "enqueue 1"], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env={**os.environ, "FAKE_WRONG": "std-pq:hang"})
            cells = self.wait_for_cell()
            runner.send_signal(number)
            _, said = runner.communicate(timeout=10)
            self.assertEqual(runner.returncode, 128 + number)
            self.assertIn(b"bench/run: stopped", said)
            self.assertTrue(cells)
            for _ in range(500):  # it was killed, and may take a moment to be gone
                if self.cells():
                    time.sleep(0.01)
            self.assertEqual(self.cells(), [])

    def cells(self):
        """The processes that run the hanging cell of this test."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if self.path("bench/bench_cell").encode() in words and b"std-pq" in words:
                found.append(name)
        return found

    def wait_for_cell(self):
        for _ in range(500):
            found = self.cells()
            if found:
                return found
            time.sleep(0.02)
        return []

    def test_who_cannot_is_said_and_no_error(self):
        answer = self.run_it("--tiny", "--group", "enqueue 1", wrong="std-pq:cannot")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("not here: std-pq: not today", answer.stdout)

    def test_rounds_are_interleaved_and_rotated(self):
        log = self.path("log")
        program = self.path("bench/bench_cell")
        os.remove(program)
        with open(program, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$3" >>{log}\nexec {FAKE} "$@"\n')
        os.chmod(program, 0o755)
        self.run_it("--quick", "--runs", "3", "--group", "mixed 50", "--subject", "libdue",
                    "--subject", "mutex-heap")
        with open(log, encoding="utf-8") as file:
            order = [text for text in file.read().split() if text]
        self.assertEqual(order, ["libdue", "mutex-heap", "mutex-heap", "libdue", "libdue",
                                 "mutex-heap"])

    def test_a_check_says_what_is_missed_and_fails(self):
        answer = self.run_it("--check", "--tiny", "--workload", "through", "--workload", "cancel")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("Targets: ", answer.stdout)
        self.assertIn("met           through by 32, 2/2: 12 M/s", answer.stdout)
        self.assertIn("  met           through at once, 1/1: beside the best: 1.45", answer.stdout)
        self.assertIn("  NOT MET       cancel at random, one by one", answer.stdout)
        self.assertIn("  not measured  instructions: hold", answer.stdout)

    def test_the_figures_of_a_run_come_into_a_page_also_afterwards(self):
        pages = [self.path("a.md"), self.path("b.md")]
        for page in pages:
            with open(page, "w", encoding="utf-8") as file:
                file.write("before\n<!-- figures: begin -->\nformer figures\n"
                           "<!-- figures: end -->\nafter\n")
        self.run_it("--check", "--tiny", "--workload", "through", "--workload", "cancel",
                    "--json", self.path("j"), "--document", pages[0])
        again = self.run_it("--check", "--from", self.path("j"), "--document", pages[1])
        self.assertEqual(again.returncode, 1, again.stderr)
        texts = []
        for page in pages:
            with open(page, encoding="utf-8") as file:
                texts.append(file.read())
        first, second = texts
        self.assertEqual(first, second)
        self.assertTrue(first.startswith("before\n<!-- figures: begin -->\n\nMeasured on "))
        self.assertTrue(first.endswith("\n<!-- figures: end -->\nafter\n"))
        self.assertIn("| through 1 batch 32 | M/s | 58.0 (58.0 to 58.0) | ", first)
        self.assertIn("| through pinned | M/s | 29.0 (29.0 to 29.0) | std-pq 20.0, mutex-heap 10.0 "
                      "| 1.45 |", first)
        self.assertIn("**not met**", first)
        self.assertNotIn("former figures", first)
        with open(pages[0], "w", encoding="utf-8") as file:
            file.write("no marks\n")
        answer = self.run_it("--from", self.path("j"), "--document", pages[0])
        self.assertEqual(answer.returncode, 1)
        self.assertIn("has not the marks", answer.stderr)

    def test_the_list_runs_nothing(self):
        answer = self.run_it("--list")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("libdue      a fake  [cancel virtual topics payload]", answer.stdout)
        self.assertIn("group: through 2\n", answer.stdout)

    def test_wrong_usage_ends_with_2(self):
        for words in (["--workload", "walk"], ["--subject", "nobody"], ["--group", "x"],
                      ["--runs", "0"], ["--what"], ["--json", self.path("no/such/place"),
                                                    "--tiny", "--group", "enqueue 1"]):
            self.assertEqual(self.run_it(*words).returncode, 2, words)
        answer = self.run_it("--tiny", build=self.path("none"))
        self.assertEqual(answer.returncode, 2)
        self.assertIn("build it with: cmake --preset release", answer.stderr)

    def test_it_finds_the_build_it_lies_in(self):
        link = self.path("bench/run")
        os.symlink(os.path.join(BENCH, "run"), link)
        with open(self.path("CMakeCache.txt"), "w", encoding="utf-8") as file:
            file.write("CMAKE_BUILD_TYPE:STRING=Release\n")
        answer = self.run_it("--list", build="", program=link)
        self.assertEqual(answer.returncode, 0, answer.stderr)


class Around(unittest.TestCase):
    def test_neighbours_are_what_is_busy_and_not_ours(self):
        before, after = (0.0, 10.0, 2.0), (10.0, 20.0, 6.0)
        self.assertEqual(environment.neighbours_percent(before, after, 2), 30.0)
        self.assertEqual(environment.neighbours_percent(before, (10.0, 13.0, 6.0), 2), 0.0)
        self.assertIsNone(environment.neighbours_percent((0, None, 0), after, 2))
        self.assertIsNone(environment.neighbours_percent(before, (0.1, 11.0, 2.0), 2))

    def test_a_foreign_program_is_built_when_its_sources_are_newer(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "rivals", "go")
            os.makedirs(source)
            script = os.path.join(source, "build")

            def build(text, allowed=True):
                with open(script, "w", encoding="utf-8") as file:
                    file.write(text)
                return programs.build_foreign(folder, folder, "go", allowed, lambda text: None)

            good = 'echo x >"$1/bench_go"\n'
            program, _ = build(good)
            self.assertTrue(os.path.isfile(program))
            os.utime(script, (1, 1))
            os.utime(source, (1, 1))
            same = programs.build_foreign(folder, folder, "go", False, self.fail)
            self.assertEqual(same, (program, ""))
            os.remove(program)
            self.assertEqual(build("echo no go here >&2\nexit 3\n"), (None, "no go here"))
            self.assertIn("does not compile: oops", build("echo oops >&2\nexit 1\n")[1])
            self.assertIn("not built", build(good, allowed=False)[1])

    def test_on_a_terminal_progress_is_one_line(self):
        class Terminal(list):
            def isatty(self):
                return True

            def write(self, text):
                self.append(text)

            def flush(self):
                pass

        stream = Terminal()
        progress = Progress([], 5, {}, stream)
        progress.show("x" * 200)
        self.assertLess(len("".join(stream)), 110)
        self.assertNotIn("\n", "".join(stream))
        progress.erase()
        self.assertTrue("".join(stream).endswith("\r\033[K"))


if __name__ == "__main__":
    unittest.main()
