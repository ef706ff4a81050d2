#!/bin/sh
# Statistics at the end, and the progress line of a terminal.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

cat >s.due <<'END'
# one comment

0s one
nonsense
@2001-01-01T00:00:00Z two
100ms three
END
run 1 run --stats s.due
grep -v '^s.due' err | sed 's/[0-9.]* [mun]*s/N us/g' >stats
same stats <<'END'
--- duectl: N us
lines      6 read, 3 jobs, 1 cannot be read
past       1 dates had passed when they were read
printed    3
left       0
lateness   p50 N us   p90 N us   p99 N us   max N us
early      0
END

# Without --stats nothing is said; without jobs there is no lateness.
echo '0s x' >s.due
run 0 run s.due
same err </dev/null
run 0 run --stats /dev/null
has err '^lateness   p50 -   p90 -   p99 -   max -$'

# A job that has waited for the only worker is late by that.
printf '0s a\n1ms b\n' >s.due
run 0 run --stats --exec 'sleep 0.2' s.due
has err ' max \([0-9][0-9][0-9]\.. ms\|[0-9.]* s\)$'
has err '^commands   2, 0 failed$'

# The progress line is on a terminal only; it is erased before each line and at the end.
# Neither without the command, nor where no terminal is to be had.
script -qec true /dev/null </dev/null >/dev/null 2>&1 || finish
printf '2s one\n4s two\n' >s.due
script -qec "'$duectl' run s.due </dev/null" /dev/null </dev/null >screen || fail "on a terminal"
tr '\r' '\n' <screen | sed 's/next in [0-9.]* m*s/next in N/' >shown
has shown '^2 lines read, 0 printed, 2 waiting, next in N.\[K$'
has shown '^2 lines read, 1 printed, 1 waiting, next in N.\[K$'
has shown '^.\[Kone$'
has shown '^.\[Ktwo$'
[ "$(grep -c 'lines read' shown)" -lt 30 ] || fail "the progress line is written too often"

# It is cut to the width of the terminal, whatever that is.
printf '300ms one\n' >s.due
for width in 200 30 12 2 1; do
    script -qec "stty cols $width; '$duectl' run s.due </dev/null" /dev/null </dev/null >screen
    longest=$(tr '\r' '\n' <screen | sed -n 's/.\[K$//p' |
        awk 'length > n { n = length } END { print n + 0 }')
    [ "$longest" -lt "$width" ] || fail "a progress line of $longest in $width columns"
done

# None where somebody types, or commands write to the terminal, or it is no terminal.
printf '300ms one\n' >s.due
script -qec "'$duectl' run --exec 'echo done' s.due </dev/null" /dev/null </dev/null >screen
has_not screen 'lines read'
script -qec "'$duectl' run s.due </dev/null 2>err" /dev/null </dev/null >screen
has_not screen 'lines read'
has_not err 'lines read'
finish
