#!/bin/sh
# guarantees.sh SOURCE [BUILD] - every test named in docs/guarantees.md exists.
#
# In the last column of the tables that have "Proven by" at their head: `suite.name` is a Criterion
# test in tests/unit, `folder/name` or a word a program of tests.  A row names one, or says with
# "nothing" that there is none.  In all other text: `suite.name`, or `suite.*` for several,
# `crash/name` and `store_name`.
set -u

cd "$1" || exit 1
page=docs/guarantees.md
units=$(mktemp) || exit 1
rows=$(mktemp) || exit 1
trap 'rm -f "$units" "$rows"' EXIT
failed=0
names=0

fail()
{
    echo "$page: $*"
    failed=1
}

exists()
{
    case $1 in
    *.\*) grep -q "^${1%\*}" "$units" ;;
    *.*) grep -qx "$1" "$units" ;;
    *) [ -n "$(find tests -path "tests/$1.c" -o -path "tests/*/$1.c")" ] ;;
    esac
}

# "suite.name" of every Criterion test, one a line, however its lines are broken.
find tests/unit -name "test_*.c" -exec cat {} + | tr -s '\n ' '  ' |
    grep -oE "\b([A-Z_]+_TEST|(Parameterized)?Test)\(([^,()]*, )?[a-z0-9_]+, [a-z0-9_]+" |
    sed -E 's/.*[(, ]([a-z0-9_]+), ([a-z0-9_]+)$/\1.\2/' >"$units"

# "first column|last column" of the rows of such tables.
awk -F ' *[|] *' '
    !/^\|/ { proven = 0 }
    /\| Proven by \|$/ { proven = 1; next }
    proven && !/^\|-/ { print $2 "|" $(NF - 1) }' "$page" >"$rows"

while IFS='|' read -r row tests; do
    found=0
    for name in $(printf '%s\n' "$tests" | grep -oE '`[a-z][^` ]*`' | tr -d '`'); do
        names=$((names + 1))
        found=1
        exists "$name" || fail "$row: there is no $name"
    done
    case $found$tests in
    1* | *nothing*) ;;
    *) fail "$row: neither a test nor a reason" ;;
    esac
done <"$rows"

# What the page says of names themselves is no name.
told=0
for name in $(grep -v '^|' "$page" |
    grep -oE '`([a-z0-9_]+\.[a-z0-9_*]+|crash/[a-z_]+|store_[a-z]+)`' | tr -d '`' | sort -u |
    grep -vxE 'suite\.name|crash/name'); do
    told=$((told + 1))
    exists "$name" || fail "there is no $name"
done

[ "$told" -gt 0 ] || fail "no names were found in the text"
[ "$names" -gt 0 ] || fail "no rows were found"
echo "$(wc -l <"$rows") rows, $names tests named, and $told in the text"
exit $failed
