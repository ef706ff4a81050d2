#!/bin/sh
# run.sh SOURCE BUILD - install a build somewhere else and use it as a stranger would: by
# pkg-config and by find_package(), in C and in C++, shared and static; and as a part of another
# project's build.
set -eu
source=$1
build=$2
here=$source/tests/consumer
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say()
{
    printf '%s\n' "$*"
}

# strict COMPILER...: with the warnings of a careful user, as errors.
strict()
{
    "$@" -Wall -Wextra -Wpedantic -Werror
}

say "install"
cmake --install "$build" --prefix "$work/first" >install.log
mv first moved # an installed tree may be moved
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name due.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH

say "pkg-config: version $(pkg-config --modversion due)"
shared=$(pkg-config --cflags --libs due)
static="-static $(pkg-config --static --cflags --libs due)"
for how in shared static; do
    eval "flags=\$$how"
    strict cc -std=c99 "$here/consumer.c" $flags -o "c_$how"
    strict c++ -std=c++11 "$here/consumer_cpp.cpp" $flags -o "cpp_$how"
    "./c_$how"
    "./cpp_$how"
done

say "find_package"
cmake -G "$generator" -S "$here" -B found -DCMAKE_PREFIX_PATH="$work/moved" >found.log
cmake --build found >>found.log || { cat found.log; exit 1; }
(cd found && ctest --output-on-failure)

say "add_subdirectory"
cmake -G "$generator" -S "$here" -B within -DDUE_SOURCE="$source" -DCMAKE_BUILD_TYPE=Release \
    >within.log
cmake --build within -j 2 >>within.log || { cat within.log; exit 1; }
(cd within && ctest --output-on-failure)
cmake --install within --prefix "$work/none" >within.log
[ ! -e none ] || { say "a project that contains libdue installs it too"; exit 1; }
