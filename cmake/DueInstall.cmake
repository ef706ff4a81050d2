# What `cmake --install` puts where: headers, libraries, due.pc and its kin,
# find_package(due), duectl, manual pages and documents.  Components are named as the packages of
# Debian that tools/packages makes of them; what names none is the developer's.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME libdue-dev)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/due")
set(generated "${PROJECT_BINARY_DIR}/package")

set(stores)
foreach(store redis sqlite)
    string(TOUPPER "${store}" upper)
    if(DUE_${upper}_BUILT)
        list(APPEND stores ${store})
    endif()
endforeach()

set(headers base.h control.h cron.h due.h job.h loop.h loop_glib.h loop_libev.h loop_libevent.h
    loop_libuv.h loop_systemd.h figures.h metrics.h options.h signals.h store.h store_shared.h
    workers.h)
foreach(store IN LISTS stores)
    list(APPEND headers ${store}.h)
endforeach()
list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/due/")
install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/due")
install(FILES "${PROJECT_SOURCE_DIR}/include/due/due.hpp" DESTINATION
    "${CMAKE_INSTALL_INCLUDEDIR}/due")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/due/cpp" DESTINATION
    "${CMAKE_INSTALL_INCLUDEDIR}/due" FILES_MATCHING PATTERN "*.hpp")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION
    "${CMAKE_INSTALL_DOCDIR}")
foreach(page README.md CHANGELOG.md)
    install(FILES "${PROJECT_SOURCE_DIR}/${page}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" DESTINATION
    "${CMAKE_INSTALL_DOCDIR}" PATTERN "CMakeLists.txt" EXCLUDE)

set(libraries)
if(DUE_SHARED)
    list(APPEND libraries due due_control)
    foreach(store IN LISTS stores)
        list(APPEND libraries due_${store})
    endforeach()
endif()
if(DUE_STATIC)
    list(APPEND libraries due_static due_control_static)
    foreach(store IN LISTS stores)
        list(APPEND libraries due_${store}_static)
    endforeach()
endif()
foreach(library IN LISTS libraries)
    get_target_property(name ${library} OUTPUT_NAME)
    install(TARGETS ${library} EXPORT due
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            COMPONENT lib${name}${PROJECT_VERSION_MAJOR} NAMELINK_COMPONENT libdue-dev
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libdue-dev
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endforeach()
install(EXPORT due NAMESPACE due:: FILE dueTargets.cmake DESTINATION "${package_dir}")

if(TARGET due_manpages)
    set(man "${PROJECT_BINARY_DIR}/man")
    install(DIRECTORY "${man}/man3" "${man}/man7" DESTINATION "${CMAKE_INSTALL_MANDIR}")
    if(man_program)
        install(DIRECTORY "${man}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT duectl)
    endif()
endif()

if(TARGET duectl)
    install(TARGETS duectl DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT duectl)
endif()
if(TARGET duectl_completions)
    foreach(to bash:bash-completion/completions zsh:zsh/site-functions
            fish:fish/vendor_completions.d)
        string(REGEX REPLACE ":.*" "" shell "${to}")
        string(REGEX REPLACE ".*:" "" directory "${to}")
        install(DIRECTORY "${PROJECT_BINARY_DIR}/completions/${shell}/"
            DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/${directory}" OPTIONAL)
    endforeach()
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/dueConfig.cmake.in"
    "${generated}/dueConfig.cmake" INSTALL_DESTINATION "${package_dir}"
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${generated}/dueConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${generated}/dueConfig.cmake" "${generated}/dueConfigVersion.cmake"
    DESTINATION "${package_dir}")

# A .pc file finds its prefix from where it lies, so that an installed tree may be moved.
set(pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
foreach(dir LIBDIR INCLUDEDIR)
    file(RELATIVE_PATH pc_${dir} "${pc_dir}" "${CMAKE_INSTALL_FULL_${dir}}")
    string(REGEX REPLACE "/$" "" pc_${dir} "${pc_${dir}}")
endforeach()
set(pcs due due-control)
foreach(store IN LISTS stores)
    list(APPEND pcs due-${store})
endforeach()
foreach(pc IN LISTS pcs)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${pc}.pc.in" "${generated}/${pc}.pc" @ONLY)
    install(FILES "${generated}/${pc}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
