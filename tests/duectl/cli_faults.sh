#!/bin/sh
# A line that cannot be read is reported with file, line, column and reason; the rest runs.
. "$(dirname "$0")/cli_lib"

cd "$dir" || exit 1
cat >s.due <<'END'
0s first
tea
  -1s tea
1 tea
1parsec tea
1s
1s30m tea
1.5 s tea
107000d tea
99999999999999999999999999s tea
@2026-02-30T00:00:00Z tea
@2026-12-01T08:00:00+99 tea
@soon tea
10ms last
END
run 1 run s.due
same out <<'END'
first
last
END
same err <<'END'
s.due:2:1: a line begins with a time: a delay such as 1.5s, or @ and a date
s.due:3:3: a delay is not negative
s.due:4:2: expected a unit: ns, us, ms, s, m, h or d
s.due:5:2: expected a unit: ns, us, ms, s, m, h or d
s.due:6:3: no text after the time
s.due:7:3: units go from large to small, each at most once
s.due:8:4: expected a unit: ns, us, ms, s, m, h or d
s.due:9:1: too far ahead: a delay is less than 292 years
s.due:10:1: too far ahead: a delay is less than 292 years
s.due:11:10: no such day in this month
s.due:12:22: no such offset
s.due:13:1: expected a date, or @hourly @daily @weekly @monthly @yearly
END

# Standard input is called "-".
echo tea | "$duectl" run >out 2>err
has err '^-:1:1: a line begins'

# `check` says the same, and runs nothing.
mv err was
run 1 check s.due
same out </dev/null
has err '^s.due:13:1: expected a date'
has err '^s.due: 14 lines, 2 jobs, 12 cannot be read$'

# A line of 1 MiB is read, a longer one is not; neither are zero bytes in a time.
{
    printf '0s '
    head -c 1048573 /dev/zero | tr '\0' x
    echo
    printf '0s '
    head -c 1048574 /dev/zero | tr '\0' x
    echo
    head -c 5000000 /dev/zero | tr '\0' y
    echo
    printf '1\0s zero\n'
    echo '20ms last'
} >long.due
run 1 run long.due
[ "$(wc -c <out)" = $((1048574 + 5)) ] || fail "a line of 1 MiB: $(wc -c <out) bytes"
has out '^last$'
same err <<'END'
long.due:2:1048577: the line is longer than 1048576 bytes
long.due:3:1048577: the line is longer than 1048576 bytes
long.due:4:2: expected a unit: ns, us, ms, s, m, h or d
END

# No line at all, and bytes that mean nothing.
head -c 100000 /dev/urandom >noise
run 1 run noise </dev/null
finish
