"""What changed between two runs."""

import contextlib
import io
import os
import tempfile
import unittest

from support import result
from runner import comparing, records

SURROUNDINGS = {"date": "d", "commit": "c", "cpu": "x"}


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, *made):
        path = os.path.join(self.folder, name)
        files = records.Files(path, None, SURROUNDINGS)
        for one in made:
            files.add(one)
        files.close()
        return path

    def compare(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = comparing.main(list(words))
        return status, out.getvalue() + err.getvalue()

    def test_only_what_is_more_than_noise_is_said(self):
        base = self.write("a", result("g", {"libdue": [10, 11, 12], "a": [10, 11, 12]}))
        new = self.write("b", result("g", {"libdue": [20, 22, 24], "a": [10.5, 11.5, 12]}))
        status, text = self.compare(base, new)
        self.assertEqual(status, 0)
        self.assertIn("better  2.00 (", text)
        self.assertIn("w libdue: 11.0 -> 22.0 M/s", text)
        self.assertIn("2 cells in both, 1 changed", text)
        self.assertNotIn("w a:", text)
        self.assertIn("together: 1.05 times", text)

    def test_a_cost_that_grew_is_worse(self):
        base = self.write("a", result("g", {"libdue": [10.0]}, unit="ns"))
        new = self.write("b", result("g", {"libdue": [20.0]}, unit="ns"))
        self.assertIn("worse   0.50 (", self.compare(base, new)[1])

    def test_small_changes_are_noise_however_narrow_the_runs(self):
        base = self.write("a", result("g", {"libdue": [100.0]}))
        new = self.write("b", result("g", {"libdue": [97.5]}))
        self.assertIn("0 changed", self.compare(base, new)[1])

    def test_libdue_alone_can_fail_a_comparison(self):
        base = self.write("a", result("g", {"libdue": [100.0], "a": [100.0]}))
        new = self.write("b", result("g", {"libdue": [88.0], "a": [50.0]}))
        self.assertEqual(self.compare(base, new, "--fail-worse", "10")[0], 1)
        self.assertEqual(self.compare(base, new, "--fail-worse", "15")[0], 0)
        self.assertEqual(self.compare(base, new)[0], 0)

    def test_cells_of_one_file_alone_are_counted(self):
        base = self.write("a", result("g", {"libdue": [1.0]}), result("h", {"a": [1.0]}, live=1))
        new = self.write("b", result("g", {"libdue": [1.0]}), result("h", {"a": [1.0]}, live=2))
        self.assertIn("1 only in the first, 1 only in the second", self.compare(base, new)[1])

    def test_a_file_that_cannot_be_read_ends_with_2(self):
        good = self.write("a", result("g", {"libdue": [1.0]}))
        texts = {"b": "hello", "c": "[]", "d": "{}", "e": '{"status":"ok"}'}
        for name, text in texts.items():
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(self.compare(good, path)[0], 2, text)
        self.assertEqual(self.compare(good, good + "_not")[0], 2)


if __name__ == "__main__":
    unittest.main()
