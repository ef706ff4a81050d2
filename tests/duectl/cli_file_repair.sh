#!/bin/sh
# What is wrong in a file is found, and mended by who owns it.
. "$(dirname "$0")/cli_lib"
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
command -v sqlite3 >none || { echo "no sqlite3"; exit 77; }
"$duectl" import a.db <"$all" >none 2>probe || {
    grep -q 'built without SQLite' probe && exit 77
    fail "an import into a file"
}

run 0 verify a.db
run 0 verify --repair a.db
has out '^whole$'
run 0 export a.db
LC_ALL=C sort out >got
LC_ALL=C sort "$all" | same got

# A record, a topic that is gone, one that is another's, the text's place, keys.
cp a.db b.db
sqlite3 b.db "
    update job set record = x'00' where id = x'ff00000000010000000000000001';
    delete from topic where name = x'78';
    update job set topic = (select number from topic where name = x'')
        where id = x'ff00000000010000000000000006';
    update job set front = front + 1 where id = x'ff00000000010000000000000002';
    insert into key values (x'61', x'62', null);
    insert into key values (x'63', x'ff00000000010000000000000002', null);"
run 1 verify b.db
cp out found
cat >wanted.found <<'END'
wrong   1 jobs whose record is damaged
wrong   2 jobs of a topic that is not there, or not theirs
wrong   1 jobs whose text does not begin where it is said to
wrong   1 keys of jobs that are not there
wrong   1 keys of jobs that do not name them
END
{ cat wanted.found; echo 'not whole: --repair sets right what it can'; } | same found
run 0 verify --repair b.db
{ cat wanted.found; echo '6 wrong, 6 repaired'; } | same out
run 0 verify b.db
has out '^whole$'
run 0 export b.db
LC_ALL=C sort out >got
sed 2d "$all" | sed 's/"jobs":8/"jobs":7/' | LC_ALL=C sort | same got
[ "$(sqlite3 b.db 'select count(*) from aside')" = 1 ] || fail "nothing was set aside"

# An index that does not have what the table has.
cp a.db c.db
swap() # WHAT WITH
{
    sqlite3 c.db "pragma writable_schema = 1;
        update sqlite_schema set sql = replace(sql, '$1', '$2') where name = 'job_dead'"
}
swap 'WHERE died IS NOT NULL' 'WHERE died IS NULL'
sqlite3 c.db 'reindex job_dead'
swap 'WHERE died IS NULL' 'WHERE died IS NOT NULL'
run 1 verify c.db
has out '^wrong   .* job_dead'
run 0 verify --repair c.db
has out '^made anew: the indexes$'
run 0 verify c.db
run 0 export c.db
LC_ALL=C sort out >got
LC_ALL=C sort "$all" | same got

# Only by its owner.
echo '1h later' >s.due
"$duectl" run --store d.db --ack-lines s.due >none 2>acks &
pids=$!
tries=0
until grep -sq '^ack 1' acks; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || { fail "no line was acknowledged"; break; }
    sleep 0.01
done
run 0 verify d.db
run 3 verify --repair d.db
has err '^duectl: not repaired: .* is owned by pid'
kill $pids
wait $pids
pids=
run 3 verify --repair none.db
[ ! -e none.db ] || fail "a file was made"
finish
