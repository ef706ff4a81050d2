#!/bin/sh
# Wherever the command waits a signal ends it within a second, and what it waits for is said.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
nobody=unix://$dir/nobody

# started PID: it is the command by now, and not still a shell, which may lose a signal.
started()
{
    until [ "$(cat "/proc/$1/comm")" = duectl ]; do
        sleep 0.01
    done
}

# begin NAME ARG...: run duectl in the background, with signals as a terminal would have them.
begin()
{
    name=$1
    shift
    rm -f "err.$name"
    [ -n "$output" ] || rm -f "out.$name"
    env --default-signal=INT "$duectl" "$@" <"$input" >"${output:-out.$name}" 2>"err.$name" 5>&- &
    eval "pid_$name=\$!"
    begun="$begun $name"
    pids="$pids $!"
    started $!
}
input=/dev/null
output=

# says NAME PATTERN: it comes to say so, once, within four seconds.
says()
{
    until_ms=$(($(now_ms) + 4000))
    until grep -qs "$2" "err.$1" || [ "$(now_ms)" -gt $until_ms ]; do
        sleep 0.02
    done
    said_once "$1" "$2"
}

said_once()
{
    [ "$(grep -c "$2" "err.$1")" = 1 ] || {
        fail "$1 says so $(grep -c "$2" "err.$1") times: $2"
        sed 's/^/    /' "err.$1" >&2
    }
}

# end_all: everything that was begun is sent the signal, and ends with the status.  What takes
# longer than a second is in $slow.
end_all()
{
    slow=
    for name in $begun; do
        eval "pid=\$pid_$name"
        from=$(now_ms)
        kill -"$signal" "$pid"
        wait "$pid"
        got=$?
        ms=$(($(now_ms) - from))
        [ $ms -le 1000 ] || slow="$slow $name:$ms"
        [ "$got" = "$status" ] || fail "$name, $what: status $got, not $status"
    done
    kill -CONT "$REDIS_PID"
    pids=
}

