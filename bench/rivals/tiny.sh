#!/bin/sh
# Run every workload of every subject of a program, tiny, and look at what it says: tiny.sh PROGRAM
#
# Exit status: 0; 1, something is wrong; 77, the program or python3 is not there.
set -u
[ $# -eq 1 ] || { echo "usage: tiny.sh PROGRAM" >&2; exit 2; }
program=$1
[ -x "$program" ] || { echo "$program is not built" >&2; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3" >&2; exit 77; }

temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
failed=0

fail() {
    echo "$*" >&2
    failed=1
}

# run WORKLOAD SUBJECT OPTION...: its line goes to the lines, after what was asked for.
run() {
    workload=$1
    subject=$2
    shift 2
    "$program" "$workload" --subject "$subject" "$@" >"$temporary/out" 2>"$temporary/err"
    status=$?
    case $status in
    0) printf '%s %s %s\t%s\n' "$workload" "$subject" "$*" "$(cat "$temporary/out")" \
        >>"$temporary/lines" ;;
    3) [ -s "$temporary/err" ] || fail "$workload $subject $*: does not say why it cannot" ;;
    *) fail "$workload $subject $*: status $status: $(cat "$temporary/err")" ;;
    esac
}

"$program" --list >"$temporary/subjects" || fail "--list: status $?"
"$program" --list-workloads >"$temporary/workloads" || fail "--list-workloads: status $?"
[ -s "$temporary/subjects" ] || fail "--list says nothing"
[ "$(wc -l <"$temporary/workloads")" -eq 11 ] || fail "there are not 11 workloads"
"$program" nonsense --subject nobody 2>/dev/null
[ $? -eq 2 ] || fail "a workload that is not known is no wrong usage"

for subject in $(cut -f 1 "$temporary/subjects"); do
    for workload in $(cut -f 1 "$temporary/workloads"); do
        jobs=300
        case $workload in
        lateness | handoff) jobs=20 ;;
        esac
        run "$workload" "$subject" --jobs $jobs --live 100 --producers 2 --consumers 2
    done
    run cancel "$subject" --jobs 300
    run timeout "$subject" --jobs 300 --live 100 --shape decades
    run mixed "$subject" --jobs 300 --percent 0 --payload 8
    run through "$subject" --jobs 300 --spread-ns 1000000 --payload 33 --shape exponential
done

python3 - "$temporary/lines" <<'PYTHON' || failed=1
import json
import sys

ALL = (1 << 64) - 1
KEYS = {"workload": str, "subject": str, "value": float, "unit": str, "count": int, "hash": str,
        "wall_s": float, "cpu_s": float, "voluntary": int, "involuntary": int, "more": dict}
MORE = {"lateness": {"p10_us", "p90_us", "p99_us", "p999_us", "cpu_us_per_job"},
        "handoff": {"p90_us", "call_p50_us", "call_alone_p50_us"}}


def mix(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & ALL
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & ALL
    return x ^ x >> 31


def expected(workload, options):
    """How many jobs come out."""
    jobs, live = int(options["--jobs"]), int(options.get("--live", 0))
    return {"timeout": live + jobs, "hold": live + 2 * jobs,
            "burst": 200 * max(1, jobs // 200)}.get(workload, jobs)


def complaints(workload, subject, options, line):
    """What is wrong with a line."""
    if set(line) != set(KEYS):
        yield f"other names than those of the line: {sorted(line)}"
        return
    for key, kind in KEYS.items():
        kinds = (int, float) if kind is float else kind
        if not isinstance(line[key], kinds) or kind is float and line[key] < 0:
            yield f"wrong {key}: {line[key]!r}"
    if (line["workload"], line["subject"]) != (workload, subject):
        yield "it is about another cell"
    if not MORE.get(workload, set()) <= set(line["more"]):
        yield f"figures are missing: {sorted(line['more'])}"
    count = expected(workload, options)
    if line["count"] != count:
        yield f"{line['count']} jobs came out, not {count}"
    if line["hash"] != f"{sum(map(mix, range(count))) & ALL:016x}":
        yield f"the hash is {line['hash']}"


wrong = 0
with open(sys.argv[1], encoding="utf-8") as lines:
    for text in lines:
        asked, printed = text.rstrip("\n").split("\t", 1)
        workload, subject, *words = asked.split(" ")
        options = dict(zip(words[::2], words[1::2]))
        for complaint in complaints(workload, subject, options, json.loads(printed)):
            print(f"{asked}: {complaint}", file=sys.stderr)
            wrong = 1
sys.exit(wrong)
PYTHON
exit $failed
