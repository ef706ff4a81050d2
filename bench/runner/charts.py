"""The results as pictures, drawn by gnuplot."""

import math
import os
import shutil
import subprocess

from runner.results import best, is_empty, is_libdue, is_limit, on_terms
from runner.statistic import advantages, spread
from runner.table import number

INK, GRID, LIMIT_COLOUR = "#333333", "#e4e4e4", "#9a9a9a"
OURS = ("#0b5cad", "#5a9bd8", "#8fbfe8")
OTHERS = ("#c4622d", "#2f8f5b", "#8b5fa8", "#a98a1f", "#b0436e", "#5b7f86", "#7a5c43", "#6d7f2a",
          "#944040", "#4a6f9c", "#9c7aa0", "#468a80")
HEAD = """set terminal svg size {width},{height} noenhanced background "#ffffff" \\
    font "Helvetica,Arial,sans-serif,13"
set output "{path}"
set title "{title}" textcolor rgb "{ink}" font ",16" offset 0,-0.3
set border 3 linecolor rgb "#b0b0b0"
set tics nomirror textcolor rgb "{ink}" scale 0.4
set grid linecolor rgb "{grid}" linetype 1 linewidth 1
unset key
"""


def head(path, title, height=520, width=920):
    """What every picture begins with."""
    return HEAD.format(path=path.replace('"', ""), title=title, ink=INK, grid=GRID, height=height,
                       width=width)


def colours(labels):
    """A colour for each label: blues for libdue, grey for limits and the empty cell."""
    ours, others, found = iter(OURS * 9), iter(OTHERS * 9), {}
    for label in sorted(labels):
        found[label] = next(ours) if is_libdue(label) else \
            LIMIT_COLOUR if is_aside(label) else next(others)
    return found


def is_aside(label):
    """Is this no queue?"""
    return is_limit(label) or is_empty(label)


def spread_labels(places, gap):
    """Move places (0 to 1) apart to @gap, in order, as little as is simple; same order as given."""
    order = sorted(range(len(places)), key=lambda at: places[at])
    moved = list(places)
    for before, at in zip(order, order[1:]):
        moved[at] = max(moved[at], moved[before] + gap)
    ceiling = 1.0
    for at in reversed(order):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - gap
    return moved


def ok_rows(results, group):
    """The rows of a group that have figures."""
    return [one for one in results[group]["rows"] if one["status"] == "ok"] \
        if group in results else []


def curves(results, prefix):
    """{label: [(x, y)]} of the groups "PREFIX NUMBER"."""
    found = {}
    for name in results:
        kind, _, text = name.partition(" ")
        if kind == prefix and text.isdigit():
            for one in ok_rows(results, name):
                found.setdefault(one["label"], []).append((int(text), one["median"]))
    return {label: sorted(points) for label, points in found.items()}


def log_ticks(low, high):
    """Round numbers of every decade within a range, as gnuplot takes them."""
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    found = [step * 10.0 ** power
             for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
             for step in steps]
    return ", ".join(f'"{one:,.15g}" {one:.15g}' for one in found if low <= one <= high)


def dot(x, y, size, shade):
    """A filled circle; @size is a part of the picture's width."""
    return f'set object circle at {x},{y} size screen {size} fillcolor rgb "{shade}" ' \
           'fillstyle solid noborder front\n'


def lines(path, title, x_title, y_title, found, ticks=None, counted=None):
    """Curves with their names at their right ends, and instructions where they are known; both axes
    logarithmic.  @counted: {label: instructions}."""
    points = [point for curve in found.values() for point in curve if point[1] > 0]
    low, high = min(y for _, y in points) / 1.2, max(y for _, y in points) * 1.2
    last = max(x for x, _ in points)
    first = min(x for x, _ in points)
    colour = colours(found)
    script = head(path, title) + f"""set logscale xy
set xrange [{first}:{last if last > first else last * 2}]
set yrange [{low}:{high}]
set ytics ({log_ticks(low, high)})
set rmargin {30 if counted else 24}
set xlabel "{x_title}" textcolor rgb "{INK}"
set ylabel "{y_title}" textcolor rgb "{INK}"
"""
    if ticks:
        script += "set xtics (" + ", ".join(f'"{text}" {x}' for x, text in ticks) + ")\n"
    labels = sorted(found, key=lambda label: (is_libdue(label), label))
    places = label_places(found, low, high)
    plots = []
    for count, label in enumerate(labels):
        data = "\n".join(f"{x} {y}" for x, y in found[label])
        script += f"$d{count} << EOD\n{data}\nEOD\n"
        wide = 3.5 if is_libdue(label) else 1.6
        dash = " dashtype 2" if is_aside(label) else ""
        beside = f"  {counted[label]:.0f} instr." if counted and label in counted else ""
        plots.append(f'$d{count} with linespoints linewidth {wide} pointtype 7 pointsize '
                     f'{wide / 10 + 0.3:.2f} linecolor rgb "{colour[label]}"{dash}')
        weight = ":Bold" if is_libdue(label) else ""
        script += f'set label "{label}{beside}" at first {found[label][-1][0]}, ' \
                  f'graph {places[label]:.4f} left offset 1,0 ' \
                  f'textcolor rgb "{colour[label]}" font "Helvetica{weight},12"\n'
    return script + "plot " + ", \\\n    ".join(plots) + "\n"


