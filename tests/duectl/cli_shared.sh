#!/bin/sh
# A queue that many processes share: every command works on it while others do.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# soon PATTERN ARG...: duectl ARG... says a line like that before long.
soon()
{
    pattern=$1
    shift
    tries=0
    until timeout 20 "$duectl" "$@" >out 2>err && grep -q -e "$pattern" out; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { fail "duectl $*: never a line like $pattern"; return; }
        sleep 0.02
    done
}

# It is made by whoever comes first; after that nobody has to say so.
printf '0s one\n1h later\nx\n2h much later\n' >in.txt
run 1 push --shared --ack-lines --queue q "$url" <in.txt
[ "$(wc -l <out)" = 3 ] || fail "not 3 ids"
has err '^ack 1$'
has err '^ack 4$'
has_not err '^ack 3$'
has err '^-:3:1: a line begins with a time'
cp out ids
echo '0s two' >in.txt
run 0 push --queue q --json "$url" <in.txt
fits out pushed 1
has_not err ack
[ "$(redis HGET 'due:{q}:meta' mode)" = shared ] || fail "it is not shared"
run 0 ls --json --queue q "$url"
fits out listed 4
has_not out '"state":"reserved"'
run 0 stats --json --queue q "$url"
fits out counts 2
has out '^{"queue":"q","waiting":4,"due":2,"reserved":0,"dead":0,'

# Jobs go to whoever works there; meanwhile they are looked at and changed.
until_go="while [ -d '$dir' ] && [ ! -e '$dir/go' ]; do sleep 0.02; done" # or the test is over
"$duectl" work --shared --queue q --exec "cat; $until_go" "$url" >worked 2>said &
pid=$!
pids=$pid
soon '"evicted":false' ps --json --queue q "$url"
fits out processes 1
has out "\"pid\":[0-9]*,.*\"evicted\":false}$"
soon 'reserved .* one$' ls --queue q "$url"
soon '"reserved":[12],"dead":0' stats --json --queue q "$url"
run 0 ls --json --state reserved --queue q "$url"
fits out listed
id=$(sed -n 1p ids)
run 0 show --queue q "$url" "$id"
has out '^state      reserved$'
run 1 cancel --queue q "$url" "$id"
has err "^duectl: job $id: somebody has it, and it will not come again$"
run 1 cancel --json --queue q "$url" "$id"
has out '"result":"DUE_EBUSY"'
id=$(sed -n 2p ids)
run 0 show --json --queue q "$url" "$id"
fits out listed 1
has out '"state":"waiting",.*"data":"later"'
run 0 reschedule --queue q "$url" "$id" 3h
run 0 cancel --json --queue q "$url" "$(sed -n 3p ids)"
fits out answers:cancelled 2
run 0 ls --queue q "$url"
has_not out 'much later'
run 1 cancel --queue q "$url" "$(sed -n 3p ids)"
run 0 reschedule --queue q "$url" "$id" 0s
: >go
soon '"waiting":0,"due":0,"reserved":0,"dead":0' stats --json --queue q "$url"
[ "$(sort worked | tr '\n' ' ')" = 'later one two ' ] || fail "worked: $(cat worked)"

# Those that stand behind another of their group are there, too.
printf 'group=g 0s one\ngroup=g 0s two\ngroup=g 1h three\n' >in.txt
run 0 push --shared --queue groups "$url" <in.txt
cp out grouped
run 0 ls --json --queue groups "$url"
fits out listed 3
# What is behind comes first: it may go to the front meanwhile, and out from there.
run 0 ls --queue groups "$url"
[ "$(sed 's/.* //' out | tr '\n' ' ')" = 'two three one ' ] || fail "order: $(cat out)"
run 0 stats --json --queue groups "$url"
has out '"waiting":3,"due":2,"reserved":0,"dead":0,'
run 0 show --queue groups "$url" "$(sed -n 2p grouped)"
has out '^state      waiting$'
run 0 cancel --queue groups "$url" "$(sed -n 1p grouped)" "$(sed -n 2p grouped)"
run 0 ls --json --queue groups "$url"
fits out listed 1

# Dead ones: listed, handed out again, and gone.
run 0 ps --queue q "$url"
number=$(cut -d ' ' -f 1 out)
kill -TERM "$pid"
wait "$pid"
[ $? = 143 ] || fail "work, stopped by a signal"
run 0 ps --queue q "$url"
same out </dev/null
printf '0s bad\n0s worse\n' | run 0 push --queue q "$url"
"$duectl" work --shared --queue q --attempts 1 --exec false "$url" >worked 2>said &
pid=$!
pids=$pid
soon '"dead":2' stats --json --queue q "$url"
run 0 dead ls --json --queue q "$url"
fits out listed 2
run 0 dead ls --queue q "$url"
id=$(grep bad out | cut -d ' ' -f 1)
other=$(grep worse out | cut -d ' ' -f 1)
run 0 dead drop --queue q "$url" "$other"
run 1 dead drop --queue q "$url" "$other"
run 0 dead kick --queue q "$url" "$id"
soon "^$id" dead ls --queue q "$url"

