#!/bin/sh
# floors.sh SOURCE - docs/floors.svg is what tools/floors draws of the code; it tells another
# picture from it, and refuses a folder that it does not know.
set -eu

command -v python3 >/dev/null || exit 77
"$1/tools/floors" --check

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/house"
cp -R "$1/tools" "$1/src" "$1/persist" "$1/control" "$1/include" "$work/house"
mkdir "$work/house/docs"
sed 's/slab/slap/' "$1/docs/floors.svg" >"$work/house/docs/floors.svg"
if "$work/house/tools/floors" --check 2>"$work/said"; then
    echo "floors: a picture of other files was taken for that of these"
    exit 1
fi
grep -q 'run tools/floors' "$work/said"
mkdir "$work/house/src/cellar"
echo 'int a;' >"$work/house/src/cellar/wine.c"
if "$work/house/tools/floors" --check 2>"$work/said"; then
    echo "floors: src/cellar was not missed"
    exit 1
fi
grep -q 'src/cellar has code' "$work/said"
