/* kernel_call.h - a call of the kernel, for tests that have a syscall() of their own: also where
 * the C library is linked statically, and its own can not be found. */
#ifndef LAB_KERNEL_CALL_H
#define LAB_KERNEL_CALL_H

#include <errno.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <dlfcn.h> /* with _GNU_SOURCE */
#include <string.h>
#endif

/* As syscall() answers. */
static inline long kernel_call(long number, const long a[6])
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long rc;

    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    long rc = x0;
#else
    void *found = dlsym(RTLD_NEXT, "syscall");
    long (*real)(long, ...);

    memcpy(&real, &found, sizeof real);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (rc > -4096 && rc < 0) {
        errno = (int)-rc;
        return -1;
    }
    return rc;
#endif
}

#endif
