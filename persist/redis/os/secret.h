/* secret.h - memory for passwords: in pages of its own that a core dump leaves out, and that
 * are wiped before they are given back.
 *
 * What looks at a password does it byte by byte, with the functions below: those of the C library
 * leave up to 64 bytes in vector registers, and what saves these on a stack, such as the dynamic
 * linker at a function's first call, leaves them to a core dump.
 */
#ifndef DUE__REDIS_SECRET_H
#define DUE__REDIS_SECRET_H

#include <stddef.h>

void *due__secret_new(size_t bytes); /* zeroed; NULL: no memory */
void due__secret_free(void *secret); /* NULL is allowed */

/* memcpy(), strnlen() and memchr(), byte by byte. */
void due__secret_copy(void *to, const void *from, size_t n);
size_t due__secret_length(const char *text, size_t max);
const char *due__secret_find(const char *bytes, char c, size_t n); /* NULL: not there */

#endif
