#!/bin/sh
# readme_commands.sh SOURCE BUILD - the commands of README.md do what it says.
#
# Its first C block is compiled as hello.c against the installed library.  In blocks of "console"
# each line after "$ " is run and must print what follows.  Commands in blocks of "sh" are only
# looked for: the one builds, the other runs these very tests.  $URL is a server of its own; where
# the library was built without its store, what names it is left out.
set -u

with_redis=$2/tests/with_redis
if [ -z "${REDIS_SOCKET:-}" ] && [ -x "$with_redis" ] && command -v redis-server >/dev/null; then
    exec "$with_redis" --appendonly yes --appendfsync always -- sh "$0" "$@"
fi
URL=${REDIS_SOCKET:+unix://$REDIS_SOCKET}
export URL
unset DUE_STORE_URL

source=$1
build=$2
failed=0

fail()
{
    echo "README.md: $*"
    failed=1
}

# block KIND: the lines of all blocks of this kind.
block()
{
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source/README.md" | grep -v '^```'
}

# compare COMMAND EXPECTED-FILE
compare()
{
    case $1 in
    *'$URL'*)
        [ -n "$URL" ] || { echo "left out: $1"; return; }
        ;;
    esac
    sh -c "$1" >printed 2>&1 || fail "this fails: $1"
    cmp -s printed "$2" || {
        fail "this does not print what follows it: $1"
        diff "$2" printed
    }
}

run_console()
{
    command=
    : >expected
    while IFS= read -r line; do
        case $line in
        '$ '*)
            [ -z "$command" ] || compare "$command" expected </dev/null
            command=${line#'$ '}
            : >expected
            ;;
        *) printf '%s\n' "$line" >>expected ;;
        esac
    done <console
    [ -z "$command" ] || compare "$command" expected </dev/null
}

look_for()
{
    while read -r word rest; do
        case $word in
        tools/*) [ -x "$source/$word" ] || fail "there is no $word" ;;
        make) grep -q "^${rest%% *}:" "$source/Makefile" || fail "make cannot do: $rest" ;;
        sudo)
            case $rest in
            make*) grep -q '^install:' "$source/Makefile" || fail "make cannot do: $rest" ;;
            esac
            ;;
        *) fail "who checks this? $word $rest" ;;
        esac
    done <commands
}

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

cmake --install "$build" --prefix "$scratch/usr" >install.log 2>&1 || {
    cat install.log
    exit 1
}
due=$(find "$scratch/usr" -name due.pc)
PKG_CONFIG_PATH=$(dirname "$due")
LD_LIBRARY_PATH=${PKG_CONFIG_PATH%/pkgconfig}
PATH=$scratch/usr/bin:$PATH
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH

block c | sed '/^}$/q' >hello.c
block console >console
block sh >commands
cmp hello.c "$source/examples/hello.c" || fail "its first program is not examples/hello.c"
[ -s console ] && [ -s commands ] || fail "blocks are missing"
run_console
look_for
exit $failed
