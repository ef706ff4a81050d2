#!/bin/sh
# decisions.sh SOURCE - docs/decisions: numbers without a gap; each file has a number, a date and
# a decision; the list in README.md names each by its title.
set -eu
export LC_ALL=C

cd "$1/docs/decisions"
failed=0
expected=0

wrong()
{
    echo "decisions: $*"
    failed=1
}

for file in $(ls | grep "^[0-9].*\.md$" | sort -n); do
    expected=$((expected + 1))
    number=$(echo "$file" | sed 's/-.*//; s/^0*//')
    [ "$number" = $expected ] || wrong "$file: number $expected is missing or double"
    expected=$number
    title=$(sed -n "1s/^# $number\\. //p" "$file")
    [ -n "$title" ] || wrong "$file: its first line is not \"# $number. title\""
    sed -n 3p "$file" | grep -qxE '20[0-9]{2}-[0-9]{2}-[0-9]{2}' || wrong "$file: no date on line 3"
    grep -q '^\*\*Decision\.\*\*' "$file" || wrong "$file: it decides nothing"
    grep -qxF "| $number | [$title]($file) |" README.md ||
        wrong "README.md: no line \"| $number | [$title]($file) |\""
done

[ $expected -gt 50 ] || wrong "only $expected were found"
[ "$(grep -c '^| [0-9]' README.md)" = "$expected" ] ||
    wrong "README.md lists others than the $expected that are here"
exit $failed
