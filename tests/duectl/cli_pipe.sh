#!/bin/sh
# A pipe that stays open is read while it is written.
. "$(dirname "$0")/cli_lib"

mkfifo "$dir/in"
start run --stats "$dir/in"
exec 3>"$dir/in"

# Each line is scheduled when it comes, and delivered although the next has not come.
echo '1h much later' >&3
echo '0s one' >&3
line one
echo '50ms two' >&3
line two

# Half a line is none yet; its delay counts from its end.
printf '100' >&3
echo '0s three' | { read -r text; echo 'ms late' >&3; echo "$text" >&3; }
line three
line late

# An earlier one overtakes.
began=$(now_ms)
echo '600ms five' >&3
echo '200ms four' >&3
line four
line five
between 600 5000 $(($(now_ms) - began)) "milliseconds of 600ms"

# A delay counts from the reading of its line, not from the start.
began=$(now_ms)
echo '300ms six' >&3
line six
between 300 5000 $(($(now_ms) - began)) "milliseconds of 300ms"

# What cannot be read is said at once, and does not end the run.
echo 'nonsense' >&3
echo '0s seven' >&3
line seven
has "$dir/err" ':9:1: a line begins with a time'

# Stopped while it waits for input and for the time of a job.
kill -TERM "$pid"
ended 143
has "$dir/err" '^duectl: stopped by SIGTERM: 1 jobs left, and the rest of the input was not read$'
has "$dir/err" ': much later$'
exec 3>&-

# The end of the input is not the end of the jobs.
start run "$dir/in"
exec 3>"$dir/in"
echo '300ms after the end' >&3
exec 3>&-
line 'after the end'
ended 0
finish
