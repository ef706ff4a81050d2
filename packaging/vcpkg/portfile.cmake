# An overlay port: vcpkg install libdue --overlay-ports=packaging/vcpkg.  It builds the tree in which
# it lies.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES redis DUE_REDIS sqlite DUE_SQLITE)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" dynamic shared)
if(shared)
    set(static OFF)
else()
    set(static ON)
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options}
    -DDUE_SHARED=${shared} -DDUE_STATIC=${static} -DDUE_INSTALL=ON -DDUE_TOOLS=OFF -DDUE_TESTS=OFF
    -DDUE_BENCH=OFF -DDUE_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME due CONFIG_PATH lib/cmake/due)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/man")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/NOTICE")
