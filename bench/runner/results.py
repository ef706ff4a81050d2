"""What the runs of a group come to: a row for each contender, and what was wrong."""

from runner.statistic import advantages, more_is_better, ratios, spread

DISTURBED_PERCENT = 10
LIMIT, EMPTY = "limit", "empty"
LIBDUE = ("libdue", "libdue-shared")
FOREIGN = ("java", "go", "rust")  # whose cells are programs of their own


def is_libdue(label):
    """Is this one of libdue's rows?"""
    return label.split()[0] in LIBDUE


def is_limit(label):
    """Is this a limit, and so no rival?"""
    return label.split()[0] == LIMIT


def is_empty(label):
    """Is this the cell around nothing?"""
    return label.split()[0] == EMPTY


def is_rival(label):
    """Is this somebody else's queue?"""
    return not (is_libdue(label) or is_limit(label) or is_empty(label))


def per_job(lines, jobs, names, factor):
    """By round, the sum of these fields for a job."""
    return [sum(line[name] for name in names) * factor / jobs if line else None for line in lines]


def row(member, outcomes, params):
    """One contender's row.  @outcomes: one for each round; None where it was not started."""
    bad = next((one for one in outcomes if one and one["status"] != "ok"), None)
    made = {"label": member.label, "subject": member.subject, "params": {**params, **member.params},
            "status": bad["status"] if bad else "ok", "reason": bad["reason"] if bad else ""}
    lines = [one["line"] if one and one["status"] == "ok" else None for one in outcomes]
    known = [line for line in lines if line]
    if bad or not known:
        made["status"] = made["status"] if bad else "cannot"
        return made
    jobs = params["jobs"]
    made["unit"] = known[0]["unit"]
    made["series"] = {
        "value": [line["value"] if line else None for line in lines],
        "cpu_us_job": per_job(lines, jobs, ("cpu_s",), 1e6),
        "switches_1000": per_job(lines, jobs, ("voluntary", "involuntary"), 1e3),
    }
    for name in known[0]["more"]:
        made["series"]["more." + name] = [line["more"].get(name) if line else None
                                          for line in lines]
    made["median"], made["p10"], made["p90"] = spread(made["series"]["value"])
    for name in ("cpu_s", "wall_s", "voluntary", "involuntary"):
        made[name] = spread([line[name] for line in known])[0]
    made["more"] = {name[len("more."):]: spread(values)[0]
                    for name, values in made["series"].items() if name.startswith("more.")}
    made["outcomes"] = sorted({(line["count"], line["hash"]) for line in known})
    made["count"], made["hash"] = made["outcomes"][0]
    made["runs"] = len(known)
    return made


def unequal(rows):
    """What is wrong if not all rows have the same count and hash; or None."""
    seen = {}
    for one in rows:
        # A limit whose jobs are no jobs has nothing to be compared, nor has the empty cell.
        aside = is_empty(one["label"]) or (is_limit(one["label"]) and not one["count"])
        if one["status"] == "ok" and not aside:
            for outcome in one["outcomes"]:
                seen.setdefault(outcome, []).append(one["label"])
    if len(seen) <= 1:
        return None
    said = [f"{', '.join(labels)}: {count} jobs, hash {text}"
            for (count, text), labels in sorted(seen.items(), key=lambda item: -len(item[1]))]
    return "not all did the same work: " + "; ".join(said)


def best(rows, series="value", unit=None, allowed=lambda one: True):
    """The row with the best median among those that may be compared with libdue; or None."""
    rivals = [one for one in rows if one["status"] == "ok" and is_rival(one["label"])
              and series in one["series"] and allowed(one)]
    rivals = [one for one in rivals if spread(one["series"][series])[0] is not None]
    if not rivals:
        return None
    more = more_is_better(unit or rivals[0]["unit"]) if series == "value" else False
    key = (lambda one: -spread(one["series"][series])[0]) if more else \
        (lambda one: spread(one["series"][series])[0])
    return min(rivals, key=key)


def limit_of(rows, params):
    """The limit's row: the one with the same batch and spin, else the plain one; or None.  Where
    there are several, jobs are lines: that with a line for each word."""
    def kind(of):
        """What tells limits of a group apart."""
        return of.get("batch", 0), of.get("spin_ns", 0)

    limits = {kind(one["params"]): one
              for one in sorted(rows, key=lambda one: one["params"].get("line", 0))
              if one["status"] == "ok" and is_limit(one["label"])}
    return limits.get(kind(params)) or limits.get((0, 0))


def cost_ns(value, unit):
    """What one operation takes, of a figure in this unit; or None."""
    if value is None or value <= 0:
        return None
    return 1000 / value if more_is_better(unit) else value


def without_cell(rows):
    """Add to each row the ns of an operation without those of the cell itself, by round; but not
    where the cell is written in another language."""
    empty = next((one for one in rows if is_empty(one["label"]) and one["status"] == "ok"), None)
    if empty is None:
        return
    for one in rows:
        if one["status"] == "ok" and one is not empty \
                and one["subject"].split("-")[0] not in FOREIGN:
            pairs = [[cost_ns(value, one["unit"]) for value in both]
                     for both in zip(one["series"]["value"], empty["series"]["value"])]
            one["series"]["net_ns"] = [whole - cell if whole and cell and whole > cell else None
                                       for whole, cell in pairs]


def on_terms(one, params):
    """May this row be compared in a group with these parameters?"""
    return bool(params.get("pin")) or not one["params"].get("pin")


def compared(rows, params):
    """Add to each row how it stands to the best rival and to the limit, by medians of rounds."""
    rival = best(rows, allowed=lambda one: on_terms(one, params))
    without_cell(rows)
    for one in rows:
        if one["status"] != "ok":
            continue
        limit = limit_of(rows, one["params"])
        for name, other in (("of_best", rival), ("of_limit", limit)):
            found = advantages(one["series"]["value"], other["series"]["value"],
                               one["unit"]) if other else []
            one[name] = spread(found)[0]
        one["best_rival"] = rival["label"] if rival else None
        if "net_ns" in one["series"]:
            one["net_ns"] = spread(one["series"]["net_ns"])[0]
            theirs = rival["series"].get("net_ns") if rival else None
            one["net_of_best"] = spread(ratios(theirs, one["series"]["net_ns"]))[0] \
                if theirs else None


def summary(group, outcomes, neighbours, typical):
    """The result of a group.  @outcomes: {label: [outcome by round]}; @neighbours: the percentage
    by round, and @typical: that of all rounds together."""
    rows = [row(member, outcomes[member.label], group.params) for member in group.contenders]
    compared(rows, group.params)
    errors = [f"{group.name}: {one['label']}: {one['reason']}" for one in rows
              if one["status"] == "error"]
    wrong = unequal(rows)
    if wrong:
        errors.append(f"{group.name}: {wrong}")
    return {"group": group.name, "workload": group.workload, "params": group.params, "rows": rows,
            "unit": next((one["unit"] for one in rows if one["status"] == "ok"), ""),
            "neighbours": neighbours, "neighbours_percent": typical, "errors": errors,
            "disturbed": typical is not None and typical > DISTURBED_PERCENT}
