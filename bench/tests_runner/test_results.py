"""What the runs of a group come to; tables, records and pictures of it."""

import csv
import json
import os
import shutil
import tempfile
import unittest

from support import group, result, went
from runner import cell, charts, records, results, table


def row(made, label):
    return next(one for one in made["rows"] if one["label"] == label)


COUNTED = {("enqueue", "libdue"): 400.0, ("enqueue", "std-pq"): 200.0, ("hold", "libdue"): 900.0}


class Results(unittest.TestCase):
    def test_medians_and_ratios_are_those_of_rounds(self):
        made = result("g", {"libdue": [20, 30, 100], "std-pq": [10, 10, 100],
                            "limit": [40, 40, 400]})
        ours = row(made, "libdue")
        self.assertEqual((ours["median"], ours["p10"], ours["p90"]), (30, 22, 86))
        self.assertEqual(ours["of_best"], 2)
        self.assertEqual(ours["of_limit"], 0.5)
        self.assertEqual(row(made, "std-pq")["of_best"], 1)
        self.assertEqual(made["errors"], [])

    def test_less_is_better_where_it_costs(self):
        made = result("g", {"libdue": [50], "a": [100], "b": [200], "limit": [25]}, unit="ns")
        self.assertEqual(row(made, "libdue")["of_best"], 2)
        self.assertEqual(row(made, "b")["of_best"], 0.5)
        self.assertEqual(row(made, "libdue")["of_limit"], 0.5)
        self.assertEqual(row(made, "libdue")["best_rival"], "a")

    def test_neither_libdue_nor_a_limit_nor_a_pinned_one_is_the_best_rival(self):
        made = result("g", {"libdue": [5], "libdue batch 32": [50], "limit": [99], "a pin": [40],
                            "b": [1]})
        self.assertEqual(row(made, "libdue")["best_rival"], "b")

    def test_without_the_cell_only_the_queue_is_compared(self):
        made = result("g", {"libdue": [100.0, 90.0], "a": [60.0, 60.0], "empty": [20.0, 10.0]},
                      unit="ns")
        self.assertEqual(row(made, "libdue")["net_ns"], 80.0)
        self.assertAlmostEqual(row(made, "libdue")["net_of_best"], (40 / 80 + 50 / 80) / 2)
        self.assertEqual(row(made, "libdue")["best_rival"], "a")
        self.assertEqual(made["errors"], [])
        made = result("g", {"libdue": [10.0], "a": [20.0], "empty": [50.0]})
        self.assertAlmostEqual(row(made, "libdue")["net_ns"], 80.0)
        made = result("g", {"libdue": [10.0], "rust-a": [20.0], "empty": [50.0]})
        self.assertNotIn("net_ns", row(made, "rust-a"))
        self.assertIsNone(row(made, "libdue")["net_of_best"])

    def test_jobs_are_held_to_the_limit_of_lines(self):
        made = result("g", {"libdue": [5], "limit": [100], "limit line 64": [50]})
        self.assertEqual(row(made, "libdue")["of_limit"], 0.1)

    def test_a_batch_is_held_to_the_limit_of_batches(self):
        made = result("g", {"libdue": [5], "libdue batch 32": [50], "limit": [10],
                            "limit batch 32": [200]})
        self.assertEqual(row(made, "libdue")["of_limit"], 0.5)
        self.assertEqual(row(made, "libdue batch 32")["of_limit"], 0.25)

    def test_a_job_lost_by_one_is_an_error_of_the_group(self):
        made = result("g", {"libdue": [5], "a": [5], "b": [5]},
                      fields={"b": {"count": 999, "hash": "fe"}})
        self.assertEqual(len(made["errors"]), 1)
        self.assertIn("b: 999 jobs, hash fe", made["errors"][0])
        self.assertIn("libdue, a: 1000 jobs, hash ff", made["errors"][0])

    def test_a_hash_that_changes_from_round_to_round_is_an_error(self):
        made = results.summary(group("g", "libdue"),
                               {"libdue": [went(1), went(1, hash="00")]}, [1], 1)
        self.assertIn("not all did the same work", made["errors"][0])

    def test_one_bad_round_spoils_the_row(self):
        outcomes = {"libdue": [went(1), cell.outcome("error", "exit status 1: lost", 1)],
                    "a": [went(1), went(1)]}
        made = results.summary(group("g", "libdue a"), outcomes, [1], 1)
        self.assertEqual(row(made, "libdue")["status"], "error")
        self.assertEqual(made["errors"], ["g: libdue: exit status 1: lost"])
        self.assertIsNone(row(made, "libdue").get("median"))

    def test_busy_neighbours_mark_the_group(self):
        outcomes = {"libdue": [went(1)]}
        for percent, marked in ((9.0, False), (11.0, True), (None, False)):
            made = results.summary(group("g", "libdue"), outcomes, [percent], percent)
            self.assertEqual(made["disturbed"], marked)


