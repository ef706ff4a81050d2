# The manual pages: in man/ of the build, made by tools/manpages of the headers, docs/duectl.md and
# what duectl says of itself.  Where Python is missing there are none, and where duectl is not
# built, or cannot be run here, none of it.
find_program(DUE_PYTHON NAMES python3)
mark_as_advanced(DUE_PYTHON)
if(NOT DUE_PYTHON)
    message(STATUS "python3 is not there: the manual pages are left out")
    return()
endif()

set(man_command)
set(man_program)
if(TARGET duectl AND NOT CMAKE_CROSSCOMPILING)
    set(man_command --duectl $<TARGET_FILE:duectl>)
    set(man_program duectl)
endif()
file(GLOB man_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/due/*.h")
add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/man/made"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${PROJECT_BINARY_DIR}/man"
    COMMAND "${PROJECT_SOURCE_DIR}/tools/manpages" --root "${PROJECT_SOURCE_DIR}" ${man_command}
        --out "${PROJECT_BINARY_DIR}/man" $<$<BOOL:${DUE_PACKAGES}>:--gzip>
    COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/man/made"
    DEPENDS ${man_headers} "${PROJECT_SOURCE_DIR}/tools/manpages"
        "${PROJECT_SOURCE_DIR}/docs/control.md" "${PROJECT_SOURCE_DIR}/docs/duectl.md"
        "${PROJECT_SOURCE_DIR}/docs/schedules.md" "${PROJECT_SOURCE_DIR}/docs/watching.md"
        "${PROJECT_SOURCE_DIR}/examples/hello.c"
        ${man_program}
    COMMENT "Making the manual pages" VERBATIM COMMAND_EXPAND_LISTS)
add_custom_target(due_manpages ALL DEPENDS "${PROJECT_BINARY_DIR}/man/made")
