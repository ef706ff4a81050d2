#!/bin/sh
# man_pages.sh SOURCE BUILD - there is a manual page for every public call (but for what the headers
# for event loops have for the loops only), every error stands in due_errors(7), every verb of
# duectl has a page with every option that its --help has; and whoever renders them has nothing to
# say: mandoc, or man, as far as they are there.
set -u
export LC_ALL=C
source=$1
pages=$2/man
duectl=$2/duectl
failed=0
missing=$(mktemp) || exit 1
trap 'rm -f "$missing"' EXIT

fail()
{
    echo "man_pages: $*"
    failed=1
}

[ -f "$pages/made" ] || { echo "no manual pages were built here"; exit 77; }

cat "$source"/include/due/*.h | tr '\n' ' ' |
    grep -oE '(DUE_API|static inline) [^(]*\(' | grep -oE 'due_[a-z_]+\($' | tr -d '(' |
    grep -vE '^due_loop_|_(look_again|readable|closed|dispatch)$' | sort -u |
    while read -r call; do
        [ -f "$pages/man3/$call.3" ] || echo "$call(3)"
        grep -q "fB$call.fR(3)" "$pages/man7/due.7" || echo "$call in due(7)"
        sed -n '/^.SH "SYNOPSIS"/,/^.fi/p' "$pages/man3/$call.3" | tr '\n' ' ' |
            grep -q "[ *]$call(" || echo "$call in its synopsis"
    done >"$missing"
cat "$missing"
[ ! -s "$missing" ] || fail "these are missing"
sed -n 's/^ *X(\(E[A-Z]*\), -.*/\1/p' "$source/include/due/base.h" | while read -r error; do
    grep -q "DUE_$error" "$pages/man7/due_errors.7" || echo "$error"
done | grep . && fail "these are not in due_errors(7)"

grep -l "^!" "$pages"/man?/*.? && fail "there is a picture in these"
if [ -x "$duectl" ]; then
    verbs=$("$duectl" --help | sed -nE 's/^(usage:| +) duectl ([a-z][a-z-]*).*/\2/p' | sort -u)
    [ -n "$verbs" ] || fail "no verbs"
    for verb in $verbs; do
        page=$pages/man1/duectl-$verb.1
        [ -f "$page" ] || { fail "no page for duectl $verb"; continue; }
        grep -q "duectl.-$verb (1)" "$pages/man1/duectl.1" || fail "duectl(1) does not name $verb"
        help=$("$duectl" "$verb" --help </dev/null 2>/dev/null)
        case $help in
        'usage: duectl'*) ;;
        *) continue ;;
        esac
        for option in $(echo "$help" | sed -n 's/^  \(--[a-z-]*\).*/\1/p'); do
            grep -q "^.fB$(echo "$option" | sed 's/-/.-/g')" "$page" ||
                fail "duectl-$verb(1): no $option"
        done
    done
fi

said=
if command -v mandoc >/dev/null 2>&1; then
    said=$(mandoc -T lint -W warning "$pages"/man*/*.[137] 2>&1)
elif command -v man >/dev/null 2>&1; then
    said=$(for page in "$pages"/man*/*.[137]; do
        man --warnings -l "$page" 2>&1 >/dev/null
    done)
else
    echo "neither mandoc nor man is here"
fi
[ -z "$said" ] || fail "$said"
echo "$(find "$pages" -name '*.[137]' | wc -l) pages"
exit $failed
