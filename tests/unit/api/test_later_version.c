/* Callers that were compiled with a header of another version: what they leave at nothing is taken
 * as ours, and what they set that we do not know is refused by its name. */
#include <limits.h>

#include "lab/lab.h"

struct later_options {
    due_options known;
    uint64_t later;
};

Test(later_version, of_options_is_refused_if_it_sets_what_we_do_not_know)
{
    struct later_options o = { .known.size = sizeof o };
    due_queue *q = NULL;
    due_error error = { "", "" };

    cr_assert_eq(due_open(&q, &o.known, &error), 0, "%s", error.text);
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)), 0);
    due_free(q);
    o.later = 1;
    q = NULL;
    cr_expect_eq(due_open(&q, &o.known, &error), DUE_ENOTSUP);
    cr_expect_str_eq(error.text, "an option is set that this version does not know");
    cr_expect_str_eq(error.hint, "the program was built for a newer version");
    cr_expect_null(q);
}

struct later_take {
    due_take_options known;
    uint64_t later;
};

Test(later_version, of_a_take_is_refused_and_takes_nothing)
{
    struct lab lab = lab_open(.kernel = false);
    struct later_take o = { .known = { DUE_TAKE_INIT } };
    due_job job;

    o.known.size = sizeof o;
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    o.later = 1;
    cr_expect_eq(due_take(lab.q, &o.known, &job, 1, 0), DUE_ENOTSUP);
    o.later = 0;
    cr_expect_eq(due_take(lab.q, &o.known, &job, 1, 0), 1);
    due_job_done(&job);
    lab_close(&lab);
}

struct later_spec {
    due_spec known;
    uint64_t later;
};

Test(later_version, of_a_spec_is_named_as_what_is_wrong)
{
    struct lab lab = lab_open(.kernel = false);
    struct later_spec s = { .known.size = sizeof s };

    cr_expect_null(due_spec_error(lab.q, &s.known));
    s.later = 1;
    cr_expect_str_eq(due_spec_error(lab.q, &s.known),
                     "a field is set that this version of the library does not know");
    cr_expect_eq(due_enqueue_batch(lab.q, &s.known, (size_t)INT_MAX + 1, 0, NULL), DUE_EINVAL);
    lab_close(&lab);
}
