"""What the tests of the runner share: made-up runs, and the fake program."""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
FAKE = os.path.join(HERE, "fake_cell")
sys.path.insert(0, BENCH)

from runner import cell, plan, results  # noqa: E402

ABILITIES = {"libdue": ["cancel"], "mutex-heap": ["cancel"], "std-pq": [], "limit": []}


def line(value, unit="M/s", **fields):
    """A line as a program prints it."""
    made = {"workload": "w", "subject": "s", "value": value, "unit": unit, "count": 1000,
            "hash": "ff", "wall_s": 0.1, "cpu_s": 0.2, "voluntary": 3, "involuntary": 1,
            "more": {}}
    return {**made, **fields}


def went(value, unit="M/s", **fields):
    """A run of a cell that went well."""
    return cell.outcome("ok", "", 0.1, line(value, unit, **fields))


def group(name, words, workload="w", **params):
    """A group with these contenders."""
    made = plan.group(name, workload, words, **{"jobs": 1000, **params})
    return made._replace(contenders=[member for _, member in made.contenders])


def result(name, values, unit="M/s", fields=None, **params):
    """The result of a group: {label: values by round}; None stands for "cannot"."""
    words = " ".join(label.replace(" ", "/", 1).replace(" ", "=") for label in values)
    made = group(name, words, **params)
    fields = fields or {}
    outcomes = {}
    for label, rounds in values.items():
        outcomes[label] = [cell.outcome("cannot", "no reason", 0)] if rounds is None else \
            [went(value, unit, **fields.get(label, {})) for value in rounds]
    return results.summary(made, outcomes, [1.0], 1.0)
