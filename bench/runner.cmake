# The runner beside the programs it runs: a link to it in the build directory, its tests, and, with
# DUE_INSTALL_BENCH, its place in an installation.  Included by CMakeLists.txt after the programs.
option(DUE_INSTALL_BENCH "Install the benchmarks, for `duectl bench`" OFF)

# `duectl bench` looks for it beside itself.
file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}/run" "${CMAKE_CURRENT_BINARY_DIR}/run" SYMBOLIC)

find_program(PYTHON NAMES python3)
if(PYTHON)
    add_test(NAME bench_runner COMMAND "${PYTHON}" -B -m unittest discover
        -s "${CMAKE_CURRENT_SOURCE_DIR}/tests_runner" -p "test_*.py")
    set_tests_properties(bench_runner PROPERTIES LABELS bench TIMEOUT 120)

    # Every workload once, with whatever is built.  Foreign rivals take part if they are.
    add_test(NAME bench_run_tiny COMMAND "${PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/run"
        --build "${PROJECT_BINARY_DIR}" --tiny --no-build)
    set_tests_properties(bench_run_tiny PROPERTIES LABELS bench TIMEOUT 240)

    # Those of shared queues: what is compared with, and libdue.
    foreach(rival asynq bullmq)
        add_test(NAME bench_tiny_${rival} COMMAND
            sh "${CMAKE_CURRENT_SOURCE_DIR}/shared/tiny.sh"
            "${CMAKE_CURRENT_BINARY_DIR}/rivals/${rival}/bench_${rival}")
        set_tests_properties(bench_tiny_${rival} PROPERTIES
            LABELS bench TIMEOUT 300 SKIP_RETURN_CODE 77)
    endforeach()
    if(TARGET bench_shared_cell)
        add_test(NAME bench_shared_cell COMMAND
            sh "${CMAKE_CURRENT_SOURCE_DIR}/shared/tiny.sh" $<TARGET_FILE:bench_shared_cell>)
        set_tests_properties(bench_shared_cell PROPERTIES
            LABELS bench TIMEOUT 120 SKIP_RETURN_CODE 77)
    endif()

    foreach(language java go rust)
        if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/rivals/tiny.sh")
            add_test(NAME bench_tiny_${language} COMMAND
                sh "${CMAKE_CURRENT_SOURCE_DIR}/rivals/tiny.sh"
                "${CMAKE_CURRENT_BINARY_DIR}/rivals/${language}/bench_${language}")
            set_tests_properties(bench_tiny_${language} PROPERTIES
                LABELS bench TIMEOUT 120 SKIP_RETURN_CODE 77)
        endif()
    endforeach()
endif()

if(DUE_INSTALL AND DUE_INSTALL_BENCH)
    set(bench_dir "${CMAKE_INSTALL_LIBEXECDIR}/libdue/bench")
    install(PROGRAMS run compare DESTINATION "${bench_dir}")
    install(DIRECTORY runner DESTINATION "${bench_dir}" FILES_MATCHING PATTERN "*.py")
    foreach(program bench_cell bench_loops bench_shared_cell)
        if(TARGET ${program})
            install(TARGETS ${program} RUNTIME DESTINATION "${bench_dir}")
        endif()
    endforeach()
endif()
