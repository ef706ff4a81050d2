#!/bin/sh
# `duectl bench` becomes the program that runs the benchmarks.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

# A program that says what it was given.
pretend()
{
    mkdir -p "${1%/*}"
    printf '#!/bin/sh\necho %s "$@"\nexit 5\n' "$2" >"$1"
    chmod +x "$1"
}

# Where DUE_BENCH_DIR says; arguments and exit status are passed on.
pretend named/run named
DUE_BENCH_DIR=$dir/named run 5 bench --quick 'two words' --help
same out <<'END'
named --quick two words --help
END
DUE_BENCH_DIR=$dir/nowhere run 2 bench
has err '^duectl: DUE_BENCH_DIR: there is no program run in .*/nowhere$'
same out </dev/null
unset DUE_BENCH_DIR

# A signal ends it as if it had been started without us.
printf '#!/bin/sh\nkill -PIPE $$\nsleep 1\n' >named/run
DUE_BENCH_DIR=$dir/named run 141 bench

# Beside the command: nothing; where it is installed; in a build directory.
mkdir -p moved/bin && cp "$duectl" moved/bin/duectl || exit 1
duectl=$dir/moved/bin/duectl
run 2 bench
has err '^duectl: the benchmarks are not here: '
run 0 bench --help
has out '^usage: duectl bench'
same err </dev/null
pretend moved/libexec/libdue/bench/run installed
run 5 bench --help
echo installed --help | same out
run 5 bench a
echo installed a | same out
pretend moved/bin/bench/run built
run 5 bench
echo built | same out

# Something that cannot be started.
echo '#!/no/such/interpreter' >moved/bin/bench/run
run 2 bench
has err '^duectl: .*/bench/run: No such file or directory$'
finish
