#!/bin/sh
# metrics_page.sh SOURCE [BUILD] - docs/metrics.md has a row for every name that is written, with
# its type, and none besides.
set -eu
export LC_ALL=C

cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources="src/metrics/prometheus.c src/metrics/census_text.c"

# "name type" of every family: in the source the two stand side by side, or a macro's name says it.
cat $sources | tr -s '\n ' '  ' >"$work/source"
{
    grep -oE '"due_[a-z_]+", "(counter|gauge)"' "$work/source" | tr -d '",'
    grep -oE '(STORE|METRIC)\("due_[a-z_]+"' "$work/source" | sed 's/.*"\(.*\)"/\1 counter/'
    grep -oE 'put_flag\(p, "due_[a-z_]+"' "$work/source" | sed 's/.*"\(.*\)"/\1 gauge/'
    grep -oE 'put_(topic_)?histogram\(p, "due_[a-z_]+"' "$work/source" |
        sed 's/.*"\(.*\)"/\1 histogram/'
} | sort -u >"$work/written"
grep -ohE '"due_[a-z_]+"' $sources | tr -d '"' | sort -u >"$work/names"
cut -d ' ' -f 1 "$work/written" | diff -u "$work/names" -

sed -n 's/^| `\(due_[a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' docs/metrics.md | sort >"$work/page"
diff -u "$work/written" "$work/page"
echo "$(wc -l <"$work/page") names"
