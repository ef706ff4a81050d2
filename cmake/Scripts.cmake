# cmake -DFROM=DIR -DTO=FILE -P Scripts.cmake: the scripts of DIR as a file of C.
#
# Each is put together of the parts it needs, without comments and indentation, and stands there
# with the SHA-1 by which a server knows it.
# Four are there in two kinds, for the orders in which a queue may be.
foreach(by time rank)
    set(put_by_${by}
        by_${by}_keys head keys wake topic bytes by_${by} groups group_put room tail status put)
    set(work_by_${by}
        by_${by}_keys head keys wake topic bytes by_${by} claim_by_${by} groups group_work room tail
        work)
    set(edit_by_${by}
        by_${by}_keys head keys wake topic bytes by_${by} groups group_edit room tail status edit)
    set(aside_by_${by} by_${by}_keys fence wake topic bytes by_${by} groups room aside)
endforeach()
foreach(script put work edit aside)
    set(${script} ${${script}_by_time})
endforeach()
set(beat by_time_keys fence keys wake room beat)
set(leave by_time_keys fence wake room leave)
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

set(code "/* Made of the scripts in persist/redis/scripts by cmake/Scripts.cmake. */\n")
string(APPEND code "#include \"redis/share/scripts.h\"\n")
foreach(script put work edit aside put_by_rank work_by_rank edit_by_rank aside_by_rank
        join leave beat census page key evict
        fold clear own under_way index heads share ranks)
    set(text "\n")
    set(by_rank false)
    if(script MATCHES "_by_rank$")
        set(by_rank true)
    endif()
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
    string(APPEND code "\nstatic const char ${script}_text[] = {\n${bytes}0};\n"
        "const struct due__script due__script_${script} = { \"${script}\", ${script}_text,"
        " ${length}, \"${sha}\", ${by_rank} };\n")
endforeach()
file(WRITE "${TO}" "${code}")
