#!/bin/sh
# A password with "@" and other signs that mean something in a URL.
secret='p@ss:w/r?d#%41@'
redis_options="--requirepass $secret"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
escaped='p%40ss%3Aw%2Fr%3Fd%23%2541%40'
good=unix://:$escaped@$REDIS_SOCKET

# Escaped it is taken, as an argument and from the environment.
echo '0s egg' >s.due
run 0 run --store "$good" s.due
echo egg | same out
printf '1h tea\n' >s.due
run 0 push "$good" s.due
DUE_STORE_URL=$good run 0 ls
has out 'tea$'

# Another one is refused, and so is one that is not escaped; neither is shown, nor a part of it.
echo '0s egg' >s.due
: >all
for bad in "unix://:p%40ss%3Aw@$REDIS_SOCKET" "unix://:p%40ss@$REDIS_SOCKET" \
    "unix://:canary@p@ss@$REDIS_SOCKET" "redis://:canary@p@ss@localhost:1/0" \
    "unix://:$secret@$REDIS_SOCKET"; do
    for command in run push ls stats; do
        timeout 20 "$duectl" $command --store "$bad" <s.due >out 2>err
        got=$?
        [ $got = 2 ] || [ $got = 3 ] || fail "$command with $bad: status $got"
        cat out err >>all
    done
done
for part in canary 'p@ss' 'p%40ss' 'ss:w' 'w/r?d' "$escaped"; do
    grep -qF "$part" all && { fail "$part was shown"; grep -F "$part" all >&2; }
done
[ -s all ] || fail "nothing was said"

# What others see of a process that has such a one.
mkfifo in
"$duectl" run --store "$good" in >out 2>err &
pid=$!
pids=$pid
exec 5>in # it waits for its lines
tries=0
until tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q '\*@'; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { fail "the password is never hidden"; break; }
    sleep 0.01
done
tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qF 'p%40' && fail "the password is among the arguments"
kill -TERM "$pid"
wait "$pid"
[ $? = 143 ] || fail "it did not end by the signal: $(cat err)"
exec 5>&-
pids=
finish
