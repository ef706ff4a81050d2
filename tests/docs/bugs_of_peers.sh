#!/bin/sh
# bugs_of_peers.sh SOURCE [BUILD] - every test named in docs/bugs-of-peers.md exists, and no row is
# missing.
#
# In the last column of its tables: `suite.name` is a Criterion test in tests/unit,
# `explore:name` a scenario of tests/explore, where a row of a table begins with its name, or, with
# a dot, a file there; any other word a program or a script of tests.  A row without any of
# these says with "yet" or "nothing" why.
set -u

cd "$1" || exit 1
page=docs/bugs-of-peers.md
rows=$(mktemp) || exit 1
units=$(mktemp) || exit 1
trap 'rm -f "$rows" "$units" "$units.are" "$units.wanted"' EXIT
failed=0
names=0

# The last row of each family, and how many rows have no number.  A row that is added or left out is
# to be so here too.
families="A12 B16 C10 D8 E14 F10 G14 H8 I6 J5"
others=29

fail()
{
    echo "$page: $*"
    failed=1
}

exists()
{
    case $1 in
    explore:*.*) [ -f "tests/explore/${1#explore:}" ] ;;
    explore:*) grep -qE "^ +[A-Z]+\(\"${1#explore:}\"," tests/explore/*.c ;;
    *.*) grep -qx "${1%%.*} ${1#*.}" "$units" ;;
    *) [ -n "$(find tests -path "tests/$1.c" -o -path "tests/*/$1.[cs]*")" ] ;;
    esac
}

# "suite name" of every Criterion test, one a line, however its lines are broken.
cat tests/unit/*/test_*.c | tr -s '\n ' '  ' |
    grep -oE "\b([A-Z_]+_TEST|(Parameterized)?Test)\(([^,()]*, )?[a-z0-9_]+, [a-z0-9_]+" |
    sed -E 's/.*[(, ]([a-z0-9_]+), ([a-z0-9_]+)$/\1 \2/' >"$units"

# "row|last column" of every row but heads.
sed -n 's/^| *\([^|]*[^| ]\) *|.*| *\([^|]*\)|$/\1|\2/p
        s/^| *\([^|]*[^| ]\) *| *\([^|]*\)|$/\1|\2/p' "$page" |
    grep -vE '^(Row|Defect|Whose|-+)\|' | sort >"$rows"

# The numbers that there are, and those that there should be.
grep -oE '^[A-Z][0-9]+\|' "$rows" | tr -d '|' | sort >"$units.are"
for family in $families; do
    i=1
    while [ "$i" -le "${family#?}" ]; do
        echo "${family%"${family#?}"}$i"
        i=$((i + 1))
    done
done | sort >"$units.wanted"
diff "$units.wanted" "$units.are" || fail "rows are missing (<), or unknown or twice (>)"
n=$(grep -cvE '^[A-Z][0-9]+\|' "$rows")
[ "$n" = $others ] || fail "$n rows without a number, not $others"

while IFS='|' read -r row tests; do
    found=0
    for name in $(printf '%s\n' "$tests" | grep -oE '`[^`]+`' | tr -d '`'); do
        names=$((names + 1))
        found=1
        exists "$name" || fail "$row: there is no test $name"
    done
    case $found$tests in
    1* | *yet* | *nothing*) ;;
    *) fail "$row: neither a test nor a reason" ;;
    esac
done <"$rows"

[ -s "$rows" ] && [ "$names" -gt 0 ] || fail "no rows were found"
echo "$(wc -l <"$rows") rows, $names tests named"
exit $failed
