#!/bin/sh
# The doctor tells a server that refuses something as what it is.
redis_options="--appendonly yes --appendfsync always --rename-command HKEYS SECRET"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# one LINE: with the renamed command, this is all that is to be changed.
one()
{
    run 1 doctor "$url"
    has out "^CHANGE  $1"
    grep '^CHANGE' out | grep -v "^CHANGE  commands \\|^CHANGE  $1" >more
    [ ! -s more ] || fail "besides: $(cat more)"
}

one 'commands     not known to it, renamed or disabled: HKEYS$'

# A replica that has no primary yet.
redis replicaof 127.0.0.1 1 >/dev/null
run 1 doctor "$url"
has out '^CHANGE  role         a replica takes no writes: name its primary$'
has out '^CHANGE  writes       refused, it is read-only (READONLY): name its primary$'
has out '^ok      permissions '
redis replicaof no one >/dev/null

# A snapshot cannot take the place of a directory.
mkdir "${REDIS_SOCKET%/*}/dump.rdb"
redis config set save '3600 1' >/dev/null
redis bgsave >/dev/null
until redis info persistence | grep -q 'rdb_last_bgsave_status:err'; do
    sleep 0.01
done
one 'writes       refused, its disk is full or fails (MISCONF): make room, see its log$'
has out '^ok      permissions '
redis config set save '' >/dev/null

redis config set maxmemory 1 >/dev/null
run 1 doctor "$url"
has out '^CHANGE  writes       refused, its memory is full (OOM): raise maxmemory$'
has out '^ok      permissions '
redis config set maxmemory 0 >/dev/null

redis config set min-replicas-to-write 1 >/dev/null
one 'writes       refused, it is loading, busy, or short of replicas: wait, and look again$'
has out '^ok      permissions '
redis config set min-replicas-to-write 0 >/dev/null

redis acl setuser default -hset >/dev/null
one 'permissions  refused on due:{duectl}:\* : HSET$'
redis acl setuser default +hset >/dev/null
one 'commands '
finish
