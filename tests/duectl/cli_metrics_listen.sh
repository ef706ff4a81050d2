#!/bin/sh
# The figures of a queue, served for Prometheus: what is answered, who is refused, what goes wrong.
redis_options="--requirepass canary-7f3a"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77
secret=canary-7f3a
"$duectl" web no.db 2>&1 | grep 'built without' >none && {
    run 2 metrics --listen 0 no.db
    has err 'built without libmicrohttpd, and so without --listen'
    finish
}
python3 "$tests/metrics_listen.py" "$duectl" "unix://:$secret@$REDIS_SOCKET" "$secret" ||
    fail "metrics_listen.py"
finish
