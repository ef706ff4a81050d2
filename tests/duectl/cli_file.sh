#!/bin/sh
# A run whose jobs are in a file: whatever kills it, every line that it has accepted comes out.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

cat >s.due <<'END'
200ms second
0s first
@2001-01-01T00:00:00Z past
1h never
END
echo '0s x' >one
"$duectl" run --store probe.db one >probe 2>&1 || {
    grep -q 'built without SQLite' probe && exit 77
    fail "a run with a file"
}

# Accepted, and killed before it is due.
"$duectl" run --store jobs.db --ack-lines s.due >first 2>acks &
job=$!
pids=$job
tries=0
until [ "$(grep -c '^ack ' acks)" = 4 ]; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || { fail "no lines were acknowledged"; break; }
    sleep 0.01
done
kill -9 $job
wait $job 2>/dev/null
pids=

# The next one has the rest, by either name, and says that it has the file.
"$duectl" run --store sqlite:jobs.db </dev/null >second 2>/dev/null &
job=$!
pids=$job
tries=0
until [ "$(sort -u first second | wc -l)" = 3 ]; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || { fail "not all lines came"; break; }
    sleep 0.01
done
sort -u first second >came
same came <<'END'
first
past
second
END
has jobs.db-owner "^pid $job on "
kill $job
wait $job
pids=

# What is in it, whether it is sound, and who has it.
run 0 restore jobs.db
has out '^jobs    1, 0 of them dead; 0 damaged records set aside$'
run 0 restore --list jobs.db
has out '^ff[0-9a-f]*0000  .*Z    0  0  0  5  -  never$'
run 0 verify jobs.db
has out '^whole$'
run 0 doctor jobs.db
has out '^owner   nobody$'
has out '^queue   duectl; its last opening has the number 2$'
sqlite=$(command -v sqlite3) && {
    "$sqlite" jobs.db "update job set record = x'00'; insert into key values (x'61', x'62', null)"
    run 1 verify jobs.db
    has out '^wrong   1 jobs whose record is damaged$'
    has out '^wrong   1 keys of jobs that are not there$'
}
run 3 restore none.db
run 3 verify none.db

# Whoever only hands jobs out takes the path alone, as all others do.
run 0 push work.db one
start work --exec cat work.db
line x
kill -INT "$pid"
ended 130
run 0 ls work.db
same "$dir/out" </dev/null

# Files that are none of ours stay as they are.
echo 'dear diary' >diary
run 3 run --store diary one
has err 'is no SQLite database'
echo 'dear diary' | same diary
run 3 run --store none/jobs.db one
has err 'does its folder exist'
finish
