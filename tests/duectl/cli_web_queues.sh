#!/bin/sh
# The page of several queues, asked by plain HTTP: their list, one that is away, and each by itself.
redis_options="--requirepass canary-7f3a"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77
secret=canary-7f3a
for missing in libmicrohttpd SQLite; do
    "$duectl" web no.db 2>&1 | grep "built without $missing" && exit 77
done
python3 "$tests/web_queues.py" "$duectl" "unix://:$secret@$REDIS_SOCKET" "$secret" ||
    fail "web_queues.py"
finish
