#!/bin/sh
# redis_consumer.sh SOURCE BUILD - install a build somewhere else and use libdue-redis as a stranger
# would: by pkg-config and by find_package(), in C and in C++, shared and static.
set -eu
build=$2
cache=$build/CMakeCache.txt
grep -q '^DUE_INSTALL:BOOL=ON' "$cache" && [ -e "$build/persist/libdue-redis.so" ] &&
    grep -q '^DUE_SANITIZE:STRING=$' "$cache" || {
    echo "nothing to install, or built for a sanitizer"
    exit 77
}
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$cache")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >consumer.c <<'END'
#include <due/redis.h>
#include <stddef.h>

int main(void)
{
    due_store *store = NULL;
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT };
    due_error error;

    if (due_redis_open(&store, "redis://localhost:0", NULL, &error) != DUE_EINVAL)
        return 1;
    if (due_redis_open(&store, "redis://localhost", &options, &error) != 0)
        return 1;
    due_redis_free(store);
    return 0;
}
END
sed 's/{ DUE_REDIS_OPTIONS_INIT }/due_redis_options()/' consumer.c |
    sed 's/^    due_error error;/&\n    options.size = sizeof(due_redis_options);/' >consumer.cpp

echo "install"
cmake --install "$build" --prefix "$work/first" >install.log
mv first moved # an installed tree may be moved
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name due-redis.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH

echo "pkg-config: version $(pkg-config --modversion due-redis)"
strict="-Wall -Wextra -Wpedantic -Werror"
shared=$(pkg-config --cflags --libs due-redis)
static="-static $(pkg-config --static --cflags --libs due-redis)"
for how in shared static; do
    eval "flags=\$$how"
    # A static getaddrinfo() is warned of by the linker; that is no error.
    cc -std=c99 $strict -Wno-missing-field-initializers consumer.c $flags -o "c_$how" 2>log ||
        { cat log; exit 1; }
    c++ -std=c++11 $strict consumer.cpp $flags -o "cpp_$how" 2>log || { cat log; exit 1; }
    "./c_$how"
    "./cpp_$how"
done

echo "find_package"
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(due REQUIRED COMPONENTS redis)
foreach(kind redis redis_static)
    add_executable(with_${kind} consumer.c)
    target_link_libraries(with_${kind} PRIVATE due::${kind})
endforeach()
END
cmake -G "$generator" -S . -B found -DCMAKE_PREFIX_PATH="$work/moved" >found.log
cmake --build found >>found.log || { cat found.log; exit 1; }
./found/with_redis
./found/with_redis_static
echo "fine"
