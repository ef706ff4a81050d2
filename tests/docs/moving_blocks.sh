#!/bin/sh
# moving_blocks.sh SOURCE BUILD - what the pages of docs/moving show of other libraries can be
# compiled, by the compilers that are there: moving_blocks.py.
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
exec python3 "$1/tests/docs/moving_blocks.py" "$1/docs/moving" "$2"
