#!/bin/sh
# What `duectl top` shows of a stored queue: in a file and in a Redis alike, also while it changes.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

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

for store in a.db "$url"; do
    printf '1h a\n2h b\n@2020-01-01 c\n' | "$duectl" push "$store" - >ids
    printf '@2020-01-01 d\n' | "$duectl" push --topic mail "$store" - >>ids
    run 0 top --count 1 "$store"
    has out 'queue duectl  came/s -  left/s -  failed/s -  waiting 4  ready 2  leased 0  dead 0  '
    has out '  overdue [0-9]* days  p50 '
    has out '^  topic -  .* waiting 3  ready 1 '
    has out '^  topic mail  .* waiting 1  ready 1 '
    run 0 top --count 1 --topic mail --json "$store"
    fits out top 1
    looks 'assert lines[0]["waiting"] == 1 and [t["topic"] for t in lines[0]["topics"]] == ["mail"]'
    run 0 top --count 2 --every 100ms --json "$store"
    fits out top 2
    looks 'one, two = lines
assert one["queue"] == "duectl" and "rates" not in one and one["overdue"]["count"] == 2
assert two["rates"] == {"came": 0.0, "left": 0.0, "failed": 0.0}
assert one["overdue_ns"] > 6 * 365 * 24 * 3600 * 10**9
assert 3500 * 10**9 < one["next_in_ns"] <= 3600 * 10**9'

    # What comes and goes between two looks.
    "$duectl" top --every 100ms --json "$store" >out 2>err &
    pid=$!
    pids="$pids $pid"
    until_has out '"waiting":4,'
    seq 20 | sed 's/^/1h /' | "$duectl" push --topic mail "$store" - >>more
    until_has out '"waiting":24,'
    "$duectl" cancel "$store" - <ids >none || fail "not cancelled"
    until_has out '"waiting":20,'
    kill -INT $pid 2>none
    kill -TERM $pid
    wait $pid
    [ $? = 143 ] || fail "stopped, but with status $?: $(cat err)"
    fits out top
    looks 'last = lines[-1]
assert (last["came"], last["left"], last["failed"]) == (20, 4, 0)
assert {t["topic"]: (t["came"], t["left"]) for t in last["topics"]} == {"": (0, 3), "mail": (20, 1)}
assert any(l.get("rates", {}).get("came", 0) > 0 for l in lines)
assert any(l.get("rates", {}).get("left", 0) > 0 for l in lines)'

    # Jobs that fail, and that die.
    "$duectl" clear --yes "$store" >none
    printf '0s x\n0s x\n' | "$duectl" push "$store" - >none
    "$duectl" top --every 100ms --json "$store" >out 2>err &
    pid=$!
    pids="$pids $pid"
    until_has out '"waiting":2,'
    "$duectl" work --exec false --attempts 2 --retry 10ms --store "$store" >none 2>&1 &
    worker=$!
    pids="$pids $worker"
    until_has out '"dead":2'
    kill -TERM $worker $pid
    wait $worker $pid
    looks 'assert 2 <= lines[-1]["failed"] <= 4 and lines[-1]["left"] == 0, lines[-1]'
    run 0 dead drop --all --yes "$store"
    unread 3 top --count 3 --every 100ms "$store"
    unread 3 top --count 3 --every 100ms --json "$store"
done

# A queue that is not there, a server that is not, or that refuses.
run 3 top --count 1 none.db
[ ! -e none.db ] || fail "a file was made"
run 1 top --count 1 --queue none "$url"
run 3 top --count 1 "unix://$dir/none"
run 2 top --count 1 --store 'redis://a:b:c'
redis acl setuser some on '>pass' '~*' +@all >/dev/null
run 3 top --count 1 "unix://some:wrong@$REDIS_SOCKET"
has err 'refuses the user or the password'
has_not err wrong
DUE_STORE_URL=$url run 0 top --count 1

# A server that goes away while it is looked at.
"$duectl" top --every 100ms --json "$url" >out 2>err &
pid=$!
pids="$pids $pid"
until_has out '"queue"'
redis shutdown nosave >none 2>&1
wait $pid
got=$?
[ $got = 3 ] || fail "the server is gone: status $got"
[ -s err ] || fail "nothing is said of it"
finish
