/* Headers beside the payload. */
#include "lab/lab.h"

LAB_TEST(headers, come_with_the_job_byte_for_byte)
{
    struct lab lab = lab_open();
    unsigned char headers[DUE_HEADERS_MAX];
    char long_text[100];
    due_job job;

    for (size_t i = 0; i < sizeof headers; i++)
        headers[i] = (unsigned char)i;
    memset(long_text, 'y', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    const char *texts[] = { "", "t", "te", long_text };
    for (size_t n = 0; n <= sizeof headers; n = n < 3 ? n + 1 : (n / 64 + 1) * 64) {
        for (size_t i = 0; i < 4; i++) {
            lab_enqueue(&lab, texts[i], .delay_ns = 0,
                        .more = EXTRA(.headers = headers, .headers_len = n));
            cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
            cr_expect_eq(job.headers_len, n);
            cr_expect(n == 0 || memcmp(job.headers, headers, n) == 0);
            cr_expect_eq(job.len, strlen(texts[i]));
            cr_expect(job.len == 0 || memcmp(job.data, texts[i], job.len) == 0);
            due_job_done(&job);
        }
    }
    lab_close(&lab);
}

LAB_TEST(headers, beside_a_pointer)
{
    struct lab lab = lab_open();
    int thing = 1;
    due_spec spec = { DUE_SPEC_INIT, .ptr = &thing,
                      .more = EXTRA(.headers = "text/plain", .headers_len = 10) };
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.ptr, &thing);
    cr_expect_null(job.data);
    cr_expect_eq(memcmp(job.headers, "text/plain", 10), 0);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(headers, too_many_are_refused)
{
    struct lab lab = lab_open();
    char headers[DUE_HEADERS_MAX + 1] = { 0 };
    due_extra more = { DUE_EXTRA_INIT, .headers = headers, .headers_len = sizeof headers };
    due_spec spec = { DUE_SPEC_INIT, .more = &more };

    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EINVAL);
    more.headers = NULL;
    more.headers_len = 1;
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EINVAL);
    lab_close(&lab);
}
