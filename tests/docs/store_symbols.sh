#!/bin/sh
# store_symbols.sh SOURCE BUILD - of each library besides the core, those of stores and that of
# sockets: the calls of its header, the names in its map and what the shared library shows are the
# same; and the core needs nothing that they need.
set -eu
export LC_ALL=C
source=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seen=0

for library in persist/libdue-redis persist/libdue-sqlite control/libdue-control; do
    map=$source/$library.map
    store=${library##*-}
    header=$source/include/due/$store.h
    library=$build/$library.so
    [ -e "$library" ] || continue
    seen=$((seen + 1))
    sed -n 's/^DUE_API [^(]*[ *]\(due_[a-z_]*\)(.*/\1/p' "$header" | sort >"$work/header"
    sed -n 's/^ *\(due_[a-z_]*\);$/\1/p' "$map" | sort >"$work/map"
    nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' |
        grep -v '^__\|^_init$\|^_fini$' | sort >"$work/library"
    [ "$(grep -c '^DUE_API' "$header")" = "$(wc -l <"$work/header")" ] || {
        echo "$header: not every line with DUE_API was understood"
        exit 1
    }
    diff -u "$work/header" "$work/map"
    diff -u "$work/header" "$work/library"
    echo "$store: $(wc -l <"$work/header") calls"
done
[ "$seen" -gt 0 ] || { echo "no store's library was built"; exit 77; }
if readelf -d "$build/src/libdue.so" >"$work/needs" &&
    grep -iE 'hiredis|sqlite|control' "$work/needs"; then
    echo "the core needs what another library needs"
    exit 1
fi
