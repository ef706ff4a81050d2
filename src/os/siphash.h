/* siphash.h - a hash of bytes that come from outside. */
#ifndef DUE__SIPHASH_H
#define DUE__SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* At random.  Nobody may be shown it, nor anything that it follows from. */
void due__siphash_seed(uint64_t seed[2]);

uint64_t due__siphash(const uint64_t seed[2], const void *bytes, size_t len);

#endif
