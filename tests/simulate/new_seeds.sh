#!/bin/sh
# new_seeds.sh SIMULATE SOURCE SEEDS - seeds that nobody has seen.  They follow from the sources:
# each change has others, and whoever checks the same sources simulates the same.
set -eu
simulate=$1
cd "$2"
seed=$(find include src tests/simulate tests/lab tests/crash -type f | LC_ALL=C sort |
    xargs cat | cksum | cut -d' ' -f1)
exec "$simulate" --seed "$seed" --seeds "$3"
