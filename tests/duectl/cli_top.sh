#!/bin/sh
# What `duectl top` shows of a program whose figures are known; and of files that are no such.
. "$(dirname "$0")/cli_lib"
shower=$(dirname "$duectl")/tests/show_figures
[ -x "$shower" ] || { echo "no $shower"; exit 77; }
command -v python3 >/dev/null || exit 77
cd "$dir" || exit 1

# begin NAME: the program, with that queue and figures in the file "figures"; its pid in $shown.
begin()
{
    mkfifo in answers
    "$shower" figures "$1" <in >answers 2>said &
    shown=$!
    pids="$pids $shown"
    exec 5>in 6<answers
    rm in answers
    answered
}

answered()
{
    read -r answer <&6 && [ "$answer" = done ] || fail "the program: $(cat said)"
}

# tell WORD...: it does that, and the file says so.
tell()
{
    echo "$*" >&5
    answered
}

end()
{
    exec 5>&-
    wait "$shown" || fail "the program: $(cat said)"
    exec 6<&-
}

# until_has FILE PATTERN
until_has()
{
    for i in $(seq 1000); do
        grep -q -e "$2" "$1" && return
        sleep 0.02
    done
    has "$1" "$2"
}

# looks CODE: the lines of JSON in $dir/out, as "lines", in Python.
looks()
{
    python3 -c 'import json, sys
lines = [json.loads(line) for line in open("out", encoding="utf-8")]
exec(sys.argv[1])' "$1" 2>why || fail "$1: $(tail -n 1 why)"
}

# ---- What is shown ----

begin orders
tell put 10
tell put 5 mail
tell turn 2001
tell ack 4
tell take 3
tell fail 2
tell bury 1
tell hold 1
run 0 top --figures figures --count 1
same err </dev/null
has out 'queue orders  enqueued/s -  dequeued/s -  acked/s -  failed/s -  waiting 6  ready 4  '
has out '  leased 1  dead 1  overdue 2\.0 us  p50 2\.0 us  p99 2\.0 us$'
has out '^  topic -  '
has out '^  topic mail  '
run 0 top --pid "$shown" --count 1 --json
fits out top 1
looks 'assert lines[0]["queue"] == "orders" and lines[0]["state"] == "alive"'
looks 'assert lines[0]["pid"] == '"$shown"
looks 'assert [lines[0][n] for n in ("enqueued", "dequeued", "acked", "failed", "waiting", "ready",
    "leased", "dead", "overdue_ns")] == [15, 3, 4, 3, 6, 4, 1, 1, 2000]'
looks 'late = lines[0]["late"]; assert late["count"] == 11 and len(late["buckets"]) == 1 and \
    2000 < late["buckets"][0]["below_ns"] <= 2250 and late["buckets"][0]["count"] == 11'
looks 'assert [t["topic"] for t in lines[0]["topics"]] == ["", "mail"]'
looks 'assert sum(t["acked"] for t in lines[0]["topics"]) == 4
assert lines[0]["topics"][1]["enqueued"] == 5'
looks 'assert "rates" not in lines[0]'

# Rates are those of the time between two sets.
"$duectl" top --figures figures --json --every 100ms >out 2>err 5>&- 6<&- &
pid=$!
pids="$pids $pid"
until_has out '"enqueued":15,'
tell put 50 mail
until_has out '"enqueued":65,.*"enqueued":55,'
kill -TERM $pid
wait $pid
got=$?
[ $got = 143 ] || fail "stopped, but with status $got"
fits out top
looks 'import datetime
def seconds(line):
    return datetime.datetime.fromisoformat(line["at"][:26] + "+00:00").timestamp()
at = [l["enqueued"] for l in lines].index(65)
rates = lines[at]["rates"]
apart = seconds(lines[at]) - seconds(lines[at - 1])
assert lines[at - 1]["enqueued"] == 15 and apart > 0.4
assert abs(rates["enqueued"] - 50 / apart) < 1 and rates["acked"] == 0, (rates, apart)
assert lines[at]["topics"][1]["rates"]["enqueued"] == rates["enqueued"]
assert lines[at]["topics"][0]["rates"]["enqueued"] == 0
assert all("rates" in l for l in lines[at:])'

# Workers; they take what is left.
tell serve 2
tell turn 5000000000000
"$duectl" top --figures figures --json --every 100ms >out 2>err 5>&- 6<&- &
pid=$!
pids="$pids $pid"
until_has out '"waiting":0,'
until_has out '"workers":\[{"name":"cooks","threads":2,.*"handled":5[0-9],'

# Who closes its queue ends the view, and nothing is wrong.
end
wait $pid
got=$?
[ $got = 0 ] || fail "the queue was closed: status $got: $(cat err)"
same err <<'END'
duectl: the queue was closed
END
[ ! -e figures ] || fail "the file is left behind"
run 1 top --figures figures --count 1
has err '^duectl: figures: No such file'

# ---- Several queues, names that are hostile ----

