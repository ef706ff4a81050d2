#!/bin/sh
# warnings.sh SOURCE - no compiler that is here has anything to say of the headers for C++, in any
# version of it, and each can be included by itself.
set -u
failed=0
tried=0

# strict COMPILER STANDARD FILE
strict()
{
    tried=$((tried + 1))
    "$1" -std="$2" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
        -Wnon-virtual-dtor -Werror -fsyntax-only -I "$source/include" -I "$source/tests" \
        -x c++ "$3" || failed=1
}

source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in "$source"/include/due/cpp/*.hpp; do
    printf '#include "%s"\n' "$header" >"$work/$(basename "$header").cpp"
done
for compiler in g++ clang++-14; do
    command -v $compiler >/dev/null 2>&1 || continue
    for standard in c++17 c++20; do
        for test in cpp_wrappers cpp_owners; do
            strict $compiler $standard "$source/tests/cpp/$test.cpp"
        done
    done
done
for part in "$work"/*.cpp; do
    strict c++ c++17 "$part"
done
echo "$tried files"
[ $tried -gt 0 ] || exit 77
exit $failed
