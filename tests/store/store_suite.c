/* store_suite.c - runs the tests of a store. */
#define _GNU_SOURCE
#include "store/store_suite.h"

#include <unistd.h>

#include "store/suite_frame.h"

static void start(struct suite *t, const struct store_maker *maker, const char *test)
{
    static unsigned queues;

    *t = (struct suite){ .maker = maker, .test = test, .random = 1 };
    snprintf(t->queue, sizeof t->queue, "suite-%ld-%u", (long)getpid(), ++queues);
    if (maker->fresh != NULL)
        maker->fresh(maker->ctx);
}

static void finish(struct suite *t)
{
    for (int s = SUITE_STORES; s-- > 0;)
        suite_close(t, s);
    for (size_t i = 0; i < t->n_jobs; i++)
        free(t->jobs[i].bytes);
    for (size_t i = 0; i < t->n_topics; i++)
        free(t->topics[i]);
    free(t->jobs);
    free(t->topics);
    free(t->last);
    free(t->changes);
    free(t->changed);
}

int store_suite_run(const struct store_maker *maker, const char *only)
{
    static const struct suite_test *const all[] = { suite_open_tests,     suite_commit_tests,
                                                    suite_pipeline_tests, suite_load_tests,
                                                    suite_call_tests,     suite_dead_tests,
                                                    suite_key_tests,      suite_topic_tests };
    unsigned failed = 0;
    unsigned skipped = 0;
    unsigned ran = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const struct suite_test *test = all[i]; test->name != NULL; test++) {
            struct suite t;

            if (only != NULL && strncmp(test->name, only, strlen(only)) != 0)
                continue;
            start(&t, maker, test->name);
            test->run(&t);
            failed += t.failed;
            skipped += t.skipped;
            ran++;
            printf("%-6s  %s\n", t.failed ? "FAILED" : t.skipped ? "left" : "ok", test->name);
            fflush(stdout);
            finish(&t);
        }
    printf("%s: %u tests, %u failed, %u left out for want of a hook\n", maker->name, ran, failed,
           skipped);
    return failed > 0;
}
