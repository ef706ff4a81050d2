#!/bin/sh
# readme_links.sh SOURCE [BUILD] - every link within the project leads to a file that is there, and
# every link to a heading to one that is there.
set -u

cd "$1" || exit 1
failed=0

fail()
{
    echo "$*"
    failed=1
}

# anchors FILE: its headings as they are linked to.
anchors()
{
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed "s/[^a-z0-9 _-]//g; s/ /-/g"
}

links=$(mktemp) || exit 1
trap 'rm -f "$links"' EXIT
for page in *.md docs/*.md docs/moving/*.md persist/*.md control/*.md; do
    tr '\n' ' ' <"$page" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' | sort -u >"$links"
    while IFS= read -r link; do
        case $link in
        http://* | https://*) continue ;;
        '#'*) file=$page ;;
        *) file=$(dirname "$page")/${link%%#*} ;;
        esac
        [ -e "$file" ] || fail "$page: there is no $link"
        case $link in
        *'#'*) anchors "$file" | grep -qx -- "${link#*#}" || fail "$page: no heading for $link" ;;
        esac
    done <"$links"
done
exit $failed
