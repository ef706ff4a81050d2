#!/bin/sh
# symbols.sh SOURCE LIBRARY - the calls of libdue's own headers, the names in libdue.map and what
# the shared library shows are the same.
set -eu
export LC_ALL=C
source=$1
library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for header in base cron due figures job metrics signals workers; do
    cat "$source/include/due/$header.h"
done >"$work/headers"
sed -n 's/^DUE_API [^(]*[ *]\(due_[a-z_]*\)(.*/\1/p' "$work/headers" |
    sort >"$work/header"
sed -n 's/^ *\(due_[a-z_]*\);$/\1/p' "$source/src/libdue.map" | sort >"$work/map"
nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' |
    sort >"$work/library"

[ "$(grep -c '^DUE_API' "$work/headers")" = "$(wc -l <"$work/header")" ] || {
    echo "not every line with DUE_API was understood"
    exit 1
}
diff -u "$work/header" "$work/map"
diff -u "$work/header" "$work/library"
echo "$(wc -l <"$work/header") calls"
