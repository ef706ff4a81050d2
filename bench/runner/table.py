"""The results as text and as markdown."""

from runner.results import DISTURBED_PERCENT, is_empty, is_libdue, is_limit
from runner.statistic import more_is_better

HEAD = ("subject", "median", "p10 .. p90", "cpu us/job", "switches/1000", "x best rival",
        "of limit", "ns less cell", "x best less cell")


def number(value):
    """A figure with about three digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def params_text(params):
    """Parameters for people."""
    return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in params.items())


def ordered(result):
    """libdue's rows, then the others from the best to the worst, then the limits and the empty
    cell."""
    sign = -1 if more_is_better(result["unit"]) else 1

    def place(one):
        """What a row is sorted by."""
        rank = 0 if is_libdue(one["label"]) else 2 if is_limit(one["label"]) \
            else 3 if is_empty(one["label"]) else 1
        return (rank, sign * one["median"], one["label"])

    return sorted((one for one in result["rows"] if one["status"] == "ok"), key=place)


def cells(one):
    """The columns of a row."""
    series = one["series"]
    middle = {name: sorted(value for value in series[name] if value is not None)
              for name in ("cpu_us_job", "switches_1000")}
    middle = {name: values[len(values) // 2] for name, values in middle.items()}
    return (one["label"], number(one["median"]), f"{number(one['p10'])} .. {number(one['p90'])}",
            number(middle["cpu_us_job"]), number(middle["switches_1000"]),
            number(one["of_best"]), number(one["of_limit"]), number(one.get("net_ns")),
            number(one.get("net_of_best")))


def heading(result):
    """Unit, direction and neighbours."""
    better = "more" if more_is_better(result["unit"]) else "less"
    unit = f"{result['unit']}, {better} is better" if result["unit"] else "nobody could"
    share = result["neighbours_percent"]
    said = "unknown" if share is None else f"{share:.0f} %"
    mark = f" (more than {DISTURBED_PERCENT} %: DISTURBED)" if result["disturbed"] else ""
    rounds = ""
    if result["disturbed"]:
        rounds = "; by round: " + " ".join("?" if one is None else f"{one:.0f}"
                                           for one in result["neighbours"])
    return unit, f"neighbours {said}{mark}{rounds}"


def extras(result):
    """The further medians of each row, such as percentiles: lines."""
    for one in ordered(result):
        more = {name: value for name, value in one["more"].items() if name != "cpu_us_per_job"}
        if more:
            said = "  ".join(f"{name} {number(value)}" for name, value in more.items())
            yield f"{one['label']}: {said}"


def notes(result):
    """Who could not, and what was wrong: lines."""
    reasons = {}
    for one in result["rows"]:
        if one["status"] == "cannot":
            reasons.setdefault(one["reason"], []).append(one["label"])
    for reason, labels in reasons.items():
        yield f"not here: {', '.join(labels)}: {reason}"
    for error in result["errors"]:
        yield f"ERROR {error}"


def text(result):
    """A block of text for a group."""
    unit, neighbours = heading(result)
    lines = [f"{result['workload']}  {params_text(result['params'])}",
             f"  {unit}; {neighbours}"]
    rows = [HEAD] + [cells(one) for one in ordered(result)]
    if len(rows) > 1:
        widths = [max(len(one[column]) for one in rows) for column in range(len(HEAD))]
        for one in rows:
            rest = [one[column].rjust(widths[column]) for column in range(1, len(HEAD))]
            lines.append("  " + "  ".join([one[0].ljust(widths[0])] + rest))
    lines += ["  " + line for line in list(extras(result)) + list(notes(result))]
    return "\n".join(lines) + "\n"


def markdown(result):
    """The same as a table of markdown."""
    unit, neighbours = heading(result)
    lines = [f"### {result['workload']}: {params_text(result['params'])}", "",
             f"{unit}; {neighbours}", "", "| " + " | ".join(HEAD) + " |",
             "|---|" + "---:|" * (len(HEAD) - 1)]
    for one in ordered(result):
        columns = cells(one)
        name = f"**{columns[0]}**" if is_libdue(one["label"]) else columns[0]
        lines.append("| " + " | ".join((name,) + columns[1:]) + " |")
    rest = list(extras(result)) + list(notes(result))
    lines += [""] + [f"- {line}" for line in rest] if rest else []
    return "\n".join(lines) + "\n"


def environment_lines(environment, absent):
    """Where the run was made."""
    names = ("date", "commit", "cpu", "cores", "kernel", "compiler", "load")
    lines = [f"{name:9} {environment[name]}" for name in names]
    lines += [f"{'absent':9} {name}: {reason}" for name, reason in absent.items()]
    return lines


def subject_lines(subjects):
    """What takes part: name, abilities, what it is."""
    width = max([len(name) for name in subjects] + [0])
    return [f"{name.ljust(width)}  {one['about']}"
            + (f"  [{' '.join(one['abilities'])}]" if one["abilities"] else "")
            for name, one in subjects.items()]
