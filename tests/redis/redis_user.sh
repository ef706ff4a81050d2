#!/bin/sh
# redis_user.sh SOURCE [BUILD] - the user in docs/redis-layout.md is the one that the tests are, and
# the library and the command say nothing that tests/lab/redis/redis_user.h does not name.
#
# store_redis and redis_open.needs_no_more_than_the_documented_permissions run as the user of
# redis_user.h; the page has `config|get` besides, which one may leave out.  What is named there is
# what redis_oldest.server_has_all_that_is_said asks a server about.
set -u

cd "$1" || exit 1
page=$(sed -n '/^ACL SETUSER due/,/^```/p' docs/redis-layout.md | grep -o '+[a-z|]*' |
    grep -v '^+config|get$' | sort)
header=$(grep -o '"+[a-z|]*"' tests/lab/redis/redis_user.h | tr -d '"' | sort)

if [ -z "$page" ] || [ "$page" != "$header" ]; then
    echo "docs/redis-layout.md:"
    echo "$page"
    echo "tests/lab/redis/redis_user.h:"
    echo "$header"
    exit 1
fi

# Every word of capitals in quotes, of C or of a script, that is no error which a server answers;
# CHANGE and FILE stand in what the command prints, TERM and TZ are of the environment, UTC is a
# zone.  Files of the command that ask SQLite, or the server of another library, or speak HTTP, are
# not looked at.
errors=$(grep -oE '"[A-Z]{2,}"' persist/redis/resp/reply.c)
said=$(grep -ohE "[\"'][A-Z]{2,}[\"']" $(find persist/redis tools/duectl -name '*.c' |
    grep -vE '/(web|foreign)/' |
    xargs grep -LE '<sqlite3.h>|inspect/file.h') |
    tr "'" '"' |
    grep -vxF "$errors" | grep -vxE '"(CHANGE|FILE|TERM|TZ|UTC)"' | tr -d '"' | sort -u)
named=$(grep -ohE '"[^"]*"' tests/lab/redis/redis_user.h | tr -d '"+' |
    tr '| a-z' '\n\nA-Z' | sort -u)
unnamed=$(printf '%s\n' "$said" | grep -vxF "$named")
# A script may do what its user may: what scripts say needs permission.
scripts=$(grep -ohE "call\('[A-Z]+'" persist/redis/scripts/*.lua | grep -oE '[A-Z]+' | sort -u)
refused=$(printf '%s\n' "$scripts" | tr A-Z a-z | sed 's/^/+/' | grep -vxF "$header")

if [ -z "$said" ] || [ -n "$unnamed" ]; then
    echo "said to a server, and not in tests/lab/redis/redis_user.h:"
    echo "$unnamed"
    exit 1
fi
if [ -z "$scripts" ] || [ -n "$refused" ]; then
    echo "said by scripts, and not permitted in tests/lab/redis/redis_user.h:"
    echo "$refused"
    exit 1
fi
echo "$(echo "$page" | wc -l) commands, $(echo "$said" | wc -l) words that are said"
