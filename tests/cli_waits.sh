#!/bin/sh
# Wherever the command waits a signal ends it within a second, and what it waits for is said.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
nobody=unix://$dir/nobody

# begin NAME ARG...: run duectl in the background, with signals as a terminal would have them.
begin()
{
    name=$1
    shift
    rm -f "out.$name" "err.$name"
    env --default-signal=INT "$duectl" "$@" </dev/null >"out.$name" 2>"err.$name" 5>&- &
    eval "pid_$name=\$!"
    begun="$begun $name"
    pids="$pids $!"
}

# says NAME PATTERN: it comes to say so, once.
says()
{
    tries=0
    until grep -qs "$2" "err.$1" || [ $tries = 250 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    [ "$(grep -c "$2" "err.$1")" = 1 ] || {
        fail "$1 says so $(grep -c "$2" "err.$1") times: $2"
        sed 's/^/    /' "err.$1" >&2
    }
}

# ends SIGNAL STATUS: everything that was begun ends at this signal.  It takes a second at most; a
# busy machine has more, and without a signal it would be five at least.
ends()
{
    for name in $begun; do
        eval "pid=\$pid_$name"
        from=$(now_ms)
        kill -"$1" "$pid"
        wait "$pid"
        got=$?
        between 0 3000 $(($(now_ms) - from)) "$name, SIG$1: ms"
        [ "$got" = "$2" ] || fail "$name: status $got, not $2"
    done
    begun=
    pids=
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

# owned QUEUE [PID]: it has an owner, this one.
owned()
{
    redis get "due:{$1}:owner" | grep -q " ${2:-[0-9]*} "
}

# The owner of the queue lives.
begun=
mkfifo endless
"$duectl" run --store "$url" --queue q endless >/dev/null 2>&1 &
owner=$!
exec 5>endless
await owned q
for signal in INT:130 TERM:143 HUP:129; do
    begin run run --store "$url" --queue q
    begin run_standby run --standby --store "$url" --queue q
    begin work work --store "$url" --queue q --exec true
    begin work_standby work --standby --store "$url" --queue q --exec true
    for name in $begun; do
        says "$name" "^duectl: q: waits for its owner to go: process $owner on host $(hostname)\$"
    done
    ends "${signal%:*}" "${signal#*:}"
    has err.work '^duectl: stopped before the queue was opened$'
done

exec 5>&-
wait "$owner"

# There is no server, or there was one, which is silent.
begin run run --store "$nobody"
begin run_standby run --standby --store "$nobody"
begin work work --store "$nobody" --exec true
begin work_standby work --standby --store "$nobody" --exec true
for name in $begun; do
    says "$name" 'waits for the server at .*nobody.*: there is no such socket$'
done
ends TERM 143
kill -STOP "$REDIS_PID"
begin run run --store "$url"
begin run_standby run --standby --store "$url"
begin work work --store "$url" --exec true
begin work_standby work --standby --store "$url" --exec true
begin restore restore "$url"
begin verify verify "$url"
begin repair verify --repair "$url"
begin doctor doctor "$url"
for name in $begun; do
    says "$name" 'waits for the server at .*: no answer yet$'
done
ends INT 130
kill -CONT "$REDIS_PID"

# It falls silent while jobs are waited for, with or without what it has not confirmed.
echo '1h tea' >s.due
begin run run --store "$url" --queue a --ack-lines s.due
begin work work --store "$url" --queue b --exec true
says run 'ack 1'
await owned b
kill -STOP "$REDIS_PID"
ends TERM 143
kill -CONT "$REDIS_PID"

printf '0s one\n0s two\n' >s.due
"$duectl" run --store "$url" --queue d --ack-lines --grace 0s --exec 'sleep 100' s.due \
    >/dev/null 2>err &
pid=$!
await grep -q 'ack 2' err
kill -TERM "$pid"
wait "$pid"
begin run run --store "$url" --queue c --exec 'echo; until [ -e end ]; do sleep 0.02; done' s.due
begin work work --store "$url" --queue d --exec 'echo; until [ -e end ]; do sleep 0.02; done'
await test -s out.run
await test -s out.work
kill -STOP "$REDIS_PID"
kill -TERM "$pid_run" "$pid_work"
touch end
says run 'waits for the server to confirm what was done; another signal ends this$'
ends INT 143
kill -CONT "$REDIS_PID"
rm end

# A command runs that does not heed SIGTERM: the second signal does not wait for it.
begin run run --store "$url" --queue c --exec 'trap "" TERM; echo; while :; do sleep 0.02; done'
begin work work --store "$url" --queue d --exec 'trap "" TERM; echo; while :; do sleep 0.02; done'
await test -s out.run
await test -s out.work
kill -TERM "$pid_run" "$pid_work"
sleep 0.1
ends INT 143

# What was ignored from the beginning stays ignored.
env --ignore-signal=HUP "$duectl" work --store "$url" --queue e --exec true >out 2>err &
pid_ignores=$!
begun=ignores
await owned e
kill -HUP "$pid_ignores"
sleep 0.1
ends TERM 143
finish
