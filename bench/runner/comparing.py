"""What changed by more than the noise between two files of bench/run --json."""

import argparse
import json
import math
import sys

from runner.results import is_libdue
from runner.statistic import more_is_better, percentile
from runner.table import number, params_text

NOISE = 0.03
STATUS_UNREADABLE = 2


def load(path):
    """The environment and {key: row} of a file; ValueError says what is wrong with it."""
    environment, rows = None, {}
    with open(path, encoding="utf-8") as file:
        for count, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                thing = json.loads(text)
            except ValueError:
                raise ValueError(f"line {count} is not JSON") from None
            if not isinstance(thing, dict):
                raise ValueError(f"line {count} is not an object")
            if "environment" in thing:
                environment = thing["environment"]
            elif thing.get("status") == "ok":
                rows[key(thing)] = thing
    if environment is None:
        raise ValueError("no environment in it: was it written by bench/run --json?")
    return environment, rows


def key(thing):
    """What makes two rows the same cell."""
    try:
        return thing["workload"], json.dumps(thing["params"], sort_keys=True), thing["subject"]
    except KeyError as error:
        raise ValueError(f"a row without {error.args[0]}") from None


def change(base, new):
    """How many times as good the new row is: (ratio, from, to), and is it more than noise?"""
    names = ("median", "p10", "p90")
    olds, news = ([one[name] for name in names] for one in (base, new))
    if min(olds + news) <= 0:
        return (1.0, 1.0, 1.0), False
    if more_is_better(new["unit"]):
        ratio = (news[0] / olds[0], news[1] / olds[2], news[2] / olds[1])
    else:
        ratio = (olds[0] / news[0], olds[1] / news[2], olds[2] / news[1])
    apart = news[1] > olds[2] or news[2] < olds[1]
    return ratio, apart and abs(ratio[0] - 1) > NOISE


def describe(base, new, ratio):
    """A changed row as a line."""
    word = "better" if ratio[0] > 1 else "worse"
    return f"{word:6}  {number(ratio[0])} ({number(ratio[1])} .. {number(ratio[2])})  " \
           f"{new['workload']} {new['subject']}: {number(base['median'])} -> " \
           f"{number(new['median'])} {new['unit']}  [{params_text(new['params'])}]"


def drift(ratios):
    """How the subjects other than libdue changed together: the machine rather than the code."""
    return math.exp(percentile([math.log(one) for one in ratios], 50)) if ratios else None


def compare(bases, news, fail_worse=None):
    """Lines that say what changed, and whether libdue is worse by more than allowed."""
    lines, others, failed = [], [], False
    common = [one for one in news if one in bases]
    for one in common:
        ratio, changed = change(bases[one], news[one])
        is_ours = is_libdue(news[one]["subject"])
        if not is_ours and ratio != (1.0, 1.0, 1.0):
            others.append(ratio[0])
        if changed:
            lines.append((ratio[0], describe(bases[one], news[one], ratio)))
            limit = 1 - fail_worse / 100 if fail_worse is not None else 0
            failed = failed or (is_ours and ratio[0] < limit)
    said = [line for _, line in sorted(lines)]
    said.append(f"{len(common)} cells in both, {len(lines)} changed by more than the noise; "
                f"{len(bases) - len(common)} only in the first, "
                f"{len(news) - len(common)} only in the second")
    moved = drift(others)
    if moved is not None:
        said.append(f"all subjects but libdue, together: {number(moved)} times as good: that much "
                    "is the machine")
    return said, failed


def main(words):
    """The command line: the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench/compare", description="Say what changed, by more than the noise, between two "
        "files that bench/run --json wrote: the intervals from p10 to p90 do not meet, and the "
        "medians are more than 3 %% apart.")
    parser.add_argument("base", metavar="BASE.json")
    parser.add_argument("new", metavar="NEW.json")
    parser.add_argument("--fail-worse", type=float, metavar="PERCENT",
                        help="exit with 1 if libdue became worse by more than that somewhere")
    options = parser.parse_args(words)
    loaded = []
    for path in (options.base, options.new):
        try:
            loaded.append(load(path))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"compare: {path}: {reason}", file=sys.stderr)
            return STATUS_UNREADABLE
    for (environment, _), name in zip(loaded, ("base", "new")):
        print(f"{name:4}  {environment['date']}  {environment['commit']}  {environment['cpu']}")
    lines, failed = compare(loaded[0][1], loaded[1][1], options.fail_worse)
    print("\n".join(lines))
    return 1 if failed else 0
