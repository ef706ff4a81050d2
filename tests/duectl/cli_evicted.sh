#!/bin/sh
# Each key of a stored queue gone, one at a time, as by a server that evicts: verify says what that
# did, and sets right what it can.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# A queue with a job that waits, one that was tried, and a dead one.
fill()
{
    redis flushall >/dev/null
    printf '0s fails\n0s waits\n' >s.due
    "$duectl" run --store "$url" --queue q --workers 2 --retry 1h --attempts 1 \
        --exec 'read x; [ "$x" = waits ] && exit 75; exit 1' s.due >/dev/null 2>err &
    pid=$!
    pids=$pid
    tries=0
    until [ "$(redis zcard 'due:{q}:dead')" = 1 ] && [ "$(redis hlen 'due:{q}:a')" = 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || { fail "no job was tried: $(cat err)"; break; }
        sleep 0.02
    done
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    pids=
}

# gone KEY FOUND LEFT: FOUND is what verify answers, LEFT how many jobs there are after the repair.
gone()
{
    fill
    [ "$(redis del "due:{q}:$1")" = 1 ] || fail "$1: there was no such key"
    run "$2" verify --queue q "$url"
    run 0 verify --repair --queue q "$url"
    run 0 verify --queue q "$url"
    has out '^whole$'
    run 0 restore --queue q "$url"
    has out "^jobs    $3, "
}

# What is missing in the list of topics is said there too.
fill
redis del 'due:{q}:topics' >/dev/null
run 0 restore --queue q "$url"
has out '^hidden  1 records stand in none of these topics'

# A record that stands nowhere is put back.
gone j 1 0
gone a 1 2
gone t: 1 2
gone dead 1 2
gone topics 1 2
gone writers 0 2
gone fence 0 2
gone owner 0 2
finish
