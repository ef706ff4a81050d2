#!/bin/sh
# Failed commands are run again; and the jobs of a stored queue are handed to commands.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# jobs QUEUE: how many are stored.
jobs()
{
    redis hlen "due:{$1}:j"
}

# await COMMAND...: until it succeeds, for ten seconds.
await()
{
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || { fail "waited in vain: $*"; return 1; }
        sleep 0.02
    done
}

# empty QUEUE: nothing is stored any more.
empty()
{
    [ "$(jobs "$1")" = 0 ]
}

# lines FILE COUNT: it has so many.
lines()
{
    [ "$(wc -l <"$1")" = "$2" ]
}

# put QUEUE: the schedule on standard input is stored, and stays there.
put()
{
    cat >put.due
    wanted=$(grep -c . put.due)
    : >put.err # before it is looked at: what runs beside us may empty it later
    "$duectl" run --store "$url" --queue "$1" --ack-lines --exec 'exit 0' put.due 2>put.err \
        >/dev/null &
    putter=$!
    pids="$pids $putter"
    await sh -c "[ \$(grep -c '^ack' put.err) = $wanted ]"
    kill -TERM "$putter"
    wait "$putter"
}

# Without --retry a command that fails is not run again; with it, until it succeeds.
cat >flaky <<'END_OF_FLAKY'
read -r name times status
echo "$name" >>tried
[ "$(grep -cx "$name" tried)" -ge "$times" ] || exit "$status"
echo "$name"
END_OF_FLAKY
echo '0s a 3 1' >s.due
run 1 run --exec 'sh ./flaky' s.due
lines tried 1 || fail "tried $(wc -l <tried) times"

rm tried
printf '0s a 3 1\n5ms b 1 0\n10ms c 8 75\n' >s.due
run 0 run --workers 2 --retry 2ms --exec 'sh ./flaky' s.due
sort out >sorted
printf 'a\nb\nc\n' | same sorted
lines tried 12 || fail "tried $(wc -l <tried) times, not 12"

# It is given up after its last attempt, which shows in the status; 75 is no failure.
rm tried
printf '0s a 9 1\n0s b 6 75\n' >s.due
run 1 run --retry 1ms..5ms --attempts 3 --stats --exec 'sh ./flaky' s.due
echo b | same out
[ "$(grep -cx a tried)" = 3 ] || fail "a was tried $(grep -cx a tried) times, not 3"
has err '^commands   2, 1 failed$'

# A list of times has an end, for 75 too.
rm tried
printf '0s a 9 1\n0s b 9 75\n' >s.due
run 1 run --retry 1ms,2ms --attempts 7 --stats --exec 'sh ./flaky' s.due
lines tried 6 || fail "tried $(wc -l <tried) times, not 6"
has err '^commands   2, 2 failed$'
has err '^left       0$'

# What waits to be tried again when the run is stopped is left.
rm tried
echo '0s a 9 1' >s.due
start run --retry 1h --exec 'sh ./flaky; s=$?; echo ran; exit $s' s.due
line ran
await grep -q 'status 1' err
kill -TERM "$pid"
ended 143
has err '^duectl: stopped by SIGTERM: 1 jobs left'

# What makes no sense is refused.
run 2 run --retry 5s s.due
has err '--retry: goes with --exec'
run 2 run --exec true --attempts 3 s.due
has err '--attempts: goes with --retry'
for when in '' 5 x 1s.. ..1s 2s..1s 0s..1s 1s, 1s,,2s 1,2,3; do
    run 2 run --exec true --retry "$when" s.due
    has err '--retry takes a time'
done
run 2 work --exec true
has err 'work: needs a URL'
run 2 work --store "$url"
has err 'work: needs --exec'
run 2 work --store "$url" --exec true s.due
has err 's.due: one URL at most'
run 3 work --exec true no/such.db # a path, as of all that use a store
has err 'no/such.db'
run 0 work --help
has out '^usage: duectl work'

# Jobs of a stored queue are handed to commands, several at a time, and leave when they succeed.
rm -f tried
put b <<'END_OF_JOBS'
1s one 1 0
1s two 3 1
1s three 7 75
END_OF_JOBS
[ "$(jobs b)" = 3 ] || fail "$(jobs b) jobs are stored, not 3"
start work --store "$url" --queue b --workers 3 --retry 2ms --attempts 4 --stats \
    --exec 'sh ./flaky'
for i in 1 2 3; do
    read -r got <&4 && echo "$got"
done | sort >sorted
printf 'one\nthree\ntwo\n' | same sorted
await empty b
kill -TERM "$pid"
ended 143
lines tried 11 || fail "tried $(wc -l <tried) times, not 11"
has err '^commands   3 jobs, 0 given up$'

# A command that runs when the signal comes may end; what has not begun stays in the store.
put c <<'END_OF_JOBS'
1s first
1500ms second
END_OF_JOBS
start work --store "$url" --queue c --exec 'read -r t; echo "$t"; sleep 2; echo "end of $t"'
line first
kill -TERM "$pid"
line 'end of first'
ended 143
[ "$(jobs c)" = 1 ] || fail "$(jobs c) jobs are stored, not 1"

