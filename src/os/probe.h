/* probe.h - places at which a tracer may look at a running program: USDT probes.
 *
 * Each is one nop, and a note in the library's file that says where it is and in which registers
 * or memory its arguments are.  perf, bpftrace, gdb and SystemTap put a breakpoint there while
 * somebody looks.  They are built where CMake finds <sys/sdt.h>; elsewhere they are nothing.
 * docs/metrics.md has the list.
 *
 * Nothing is computed for a probe: arguments are values that are at hand.
 */
#ifndef DUE__PROBE_H
#define DUE__PROBE_H

#ifdef DUE_USDT
/* clang-format off: it is named, since the one file (tools/amalgamate) goes without. */
#define DUE__SDT_HEADER <sys/sdt.h>
/* clang-format on */
#include DUE__SDT_HEADER
#ifdef __clang__ /* of the header's macros, where they are used */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define DUE__PROBE2(name, a, b)    DTRACE_PROBE2(libdue, name, (a), (b))
#define DUE__PROBE3(name, a, b, c) DTRACE_PROBE3(libdue, name, (a), (b), (c))
#else
#define DUE__PROBE2(name, a, b)    ((void)0)
#define DUE__PROBE3(name, a, b, c) ((void)0)
#endif

#endif
