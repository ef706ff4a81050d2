/* siphash.h - a hash of bytes that come from outside. */
#ifndef DUE__SIPHASH_H
#define DUE__SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t due__siphash(const uint64_t seed[2], const void *bytes, size_t len);

#endif
