#!/bin/sh
# What a store holds comes out as lines, and goes into another one byte for byte.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
# same_lines FILE FILE: in whatever order the topics stand.
same_lines()
{
    LC_ALL=C sort "$1" >sorted.1
    LC_ALL=C sort "$2" >sorted.2
    same sorted.2 <sorted.1
}

# put_later STORE: a run that has a job of its own, and goes on.
put_later()
{
    echo '1h later' >s.due
    rm -f acks
    "$duectl" run --store "$1" --ack-lines s.due >none 2>acks &
    pids=$!
    tries=0
    until grep -sq '^ack 1' acks; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || { fail "no line was acknowledged"; break; }
        sleep 0.01
    done
}

run 0 import --check <"$all"
has out '^fine    8 jobs, 1 kept keys$'

# File to file, to a server, and back to a file.
run 0 import a.db <"$all"
has out '^put     8 jobs, 1 kept keys$'
run 0 verify a.db
run 0 export a.db
cp out a
same_lines a "$all"
run 0 import "$url" <a
run 0 verify "$url"
run 0 export "$url"
cp out b
same_lines a b
run 0 import --store sqlite:c.db <b
run 0 export c.db
cp out c
same_lines a c
run 0 import d.db <c
run 0 export d.db
same out <c

# A server to a server: another name.
run 0 import --queue other "$url" <b
run 0 export --queue other "$url"
cp out o
same_lines a o

# Nobody else has it open, and it is empty.
put_later l.db
run 3 import l.db <"$all"
has err 'is owned by pid'
run 3 export l.db
has err 'is owned by pid'
kill $pids
wait $pids
pids=
run 1 import l.db <"$all"
has err 'holds 1 jobs'
run 0 export l.db
has out '"data":"later"'
run 1 import "$url" <"$all"
has err 'holds 8 jobs'
run 3 export none.db
[ ! -e none.db ] || fail "export has made a file"
run 1 export --queue none "$url"
has err 'there is no queue none'

# Ids that another store has given are not given once more.
run 0 import e.db <"$all"
run 0 doctor e.db
has out '; its last opening has the number 528$'
put_later e.db
kill $pids
wait $pids
pids=
run 0 export e.db
has out '"id":"ff0000000002[0-9a-f]*","topic":"",.*"data":"later"'

# Cut off, twice, too few.
sed '$d' "$all" >cut
run 1 import cut.db <cut
has err '^-:11:1: the last line is missing'
sed 3d "$all" >few
run 1 import few.db <few
has err '^-:10:1: so many lines'
sed '3{p}' "$all" >twice
run 1 import twice.db <twice
has err '^-:4:1: the same job stood in a line before'
sed '3{p;s/data":""/data":"t"/}' "$all" >differ
run 1 import differ.db <differ
has err '^-:4:1: another job of this id'
sed '4s/"topic":""/"topic":"","key":"kept"/' "$all" >stolen
run 1 import stolen.db <stolen
has err 'does not hold exactly'
has err '^duectl: -:10: its key'

# Killed in the middle: another import refuses what it finds, and one with --again ends it.
awk 'BEGIN {
    print "{\"due_export\":1}"
    for (i = 1; i <= 3000; i++)
        printf "{\"id\":\"ff0000000001%016x0000\",\"topic\":\"\",\"deadline\":" \
            "\"2030-01-01T00:00:00.%09dZ\",\"key\":\"k%d\",\"data\":\"job %d\"}\n", i, i, i, i
    print "{\"jobs\":3000,\"kept_keys\":0}"
}' >many
interrupt() # STORE
{
    mkfifo fifo
    "$duectl" import "$1" <fifo >none 2>&1 &
    pids=$!
    exec 5>fifo
    rm fifo
    head -2500 many >&5
    tries=0
    until "$duectl" restore "$1" 2>none | grep -q '^jobs    2[0-9]*,'; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || { fail "no batch has landed in $1"; break; }
        sleep 0.01
    done
    kill -9 $pids
    wait $pids 2>none
    pids=
    exec 5>&-
}
redis flushall >none
for store in k.db "$url"; do
    interrupt "$store"
    run 1 import "$store" <many
    has err 'holds 2[0-9]* jobs'
    run 0 import --again "$store" <many
    has out '^put     [0-9]* jobs, 0 kept keys; 2[0-9]* were there$'
    run 0 export "$store"
    same out <many
done
sed 's/job 7"/job seven"/' many >other
run 1 import --again k.db <other
has err '^-:8:1: another job of this id'

run 1 import empty.db </dev/null
[ ! -e empty.db ] || fail "nothing to import has made a file"
run 1 import --check <"$duectl"
finish