# Paused, one topic or all, nobody gets its jobs, whoever says so; and it stays so without him.
printf '0s held\n' >in.txt
run 0 pause --json --queue q --topic slow "$url"
fits out answers:paused 1
run 0 push --queue q --topic slow "$url" <in.txt
run 0 stats --json --queue q "$url"
fits out counts 3
has out '"topic":"slow","waiting":1,"due":1,.*,"paused":true}$'
printf '0s bad again\n' | run 0 push --queue q "$url"
soon 'bad again$' dead ls --queue q "$url"
has_not out 'held$'
run 0 resume --queue q --topic slow "$url"
soon 'held$' dead ls --queue q "$url"
run 0 stats --json --queue q "$url"
has_not out paused
run 0 pause --queue q "$url"
run 0 stats --queue q "$url"
has out '^- .* paused$'
has out '^slow .* paused$'
run 0 resume --queue q "$url"
redis HSET 'due:{q}:topics' slow '0 3' odd '1 2 3' strange 'x y' >none
run 0 stats --json --queue q --topic slow "$url"
has out '"topic":"slow",.*,"limit":3}$'
run 0 stats --queue q "$url"
has out '^slow .* limit 3$'
has_not out '^odd'
has_not out strange
redis HDEL 'due:{q}:topics' odd strange >none
redis HSET 'due:{q}:topics' slow 0 >none
run 1 pause --queue nobody "$url"

# So with a queue that one process owns, and that has no owner now: the next one goes by it.
printf '0s mine\n' | run 0 push --queue own "$url"
run 0 pause --queue own "$url"
run 0 stats --json --queue own "$url"
has out '"paused":true}$'
run 0 push --queue own "$url" </dev/null
run 0 stats --json --queue own "$url"
has out '"paused":true}$'
run 0 resume --queue own "$url"
run 0 stats --json --queue own "$url"
has_not out paused

# Who is turned out: it is asked before, and then what he says is refused.
run 0 ps --queue q "$url"
fresh=$(cut -d ' ' -f 1 out)
[ "$fresh" != "$number" ] || fail "another process has the number of one that is gone"
run 2 evict --queue q "$url" "$fresh" </dev/null
has err 'nothing was done: without a terminal'
run 1 evict --queue q --yes "$url" 17
has err '^duectl: 17: no such process'
echo '0s after' >in.txt
run 1 evict --json --queue q --yes "$url" 17 "$fresh"
fits out answers:evicted 3
wait "$pid"
[ $? = 3 ] || fail "work, evicted"
has said 'or this one was evicted'
run 0 ps --queue q "$url"
has out "^$fresh .* evicted$"
run 0 push --queue q "$url" <in.txt
run 0 ls --queue q "$url"
has out 'waiting .* after$'

