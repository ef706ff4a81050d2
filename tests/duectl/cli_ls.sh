#!/bin/sh
# The jobs of a file and of a server are listed alike.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
run 0 import a.db <"$all"
run 0 import "$url" <"$all"

# A text may hold what a terminal obeys.
for store in a.db "$url"; do
    run 0 ls "$store"
    [ "$(wc -l <out)" = 8 ] || fail "not 8 jobs in $store"
    has out '^ff00*100000000000000010000  waiting   2030-01-01T00:00:00.000000001Z  *-  *3  tea$'
    has out '^ff000000000100000000000000030000  waiting   never  *-  *3  ?'
    has out '^f0000000000200000000000000050000  reserved  .*  post/ö  *6  a?b?c.$'
    has out '^ff000000000100000000000000040000  dead      2020-01-02T00:00:00.*  letter$'
    LC_ALL=C sort out >>both
    # What `restore` lists is the same of both, too; its texts are fit for a terminal.
    run 0 restore --list "$store"
    has out '^f0*20*50000  2030-01-01T00:00:00.000Z   15  3  2  6  post/ö  a?b?c.$'
    has out '^ff000000000100000000000000030000  never    0  0  0  3  -  ???$'
    has out '^ff0*100000000000000040000  2020-.*  5  5  6  -  letter  buried: no such address$'
    grep '^f' out | LC_ALL=C sort >>restored
    run 0 ls --json "$store"
    has out '^{"state":"reserved","id":"f0000000000200000000000000050000","topic":"post/ö",'
    grep '"id":' "$all" | LC_ALL=C sort >wanted.jobs
    sed 's/^{"state":"[a-z]*",/{/' out | LC_ALL=C sort >got.jobs
    same got.jobs <wanted.jobs
    run 0 ls --state dead "$store"
    [ "$(wc -l <out)" = 2 ] || fail "not 2 dead in $store"
    run 0 ls --state=reserved --topic 'post/ö' "$store"
    [ "$(wc -l <out)" = 1 ] || fail "not 1 reserved in $store"
    run 0 ls --topic '' --limit 2 --store "$store"
    [ "$(wc -l <out)" = 2 ] || fail "not 2 of the default topic in $store"
    run 0 ls --topic none "$store"
    [ ! -s out ] || fail "jobs of no topic in $store"
    for wrong in '--state gone' '--limit 0' '--limit 1x' '--again'; do
        run 2 ls $wrong "$store"
    done
done
[ "$(sort -u both | wc -l)" = 8 ] || fail "a file and a server are not listed alike"
[ "$(sort -u restored | wc -l)" = 8 ] || fail "restore: a file and a server are not listed alike"
# Controls of eight bits, also as UTF-8 of two, and in the name of a topic.
for store in a.db "$url"; do
    printf '\233\302\233?' >in.txt
    run 0 push --at 1h --topic "$(printf 'c\302\233')" "$store" in.txt
    for way in '' --list; do
        run 0 restore $way "$store"
        LC_ALL=C has_not out "$(printf '\233')"
        has out 'c?'
    done
done

# More than a page, and one that cannot be read.
awk 'BEGIN {
    print "{\"due_export\":1}"
    for (i = 1; i <= 700; i++)
        printf "{\"id\":\"ff0000000001%016x0000\",\"topic\":\"t%d\",\"deadline\":" \
            "\"2030-01-01T00:00:00Z\",\"data\":\"job %d\"}\n", i, i % 2, i
    print "{\"jobs\":700,\"kept_keys\":0}"
}' >many
run 0 import b.db <many
run 0 ls b.db
[ "$(cut -c 1-32 out | sort -u | wc -l)" = 700 ] || fail "not 700 jobs"

# Many at one instant, more than the largest page: each once, in order.
seq 40000 | sed 's/.*/@2030-01-01T00:00:00Z &/' >in.txt
run 0 push crowd.db in.txt
run 0 ls crowd.db
cut -c 1-32 out >ids
[ "$(wc -l <ids)" = 40000 ] || fail "not 40,000 jobs"
LC_ALL=C sort -c -u ids || fail "not in order, or one twice"
if command -v sqlite3 >none; then
    sqlite3 b.db "update job set record = x'00' where id = (select min(id) from job)"
    run 1 ls b.db
    has err '^duectl: 1 jobs cannot be read'
    run 1 restore --list b.db
    has err '^duectl: 1 jobs cannot be read'
    [ "$(grep -c ' job ' out)" = 699 ] || fail "not all others are listed"
fi
redis del 'due:{duectl}:j' >none
run 1 ls "$url"
has err '^duectl: 9 jobs cannot be read'
run 3 ls none.db
run 1 ls --queue none "$url"
finish
