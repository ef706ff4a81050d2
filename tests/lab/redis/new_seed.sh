#!/bin/sh
# new_seed.sh PROGRAM SOURCE OPS - a model with a seed that nobody has seen.  It follows from the
# sources: each change has another, and whoever checks the same sources tries the same.
set -eu
program=$1
cd "$2"
seed=$(find persist/redis tests/redis tests/lab/redis -type f | LC_ALL=C sort | xargs cat | cksum |
    cut -d' ' -f1)
echo "seed $seed"
exec "$program" --ops "$3" --seed "$seed"
