#!/bin/sh
# A program with two queues in memory, one of which is only looked at, is looked into and changed
# through the control socket that it has opened.
. "$(dirname "$0")/cli_lib"
show=$(dirname "$duectl")/tests/show_queues
[ -x "$show" ] || exit 77
cd "$dir" || exit 1

mkfifo to
"$show" c <to >shown &
pid=$!
pids="$pids $pid"
exec 5>to
until "$duectl" stats --control c --queue kitchen >none 2>&1; do
    kill -0 "$pid" || exit 1
    sleep 0.01
done

# Which queues there are; one must be named.
run 0 ps --json --control c
fits out processes 2
has out "^{\"queue\":\"kitchen\",\"host\":\"[^\"]*\",\"pid\":$pid}\$"
run 0 ps --control c
has out 'has hall$'
run 1 ls --control c
has err 'which queue? there are several'
run 1 ls --control c --queue none
has err 'no such queue'
run 2 ls --control c jobs.db
run 3 ls --control none --queue kitchen

# What waits, and what is dead; by state, topic and key.  The clock of hall is turned by hand.
run 0 ls --control c --queue kitchen
[ "$(wc -l <out)" = 3 ] || fail "not 3 jobs"
has out ' waiting  .* mail  *3  tea$'
has out ' dead     .* -  *3  bad$'
run 0 ls --control c --queue kitchen --state waiting --topic mail --json
fits out told 1
has out '"topic":"mail","deadline":"2[0-9]*-.*","priority":4,"data":"tea"}$'
id=$(sed 's/.*"id":"\([0-9a-f]*\)".*/\1/' out)
run 0 ls --control c --queue kitchen --limit 1
[ "$(wc -l <out)" = 1 ] || fail "not 1 job"
run 0 ls --control c --queue kitchen --key long --json
fits out told 1
has out '"bytes":10000,.*"key":"long",.*"data":"aaaa'
[ "$(wc -c <out)" -lt 5000 ] || fail "more than the beginning"
long=$(sed 's/.*"id":"\([0-9a-f]*\)".*/\1/' out)
run 0 ls --control c --queue kitchen --key none
[ ! -s out ] || fail "a job has no such key"
run 1 ls --control c --queue kitchen --key held
has err 'job [0-9a-f]*: the job is being handled'
! grep -q 'cannot be read' err || fail "a job that somebody has is said to be damaged"
held=$(sed 's/.*job \([0-9a-f]*\):.*/\1/' err)
run 1 show --control c --queue kitchen "$held"
has err "job $held: the job is being handled"
run 2 ls --control c --queue kitchen --state reserved
has err 'does not tell of jobs that somebody has'
run 0 dead ls --control c --queue kitchen
has out ' buried .* why  bad$'
dead=$(cut -d ' ' -f 1 out)
run 0 ls --control c --queue hall --json
fits out told 1
has out '"data":{"base64":"/w=="}}$'

# More than a page.
seq 300 | sed 's/.*/1h job &/' >many
run 0 push --control c --queue kitchen --topic many many
run 0 ls --control c --queue kitchen --topic many
[ "$(sort -u out | wc -l)" = 300 ] || fail "not 300 jobs"
run 0 clear --yes --control c --queue kitchen --topic many
echo 'cleared 300' | same out

# Of one: all that is told, and its bytes.
run 0 show --control c --queue kitchen "$id" "$dead"
has out '^text       tea$'
has out '^reason     why$'
[ "$(grep -c '^attempts   1$' out)" = 1 ] || fail "not the attempts of the dead one alone"
run 0 show --control c --queue kitchen "$id"
! grep -qE '^(attempts|failures) ' out || fail "attempts of which it is not told"
run 0 show --control c --queue kitchen --data "$long"
[ "$(wc -c <out)" = 10000 ] || fail "not all of its bytes"
run 0 show --control c --queue kitchen --json "$dead"
fits out told 1
has out '"dead":{"cause":"buried",.*"reason":"why"}'
run 1 show --control c --queue kitchen "$id" 00000000000000000000000000000001
has err 'no such job'

# What is changed.
run 0 reschedule --control c --queue kitchen "$id" 1h
run 0 promote --control c --queue kitchen "$id"
echo 'promoted 1' | same out
echo '0s egg' | "$duectl" push --control c --queue kitchen >none || fail "no push"
echo '0s egg' >in.txt
run 1 push --control c --queue hall in.txt
has err 'not stored: not supported here'
run 1 cancel --control c --queue hall "$id"
has err 'not supported here'
run 0 dead kick --control c --queue kitchen "$dead"
run 0 pause --control c --queue kitchen
run 0 resume --control c --queue kitchen
run 0 cancel --control c --queue kitchen "$long"
run 2 export --control c
run 2 import --control c
run 2 top --control c
exec 5>&-
wait "$pid" || fail "the program ends with $?"
pids=
printf 'cancelled 10000\nleft tea\nleft egg\nleft bad\n' | sort >wanted
sort shown | diff wanted - || fail "other jobs are left"
[ ! -e c ] || fail "the socket stays"
finish
