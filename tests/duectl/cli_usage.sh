#!/bin/sh
# Versions, help, wrong arguments, and input that is not there.
. "$(dirname "$0")/cli_lib"

run 0 --version
has "$dir/out" '^duectl [0-9]*\.[0-9]*\.[0-9]*$'
run 0 --help
has "$dir/out" '^usage: duectl run'
has "$dir/out" '^       duectl bench '
run 0 run --help
has "$dir/out" '^  --replay'
run 0 check --help
has "$dir/out" '^usage: duectl check'

for command in push show cancel reschedule kick 'dead ls' 'dead kick' 'dead drop' clear stats \
    metrics; do
    run 0 $command --help
    has "$dir/out" "^usage: duectl $command \\[OPTION\\]"
    has "$dir/out" '^Exit status: 0 '
    timeout 10 "$duectl" $command --help >/dev/full
    [ $? = 3 ] || fail "$command --help, to a full disk"
    run 2 $command --no-such-option a.db
    run 2 $command
    run 2 $command --queue 'a b' a.db
done

for command in restore verify doctor; do
    if "$duectl" $command --help >"$dir/out" 2>"$dir/err"; then
        has "$dir/out" "^usage: duectl $command"
    else
        has "$dir/err" 'was built without hiredis'
    fi
done
run 2 run --queue a /dev/null
has "$dir/err" '^duectl: --queue: goes with --store$'

run 2
has "$dir/err" '^usage: duectl run'
run 2 walk
has "$dir/err" '^duectl: walk: no such command$'
run 2 run --fast
has "$dir/err" '^duectl: --fast: no such option$'
run 2 run --exec
has "$dir/err" '^duectl: --exec: an argument is missing$'
run 2 run a b
has "$dir/err" '^duectl: b: one file at most$'
for number in 0 -1 257 x 1x '' 99999999999; do
    run 2 run --exec cat --workers "$number" /dev/null
    has "$dir/err" '--workers takes a number from 1 to 256$'
done
for number in 0 -1 x 1x '' inf nan 1e3 0x10; do
    run 2 run --replay --speed "$number" /dev/null
    has "$dir/err" '--speed takes a number'
done
for duration in 5 -1s s '' '5s '; do
    run 2 run --exec cat --grace "$duration" /dev/null
    has "$dir/err" '--grace takes a time such as 5s$'
done
run 2 run --workers 2 /dev/null
has "$dir/err" '^duectl: --workers: goes with --exec$'
run 2 run --speed 2 /dev/null
has "$dir/err" '^duectl: --speed: goes with --replay$'

run 2 run "$dir/nothing"
has "$dir/err" '/nothing: No such file or directory$'
run 2 run "$dir"
has "$dir/err" ': Is a directory$'
run 2 check "$dir"
has "$dir/err" ': Is a directory$'
if [ "$(id -u)" != 0 ]; then
    echo '0s x' >"$dir/secret"
    chmod 0 "$dir/secret"
    run 2 run "$dir/secret"
    has "$dir/err" '/secret: Permission denied$'
fi

# Standard input that is closed, or a directory.
timeout 5 "$duectl" run <&- >"$dir/out" 2>"$dir/err"
[ $? = 1 ] || fail "standard input is closed: status"
has "$dir/err" '^duectl: -: cannot be read to its end: Bad file descriptor$'
timeout 5 "$duectl" run </ >"$dir/out" 2>"$dir/err"
[ $? = 2 ] || fail "standard input is a directory: status"
finish
