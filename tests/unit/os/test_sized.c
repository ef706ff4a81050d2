/* Structs that get more fields from version to version, as older and newer callers give them. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "due/base.h"
#include "os/sized.h"

#define SIZED_FIELDS 4u /* that are known here, with the size */

struct sized {
    size_t field[DUE__SIZED_MAX / sizeof(size_t) + 2]; /* the first is the size */
};

/* Of a struct of so many fields, each with its number, but from @zero on. */
static struct sized sized_given(size_t fields, size_t zero)
{
    struct sized s = { { 0 } };

    for (size_t i = 1; i < zero; i++)
        s.field[i] = i;
    s.field[0] = fields * sizeof s.field[0];
    return s;
}

static int sized_read(struct sized *to, const struct sized *from)
{
    for (size_t i = 0; i < sizeof to->field / sizeof to->field[0]; i++)
        to->field[i] = SIZE_MAX;
    return due__sized_read(to, SIZED_FIELDS * sizeof to->field[0], from);
}

Test(sized, what_a_caller_lacks_is_zero_and_the_size_is_our_own)
{
    for (size_t fields = 1; fields <= SIZED_FIELDS + 2; fields++) {
        struct sized from = sized_given(fields, fields < SIZED_FIELDS ? fields : SIZED_FIELDS);
        struct sized to;

        cr_assert_eq(sized_read(&to, &from), 0, "%zu fields", fields);
        cr_expect_eq(to.field[0], SIZED_FIELDS * sizeof to.field[0]);
        for (size_t i = 1; i < SIZED_FIELDS; i++)
            cr_expect_eq(to.field[i], i < fields ? i : 0, "field %zu of %zu", i, fields);
        cr_expect_eq(to.field[SIZED_FIELDS], SIZE_MAX, "beyond its end");
    }
}

Test(sized, a_field_that_is_not_known_here_must_be_zero)
{
    struct sized from = sized_given(SIZED_FIELDS + 2, SIZED_FIELDS);
    struct sized to;

    for (size_t i = SIZED_FIELDS; i < SIZED_FIELDS + 2; i++)
        for (size_t byte = 0; byte < sizeof from.field[0]; byte++) {
            from.field[i] = (size_t)1 << (8 * byte);
            cr_expect_eq(sized_read(&to, &from), DUE_ENOTSUP, "byte %zu of field %zu", byte, i);
            cr_expect_eq(to.field[1], SIZE_MAX, "nothing was read");
            from.field[i] = 0;
        }
    from.field[SIZED_FIELDS + 2] = 1; /* what stands behind the struct is another's */
    cr_expect_eq(sized_read(&to, &from), 0);
}

Test(sized, a_size_that_was_never_set_is_refused)
{
    struct sized from = sized_given(0, 1);
    struct sized to;

    for (size_t size = 0; size < 3 * sizeof size; size++) {
        from.field[0] = size;
        cr_expect_eq(sized_read(&to, &from), size > 0 && size % sizeof size == 0 ? 0 : DUE_EINVAL,
                     "%zu", size);
    }
    from.field[0] = DUE__SIZED_MAX;
    cr_expect_eq(sized_read(&to, &from), 0);
    from.field[0] = DUE__SIZED_MAX + sizeof from.field[0];
    cr_expect_eq(sized_read(&to, &from), DUE_EINVAL);
}
