/* sized.h - structs that a caller fills in, and that get more fields from version to version.
 *
 * Such a struct begins with its size as the caller was compiled.  A shorter one is from an older
 * header: what it lacks is zero, the default.  A longer one is from a newer header: it means the
 * same here as long as what is not known here is zero.
 */
#ifndef DUE__SIZED_H
#define DUE__SIZED_H

#include <stddef.h>
#include <string.h>

#include "due/base.h"

#define DUE__SIZED_MAX 4096u /* a longer size was never set */

/* *@from as a struct of @size bytes: DUE_EINVAL: its size makes no sense; DUE_ENOTSUP: a field is
 * set that is not known here. */
static inline int due__sized_read(void *to, size_t size, const void *from)
{
    size_t given;

    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given % sizeof given != 0 || given > DUE__SIZED_MAX)
        return DUE_EINVAL;
    size_t known = given < size ? given : size;
    for (size_t i = known; i < given; i++) {
        if (((const unsigned char *)from)[i] != 0)
            return DUE_ENOTSUP;
    }
    memset(to, 0, size);
    memcpy(to, from, known);
    memcpy(to, &size, sizeof size);
    return 0;
}

#endif
