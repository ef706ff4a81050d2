# What `cmake --install` puts where: headers, libraries, due.pc and those of the stores,
# find_package(due), duectl.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/due")
set(generated "${PROJECT_BINARY_DIR}/package")

set(stores)
foreach(store redis sqlite)
    string(TOUPPER "${store}" upper)
    if(DUE_${upper}_BUILT)
        list(APPEND stores ${store})
    endif()
endforeach()

set(headers base.h due.h job.h metrics.h options.h signals.h store.h workers.h)
foreach(store IN LISTS stores)
    list(APPEND headers ${store}.h)
endforeach()
list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/due/")
install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/due")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION
    "${CMAKE_INSTALL_DOCDIR}")

set(libraries)
if(DUE_SHARED)
    list(APPEND libraries due)
    foreach(store IN LISTS stores)
        list(APPEND libraries due_${store})
    endforeach()
endif()
if(DUE_STATIC)
    list(APPEND libraries due_static)
    foreach(store IN LISTS stores)
        list(APPEND libraries due_${store}_static)
    endforeach()
endif()
install(TARGETS ${libraries} EXPORT due
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT due NAMESPACE due:: FILE dueTargets.cmake DESTINATION "${package_dir}")

if(TARGET duectl)
    install(TARGETS duectl DESTINATION "${CMAKE_INSTALL_BINDIR}")
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
set(pcs due)
foreach(store IN LISTS stores)
    list(APPEND pcs due-${store})
endforeach()
foreach(pc IN LISTS pcs)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${pc}.pc.in" "${generated}/${pc}.pc" @ONLY)
    install(FILES "${generated}/${pc}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
