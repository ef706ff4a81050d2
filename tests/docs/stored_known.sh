#!/bin/sh
# stored_known.sh SOURCE [BUILD] - each test that tests/lab/stored/stored_known.h leaves out on a
# shared queue is there, once, and each reason stands under a row of the guide's table.  Likewise of
# owned_known.h, of queues with a store that one process owns: there under a sentence of a page.
set -u

cd "$1" || exit 1
names=$(mktemp) || exit 1
tests=$(mktemp) || exit 1
trap 'rm -f "$names" "$tests" "$names.rows" "$names.twice" "$names.pages"' EXIT
failed=0

fail()
{
    echo "$known: $*"
    failed=1
}

# tests_are_there LEAST: those that are named, at least so many.
tests_are_there()
{
    sed -n 's/^      "\([a-z_]*\.[a-z0-9_]*\) ".*/\1/p' "$known" > "$names"
    sort "$names" | uniq -d > "$names.twice"
    while read -r name; do
        fail "$name is named twice"
    done < "$names.twice"
    while read -r name; do
        grep -q "[( ]${name#*.}[,)]" "$tests" || fail "there is no test $name"
    done < "$names"
    [ "$(wc -l < "$names")" -gt "$1" ] || fail "no names were found"
}

cat tests/unit/*/test_*.c > "$tests"

known=tests/lab/stored/stored_known.h
sed -n 's/^    { "\([^"]*\)".*/\1/p' "$known" | tr ';' '\n' | sed 's/^ //' | sort -u > "$names.rows"
while read -r row; do
    [ -z "$row" ] || grep -qF "| $row" docs/guide.md || fail "the guide has no row \"$row\""
done < "$names.rows"
tests_are_there 100

known=tests/lab/stored/owned_known.h
cat docs/guide.md docs/reliable.md include/due/due.h | tr -s ' \n' ' ' > "$names.pages"
sed -n -e ':more' -e '/\\$/{' -e 'N' -e 's/\\\n//' -e 'b more' -e '}' \
    -e 's/^    { "\([^"]*\)",$/\1/p' "$known" | sort -u > "$names.rows"
while read -r row; do
    [ -z "$row" ] || grep -qF "$row" "$names.pages" || fail "no page says \"$row\""
done < "$names.rows"
[ "$(wc -l < "$names.rows")" -gt 5 ] || fail "no sentences were found"
tests_are_there 50
exit "$failed"
