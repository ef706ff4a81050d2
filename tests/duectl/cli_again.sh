#!/bin/sh
# Lines that come again: every so often, and as cron lines say.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# Every so often, until a signal, also behind the end of the input.
printf 'every 50ms tick\n0s now\n' >s.due
start run s.due
line now
for i in 1 2 3 4; do
    line tick
done
kill -INT "$pid"
ended 130
has err '^duectl: stopped by SIGINT: 1 jobs left'

# A command for each; one that fails is run again, and its line goes on.  The next round is far
# enough away for a busy machine.
printf 'every 500ms tick\n0s now\n' >s.due
start run --exec 'cat; exit 1' --retry 1ms --attempts 2 s.due
line now
line now
for i in 1 2 3; do
    line tick
    line tick
done
kill -INT "$pid"
ended 130
has err 's.due:1: the command ended with status 1'

# Each line says what it is; a restart finds it, and a round is neither lost nor doubled.
cat >s.due <<'END'
every 100ms tick
zone=Europe/Berlin 30 2 * * * report
zone=Europe/Berlin key=k group=g priority=7 topic=t headers="h\x00\"" 30 * * * MON-FRI hourly
END
waiting()
{
    "$duectl" ls --json "$store" >jobs 2>err || fail "ls: $(cat err)"
    fits jobs listed
    [ "$(grep -c . jobs)" = "$1" ] || fail "$2: not $1 jobs: $(cat jobs)"
    for text in tick report hourly; do
        [ "$(grep -c "\"data\":\"$text\"}" jobs)" = 1 ] || fail "$2: $text is not there once"
    done
}
for store in again.db "$url"; do
    for i in 1 2 3; do
        start run --store "$store" --ack-lines s.due
        line tick
        line tick
        for n in $(seq 100); do # all of the input is read, on a busy machine too
            grep -q '^ack 3$' err && break
            sleep 0.1
        done
        kill -INT "$pid"
        ended 130
        has err '^ack 3$'
        waiting 3 "start $i"
    done
    has jobs '"topic":"t",.*"priority":7,"headers":.*"key":"k","group":"g","data":"hourly"}$'

    # Killed at any moment.
    i=0
    while [ $i -lt 12 ]; do
        start run --store "$store" s.due
        line tick
        sleep 0.0$((i * 7 % 10))
        kill -KILL "$pid"
        exec 4<&-
        wait "$pid" 2>/dev/null
        pids=
        i=$((i + 1))
    done
    start run --store "$store" /dev/null
    line tick
    kill -INT "$pid"
    ended 130
    waiting 3 killed
    run 0 verify "$store"

    # `work` goes on with them, and push finds them.
    start work --store "$store" --exec cat
    line tick
    line tick
    kill -TERM "$pid"
    ended 143
    waiting 3 work
    run 0 push "$store" s.due
    grep -o '"id":"[^"]*"' jobs | sort >before
    sed 's/.*/"id":"&"/' out | sort | same before
    waiting 3 pushed

    # A command that fails for good: the next round comes all the same.
    start work --store "$store" --exec 'cat; exit 1' --attempts 1
    line tick
    line tick
    kill -TERM "$pid"
    ended 143
    "$duectl" ls --state waiting --json "$store" >jobs
    [ "$(grep -c . jobs)" = 3 ] || fail "a failed command ended its line"
done

# Killed in the middle of rounds that follow each other as fast as they are stored.
echo 'every 1us fast' | run 0 push fast.db
i=0
while [ $i -lt 20 ]; do
    start run --store fast.db /dev/null
    line fast
    sleep 0.0$((i * 3 % 10))
    kill -KILL "$pid"
    exec 4<&-
    wait "$pid" 2>/dev/null
    pids=
    i=$((i + 1))
done
start run --store fast.db /dev/null
line fast
kill -INT "$pid"
ended 130
"$duectl" ls fast.db >out
[ "$(grep -c . out)" = 1 ] || fail "it is not there once, but: $(cat out)"

# Its time limit: what is late is not run, and the next one comes.
echo 'ttl=1ms every 40ms late' | "$duectl" push late.db >out || fail "push"
sleep 0.2
start run --store late.db /dev/null
line late
kill -INT "$pid"
ended 130
has err "its time limit had passed"
finish
