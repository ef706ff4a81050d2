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
strict c++ -std=c++17 "$source/examples/cpp_orders.cpp" $shared -o cpp_orders
./cpp_orders | diff - "$source/examples/cpp_orders.expected"

say "find_package"
cmake -G "$generator" -S "$here" -B found -DCMAKE_PREFIX_PATH="$work/moved" >found.log
cmake --build found >>found.log || { cat found.log; exit 1; }
(cd found && ctest --output-on-failure)

say "FetchContent, add_subdirectory"
for fetch in ON OFF; do
    cmake -G "$generator" -S "$here" -B within.$fetch -DDUE_SOURCE="$source" -DDUE_FETCH=$fetch \
        -DCMAKE_BUILD_TYPE=Release >within.log 2>&1 || { cat within.log; exit 1; }
done
cmake --build within.ON -j 2 >>within.log || { cat within.log; exit 1; }
(cd within.ON && ctest --output-on-failure)
cmake --install within.ON --prefix "$work/none" >within.log
[ ! -e none ] || { say "a project that contains libdue installs it too"; exit 1; }

say "uninstall"
cmake --install "$build" --prefix "$work/again" >install.log
mkdir -p again/include/other
touch again/bin/other again/lib/other
(cd "$(dirname "$build")" && cmake -DBUILD="$(basename "$build")" -DPREFIX="$work/again" \
    -P "$source/cmake/Uninstall.cmake") >uninstall.log
left=$(find again ! -type d | sort | tr '\n' ' ')
[ "$left" = "again/bin/other again/lib/other " ] || { say "left behind: $left"; exit 1; }
[ -z "$(find again -name '*due*')" ] || { find again -name '*due*'; exit 1; }
