#!/bin/sh
# The page of a queue in a browser; its picture is left beside duectl, as duectl-web.png.
. "$(dirname "$0")/cli_lib"
for program in python3 chromium chromedriver; do
    command -v $program >"$dir/none" || { echo "no $program"; exit 77; }
done
case $duectl in
/*) ;;
*) duectl=$PWD/$duectl ;;
esac
picture=$(dirname "$duectl")/duectl-web.png
cd "$dir" || exit 1
for missing in libmicrohttpd SQLite; do
    "$duectl" web no.db 2>&1 | grep "built without $missing" && exit 77
done
python3 "$tests/web_browser.py" "$duectl" "$picture" || fail "web_browser.py"
finish
