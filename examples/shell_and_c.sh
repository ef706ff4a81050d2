#!/bin/sh
# shell_and_c.sh PROGRAM... - put jobs into a queue that PROGRAM works off meanwhile.  The store is
# $DUE_STORE_URL, the command duectl, or $DUECTL.
set -eu
duectl=${DUECTL:-duectl}

printf '0s the tea\n300ms the egg\n' | "$duectl" push --shared --queue kitchen >/dev/null
(
    sleep 0.1
    echo '400ms the bill' | "$duectl" push --shared --queue kitchen >/dev/null
) &
"$@"
wait
