/* errors.c - the names of errors, as an answer has them, and what an error is about. */
#include "wire/request.h"

bool due__ctl_error_of(const char *name, size_t len, int *code)
{
    static const int codes[] = { 0,
#define CODE(name, value, text) DUE_##name,
                                 DUE_ERRORS(CODE)
#undef CODE
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        *code = codes[i];
        if (due__ctl_is_word(due_error_name(codes[i]), name, len))
            return true;
    }
    return false;
}

bool due__ctl_is_of_job(int rc)
{
    switch (rc) {
    case DUE_EINVAL:
    case DUE_ENOENT:
    case DUE_EBUSY:
    case DUE_EEXIST:
    case DUE_ELIMIT:
    case DUE_ENOTSUP:
    case DUE_ECORRUPT:
        return true;
    default:
        return false;
    }
}