class Written(unittest.TestCase):
    def setUp(self):
        self.made = result("enqueue 1", {"std-pq": [10.0], "libdue": [30.0], "tbb": [20.0],
                                         "limit": [90.0], "gone": None})

    def test_the_table_has_libdue_first_then_from_the_best_to_the_worst(self):
        lines = table.text(self.made).splitlines()
        names = [line.split()[0] for line in lines[3:7]]
        self.assertEqual(names, ["libdue", "tbb", "std-pq", "limit"])
        self.assertIn("more is better; neighbours 1 %", lines[1])
        self.assertIn("not here: gone: no reason", lines[7])
        self.assertIn("| **libdue** | 30.0 |", table.markdown(self.made))

    def test_a_group_that_nobody_could_do_is_a_table_too(self):
        made = result("g", {"libdue": None})
        self.assertIn("nobody could", table.text(made))
        self.assertIn("nobody could", table.markdown(made))

    def test_numbers_have_three_digits(self):
        said = [table.number(value) for value in (None, 0, 1234.5, 12.34, 1.234, 0.01234)]
        self.assertEqual(said, ["-", "0", "1234", "12.3", "1.23", "0.0123"])

    def test_json_and_csv_have_every_row(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a.json", "a.csv")]
            files = records.Files(*paths, {"date": "today"})
            files.add(self.made)
            files.close()
            with open(paths[0], encoding="utf-8") as file:
                things = [json.loads(text) for text in file]
            with open(paths[1], encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual(things[0], {"environment": {"date": "today"}})
        self.assertEqual([one["label"] for one in things[1:]],
                         ["std-pq", "libdue", "tbb", "limit", "gone"])
        self.assertEqual(things[2]["median"], 30.0)
        self.assertEqual(things[2]["hash"], "ff")
        self.assertEqual(things[5]["status"], "cannot")
        self.assertEqual(rows[1]["median"], "30.0")
        self.assertEqual(rows[1]["params"], "jobs=1000")


class Pictures(unittest.TestCase):
    def setUp(self):
        late = {"p10_us": 20, "p90_us": 60, "p99_us": 90}
        self.all = {one["group"]: one for one in (
            result("enqueue 1", {"libdue": [30.0], "std-pq": [10.0], "limit": [90.0]}),
            result("enqueue 2", {"libdue": [20.0], "std-pq": [11.0]}),
            result("hold 1000", {"libdue": [50.0]}, unit="ns"),
            result("lateness 1", {"libdue": [30.0], "std-pq": [40.0]}, unit="us",
                   fields={name: {"more": late} for name in ("libdue", "std-pq")}),
            result("memory 32", {"libdue": [80.0], "std-pq": [20.0]}, unit="bytes"),
            result("topics 1000", {"libdue": None}))}

    def test_there_is_one_for_whatever_was_measured(self):
        names = {os.path.basename(path) for path in charts.scripts(self.all, "d")}
        self.assertEqual(names, {"enqueue.svg", "lateness-1.svg", "memory-32.svg",
                                 "breadth.svg"})
        self.assertEqual(charts.scripts({}, "d"), {})

    def test_instructions_stand_beside_the_curves_and_in_a_picture(self):
        scripts = charts.scripts(self.all, "d", COUNTED)
        self.assertIn('"libdue  400 instr."', scripts["d/enqueue.svg"])
        self.assertIn('"limit"', scripts["d/enqueue.svg"])
        self.assertIn("hold: libdue", scripts["d/instructions.svg"])

    @unittest.skipUnless(shutil.which("gnuplot"), "there is no gnuplot")
    def test_gnuplot_draws_them(self):
        said = []
        with tempfile.TemporaryDirectory() as folder:
            charts.draw(self.all, COUNTED, folder, said.append)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.assertIn("libdue", file.read())
            self.assertEqual(len(os.listdir(folder)), 5)
        self.assertTrue(all(text.startswith("drew ") for text in said), said)

    def test_labels_are_moved_apart(self):
        moved = charts.spread_labels([0.5, 0.5, 0.99, 1.0], 0.1)
        self.assertEqual([round(one, 3) for one in moved], [0.5, 0.6, 0.9, 1.0])


if __name__ == "__main__":
    unittest.main()
