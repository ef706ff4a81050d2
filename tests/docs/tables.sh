#!/bin/sh
# tables.sh SOURCE [BUILD] - the tables of docs/guide.md and docs/reference.md against the headers:
# every error with its value and text; every field of the structs, where a table's head says "Field
# of `struct`"; every function; and that tests/lab/stack_script.h calls each function of libdue.
set -eu
export LC_ALL=C

cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

same()
{
    if ! diff -u "$work/code" "$work/page"; then
        echo "tables: $1: the code (-) and the page (+) differ"
        failed=1
    fi
}

# One line, without comments.
bare()
{
    tr -s '\n ' '  ' <"$1" | sed 's|/\*|\n/*|g; s|\*/|*/\n|g' | grep -v '^/\*' | tr '\n' ' '
}

# The first cell of each row of the tables in FILE whose head begins with TEXT; what is in `` there.
column()
{
    awk -v head="| $2 |" 'index($0, head) == 1 { on = 1; next } !/^\|/ { on = 0 } on' "$1" |
        awk -F '|' '{ print $2 }' | grep -o '`[^`]*`' | tr -d '`'
}

# ---- Errors ----

tr -s '\n\\ ' '   ' <include/due/base.h | grep -o 'X(E[A-Z]*, -E[A-Z0-9]*, "[^"]*")' |
    sed 's/X(\(E[A-Z]*\), \(-E[A-Z0-9]*\), "\(.*\)")/DUE_\1 \2 \3/' >"$work/code"
sed -n 's/^| `\(DUE_E[A-Z]*\)` | `\(-E[A-Z0-9]*\)` | \([^|]*\) | [^|]* |$/\1 \2 \3/p' \
    docs/guide.md >"$work/page"
[ -s "$work/code" ] || same "errors: none were found"
same errors

# ---- Fields ----

# The fields of struct NAME in HEADER, but those that are reserved.
fields()
{
    bare "$2" | grep -oE "struct $1 \{[^}]*\}" | sed 's/^[^{]*{//; s/}$//' | tr ';' '\n' |
        sed -E 's/.*\(\*([a-z_]+)\)\(.*/\1/; s/\[[^]]*\]//g; s/ *$//; s/.*[ *]//' |
        grep -vx 'reserved' | grep . || true
}

for pair in due_options:options.h:guide due_spec:job.h:reference due_extra:job.h:reference \
    due_job:job.h:reference due_stats:due.h:reference due_workers_options:workers.h:reference \
    due_redis_options:redis.h:reference due_sqlite_options:sqlite.h:reference \
    due_control_options:control.h:reference; do
    struct=${pair%%:*}
    header=${pair#*:}
    header=${header%:*}
    fields "$struct" "include/due/$header" | sort >"$work/code"
    column "docs/${pair##*:}.md" "Field of \`$struct\`" | sort >"$work/page"
    [ "$(wc -l <"$work/code")" -ge 5 ] || { echo "tables: no fields of $struct" && failed=1; }
    same "fields of $struct"
done

# ---- Functions ----

functions()
{
    sed -n 's/^ *\(due_[a-z_]*\);$/\1/p' "$@" | sort
}

functions src/libdue.map persist/libdue-redis.map persist/libdue-sqlite.map \
    control/libdue-control.map >"$work/code"
column docs/reference.md Function | sort >"$work/page"
same functions

functions src/libdue.map >"$work/code"
grep -oE 'due_[a-z_]+\(' tests/lab/stack_script.h | tr -d '(' | sort -u | comm -12 "$work/code" - \
    >"$work/page"
same "functions that tests/lab/stack_script.h calls"

exit "$failed"
