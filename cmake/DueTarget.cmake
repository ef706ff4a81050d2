# due_target(TARGET): the language, warnings and sanitizers of the project, for one target of it.
function(due_target target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 11
        C_STANDARD_REQUIRED ON
        C_EXTENSIONS ON
        C_VISIBILITY_PRESET hidden)
    if(DUE_OPEN_INSIDE)
        set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET default)
        target_compile_options(${target} PRIVATE -fno-semantic-interposition)
        # Or the first call of each function is looked up where it is made, on 16 KiB of stack.
        target_link_options(${target} PRIVATE LINKER:-z,now)
    endif()
    target_compile_definitions(${target} PRIVATE ${DUE_TIME_64})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    if(DUE_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(DUE_SANITIZE)
        target_compile_options(${target} PRIVATE
            -fsanitize=${DUE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=${DUE_SANITIZE})
    endif()
endfunction()

# due_shows(TARGET MAP): a shared library shows what is in the map, needs nothing that it does not
# name, and has the project's version.
function(due_shows target map)
    set_target_properties(${target} PROPERTIES
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}
        LINK_DEPENDS "${map}")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    if(NOT DUE_SANITIZE)
        target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
endfunction()

# due_checks(TARGET): for programs that check something; their asserts stay in every build.  There
# are hundreds, so they are linked by the quickest linker that is there.
function(due_checks target)
    due_target(${target})
    target_compile_options(${target} PRIVATE -UNDEBUG)
    if(DUE_QUICK_LINKER)
        target_link_options(${target} PRIVATE ${DUE_QUICK_LINKER})
    endif()
endfunction()

# due_programs(OUT FILE...): those of the files that have a main().
function(due_programs out)
    set(found)
    foreach(file IN LISTS ARGN)
        file(STRINGS "${file}" main REGEX "^int main\\(" LIMIT_COUNT 1)
        if(main)
            list(APPEND found "${file}")
        endif()
    endforeach()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()
