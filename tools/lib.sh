# lib.sh - what tools/check, tools/demo and tools/proof share.  For a POSIX shell that stands in the
# project's root and has set $install to yes or no.

# What every build needs; stored queues and the tests need more.
packages_build="gcc libc6-dev cmake ninja-build make pkgconf liburcu-dev"
packages_store="libsqlite3-dev libhiredis-dev redis-server"
packages_tests="$packages_store libcriterion-dev python3 g++ libtbb-dev libevent-dev libev-dev
    libuv1-dev libcurl4-openssl-dev mandoc dpkg-dev file libglib2.0-dev libsystemd-dev
    python3-cffi tzdata tmux libmicrohttpd-dev systemtap-sdt-dev python3-markdown"

# The page of duectl web in a browser: some hundred MB, a minute.
packages_browser="chromium chromium-driver"

# What lets the completions of zsh and fish, the rules for Prometheus and the pages for those who
# come from other languages be tested: some 110 MB, half a minute.
packages_readers()
{
    echo "zsh fish prometheus$(lacking go golang-go)$(lacking node nodejs)"
}

# lacking COMMAND PACKAGE: the package, unless the command is there, wherever that is from.
lacking()
{
    command -v "$1" >/dev/null 2>&1 || printf ' %s' "$2"
}

say()
{
    printf '%s\n' "$*"
}

die()
{
    printf '%s\n' "$*" >&2
    exit 1
}

# missing_packages PACKAGE...: those that are not installed.
missing_packages()
{
    for package in "$@"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
        [ "$state" = installed ] || printf ' %s' "$package"
    done
}

# as_root COMMAND...
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# apt COMMAND...: apt-get, tried a second time if the network had a bad moment.
apt()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null || {
        sleep 5
        as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null
    }
}

# need PACKAGE...: say what is missing, and install it unless that was forbidden.
need()
{
    if ! command -v dpkg-query >/dev/null 2>&1; then
        say "This is no Debian: nothing is installed.  On Debian 12 these packages are used:"
        say "  $*"
        return
    fi
    missing=$(missing_packages "$@")
    if [ -z "$missing" ]; then
        say "Every package that is needed is here; nothing is installed."
        return
    fi
    if [ "$install" = no ]; then
        die "Missing packages, and told not to install:$missing"
    fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
        die "Missing packages:$missing.  Installing them takes root, or sudo."
    fi
    say "This will be installed with apt-get:$missing"
    mkdir -p build/log
    { apt update && apt install -y --no-install-recommends $missing; } \
        >build/log/install.log 2>&1 || {
        tail -n 20 build/log/install.log >&2
        die "The packages could not be installed; see build/log/install.log"
    }
    say "Installed."
    case $missing in
    *redis-server*)
        say "Debian also starts a service redis-server, where it starts services.  It is not used"
        say "here, every server is private: \`systemctl disable --now redis-server\` stops it."
        ;;
    esac
    case $missing in
    *prometheus*)
        say "Debian also starts a service prometheus, where it starts services.  It is not used"
        say "here, only its promtool is: \`systemctl disable --now prometheus\` stops it."
        ;;
    esac
}

# starter COMPILER: what a program built by it with ThreadSanitizer must be started with.  Those of
# Debian 12 do not start where the kernel spreads addresses as widely as newer ones may.
starter()
{
    echo 'int main(void) { return 0; }' >build/log/starter.c
    "$1" -fsanitize=thread build/log/starter.c -o build/log/starter || return
    build/log/starter 2>/dev/null || echo "setarch $(uname -m) -R"
}

# same_runs SEED SEEDS: does the simulation take the same steps as built by gcc and by clang?
same_runs()
{
    for preset in release clang; do
        "build/$preset/tests/simulate/simulate" --each --seed "$1" --seeds "$2" |
            sed 's/  [0-9.]* million a second//' >"build/log/same_runs.$preset" &
    done
    wait
    cmp build/log/same_runs.release build/log/same_runs.clang || {
        diff build/log/same_runs.release build/log/same_runs.clang | head -n 20
        return 1
    }
    tail -n 1 build/log/same_runs.clang
}

# fuzz_targets: those of tests/fuzz, by name.
fuzz_targets()
{
    find tests/fuzz -name 'fuzz_*.c' -exec basename {} .c \; | sort
}

# fuzz_build: in build/fuzz, which must be configured.
fuzz_build()
{
    nice cmake --build build/fuzz --target $(fuzz_targets)
}

# fuzz_run SECONDS: each target from its stored corpus on, all at once, and each for so many seconds
# of a processor: longer by the clock where there are more targets than processors.  What they find
# new is not kept.  Output and exit status of each are in build/log/TARGET.log and .status.
fuzz_run()
{
    count=$(fuzz_targets | wc -l)
    processors=$(getconf _NPROCESSORS_ONLN)
    [ "$processors" -lt "$count" ] || processors=$count
    for target in $(fuzz_targets); do
        rm -f "build/log/$target.status"
        {
            new=$(mktemp -d) &&
                nice "build/fuzz/tests/fuzz/$target" \
                    -max_total_time=$((($1 * count + processors - 1) / processors)) \
                    -print_final_stats=1 -rss_limit_mb=4096 -artifact_prefix="$PWD/build/log/" \
                    "$new" "tests/fuzz/corpus/${target#fuzz_}"
            echo $? >"build/log/$target.status"
            rm -rf "$new"
        } </dev/null >"build/log/$target.log" 2>&1 &
    done
    wait
}

# fuzz_verdict TARGET: what it said in the end, and whether it found nothing.
fuzz_verdict()
{
    tail -n 40 "build/log/$1.log"
    [ "$(cat "build/log/$1.status" 2>/dev/null)" = 0 ]
}
