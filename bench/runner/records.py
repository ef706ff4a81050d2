"""The results as JSON, one object a line, and as CSV."""

import csv
import json

FIELDS = ("workload", "group", "subject", "label", "params", "status", "reason", "unit", "median",
          "p10", "p90", "runs", "cpu_s", "wall_s", "voluntary", "involuntary", "count", "hash",
          "of_best", "best_rival", "of_limit", "net_ns", "net_of_best", "more", "series",
          "neighbours_percent", "neighbours", "disturbed", "group_params", "errors")
COLUMNS = ("workload", "group", "subject", "label", "params", "status", "unit", "median", "p10",
           "p90", "runs", "cpu_s", "wall_s", "voluntary", "involuntary", "count", "hash", "of_best",
           "of_limit", "neighbours_percent")


def objects(result):
    """One object for each row of a group."""
    for one in result["rows"]:
        whole = {**result, "group_params": result["params"], **one}
        yield {name: whole[name] for name in FIELDS if name in whole}


def as_json(thing):
    """One line."""
    return json.dumps(thing, separators=(",", ":"), sort_keys=False)


class Files:
    """Writes each group's rows as soon as it is measured; either path may be None."""

    def __init__(self, json_path, csv_path, environment):
        self.json = open(json_path, "w", encoding="utf-8") if json_path else None
        self.csv_file = open(csv_path, "w", encoding="utf-8", newline="") if csv_path else None
        self.csv = csv.writer(self.csv_file) if csv_path else None
        if self.json:
            self.line({"environment": environment})
        if self.csv:
            self.csv.writerow(COLUMNS)

    def line(self, thing):
        """One object into the JSON file."""
        if self.json:
            self.json.write(as_json(thing) + "\n")
            self.json.flush()

    def add(self, result):
        """The rows of a group."""
        for thing in objects(result):
            self.line(thing)
            if self.csv:
                self.csv.writerow([flat(thing.get(name)) for name in COLUMNS])

    def count(self, cells, group):
        """Instructions: of the cells, and of bench/instructions."""
        self.line({"instructions": [[*key, n] for key, n in cells.items()], "counted": group})

    def close(self):
        """Everything is written."""
        for file in (self.json, self.csv_file):
            if file:
                file.close()


def load(path):
    """What a JSON file tells of a run: (environment, {group: result}, instructions of the cells,
    those of bench/instructions as a result); ValueError says what is wrong with it."""
    environment, results, cells, counted = None, {}, {}, {}
    with open(path, encoding="utf-8") as file:
        for text in filter(str.strip, file):
            thing = json.loads(text)
            if "environment" in thing:
                environment = thing["environment"]
            elif "instructions" in thing:
                cells = {(workload, subject): n for workload, subject, n in thing["instructions"]}
                counted = thing["counted"]
            else:
                found = results.setdefault(thing["group"], {
                    "group": thing["group"], "workload": thing["workload"], "rows": [],
                    "params": thing["group_params"], "unit": "", "neighbours": thing["neighbours"],
                    "neighbours_percent": thing["neighbours_percent"], "errors": thing["errors"],
                    "disturbed": thing["disturbed"]})
                found["unit"] = found["unit"] or thing.get("unit", "")
                found["rows"].append(thing)
    if environment is None:
        raise ValueError(f"{path}: no environment in it: was it written by bench/run --json?")
    return environment, results, cells, counted


def flat(value):
    """A value for a cell of CSV: parameters as "name=value name=value"."""
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items())
    return "" if value is None else value
