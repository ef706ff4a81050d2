#!/bin/sh
# Whoever waits at a terminal for a command that takes more than a second sees how far it is.
. "$(dirname "$0")/cli_lib"
serve
here=$(cd "$(dirname "$0")" && pwd)
python3 -c 'import sqlite3' 2>"$dir/none" || exit 77
awk 'BEGIN {
    print "{\"due_export\":1}"
    for (i = 0; i < 30000; i++)
        printf "{\"id\":\"ff00000000010000%012x0000\",\"topic\":\"t%d\"," \
            "\"deadline\":\"2030-01-01T00:00:00Z\",\"data\":\"tea\"}\n", i, i % 7
    print "{\"jobs\":30000,\"kept_keys\":0}"
}' >"$dir/jobs"
"$duectl" import "$dir/store.db" <"$dir/jobs" >"$dir/out" 2>&1 || exit 77 # built without SQLite
"$duectl" import --queue many "$url" <"$dir/jobs" >"$dir/out" 2>&1 || fail "import"
python3 "$here/progress.py" "$duectl" "$REDIS_SOCKET" "$url" "$dir" || fail "progress.py"
finish