# He hears of it at once, on the channel on which he is rung.
redis HSET 'due:{q}:p' 17 'elsewhere 3 12 1600000000000000 1600000000000000' >none
redis HSET 'due:{q}:writers' 17:p '1 1 1' 17:w '1 1 1' >none
redis-cli -s "$REDIS_SOCKET" SUBSCRIBE 'due:{q}:r:17' >heard 2>&1 &
pids="$pids $!"
tries=0
until grep -q '^subscribe' heard || [ $tries = 300 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
run 0 ps --queue q --json "$url"
fits out processes 2
has out '"number":17,"host":"elsewhere","pid":12,.*"held":3,"waits":false,"evicted":false}$'
run 0 evict --queue q --yes "$url" 17
until grep -q '^message' heard || [ $tries = 600 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
has heard '^message'
[ "$(redis HMGET 'due:{q}:writers' 17:p 17:w | tr '\n' ' ')" = 'X X ' ] || fail "not both lanes"

# What was owned is shared from then on if somebody says so, and owned again by who is alone.
run 0 push --queue turns "$url" <in.txt
run 0 push --shared --queue turns "$url" <in.txt
[ "$(redis HGET 'due:{turns}:meta' mode)" = shared ] || fail "it is not shared"
run 0 run --store "$url" --queue turns </dev/null
[ "$(wc -l <out)" = 2 ] || fail "not both were handed out"
[ "$(redis HGET 'due:{turns}:meta' mode)" = owner ] || fail "it is not owned"
[ "$(redis EXISTS 'due:{turns}:j' 'due:{turns}:p' 'due:{turns}:h')" = 0 ] || fail "not all went"

# One that is owned is not shared meanwhile, and a file is owned.
run 0 push --queue own "$url" <in.txt

run 1 evict --yes --queue own "$url" 5
has err 'owned by one process, alone'
run 0 ps --queue own "$url"
same out </dev/null
"$duectl" work --queue own --exec 'sleep 60' "$url" >worked 2>said &
pid=$!
pids=$pid
soon '"pid"' ps --json --queue own "$url"
fits out processes 1
run 0 ps --queue own "$url"
has out "^- .* $pid .*owns it alone$\|^- .*owns it alone$"
run 3 work --shared --queue own --exec cat "$url"
kill -KILL "$pid"
run 3 push --shared a.db <in.txt
has err 'cannot be shared'
run 3 work --shared --exec cat --store a.db
run 1 evict --yes a.db 5
has err 'belongs to one process at a time'

# Of a file it is its owner, or nobody.
run 0 push own.db <in.txt
run 0 ps own.db
[ ! -s out ] || fail "somebody has it open: $(cat out)"
run 0 ps --json own.db
fits out processes 0
"$duectl" work --exec cat --store own.db >none 2>&1 &
pid=$!
pids=$pid
soon '"pid":[1-9]' ps --json own.db # it has the file before it says who it is
fits out processes 1
has out "\"host\":\"$(hostname)\",\"pid\":$pid}"
run 0 ps own.db
has out "^- .* $pid .*owns it alone$"
ln -s own.db link.db
run 0 ps link.db
has out "^- .* $pid .*owns it alone$"
run 1 ps --queue other own.db
has err 'there is no such queue: other'
run 1 evict own.db 5 </dev/null
has err 'belongs to one process at a time'
kill -KILL "$pid"
wait "$pid" 2>none
pids=
run 0 ps own.db
[ ! -s out ] || fail "it has gone: $(cat out)"
run 3 ps none.db
[ ! -e none.db-owner ] || fail "ps makes something"

# A full queue: a push waits for room, and ends when it is told to.
printf '1h one\n' >in.txt
run 0 push --shared --queue full "$url" <in.txt
redis HSET 'due:{full}:writers' capacity 2 >none
printf '1h two\n2h three\n3h four\n' >in.txt
for way in stopped room; do
    "$duectl" push --queue full "$url" <in.txt >out 2>err &
    pid=$!
    pids=$pid
    until [ "$(redis ZCARD 'due:{full}:wr')" = 1 ]; do sleep 0.02; done
    if [ $way = stopped ]; then
        kill -TERM "$pid"
        status=143
        ids=1
    else
        redis HSET 'due:{full}:writers' capacity 3 >none
        "$duectl" clear --yes --queue full "$url" >none
        status=0
        ids=3
    fi
    wait "$pid"
    got=$?
    [ $got = $status ] || fail "push into a full queue, $way: exit status $got"
    [ "$(wc -l <out)" = $ids ] || fail "push into a full queue, $way: $(wc -l <out) ids"
    [ $way = room ] || has err 'the queue is full: what has no id is not stored'
    [ "$(redis EXISTS 'due:{full}:wr')" = 0 ] || fail "it stands in line, $way"
done
pids=

# Nothing there; wrong words; nobody reads; nobody answers.
run 1 ps --queue none "$url"
run 1 evict --yes --queue none "$url" 5
run 2 evict --yes "$url"
has err 'which process'
run 2 evict --yes "$url" 0 1
run 2 evict --yes "$url" 12345678901234567890
run 2 ps "$url" more
run 2 ps
run 2 work --shared --standby --exec cat "$url"
has err 'goes without --shared'
unread 3 ps --queue q "$url"
unread 3 ps --json --queue q "$url"
timeout 20 "$duectl" ps --queue q "$url" >/dev/full 2>err
[ $? = 3 ] || fail "ps, to a full disk"
unread 3 evict --yes --queue q "$url" "$fresh"
for command in 'ps' 'evict --yes' 'push --shared' 'work --shared --exec cat' 'cancel'; do
    set -- "unix://$dir/nobody.sock"
    [ "${command%% *}" = evict ] && set -- "$@" 5
    [ "$command" = cancel ] && set -- "$@" "$id"
    run 3 $command --queue q "$@" <in.txt
    has err 'connect\|reached'
done
redis SET 'due:{odd}:meta' text >none
run 3 ps --queue odd "$url"
has err 'makes no sense\|WRONGTYPE'
redis HSET 'due:{odd2}:meta' mode shared >none
redis SET 'due:{odd2}:p' text >none
run 1 ps --queue odd2 "$url"
run 1 evict --yes --queue odd2 "$url" 5
redis CONFIG SET requirepass secret >none
run 3 ps --queue q "unix://:wrong@$REDIS_SOCKET"
has_not err wrong
run 3 evict --yes --queue q "unix://:wrong@$REDIS_SOCKET" "$fresh"
has_not err wrong
run 3 cancel --queue q "unix://:wrong@$REDIS_SOCKET" "$id"
has_not err wrong
run 0 ps --queue q "unix://:secret@$REDIS_SOCKET"
finish
