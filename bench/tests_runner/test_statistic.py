"""Medians, percentiles, ratios."""

import unittest

import support  # noqa: F401
from runner import statistic


class Statistic(unittest.TestCase):
    def test_a_percentile_lies_between_its_neighbours_in_proportion(self):
        self.assertEqual(statistic.percentile([3, 1, 2], 50), 2)
        self.assertEqual(statistic.percentile([1, 2, 3, 4], 50), 2.5)
        self.assertAlmostEqual(statistic.percentile([10, 20], 10), 11)
        self.assertEqual(statistic.percentile([7], 90), 7)
        self.assertIsNone(statistic.percentile([], 50))

    def test_a_spread_leaves_out_what_was_not_measured(self):
        self.assertEqual(statistic.spread([None, 5, None]), (5, 5, 5))
        self.assertEqual(statistic.spread([None]), (None, None, None))
        self.assertEqual(statistic.spread(range(11)), (5, 1, 9))

    def test_ratios_are_those_of_the_same_round(self):
        self.assertEqual(statistic.ratios([2, None, 9], [1, 5, 3]), [2, 3])
        self.assertEqual(statistic.ratios([2], [0]), [])

    def test_an_advantage_is_above_one_where_we_are_better(self):
        self.assertEqual(statistic.advantages([20], [10], "M/s"), [2])
        self.assertEqual(statistic.advantages([20], [10], "ns"), [0.5])
        self.assertTrue(statistic.more_is_better("M pairs/s"))
        self.assertTrue(statistic.more_is_better("jobs/s"))
        self.assertFalse(statistic.more_is_better("ns a job"))


if __name__ == "__main__":
    unittest.main()