def label_places(found, low, high):
    """How high the name of each curve stands, beside its last point: {label: 0 to 1}."""
    placed = {}
    for last in {curve[-1][0] for curve in found.values()}:
        labels = sorted(label for label, curve in found.items() if curve[-1][0] == last)
        ends = [math.log(max(found[label][-1][1], low) / low) / math.log(high / low)
                for label in labels]
        placed.update(zip(labels, spread_labels(ends, 0.042)))
    return placed


def rows_frame(path, title, x_title, names, extra=""):
    """A picture with a row for each name, from the top."""
    height = 110 + (26 if len(names) < 20 else 19) * len(names)
    ticks = ", ".join(f'"{name}" {len(names) - at}' for at, name in enumerate(names))
    return head(path, title, height) + f"""set ytics ({ticks})
set yrange [0.4:{len(names) + 0.6}]
set xlabel "{x_title}" textcolor rgb "{INK}"
set border 1
set grid noytics xtics
set ytics scale 0
{extra}"""


def bars(path, title, x_title, rows):
    """A bar for each row, with its figure."""
    ordered = sorted(rows, key=lambda one: one["median"])
    colour = colours([one["label"] for one in ordered])
    top = max(one["median"] for one in ordered)
    script = rows_frame(path, title, x_title, [one["label"] for one in ordered],
                        f"set xrange [0:{top * 1.12}]\n")
    for at, one in enumerate(ordered):
        y = len(ordered) - at
        fill = colour[one["label"]] if is_libdue(one["label"]) else "#c9ced4"
        script += f'set object rectangle from 0,{y - 0.34} to {one["median"]},{y + 0.34} ' \
                  f'fillcolor rgb "{fill}" fillstyle solid noborder\n'
        script += f'set label "{number(one["median"])}" at {one["median"]},{y} left ' \
                  f'offset 0.6,0 textcolor rgb "{INK}"\n'
    return script + "plot NaN\n"


def lateness(path, title, rows):
    """p10 to p99 of each row as a line, p50 and p90 as dots."""
    names = ("p10_us", "value", "p90_us", "p99_us")
    found = []
    for one in rows:
        more = {**one["more"], "value": one["median"]}
        if all(more.get(name, 0) > 0 for name in names):
            found.append((one["label"], [more[name] for name in names]))
    if not found:
        return None
    found.sort(key=lambda item: item[1][1])
    colour = colours([label for label, _ in found])
    low = min(values[0] for _, values in found) / 1.5
    high = max(values[3] for _, values in found) * 1.5
    script = rows_frame(path, title,
                        "us late: a line from p10 to p99, a large dot at p50, a small one at p90",
                        [label for label, _ in found],
                        f"set logscale x\nset xrange [{low}:{high}]\n"
                        f"set xtics ({log_ticks(low, high)})\n")
    for at, (label, values) in enumerate(found):
        y, shade = len(found) - at, colour[label]
        wide = 5 if is_libdue(label) else 2.5
        script += f'set arrow from {values[0]},{y} to {values[3]},{y} nohead linewidth {wide} ' \
                  f'linecolor rgb "{shade}"\n'
        script += dot(values[1], y, 0.007, shade) + dot(values[2], y, 0.004, shade)
    return script + "plot NaN\n"


def terms(params):
    """What on_terms() says of a group with these parameters."""
    return lambda one: on_terms(one, params)


def counts(path, title, counted):
    """A bar for each subject that was counted, workload by workload.  @counted: {(workload,
    subject): instructions}."""
    workloads = list(dict.fromkeys(workload for workload, _ in counted))
    rows = [(workload, subject, n) for workload in workloads
            for (kind, subject), n in sorted(counted.items(), key=lambda item: item[1])
            if kind == workload]
    shade = colours({subject for _, subject, _ in rows})
    script = rows_frame(path, title, "instructions of one operation, those of the cell included",
                        [f"{workload}: {subject}" for workload, subject, _ in rows],
                        f"set xrange [0:{max(n for _, _, n in rows) * 1.12}]\n")
    for at, (_, subject, n) in enumerate(rows):
        y = len(rows) - at
        fill = shade[subject] if is_libdue(subject) else "#c9ced4"
        script += f'set object rectangle from 0,{y - 0.34} to {n},{y + 0.34} ' \
                  f'fillcolor rgb "{fill}" fillstyle solid noborder\n'
        script += f'set label "{n:.0f}" at {n},{y} left offset 0.6,0 textcolor rgb "{INK}"\n'
    return script + "plot NaN\n"


