"""One run of one cell, with a program that can go wrong in every way."""

import json
import os
import signal
import subprocess
import unittest
from unittest import mock

from support import FAKE, line
from runner import cell


class Parsing(unittest.TestCase):
    def test_a_good_line_is_taken(self):
        found, wrong = cell.parse(json.dumps(line(5.0)) + "\n", "w", "s")
        self.assertIsNone(wrong)
        self.assertEqual(found["value"], 5.0)

    def test_anything_else_is_refused_with_a_reason(self):
        good = line(5.0)
        bad = {
            "": "0 lines", "hello": "not JSON", "[1]": "not an object",
            json.dumps(good) + "\n" + json.dumps(good): "2 lines",
            json.dumps({**good, "value": None}): "called value",
            json.dumps({**good, "value": float("nan")}): "called value",
            json.dumps({**good, "value": True}): "called value",
            json.dumps({**good, "value": -1}): "wrong value",
            json.dumps({**good, "hash": 7}): "no hash",
            json.dumps({**good, "more": []}): "wrong value",
            json.dumps({**good, "subject": "t"}): "another",
        }
        for text, reason in bad.items():
            found, wrong = cell.parse(text, "w", "s")
            self.assertIsNone(found, text)
            self.assertIn(reason, wrong, text)

    def test_parameters_become_options(self):
        self.assertEqual(cell.arguments("hold", "x", {"spread_ns": 0, "pin": True, "no": False}),
                         ["hold", "--subject", "x", "--spread-ns", "0", "--pin"])


class Running(unittest.TestCase):
    def run_with(self, how, timeout=20):
        with mock.patch.dict(os.environ, {"FAKE_WRONG": f"libdue:{how}"}):
            return cell.run(FAKE, "enqueue", "libdue", {"jobs": 10}, timeout)

    def test_what_went_well(self):
        found = self.run_with("")
        self.assertEqual((found["status"], found["reason"]), ("ok", ""))
        self.assertEqual(found["line"]["count"], 10)

    def test_what_went_wrong_is_an_error_with_its_reason(self):
        for how, reason in (("status", "exit status 1: job 7 came out twice"),
                            ("crash", "ended by signal 6"), ("garbage", "not JSON")):
            found = self.run_with(how)
            self.assertEqual(found["status"], "error")
            self.assertIn(reason, found["reason"])

    def test_a_signal_that_comes_while_a_program_is_started_ends_that_too(self):
        started = []

        def start(*words, **how):
            started.append(really(*words, **how))
            os.kill(os.getpid(), signal.SIGTERM)
            return started[0]

        def stop(*_):
            raise KeyboardInterrupt

        really, before = subprocess.Popen, signal.signal(signal.SIGTERM, stop)
        try:
            with mock.patch.object(subprocess, "Popen", start):
                self.assertRaises(KeyboardInterrupt, self.run_with, "hang")
            self.assertEqual(started[0].poll(), -signal.SIGKILL)
        finally:
            signal.signal(signal.SIGTERM, before)
            started[0].kill()
            started[0].wait()

    def test_a_program_that_hangs_is_ended(self):
        found = self.run_with("hang", timeout=0.5)
        self.assertEqual(found["status"], "error")
        self.assertIn("more than 0.5 s", found["reason"])
        self.assertLess(found["seconds"], 10)

    def test_exit_status_3_is_no_error(self):
        found = self.run_with("cannot")
        self.assertEqual((found["status"], found["reason"]), ("cannot", "not today"))

    def test_a_program_that_is_not_there_is_an_error(self):
        found = cell.run(FAKE + "_not", "enqueue", "libdue", {})
        self.assertEqual(found["status"], "error")


if __name__ == "__main__":
    unittest.main()
