# cmake -DFROM=DIR -DTO=FILE -P Scripts.cmake: the scripts of DIR as a file of C.
#
# Each is put together of the parts it needs, without comments and indentation, and stands there
# with the SHA-1 by which a server knows it.
set(put head keys wake topic bytes groups group_put room tail status put)
set(work head keys wake topic bytes groups group_work room tail work)
set(edit head keys wake topic bytes groups group_edit room tail status edit)
set(beat fence keys wake room beat)
set(leave fence wake room leave)
set(join join)
set(census census)
set(page bytes page)
set(key key)
set(evict evict)
set(aside fence wake topic bytes groups room aside)

set(code "/* Made of the scripts in persist/redis/scripts by cmake/Scripts.cmake. */\n")
string(APPEND code "#include \"redis/share/scripts.h\"\n")
foreach(script put work edit join leave beat census page key evict aside)
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
    string(APPEND code "\nstatic const char ${script}_text[] = {\n${bytes}0};\n"
        "const struct due__script due__script_${script} = { \"${script}\", ${script}_text,"
        " ${length}, \"${sha}\" };\n")
endforeach()
file(WRITE "${TO}" "${code}")
