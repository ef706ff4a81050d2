#!/bin/sh
# A job that takes longer to come from the server than a call waits for it is cancelled and moved
# all the same, as long as it comes.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77
slow=unix://$dir/slow
python3 "$tests/slow_server.py" "$REDIS_SOCKET" slow 500000 &
pids=$!
for i in $(seq 100); do
    [ -e slow ] && break
    sleep 0.1
done
[ -e slow ] || fail "there is no slow server"

head -c 3500000 /dev/urandom >large # seven seconds; five is how long a call waits by itself
id=$("$duectl" push --at 1h "$url" large) || fail "push"
run 0 reschedule "$slow" "$id" 2h
has out '^rescheduled 1$'
run 0 cancel "$slow" "$id"
has out '^cancelled 1$'
run 1 show "$url" "$id"
finish
