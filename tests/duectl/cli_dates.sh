#!/bin/sh
# Lines with a date follow the wall clock.
. "$(dirname "$0")/cli_lib"

# A date ahead is not early by a nanosecond, and one that has passed is due at once.
ahead=$(($(date +%s%N) + 1000000000))
nanoseconds=$(printf '%09d' $((ahead % 1000000000)))
at=$(date -u -d "@$((ahead / 1000000000))" +%Y-%m-%dT%H:%M:%S)
{
    echo "@${at}.${nanoseconds}Z ahead"
    echo "@1969-07-20T20:17:40Z landed"
    echo "@2001-01-01 with no time of day"
    echo "100ms soon"
} >"$dir/schedule"
run 0 run --stats "$dir/schedule"
passed=$(($(date +%s%N) - ahead))
same "$dir/out" <<'END'
landed
with no time of day
soon
ahead
END
between 0 5000000000 "$passed" "nanoseconds after the date"
has "$dir/err" '^past       2 dates had passed when they were read$'
has "$dir/err" '^early      0$'

# The command sees that its date has come.
run 0 run --exec 'date +%s%N' - <<END
@$(date -u -d '+0.3 seconds' +%Y-%m-%dT%H:%M:%S.%NZ) x
END
between 0 5000000000 $(($(date +%s%N) - $(cat "$dir/out"))) "nanoseconds since the command"

# Offsets, and local time.
start=$(($(date +%s) + 1))
{
    echo "@$(TZ=TST-2 date -d "@$start" +%Y-%m-%dT%H:%M:%S+02:00) east"
    echo "@$(TZ=TST+7 date -d "@$start" +%Y-%m-%dT%H:%M:%S-0700) west"
    echo "@$(TZ=TST-3 date -d "@$start" +%Y-%m-%dT%H:%M:%S) local"
} | TZ=TST-3 timeout 20 "$duectl" run - >"$dir/out" 2>"$dir/err"
between 0 5000 $(($(now_ms) - start * 1000)) "milliseconds after the three dates"
same "$dir/out" <<'END'
east
west
local
END

# Decades ahead: nothing comes early, and what is left is said in order of time.
echo "@2100-01-01T00:00:00Z a century" >"$dir/schedule"
echo "36500d a hundred years" >>"$dir/schedule"
echo "@2261-01-01T00:00:00Z the end of time" >>"$dir/schedule"
echo "0s now" >>"$dir/schedule"
start run "$dir/schedule"
line now
kill -INT "$pid"
ended 130
has "$dir/err" '^duectl: stopped by SIGINT: 3 jobs left'
sed -n 's/^duectl: left: .*): //p' "$dir/err" >"$dir/left"
same "$dir/left" <<'END'
a century
a hundred years
the end of time
END
finish
