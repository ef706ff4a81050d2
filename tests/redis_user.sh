#!/bin/sh
# redis_user.sh SOURCE [BUILD] - the user in docs/redis-layout.md is the one that the tests are.
#
# store_redis and redis_open.needs_no_more_than_the_documented_permissions run as the user of
# redis_user.h; the page has `config|get` besides, which one may leave out.
set -u

cd "$1" || exit 1
page=$(sed -n '/^ACL SETUSER due/,/^```/p' docs/redis-layout.md | grep -o '+[a-z|]*' |
    grep -v '^+config|get$' | sort)
header=$(grep -o '"+[a-z|]*"' tests/redis_user.h | tr -d '"' | sort)

if [ -z "$page" ] || [ "$page" != "$header" ]; then
    echo "docs/redis-layout.md:"
    echo "$page"
    echo "tests/redis_user.h:"
    echo "$header"
    exit 1
fi
echo "$(echo "$page" | wc -l) commands"
