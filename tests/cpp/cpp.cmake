# The tests of due.hpp, where there is a compiler of C++: the wrappers in two versions of the
# language and under AddressSanitizer, and that no compiler here warns of anything.
include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER OR DUE_SANITIZE)
    return()
endif()
enable_language(CXX)
# With clang for C and g++ for C++ the same programs would be built as with gcc for both.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
endif()

# due_cpp_test(NAME STANDARD OPTION...)
function(due_cpp_test name standard)
    add_executable(${name} cpp/cpp_wrappers.cpp cpp/cpp_owners.cpp)
    due_checks(${name})
    set_target_properties(${name} PROPERTIES CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON
        CXX_EXTENSIONS OFF)
    target_compile_options(${name} PRIVATE -O1 ${ARGN})
    target_link_options(${name} PRIVATE ${ARGN})
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE due_static)
    if(TARGET due_sqlite_static)
        target_link_libraries(${name} PRIVATE due_sqlite_static ${SQLITE3_LIBRARIES})
        target_compile_definitions(${name} PRIVATE DUE_HAVE_SQLITE=1
            DUE_TEST_FILE="${CMAKE_CURRENT_BINARY_DIR}/${name}.db")
    endif()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS consumer TIMEOUT 120)
endfunction()

due_cpp_test(cpp_wrappers_17 17)
due_cpp_test(cpp_wrappers_20 20)
set(CMAKE_REQUIRED_FLAGS -fsanitize=address,undefined)
check_c_source_runs("int main(void) { return 0; }" DUE_ASAN_STARTS)
unset(CMAKE_REQUIRED_FLAGS)
if(DUE_ASAN_STARTS)
    due_cpp_test(cpp_wrappers_asan 17 -O0 -fsanitize=address,undefined -fno-sanitize-recover=all)
endif()
due_script(cpp_warnings consumer sh "${CMAKE_CURRENT_SOURCE_DIR}/cpp/warnings.sh"
    "${PROJECT_SOURCE_DIR}")
