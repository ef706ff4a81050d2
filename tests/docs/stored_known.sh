#!/bin/sh
# stored_known.sh SOURCE [BUILD] - each test that tests/lab/stored/stored_known.h leaves out on a
# shared queue is there, once, and each reason stands under a row of the guide's table.
set -u

cd "$1" || exit 1
known=tests/lab/stored/stored_known.h
names=$(mktemp) || exit 1
tests=$(mktemp) || exit 1
trap 'rm -f "$names" "$tests" "$names.rows" "$names.twice"' EXIT
failed=0

fail()
{
    echo "$known: $*"
    failed=1
}

sed -n 's/^    { "\([^"]*\)".*/\1/p' "$known" | tr ';' '\n' | sed 's/^ //' | sort -u > "$names.rows"
while read -r row; do
    [ -z "$row" ] || grep -qF "| $row" docs/guide.md || fail "the guide has no row \"$row\""
done < "$names.rows"

sed -n 's/^      "\([a-z_]*\.[a-z0-9_]*\) ".*/\1/p' "$known" > "$names"
sort "$names" | uniq -d > "$names.twice"
while read -r name; do
    fail "$name is named twice"
done < "$names.twice"
cat tests/unit/*/test_*.c > "$tests"
while read -r name; do
    grep -q "[( ]${name#*.}[,)]" "$tests" || fail "there is no test $name"
done < "$names"
[ "$(wc -l < "$names")" -gt 100 ] || fail "no names were found"
exit "$failed"