# One that takes longer than the grace is ended, and its job stays.
start work --store "$url" --queue c --grace 50ms --exec 'read -r t; echo "$t"; sleep 100'
line second
kill -INT "$pid"
ended 130
[ "$(jobs c)" = 1 ] || fail "$(jobs c) jobs are stored, not 1"

# Whatever kills duectl itself, the next one has the job again.
start work --store "$url" --queue c --exec 'read -r t; echo "$t"; sleep 100'
line second
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 4<&-
pids=
start work --store "$url" --queue c --exec 'read -r t; echo "$t again"'
line 'second again'
await empty c
kill -HUP "$pid"
ended 129

# dead QUEUE COUNT: so many of its jobs are dead.
dead()
{
    [ "$(redis zcard "due:{$1}:dead")" = "$2" ]
}

# A job that always fails is tried so often, and then dead.
rm -f tried
put d <<'END_OF_JOBS'
1s four 9 1
END_OF_JOBS
start work --store "$url" --queue d --retry 2ms --attempts 3 --exec 'sh ./flaky'
await dead d 1
kill -TERM "$pid"
ended 143
lines tried 3 || fail "tried $(wc -l <tried) times, not 3"
run 0 restore --list --queue d "$url"
has out 'its command failed in the last attempt'

# One that takes duectl down with it, too: its attempts were stored before they began.
put e <<'END_OF_JOBS'
1s killer
END_OF_JOBS
for i in 1 2 3; do
    start work --store "$url" --queue e --attempts 3 --exec 'echo run >>ran; kill -9 $PPID'
    ended 137
done
start work --store "$url" --queue e --attempts 3 --exec 'echo run >>ran; kill -9 $PPID'
await dead e 1
kill -TERM "$pid"
ended 143
lines ran 3 || fail "run $(wc -l <ran) times, not 3"
has err '^duectl: job ff[0-9a-f]* (killer) is given up: duectl did not outlive its last att'
run 0 restore --list --queue e "$url"
has out 'duectl did not outlive its attempts'

# The same of a schedule that is run with a store.
: >ran
echo '0s killer' >k.due
for i in 1 2 3; do
    run 137 run --store "$url" --queue k --retry 1ms --attempts 3 \
        --exec 'echo run >>ran; kill -9 $PPID' k.due
    : >k.due
done
run 1 run --store "$url" --queue k --retry 1ms --attempts 3 --exec 'echo run >>ran' k.due
lines ran 3 || fail "run $(wc -l <ran) times, not 3"
has err 'given up: duectl did not outlive its last attempts$'
run 0 restore --list --queue k "$url"
has out 'duectl did not outlive its attempts'

# What asks to be tried again is, however often, and whatever kills duectl once meanwhile.
put f <<'END_OF_JOBS'
1s asking
END_OF_JOBS
cat >asks <<'END_OF_ASKS'
echo run >>asked
case $(wc -l <asked) in
5) kill -9 $PPID ;;
8) exit 0 ;;
*) exit 75 ;;
esac
END_OF_ASKS
start work --store "$url" --queue f --retry 2ms --attempts 3 --exec 'exec sh ./asks'
ended 137
start work --store "$url" --queue f --retry 2ms --attempts 3 --exec 'exec sh ./asks'
await empty f
kill -TERM "$pid"
ended 143
lines asked 8 || fail "asked $(wc -l <asked) times, not 8"

# A command that fails is told with the id of its job and the beginning of the text, as it may be
# shown.
printf '1s tea\033[31m\302\233\342\200\256green %080d\n' 1 | put h
start work --store "$url" --queue h --retry 1h --exec 'exit 3'
await grep -q 'status 3' err
kill -TERM "$pid"
ended 143
has err '^duectl: job ff[0-9a-f]\{26,\} (tea?\[31m??green 0*\.\.\.): the command ended with'
run 0 restore --list --queue h "$url"
has out '  tea?\[31m??green 0'

# Jobs of two topics out of three are handed out, those of the third stay.  They are put there as
# another program would have put them.
put g <<'END_OF_JOBS'
1h of no topic
END_OF_JOBS
redis eval '
local j, topics = KEYS[1], KEYS[2]
local head = "\0\128\198\164\126\141\3\0"           -- due in 1970
local function job(n, check, topic, text)
    local id = "\255\0\0\0\0\0\1\0\0\0\0\0\35" .. string.char(n)
    redis.call("HSET", j, id, "\1\1" .. check .. head .. string.char(#topic) .. topic .. text)
    redis.call("ZADD", KEYS[3] .. topic, "1000000000000", id)
    redis.call("HSET", topics, topic, 0)
end
job(41, "\150\194", "mail", "a letter")
job(42, "\66\211", "fax", "a drawing")
job(43, "\132\189", "post", "a parcel")
return 0' 3 'due:{g}:j' 'due:{g}:topics' 'due:{g}:t:' >/dev/null
run 0 verify --queue g "$url"
start work --store "$url" --queue g --topic mail --topic post --exec 'read -r t; echo "$t"'
for i in 1 2; do
    read -r got <&4 && echo "$got"
done | sort >sorted
printf 'a letter\na parcel\n' | same sorted
await sh -c "[ \$(redis-cli -s '$REDIS_SOCKET' hlen 'due:{g}:j') = 2 ]"
kill -TERM "$pid"
ended 143
[ "$(redis zcard 'due:{g}:t:fax')" = 1 ] || fail "the job of a topic that was not named is gone"
finish
