#!/bin/sh
# Texts are handed to a command.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

# On standard input with a line feed, and in the environment; nothing in a text is shell.
cat >s.due <<'END'
0s    plain
20ms  $(touch pwned) `touch pwned`; touch pwned
40ms  "two"  'three' *
END
run 0 run --exec 'cat; printf "<%s>\n" "$DUE_TEXT"' s.due
same out <<'END'
plain
<plain>
$(touch pwned) `touch pwned`; touch pwned
<$(touch pwned) `touch pwned`; touch pwned>
"two"  'three' *
<"two"  'three' *>
END
[ ! -e pwned ] || fail "a text was run by the shell"

# A text that does not fit into the environment is on standard input alone.
{
    printf '0s a\000b\n'
    printf '20ms '
    head -c 70000 /dev/zero | tr '\0' x
    echo
} >s.due
DUE_TEXT=old run 0 run --exec 'wc -c; echo "<${DUE_TEXT-none}>"' s.due
same out <<'END'
4
<none>
70001
<none>
END

# A command that does not read its input holds nobody up.
{
    printf '0s '
    head -c 1000000 /dev/zero | tr '\0' x
    echo
    echo '1ms next'
} >s.due
run 0 run --exec 'echo done' s.due
printf 'done\ndone\n' | same out

# Commands that fail are reported, counted, and show in the status; the rest runs.
cat >s.due <<'END'
# three ways to fail
0s    exit 3
20ms  kill -9 $$
40ms  no-such-command-at-all
60ms  echo well
END
run 1 run --stats --exec 'eval "$DUE_TEXT"' s.due
same out <<'END'
well
END
has err '^duectl: s.due:2: the command ended with status 3$'
has err '^duectl: s.due:3: the command was ended by signal 9$'
has err '^duectl: s.due:4: the command ended with status 127$'
has err '^commands   4, 3 failed$'

# With two workers two commands run at once: they wait for one another.
mkfifo meet
printf '0s echo hello >meet\n0s read -r word <meet; echo "$word"\n' >s.due
run 0 run --workers 2 --exec 'eval "$DUE_TEXT"' s.due
echo hello | same out

# With one worker never: each finds the place free.
i=0
while [ $i -lt 20 ]; do
    echo "1ms $i"
    i=$((i + 1))
done >s.due
run 0 run --exec 'mkdir place && echo "$DUE_TEXT" && rmdir place' s.due
sed 's/^1ms //' s.due | same out

# With three workers at most three.
run 0 run --workers 3 --exec 'mkdir p1 2>/dev/null && { sleep 0.02; rmdir p1; exit; }
    mkdir p2 2>/dev/null && { sleep 0.02; rmdir p2; exit; }
    mkdir p3 && sleep 0.02 && rmdir p3' s.due
same err </dev/null

# A command starts with no signal blocked or ignored, and with three descriptors.
cat >s.due <<'END'
0s    kill -s PIPE $$; echo alive
20ms  kill -s TERM $$; echo alive
40ms  ls /proc/self/fd >fds
END
ls /proc/self/fd >wanted_fds
run 1 run --exec 'eval "$DUE_TEXT"' s.due
same out </dev/null
has err 's.due:1: the command was ended by signal 13$'
has err 's.due:2: the command was ended by signal 15$'
same fds <wanted_fds

# Children are waited for: none is left behind as a zombie.
printf '0s a\n0s b\n1h c\n' >s.due
start run --workers 2 --exec 'echo done' s.due
line done
line done
tries=0
until [ -z "$(cat /proc/"$pid"/task/*/children 2>/dev/null)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { fail "a child is left"; break; }
    sleep 0.02
done
kill -TERM "$pid"
ended 143

# A log can be handed to a command as well.
printf '2026-12-01T08:00:00Z a\n  b\n' >log
run 0 run --replay --exec cat log
same out <log
finish
