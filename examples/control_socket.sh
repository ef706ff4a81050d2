#!/bin/sh
# control_socket.sh PROGRAM... - look into the queue of PROGRAM while it runs, and change it.  The
# command duectl is $DUECTL.
set -eu
duectl=${DUECTL:-duectl}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export KITCHEN_SOCKET="$dir/kitchen.sock"

# id_of KEY
id_of()
{
    "$duectl" ls --control "$KITCHEN_SOCKET" --key "$1" | cut -d ' ' -f 1
}

"$@" &
program=$!
until "$duectl" stats --control "$KITCHEN_SOCKET" >"$dir/none" 2>&1; do
    kill -0 "$program" || exit 1
    sleep 0.02
done
"$duectl" ls --control "$KITCHEN_SOCKET" >&2
"$duectl" cancel --control "$KITCHEN_SOCKET" "$(id_of soup)" >&2
"$duectl" promote --control "$KITCHEN_SOCKET" "$(id_of roast)" >&2
echo '0s the tea' | "$duectl" push --control "$KITCHEN_SOCKET" >&2
"$duectl" stats --control "$KITCHEN_SOCKET" >&2
echo '0s the bill' | "$duectl" push --control "$KITCHEN_SOCKET" >&2
wait "$program"
