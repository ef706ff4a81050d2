# The adapters of event loops: loop_checks.c with each library that is here.
if(DUE_SANITIZE)
    return()
endif()

# due_loop_test(NAME MODULE): of the library that pkg-config calls MODULE, or of its name; with
# what else the tests share.
function(due_loop_test name target)
    if(NOT TARGET ${target})
        message(STATUS "${name} is not there: the test of its adapter is left out")
        return()
    endif()
    add_executable(loop_${name} loops/loop_checks.c loops/loop_${name}.c)
    due_checks(loop_${name})
    target_include_directories(loop_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(loop_${name} PRIVATE due_static ${target})
    if(TARGET due_sqlite_static)
        target_link_libraries(loop_${name} PRIVATE due_sqlite_static ${SQLITE3_LIBRARIES})
        target_compile_definitions(loop_${name} PRIVATE DUE_HAVE_SQLITE=1
            DUE_TEST_FILE="${CMAKE_CURRENT_BINARY_DIR}/loop_${name}.db")
    endif()
    add_test(NAME loop_${name} COMMAND loop_${name})
    set_tests_properties(loop_${name} PROPERTIES LABELS consumer TIMEOUT 120)
endfunction()

foreach(name libuv libevent libev glib systemd)
    due_loop_test(${name} due_loop_${name})
endforeach()
