#!/bin/sh
# Jobs are put into a queue that is in use, through the control socket of its owner.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77

# The owner, as a client in Python finds it: see control_push.py.
hostile()
{
    timeout 100 python3 "$tests/control_push.py" "$@" >said 2>why || {
        fail "control_push.py $1: $(tail -n 1 why)"
        return 1
    }
}

# listens: the owner answers.
listens()
{
    until "$duectl" stats --control c >none 2>&1; do sleep 0.01; done
}

printf '\357\273\2770s egg\r\n# no job\n\n' >good
printf '@2030-01-01T00:00:00.25Z  a tab\there\n1h \001\377\n' >>good
for store in a.db "$url"; do
    start work --store "$store" --control c --topic none --exec cat
    listens

    # As into a store: an id for each line once it is stored, and its number; faults are named.
    run 0 push --control c --ack-lines good
    [ "$(sort -u out | grep -cE '^ff[0-9a-f]{26}0000$')" = 3 ] || fail "not 3 ids"
    printf 'ack 1\nack 4\nack 5\n' | same err
    cp out ids
    run 0 ls --json "$store"
    fits out listed 3
    has out '"deadline":"2030-01-01T00:00:00.250000000Z","data":"a tab\\there"}$'
    has out '"data":{"base64":"Af8="}}$'
    printf '1 tea\n0s\n1h fine\n' >in.txt
    run 1 push --json --control c <in.txt
    fits out pushed 1
    has out '^{"line":3,"id":"ff'
    has err '^-:1:2: expected a unit'

    # All that can be said of a job, by the options and by its line; bytes that are no text, too.
    echo '1h once' >in.txt
    run 0 push --topic 'a"b' --priority 9 --key k --group g --ttl 90s --control c <in.txt
    holder=$(cat out)
    run 0 show --json "$store" "$holder"
    fits out listed 1
    has out '"topic":"a\\"b",.*"priority":9,"key":"k","group":"g","ttl_ns":90000000000,'
    printf 'topic=t priority=7 key="q\\x01" headers="h\\xff" group=o ttl=1m 2h said\n' >in.txt
    run 0 push --control c in.txt
    run 0 show --json "$store" "$(cat out)"
    has out '"topic":"t",.*"priority":7,"headers":{"base64":"aP8="},"key":{"base64":"cQE="}'
    has out '"group":"o","ttl_ns":60000000000,.*"data":"said"}$'
    printf '1h twice\n2h good\n' >in.txt
    run 1 push --key k --control c in.txt
    has err "^in.txt:1:1: not stored: a job has this key already: $holder$"
    has err "^in.txt:2:1: not stored: a job has this key already: $holder$"
    [ ! -s out ] || fail "an id of a job that was refused"
    echo '2h thrice' >in.txt
    run 0 push --key k --on-key replace --control c in.txt
    [ "$(cat out)" = "$holder" ] || fail "another job than the one that had the key"
    run 0 show "$holder" --store "$store"
    has out '^text       thrice$'
    for policy in earliest debounce; do
        run 0 push --key k --on-key $policy --control c in.txt
        [ "$(cat out)" = "$holder" ] || fail "another job than the one that had the key: $policy"
    done
    printf 'key=z every 1h again\n' >in.txt
    run 0 push --control c in.txt
    run 0 push --control c in.txt
    run 0 clear --yes --control c
    for line in 'x' 'k' 'z'; do
        printf '1h %s\n' $line | "$duectl" push --control c --key $line >none 2>err ||
            fail "a key that nobody has is refused: $(cat err)"
    done
    run 0 clear --yes --control c

    # One payload: none, a large one; many lines, in their order, of several topics.
    run 0 push --at 1h --control c </dev/null
    run 0 ls --json "$store"
    has out '"data":""}$'
    head -c 30000000 /dev/urandom >large
    run 0 push --at @2031-01-01 --control c large
    run 0 show --data "$store" "$(cat out)"
    cmp -s out large || fail "a large payload is another one"
    run 0 clear --yes --control c
    seq 1 3000 | sed 's/.*/topic=t\0 1h job \0/; s/topic=t[0-9]*\([0-9]\) /topic=t\1 /' >in.txt
    run 0 push --json --control c in.txt
    fits out pushed 3000
    sed 's/.*"line":\([0-9]*\),.*/\1/' out >lines
    seq 1 3000 | same lines
    sed -n '2357s/.*"id":"\([^"]*\)".*/\1/p' out >ids
    run 0 show "$store" "$(cat ids)"
    has out '^text       job 2357$'
    run 0 stats --json --control c
    has out '"waiting":3000,'
    # As long as can be: what is said of 32 jobs fits into a request.
    python3 -c 'for i in range(70):
    text = lambda n: ("\\\"" * n)
    print("key=\"%s%02d\" headers=\"%s\" group=\"%s\" priority=200 ttl=1000000h 1h x" %
          (text(253), i, text(256), text(255)))' >in.txt
    run 0 push --control c --topic "$(printf '%0255d' 1)" --on-key debounce in.txt
    [ "$(wc -l <out)" = 70 ] || fail "not 70 long ones"

    # Whatever comes in, it is answered or given up, and the next one is served; a slow or silent
    # one holds up nobody.
    hostile bad
    run 0 clear --yes --control c
    hostile slow
    hostile memory "$pid"
    hostile crowd
    run 0 ls "$store"
    [ ! -s out ] || fail "something was put in that was refused"

    run 2 push --control c --shared good
    has err 'goes without --control'
    run 2 push --control c "$store" good
    has err 'goes without a URL'
    run 2 push --control c redis://localhost
    run 3 push --control c --queue other good
    run 2 push --control '' good
    DUE_STORE_URL=other.db run 0 push --control c good
    [ ! -e other.db ] || fail "the variable was used although a socket was named"
    unread 3 push --control c good
    kill -TERM "$pid"
    ended 143
    run 3 push --control c good
    has err '^duectl: c: No such file or directory$'
    [ ! -s out ] || fail "an id from nobody"
