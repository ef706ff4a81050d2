# What libdue asks of a processor and of its C library (docs/platforms.md).
include(CheckCSourceCompiles)

# Words of 64 bits change in one step, without a lock: among processors of 32 bits that is from the
# Pentium (i586) and ARMv7-A on.
check_c_source_compiles("
    #if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
    #error \"not 64 bits in one step\"
    #endif
    int main(void) { return 0; }" DUE_WORDS_IN_ONE_STEP)
if(NOT DUE_WORDS_IN_ONE_STEP)
    message(FATAL_ERROR "libdue needs a processor, and a compiler, that change 64 bits in one step:"
        " one of 64 bits, or at least ARMv7-A (-march=armv7-a), or with gcc at least i586"
        " (-march=i586).  See docs/platforms.md")
endif()

# Times of 64 bits: of 32-bit programs glibc wants to be asked for them.
set(times "
    #include <time.h>
    _Static_assert(sizeof(time_t) >= 8, \"times of 64 bits\");
    int main(void) { return 0; }")
set(DUE_TIME_64)
check_c_source_compiles("${times}" DUE_TIMES_ARE_64)
if(NOT DUE_TIMES_ARE_64)
    set(DUE_TIME_64 _TIME_BITS=64 _FILE_OFFSET_BITS=64)
    set(CMAKE_REQUIRED_DEFINITIONS -D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64)
    check_c_source_compiles("${times}" DUE_TIMES_CAN_BE_64)
    unset(CMAKE_REQUIRED_DEFINITIONS)
    if(NOT DUE_TIMES_CAN_BE_64)
        message(FATAL_ERROR "libdue needs a C library with times of 64 bits: glibc 2.34 or "
            "musl 1.2 at least; see docs/platforms.md")
    endif()
endif()
