#!/bin/sh
# guarantees.sh SOURCE [BUILD] - every test named in docs/guarantees.md exists.
#
# In the last column of the tables that have "Proven by" at their head: `suite.name` is a Criterion
# test in tests/test_*.c, `folder/name` or a word a program tests/NAME.c.  A row names one, or says
# with "nothing" that there is none.
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

# "suite.name" of every Criterion test, one a line, however its lines are broken.
cat tests/test_*.c | tr -s '\n ' '  ' |
    grep -oE "\b([A-Z]+_TEST|(Parameterized)?Test)\(([^,()]*, )?[a-z0-9_]+, [a-z0-9_]+" |
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
        case $name in
        *.*) grep -qx "$name" "$units" || fail "$row: there is no test $name" ;;
        *) [ -f "tests/$name.c" ] || fail "$row: there is no program $name" ;;
        esac
    done
    case $found$tests in
    1* | *nothing*) ;;
    *) fail "$row: neither a test nor a reason" ;;
    esac
done <"$rows"

[ "$names" -gt 0 ] || fail "no rows were found"
echo "$(wc -l <"$rows") rows, $names tests named"
exit $failed
