"""Whether libdue reaches what it must: each target, its figure, its bound."""

from runner import targets
from runner.results import best
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
        if one["params"].get("pin") and not result["params"].get("pin"):
            return False
        if choice == targets.IDS:
            return "cancel" in abilities.get(one["subject"], ())
        return choice != targets.VALUES or one["subject"] in targets.PLAIN_VALUES

    if choice in (targets.ANY, targets.IDS, targets.VALUES):
        return best(result["rows"], "value" if series == "cost" else series, allowed=allowed)
    found = by_label(result).get(choice)
    return found if found and found["status"] == "ok" else None


def verdict(target, state, said, figure=(None, None, None), versus=""):
    """A line of the check."""
    return {"text": target.text, "state": state, "said": said, "figure": figure,
            "sign": target.sign, "bound": target.bound, "versus": versus}


def judge(target, results, abilities):
    """Is this target met?"""
    group, label, series = target.ours
    ours = by_label(results.get(group)).get(label)
    if ours is None:
        return verdict(target, OPEN, f"{group} was not run with {label}")
    if ours["status"] != "ok":
        return verdict(target, MISSED, f"{label}: {ours['reason']}")
    values = series_of(ours, series)
    if values is None:
        return verdict(target, MISSED, f"{label} says nothing of {series}")
    versus = ""
    if target.theirs:
        other_group, choice, other_series = target.theirs
        other = rival(results[other_group], choice, other_series, abilities) \
            if other_group in results else None
        theirs = series_of(other, other_series) if other else None
        if theirs is None:
            return verdict(target, OPEN, f"nothing to compare with: {choice}")
        versus = other["label"]
        values = ratios(values, theirs)
    figure = spread(values)
    if figure[0] is None:
        return verdict(target, OPEN, "no round has both", versus=versus)
    good = figure[0] >= target.bound if target.sign == ">=" else figure[0] <= target.bound
    return verdict(target, MET if good else MISSED, "", figure, versus)


def judge_all(size, results, abilities):
    """Every target of this size.  @results: {group: result}."""
    return [judge(one, results, abilities) for one in targets.every_target(size)]


def line(one):
    """A verdict as text."""
    if one["figure"][0] is None:
        return f"  {one['state']:12}  {one['text']}: {one['said']}"
    middle, low, high = one["figure"]
    versus = f" against {one['versus']}" if one["versus"] else ""
    return f"  {one['state']:12}  {one['text']}: {number(middle)} ({number(low)} .. " \
           f"{number(high)}), bound {one['sign']} {number(one['bound'])}{versus}"


def report(verdicts):
    """The check as text, and whether a target was missed."""
    counts = {state: sum(one["state"] == state for one in verdicts)
              for state in (MET, OPEN, MISSED)}
    lines = ["Targets: ratio of each round, its median (p10 .. p90); those not met come last"]
    lines += [line(one) for state in counts for one in verdicts if one["state"] == state]
    lines.append(", ".join(f"{count} {state}" for state, count in counts.items()))
    return "\n".join(lines) + "\n", counts[MISSED] > 0
