#!/bin/sh
# A schedule is printed, each text at its time.
. "$(dirname "$0")/cli_lib"

# In order of time, whatever the order of lines, the spelling of a delay and the blanks around it.
cat >"$dir/schedule" <<'END'
# a comment
	  # another

0.5s       six
300ms      five
  100ms	four, with	blanks  inside  
0s         one
0.000001ms two
1us1ns     three
END
run 0 run "$dir/schedule"
same "$dir/out" <<'END'
one
two
three
four, with	blanks  inside  
five
six
END
same "$dir/err" </dev/null

# The same from standard input, by its name or by none.
run 0 run - <"$dir/schedule"
has "$dir/out" '^six$'
run 0 run <"$dir/schedule"
has "$dir/out" '^six$'

# Equal times leave in the order of their lines.
i=0
while [ $i -lt 500 ]; do
    echo "200ms line $i"
    i=$((i + 1))
done >"$dir/schedule"
run 0 run "$dir/schedule"
sed 's/^200ms //' "$dir/schedule" | same "$dir/out"

# Not early: half a second is at least that.
echo "500ms x" >"$dir/schedule"
began=$(now_ms)
run 0 run "$dir/schedule"
between 500 5000 $(($(now_ms) - began)) "milliseconds of 500ms"

# CR LF, a mark of UTF-8, bytes that are no UTF-8, zero bytes, no line feed at the end.
printf '\357\273\2770s a\r\n10ms b\377\376\r\n20ms c\000d\r\n30ms e' >"$dir/schedule"
run 0 run "$dir/schedule"
printf 'a\nb\377\376\nc\000d\ne\n' | same "$dir/out"

# Nothing to do.
run 0 run /dev/null
same "$dir/out" </dev/null

# The demonstration.
run 0 check "$(dirname "$0")/../../examples/data/schedule.due"
has "$dir/err" 'schedule.due: [0-9]* lines, 2[0-9] jobs, 0 cannot be read'
finish
