# The packages of Debian, for cpack: one for each component of DueInstall.cmake.  tools/packages
# sets prefix and directories as Debian has them.
set(version "${PROJECT_VERSION}-1")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libdue)
set(CPACK_PACKAGE_VENDOR libdue)
set(DUE_PACKAGE_CONTACT "The libdue authors <libdue@localhost>" CACHE STRING
    "Who answers for the packages")
set(CPACK_PACKAGE_CONTACT "${DUE_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "priority delay queue for C programs")
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/src")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# due_package(NAME SECTION TEXT DEPENDS): one of them, its copyright and its changelog.
file(READ "${PROJECT_SOURCE_DIR}/LICENSE" license)
file(READ "${PROJECT_SOURCE_DIR}/NOTICE" notice)
file(WRITE "${generated}/copyright" "libdue\n\n${license}\n${notice}\n"
    "The licence that NOTICE names is in /usr/share/common-licenses/LGPL-2.1 on Debian.\n")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${generated}/changelog" "libdue (${version}) unstable; urgency=medium\n\n"
    "  * See CHANGELOG.md of libdue-dev.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
file(ARCHIVE_CREATE OUTPUT "${generated}/changelog.Debian.gz" PATHS "${generated}/changelog"
    FORMAT raw COMPRESSION GZip)
macro(due_package name section text depends)
    string(TOUPPER "${name}" upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_COMPONENT_${upper}_DESCRIPTION
        "This package has ${text}. A job goes in with a deadline, and when the deadline comes,
exactly one waiting thread gets it. With a store, jobs outlive the process.")
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
    set(docs "${CMAKE_INSTALL_DATADIR}/doc/${name}")
    install(FILES "${generated}/copyright" "${generated}/changelog.Debian.gz" DESTINATION "${docs}"
        COMPONENT ${name})
endmacro()

set(core "libdue${PROJECT_VERSION_MAJOR} (= ${version})")
set(others_needed)
set(CPACK_COMPONENTS_ALL libdue${PROJECT_VERSION_MAJOR})
due_package(libdue${PROJECT_VERSION_MAJOR} libs "the library" "")
foreach(more IN LISTS stores ITEMS control)
    set(name libdue-${more}${PROJECT_VERSION_MAJOR})
    list(APPEND CPACK_COMPONENTS_ALL ${name})
    string(APPEND others_needed ", ${name} (= ${version})")
endforeach()
due_package(libdue-control${PROJECT_VERSION_MAJOR} libs "the control socket" "${core}")
if("redis" IN_LIST stores)
    due_package(libdue-redis${PROJECT_VERSION_MAJOR} libs "the store in a Redis" "${core}")
    string(APPEND others_needed ", libhiredis-dev")
endif()
if("sqlite" IN_LIST stores)
    due_package(libdue-sqlite${PROJECT_VERSION_MAJOR} libs "the store in a file"
        "${core}, libsqlite3-0 (>= 3.37)")
    string(APPEND others_needed ", libsqlite3-dev")
endif()
list(APPEND CPACK_COMPONENTS_ALL libdue-dev)
due_package(libdue-dev libdevel "headers and static libraries" "${core}${others_needed}")
if(TARGET duectl)
    list(APPEND CPACK_COMPONENTS_ALL duectl)
    due_package(duectl utils "the command" "")
endif()
set(CPACK_OUTPUT_FILE_PREFIX "${PROJECT_BINARY_DIR}/debian")

# Who links with a library is told which package has it; installing one has ldconfig look for it.
file(WRITE "${generated}/triggers" "activate-noawait ldconfig\n")
foreach(name IN LISTS CPACK_COMPONENTS_ALL)
    if(name MATCHES "[0-9]$")
        string(TOUPPER "${name}" upper)
        set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${generated}/triggers")
    endif()
endforeach()
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
include(CPack)
