#!/bin/sh
# packages.sh SOURCE [BUILD] - the packages of Debian are made, each has what belongs to it and
# depends on what it needs, no two have the same file; and from a root in which nothing but they lie
# the README's program is built and run, stores are found by pkg-config and by find_package(), and
# duectl keeps a job.
set -eu
source=$1
here=$source/tests/consumer
for tool in dpkg-deb dpkg-shlibdeps ninja; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail()
{
    echo "packages: $*"
    exit 1
}

export DUE_PACKAGES_BUILD="$work/build"
"$source/tools/packages" -DCMAKE_C_FLAGS_RELEASE=-O0 >made.log 2>&1 || {
    tail -n 40 made.log
    exit 1
}
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
names="libdue0 libdue-control0 libdue-redis0 libdue-sqlite0 libdue-dev duectl"
mkdir root
for name in $names; do
    set -- build/debian/"$name"_*.deb
    [ -f "$1" ] || fail "there is no $name"
    dpkg-deb -c "$1" | awk '$1 !~ /^d/ { print $6 }' | sort >"$name.files"
    dpkg-deb -f "$1" Depends >"$name.depends"
    dpkg-deb -x "$1" root
    for file in copyright changelog.Debian.gz; do
        grep -qx "./usr/share/doc/$name/$file" "$name.files" || fail "$name: no $file"
    done
done
twice=$(sort ./*.files | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"

# has NAME PATTERN...: a package has these files.
has()
{
    name=$1
    shift
    for pattern in "$@"; do
        grep -qE "^\\./usr/$pattern\$" "$name.files" || fail "$name: no $pattern"
    done
}

has libdue0 "lib/$multiarch/libdue\\.so\\.0"
has libdue-control0 "lib/$multiarch/libdue-control\\.so\\.0"
has libdue-redis0 "lib/$multiarch/libdue-redis\\.so\\.0"
has libdue-sqlite0 "lib/$multiarch/libdue-sqlite\\.so\\.0"
has libdue-dev include/due/due.h "lib/$multiarch/libdue.so" "lib/$multiarch/libdue.a" \
    "lib/$multiarch/pkgconfig/due.pc" share/man/man3/due_enqueue.3.gz share/man/man7/due.7.gz
has duectl bin/duectl share/man/man1/duectl-run.1.gz
for store in libdue-control0 libdue-redis0 libdue-sqlite0; do
    grep -q 'libdue0 (= ' $store.depends || fail "$store does not need libdue0"
done
grep -q hiredis libdue-redis0.depends || fail "libdue-redis0 does not need hiredis"
grep -q 'sqlite3-0 (>= 3.37)' libdue-sqlite0.depends || fail "it takes any SQLite"
for name in libdue0 libdue-control0 libdue-redis0 libdue-sqlite0 libhiredis-dev libsqlite3-dev; do
    grep -q "$name" libdue-dev.depends || fail "libdue-dev does not need $name"
done
for name in libdue0 libdue-control0 libdue-redis0 libdue-sqlite0; do
    dpkg-deb -I build/debian/${name}_*.deb shlibs | grep -q "$name" || fail "$name: no shlibs"
done

lib=$work/root/usr/lib/$multiarch
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
cc "$source/examples/hello.c" $(pkg-config --cflags --libs due) -o hello
ldd hello | grep -q "$lib/libdue.so.0" || fail "it is not linked with the library of the package"
./hello | diff -u "$source/examples/hello.expected" -
cc -static "$source/examples/hello.c" $(pkg-config --static --cflags --libs due) -o hello_static
./hello_static | diff -u "$source/examples/hello.expected" -
cc "$source/examples/file_restart.c" $(pkg-config --cflags --libs due-sqlite due-redis) -o restart
./restart | diff -u "$source/examples/file_restart.expected" -
cmake -S "$here" -B found -DCMAKE_PREFIX_PATH="$work/root/usr" >found.log
cmake --build found -j 2 >>found.log 2>&1 || { cat found.log; exit 1; }
(cd found && ctest >ctest.log) || { cat found/ctest.log; exit 1; }
echo '0s tea' | root/usr/bin/duectl run --store other.db | grep -qx tea || fail "no tea"
gzip -dc root/usr/share/man/man7/due.7.gz | grep -q 'priority delay queue' || fail "no due(7)"
echo "$(cat ./*.files | wc -l) files"
