#!/bin/sh
# On a terminal lists have a heading and colours, and are cut to its width; elsewhere not.
. "$(dirname "$0")/cli_lib"
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
command -v python3 >none || exit 77

# seen COLUMNS ARG...: what duectl shows on a terminal of so many columns.
seen()
{
    python3 -c 'import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
try:
    part = os.read(terminal, 4096)
    while part:
        said += part
        part = os.read(terminal, 4096)
except OSError:
    pass
sys.stdout.buffer.write(said.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$@" >out || fail "status of $*"
}

escape=$(printf '\033')
"$duectl" import a.db <"$all" >none 2>&1 || exit 77 # built without SQLite
TERM=xterm
export TERM
unset NO_COLOR

for list in ls 'dead ls' stats; do
    run 0 $list a.db
    cp out plain
    has_not plain "$escape"
    seen 60 "$duectl" $list a.db
    [ "$(head -c 4 out)" = "$escape[1m" ] || fail "$list: no heading that stands out"
    has out "$escape\[31m"
    sed "s/$escape\[[0-9]*m//g; s/ö/o/g" out >bare
    awk -v most=60 'length($0) > most { exit 1 }' bare || fail "$list: a line is too long"
    NO_COLOR=1 seen 200 "$duectl" $list a.db
    has_not out "$escape"
    if [ "$list" = stats ]; then
        sed 's/ .*//' plain >columns
        sed 's/ .*//' out | same columns
    else
        sed 1d out | same plain
    fi
    TERM=dumb seen 60 "$duectl" $list a.db
    has_not out "$escape"
    seen 60 "$duectl" $list --json a.db
    has_not out "$escape"
    has out '^{.*}$'
done

# A text is cut between its characters; no list, no heading.
printf '@2030-01-01 \303\266\303\266\303\266\303\266\303\266\303\266\n' >in.txt
run 0 push b.db in.txt
NO_COLOR=1 seen 102 "$duectl" ls b.db
sed 1d out | tr -d '\n' | tail -c 6 >end
printf '  \303\266\303\266' | cmp -s - end || fail "a text is cut within a character: $(cat end)"
seen 60 "$duectl" ls --topic none b.db
[ ! -s out ] || fail "a heading of nothing"
finish
