#!/bin/sh
# monitoring.sh SOURCE [BUILD] - the dashboard and the alert rules of docs/monitoring can be read,
# ask only for figures of docs/metrics.md (which another test compares with what is written), by
# labels and states that it names, and there is an alert for what is overdue, for the dead and for a
# store that is away.  promtool checks the rules where it is there,
# bpftrace reads its script.
set -eu
export LC_ALL=C

cd "$1/docs"
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
python3 - <<'END'
import json, re, sys

page = open("metrics.md").read()
types = dict(re.findall(r"(?m)^\| `(due_[a-z_]+)` \| (\w+) \|", page))
states = {"delayed", "ready", "leased", "dead", "running", "ahead", "none", "everysec", "always"}
wrong = []

def look(where, text):
    named = re.findall(r"\bdue_[a-z_]+", text)
    for name in named:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if name not in types and types.get(base) != "histogram":
            wrong.append(f"{where}: {name} is no figure")
        if types.get(name) == "counter" and not re.search(r"(rate|increase)\(" + name, text) \
                and name != "due_heartbeat_finds_total":
            wrong.append(f"{where}: {name} only ever grows: ask for its rate")
        if types.get(base) == "gauge" and re.search(r"(rate|increase)\(" + name + r"\b", text):
            wrong.append(f"{where}: {name} is a gauge: it has no rate")
    for label, value in re.findall(r'(\w+)="([^"]*)"', text):
        if label not in ("state", "level") or value not in states:
            wrong.append(f'{where}: {label}="{value}" is never written')
    if text.count("(") != text.count(")") or text.count("{") != text.count("}"):
        wrong.append(f"{where}: brackets")
    return set(named)

board = json.load(open("monitoring/grafana.json"))
shown = set()
for panel in board["panels"]:
    if not panel["targets"]:
        wrong.append(f"{panel['title']} asks for nothing")
    for target in panel["targets"]:
        shown |= look(panel["title"], target["expr"])
for variable in board["templating"]["list"]:
    look(variable["name"], variable["query"])
if len({panel["id"] for panel in board["panels"]}) != len(board["panels"]):
    wrong.append("two panels have one id")

rules = open("monitoring/alerts.yml").read()
asked = {}
for name, body in re.findall(r"(?ms)- alert: (\w+)\n(.*?)(?=\n      - alert|\Z)", rules):
    expr = re.search(r"expr: (.*)", body).group(1)
    asked[name] = look(name, expr)
    if "summary:" not in body or "severity:" not in body:
        wrong.append(f"{name}: no summary or severity")
for name in ("due_oldest_ready_age_seconds", "due_jobs_died_total", "due_store_connected"):
    if not any(name in names for names in asked.values()):
        wrong.append(f"no alert looks at {name}")
print(*wrong, sep="\n", end="\n" if wrong else "")
print(len(board["panels"]), "panels,", len(asked), "alerts,",
      len(shown.union(*asked.values())), "figures")
sys.exit(bool(wrong))
END

# The script's probes: each call is public, and each that is entered is left.
names()
{
    sed -n "s/^$1:.*:\(due_[a-z_]*\),*\$/\1/p" monitoring/calls.bt | sort
}
[ -n "$(names uprobe)" ] && [ "$(names uprobe)" = "$(names uretprobe)" ]
for name in $(names uprobe); do
    grep -q "^ *$name;" ../src/libdue.map || { echo "calls.bt: $name is no call"; exit 1; }
done
if command -v bpftrace >/dev/null; then # it says what it has read, then that it may not run here
    bpftrace -d monitoring/calls.bt 2>&1 | grep -q 'AST after: parser' || {
        bpftrace -d monitoring/calls.bt
        exit 1
    }
fi
if command -v promtool >/dev/null; then
    promtool check rules monitoring/alerts.yml
fi
