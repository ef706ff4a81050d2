"""Whether libdue reaches what it must: each target, its figure, its bound."""

from runner import targets
from runner.results import best, on_terms
from runner.statistic import more_is_better, ratios, spread
from runner.table import number

MET, MISSED, OPEN = "met", "NOT MET", "not measured"


def by_label(result):
    """The rows of a group by their labels."""
    return {one["label"]: one for one in result["rows"]} if result else {}


def series_of(one, name):
    """A row's values by round; "cost" is the value where less is better, else its inverse."""
    if name != "cost":
        return one["series"].get(name)
    values = one["series"]["value"]
    if not more_is_better(one["unit"]):
        return values
    return [1 / value if value else None for value in values]


def rival(result, choice, series, abilities):
    """The row that a target compares with: by its label, or the best of a kind; or None."""
    def allowed(one):
        """May this row be chosen?"""
        if not on_terms(one, result["params"]):
            return False
        if choice == targets.IDS:
            return "cancel" in abilities.get(one["subject"], ())
        return choice not in targets.MEMBERS or one["subject"] in targets.MEMBERS[choice]

    if choice in targets.KINDS:
        return best(result["rows"], "value" if series == "cost" else series, allowed=allowed)
    found = by_label(result).get(choice)
    return found if found and found["status"] == "ok" else None


def verdict(target, state, said, figure=(None, None, None), versus="", net=None):
    """A line of the check.  @net: the ratio without the cell's own cost, where it is known."""
    return {"text": target.text, "state": state, "said": said, "figure": figure,
            "sign": target.sign, "bound": target.bound, "goal": target.goal, "versus": versus,
            "net": net}


def reaches(target, figure, bound):
    """Is it good enough?"""
    return figure >= bound if target.sign == ">=" else figure <= bound


def net_ratio(target, ours, other):
    """The ratio of two rows of a group without the cell's own cost: its median, or None."""
    if not other or target.ours[0] != target.theirs[0] or target.ours[2] not in ("value", "cost"):
        return None
    both = [one["series"].get("net_ns") for one in (ours, other)]
    if None in both:
        return None
    over, under = both if target.sign == "<=" else reversed(both)
    return spread(ratios(over, under))[0]


def is_missing(reason):
    """Is it for want of a program, or of a server, that this was not run?"""
    return reason.startswith("absent: ") or reason.endswith(" is not installed")


def judge(target, results, abilities):
    """Is this target met?"""
    group, label, series = target.ours
    ours = by_label(results.get(group)).get(label)
    if ours is None:
        return verdict(target, OPEN, f"{group} was not run with {label}")
    if ours["status"] == "cannot" and is_missing(ours["reason"]):
        return verdict(target, OPEN, f"{label}: {ours['reason']}")
    if ours["status"] != "ok":
        return verdict(target, MISSED, f"{label}: {ours['reason']}")
    values = series_of(ours, series)
    if values is None:
        return verdict(target, MISSED, f"{label} says nothing of {series}")
    versus, net = "", None
    if target.theirs:
        other_group, choice, other_series = target.theirs
        other = rival(results[other_group], choice, other_series, abilities) \
            if other_group in results else None
        theirs = series_of(other, other_series) if other else None
        if theirs is None:
            return verdict(target, OPEN, f"nothing to compare with: {choice}")
        versus = other["label"]
        values = ratios(values, theirs)
        net = net_ratio(target, ours, other)
    figure = spread(values)
    if figure[0] is None:
        return verdict(target, OPEN, "no round has both", versus=versus)
    good = reaches(target, figure[0], target.bound)
    return verdict(target, MET if good else MISSED, "", figure, versus, net)


def judge_all(size, results, abilities):
    """Every target of this size, in two parts.  @results: {group: result}."""
    return {"Owed": [judge(one, results, abilities) for one in targets.owed()],
            "Kept": [judge(one, results, abilities) for one in targets.kept(size)]}


def line(one):
    """A verdict as text."""
    if one["figure"][0] is None:
        return f"  {one['state']:12}  {one['text']}: {one['said']}"
    middle, low, high = one["figure"]
    versus = f", against {one['versus']}" if one["versus"] else ""
    goal = f", goal {number(one['goal'])}" if one["goal"] else ""
    net = f"; without the cell {number(one['net'])}" if one["net"] else ""
    return f"  {one['state']:12}  {one['text']}: {number(middle)} ({number(low)} .. " \
           f"{number(high)}), owed {one['sign']} {number(one['bound'])}{goal}{versus}{net}"


def counts(verdicts):
    """How many are met and not, for people."""
    return ", ".join(f"{sum(one['state'] == state for one in verdicts)} {state}"
                     for state in (MET, OPEN, MISSED))


def report(parts):
    """The check as text, and whether a target was missed."""
    lines = ["Targets: the ratio of each round, its median (p10 .. p90)"]
    for name, verdicts in parts.items():
        lines += [f"{name}: {counts(verdicts)}"] + [line(one) for one in verdicts]
    every = [one for verdicts in parts.values() for one in verdicts]
    return "\n".join(lines) + "\n", any(one["state"] == MISSED for one in every)
