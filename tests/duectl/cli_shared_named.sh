#!/bin/sh
# Jobs of a queue that many processes share are put by a file, kicked, promoted and let go on by
# their ids, while another process has the queue.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# A process that shares the queue all the while, and takes only what nobody here puts.
printf '0s first\n' | run 0 push --shared --queue q --topic other "$url"
until_over="while [ -d '$dir' ] && [ ! -e '$dir/over' ]; do sleep 0.02; done"
"$duectl" work --shared --queue q --topic other --exec "$until_over" "$url" >worked 2>said &
pid=$!
pids=$pid
tries=0
until timeout 20 "$duectl" stats --json --queue q "$url" | grep -q '"reserved":1'; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { fail "nobody has the first one"; break; }
    sleep 0.02
done

# The lines of a file are the jobs; the options may stand anywhere.
printf '1h late\n2h later\n3h not at all\n' >file
run 0 push --store "$url" --queue q file
[ "$(wc -l <out)" = 3 ] || fail "not three ids"
late=$(sed -n 1p out)
later=$(sed -n 2p out)
id=$(sed -n 3p out)
run 0 show --json --queue q "$url" "$id"
fits out listed 1
has out '"data":"not at all"'
run 0 cancel --store "$url" --queue q "$id"

# What waits is due at once.
run 0 stats --json --queue q "$url"
has out '^{"queue":"q","waiting":2,"due":0,'
run 0 promote --queue q "$url" "$late"
echo 'promoted 1' | same out
run 0 stats --json --queue q "$url"
has out '^{"queue":"q","waiting":2,"due":1,'
run 1 promote --json --queue q "$url" "$later" "$id"
fits out answers:promoted 3
has out "^{\"id\":\"$later\",\"result\":\"promoted\"}$"
has out "^{\"id\":\"$id\",\"result\":\"DUE_ENOENT\"}$"
held=$(timeout 20 "$duectl" ls --state reserved --queue q "$url" | cut -d ' ' -f 1)
run 1 promote --json --queue q "$url" "$held"
has out "^{\"id\":\"$held\",\"result\":\"DUE_EBUSY\"}$"

# What is dead waits again: only that.
"$duectl" work --shared --queue q --attempts 1 --exec false "$url" >gone 2>err &
other=$!
pids="$pid $other"
tries=0
until timeout 20 "$duectl" stats --json --queue q "$url" | grep -q '"dead":2'; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { fail "they do not die"; break; }
    sleep 0.02
done
kill -TERM "$other"
wait "$other"
pids=$pid
run 0 kick --queue q "$url" "$late"
echo 'kicked 1' | same out
run 1 kick --json --queue q "$url" "$later" "$late" "$held"
fits out answers:kicked 4
has out "^{\"id\":\"$later\",\"result\":\"kicked\"}$"
has out "^{\"id\":\"$late\",\"result\":\"DUE_ENOENT\"}$"
has out "^{\"id\":\"$held\",\"result\":\"DUE_ENOENT\"}$"
has out '^{"kicked":1}$'
run 0 stats --json --queue q "$url"
has out '^{"queue":"q","waiting":2,"due":2,"reserved":1,"dead":0,'

# Paused, and let go on.
run 0 pause --json --queue q --topic '' "$url"
fits out answers:paused 1
run 0 resume --json --queue q --topic '' "$url"
fits out answers:resumed 1
run 0 pause --queue q "$url"
run 0 resume --json --queue q "$url"
fits out answers:resumed 1
run 0 stats --json --queue q "$url"
has_not out paused
: >over
kill -TERM "$pid"
wait "$pid"
pids=
finish