def costs(results):
    """(group, cost of libdue as a multiple of the best rival's, low, high, the rival)."""
    found = []
    for name, result in results.items():
        ours = next((one for one in ok_rows(results, name) if one["label"] == "libdue"), None)
        rival = best(result["rows"], allowed=terms(result["params"]))
        if ours and rival:
            multiple = spread(advantages(rival["series"]["value"], ours["series"]["value"],
                                         ours["unit"]))
            if multiple[0] and multiple[1] > 0:
                found.append((name, *multiple, rival["label"]))
    return found


def breadth(path, title, found):
    """A dot for each group: left of 1 libdue is cheaper than the best rival."""
    low = min(0.2, min(one[2] for one in found) / 1.3)
    high = max(2.0, max(one[3] for one in found) * 1.3)
    script = rows_frame(path, title, "cost of libdue as a multiple of the best rival's (named)",
                        [one[0] for one in found],
                        f"set logscale x\nset xrange [{low}:{high}]\nset rmargin 22\n"
                        'set xtics (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.3, 2, 5, 10, 20)\n')
    for x, shade, dash in ((1, "#777777", 1), (1.3, "#c4622d", 2)):
        script += f'set arrow from {x},graph 0 to {x},graph 1 nohead linewidth 1.5 ' \
                  f'linecolor rgb "{shade}" dashtype {dash} back\n'
    for at, (_, middle, least, most, rival) in enumerate(found):
        y = len(found) - at
        shade = OURS[0] if middle <= 1 else OTHERS[0]
        script += f'set arrow from {least},{y} to {most},{y} nohead linewidth 2 ' \
                  f'linecolor rgb "{shade}"\n'
        script += dot(middle, y, 0.005, shade)
        script += f'set label "{number(middle)}  {rival}" at graph 1.015, first {y} left ' \
                  f'textcolor rgb "{INK}" font ",11"\n'
    return script + "plot NaN\n"


def scripts(results, directory, counted=None):
    """{path: script} of every picture that the results are enough for.  @counted: instructions."""
    found = {}

    def add(name, draw, *words):
        """Keep a picture if there is something to draw."""
        path = os.path.join(directory, name + ".svg")
        script = draw(path, *words)
        if script:
            found[path] = script

    for prefix, title, x, unit in (
            ("enqueue", "Enqueue into a far future", "producers", "million a second"),
            ("through", "Through the queue, due at once", "producers, and as many consumers",
             "million a second"),
            ("delayed", "Through the queue, with delays", "producers, and as many consumers",
             "million a second"),
            ("cancel", "Cancel in random order", "threads", "million a second"),
            ("timeout", "Timeouts: enqueue and cancel", "threads", "million pairs a second"),
            ("hold", "Take the head, put it back", "jobs that wait", "ns")):
        data = curves(results, prefix)
        widths = sorted({x_value for curve in data.values() for x_value, _ in curve})
        if len(widths) > 1:
            beside = {subject: n for (workload, subject), n in (counted or {}).items()
                      if workload == prefix}
            add(prefix, lines, title, x, unit, data,
                [(width, f"{width:,}") for width in widths], beside)
    for group, who in (("lateness 1", "one consumer"), ("lateness 4", "four consumers")):
        if ok_rows(results, group):
            add(group.replace(" ", "-"), lateness, "How late: " + who, ok_rows(results, group))
    for group in ("memory 0", "memory 32", "memory 256"):
        if ok_rows(results, group):
            add(group.replace(" ", "-"), bars, f"Memory of a job, payload {group.split()[1]} bytes",
                "bytes", ok_rows(results, group))
    if counted:
        add("instructions", counts, "Instructions, which do not depend on the day", counted)
    multiples = costs(results)
    if multiples:
        add("breadth", breadth, "libdue next to the best rival of each workload", multiples)
    return found


def draw(results, counted, directory, say):
    """Write the pictures; what cannot be is said."""
    program = shutil.which("gnuplot")
    if program is None:
        say("no pictures: there is no gnuplot here")
        return
    os.makedirs(directory, exist_ok=True)
    for path, script in scripts(results, directory, counted).items():
        answer = subprocess.run([program], input=script, capture_output=True, text=True,
                                check=False)
        if answer.returncode != 0 or not os.path.isfile(path):
            say(f"no picture {path}: gnuplot: {answer.stderr.strip()}")
        else:
            say(f"drew {path}")
