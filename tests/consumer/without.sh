#!/bin/sh
# without.sh SOURCE BUILD - duectl builds where hiredis or SQLite is missing, without a warning; it
# does what is left, and says of the rest why not.
set -eu
source=$1
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$2/CMakeCache.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# build NAME OPTION...: a duectl of its own.  What is the same in all of them is compiled once.
build()
{
    name=$1
    shift
    cmake -G "$generator" -S "$source" -B tree -DCMAKE_BUILD_TYPE=Debug -DDUE_WERROR=ON \
        -DCMAKE_C_FLAGS_DEBUG=-O0 -DDUE_TESTS=OFF -DDUE_BENCH=OFF -DDUE_EXAMPLES=OFF \
        -DDUE_SHARED=OFF "$@" >"$name.log"
    cmake --build tree --target duectl -j 2 >>"$name.log" || { cat "$name.log"; exit 1; }
    mkdir "$name"
    cp tree/duectl "$name/"
}

# says STATUS TEXT COMMAND...
says()
{
    wanted=$1
    text=$2
    shift 2
    status=0
    "$@" >out 2>&1 </dev/null || status=$?
    [ $status = "$wanted" ] && grep -q "$text" out && return
    echo "without: $*: status $status, wanted $wanted and \"$text\":"
    cat out
    exit 1
}

echo '0s tea' >due
build no_hiredis -DDUE_REDIS=OFF -DDUE_SQLITE=ON -DDUE_WEB=AUTO
says 0 '^tea$' no_hiredis/duectl run --store jobs.db due
says 0 'whole' no_hiredis/duectl verify jobs.db
says 2 'without hiredis' no_hiredis/duectl doctor redis://127.0.0.1:1
says 2 'without hiredis' no_hiredis/duectl import --from asynq --source redis://127.0.0.1:1 a.db
build no_page -DDUE_REDIS=OFF -DDUE_SQLITE=ON -DDUE_WEB=OFF
says 2 'without libmicrohttpd' no_page/duectl web jobs.db
says 0 'allow-writes' no_page/duectl web --help
build no_sqlite -DDUE_REDIS=ON -DDUE_SQLITE=OFF -DDUE_WEB=AUTO
says 0 '^tea$' no_sqlite/duectl run due
says 2 'without SQLite' no_sqlite/duectl run --store jobs.db due
says 3 '.' no_sqlite/duectl doctor redis://127.0.0.1:1
