#!/bin/sh
# Lines, and payloads of whatever bytes, go into a stored queue.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

printf '\357\273\2770s egg\r\n# no job\n\n' >good
printf '@2030-01-01T00:00:00.25Z  a tab\there\n1h \001\377\n' >>good
for store in a.db "$url"; do
    # An id for each line, once it is stored; others are named with line, column and reason.
    run 0 push "$store" good
    [ "$(sort -u out | grep -cE '^ff[0-9a-f]{26}0000$')" = 3 ] || fail "not 3 ids"
    cp out ids
    run 0 ls --json "$store"
    fits out listed 3
    has out '"deadline":"2030-01-01T00:00:00.250000000Z","data":"a tab\\there"}$'
    has out '"data":{"base64":"Af8="}}$'
    run 0 show --data "$store" "$(head -n 1 ids)"
    printf egg | cmp -s - out || fail "its bytes are others"
    printf '1 tea\n0s\n0s fine\n@2026-13-01 x\n' >in.txt
    run 1 push --json --store "$store" <in.txt
    fits out pushed 1
    has out '^{"line":3,"id":"ff'
    has err '^-:1:2: expected a unit'
    has err '^-:2:3: no text after the time'
    has err '^-:4:'

    # What all of them are.
    echo '1h once' >in.txt
    run 0 push --topic 'a"b' --priority 9 --key k --group g --ttl 90s "$store" <in.txt
    holder=$(cat out)
    run 0 show --json "$store" "$holder"
    fits out listed 1
    has out '"topic":"a\\"b",.*"priority":9,"key":"k","group":"g","ttl_ns":90000000000,'
    printf '1h twice\n' >in.txt
    run 1 push --key k "$store" <in.txt
    has err "^-:1:1: not stored: a job has this key already: $holder$"
    [ ! -s out ] || fail "an id of a job that was refused"
    echo '2h thrice' >in.txt
    run 0 push --key k --on-key replace "$store" <in.txt
    [ "$(cat out)" = "$holder" ] || fail "another job than the one that had the key"
    run 0 show "$holder" --store "$store"
    has out '^text       thrice$'

    # One payload: none, a large one, and bytes that are no text.
    : >in.txt
    run 0 push --at 1h "$store" <in.txt
    head -c 3000000 /dev/urandom >large
    run 0 push --json --at @2031-01-01 "$store" large
    fits out pushed 1
    id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' out)
    run 0 show --data "$store" "$id"
    cmp -s out large || fail "a large payload is another one"
    run 0 show "$store" "$id"
    has out '^bytes      3000000$'
    has_not out '[[:cntrl:]]'

    # The output: nobody reads it, or it is full.
    echo '1h unread' >in.txt
    unread 3 push "$store" in.txt
    echo '1h full' | timeout 20 "$duectl" push "$store" >/dev/full 2>err
    [ $? = 3 ] || fail "push, to a full disk"

    for wrong in '--priority 256' '--priority x' '--ttl 0s' '--ttl x' '--on-key x' '--at' \
        '--at 5' '--at @2026' '--ids'; do
        run 2 push --store "$store" $wrong </dev/null
    done
    run 2 push --store "$store" --key '' </dev/null
    run 2 push --store "$store" --topic "$(printf '%0256d' 1)" </dev/null
    run 2 push --store "$store" missing
    run 2 push "$store" good good
done

# A single word is the file if a store is known; it is made.
DUE_STORE_URL=b.db run 0 push good
DUE_STORE_URL=c.db run 0 push b.db good
[ ! -e c.db ] || fail "the variable was used although a store was named"
run 0 ls b.db
[ "$(wc -l <out)" = 6 ] || fail "not 6 jobs"
run 2 push

# Many lines, in their order; and a line too long.
seq 1 3000 | sed 's/.*/@2030-01-01 line &/' >many
run 0 push --topic many "$url" many
cp out ids
run 0 ls --topic many --json "$url"
sed 's/.*"id":"\([^"]*\)".*/\1/' out | same ids
sed 's/.*"data":"\([^"]*\)"}/@2030-01-01 \1/' out | same many
{ printf '1h '; head -c 1048577 /dev/zero; echo; echo '1h short'; } >long
run 1 push a.db long
has err '^long:1:1048577: the line is longer'
[ "$(wc -l <out)" = 1 ] || fail "not the short line alone"

# Lines are stored as they come; a signal ends it, and the queue is free.
mkfifo in
start push --queue slow "$url" in
exec 5>in
echo '1h first' >&5
read -r id <&4
"$duectl" show --queue slow "$url" "$id" >out 2>err || fail "it is not stored when it has an id"
run 3 push --queue slow "$url" good
has err "$pid"
kill -TERM "$pid"
ended 143
exec 5>&-
[ -z "$(redis get 'due:{slow}:owner')" ] || fail "it did not give the queue back"
run 0 push --queue slow "$url" good
finish
