"""Instructions beside those that are known."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  it finds the runner
from runner import counting

KNOWN = {"far": 600.0, "round": 2000.0}


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, value in (("KNOWN", os.path.join(folder.name, "known.txt")),
                            ("compiler_of", lambda build: "gcc 12")):
            patch = mock.patch.object(counting, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        counting.write_known(KNOWN, "gcc 12")

    def run_with(self, cells, *words):
        out = io.StringIO()
        with mock.patch.object(counting, "count", lambda build: cells), \
                mock.patch.object(counting.shutil, "which", lambda name: name), \
                contextlib.redirect_stdout(out):
            return counting.main(list(words)), out.getvalue()

    def test_as_many_or_fewer_pass(self):
        self.assertEqual(self.run_with({"far": 617.0, "round": 900.0})[0], 0)

    def test_over_three_percent_more_fail_and_are_named(self):
        status, text = self.run_with({"far": 619.0, "round": 2000.0})
        self.assertEqual(status, 1)
        self.assertIn("gone: far\n", text)

    def test_a_new_cell_and_one_that_is_gone_fail(self):
        self.assertEqual(self.run_with({**KNOWN, "hold": 1.0})[0], 1)
        self.assertEqual(self.run_with({"far": 600.0})[0], 1)

    def test_what_is_accepted_is_known_from_then_on(self):
        self.assertEqual(self.run_with({"far": 700.0}, "--accept")[0], 0)
        self.assertEqual(counting.read_known(), ({"far": 700.0}, "gcc 12"))
        self.assertEqual(self.run_with({"far": 700.0})[0], 0)

    def test_numbers_of_another_compiler_are_not_compared(self):
        counting.write_known(KNOWN, "clang 14")
        self.assertEqual(self.run_with({"far": 700.0})[0], counting.SKIPPED)


if __name__ == "__main__":
    unittest.main()
