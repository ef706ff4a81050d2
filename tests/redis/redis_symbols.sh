#!/bin/sh
# redis_symbols.sh SOURCE BUILD - the calls of redis.h, the names in libdue-redis.map and what the
# shared library shows are the same; and the core does not need hiredis.
set -eu
export LC_ALL=C
source=$1
build=$2
library=$build/persist/libdue-redis.so
[ -e "$library" ] || { echo "libdue-redis.so was not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^DUE_API [^(]*[ *]\(due_[a-z_]*\)(.*/\1/p' "$source/include/due/redis.h" |
    sort >"$work/header"
sed -n 's/^ *\(due_[a-z_]*\);$/\1/p' "$source/persist/libdue-redis.map" | sort >"$work/map"
nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' |
    grep -v '^__\|^_init$\|^_fini$' | sort >"$work/library"

[ "$(grep -c '^DUE_API' "$source/include/due/redis.h")" = "$(wc -l <"$work/header")" ] || {
    echo "not every line with DUE_API was understood"
    exit 1
}
diff -u "$work/header" "$work/map"
diff -u "$work/header" "$work/library"
if readelf -d "$build/src/libdue.so" >"$work/needs" && grep -i hiredis "$work/needs"; then
    echo "the core needs hiredis"
    exit 1
fi
echo "$(wc -l <"$work/header") calls"
