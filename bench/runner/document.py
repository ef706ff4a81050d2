"""The figures of a run as docs/performance.md shows them: written between two marks of the page."""

import textwrap

from runner.check import MET, counts
from runner.results import best, is_libdue, is_limit, on_terms
from runner.statistic import more_is_better
from runner.table import number

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

HEAD = ("cell", "unit", "libdue", "the best two others", "libdue / best", "less cell", "limit")
TARGETS = ("target", "ratio", "p10 to p90", "owed", "goal", "less cell", "against", "")


def table(head, rows):
    """A table of markdown: lines."""
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + \
        ["| " + " | ".join(one) + " |" for one in rows]


def best_two(result):
    """The rivals that come first, as text."""
    rows = [one for one in result["rows"] if on_terms(one, result["params"])]
    first = best(rows)
    if first is None:
        return "none"
    second = best([one for one in rows if one is not first])
    return ", ".join(f"{one['label']} {number(one['median'])}" for one in (first, second) if one)


def inverse(value, unit):
    """How many times as good, as the ratio of two figures in their unit."""
    return value if value is None or more_is_better(unit) else 1 / value


def plain(value):
    """A figure, or nothing."""
    return "" if value is None else number(value)


def limits(result, params):
    """What the machine does at most on the same terms; for cancel in dense words, and in lines."""
    def terms(of):
        """What must be the same."""
        batch = 0 if result["workload"] == "cancel" else of.get("batch", 0)
        return batch, of.get("spin_ns", 0)

    return " / ".join(number(one["median"]) for one in result["rows"] if one["status"] == "ok"
                      and is_limit(one["label"]) and terms(one["params"]) == terms(params))


def rows_of(result):
    """A row for each of libdue's: what the page says of it."""
    for one in result["rows"]:
        if one["status"] == "ok" and is_libdue(one["label"]):
            what = " ".join(one["label"].split()[1:])
            yield (f"{result['group']} {what}".strip(), one["unit"],
                   f"{number(one['median'])} ({number(one['p10'])} to {number(one['p90'])})",
                   best_two(result), plain(inverse(one["of_best"], one["unit"])),
                   plain(inverse(one.get("net_of_best"), one["unit"])),
                   limits(result, one["params"]))


def target_rows(verdicts):
    """A row for each target."""
    for one in verdicts:
        middle, low, high = one["figure"]
        spread = "" if low is None else f"{number(low)} to {number(high)}"
        state = "met" if one["state"] == MET else f"**{one['state'].lower()}**"
        yield (one["text"], plain(middle) or one["said"], spread,
               f"{one['sign']} {number(one['bound'])}", plain(one["goal"]), plain(one["net"]),
               one["versus"], state)


def instruction_rows(counted):
    """By workload, who needs how many instructions: rows.  @counted: {(workload, subject): n}."""
    subjects = list(dict.fromkeys(subject for _, subject in counted))
    for workload in dict.fromkeys(workload for workload, _ in counted):
        yield (workload, *(plain(counted.get((workload, subject))) for subject in subjects))


def figures(environment, results, parts, counted):
    """Everything between the marks, as text."""
    lines = textwrap.wrap(
        f"Measured on {environment['date'][:10]}: {environment['cpu']}, "
        f"{environment['cores']} cores, {environment['kernel']}, "
        f"{environment['compiler']}, load {environment['load']}.", 100) + [""]
    lines += table(HEAD, [row for one in results.values() for row in rows_of(one)])
    if counted:
        subjects = list(dict.fromkeys(subject for _, subject in counted))
        lines += ["", "Instructions of one operation, those of the cell included (\"empty\" is the "
                  "cell alone):", ""] + table(("", *subjects), instruction_rows(counted))
    for name, verdicts in parts.items():
        lines += ["", f"{name}: {counts(verdicts)}.", ""] + table(TARGETS, target_rows(verdicts))
    return "\n".join(lines) + "\n"


def rewrite(path, text):
    """Put the text between the marks of a page; ValueError if they are not there."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"{path} has not the marks {BEGIN} and {END}")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
