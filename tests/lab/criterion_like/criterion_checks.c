/* criterion_checks.c - what stands for Criterion finds what it is to find: tests of the suite
 * "passes" pass, and each of "fails" fails. */
#define main crl_main
#include <criterion/criterion.h>
#undef main

#include <pthread.h>

static int begun;

static void begin(void)
{
    begun++;
}

static void end_wrong(void)
{
    cr_expect_fail("at the end");
}

TestSuite(passes, .init = begin);

Test(passes, what_is_so, .init = begin)
{
    int one = 1;

    cr_assert_eq(begun, 2, "the suite's beginning, and its own: %d", begun);
    cr_expect(true);
    cr_expect_not(false, "with %s", "words");
    cr_expect_null(NULL);
    cr_assert_not_null(&one);
    cr_expect_lt(one, 2);
    cr_expect_geq(one, 1);
    cr_expect_str_eq("tea", "tea");
    cr_expect_str_empty("");
    cr_expect_arr_eq("tea", "teapot", 3);
    cr_expect_float_eq(0.1 + 0.2, 0.3, 1e-9);
}

Test(passes, what_is_skipped)
{
    cr_skip_test("not %s", "here");
    cr_expect_fail("it goes on");
}

Test(passes, what_ends_as_it_is_to, .signal = SIGABRT)
{
    abort();
}

Test(fails, eq)
{
    cr_expect_eq(1, 2, "%d", 3);
}
Test(fails, neq)
{
    cr_expect_neq(1, 1);
}
Test(fails, lt)
{
    cr_expect_lt(1, 1);
}
Test(fails, leq)
{
    cr_expect_leq(2, 1);
}
Test(fails, gt)
{
    cr_expect_gt(1, 1);
}
Test(fails, geq)
{
    cr_expect_geq(0, 1);
}
Test(fails, null)
{
    const char *tea = "tea";

    cr_expect_null(tea);
}
Test(fails, not_null)
{
    cr_expect_not_null(NULL);
}
Test(fails, truth)
{
    cr_expect(false);
}
Test(fails, falsehood)
{
    cr_expect_not(true);
}
Test(fails, str_eq)
{
    cr_expect_str_eq("tea", "pot");
}
Test(fails, str_neq)
{
    cr_expect_str_neq("tea", "tea");
}
Test(fails, str_empty)
{
    cr_expect_str_empty("tea");
}
Test(fails, arr_eq)
{
    cr_expect_arr_eq("tea", "ten", 3);
}
Test(fails, float_eq)
{
    cr_expect_float_eq(1.0, 1.1, 0.01);
}
Test(fails, at_its_end, .fini = end_wrong) {}
Test(fails, by_a_signal)
{
    abort();
}
Test(fails, by_another_signal, .signal = SIGSEGV)
{
    abort();
}
Test(fails, without_its_signal, .signal = SIGABRT) {}
Test(fails, by_taking_too_long, .timeout = 0.001)
{
    pause();
}

Test(fails, by_stopping)
{
    cr_assert_eq(1, 2);
    _exit(0);
}

static void *fail_apart(void *arg)
{
    cr_expect(arg != NULL);
    return NULL;
}

Test(fails, in_a_thread)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, fail_apart, NULL) == 0)
        pthread_join(thread, NULL);
}

int main(void)
{
    int tested = 0, wrong = 0;

    for (const struct crl_test *t = crl_first; t != NULL; t = t->next) {
        const char *why = t->run == NULL ? NULL : crl_try(t);

        tested += t->run != NULL;
        if (t->run != NULL && (why != NULL) != (strcmp(t->suite, "fails") == 0)) {
            printf("%s/%s: %s\n", t->suite, t->name, why == NULL ? "passes" : why);
            wrong++;
        }
    }
    if (wrong > 0 || tested != 25 || crl_main(0, NULL) != 1)
        return 1;
    setenv("CRL_WITHOUT", "none/* fails/*", 1);
    if (crl_main(0, NULL) != 0)
        return 1;
    return crl_main(3, (char *[]){ "checks", "--filter", "fails/*", NULL }) != 77;
}