done

# A full queue: the push waits for room, others are served meanwhile; and it ends when told to.
printf '1h one\n' >in.txt
run 0 push --shared --queue full "$url" in.txt
redis HSET 'due:{full}:writers' capacity 2 >none
start work --shared --store "$url" --queue full --control c --topic none --exec cat
listens
printf '1h two\n2h three\n3h four\n' >in.txt
for way in stopped room; do
    "$duectl" push --control c in.txt >pushed 2>push_err &
    push=$!
    pids="$pid $push"
    if [ $way = stopped ]; then
        until [ "$(redis HLEN 'due:{full}:j')" = 2 ]; do sleep 0.02; done
        for i in 1 2 3 4 5; do run 0 stats --control c; done
        kill -0 $push || fail "it does not wait for room"
        kill -TERM $push
        status=143
        ids=1
    else
        sleep 0.5
        redis HSET 'due:{full}:writers' capacity 3 >none
        run 0 clear --yes --control c
        status=0
        ids=3
    fi
    wait $push
    got=$?
    [ $got = $status ] || fail "push into a full queue, $way: exit status $got: $(cat push_err)"
    [ "$(wc -l <pushed)" = $ids ] || fail "push into a full queue, $way: $(wc -l <pushed) ids"
    [ $way = room ] || has push_err 'the queue is full: what has no id is not stored'
done
pids=$pid
kill -TERM "$pid"
ended 143

# An owner that answers nonsense, or goes in between: what is not sure is said to be so.
hostile owners "$duectl"
hostile later "$duectl"

# A run has its own lines.
mkfifo in
start run --store b.db --control c in
exec 5>in
listens
run 1 push --control c good
has err '^good:1:1: not stored: not supported here$'
run 0 stats --json --control c
has out '"waiting":0,'
exec 5>&-
ended 0
finish
