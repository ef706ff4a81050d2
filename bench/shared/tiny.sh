#!/bin/sh
# Run every workload of every subject of a program of shared queues, tiny, and look at what it says:
# tiny.sh PROGRAM
#
# Exit status: 0; 1, something is wrong; 77, the program, python3 or a server is not there.
set -u
[ $# -eq 1 ] || { echo "usage: tiny.sh PROGRAM" >&2; exit 2; }
program=$1
[ -x "$program" ] || { echo "$program is not built" >&2; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3" >&2; exit 77; }
command -v redis-server >/dev/null || { echo "redis-server is not installed" >&2; exit 77; }

temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
export TMPDIR="$temporary"
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
    3) grep -q "is not installed" "$temporary/err" ||
        fail "$workload $subject $*: does not say what is not there" ;;
    *) fail "$workload $subject $*: status $status: $(cat "$temporary/err")" ;;
    esac
}

"$program" --list >"$temporary/subjects" || fail "--list: status $?"
"$program" --list-workloads >"$temporary/workloads" || fail "--list-workloads: status $?"
[ -s "$temporary/subjects" ] || fail "--list says nothing"
[ "$(wc -l <"$temporary/workloads")" -eq 3 ] || fail "there are not 3 workloads"
"$program" nonsense --subject nobody 2>/dev/null
[ $? -eq 2 ] || fail "a workload that is not known is no wrong usage"
"$program" shared-work --subject nobody 2>/dev/null
[ $? -eq 2 ] || fail "a subject that is not known is no wrong usage"

for subject in $(cut -f 1 "$temporary/subjects"); do
    run shared-put "$subject" --jobs 300 --batch 256 --producers 2
    run shared-put "$subject" --jobs 20 --payload 32
    run shared-work "$subject" --jobs 700 --batch 100 --consumers 8 --processes 4
    run shared-work "$subject" --jobs 50 --payload 128
    run shared-late "$subject" --jobs 5
    run shared-late "$subject" --jobs 20 --poll-ns 10000000
done
left=$(find "$temporary" -mindepth 1 -maxdepth 1 -name 'due*' | wc -l)
[ "$left" -eq 0 ] || fail "$left folders of servers are left"

python3 - "$temporary/lines" <<'PYTHON' || failed=1
import json
import sys

ALL = (1 << 64) - 1
KEYS = {"workload": str, "subject": str, "value": float, "unit": str, "count": int, "hash": str,
        "wall_s": float, "cpu_s": float, "voluntary": int, "involuntary": int, "more": dict}
MORE = {"shared-put": {"server_us"}, "shared-late": {"p99_us", "most_us"},
        "shared-work": {"put_server_us", "work_server_us", "life_server_us"}}


def mix(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & ALL
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & ALL
    return x ^ x >> 31


def complaints(workload, subject, count, line):
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
    if set(line["more"]) not in (MORE[workload], MORE[workload] - {
            "server_us", "put_server_us", "work_server_us", "life_server_us"}):
        yield f"other figures: {sorted(line['more'])}"
    if line["count"] != count:
        yield f"{line['count']} jobs came out, not {count}"
    if line["hash"] != f"{sum(map(mix, range(count))) & ALL:016x}":
        yield f"the hash is {line['hash']}"
    if workload != "shared-late" and \
            not 0.8 < line["value"] * line["wall_s"] / count < 1.25:
        yield f"{line['value']} jobs/s for {count} in {line['wall_s']} s"


wrong = 0
with open(sys.argv[1], encoding="utf-8") as lines:
    for text in lines:
        asked, printed = text.rstrip("\n").split("\t", 1)
        workload, subject, *words = asked.split(" ")
        options = dict(zip(words[::2], words[1::2]))
        for complaint in complaints(workload, subject, int(options["--jobs"]),
                                    json.loads(printed)):
            print(f"{asked}: {complaint}", file=sys.stderr)
            wrong = 1
sys.exit(wrong)
PYTHON
exit $failed
