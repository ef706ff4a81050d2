#!/bin/sh
# What a stored queue holds, by topic: for people, as JSON, and for Prometheus.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1

for store in a.db "$url"; do
    run 0 import "$store" <"$all"
    printf '@2020-01-01 late\n@2020-01-01T00:00:01Z later\n' |
        "$duectl" push --topic "$(printf 'q"\\\n\377')" "$store" >ids
    run 0 stats "$store"
    has out '^topic  *waiting  *due  *reserved  *dead  *bytes  *overdue  *next in$'
    has out '^(all)  *[0-9][0-9]* '
    has_not out '[[:cntrl:]]'
    run 0 stats --json "$store"
    fits out counts
    has out '"topic":{"base64":"cSJcCv8="},"waiting":2,"due":2,"reserved":0,"dead":0,'
    has out '"oldest_due":"2020-01-01T00:00:00.000000000Z"'
    tail -n 1 out >last
    has_not last '"topic"'
    cp out "json.${store%%:*}"
    # Its sums are those of a list.
    for state in waiting reserved dead; do
        n=$("$duectl" ls --state $state "$store" | wc -l)
        has last "\"$state\":$n,"
    done
    run 0 stats --json --topic none "$store"
    fits out counts 1

    run 0 metrics "$store"
    has out '^due_topic_jobs{queue="duectl",topic="q\\"\\\\\\n\\\\xff",state="ready"} 2$'
    has out '^due_next_deadline_seconds{queue="duectl"} 0.000000000$'
    has out '^due_oldest_ready_age_seconds{queue="duectl"} [1-9][0-9]*\.[0-9]\{9\}$'
    sort out | sed 's/{.*//' | sort -u >names
    for name in due_jobs due_topic_jobs due_topic_oldest_ready_age_seconds; do
        has names "^$name$"
        [ "$(grep -c "^# TYPE $name gauge$" out)" = 1 ] || fail "not one type of $name"
    done
    unread 3 stats "$store"
    unread 3 metrics "$store"
    run 2 metrics --json-lines "$store"
    run 2 stats "$store" "$store"
done
same json.unix <json.a.db
: | "$duectl" push b.db
run 0 stats b.db
has out '^(all)  *0 '
run 0 metrics b.db
has out '^due_next_deadline_seconds{queue="duectl"} +Inf$'
for verb in stats metrics; do
    run 3 $verb no.db
    run 1 $verb --queue no "$url"
    [ ! -s out ] || fail "figures of no queue"
done
run 3 stats unix:///no/such/socket
redis hset 'due:{duectl}:j' "$(printf '\377')" x >none
redis del 'due:{duectl}:j' >none
run 1 stats --json "$url"
fits out counts 1
has err '^duectl: [1-9][0-9]* jobs cannot be read'
finish
