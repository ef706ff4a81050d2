/* The names and texts of the errors. */
#include "lab/lab.h"

struct error {
    int code;
    const char *name;
    const char *text;
};

static const struct error errors[] = {
#define ERROR(name, value, text) { DUE_##name, "DUE_" #name, text },
    DUE_ERRORS(ERROR)
#undef ERROR
};

#define ERRORS (sizeof errors / sizeof errors[0])

Test(errors, have_the_name_they_are_declared_with)
{
    for (size_t i = 0; i < ERRORS; i++)
        cr_expect_str_eq(due_error_name(errors[i].code), errors[i].name);
}

Test(errors, have_the_text_they_are_declared_with)
{
    for (size_t i = 0; i < ERRORS; i++)
        cr_expect_str_eq(due_error_text(errors[i].code), errors[i].text);
}

Test(errors, are_negative_and_different_from_each_other)
{
    for (size_t i = 0; i < ERRORS; i++) {
        cr_expect_lt(errors[i].code, 0, "%s", errors[i].name);
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(errors[i].code, errors[k].code, "%s and %s", errors[i].name,
                          errors[k].name);
    }
}

Test(errors, call_zero_no_error)
{
    cr_expect_str_eq(due_error_name(0), "DUE_OK");
    cr_expect_str_eq(due_error_text(0), "no error");
}

Test(errors, have_a_name_for_any_number)
{
    static const int numbers[] = { 1, -1, EINVAL, INT32_MAX, INT32_MIN };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cr_expect_str_eq(due_error_name(numbers[i]), "DUE_EUNKNOWN");
        cr_expect_str_eq(due_error_text(numbers[i]), "unknown error");
    }
}

Test(version, is_that_of_the_headers_as_number_and_text)
{
    char text[32];

    cr_expect_eq(due_version(), DUE_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", DUE_VERSION_MAJOR, DUE_VERSION_MINOR,
             DUE_VERSION_PATCH);
    cr_expect_str_eq(due_version_text(), text);
}

Test(times, may_be_fractions)
{
    static const int64_t half = DUE_S(0.5);
    unsigned three = 3;

    cr_expect_eq(half, 500000000);
    cr_expect_eq(DUE_MS(0.25), 250000);
    cr_expect_eq(DUE_US(1.5), 1500);
    cr_expect_eq(DUE_S(3 - 1), 2000000000);
    cr_expect_eq(DUE_S(-1), -1000000000);
    cr_expect_eq(DUE_S(three), 3000000000);
}
