#!/bin/sh
# amalgamation.sh SOURCE BUILD [all] - due.c and due.h are made, compile with the command of
# docs/install.md, without a warning with the project's, and are the library: the README's program
# and C++ run with them, and unit tests of BUILD linked with them instead of it: those of the verbs
# and of the timeline, with "all" every one that needs no store's library.
set -eu
source=$1
build=$2
folders='api|timeline'
[ "${3:-}" != all ] || folders='api|job|mem|metrics|os|queue|timeline|workers'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say()
{
    printf '%s\n' "$*"
}

strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
"$source/tools/amalgamate" --root "$source" --out .
command=$(sed -n 's/^\(cc .*-c due\.c\)$/\1/p' "$source/docs/install.md")
[ -n "$command" ] || { say "docs/install.md: no command that compiles due.c"; exit 1; }

say "warnings"
compilers=gcc
! command -v clang-14 >/dev/null || compilers="gcc clang-14"
for compiler in $compilers; do
    for language in c11 gnu17; do
        $compiler -std=$language $strict -fsyntax-only due.c
    done
done
gcc -std=c11 $strict -DNDEBUG -fsyntax-only due.c

say "$command"
eval "$command"
cc -shared due.c -O0 -fPIC -o whole.so
nm -D --defined-only whole.so | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' | sort >shown
sed -n 's/^ *\(due_[a-z_]*\);$/\1/p' "$source/src/libdue.map" | sort | diff -u - shown

say "a program"
sed 's|<due/due.h>|"due.h"|' "$source/examples/hello.c" >hello.c
cc $strict hello.c due.o -o hello
./hello | diff -u "$source/examples/hello.expected" -
printf '#include "due.h"\nint main() { return due_version() != DUE_VERSION; }\n' >version.cpp
c++ -Wall -Wextra -Wpedantic -Werror version.cpp due.o -o version
./version

# units NAME FILE...: these objects of unit tests as one program.
units()
{
    name=$1
    shift
    cc "$@" due.o "$build/tests/libdue_lab.a" -lcriterion -lm -o "$name"
    "./$name" --jobs 2 >"$name.log" 2>&1 || { cat "$name.log"; exit 1; }
    tail -n 1 "$name.log"
}

find "$build/tests/CMakeFiles" -path '*/unit/*.o' | grep -E "/unit/($folders)/" | sort >objects
[ -s objects ] || { say "no unit tests here: Criterion is missing"; exit 0; }
say "unit tests"
# Programs of their own: they put functions in place of the system's, or need small threads.
alone='/test_(siphash|refused|clock|clock_steps|stack)\.c'
units many $(grep -vE "$alone" objects)
for object in $(grep -E "$alone" objects); do
    units "$(basename "$object" .c.o)" "$object"
done
