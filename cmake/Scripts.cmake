# cmake -DFROM=DIR -DTO=FILE -P Scripts.cmake: the scripts of DIR as a file of C.
#
# Each is put together of the parts it needs, without comments and indentation, and stands there
# with the SHA-1 by which a server knows it.  The server runs all of a script whenever it is called,
# and makes each of its functions anew; so what small exchanges do not need is not in theirs, the
# plain ones, or stands behind a condition.
#
# Six are there in two kinds, for the orders in which a queue may be.
set(rank_also bytes) # claims compare ids
set(work_parts tail work work_ends work_claim wake room work_answer)
foreach(by time rank)
    set(put_plain_by_${by} head status put_needs wake room topic by_${by} tail put)
    set(put_by_${by}
        head status put_needs keys wake room topic bytes by_${by} groups group_put tail put)
    set(work_plain_by_${by}
        head work_plain topic ${${by}_also} by_${by} claim_by_${by} ${work_parts})
    set(work_by_${by}
        head keys topic bytes by_${by} claim_by_${by} groups group_work revoked
        work_tied
        ${work_parts})
    set(edit_by_${by}
        head status wakes keys wake topic bytes by_${by} groups group_edit revoked room tail
        edit)
    set(aside_by_${by} fence wakes wake topic bytes by_${by} groups revoked room aside)
endforeach()
set(kinds put_plain put work_plain work edit aside)
set(beat fence wakes keys wake room beat)
set(leave fence wakes wake room leave)
set(join join)
set(census census)
set(page bytes page)
set(key key)
set(evict evict)
set(fold ours fold)
set(clear ours clear)
set(own ours own)
set(under_way ours under_way)
set(index ours index)
set(heads ours heads)
set(share ours share)
set(ranks ours ranks)

# The keys behind those of the topics, for scripts that begin as head.lua or fence.lua; g: stands
# for g:TOPIC of each.
set(put_behind g: jg gh g k kx jk)
foreach(script work edit aside)
    set(${script}_behind x ${put_behind})
endforeach()
set(work_plain_behind x jg)
set(beat_behind p owner k kx jk)
set(leave_behind p owner)

set(all join leave beat census page key evict
    fold clear own under_way index heads share ranks)
foreach(script IN LISTS kinds)
    set(${script} ${${script}_by_time})
    set(${script}_by_rank_behind o: ${${script}_behind})
    list(APPEND all ${script} ${script}_by_rank)
endforeach()

set(code "/* Made of the scripts in persist/redis/scripts by cmake/Scripts.cmake. */\n")
string(APPEND code "#include \"redis/share/scripts.h\"\n")
foreach(script IN LISTS all)
    set(text "\n")
    foreach(part IN LISTS ${script})
        file(READ "${FROM}/${part}.lua" lines)
        string(APPEND text "${lines}")
    endforeach()
    string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    string(SHA1 sha "${text}")
    string(LENGTH "${text}" length)
    string(HEX "${text}" bytes)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REPEAT "." 80 line)
    string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
    set(behind "")
    foreach(key IN LISTS ${script}_behind)
        string(APPEND behind "\"${key}\", ")
    endforeach()
    string(APPEND code "\nstatic const char ${script}_text[] = {\n${bytes}0};\n"
        "const struct due__script due__script_${script} = { \"${script}\", ${script}_text,"
        " ${length}, \"${sha}\", { ${behind}NULL } };\n")
endforeach()
file(WRITE "${TO}" "${code}")
