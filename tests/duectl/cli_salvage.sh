#!/bin/sh
# A file of which any page is damaged: what can be read is saved, and what is lost is said.
. "$(dirname "$0")/cli_lib"
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
jobs=300
awk -v jobs=$jobs 'BEGIN {
    text = "the text of a job of some length, so that a page does not hold many of them"
    print "{\"due_export\":1}"
    for (i = 1; i <= jobs; i++)
        printf "{\"id\":\"ff0000000001%016x0000\",\"topic\":\"t%d\",\"deadline\":" \
            "\"2030-01-01T00:00:00.%09dZ\",\"key\":\"k%d\",\"data\":\"%s %d\"}\n", \
            i, i % 3, (i * 7919) % 1000, i, text, i
    printf "{\"kept_for\":\"ff0000000001%016x0000\",\"until\":\"2040-01-01T00:00:00Z\"," \
        "\"key\":\"kept\"}\n", jobs + 1
    printf "{\"jobs\":%d,\"kept_keys\":1}\n", jobs
}' >many
"$duectl" import a.db <many >none 2>probe || {
    grep -q 'built without SQLite' probe && exit 77
    fail "an import into a file"
}

# A sound one: the same as an export.
run 0 export --salvage a.db
LC_ALL=C sort out >salvaged
run 0 export a.db
LC_ALL=C sort out | same salvaged
"$duectl" import s.db <"$all" >none || fail "an import of all kinds"
run 0 export --salvage s.db
LC_ALL=C sort out >salvaged
LC_ALL=C sort "$all" | same salvaged
run 2 export --salvage redis://localhost

# saved: how many jobs are in the output; lost: how many are named.
size=$(($(wc -c <a.db) / 4096))
[ "$size" -gt 20 ] || fail "not many pages: $size"
page=1
harmed=0
while [ $page -lt "$size" ]; do
    cp a.db b.db
    rm -f b.db-wal b.db-shm c.db*
    head -c 4096 /dev/zero | tr '\0' '\245' | dd of=b.db bs=4096 seek=$page conv=notrunc 2>none
    timeout 20 "$duectl" export --salvage b.db >lines 2>err
    status=$?
    saved=$(grep -c '"id":' lines)
    lost=$(grep -c 'is lost:' err)
    case $status in
    0) [ "$saved" = $jobs ] || fail "page $page: $saved of $jobs without a word" ;;
    1)
        harmed=$((harmed + 1))
        [ $((saved + lost)) = $jobs ] || grep -q 'perhaps more is lost' err ||
            fail "page $page: $saved saved, $lost lost"
        ;;
    3) [ $page -le 12 ] || fail "page $page: nothing was saved" ;;
    *) fail "page $page: status $status" ;;
    esac
    if [ $status = 1 ]; then
        run 0 import c.db <lines
        has out "^put     $saved jobs"
    fi
    page=$((page + 1))
done
[ $harmed -gt 5 ] || fail "only $harmed pages have done harm"
finish
