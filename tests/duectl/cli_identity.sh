#!/bin/sh
# Thirty thousand jobs of every kind go through each pair of stores, and come out as they went
# in.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# Lines as an export writes them: times from 1970 to never, bytes of all kinds, and what only some
# have.
awk -v seed=7 -v jobs=30000 -v kept=1000 'function below(n) { return int(rand() * n) }
function hex(n, digits) { return sprintf("%0" digits "x", n) }
function base64(groups,  text, i) {
    for (i = 0; i < 4 * groups; i++)
        text = text substr(digits, 1 + below(64), 1)
    return "{\"base64\":\"" text "\"}"
}
function text(words,  i, all) {
    for (i = 0; i < words; i++)
        all = all word[1 + below(words_known)]
    return "\"" all "\""
}
function bytes() { return below(2) ? text(1 + below(40)) : base64(8 + below(60)) }
function when() {
    if (below(20) == 0)
        return "\"never\""
    return sprintf("\"%04d-%02d-%02dT%02d:%02d:%02d.%09dZ\"", 1970 + below(291), 1 + below(12), \
        1 + below(28), below(24), below(60), below(60), below(1000) * 1000000 + below(1000000))
}
function policy(kind) {
    kind = below(3)
    if (kind == 0)
        return "{\"kind\":\"fixed\",\"delay_ns\":" below(1000000000) + 1 "}"
    if (kind == 1)
        return "{\"kind\":\"exponential\",\"attempts_max\":" 1 + below(90) \
            ",\"delay_ns\":1000,\"cap_ns\":" 1000 + below(1000000000) "}"
    return "{\"kind\":\"ladder\",\"rungs_ns\":[" 1 + below(9) "," below(100000) \
        ",9223372036854775807]}"
}
BEGIN {
    srand(seed)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    words_known = split("tea cup  \\n \\t \\\" \\\\ ö € 𝄞 {} []   , : 0 é/x", word, " ")
    print "{\"due_export\":1}"
    for (i = 1; i <= jobs; i++) {
        priority = below(3) ? 0 : below(256)
        line = "{\"id\":\"" hex(255 - priority, 2) hex(1 + below(900), 12) hex(i, 14) "0000\""
        line = line ",\"topic\":" (below(3) ? "\"\"" : "\"t" below(30) "/ö\"")
        line = line ",\"deadline\":" when()
        if (below(3) == 0) line = line ",\"until\":\"2262-01-01T00:00:00.000000000Z\""
        if (priority) line = line ",\"priority\":" priority
        if (below(3) == 0)
            line = line ",\"attempts\":" 1 + below(1000000) ",\"failures\":" 1 + below(1000)
        if (below(5) == 0) line = line ",\"headers\":" bytes()
        if (below(4) == 0) {
            line = line ",\"key\":\"" i " " below(1000) "\""
            if (below(2)) line = line ",\"keep_key_ns\":" 1 + below(1000000000)
        }
        if (below(6) == 0) line = line ",\"group\":\"g" below(50) "\""
        if (below(4) == 0) line = line ",\"retry\":" policy()
        limit = below(6)
        if (limit == 0) line = line ",\"ttl_ns\":" 1 + below(1000000000)
        if (limit == 1) line = line ",\"expires\":" when()
        if (below(8) == 0)
            line = line ",\"every_ns\":" 1 + below(1000000000) ",\"repeat\":\"after\""
        if (below(8) == 0)
            line = line ",\"dead\":{\"cause\":\"" (below(2) ? "attempts" : "expired") \
                "\",\"at\":" when() ",\"reason\":\"no " below(1000) "\"}"
        print line ",\"data\":" (below(9) ? bytes() : "\"\"") "}"
    }
    for (i = 1; i <= kept; i++)
        printf "{\"kept_for\":\"%s0000\",\"until\":\"%d-01-01T00:00:00.%06d000Z\"," \
            "\"key\":\"kept %d\"}\n", \
            "ff" hex(1 + below(900), 12) hex(jobs + i, 14), 2030 + below(200), below(1000000), i
    print "{\"jobs\":" jobs ",\"kept_keys\":" kept "}"
}' >all

# through KIND: what came last goes in, is looked at, and comes out again; sorted, since each store
# has its order.  What one opening has made shared is so behind an import and an export.
through()
{
    case $1 in
    file)
        rm -f a.db*
        store=a.db
        ;;
    *)
        redis flushall >none
        store=$url
        ;;
    esac
    [ "$1" != shared ] || run 0 push --shared "$store" </dev/null
    run 0 import "$store" <last
    has out '^put     30000 jobs, 1000 kept keys$'
    run 0 export "$store"
    [ "$1" != shared ] || [ "$(redis hget 'due:{duectl}:meta' mode)" = shared ] ||
        fail "it is not shared any more"
    LC_ALL=C sort out >sorted
    same sorted <first
    mv out last
}

# Each kind of store behind each.
LC_ALL=C sort all >first
mv all last
for kind in file file owned owned shared shared owned file shared file; do
    through $kind
done
finish