# ends SIGNAL:STATUS SITUATION ARG...: the situation begins commands and sees that they wait; then
# each of them ends at the signal within a second.  The machine may be busy, so there are three
# tries; what waits for longer than a second does so in each of them.
ends()
{
    signal=${1%:*}
    status=${1#*:}
    shift
    what="$* SIG$signal"
    late=all
    for try in 1 2 3; do
        begun=
        "$@"
        end_all
        still=
        for one in $slow; do
            case " $late" in
            " all" | *" ${one%:*}:"*) still="$still $one" ;;
            esac
        done
        late=$still
        [ -n "$late" ] || return 0
    done
    fail "$what: takes longer than a second each time, in ms:$late"
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
mkfifo endless
"$duectl" run --store "$url" --queue q endless >/dev/null 2>&1 &
owner=$!
exec 5>endless
await owned q
behind_an_owner()
{
    begin run run --store "$url" --queue q
    begin run_standby run --standby --store "$url" --queue q
    begin work work --store "$url" --queue q --exec true
    begin work_standby work --standby --store "$url" --queue q --exec true
    begin repair verify --repair --queue q "$url"
    for name in $begun; do
        says "$name" "waits for its owner to go: process $owner on host $(hostname)\$"
    done
    for name in run run_standby work work_standby; do
        has "err.$name" "^duectl: q: waits"
    done
}
ends INT:130 behind_an_owner
has err.work '^duectl: stopped before the queue was opened$'
ends TERM:143 behind_an_owner
ends HUP:129 behind_an_owner

# It is looked for again when its lease was to end, and named no second time.
behind_one_that_stays()
{
    redis pexpire 'due:{q}:owner' 3000 >/dev/null
    begin run run --standby --store "$url" --queue q
    begin work work --standby --store "$url" --queue q --exec true
    says run 'waits for its owner'
    says work 'waits for its owner'
    redis pexpire 'due:{q}:owner' 10000 >/dev/null
    sleep 3.2
    said_once run 'waits for its owner'
    said_once work 'waits for its owner'
}
ends TERM:143 behind_one_that_stays
exec 5>&-
wait "$owner"

# There is no server, or there was one, which is silent.
without_a_server()
{
    begin run run --store "$nobody"
    begin run_standby run --standby --store "$nobody"
    begin work work --store "$nobody" --exec true
    begin work_standby work --standby --store "$nobody" --exec true
    begin restore restore "$nobody"
    begin verify verify "$nobody"
    begin repair verify --repair "$nobody"
    begin doctor doctor "$nobody"
    for name in $begun; do
        says "$name" '^duectl: waits for the server at .*nobody.*: there is no such socket$'
    done
}
ends TERM:143 without_a_server

before_a_silent_server()
{
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
        says "$name" '^duectl: waits for the server at .*: no answer yet$'
    done
}
ends INT:130 before_a_silent_server

# Jobs are waited for, or lines.
exec 5<>endless
echo '1h tea' >s.due
waiting_for_jobs()
{
    begin plain run s.due
    begin exec run --exec true s.due
    begin run run --store "$url" --queue a --ack-lines s.due
    begin work work --store "$url" --queue b --exec true
    input=endless
    begin check check
    begin lines run
    begin stored run --store "$url" --queue e
    input=/dev/null
    says run 'ack 1'
    await owned b
    await owned e
}
ends INT:130 waiting_for_jobs
ends HUP:129 waiting_for_jobs

# The server falls silent meanwhile, with or without what it has not confirmed.
silent_while_waiting()
{
    begin run run --store "$url" --queue a --ack-lines s.due
    begin work work --store "$url" --queue b --exec true
    says run 'ack 1'
    await owned b
    kill -STOP "$REDIS_PID"
}
ends TERM:143 silent_while_waiting

printf '0s one\n0s two\n' >two.due
hold='echo; until [ -e end ]; do sleep 0.02; done'
# fill QUEUE: it has jobs that are due.
fill()
{
    rm -f err
    "$duectl" run --store "$url" --queue "$1" --ack-lines --grace 0s --exec 'sleep 100' two.due \
        >/dev/null 2>err &
    pid=$!
    await grep -q 'ack 2' err
    kill -TERM "$pid"
    wait "$pid"
}
unconfirmed()
{
    rm -f end
    fill d
    begin run run --store "$url" --queue c --exec "$hold" two.due
    begin work work --store "$url" --queue d --exec "$hold"
    await test -s out.run
    await test -s out.work
    kill -STOP "$REDIS_PID"
    kill -TERM "$pid_run" "$pid_work"
    touch end
    for name in $begun; do
        says "$name" 'waits for the server to confirm what was done; another signal ends this$'
    done
}
ends INT:143 unconfirmed

# A command runs that does not heed SIGTERM, or nobody reads the output: the second signal does not
# wait for it.
long=$(head -c 1000000 /dev/zero | tr '\0' x)
printf '0s %s\n' "$long" >long.due
heedless()
{
    fill d
    defiant='trap "" TERM; echo; while :; do sleep 0.02; done'
    begin plain run --exec "$defiant" two.due
    begin run run --store "$url" --queue c --exec "$defiant" two.due
    begin work work --store "$url" --queue d --exec "$defiant"
    for name in printer stored; do
        rm -f "out.$name"
        mkfifo "out.$name"
    done
    exec 6<>out.printer 7<>out.stored
    output=out.printer
    begin printer run long.due
    output=out.stored
    begin stored run --store "$url" --queue f long.due
    output=
    head -c 1 <&6 >/dev/null
    head -c 1 <&7 >/dev/null
    for name in plain run work; do
        await test -s "out.$name"
    done
    for name in $begun; do
        eval "kill -TERM \"\$pid_$name\""
    done
    sleep 0.1
}
ends INT:143 heedless
exec 6>&- 7>&-

# What was ignored from the beginning stays ignored.
ignoring()
{
    env --ignore-signal=HUP "$duectl" work --store "$url" --queue g --exec true >out 2>err &
    pid_ignores=$!
    pids=$!
    begun=ignores
    await owned g
    kill -HUP "$pid_ignores"
    sleep 0.1
}
ends TERM:143 ignoring
finish
