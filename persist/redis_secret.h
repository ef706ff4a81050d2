/* redis_secret.h - memory for passwords: in pages of its own that a core dump leaves out, and that
 * are wiped before they are given back.
 */
#ifndef DUE__REDIS_SECRET_H
#define DUE__REDIS_SECRET_H

#include <stddef.h>

void *due__secret_new(size_t bytes); /* zeroed; NULL: no memory */
void due__secret_free(void *secret); /* NULL is allowed */

#endif
