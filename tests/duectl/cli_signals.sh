#!/bin/sh
# SIGINT and SIGTERM end a run cleanly; it says what was left.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

cat >s.due <<'END'
3h the fourth
1h the second
2h the third
10m the first
@2100-01-01T00:00:00Z the last
0s ready
END
for signal in INT:130 TERM:143 HUP:129; do
    start run --stats s.due
    line ready
    kill -"${signal%:*}" "$pid"
    ended "${signal#*:}"
    has err "^duectl: stopped by SIG${signal%:*}: 5 jobs left"
    sed -n 's/^duectl: left: //p' err | sed 's/^.*): //' >left
    same left <<'END'
the first
the second
the third
and 2 more
END
    has err '^duectl: left: 20..-..-..T..:..:..\....+.... (in 9 min 5[0-9] s): the first$'
    has err '^left       5$'
done

# A running command may end; nothing new is started.
cat >s.due <<'END'
1ms  echo ready; until [ -e go ]; do sleep 0.02; done; echo ended
2ms  echo not this
END
start run --exec 'eval "$DUE_TEXT"' s.due
line ready
kill -INT "$pid"
sleep 0.3 # it has heard that
touch go
line ended
line '(the end)'
ended 130
has err '^duectl: stopped by SIGINT: 1 jobs left'
has err '(due since .*): echo not this$'

# A command that takes longer than the grace is sent SIGTERM, and SIGKILL when it ignores that.
echo '1ms trap "echo asked; exit 0" TERM; echo ready; while :; do sleep 0.01; done' >s.due
start run --grace 50ms --exec 'eval "$DUE_TEXT"' s.due
line ready
kill -TERM "$pid"
line asked
ended 143

echo '1ms trap "" TERM; echo ready; while :; do sleep 0.01; done' >s.due
start run --grace 0s --exec 'eval "$DUE_TEXT"' s.due
line ready
kill -TERM "$pid"
ended 143
has err 'was ended by signal 9$'

# A signal that is sent to the process and its group comes twice, and is one.  On a machine that was
# busy with something else in between, once more.
echo '1ms echo ready; sleep 0.3; echo ended' >s.due
for try in 1 2 3 4 5 6 7 8 9; do
    start run --grace 1h --exec 'eval "$DUE_TEXT"' s.due
    line ready
    since=$(date +%s%N)
    kill -TERM "$pid"
    sleep 0.02
    kill -TERM "$pid"
    [ $((($(date +%s%N) - since) / 1000000)) -ge 150 ] || break
    wait "$pid"
done
line ended
line '(the end)'
ended 143

# A second signal waits for nothing.
echo '1ms echo ready; trap "echo first" TERM; sleep 100; echo not this' >s.due
start run --grace 1h --exec 'eval "$DUE_TEXT"' s.due
line ready
kill -INT "$pid"
kill -TERM "$pid"
line '(the end)'
ended 130
has err 'was ended by signal 9$'

# Output that nobody reads does not keep it from ending.
{
    printf '0s ready\n0s '
    head -c 1000000 /dev/zero | tr '\0' x
    echo
} >s.due
start run s.due
line ready
head -c 10000 <&4 >/dev/null
kill -INT "$pid"
kill -TERM "$pid"
ended 130
has err '^duectl: left behind: '

# What was ignored from the beginning stays ignored.
printf '0s ready\n200ms end\n' >s.due
mkfifo fifo
env --ignore-signal=INT "$duectl" run s.due >fifo 2>err &
pid=$!
pids=$pid
exec 4<fifo
line ready
kill -INT "$pid"
line end
ended 0
finish