begin orders
tell other "$dir/second"
run 2 top --pid "$shown" --count 1
has err 'has several queues: choose with --queue: \(orders, other\|other, orders\)$'
run 0 top --pid "$shown" --queue other --count 1
has out 'queue other '
run 0 top --pid "$shown" --queue orders --count 1
has out 'queue orders '
run 1 top --pid "$shown" --queue none --count 1
has err 'shows no figures of queue none'
escape=$(printf '\033')
tell put 1 "${escape}]0;title${escape}[2J"
run 0 top --figures figures --count 1
has_not out "$escape"
has out 'topic ?]0;title?\[2J'
run 0 top --figures figures --count 1 --json
fits out top 1
has_not out "$escape"
looks 'assert lines[0]["topics"][1]["topic"] == {"base64": "G10wO3RpdGxlG1sySg=="}'

# ---- A program that is stopped, or dies ----

"$duectl" top --pid "$shown" --queue orders --json --every 100ms >out 2>err 5>&- 6<&- &
pid=$!
pids="$pids $pid"
until_has out '"state":"alive"'
kill -STOP "$shown"
until_has out '"state":"silent"'
kill -CONT "$shown"
for i in $(seq 500); do
    tail -n 1 out | grep -q '"state":"alive"' && break
    sleep 0.02
done
tail -n 1 out >last
has last '"state":"alive"'
cp figures alive
kill -9 "$shown"
wait "$shown" 2>/dev/null
wait $pid
got=$?
[ $got = 1 ] || fail "the program has died: status $got"
has err "process $shown, which wrote it, has ended; its last figures are of 20"
exec 5>&- 6<&-
run 1 top --figures figures --count 1
has err "^duectl: figures: process $shown, which wrote it, has ended"
same out </dev/null
run 1 top --pid "$shown" --count 1
has err "^duectl: process $shown: there is none"
run 1 top --pid $$ --count 1
has err "^duectl: process $$ shows no figures"

# ---- Files that are no such ----

for size in 0 8 63 64 1000 60000; do
    head -c $size alive >short
    run 1 top --figures short --count 1
    has err '^duectl: short: \(this is no file of figures\|it is too short\)$'
done
mkfifo fifo
for file in fifo . /dev/null /dev/zero "$duectl"; do
    run 1 top --figures "$file" --count 1
    has err ': this is no file of figures$'
done
printf '\002' | dd of=alive bs=1 seek=8 conv=notrunc 2>none
run 1 top --figures alive --count 1
has err 'alive: its figures are those of another version$'

# Bytes of any kind, in a file that somebody has locked as a program does.
cat >hostile.py <<'END'
import fcntl, json, random, struct, subprocess, sys
duectl, good = sys.argv[1], bytearray(open(sys.argv[2], "rb").read())
good[8] = 1
random.seed(19)
taken = 0
for turn in range(150):
    data = bytearray(good)
    number = struct.unpack_from("=Q", data, 24)[0]
    begin = 64 + number % 2 * ((len(data) - 64) // 2)
    if turn % 3 == 0:
        data[64:] = random.randbytes(len(data) - 64)
    for _ in range(random.choice((1, 20, 2000))):
        at = random.randrange(40, len(data))
        data[at] = random.choice((0, 0xff, 0x80, 0x1b, random.randrange(256)))
    struct.pack_into("=Q", data, begin, number)
    if turn % 3 == 0:  # how many topics there are, and rows of topics and of pools
        struct.pack_into("=III", data, begin + 76, 2**31, *random.choice(
            ((128, 16), (128, 16), (10**6, 16), (2**31, 0), (0, 2**32 - 1))))
    with open("hostile", "wb+") as file:
        file.write(data)
        file.flush()
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))  # F_OFD_SETLK
        for form in ([], ["--json"]):
            done = subprocess.run([duectl, "top", "--figures", "hostile", "--count", "1"] + form,
                                  capture_output=True, timeout=60)
            if done.returncode not in (0, 1):
                sys.exit(f"turn {turn}: status {done.returncode}")
            text = (done.stdout + done.stderr).decode("utf-8")
            if any(ord(c) < 32 and c != "\n" or ord(c) == 127 for c in text):
                sys.exit(f"turn {turn}: what is no text came through")
            if done.returncode == 0 and form:
                json.loads(done.stdout)
                taken += 1
if taken < 50:
    sys.exit(f"only {taken} were taken")
END
timeout 250 python3 hostile.py "$duectl" alive 2>why || fail "hostile bytes: $(tail -n 1 why)"

# ---- Output that cannot be written; usage ----

begin orders
unread 3 top --figures figures --count 3 --every 100ms
unread 3 top --figures figures --count 3 --every 100ms --json
timeout 20 "$duectl" top --figures figures --count 1 >/dev/full 2>none
got=$?
[ $got = 3 ] || fail "a full disk: status $got"
for wrong in '--every 1ms' '--every x' '--every 1sx' '--count 0' '--count -1' '--count 1x' \
    '--pid 0' '--pid x' '--pid 99999999999999' '--figures=' '--pid 1 --figures f' '--pid 1 a.db' \
    '--figures f --topic t' 'a.db b.db'; do
    run 2 top $wrong
    same out </dev/null
done
run 2 top
has err 'no store'
run 0 top --help
has out '^usage: duectl top'
end
finish
