#!/bin/sh
# A log is replayed at the pace of its own timestamps.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

# Common log format: everything comes, in order of time, at sixty times the pace.
began=$(now_ms)
cat >log <<'END'
192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /one HTTP/1.0" 200 2326
192.0.2.7 - frank [10/Oct/2000:13:55:46 -0700] "GET /two HTTP/1.0" 200 2326
198.51.100.9 - - [10/Oct/2000:22:56:06 +0200] "GET /three HTTP/1.0" 304 -
END
run 0 run --replay --speed 60 --stats log
same out <log
between 500 5000 $(($(now_ms) - began)) "milliseconds of 30 s at 60 times"
has err '^lines      3 read, 3 jobs, 0 cannot be read$'
has err '^log        0 without a timestamp, 0 out of order$'
has err '^printed    3$'
has err '^early      0$'

# Each line at its own time: the times between the lines are those of the log.
cat >log <<'END'
2026-12-01T08:00:00.000Z a
2026-12-01T08:00:00.150Z b
2026-12-01T08:00:00.450Z c
END
run 0 run --replay --exec 'date +%s%N' log
{
    read -r a
    read -r b
    read -r c
} <out
between 50 3000 $(((b - a) / 1000000)) "milliseconds from a to b"
between 150 3000 $(((c - b) / 1000000)) "milliseconds from b to c"

# At its own pace without --speed, slower with less than 1.
began=$(now_ms)
run 0 run --replay --speed 0.5 - <log
between 900 5000 $(($(now_ms) - began)) "milliseconds at half the speed"
same out <log

# Lines without a timestamp go with the line before; those before the first are due at once.
cat >log <<'END'
# a heading
2026-12-01 08:00:00,100 ERROR take failed
java.lang.IllegalStateException: closed
    at com.example.Queue.take(Queue.java:42)

2026-12-01 08:00:00,300 INFO again
END
run 0 run --replay --stats log
same out <log
has err '^log        4 without a timestamp, 0 out of order$'

# A timestamp earlier than one before it stands where its time is, and its lines with it.
cat >log <<'END'
2026-12-01T08:00:01Z a
2026-12-01T08:00:03Z c
  of c
2026-12-01T08:00:02Z b
  of b
2026-12-01T08:00:00Z before the first
2026-12-01T08:00:04Z d
END
run 0 run --replay --speed 20 --stats log
same out <<'END'
2026-12-01T08:00:01Z a
2026-12-01T08:00:00Z before the first
2026-12-01T08:00:02Z b
  of b
2026-12-01T08:00:03Z c
  of c
2026-12-01T08:00:04Z d
END
has err '^log        2 without a timestamp, 2 out of order$'

# When its time has passed already it comes at once, and its lateness counts from its reading.
mkfifo in
start run --replay --speed 2 --stats in
exec 3>in
echo '2026-12-01T08:00:01Z a' >&3
echo '2026-12-01T08:00:02Z b' >&3
line '2026-12-01T08:00:01Z a'
line '2026-12-01T08:00:02Z b'
echo '2026-12-01T08:00:01Z late' >&3
line '2026-12-01T08:00:01Z late'
exec 3>&-
ended 0
has_not err ' max [3-9][0-9][0-9]\.. ms$'
has err '^log        0 without a timestamp, 1 out of order$'

# A pipe that is still being written, and bytes that are no text.
start run --replay --speed 1000000 in
exec 3>in
echo 'x [01/Dec/2026:08:00:00 +0000] one' >&3
line 'x [01/Dec/2026:08:00:00 +0000] one'
echo 'x [01/Dec/2026:09:00:00 +0000] two' >&3
line 'x [01/Dec/2026:09:00:00 +0000] two'
exec 3>&-
ended 0
printf '2026-12-01T08:00:00Z \377\000\376\r\nlast' | timeout 5 "$duectl" run --replay >out
printf '2026-12-01T08:00:00Z \377\000\376\nlast\n' | same out

# More lines than are read ahead.
seq 1 100000 | sed 's/^/2026-12-01T08:00:00Z /' >log
run 0 run --replay log
same out <log

# Stopped while the reader waits for room.
{
    echo '2026-12-01T08:00:00Z ready'
    seq 1 100000 | sed 's/^/2026-12-01T09:00:00Z /'
} >log
start run --replay log
line '2026-12-01T08:00:00Z ready'
kill -INT "$pid"
ended 130
has err '^duectl: stopped by SIGINT: .* left, and the rest of the input was not read$'
finish
