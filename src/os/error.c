/* error.c - the names and texts of DUE_ERRORS. */
#include "due/due.h"

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
