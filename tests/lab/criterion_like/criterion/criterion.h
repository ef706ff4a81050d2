/* criterion.h - what the unit tests use of Criterion, for where that is not: under an emulator, or
 * with another C library.  It comes after a real one in the order of looking.
 *
 *   Tests    one after another, each in a forked child, which fails alone
 *   Time     what a test may take is ten times as long as it says: whatever runs here is slow
 *   Answer   0, or 1 if a test has failed; what was skipped counts as passed; 77: there was none
 *   Filter   --filter PATTERN: only tests whose "suite/name" fits; and none that fits one of the
 *            patterns in the variable CRL_WITHOUT, which are apart by blanks
 *
 * main() is weak, so that a program of two files has one.
 */
#ifndef CRITERION_LIKE_H
#define CRITERION_LIKE_H

#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CRL_SLOWER = 10, CRL_SECONDS = 60, CRL_FAILED = 1, CRL_SKIPPED = 77 };

struct crl_test {
    const char *suite, *name;
    void (*run)(void); /* NULL: it is a suite */
    struct crl_how {
        void (*init)(void), (*fini)(void);
        double timeout;
        int signal;
        bool disabled;
        int last;
    } how;
    struct crl_test *next;
};

__attribute__((weak)) struct crl_test *crl_first, **crl_end;
__attribute__((weak)) struct crl_name {
    const char *name;
} crl_names[2];                         /* of the suite, and of the test, that runs in this child */
__attribute__((weak)) int crl_failures; /* of this test: set by whichever thread */

__attribute__((weak)) void crl_add(struct crl_test *t)
{
    if (crl_end == NULL)
        crl_end = &crl_first;
    *crl_end = t;
    crl_end = &t->next;
}

__attribute__((weak)) void crl_say(const char *file, int line, const char *what, const char *format,
                                   ...)
{
    va_list words;

    fprintf(stderr, "%s:%d: %s: ", file, line, what);
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fputc('\n', stderr);
}

