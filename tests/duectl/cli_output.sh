#!/bin/sh
# Output that cannot be written.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

# Whoever reads has gone: it ends, and says nothing.
{
    echo '0s one'
    seq 1 30 | sed 's/.*/&00ms more/'
    echo '1h last'
} >s.due
{
    timeout 10 "$duectl" run s.due 2>err
    echo $? >status
} | head -n 1 >out
echo one | same out
echo 3 | same status
same err </dev/null

# No room: it ends, and says why and what was left.
printf '1h three\n200ms two\n0s one\n' >s.due
timeout 10 "$duectl" run s.due >/dev/full 2>err
[ $? = 3 ] || fail "status with a full disk"
has err '^duectl: standard output: No space left on device$'
has err '^duectl: stopped: 3 jobs left'
has err ': three$'
timeout 10 "$duectl" --version >/dev/full
[ $? = 3 ] || fail "status of --version with a full disk"

# Closed: the input does not become the output.
timeout 10 "$duectl" run s.due >&- 2>err
[ $? = 3 ] || fail "status with standard output closed"
has err '^duectl: standard output: Bad file descriptor$'
printf '0s one\n' >s.due
timeout 10 "$duectl" run s.due >out 2>&-
[ $? = 0 ] || fail "status with standard error closed"
echo one | same out

# Slowly read output comes whole, and waiting for its reader does not delay the reading.
i=0
while [ $i -lt 3000 ]; do
    echo "0s line $i of many that fill the pipe between the two of us, and then some more"
    i=$((i + 1))
done >s.due
timeout 10 "$duectl" run s.due | { sleep 0.3; cat; } >out
sed 's/^0s //' s.due | same out
finish
