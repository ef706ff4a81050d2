#!/bin/sh
# docs/duectl.md, with its schedules.md and watching.md, against --help: every option has its place
# there, and none is there that is not.
. "$(dirname "$0")/cli_lib"
docs=$(dirname "$0")/../../docs
page=$dir/page
cat "$docs/duectl.md" "$docs/schedules.md" "$docs/watching.md" >"$page"

options()
{
    grep -oE '(^|[^a-z-])--[a-z][a-z-]*' "$@" | grep -oE -- '--[a-z-]+' | LC_ALL=C sort -u
}

"$duectl" --help >"$dir/help"
for command in $(sed -n 's/^\(usage:\|      \) duectl \([a-z]*\) .*/\2/p' "$dir/help"); do
    [ "$command" != bench ] || continue # bench/README.md has its options
    "$duectl" "$command" --help >>"$dir/help" 2>/dev/null || missing=$command
done
[ -z "${missing:-}" ] || { echo "built without $missing"; exit 77; }
options "$dir/help" >"$dir/own"
"$duectl" bench --help >>"$dir/help"
options "$dir/help" >"$dir/known"
options "$page" >"$dir/named"
[ "$(wc -l <"$dir/own")" -gt 15 ] || fail "the options are not in the help"
for option in $(LC_ALL=C comm -23 "$dir/own" "$dir/named"); do
    case $option in
    --help | --version) ;;
    *) fail "docs/duectl.md does not know $option" ;;
    esac
done
for option in $(LC_ALL=C comm -13 "$dir/known" "$dir/named"); do
    fail "docs/duectl.md has $option, which no --help has"
done
finish
