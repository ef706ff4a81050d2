#!/bin/sh
# page_commands.sh SOURCE BUILD - each command that a page of docs/ shows can be typed, and does
# what page_commands.py says; with a server of its own.  Those of README.md: readme_commands.sh.
set -u
source=$1
build=$2
with_redis=$build/tests/with_redis
for program in python3 bash jq redis-server redis-cli; do
    command -v $program >/dev/null || { echo "there is no $program"; exit 77; }
done
[ -x "$with_redis" ] && [ -x "$build/duectl" ] || { echo "built without hiredis"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
for missing in libmicrohttpd SQLite; do
    "$build/duectl" web "$scratch/no.db" 2>&1 | grep "built without $missing" && exit 77
done
unset DUE_STORE_URL
"$with_redis" -- python3 "$source/tests/docs/page_commands.py" "$source" "$build" "$scratch"
