#!/bin/sh
# When cron lines come: in time zones, when the clocks are changed, and what is no line.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1
[ -e /usr/share/zoneinfo/Europe/Berlin ] || { echo "no tzdata"; exit 77; }

# at ZONE LINE: the deadline that `push` says.
at()
{
    echo "$2 x" | run 0 push --zone "$1" --json cron.db
    sed 's/.*"deadline":"\([^"]*\)".*/\1/' out
}

# comes WHEN ZONE EXPRESSION: it is due at that local hour and minute; by push and by the system.
comes()
{
    got=$(at "$2" "$3")
    shown=$(TZ=$2 date -d "$got" '+%H:%M')
    [ "$shown" = "$1" ] || fail "$3 in $2: $got is $shown there"
}
for zone in Europe/Berlin America/New_York Australia/Lord_Howe Africa/Casablanca Asia/Kathmandu \
    UTC; do
    comes 08:30 $zone '30 8 * * *'
    comes 00:00 $zone '@daily'
    comes 23:59 $zone '59 23 * * MON-FRI'
done

# The zone is that of the line, of the option, of the environment, in this order.
zones()
{
    echo "$1 x" | TZ=America/New_York run 0 push --json $2 zones.db
    shown=$(TZ=$3 date -d "$(sed 's/.*"deadline":"\([^"]*\)".*/\1/' out)" +%H:%M)
    [ "$shown" = 12:00 ] || fail "$1 with $2: it is $shown in $3"
}
zones '0 12 * * *' '' America/New_York
zones '0 12 * * *' '--zone Asia/Kathmandu' Asia/Kathmandu
zones 'zone=Europe/Berlin 0 12 * * *' '--zone Asia/Kathmandu' Europe/Berlin
zones 'zone="<+0145>-1:45" 0 12 * * *' '' '<+0145>-1:45'

# A night in which the clocks are changed, of a rule that changes them tonight: from the last full
# hour to an hour later, and back.  The time that is skipped comes at the first instant behind the
# gap, which is a full hour of UTC.  Before half past two the next one is today's.
day=$(date -u -d '+1 day' +%j | sed 's/^0*//')
leap=$(($(date -u -d '+1 day' +%Y) % 4))
[ $leap = 0 ] && [ "$day" -gt 59 ] && day=$((day - 1))
tomorrow=$(date -u -d '+1 day' +%F)
if [ "$day" -lt 300 ] || [ "$day" -gt 301 ]; then
    got=$(at "AAA0BBB,J$day/2,J300/3" "30 2 * * *")
    [ "$(date -u +%H%M)" -gt 230 ] && { [ "$got" = "${tomorrow}T02:00:00.000000000Z" ] ||
        fail "skipped: $got"; }
    got=$(at "AAA0BBB,J300/3,J$day/3" "30 2 * * *")
    [ "$(date -u +%H%M)" -gt 230 ] && { [ "$got" = "${tomorrow}T01:30:00.000000000Z" ] ||
        fail "twice: $got"; }
fi

# Dates without an offset are local times too, in winter and in summer.
date_of()
{
    echo "@$2 x" | TZ=$1 run 0 push --json dates.db
    got=$(sed 's/.*"deadline":"\([^"]*\)".*/\1/' out)
    [ "$got" = "$3.000000000Z" ] || fail "$2 in $1: $got"
}
date_of Europe/Berlin 2030-01-01T08:00 2030-01-01T07:00:00
date_of Europe/Berlin 2030-07-01T08:00 2030-07-01T06:00:00
date_of America/New_York 2030-07-01 2030-07-01T04:00:00
date_of Australia/Lord_Howe 2030-01-01T08:00 2029-12-31T21:00:00
date_of Australia/Lord_Howe 2030-07-01T08:00 2030-06-30T21:30:00
date_of Asia/Kathmandu 2030-07-01T08:00 2030-07-01T02:15:00
date_of Africa/Casablanca 2020-05-01T08:00 2020-05-01T08:00:00 # what is to come there may change
date_of Africa/Casablanca 2020-07-01T08:00 2020-07-01T07:00:00

# What is no line, where, and why.
cat >bad.due <<'END'
60 * * * * x
* 24 * * * x
* * * * MOO x
* * 30 2 * x
* * * * *
@reboot x
@daily
zone=Mars/Olympus @daily x
zone= @daily x
zone=UTC 1s x
every 0s x
every x
every
topic= 1s x
topic="a 1s x
topic="a"b 1s x
topic="\q" 1s x
topic="\x0" 1s x
topic="\x00" 1s x
topic=a topic=b 1s x
priority=256 1s x
priority=x 1s x
ttl=0s 1s x
ttl=5 1s x
ttl= 1s x
colour=red 1s x
topic=a
*/5x * * * * x
1 tea
END
run 1 check bad.due
sed 's/^bad.due:\([0-9]*:[0-9]*\): .*/\1/; $d' err | tr '\n' ' ' >places
echo '1:1 2:3 3:9 4:5 5:10 6:1 7:7 8:6 9:6 10:1 11:7 12:7 13:6 14:7 15:14 16:10 17:8 18:8 19:7' \
    '20:9 21:10 22:10 23:5 24:6 25:5 26:1 27:8 28:4 29:2 ' | tr -d '\n' >"$dir/wanted"
cmp -s wanted places || { fail "places: $(cat places)"; cat err >&2; }
has err '^bad.due:4:5: none of the months has such a day$'
has err '^bad.due: 29 lines, 0 jobs, 29 cannot be read$'
run 2 check --zone Mars/Olympus bad.due
has err "Mars/Olympus: --zone takes the name of a time zone"
run 2 run --zone '' bad.due
run 2 push --zone Mars/Olympus cron.db bad.due
{ printf 'topic='; head -c 256 /dev/zero | tr '\0' a; echo ' 1s x'; } >long.due
{ printf '0,'; head -c 300 /dev/zero | tr '\0' 1; echo ' * * * * x'; } >>long.due
printf 'key="%0200d" group="%0060d" @daily x\n' 1 1 >long3.due
run 1 check long.due
has err '^long.due:1:7: a topic has 1 to 255 bytes$'
has err '^long.due:2:1: a cron expression has up to 200 bytes$'
run 1 push long.db long3.due
has err '^long3.due:1:1: key, group, zone, time and headers'

# Fields, of lines that come once: topic and priority decide, a key is one job's, a group's run one
# after the other, and what is late is not run.
cat >f.due <<'END'
200ms low
priority=9 200ms high
key=a 100ms first
key=a 150ms second
key="a b" topic=t 50ms other
END
run 1 run f.due
same out <<'END'
other
first
high
low
END
has err '^f.due:4:1: a job has this key already$'
printf 'group=g 0s 1\ngroup=g 0s 2\ngroup=g 0s 3\n' >g.due
run 0 run --workers 3 --exec 'mkdir held && cat && sleep 0.1 && rmdir held' g.due
same out <<'END'
1
2
3
END
printf '0s a\nttl=10ms 1ms b\n' >t.due
run 1 run --exec 'cat; sleep 0.3' t.due
echo a | same out
has err '^duectl: t.due:2: its time limit had passed$'

# A hundred thousand lines.
seq 1 100000 | awk '{ m = $1 % 60; h = $1 % 24
    if ($1 % 4 == 0) print "every " $1 "h x" $1
    else if ($1 % 4 == 1) print m, h, "* * 1-5 x" $1
    else if ($1 % 4 == 2) print "topic=t" $1 % 7, "key=k" $1, "zone=Europe/Berlin @daily x" $1
    else print "group=g" $1 % 9, "ttl=1h", $1 "h x" $1 }' >many.due
run 0 check many.due
has err '^many.due: 100000 lines, 100000 jobs, 0 cannot be read$'
echo '0s all' >>many.due
start run many.due
line all
kill -INT "$pid"
ended 130
has err '^duectl: stopped by SIGINT: 100000 jobs left'
sed -n 1,5000p many.due | "$duectl" push many.db >ids || fail "push of many"
[ "$(sort -u ids | grep -c .)" = 5000 ] || fail "not 5000 ids"
finish
