"""Whether targets are met."""

import unittest

from support import ABILITIES, result
from runner import check, targets
from runner.targets import ANY, IDS, LOGGED, REDIS, VALUES, Target


def judged(target, *made):
    return check.judge(target, {one["group"]: one for one in made}, ABILITIES)


def at_least(bound, theirs, label="libdue"):
    return Target("t", ("g", label, "value"), ("g", theirs, "value"), ">=", bound)


class Check(unittest.TestCase):
    def test_the_median_of_the_ratios_of_rounds_counts(self):
        made = result("g", {"libdue": [10, 30, 40], "std-pq": [10, 20, 20]})
        self.assertEqual(judged(at_least(1.5, ANY), made)["state"], check.MET)
        self.assertEqual(judged(at_least(1.51, ANY), made)["state"], check.MISSED)
        self.assertEqual(judged(at_least(1.5, ANY), made)["figure"][0], 1.5)

    def test_the_best_is_chosen_among_those_meant(self):
        made = result("g", {"libdue": [10], "std-pq": [30], "mutex-heap": [20], "std-pq pin": [99]})
        versus = [judged(at_least(1, choice), made)["versus"]
                  for choice in (ANY, IDS, VALUES, "std-pq pin")]
        self.assertEqual(versus, ["std-pq", "mutex-heap", "std-pq", "std-pq pin"])

    def test_the_least_processor_time_is_the_best(self):
        fields = {"libdue": {"cpu_s": 0.08}, "std-pq": {"cpu_s": 0.4}, "tbb": {"cpu_s": 0.1}}
        made = result("g", {"libdue": [1], "std-pq": [9], "tbb": [2]}, fields=fields)
        target = Target("t", ("g", "libdue", targets.CPU), ("g", ANY, targets.CPU), "<=", 0.8)
        found = judged(target, made)
        self.assertEqual(found["versus"], "tbb")
        self.assertAlmostEqual(found["figure"][0], 0.8)

    def test_a_cost_is_the_inverse_of_a_rate(self):
        target = Target("t", ("g", "libdue", "cost"), ("g", ANY, "cost"), "<=", 1.3)
        rate = result("g", {"libdue": [10], "tbb": [12], "std-pq": [5]})
        cost = result("g", {"libdue": [15], "tbb": [10], "std-pq": [50]}, unit="ns")
        self.assertAlmostEqual(judged(target, rate)["figure"][0], 1.2)
        self.assertEqual(judged(target, rate)["versus"], "tbb")
        self.assertEqual(judged(target, cost)["state"], check.MISSED)
        self.assertEqual(judged(target, cost)["figure"][0], 1.5)

    def test_a_figure_may_stand_alone_or_be_held_to_another_group(self):
        alone = Target("t", ("m", "libdue", "value"), None, "<=", 88)
        made = result("m", {"libdue": [81.0]}, unit="bytes")
        self.assertEqual(judged(alone, made)["state"], check.MET)
        other = Target("t", ("a", "libdue", "value"), ("b", "limit", "value"), ">=", 0.3)
        two = (result("a", {"libdue": [25]}), result("b", {"limit": [77]}))
        self.assertAlmostEqual(judged(other, *two)["figure"][0], 25 / 77)
        self.assertEqual(judged(other, two[0])["state"], check.OPEN)

    def test_libdue_that_cannot_has_missed_and_a_rival_that_is_absent_leaves_open(self):
        made = result("g", {"libdue": None, "std-pq": [1]})
        self.assertEqual(judged(at_least(1, ANY), made)["state"], check.MISSED)
        made = result("g", {"libdue": [1], "std-pq": None})
        self.assertEqual(judged(at_least(1, ANY), made)["state"], check.OPEN)
        self.assertEqual(judged(at_least(1, ANY))["state"], check.OPEN)

    def test_libdue_that_is_not_there_leaves_open(self):
        made = result("g", {"libdue": None, "std-pq": [1]})
        for reason in ("absent: bench_shared_cell: it is not in build",
                       "bench: redis-server is not installed"):
            made["rows"][0]["reason"] = reason
            found = judged(at_least(1, ANY), made)
            self.assertEqual(found["state"], check.OPEN)
            self.assertIn(reason, found["said"])

    def test_rivals_of_a_shared_queue_are_those_on_redis_or_the_one_with_a_log(self):
        made = result("g", {"libdue-shared": [100], "libdue-shared pin": [500], "asynq": [10],
                            "bullmq": [20], "bullmq pin": [90], "beanstalkd": [50]}, unit="jobs/s")
        for choice, versus, figure in ((REDIS, "bullmq", 5), (LOGGED, "beanstalkd", 2)):
            found = judged(at_least(figure, choice, "libdue-shared"), made)
            self.assertEqual((found["versus"], found["figure"][0]), (versus, figure))
            self.assertEqual(found["state"], check.MET)
        made = result("g", {"libdue-shared": [100], "asynq": None, "bullmq": None,
                            "beanstalkd": [50]}, unit="jobs/s")
        self.assertEqual(judged(at_least(1, REDIS, "libdue-shared"), made)["state"], check.OPEN)

    def test_without_the_cell_the_ratio_is_that_of_what_the_queues_take(self):
        made = result("g", {"libdue": [100.0], "std-pq": [60.0], "empty": [20.0]}, unit="ns")
        target = Target("t", ("g", "libdue", "cost"), ("g", ANY, "cost"), "<=", 1.3, 1.0)
        found = judged(target, made)
        self.assertAlmostEqual(found["figure"][0], 100 / 60)
        self.assertAlmostEqual(found["net"], 2.0)
        self.assertIn("owed <= 1.30, goal 1.00, against std-pq; without the cell 2.00",
                      check.line(found))
        made = result("g", {"libdue": [10.0], "std-pq": [20.0], "empty": [40.0]})
        found = judged(at_least(1, ANY), made)
        self.assertAlmostEqual(found["net"], 25 / 75)

    def test_a_group_on_one_core_is_compared_on_that_core(self):
        made = result("g", {"libdue": [10], "std-pq": [30]}, pin=True)
        self.assertEqual(judged(at_least(0.3, ANY), made)["versus"], "std-pq")

    def test_the_report_fails_if_one_is_missed(self):
        made = result("g", {"libdue": [10], "std-pq": [30]})
        for bound, missed in ((0.3, False), (0.5, True)):
            text, failed = check.report({"Owed": [judged(at_least(bound, ANY), made)]})
            self.assertEqual(failed, missed)
            self.assertIn("1 NOT MET" if missed else "1 met, 0 not measured, 0 NOT", text)

    def test_there_are_targets_for_each_row_of_the_table_and_the_general_rule(self):
        texts = [one.text for one in targets.every_target("full")]
        self.assertEqual(len(texts), len(set(texts)))
        for word in ("enqueue, 1 producer, equal", "enqueue, 64", "enqueue by 32",
                     "through at once, 64/64", "through at once, one core", "through by 32, 8/8",
                     "through with delays, 8/8", "through with delays, one core", "hold, 1e7",
                     "hold, 1e5 waiting, equal", "timeout pairs, 10,000 live, on 4",
                     "cancel at random, by 32", "lateness p50 with spin_ns", "burst of 100, 4",
                     "slow consumer, 8", "a look with nothing due", "instructions: timeout pair",
                     "put in by 4 and drained", "reschedule", "memory", "lateness p50:",
                     "shared queue, put by 256, four callers: beside the best other on Redis",
                     "shared queue, put by 256, four callers: beside beanstalkd",
                     "shared queue, claim and ack, 100 ahead, 8 consumers in 4 processes: beside b",
                     "shared queue, put by 256, four callers: jobs/s", "shared queue, lateness p99",
                     "shared queue, claim and ack, 100 ahead, 8 consumers in 4 processes: jobs/s",
                     "shared queue: processor time of the server for a job's whole life",
                     "hand-over", "topics 1000", "mixed 90", "payload 4096"):
            self.assertTrue(any(text.startswith(word) for text in texts), word)


if __name__ == "__main__":
    unittest.main()
