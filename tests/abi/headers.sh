#!/bin/sh
# headers.sh SOURCE OUT AGE - the public headers as another version had them, in OUT/due.
#
#   older    the structs that a caller fills in end earlier
#   newer    they go on, with a field "beyond"; and of what the library fills in, some of the
#            reserved room is a field "newer"
#   same     as they are
set -eu
export LC_ALL=C

mkdir -p "$2/due"
for header in "$1"/include/due/*.h; do
    awk -v age="$3" '
        BEGIN {
            first["due_spec"] = "more"
            first["due_extra"] = "every_ns"
            first["due_options"] = "retry"
            first["due_workers_options"] = "name"
            first["due_redis_options"] = "batch_changes"
        }
        /^typedef struct due_[a-z_]* \{/ { inside = $3 in first ? $3 : "" }
        inside != "" && $0 == "} " inside ";" {
            if (age == "newer")
                print "    uint64_t beyond[3];"
            cut = 0
            done++
            inside = ""
        }
        inside != "" && age == "older" && $0 ~ "[ *]" first[inside] ";" { cut = 1 }
        cut { next }
        age == "newer" && match($0, /uint(32|64)_t reserved\[[0-9]+\];/) {
            split(substr($0, RSTART, RLENGTH), part, /[][ ]/)
            printf "    %s newer;\n", part[1]
            if (part[3] > 1)
                printf "    %s reserved[%d];\n", part[1], part[3] - 1
            next
        }
        { print }
    ' "$header" >"$2/due/${header##*/}"
done
if [ "$3" != same ] && diff -rq "$1/include/due" "$2/due" >/dev/null; then
    echo "headers.sh: nothing was changed" >&2
    exit 1
fi
