#!/bin/sh
# python.sh SOURCE BUILD [WITH_REDIS] - the Python package with the libraries that were built: its
# tests, and its example; 77 where cffi is not there.
set -eu
source=$1
build=$2
with_redis=${3:-}
python3 -c 'import cffi' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/python" "$source/include" "$work" # what is compiled does not lie in the source
mkdir "$work/lib"
for library in "$build"/src/libdue.so.* "$build"/persist/libdue-*.so.*; do
    [ -e "$library" ] && ln -s "$library" "$work/lib"
done
export DUE_LIBRARY_PATH="$work/lib" PYTHONPATH="$work/python"
cd "$work"
command -v redis-server >/dev/null 2>&1 || with_redis=
${with_redis:+"$with_redis" --} python3 python/tests/test_due.py
[ -e "$work/lib/libdue-sqlite.so.0" ] || exit 0
python3 python/examples/kitchen.py | diff - "$source/python/examples/kitchen.expected"