__attribute__((weak, noreturn)) void crl_end_with(int status)
{
    fflush(NULL);
    _exit(status);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

#define CRL_SAY(what, ...) crl_say(__FILE__, __LINE__, what, __VA_ARGS__)
#define CRL_CHECK(stop, is_so, what, ...)                         \
    do {                                                          \
        if (!(is_so)) {                                           \
            CRL_SAY(what, __VA_ARGS__);                           \
            __atomic_store_n(&crl_failures, 1, __ATOMIC_RELAXED); \
            if (stop)                                             \
                crl_end_with(CRL_FAILED);                         \
        }                                                         \
    } while (0)

#define CRL_ONE(stop, a, ...)         CRL_CHECK(stop, a, #a, __VA_ARGS__)
#define CRL_NOT(stop, a, ...)         CRL_CHECK(stop, !(a), "not " #a, __VA_ARGS__)
#define CRL_IS(stop, sign, a, b, ...) CRL_CHECK(stop, (a)sign(b), #a " " #sign " " #b, __VA_ARGS__)
#define CRL_STR(stop, sign, a, b, ...) \
    CRL_CHECK(stop, strcmp(a, b) sign 0, #a " " #sign " " #b, __VA_ARGS__)
#define CRL_EMPTY(stop, a, ...)     CRL_CHECK(stop, (a)[0] == '\0', #a " is empty", __VA_ARGS__)
#define CRL_ARR(stop, a, b, n, ...) CRL_CHECK(stop, memcmp(a, b, n) == 0, #a " == " #b, __VA_ARGS__)
#define CRL_NEAR(stop, a, b, by, ...) \
    CRL_CHECK(stop, (a) - (b) <= (by) && (b) - (a) <= (by), #a " ~ " #b, __VA_ARGS__)

#define cr_assert(...)           CRL_ONE(1, __VA_ARGS__, "")
#define cr_expect(...)           CRL_ONE(0, __VA_ARGS__, "")
#define cr_assert_not(...)       CRL_NOT(1, __VA_ARGS__, "")
#define cr_expect_not(...)       CRL_NOT(0, __VA_ARGS__, "")
#define cr_assert_null(...)      CRL_NOT(1, __VA_ARGS__, "")
#define cr_expect_null(...)      CRL_NOT(0, __VA_ARGS__, "")
#define cr_assert_not_null(...)  CRL_ONE(1, __VA_ARGS__, "")
#define cr_expect_not_null(...)  CRL_ONE(0, __VA_ARGS__, "")
#define cr_assert_eq(...)        CRL_IS(1, ==, __VA_ARGS__, "")
#define cr_expect_eq(...)        CRL_IS(0, ==, __VA_ARGS__, "")
#define cr_assert_neq(...)       CRL_IS(1, !=, __VA_ARGS__, "")
#define cr_expect_neq(...)       CRL_IS(0, !=, __VA_ARGS__, "")
#define cr_assert_lt(...)        CRL_IS(1, <, __VA_ARGS__, "")
#define cr_expect_lt(...)        CRL_IS(0, <, __VA_ARGS__, "")
#define cr_assert_leq(...)       CRL_IS(1, <=, __VA_ARGS__, "")
#define cr_expect_leq(...)       CRL_IS(0, <=, __VA_ARGS__, "")
#define cr_assert_gt(...)        CRL_IS(1, >, __VA_ARGS__, "")
#define cr_expect_gt(...)        CRL_IS(0, >, __VA_ARGS__, "")
#define cr_assert_geq(...)       CRL_IS(1, >=, __VA_ARGS__, "")
#define cr_expect_geq(...)       CRL_IS(0, >=, __VA_ARGS__, "")
#define cr_assert_str_eq(...)    CRL_STR(1, ==, __VA_ARGS__, "")
#define cr_expect_str_eq(...)    CRL_STR(0, ==, __VA_ARGS__, "")
#define cr_expect_str_neq(...)   CRL_STR(0, !=, __VA_ARGS__, "")
#define cr_expect_str_empty(...) CRL_EMPTY(0, __VA_ARGS__, "")
#define cr_assert_arr_eq(...)    CRL_ARR(1, __VA_ARGS__, "")
#define cr_expect_arr_eq(...)    CRL_ARR(0, __VA_ARGS__, "")
#define cr_expect_float_eq(...)  CRL_NEAR(0, __VA_ARGS__, "")
#define cr_expect_fail(...)      CRL_CHECK(0, false, "fails", __VA_ARGS__)
#define cr_log_error(...)        CRL_SAY("error", __VA_ARGS__)
#define cr_skip(...)             (CRL_SAY("skipped", __VA_ARGS__), crl_end_with(CRL_SKIPPED))
#define cr_skip_test             cr_skip

#define criterion_current_suite (&crl_names[0])
#define criterion_current_test  (&crl_names[1])

/* ---- Tests ----------------------------------------------------------------------------------- */

#define CRL_PUT(variable, s, n, body, ...)                                    \
    static struct crl_test variable = { #s, n, body, { __VA_ARGS__ }, NULL }; \
    __attribute__((constructor)) static void variable##_add(void)             \
    {                                                                         \
        crl_add(&variable);                                                   \
    }
#define CRL_TEST(s, n, ...)                                    \
    static void s##_##n##_run(void);                           \
    CRL_PUT(s##_##n##_test, s, #n, s##_##n##_run, __VA_ARGS__) \
    static void s##_##n##_run(void)
#define CRL_SUITE(s, ...) CRL_PUT(s##_suite, s, NULL, NULL, __VA_ARGS__) struct crl_test

#define Test(...)      CRL_TEST(__VA_ARGS__, .last = 0)
#define TestSuite(...) CRL_SUITE(__VA_ARGS__, .last = 0)

/* ---- One after another ----------------------------------------------------------------------- */

__attribute__((weak)) const struct crl_how *crl_suite_of(const struct crl_test *t)
{
    static const struct crl_how none;

    for (const struct crl_test *at = crl_first; at != NULL; at = at->next) {
        if (at->run == NULL && strcmp(at->suite, t->suite) == 0)
            return &at->how;
    }
    return &none;
}

__attribute__((weak, noreturn)) void crl_run(const struct crl_test *t, const struct crl_how *suite)
{
    void (*const steps[])(void) = { suite->init, t->how.init, t->run, t->how.fini, suite->fini };

    crl_names[0].name = t->suite;
    crl_names[1].name = t->name;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] != NULL)
            steps[i]();
    }
    crl_end_with(__atomic_load_n(&crl_failures, __ATOMIC_RELAXED) != 0 ? CRL_FAILED : 0);
}

/* How it has ended, as wait() has it; -1: it took too long, and was killed. */
__attribute__((weak)) int crl_wait(pid_t pid, double seconds, const sigset_t *child)
{
    struct timespec left = { .tv_sec = (time_t)(seconds * CRL_SLOWER) };
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (sigtimedwait(child, NULL, &left) < 0 && waitpid(pid, &status, WNOHANG) == 0) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
    }
    return status;
}

/* NULL: it has passed, or was skipped; else why not. */
__attribute__((weak)) const char *crl_try(const struct crl_test *t)
{
    const struct crl_how *suite = crl_suite_of(t);
    double seconds = t->how.timeout > 0 ? t->how.timeout : suite->timeout;
    sigset_t child, before;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        crl_run(t, suite);
    }
    int status = pid < 0 ? -1 : crl_wait(pid, seconds > 0 ? seconds : CRL_SECONDS, &child);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (status == -1)
        return "takes too long";
    if (WIFSIGNALED(status) || t->how.signal != 0)
        return WIFSIGNALED(status) && WTERMSIG(status) == t->how.signal ? NULL : "ends by a signal";
    return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CRL_SKIPPED ? NULL : "fails";
}

__attribute__((weak)) bool crl_is_left_out(const char *name)
{
    const char *variable = getenv("CRL_WITHOUT");
    char patterns[1024], *rest = patterns;

    snprintf(patterns, sizeof patterns, "%s", variable == NULL ? "" : variable);
    for (char *one = strtok_r(rest, " ", &rest); one != NULL; one = strtok_r(NULL, " ", &rest)) {
        if (fnmatch(one, name, 0) == 0)
            return true;
    }
    return false;
}

__attribute__((weak)) int main(int argc, char **argv)
{
    const char *filter = argc == 3 && strcmp(argv[1], "--filter") == 0 ? argv[2] : "*";
    char full[256];
    int tested = 0, failed = 0;

    for (const struct crl_test *t = crl_first; t != NULL; t = t->next) {
        snprintf(full, sizeof full, "%s/%s", t->suite, t->run == NULL ? "" : t->name);
        if (t->run == NULL || t->how.disabled || fnmatch(filter, full, 0) != 0 ||
            crl_is_left_out(full))
            continue;
        const char *why = crl_try(t);
        tested++;
        failed += why != NULL;
        if (why != NULL)
            fprintf(stderr, "FAILED: %s: %s\n", full, why);
    }
    printf("Synthesis: Tested: %d | Passing: %d | Failing: %d\n", tested, tested - failed, failed);
    return failed > 0 ? CRL_FAILED : tested == 0 ? CRL_SKIPPED : 0;
}

#endif
