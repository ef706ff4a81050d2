#!/bin/sh
# The page of a queue when something goes wrong, and beside the owner of the queue.
redis_options="--requirepass canary-7f3a"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77
secret=canary-7f3a
"$duectl" web no.db 2>&1 | grep 'built without' && exit 77
python3 "$tests/web_faults.py" "$duectl" "unix://:$secret@$REDIS_SOCKET" "$secret" ||
    fail "web_faults.py"
finish
