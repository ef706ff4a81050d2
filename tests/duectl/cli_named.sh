#!/bin/sh
# Jobs are shown, cancelled, kicked and put off by their ids, in a file and on a server alike.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
waits=ff000000000100000000000000010000
reserved=f0000000000200000000000000050000
letter=ff000000000100000000000000040000
none=ff0000000000ff000000000000990000

for store in a.db "$url"; do
    run 0 import "$store" <"$all"
    run 0 show "$store" $waits $reserved $letter
    has out '^state      dead$'
    has out '^cause      '
    cp out "shown.${store%%:*}"
    has_not out '[[:cntrl:]]'
    grep -o '"id":"[^"]*"' "$all" | cut -d '"' -f 4 >ids
    run 0 show --json "$store" - <ids
    fits out listed 8
    sed 's/^{"state":"[a-z]*",/{/' out >got
    grep '"id":' "$all" | same got
    run 1 show "$store" $none $waits
    has err "^duectl: job $none: no such job"
    has out "^id         $waits"
    run 1 show "$store" ff00000000010000000000000001abcd
    [ ! -s out ] || fail "a job with another id is shown"
    run 2 show "$store"
    run 2 show "$store" ff00
    unread 3 show "$store" $waits

    run 0 reschedule "$store" $waits @2040-02-29T12:00:00.000000001Z
    same out <<.
rescheduled 1
.
    run 0 ls --json "$store"
    has out "\"id\":\"$waits\".*\"deadline\":\"2040-02-29T12:00:00.000000001Z\""
    run 1 reschedule --json "$store" $waits $letter 1h30m
    fits out answers:rescheduled 3
    has out "^{\"id\":\"$waits\",\"result\":\"rescheduled\"}$"
    has out "^{\"id\":\"$letter\",\"result\":\"DUE_ENOENT\"}$"
    has out '^{"rescheduled":1}$'
    for wrong in 5 1h30 -1s @tomorrow '1h x'; do
        run 2 reschedule "$store" $waits "$wrong"
    done
    run 2 reschedule "$store" $waits
    run 2 reschedule "$store" 1h

    run 1 kick --json "$store" $letter $waits $none
    fits out answers:kicked 4
    has out "^{\"id\":\"$letter\",\"result\":\"kicked\"}$"
    has out "^{\"id\":\"$waits\",\"result\":\"DUE_ENOENT\"}$"
    has err "^duectl: job $waits: no such job"
    run 0 show "$store" $letter
    has out '^state      waiting$'
    has out '^attempts   0$'

    # What a list shows can be given on, as it is.
    run 0 ls --topic '' "$store"
    { echo; cat out; echo no id; echo "$none"; } >list
    run 1 cancel "$store" - "$reserved" <list
    has err '^duectl: -:[0-9]*:1: expected an id: 32 hexadecimal digits$'
    has err "^duectl: job $none: no such job"
    has out '^cancelled [2-9]$'
    run 1 show "$store" $waits
    run 1 show "$store" $reserved
    run 0 ls --topic '' "$store"
    [ ! -s out ] || fail "jobs are left"
    unread 3 cancel "$store" $waits
    run 2 cancel "$store"
    run 2 cancel "$store" $waits --no
    run 2 cancel "$store" "$store" $waits

    # More than one change has room for.
    seq 1 700 | sed 's/.*/1h job &/' | "$duectl" push "$store" >many
    run 0 cancel --json "$store" - <many
    fits out answers:cancelled 701
    has out '^{"cancelled":700}$'
done
same shown.unix <shown.a.db

# Nothing is made; and somebody else's is not touched.
for verb in show cancel kick 'dead drop'; do
    run 3 $verb no.db $waits
    run 1 $verb --queue no "$url" $waits
done
[ ! -e no.db ] || fail "a file was made"
echo '1h keep' | "$duectl" push a.db >ids
echo '0s ready' | "$duectl" push a.db >none
start work --exec cat --store a.db
line ready
for verb in cancel kick 'dead kick' 'dead drop'; do
    run 3 $verb a.db "$(cat ids)"
    has err "pid $pid"
done
run 0 show a.db "$(cat ids)"
kill "$pid"
ended 143
run 0 cancel a.db "$(cat ids)"

# No server.
for verb in "show $waits" "cancel $waits" "dead drop $waits" "reschedule $waits 1h" "stats"; do
    {
        timeout 20 "$duectl" $verb --store unix:///no/such/socket >/dev/null 2>&1
        echo "$?" >>gone
    } &
done
wait
seq 5 | sed 's/.*/3/' | same gone
finish
