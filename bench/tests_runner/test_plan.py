"""The table of cells."""

import unittest

import support  # noqa: F401
from runner import plan, results, targets


class Plan(unittest.TestCase):
    def test_a_word_says_subject_and_parameters(self):
        made = plan.contender("libdue/batch=32/pin")
        self.assertEqual(made.subject, "libdue")
        self.assertEqual(made.params, {"batch": 32, "pin": True})
        self.assertEqual(made.label, "libdue batch 32 pin")

    def test_no_two_groups_have_one_name_and_no_two_contenders_one_label(self):
        for size in plan.SIZES:
            names = [one.name for one in plan.every_group(size)]
            self.assertEqual(len(names), len(set(names)))
            for one in plan.chosen(size):
                labels = [member.label for member in one.contenders]
                self.assertEqual(len(labels), len(set(labels)), one.name)

    def test_libdue_and_somebody_else_are_in_every_group(self):
        for size in plan.SIZES:
            for one in plan.chosen(size):
                subjects = {member.subject for member in one.contenders}
                self.assertTrue(subjects & set(results.LIBDUE), one.name)
                self.assertGreater(len(subjects), 1, one.name)

    def test_every_workload_is_in_every_size(self):
        workloads = {one.workload for one in plan.every_group("full")}
        self.assertEqual(len(workloads), 17)
        for size in ("tiny", "full"):
            self.assertEqual({one.workload for one in plan.chosen(size)}, workloads)

    def test_a_quick_run_is_a_part_of_a_check_and_that_of_a_full_run(self):
        def cells(groups):
            return {(one.name, member.label) for one in groups for member in one.contenders}

        quick = cells(plan.chosen("quick"))
        every = {one.name for one in plan.every_group("quick")}
        check = cells(plan.chosen("quick", needed=every))
        full = {(one.name, member.label) for one in plan.every_group("quick")
                for _, member in one.contenders}
        self.assertLess(quick, check)
        self.assertLess(check, full)

    def test_what_is_named_is_chosen(self):
        found = plan.chosen("quick", workloads=["hold"], subjects=["libdue", "java-delayqueue"])
        self.assertEqual({one.workload for one in found}, {"hold"})
        self.assertIn("java-delayqueue", {m.subject for one in found for m in one.contenders})
        self.assertEqual([one.name for one in plan.chosen("quick", names=["burst 4"])],
                         ["burst 4"])
        self.assertEqual(plan.chosen("quick", workloads=["none"]), [])

    def test_every_target_is_about_cells_that_a_full_check_runs(self):
        needed = targets.groups_needed("full")
        groups = {one.name: {member.label for member in one.contenders}
                  for one in plan.chosen("full", needed)}
        for target in targets.every_target("full"):
            for side in (target.ours, target.theirs):
                if side and side[0] != targets.COUNTED \
                        and side[1] not in targets.KINDS:
                    self.assertIn(side[1], groups[side[0]], target.text)


if __name__ == "__main__":
    unittest.main()
