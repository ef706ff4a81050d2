#!/bin/sh
# A run with a store: whatever kills it, every line that it has accepted comes out.
redis_options="--appendonly yes --appendfsync always"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# jobs QUEUE: how many are stored.
jobs()
{
    redis hlen "due:{$1}:j"
}

# stored QUEUE: something is.
stored()
{
    [ "$(jobs "$1")" != 0 ]
}

# await COMMAND...: until it succeeds, for ten seconds.
await()
{
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || { fail "waited in vain: $*"; return 1; }
        sleep 0.01
    done
}

# While all else goes on: a second process is refused as long as the first lives.
echo '1h later' >later
"$duectl" run --store "$url" --queue busy later 2>/dev/null &
busy=$!
pids=$busy
await stored busy
"$duectl" run --store "$url" --queue busy /dev/null >/dev/null 2>refused &
refused=$!

# It is a run like others; each line is acknowledged once it is stored.
cat >s.due <<'END'
# a comment
200ms third
0s first
nonsense
100ms second, with	blanks  inside  
@2001-01-01T00:00:00Z past
END
run 1 run --store "$url" --queue a --ack-lines --stats s.due
sort out >sorted
same sorted <<'END'
first
past
second, with	blanks  inside  
third
END
tail -n 1 out | grep -q '^third$' || fail "the last is not the last"
grep '^ack' err >acks
same acks <<'END'
ack 2
ack 3
ack 5
ack 6
END
has err '^s.due:4:1: a line begins with a time'
has err '^past       1 dates'
has err '^store      0 restored'
has err '^left       0$'
has err '^early      0$'
[ "$(jobs a)" = 0 ] || fail "jobs are left in the store: $(jobs a)"

# Bytes as they are, a long line, an empty log line.
{
    printf '0s a\000b\377\r\n0s '
    head -c 1000000 /dev/zero | tr '\0' x
} >s.due
run 0 run --store "$url" --queue a s.due
{
    printf 'a\000b\377\n'
    head -c 1000000 /dev/zero | tr '\0' x
    echo
} | same out
printf '2026-12-01T08:00:00Z one\n\n2026-12-01T08:00:06Z two\n' >log
run 0 run --store "$url" --queue a --replay --speed 60 log
same out <log

# Killed at any moment, twice, and started again without the file.
i=0
while [ $i -lt 400 ]; do
    i=$((i + 1))
    echo "$((i * 7919 % 300))ms line $i"
done >s.due
round=0
while [ $round -lt 10 ]; do
    round=$((round + 1))
    "$duectl" run --store "$url" --queue kill --ack-lines s.due >one 2>acks &
    pid=$!
    pids="$busy $refused $pid"
    sleep "0.$(printf '%03d' $(($(date +%N | sed 's/^0*//;s/^$/0/') / 1000 % 350)))"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    "$duectl" run --store "$url" --queue kill </dev/null >two 2>err &
    pid=$!
    pids="$busy $refused $pid"
    sleep "0.0$(($(date +%N | sed 's/^0*//;s/^$/0/') / 1000 % 90 + 10))"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pids="$busy $refused"
    run 0 run --store "$url" --queue kill /dev/null
    cat one two out | sed 's/^line //' | sort >came
    sed -n 's/^ack //p' acks | sort | comm -23 - came >lost
    [ ! -s lost ] || fail "round $round: lost: $(head -n 5 lost | tr '\n' ' ')"
    grep -v '^[0-9][0-9]*$' came && fail "round $round: a line is not whole"
    [ "$(jobs kill)" = 0 ] || fail "round $round: $(jobs kill) jobs are left"
done

# A signal leaves the jobs where they are.
printf '1h later\n0s now\n' >s.due
start run --store "$url" --queue signal s.due
line now
kill -TERM "$pid"
ended 143
has err '^duectl: stopped by SIGTERM: 1 jobs stay in the store'
[ "$(jobs signal)" = 1 ] || fail "after SIGTERM: $(jobs signal) jobs are stored"

# A command that ends within the grace is not run again, one that is stopped in the middle is.
printf '0s echo begun; sleep 0.3; echo ended\n1h echo later\n' >s.due
start run --store "$url" --queue grace --exec 'eval "$DUE_TEXT"' s.due
line begun
kill -TERM "$pid"
line ended
ended 143
has err '^duectl: stopped by SIGTERM: 1 jobs stay in the store'
[ "$(jobs grace)" = 1 ] || fail "a command has ended, and its job is stored"

echo '0s the tea' >s.due
start run --store "$url" --queue exec --exec 'read -r text; echo "begun $text"; sleep 100' \
    --grace 50ms s.due
line 'begun the tea'
kill -TERM "$pid"
ended 143
run 0 run --store "$url" --queue exec --exec 'read -r text; echo "done with $text"' /dev/null
echo 'done with the tea' | same out
[ "$(jobs exec)" = 0 ] || fail "a command has ended, and its job is stored"

# One on standby takes over when the owner is killed.
mkfifo in
"$duectl" run --store "$url" --queue own in >one 2>/dev/null &
owner=$!
pids="$pids $owner"
exec 5>in
printf '1s after the takeover\n0s before\n' >&5
await grep before one
gone() # only one job is stored: what was printed may come again until then
{
    [ "$(jobs own)" = 1 ]
}
await gone
start run --store "$url" --queue own --standby /dev/null
kill -9 "$owner"
exec 5>&-
line 'after the takeover'
wait "$pid" || fail "standby: status $?"
exec 4<&-
[ "$(cat one)" = before ] || fail "the owner printed: $(cat one)"

# Fenced: somebody else has taken the queue over.
mkfifo in2
"$duectl" run --store "$url" --queue fence in2 >one 2>err &
pid=$!
pids="$pids $pid"
exec 5>in2
echo '0s before' >&5
await grep before one
redis set 'due:{fence}:fence' '281474976710655:0123456789abcdef' >/dev/null
echo '0s after' >&5
wait "$pid"
got=$?
exec 5>&-
[ $got = 3 ] || fail "fenced: status $got"
has err 'another process owns the stored jobs'
[ "$(cat one)" = before ] || fail "fenced, and it printed: $(cat one)"

# A full server takes no line, and gives what it has.
echo '1s kept' >s.due
start run --store "$url" --queue full s.due
await stored full
kill -9 "$pid"
ended 137 2>/dev/null
redis config set maxmemory 1 >/dev/null
printf '0s new\n' >s.due
run 1 run --store "$url" --queue full s.due
redis config set maxmemory 0 >/dev/null
echo kept | same out
has err '^s.due:1:1: not stored: the store is full$'

wait "$refused"
[ $? = 3 ] || fail "a second process was not refused"
has refused "process $busy on host"
kill -TERM "$busy"
wait "$busy"
pids=

# Wrong use.
run 2 run --queue a /dev/null
has err '^duectl: --queue: goes with --store$'
run 2 run --ack-lines /dev/null
run 2 run --store "$url" --queue 'a b' /dev/null
has err '^duectl: a b: --queue takes'
run 2 run --store "$url" --require much /dev/null
run 2 run --store "http://example.org" /dev/null
run 2 run --store "$url" "$dir/nothing"
finish
