/* error.c - the names and texts of DUE_ERRORS, and the library's version. */
#include "due/base.h"

#define TEXT_OF(x)      #x
#define DOTTED(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

int due_version(void)
{
    return DUE_VERSION;
}

const char *due_version_text(void)
{
    return DOTTED(DUE_VERSION_MAJOR, DUE_VERSION_MINOR, DUE_VERSION_PATCH);
}

const char *due_error_name(int code)
{
    switch (code) {
    case 0:
        return "DUE_OK";
#define NAME(name, value, text) \
    case DUE_##name:            \
        return "DUE_" #name;
        DUE_ERRORS(NAME)
#undef NAME
    default:
        return "DUE_EUNKNOWN";
    }
}

const char *due_error_text(int code)
{
    switch (code) {
    case 0:
        return "no error";
#define TEXT(name, value, text) \
    case DUE_##name:            \
        return text;
        DUE_ERRORS(TEXT)
#undef TEXT
    default:
        return "unknown error";
    }
}
